"""A function applied along the first dimension: `tf.map_fn`, `tf.scan`, `tf.foldl`, `tf.foldr`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.control_flow import composite_maps
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.tracing import trace_body
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype, int32
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TypeSpec


def _flat_elements(elems: Any, who: str) -> list[Any]:
    """The tensors to be sliced, all with the same first dimension."""
    flat = [convert_to_tensor(x) for x in nest.flatten(elems)]
    if not flat:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems!r}, which does not contain "
            "any Tensors."
        )
    for x in flat:
        if x.shape.rank == 0:
            raise ValueError(f"{who}: Elements in elems must be 1+ dimensional Tensors, not scalars")
        if x.shape.rank is None:
            continue
        if flat[0].shape.rank and None not in (x.shape[0], flat[0].shape[0]) and x.shape[0] != flat[0].shape[0]:
            raise ValueError(f"{who}: Dimensions {flat[0].shape[0]} and {x.shape[0]} are not compatible")
    return flat


_BLOCK = 1 << 16  # rows that one operation takes apart or puts together; between them a signal ends a map


def _unstacked(x: Any) -> list[Any]:
    count = x.shape[0] or 0
    if count <= _BLOCK:
        return list(primitives.Unpack(x, -1, 0))
    return [row for start in range(0, count, _BLOCK) for row in primitives.Unpack(x[start : start + _BLOCK], -1, 0)]


def _packed(rows: list[Any]) -> Any:
    if len(rows) <= _BLOCK:
        return primitives.Pack(rows, 0)
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    return primitives.ConcatV2([primitives.Pack(block, 0) for block in blocks], 0)


def _rows_of(elems: Any, who: str) -> list[Any]:
    """The structure of slices for each position of the first dimension."""
    flat = _flat_elements(elems, who)
    columns = [_unstacked(x) for x in flat]
    if isinstance(elems, _core.Tensor):
        return columns[0]
    return [nest.pack_sequence_as(elems, list(row)) for row in zip(*columns)]


def _as_tensors(result: Any) -> Tensor:
    return result if isinstance(result, _core.Tensor) else nest.map_structure(convert_to_tensor, result)


def _stacked(results: list[Any]) -> Any:
    """Structures of tensors, one per position, as one structure of tensors with a first dimension more."""
    if isinstance(results[0], _core.Tensor):
        return _packed(results)
    columns = zip(*[nest.flatten(r) for r in results])
    return nest.pack_sequence_as(results[0], [_packed(list(column)) for column in columns])


# ---- in a graph


def _count_of(tensor: Any) -> Any:
    """The size of the first dimension: a number if it is known."""
    known = tensor.shape[0] if tensor.shape.rank else None
    return primitives.Shape(tensor, int32)[0] if known is None else known


def _row(elems: Any, flat: list[Any], position: Any) -> Any:
    return nest.pack_sequence_as(elems, [x[position] for x in flat])


def staged_map(fn: Callable[[Any], Any], elems: Any, signature: Any, who: str) -> Any:
    """One loop over the slices; `fn` is traced once, before it, to learn what it returns."""
    flat = _flat_elements(elems, who)
    outer = _core.current_graph()
    specs = [(x.dtype, x.shape[1:] if x.shape.rank is not None else TensorShape(None)) for x in flat]

    def apply(*row: Any) -> Any:
        result = fn(nest.pack_sequence_as(elems, list(row)))
        if who == "map_fn":
            nest.assert_same_structure(elems if signature is None else signature, result)
        return result, [convert_to_tensor(x) for x in nest.flatten(result)]

    graph, (result, outputs) = trace_body(apply, outer, specs)
    if signature is not None or who == "map_fn":
        _check_dtypes(outputs, _expected_dtypes(elems, signature))
        _check_shapes(outputs, signature)
    for variable in graph.changing:
        graph.read_itself(variable)
    graph.capture_held_constants()
    graph.set_outputs(outputs)
    captures = graph.captures
    for variable in graph.captured_variables:
        convert_to_tensor(variable)
    count = _count_of(flat[0])
    arrays = [TensorArray._of_loop(x.dtype, count, x.shape) for x in outputs]

    def step(position: Any, arrays: list[Any]) -> Any:
        found = graph.call([*(x[position] for x in flat), *captures])
        return position + 1, [array.write(position, x) for array, x in zip(arrays, found)]

    _, arrays = while_loop(lambda position, _: position < count, step, (convert_to_tensor(0), arrays))
    return nest.pack_sequence_as(result, [array.stack() for array in arrays])


def _staged_run(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, backwards: bool, keeps: bool, who: str
) -> Any:
    """`value = fn(value, slice)` in one loop: the last value, or all of them."""
    flat = _flat_elements(elems, who)
    count = _count_of(flat[0])
    first = initializer is None
    value = _row(elems, flat, -1 if backwards else 0) if first else nest.map_structure(convert_to_tensor, initializer)
    iterations = count - 1 if first else count
    leaves = nest.flatten(value)
    arrays = [TensorArray._of_loop(x.dtype, count, x.shape) for x in leaves] if keeps else []
    if keeps and first:
        arrays = [a.write(count - 1 if backwards else 0, x) for a, x in zip(arrays, leaves)]

    def step(done: Any, value: Any, arrays: list[Any]) -> Any:
        place = done + 1 if first else done
        if backwards:
            place = count - 1 - place
        result = nest.map_structure(convert_to_tensor, fn(value, _row(elems, flat, place)))
        nest.assert_same_structure(value, result, check_types=False)
        for old, new in zip(leaves, nest.flatten(result)):
            if old.dtype != new.dtype:
                text = f"enters the loop with type {old.dtype} but has type {new.dtype} after 1 iteration."
                raise TypeError(f"{who}: the value {text}")
        return done + 1, result, [a.write(place, x) for a, x in zip(arrays, nest.flatten(result))]

    start = (convert_to_tensor(0), value, arrays)
    _, value, arrays = while_loop(lambda done, *_: done < iterations, step, start)
    return nest.pack_sequence_as(value, [a.stack() for a in arrays]) if keeps else value


def _expected_dtypes(elems: Any, signature: Any) -> list[Any]:
    if signature is not None:
        return [_dtype_of(s) for s in nest.flatten(signature)]
    return [convert_to_tensor(x).dtype for x in nest.flatten(elems)]


def _check_dtypes(tensors: list[Any], expected: list[Any]) -> None:
    if len(tensors) != len(expected):
        raise ValueError(
            f"map_fn: The two structures don't have the same nested structure: fn must return {len(expected)} tensors; "
            f"got {len(tensors)}"
        )
    for tensor, wanted in zip(tensors, expected):
        if tensor.dtype != wanted:
            raise InvalidArgumentError.of(
                f"map_fn: TensorArray dtype is {wanted.name} but Op is trying to write dtype {tensor.dtype.name}. "
                "Say what fn returns with fn_output_signature.",
            )


def _check_shapes(tensors: list[Any], signature: Any) -> None:
    for tensor, wanted in zip(tensors, [] if signature is None else nest.flatten(signature)):
        shape = cast(Any, wanted).shape if isinstance(wanted, TypeSpec) else None
        if shape is not None and not shape.is_compatible_with(tensor.shape):
            raise ValueError(f"map_fn: Incompatible shape for value ({tensor.shape}), expected ({shape})")


# ---- the public functions


def _dtype_of(signature: Any) -> Any:
    return cast(Any, signature).dtype if isinstance(signature, TypeSpec) else as_dtype(signature)


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

    Args:
        fn: A function of a slice, or of a structure of slices.
        elems: A tensor or structure of tensors, mapped along their first dimension.
        dtype: Deprecated: `fn_output_signature`.
        parallel_iterations: A hint of TensorFlow's; it changes nothing.
        back_prop: Deprecated; it changes nothing. Use `tf.stop_gradient`.
        swap_memory: A hint of TensorFlow's; it changes nothing.
        infer_shape: Whether all results must have one shape.
        name: A name for the operation in graphs.
        fn_output_signature: The dtypes or specs of the results, if they differ from those of `elems`.

    Returns:
        A tensor or structure of stacked results.

    Gradient:
        That of `fn`, for each slice.

    >>> tf.map_fn(lambda x: x * x, tf.constant([1., 2., 3.]))
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 4., 9.], dtype=float32)>
    """
    signature = fn_output_signature if fn_output_signature is not None else dtype
    if composite_maps.encodes(elems, signature):
        run = lambda fn, elems, kinds: map_fn(fn, elems, back_prop=back_prop, fn_output_signature=kinds)  # noqa: E731
        return composite_maps.encoded_map(run, fn, elems, signature)
    if composite_maps.applies(elems, signature):
        return composite_maps.composite_map(fn, elems, signature)
    if _core.is_tracing():
        return _with_gradient(staged_map(fn, elems, signature, "map_fn"), back_prop)
    rows = _rows_of(elems, "map_fn")
    expected = _expected_dtypes(elems, signature)
    results = [fn(row) for row in rows]
    if not results:
        return nest.pack_sequence_as(signature if signature is not None else elems, [zeros([0], d) for d in expected])
    nest.assert_same_structure(elems if signature is None else signature, results[0])
    results = [_as_tensors(result) for result in results]
    _check_dtypes(nest.flatten(results[0]), expected)
    _check_shapes(nest.flatten(results[0]), signature)
    try:
        return _stacked(results)
    except (ValueError, TypeError, InvalidArgumentError):
        for result in results:
            _check_dtypes(nest.flatten(result), expected)
            if infer_shape:
                _check_like(results[0], result, "map_fn")
        raise


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
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 3., 6.], dtype=float32)>
    """
    if _core.is_tracing():
        return _with_gradient(_staged_run(fn, elems, initializer, reverse, True, "scan"), back_prop)
    values = _running(fn, elems, initializer, reverse, "scan")
    kept = values if initializer is None else values[1:]
    if not kept:
        return nest.map_structure(lambda x: zeros([0, *x.shape], x.dtype), values[0])
    _check_like(values[0], kept[0], "scan")
    try:
        return _stacked(kept[::-1] if reverse else kept)
    except (ValueError, TypeError, InvalidArgumentError):
        for value in kept:
            _check_like(values[0], value, "scan")
        raise


def _with_gradient(result: Any, yes: bool) -> Any:
    return result if yes else nest.map_structure(primitives.StopGradient, result)


def _check_like(first: Any, value: Any, who: str) -> None:
    """Raises the errors of a TensorArray to which tensors of another dtype or shape are written."""
    for one, two in zip(nest.flatten(first), nest.flatten(value)):
        if one.dtype != two.dtype:
            text = f"{who}: TensorArray dtype is {one.dtype.name} but Op is trying to write dtype {two.dtype.name}"
            raise InvalidArgumentError.of(text)
        if one.shape != two.shape:
            raise ValueError(f"{who}: Incompatible shape for value ({two.shape}), expected ({one.shape})")


def _running(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, backwards: bool, who: str) -> list[Any]:
    if not callable(fn):
        raise TypeError(f"{fn.__class__.__name__} is not callable")
    rows = _rows_of(elems, who)
    if backwards:
        rows = rows[::-1]
    if initializer is None:
        if not rows:
            raise InvalidArgumentError.of(f"{who}: without an initializer elems must not be empty")
        values, rows = [rows[0]], rows[1:]
    else:
        values = [nest.map_structure(convert_to_tensor, initializer)]
    plain = isinstance(values[0], _core.Tensor)
    for row in rows:
        values.append(_as_tensors(fn(values[-1], row)))
        if not (plain and isinstance(values[-1], _core.Tensor)):
            nest.assert_same_structure(values[0], values[-1], check_types=False)
    return values


def _fold(backwards: bool, doc: str, path: str) -> Callable[..., Any]:
    """A function that gives the last of the running values."""

    @public_as(doc, path)
    def function(
        fn: Callable[[Any, Any], Any],
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        if _core.is_tracing():
            return _with_gradient(_staged_run(fn, elems, initializer, backwards, False, path), back_prop)
        return _running(fn, elems, initializer, backwards, path)[-1]

    return function


foldl = _fold(
    False,
    """The last value of `value = fn(value, slice)`, over the slices from first to last.

    >>> tf.foldl(lambda value, x: 2 * value + x, tf.constant([1, 2, 3]))
    <tf.Tensor: shape=(), dtype=int32, numpy=11>
    """,
    "foldl",
)
foldr = _fold(
    True,
    """The last value of `value = fn(value, slice)`, over the slices from last to first.

    >>> tf.foldr(lambda value, x: 2 * value + x, tf.constant([1, 2, 3]))
    <tf.Tensor: shape=(), dtype=int32, numpy=17>
    """,
    "foldr",
)
