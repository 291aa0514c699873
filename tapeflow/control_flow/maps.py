"""A function applied along the first dimension: `tf.map_fn`, `tf.scan`, `tf.foldl`, `tf.foldr`, `tf.vectorized_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow import primitives
from tapeflow.namespace import public
from tapeflow.ops.constants import zeros
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest
from tapeflow.types.dtypes import as_dtype
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.tensor_spec import TypeSpec


def _rows_of(elems: Any, who: str) -> list[Any]:
    """The structure of slices for each position of the first dimension."""
    flat = [convert_to_tensor(x) for x in nest.flatten(elems)]
    if not flat:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems!r}, which does not contain "
            "any Tensors."
        )
    for x in flat:
        if x.shape.rank == 0:
            raise ValueError(f"{who}: Elements in elems must be 1+ dimensional Tensors, not scalars")
        if x.shape[0] != flat[0].shape[0]:
            raise ValueError(f"{who}: Dimensions {flat[0].shape[0]} and {x.shape[0]} are not compatible")
    columns = [primitives.Unpack(x, -1, 0) for x in flat]
    return [nest.pack_sequence_as(elems, list(row)) for row in zip(*columns)]


def _stacked(results: list[Any]) -> Any:
    """Structures of tensors, one per position, as one structure of tensors with a first dimension more."""
    columns = zip(*[[convert_to_tensor(x) for x in nest.flatten(r)] for r in results])
    return nest.pack_sequence_as(results[0], [primitives.Pack(list(column), 0) for column in columns])


def _dtype_of(signature: Any) -> Any:
    return signature.dtype if isinstance(signature, TypeSpec) else as_dtype(signature)


@public("map_fn")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` applied to each slice along the first dimension; the results stacked.

    >>> tf.map_fn(lambda x: x * x, tf.constant([1., 2., 3.]))
    [1., 4., 9.]
    """
    signature = fn_output_signature if fn_output_signature is not None else dtype
    rows = _rows_of(elems, "map_fn")
    expected = [_dtype_of(s) for s in nest.flatten(signature)] if signature is not None else None
    if expected is None:
        expected = [convert_to_tensor(x).dtype for x in nest.flatten(elems)]
    results = [fn(row) for row in rows]
    if not results:
        return nest.pack_sequence_as(signature if signature is not None else elems, [zeros([0], d) for d in expected])
    if signature is None:
        nest.assert_same_structure(elems, results[0])
    for result in results:
        flat = [convert_to_tensor(x) for x in nest.flatten(result)]
        if len(flat) != len(expected):
            raise ValueError(f"map_fn: fn must return {len(expected)} tensors; got {len(flat)}")
        for tensor, wanted in zip(flat, expected):
            if tensor.dtype != wanted:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"map_fn: TensorArray dtype is {wanted.name} but Op is trying to write dtype {tensor.dtype.name}. "
                    "Say what fn returns with fn_output_signature.",
                )
    return _stacked(results)


@public("vectorized_map")
def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`fn` applied to each slice along the first dimension; the results stacked. They may have any dtype.

    >>> tf.vectorized_map(lambda x: tf.reduce_sum(x), tf.ones([2, 3]))
    [3., 3.]
    """
    rows = _rows_of(elems, "vectorized_map")
    if not rows:
        raise ValueError("vectorized_map: the first dimension must not be empty")
    return _stacked([fn(row) for row in rows])


@public("scan")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All values of `value = fn(value, slice)` along the first dimension, stacked.

    >>> tf.scan(lambda total, x: total + x, tf.constant([1., 2., 3.]))
    [1., 3., 6.]
    """
    values = _running(fn, elems, initializer, reverse, "scan")
    kept = values if initializer is None else values[1:]
    return _stacked(kept[::-1] if reverse else kept)


def _running(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, backwards: bool, who: str) -> list[Any]:
    if not callable(fn):
        raise TypeError(f"{fn.__class__.__name__} is not callable")
    rows = _rows_of(elems, who)
    if backwards:
        rows = rows[::-1]
    if initializer is None:
        if not rows:
            raise InvalidArgumentError(None, None, f"{who}: without an initializer elems must not be empty")
        values, rows = [rows[0]], rows[1:]
    else:
        values = [nest.map_structure(convert_to_tensor, initializer)]
    for row in rows:
        values.append(fn(values[-1], row))
        nest.assert_same_structure(values[0], values[-1], check_types=False)
    return values


@public("foldl")
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of `value = fn(value, slice)`, over the slices from first to last.

    >>> tf.foldl(lambda value, x: 2 * value + x, tf.constant([1, 2, 3]))
    11
    """
    return _running(fn, elems, initializer, False, "foldl")[-1]


@public("foldr")
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of `value = fn(value, slice)`, over the slices from last to first.

    >>> tf.foldr(lambda value, x: 2 * value + x, tf.constant([1, 2, 3]))
    17
    """
    return _running(fn, elems, initializer, True, "foldr")[-1]
