"""`tf.vectorized_map`: a function traced for one slice, and run for all slices at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow import composite_maps
from tapeflow._src.control_flow.maps import staged_map
from tapeflow._src.control_flow.tracing import FuncGraph, building_inside
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.logging import warn as write_warning


@public("vectorized_map")
def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`fn` applied to each slice along the first dimension, for all slices at once; the results stacked.

    `fn` is traced once. Tensors of `elems` whose first dimension is 1 are the same for all slices. An operation that
    cannot be done for all slices at once runs once for each: with a warning, or, if `fallback_to_while_loop` is False,
    not at all. Random numbers are drawn for each slice; a variable cannot be given another value by each. The rows of
    ragged and sparse tensors are taken one by one.

    Args:
        fn: A function of a slice, or of a structure of slices.
        elems: A tensor or structure of tensors, mapped along their first dimension.
        fallback_to_while_loop: Whether to map slice by slice what has no batched form.
        warn: Whether to warn then.

    Returns:
        A tensor or structure of stacked results.

    Gradient:
        That of `fn`, for all slices at once.

    >>> tf.vectorized_map(lambda x: tf.reduce_sum(x), tf.ones([2, 3]))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
    """
    if composite_maps.applies(elems, None):
        return composite_maps.map_as_found(fn, elems)
    flat = _checked_elements(elems)
    if any(x.shape.rank is None for x in flat):
        return staged_map(fn, elems, None, "vectorized_map")
    graph, result, leaves = _traced(fn, elems, flat)
    outputs = [x for x in leaves if x is not None]
    graph.set_outputs(outputs)
    counts = [x.shape[0] for x in flat]
    if None in counts and _core.differs_by_row(graph):
        return staged_map(fn, elems, None, "vectorized_map")
    rows = -1 if None in counts else max(counts)
    sliced = [count == rows or rows < 0 for count in counts]
    batched = sliced + [False] * len(graph.captures)
    _report(graph, batched, fallback_to_while_loop, warn)
    for variable in graph.captured_variables:
        convert_to_tensor(variable)  # records the read on the open tapes
    if rows == 0:
        found = iter([zeros([0, *x.shape], x.dtype) for x in outputs])
    else:
        slices = [x if yes else x[0] for x, yes in zip(flat, sliced)]
        found = iter(_core.call_batched(graph, [*slices, *graph.captures], batched, rows))
    return nest.pack_sequence_as(result, [None if x is None else next(found) for x in leaves])


def _traced(fn: Callable[[Any], Any], elems: Any, flat: list[Any]) -> tuple[Any, Any, list[Any]]:
    """The graph of `fn` for one slice, what it returned, and the tensors in that."""
    graph = FuncGraph(_core.current_graph())
    with building_inside(graph):
        result = fn(nest.pack_sequence_as(elems, [graph.add_input(x.dtype, x.shape[1:]) for x in flat]))
        leaves = [None if x is None else convert_to_tensor(x) for x in nest.flatten(result)]
    return graph, result, leaves


def _checked_elements(elems: Any) -> list[Any]:
    """The tensors to be sliced: their first dimensions are equal, or 1."""
    flat = [convert_to_tensor(x) for x in nest.flatten(elems)]
    if not flat:
        raise ValueError(f"vectorized_map: elems must hold at least one tensor; got {elems!r}")
    for x in flat:
        if x.shape.rank == 0:
            raise ValueError(
                "vectorized_map: every tensor in elems must have a first dimension; got a scalar. (A list stands for a "
                "structure of tensors: make one tensor of it with tf.constant.)"
            )
    counts = sorted({x.shape[0] for x in flat if x.shape.rank and x.shape[0] not in (None, 1)})
    if len(counts) > 1:
        raise ValueError(
            "vectorized_map: the first dimensions of all tensors in elems must be equal, or 1; got "
            f"{', '.join(str(x.shape) for x in flat)}"
        )
    return flat


def _report(graph: Any, batched: list[bool], fallback: bool, warn: bool) -> None:
    """Says what cannot be done for all slices at once: an assignment, or an operation that runs once for each."""
    for number, is_assignment in _core.batching_obstacles(graph, batched):
        name, _, _, _, code, instruction = graph.node(number)
        file, line = source_line(code, instruction)
        if is_assignment:
            raise ValueError(
                f"vectorized_map: fn gives a variable another value for each slice ({name}, {file}:{line}), which "
                "cannot be done for all slices at once. Return the values and assign after the map, or use tf.map_fn."
            )
        if not fallback:
            raise ValueError(
                f"vectorized_map: No pfor vectorization defined for {name} ({file}:{line}). Consider enabling the "
                "fallback_to_while_loop option, with which it runs once for each slice."
            )
        if warn:
            write_warning("vectorized_map: %s runs once for each slice (%s:%d)", name, file, line)
