"""`tf.debugging`: statements about tensors that raise an error when they do not hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.program_order import assertion, shape_assertion
from tapeflow._src.ops.sparse.coordinates import is_sparse
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape

_state = {"traceback_filtering": True, "log_device_placement": False}


def _fail(message: str) -> None:
    raise InvalidArgumentError.of(message)


# ---- elements


def _compare(x: Any, y: Any, holds: Any, sign: str, message: str | None, summarize: int | None) -> None:
    hint = next((v.dtype for v in (x, y) if _core.is_tensor(v)), None)
    x = convert_to_tensor(x, dtype_hint=hint)
    y = convert_to_tensor(y, dtype_hint=x.dtype)
    result = holds(x, y)
    if bool(primitives.All(result)):
        return
    shown = 3 if summarize is None else summarize
    lines = [] if message is None else [message]
    lines.append(f"Condition x {sign} y did not hold.")
    wrong = np.argwhere(~np.asarray(result.numpy()))
    first, second = np.asarray(x.numpy()), np.asarray(y.numpy())
    if wrong.shape[1] and first.shape == second.shape:
        limit = len(wrong) if shown < 0 else min(shown, len(wrong))
        places = tuple(wrong[:limit].T)
        lines += [
            f"Indices of first {limit} different values:",
            str(wrong[:limit]),
            "Corresponding x values:",
            str(first[places]),
            "Corresponding y values:",
            str(second[places]),
        ]
    for letter, values in (("x", first), ("y", second)):
        flat = values.reshape(-1)
        count = flat.size if shown < 0 else min(shown, flat.size)
        lines += [f"First {count} elements of {letter}:", str(flat[:count])]
    _fail("\n".join(lines))


@public("debugging.assert_equal", "assert_equal")
@assertion
def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x == y` everywhere.

    >>> tf.debugging.assert_equal([1, 2], [1, 2])
    """
    _compare(x, y, primitives.Equal, "==", message, summarize)


@public("debugging.assert_none_equal")
@assertion
def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x != y` everywhere.

    >>> tf.debugging.assert_none_equal([1, 2], [3, 4])
    """
    _compare(x, y, primitives.NotEqual, "!=", message, summarize)


@public("debugging.assert_greater", "assert_greater")
@assertion
def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x > y` everywhere.

    >>> tf.debugging.assert_greater([1, 2], [0, 1])
    """
    _compare(x, y, primitives.Greater, ">", message, summarize)


@public("debugging.assert_greater_equal")
@assertion
def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x >= y` everywhere.

    >>> tf.debugging.assert_greater_equal([1, 2], [1, 1])
    """
    _compare(x, y, primitives.GreaterEqual, ">=", message, summarize)


@public("debugging.assert_less", "assert_less")
@assertion
def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x < y` everywhere.

    >>> tf.debugging.assert_less([1, 2], [2, 3])
    """
    _compare(x, y, primitives.Less, "<", message, summarize)


@public("debugging.assert_less_equal")
@assertion
def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x <= y` everywhere.

    >>> tf.debugging.assert_less_equal([1, 2], [2, 2])
    """
    _compare(x, y, primitives.LessEqual, "<=", message, summarize)


def _against_zero(x: Any, holds: Any, sign: str, message: str | None, summarize: int | None) -> None:
    x = convert_to_tensor(x)
    if bool(primitives.All(holds(x, _core.convert_to_tensor(0, x.dtype, None, "assert")))):
        return
    flat = np.asarray(x.numpy()).reshape(-1)
    shown = 3 if summarize is None else summarize
    values = [str(v) for v in (flat if shown < 0 else flat[:shown])] + (["..."] if 0 <= shown < flat.size else [])
    start = "" if message is None else f"{message}.  "
    _fail(
        f"{start}\nCondition x {sign} 0 did not hold element-wise:\n"
        f"x (shape={x.shape} dtype={x.dtype.name}) = \n{values}"
    )


@public("debugging.assert_positive")
@assertion
def assert_positive(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """Raises an InvalidArgumentError unless `x > 0` everywhere.

    >>> tf.debugging.assert_positive([1, 2])
    """
    _against_zero(x, primitives.Greater, ">", message, summarize)


@public("debugging.assert_negative")
@assertion
def assert_negative(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """Raises an InvalidArgumentError unless `x < 0` everywhere.

    >>> tf.debugging.assert_negative([-1])
    """
    _against_zero(x, primitives.Less, "<", message, summarize)


@public("debugging.assert_non_negative")
@assertion
def assert_non_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x >= 0` everywhere.

    >>> tf.debugging.assert_non_negative([0, 1])
    """
    _against_zero(x, primitives.GreaterEqual, ">=", message, summarize)


@public("debugging.assert_non_positive")
@assertion
def assert_non_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises an InvalidArgumentError unless `x <= 0` everywhere.

    >>> tf.debugging.assert_non_positive([0, -1])
    """
    _against_zero(x, primitives.LessEqual, "<=", message, summarize)


def _summary(values: Any, summarize: int | None) -> str:
    shown = 3 if summarize is None else summarize
    lines = []
    for value in values:
        tensor = convert_to_tensor(value)
        flat = np.asarray(tensor.numpy()).reshape(-1)
        texts = [str(v) for v in (flat if shown < 0 else flat[:shown])]
        if 0 <= shown < flat.size:
            texts.append("...")
        lines.append(", ".join(texts))
    return "\n".join(lines)


@public("debugging.Assert", "Assert")
@assertion
def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:  # noqa: N802
    """Raises an InvalidArgumentError that shows `data` unless `condition` is true.

    >>> tf.debugging.Assert(True, [[1, 2]])
    """
    if not bool(convert_to_tensor(condition)):
        _fail(f"Expected '{condition}' to be true. Summarized data: {_summary(data, summarize)}")


def _graph_message(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> str:
    """What the operation of a graph says: the data, each in brackets."""
    shown = 3 if summarize is None else summarize
    texts = []
    for value in data:
        flat = np.asarray(convert_to_tensor(value).numpy()).reshape(-1)
        cut = 0 <= shown < flat.size
        words = [
            v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in (flat[:shown] if cut else flat)
        ]
        texts.append(f"[{' '.join(words)}{'...' if cut else ''}]")
    return " ".join(texts)


Assert.__wrapped__.graph_message = _graph_message  # type: ignore[attr-defined]


@public("debugging.assert_near")
@assertion
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises an InvalidArgumentError unless `|x - y| <= atol + rtol * |y|`.

    Both tolerances are 10 times the epsilon of the dtype by default.

    >>> tf.debugging.assert_near([1.], [1. + 1e-7])
    """
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, dtype_hint=x.dtype)
    size_dtype = x.dtype.real_dtype
    epsilon = float(np.finfo(size_dtype.as_numpy_dtype).eps) if size_dtype.name != "bfloat16" else 2.0**-7
    rtol, atol = (convert_to_tensor(10 * epsilon if t is None else t, dtype=size_dtype) for t in (rtol, atol))
    size = primitives.ComplexAbs if x.dtype.is_complex else primitives.Abs
    if bool(primitives.All(primitives.LessEqual(size(x - y), atol + rtol * size(y)))):
        return
    data = [
        message or "",
        f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}",
        f"x (shape={x.shape} dtype={x.dtype.name}) = ",
        x,
        f"y (shape={y.shape} dtype={y.dtype.name}) = ",
        y,
    ]
    Assert(False, data, summarize)


@public("debugging.assert_all_finite")
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """`x`, if it holds neither NaN nor infinity; an InvalidArgumentError otherwise.

    >>> tf.debugging.assert_all_finite([1.], "x")
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>
    """
    return primitives.CheckNumerics(x, message)


# ---- shapes and dtypes


def _start(message: str | None) -> str:
    return "" if message is None else f"{message}.  "


def _shape_of(x: Any) -> TensorShape:
    return x.shape if hasattr(x, "shape") and isinstance(x.shape, TensorShape) else convert_to_tensor(x).shape


def _whole_rank(rank: Any) -> int:
    given = convert_to_tensor(rank)
    if not given.dtype.is_integer:
        raise TypeError(f"rank must be of type tf.int32; got {given.dtype!r}")
    if given.shape.rank != 0:
        raise ValueError(f"Rank must be a scalar; got shape {given.shape}")
    return int(given)


@public("debugging.assert_rank", "assert_rank")
@shape_assertion
def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a ValueError unless `x` has so many dimensions.

    >>> tf.debugging.assert_rank([1, 2], 1)
    """
    shape, wanted = _shape_of(x), _whole_rank(rank)
    if shape.rank != wanted:
        raise ValueError(
            f"{_start(message)}Tensor  must have rank {wanted}.  Received rank {shape.rank}, shape {shape}"
        )


@public("debugging.assert_rank_at_least")
@shape_assertion
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a ValueError unless `x` has so many dimensions or more.

    >>> tf.debugging.assert_rank_at_least([1, 2], 1)
    """
    shape, wanted = _shape_of(x), _whole_rank(rank)
    if shape.rank < wanted:
        raise ValueError(
            f"{_start(message)}Tensor  must have rank at least {wanted}.  Received rank {shape.rank}, shape {shape}"
        )


@public("debugging.assert_rank_in")
@shape_assertion
def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a ValueError unless the number of dimensions of `x` is in `ranks`.

    >>> tf.debugging.assert_rank_in([1, 2], (1, 2))
    """
    shape, wanted = _shape_of(x), tuple(_whole_rank(r) for r in ranks)
    if shape.rank not in wanted:
        raise ValueError(
            f"{_start(message)}Tensor  must have rank in {wanted}.  Received rank {shape.rank}, shape {shape}"
        )


@public("debugging.assert_scalar")
@shape_assertion
def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a ValueError unless `tensor` is a scalar.

    >>> tf.debugging.assert_scalar(5)
    """
    shape = convert_to_tensor(tensor).shape
    if shape.rank != 0:
        raise ValueError(f"{'' if message is None else message}Expected scalar shape, saw shape: {shape}.")


@public("debugging.assert_type")
def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a TypeError unless `tensor` has the dtype `tf_type`.

    >>> tf.debugging.assert_type(tf.constant(1), tf.int32)
    """
    wanted = as_dtype(tf_type)
    found = tensor.dtype if is_sparse(tensor) or hasattr(tensor, "row_splits") else convert_to_tensor(tensor).dtype
    if found != wanted:
        raise TypeError(f"{'' if message is None else message + '. '}tensor must be of type {wanted!r}; got {found!r}")


@public("debugging.assert_integer")
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises a TypeError unless `x` holds integers.

    >>> tf.debugging.assert_integer(tf.constant(1))
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_integer:
        raise TypeError(f'{_start(message)}Expected "x" to be integer type.  Found: tensor of dtype {x.dtype}')


@public("debugging.is_numeric_tensor")
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether this is a tensor of numbers.

    >>> tf.debugging.is_numeric_tensor(tf.constant("a"))
    False
    """
    numeric = _core.is_tensor(tensor) or is_sparse(tensor)
    return numeric and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_complex)


@public("debugging.assert_same_float_dtype")
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The one floating dtype of all tensors; a ValueError if there are several or it is another.

    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.)])
    tf.float32
    """
    found, first = (None if dtype is None else as_dtype(dtype).base_dtype), None
    for tensor in tensors or []:
        if tensor is None:
            continue
        if not hasattr(tensor, "dtype"):
            raise TypeError(f"assert_same_float_dtype: expected tensors; got {type(tensor).__name__}")
        own = as_dtype(tensor.dtype).base_dtype
        if found is None:
            found, first = own, tensor
        elif own != found:
            what = "" if first is None else f" as {first}"
            raise ValueError(f"{tensor}, type={own}, must be of the same type ({found}){what}.")
    found = as_dtype("float32") if found is None else found
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


@public("debugging.assert_proper_iterable")
def assert_proper_iterable(values: Any) -> None:
    """Raises a TypeError unless `values` is a list or the like: not a tensor, array or text.

    >>> tf.debugging.assert_proper_iterable([1, 2])
    """
    if _core.is_tensor(values) or is_sparse(values) or isinstance(values, np.ndarray | bytes | str):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


_FREE = (Ellipsis, "*")


def sizes_of(symbols: Any) -> tuple[bool, list[Any]]:
    """Whether leading dimensions are free, and the sizes of the others: a number, a symbol, None for any. No size at
    all means one dimension of size 1."""
    sizes = [None if s is None or (isinstance(s, str) and s == ".") else _number_or_symbol(s) for s in symbols]
    free = bool(sizes) and sizes[0] in _FREE
    sizes = sizes[1:] if free else sizes
    return free, sizes if free or sizes else [1]


def _number_or_symbol(size: Any) -> Any:
    try:
        return int(size)
    except (TypeError, ValueError):
        return size


@public("debugging.assert_shapes")
@shape_assertion
def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises a ValueError unless all tensors have the sizes given; equal symbols mean equal sizes.

    `shapes` is a list of pairs, or a dictionary, of tensors and shapes. A shape is a sequence, or a string of one
    letter for each dimension: numbers, symbols, None or "." for any size; first Ellipsis or "*" for any leading
    dimensions. A scalar and an empty shape count as one dimension of size 1.

    >>> tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("N", "D")), (tf.zeros([3]), "D")])
    """
    if isinstance(shapes, dict):
        shapes = [
            (getattr(tensor, "deref", lambda tensor=tensor: tensor)(), symbols) for tensor, symbols in shapes.items()
        ]
    known: dict[Any, tuple[int, str]] = {}
    for tensor, symbols in shapes:
        if symbols is None:
            continue
        shape = _shape_of(tensor)
        dtype = tensor.dtype if hasattr(tensor, "dtype") else convert_to_tensor(tensor).dtype
        _check_sizes(shape, f"shape={shape} dtype={dtype.name}", symbols, known, _start(message))


def _check_sizes(shape: TensorShape, text: str, symbols: Any, known: dict[Any, tuple[int, str]], start: str) -> None:
    if not hasattr(symbols, "__iter__") and not hasattr(symbols, "__getitem__"):
        raise ValueError(
            f"{start}Tensor {text}.  Specified shape must be an iterable.  An iterable has the attribute `__iter__` or "
            f"`__getitem__`.  Received specified shape: {symbols}"
        )
    free, sizes = sizes_of(symbols)
    for place, size in enumerate(sizes, int(free)):
        if size in _FREE:
            raise ValueError(
                f"{start}Tensor {text} specified shape index {place}.  Symbol `...` or `*` for a variable number of "
                "unspecified dimensions is only allowed as the first entry"
            )
    dims = shape.as_list() or [1]
    if len(dims) < len(sizes) if free else len(dims) != len(sizes):
        raise ValueError(
            f"{start}Tensor {text} must have rank {'at least ' if free else ''}{len(sizes)}.  "
            f"Received rank {shape.rank}, shape {shape}"
        )
    for place, (wanted, size) in enumerate(zip(sizes, dims[len(dims) - len(sizes) :]), -len(sizes) if free else 0):
        origin = "Specified explicitly"
        if wanted is not None and not isinstance(wanted, int):
            wanted, origin = known.setdefault(wanted, (size, f"Specified by tensor {text} dimension {place}"))
        if wanted not in (None, size):
            raise ValueError(
                f"{start}{origin}.  Tensor {text} dimension {place} must have size {wanted}.  Received size {size}, "
                f"shape {shape}"
            )


# ---- settings


@public("debugging.enable_traceback_filtering")
def enable_traceback_filtering() -> None:
    """Asks for tracebacks without inner frames; there are none here to be left out.

    >>> tf.debugging.enable_traceback_filtering()
    """
    _state["traceback_filtering"] = True


@public("debugging.disable_traceback_filtering")
def disable_traceback_filtering() -> None:
    """Asks for full tracebacks.

    >>> tf.debugging.disable_traceback_filtering()
    """
    _state["traceback_filtering"] = False


@public("debugging.is_traceback_filtering_enabled")
def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks are asked for without inner frames.

    >>> isinstance(tf.debugging.is_traceback_filtering_enabled(), bool)
    True
    """
    return _state["traceback_filtering"]


@public("debugging.set_log_device_placement")
def set_log_device_placement(enabled: bool) -> None:
    """Sets whether devices are to be logged; there is one device.

    >>> tf.debugging.set_log_device_placement(False)
    """
    _state["log_device_placement"] = bool(enabled)


@public("debugging.get_log_device_placement")
def get_log_device_placement() -> bool:
    """Whether devices are to be logged.

    >>> tf.debugging.get_log_device_placement()
    False
    """
    return _state["log_device_placement"]
