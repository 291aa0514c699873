"""`tf.experimental.numpy`: reductions over axes, running sums, positions of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import as_bool, boolean, document, dtype_or, tensor_of
from tapeflow._src.ops.arrays import shaping
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.math import arithmetic as arithmetic
from tapeflow._src.ops.math import reductions
from tapeflow._src.types.dtypes import float64, int64, uint64

# ---- reductions


def _reduction(name: str, compute: Callable[..., Any], sentence: str, example: str, wide: bool) -> Any:
    """With `wide`, integers are summed as int64 (or uint64), as NumPy does."""

    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Any:
        x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype_or(dtype, None))
        if wide and dtype is None and (x.dtype.is_integer or x.dtype.is_bool):
            x = cast(x, "uint64" if x.dtype.is_unsigned else int64)
        return compute(x, axis, bool(keepdims))

    def plain(a: Any, axis: Any = None, keepdims: bool | None = None) -> Any:
        return function(a, axis, None, keepdims)

    chosen = function if wide else plain
    document(chosen, sentence, example)
    return public(f"experimental.numpy.{name}")(chosen)


def as_number_or_float(x: Any) -> Any:
    return cast(x, float64) if x.dtype.is_integer or x.dtype.is_bool else x


def _extremum(numbers: Any, bools: Any) -> Callable[..., Any]:
    return lambda x, axis, keepdims: (bools if x.dtype == boolean else numbers)(x, axis, keepdims)


sum_of = _reduction("sum", primitives.Sum, "Sum over axes.", "sum([1, 2]) = 3", wide=True)
_reduction("prod", primitives.Prod, "Product over axes.", "prod([2, 3]) = 6", wide=True)
_reduction("max", _extremum(primitives.Max, primitives.Any), "Largest element.", "max([1, 2]) = 2", wide=False)
_reduction("min", _extremum(primitives.Min, primitives.All), "Smallest element.", "min([1, 2]) = 1", wide=False)
_reduction(
    "all", lambda x, *r: primitives.All(as_bool(x), *r), "Whether all are true.", "all([1, 0]) = False", wide=False
)
_reduction(
    "any", lambda x, *r: primitives.Any(as_bool(x), *r), "Whether any is true.", "any([1, 0]) = True", wide=False
)
_reduction(
    "std",
    lambda x, *r: reductions.reduce_std(as_number_or_float(x), *r),
    "Standard deviation.",
    "std([1, 3]) = 1.0",
    wide=False,
)
_reduction(
    "ptp",
    lambda x, *r: primitives.Max(x, *r) - primitives.Min(x, *r),
    "Largest less smallest.",
    "ptp([1, 3]) = 2",
    wide=False,
)


def _extreme(name: str, numbers: Any, bools: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
        if out is not None:
            raise ValueError(f"{name}: tf.experimental.numpy does not take `out`.")
        return _extremum(numbers, bools)(tensor_of(a), axis, bool(keepdims))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_extreme("amax", primitives.Max, primitives.Any, "Largest element.", "amax([1, 2]) = 2")
_extreme("amin", primitives.Min, primitives.All, "Smallest element.", "amin([1, 2]) = 1")


@public("experimental.numpy.mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """The mean over axes; integers give float64.

    >>> tf.experimental.numpy.mean([1, 2])
    <tf.Tensor: shape=(), dtype=float64, numpy=1.5>
    """
    x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype)
    return primitives.Mean(as_number_or_float(x), axis, bool(keepdims))


@public("experimental.numpy.var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool | None = None
) -> Tensor:
    """The variance over axes, with the divisor n - `ddof`.

    >>> tf.experimental.numpy.var([1, 3], ddof=1)
    <tf.Tensor: shape=(), dtype=float64, numpy=2.0>
    """
    x = as_number_or_float(tensor_of(a) if dtype is None else cast(tensor_of(a), dtype))
    variance = reductions.reduce_variance(x, axis, bool(keepdims))
    if not ddof:
        return variance
    if x.shape.is_fully_defined():
        n = (x.shape.num_elements() or 0) / max(1, variance.shape.num_elements() or 0)
        return variance * (n / (n - ddof) if n > ddof else float("inf"))  # as NumPy: of too few, not a number
    kind = variance.dtype
    count = cast(shaping.size(x), kind) / cast(primitives.Maximum(shaping.size(variance), 1), kind)
    factor = primitives.SelectV2(count > ddof, count / (count - ddof), cast(float("inf"), kind))
    return variance * factor


@public("experimental.numpy.count_nonzero")
def count_nonzero(a: Any, axis: Any = None) -> Any:
    """The number of elements that are not zero.

    >>> tf.experimental.numpy.count_nonzero([0, 1, 2])
    <tf.Tensor: shape=(), dtype=int64, numpy=2>
    """
    return reductions.count_nonzero(tensor_of(a), axis)


def _position(name: str, find: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: int | None = None) -> Any:
        x = tensor_of(a)
        return find(primitives.Reshape(x, [-1]) if axis is None else x, 0 if axis is None else axis)

    public(f"experimental.numpy.{name}")(function)
    document(function, sentence, example)


_position("argmax", primitives.ArgMax, "Position of the largest element.", "argmax([1, 3, 2]) = 1")
_position("argmin", primitives.ArgMin, "Position of the smallest element.", "argmin([2, 1, 3]) = 1")


def _scan(name: str, accumulate: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype_or(dtype, None))
        if dtype is None and (x.dtype.is_integer or x.dtype.is_bool):
            x = cast(x, float64 if x.dtype == uint64 else int64)
        return accumulate(primitives.Reshape(x, [-1]) if axis is None else x, 0 if axis is None else axis)

    public(f"experimental.numpy.{name}")(function)
    document(function, sentence, example)


_scan("cumsum", primitives.Cumsum, "Running sum.", "cumsum([1, 2]) = [1, 3]")
_scan("cumprod", primitives.Cumprod, "Running product.", "cumprod([2, 3]) = [2, 6]")
