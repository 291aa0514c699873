"""`tf.while_loop`: a loop over values that change in each iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.tracing import awaiting, share_captures, trace_body
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import CompositeTensor, TypeSpec, type_spec_from_value


def _as_value(value: Any) -> Any:
    """Numbers and arrays become tensors; tensors, variables, TensorArrays and other structures stay."""
    plain = isinstance(value, int | float | complex | str | bytes | np.ndarray | np.generic)
    return convert_to_tensor(value) if plain else value


@public("while_loop", node="while")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` holds; gives the last values.

    Args:
        cond: A function of the loop variables that gives a bool scalar.
        body: A function of the loop variables that gives their new values.
        loop_vars: The first values: a list or structure.
        shape_invariants: Shapes that stay true in every iteration, for variables whose shape changes.
        parallel_iterations: A hint of TensorFlow's; it changes nothing.
        back_prop: Deprecated; it changes nothing. Use `tf.stop_gradient`.
        swap_memory: A hint of TensorFlow's; it changes nothing.
        maximum_iterations: The largest number of iterations.
        name: A name for the operation in graphs.

    Returns:
        The loop variables after the last iteration.

    Gradient:
        Back through the iterations that ran.

    >>> tf.while_loop(lambda i: i < 10, lambda i: (i * 2,), (tf.constant(1),))[0]
    <tf.Tensor: shape=(), dtype=int32, numpy=16>
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    if isinstance(loop_vars, list | tuple | dict) and not loop_vars:
        raise ValueError("'loop_vars' must be provided: No loop variables provided.")
    limit = _checked_limit(maximum_iterations)
    if _core.is_tracing():
        values = _staged_loop(cond, body, list(loop_vars), shape_invariants, limit)
        if not back_prop:
            values = nest.map_structure(_without_gradient, values)
    else:
        values, result = _eager_loop(cond, body, list(loop_vars), limit)
        loop_vars = loop_vars if result is None else result  # the structure is that of the last iteration
    return type(loop_vars)(values) if isinstance(loop_vars, list) else _like_tuple(loop_vars, values)


def _eager_loop(
    cond: Callable[..., Any], body: Callable[..., Any], values: list[Any], limit: Any
) -> tuple[list[Any], Any]:
    """Iterates with the values as they are: as in TensorFlow, Python's numbers stay what they are until the end.

    Gives the values, and what the last iteration returned.
    """
    result = None
    limit = float("inf") if limit is None else int(limit)
    count = len(values)
    plain = _are_tensors(values)
    iterations = 0
    while iterations < limit:
        going = cond(*values)
        if not (convert_to_tensor(going) if isinstance(going, list | tuple) else going):
            break
        result = body(*values)
        iterations += 1
        if plain and type(result) in (tuple, list) and len(result) == count and _are_tensors(result):
            values = result
            continue
        listed = _as_list(result, count == 1)
        nest.assert_same_structure(list(values), listed, check_types=False)
        if plain and any(x is None for x in nest.flatten(listed)):
            raise ValueError("while_loop: Attempt to convert a value (None) with an unsupported type to a Tensor.")
        values, plain = listed, _are_tensors(listed)
    return nest.map_structure(_as_value, list(values)), result if _is_listed(result, count) else None


def _is_listed(result: Any, count: int) -> bool:
    return isinstance(result, list | tuple) and len(result) == count


def _are_tensors(values: Any) -> bool:
    for value in values:  # noqa: SIM110 - this runs in every iteration
        if not isinstance(value, _core.Tensor):
            return False
    return True


def _checked_limit(limit: Any) -> Any:
    if isinstance(limit, float):
        raise TypeError(f"while_loop: maximum_iterations: Expected int32, but got {limit} of type 'float'.")
    if _core.is_tensor(limit) and limit.shape.rank not in (0, None):
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit.shape}")
    return limit


def _without_gradient(value: Any) -> Any:
    return primitives.StopGradient(value) if isinstance(value, _core.Tensor) else value


def _like_tuple(loop_vars: Any, values: list[Any]) -> Any:
    return type(loop_vars)(*values) if hasattr(loop_vars, "_fields") else tuple(values)


def _as_list(result: Any, single: bool) -> list[Any]:
    """What a body returns: one loop variable may be returned bare."""
    if single and not (isinstance(result, list | tuple) and len(result) == 1):
        return [result]
    return list(result) if isinstance(result, list | tuple) else [result]


# ---- in a graph


def _staged_loop(
    cond: Callable[..., Any], body: Callable[..., Any], values: list[Any], shape_invariants: Any, limit: Any
) -> list[Any]:
    if limit is not None and _core.is_tensor(limit):
        return _counted_loop(cond, body, values, shape_invariants, convert_to_tensor(limit))
    outer = _core.current_graph()
    values = nest.pack_sequence_as(values, [_as_tensor(x) for x in nest.flatten(values, True)], expand_composites=True)
    flat = [x for x in nest.flatten(values, expand_composites=True) if x is not None]
    shapes = _loop_shapes(values, shape_invariants)
    while True:
        traced = _trace_loop(outer, cond, body, values, flat, shapes)
        if not isinstance(traced, list):
            break
        shapes = traced
    holds, after, result = traced
    changing = {id(v): v for graph in (holds, after) for v in graph.changing}
    for graph in (holds, after):
        for variable in changing.values():
            graph.read_itself(variable)
    captures = share_captures(outer, [holds, after])
    most = -1 if limit is None else max(int(limit), 0)
    with awaiting(outer, [holds, after]):
        found = _core.add_while(holds, after, [*flat, *captures], len(flat), most)
    packed: list[Any] = _packed(result, found)
    return packed


def _counted_loop(
    cond: Callable[..., Any], body: Callable[..., Any], values: list[Any], shape_invariants: Any, limit: Any
) -> list[Any]:
    """A loop whose greatest number of iterations is dynamic."""

    def holds(count: Any, *state: Any) -> Any:
        return primitives.LogicalAnd(primitives.Less(count, limit), convert_to_tensor(cond(*state)))

    def step(count: Any, *state: Any) -> list[Any]:
        return [count + 1, *_as_list(body(*state), len(values) == 1)]

    start = zeros_like(limit)
    invariants = None if shape_invariants is None else [start.shape, *shape_invariants]
    return _staged_loop(holds, step, [start, *values], invariants, None)[1:]


def _as_tensor(leaf: Any) -> Any:
    return None if leaf is None else convert_to_tensor(leaf)


def _packed(structure: Any, tensors: Any) -> Any:
    """The structure with these tensors in place of its leaves that are not None."""
    found = iter(tensors)
    leaves = nest.flatten(structure, expand_composites=True)
    return nest.pack_sequence_as(
        structure, [None if x is None else next(found) for x in leaves], expand_composites=True
    )


def _trace_loop(
    outer: Any,
    cond: Callable[..., Any],
    body: Callable[..., Any],
    values: list[Any],
    flat: list[Any],
    shapes: list[Any],
) -> Any:
    """The graphs of the condition and the body, and what the body returned; or shapes that cover more, to try again."""
    specs = [(x.dtype, shape) for x, shape in zip(flat, shapes)]

    def holds(*state: Any) -> Any:
        found = convert_to_tensor(cond(*_packed(values, state)))
        if found.dtype.name != "bool":
            raise TypeError(f"while_loop: cond must return a boolean; got a tensor of dtype {found.dtype.name}")
        return found

    def step(*state: Any) -> Any:
        result = _as_list(body(*_packed(values, state)), len(values) == 1)
        nest.assert_same_structure(values, result, check_types=False)
        tensors = [_as_tensor(x) for x in nest.flatten(result, expand_composites=True)]
        result = nest.pack_sequence_as(result, tensors, expand_composites=True)
        return result, [tensor for tensor in tensors if tensor is not None]

    condition, holding = trace_body(holds, outer, specs)
    condition.set_outputs([holding])
    after, (result, outputs) = trace_body(step, outer, specs)
    if len(outputs) != len(flat):
        raise ValueError("while_loop: None must stay None; a loop variable is None before or after an iteration only")
    wider = [_covering(x, shape, y) for x, shape, y in zip(flat, shapes, outputs)]
    if any(new is not old for new, old in zip(wider, shapes)):
        return wider
    after.set_outputs(outputs)
    return condition, after, result


def _name(tensor: Any) -> str:
    return tensor.name if _core.is_symbolic(tensor) else "Const:0"


def _covering(start: Any, shape: TensorShape, after: Any) -> TensorShape:
    """The shape of a loop variable, or one that also covers what an iteration gives when that is unknown."""
    if after.dtype != start.dtype:
        raise TypeError(
            f"Loop var {_name(start)} enters the loop with type {start.dtype} but has type {after.dtype} after 1 "
            f"iteration. {_name(start)} type should remain constant."
        )
    if not shape.is_compatible_with(after.shape):
        raise ValueError(
            f"Input tensor `{_name(start)}` enters the loop with shape {shape}, but has shape {after.shape} after one "
            "iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )
    if shape.rank is None:
        return shape
    if after.shape.rank is None:
        return TensorShape(None)
    if all(one is None or one == two for one, two in zip(shape.as_list(), after.shape.as_list())):
        return shape
    return TensorShape([one if one == two else None for one, two in zip(shape.as_list(), after.shape.as_list())])


def _loop_shapes(values: list[Any], shape_invariants: Any) -> list[TensorShape]:
    """The shape of each tensor that travels through the loop."""
    shapes: list[TensorShape] = []
    parts = nest.flatten(values)
    given = (
        [None] * len(parts)
        if shape_invariants is None
        else nest_paths.flatten_up_to(values, list(shape_invariants), False)
    )
    for value, invariant in zip(parts, given):
        if value is None:
            continue
        if isinstance(invariant, TypeSpec) and not _same_kind(invariant, value):
            raise TypeError(f"TypeSpec {invariant!r} is not compatible with {value!r}")
        if isinstance(value, TensorArray):
            shapes += value._buffer_shapes()
        elif isinstance(value, CompositeTensor):
            if isinstance(invariant, TensorShape):
                invariant = value._shape_invariant_to_type_spec(invariant)
            spec = invariant if isinstance(invariant, TypeSpec) else value._type_spec
            shapes += [part.shape for part in nest.flatten(spec, expand_composites=True)]
        else:
            shape = value.shape if invariant is None else as_shape(getattr(invariant, "shape", invariant))
            if not _covers(shape, value.shape):
                raise ValueError(
                    f"The shape invariant specified for {_name(value)} is not compatible with the initial shape of the "
                    f"loop variable. It enters the loop with shape {value.shape}, but the specified shape invariant is "
                    f"{shape}."
                )
            shapes.append(shape)
    return shapes


def _same_kind(spec: TypeSpec, value: Any) -> bool:
    """Whether a specification is one of such values, whatever their shape."""
    own = type_spec_from_value(value)
    return type(own) is type(spec) and getattr(own, "dtype", None) == getattr(spec, "dtype", None)


def _covers(shape: TensorShape, narrow: TensorShape) -> bool:
    if shape.rank is None or narrow.rank is None:
        return shape.rank is None
    same_rank = shape.rank == narrow.rank
    return same_rank and all(a is None or a == b for a, b in zip(shape.as_list(), narrow.as_list()))
