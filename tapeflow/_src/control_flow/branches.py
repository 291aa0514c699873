"""Choosing one of several functions: `tf.cond`, `tf.case`, `tf.switch_case`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.joint import Branches, MergeInBranch, joint
from tapeflow._src.control_flow.tracing import FuncGraph, await_outer, awaiting, building_inside, share_captures
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.indexed_slices import IndexedSlices

_EXCLUSIVE = (
    "case: Input error: exclusive=True: more than 1 conditions evaluated as True. "
    "(More than one condition evaluated as True but exclusive=True.)"
)
_NONE_HOLDS = "case: Input error: None of conditions evaluated as True."


def _require_callable(function: Any, what: str) -> None:
    if not callable(function):
        raise TypeError(f"'{what}' must be callable.")


def _is_staged(value: Any) -> bool:
    return _core.is_symbolic(value) or (_core.is_tracing() and isinstance(value, _core.Variable))


# ---- in a graph


def _staged_branches(index: Any, functions: Branches, check: Callable[[Any, Any], None], stand_in: Any) -> Any:
    """The result of the function with this number, all of them traced; the last one if there is none.

    In TensorFlow 1's graphs the tensor `stand_in` is the result of functions that give an operation, or nothing.
    """
    if joint.trace is None:
        return trace_branches(index, functions, check, stand_in)
    try:
        return trace_branches(index, functions, check, stand_in)
    except MergeInBranch:
        return joint.trace(index, functions)


def trace_branches(
    index: Any, functions: Branches, check: Callable[[Any, Any], None] | None = None, stand_in: Any = None
) -> Any:
    """The node that runs one of the functions, in the graph of this thread."""
    check = check or _check_pair
    outer = _core.current_graph()
    traced = _without_effects(_with_equal_index_dtypes([_trace_branch(f, outer, stand_in) for f in functions]))
    if outer.graph_mode and stand_in is not None and all(result is None for _, result, _ in traced):
        traced = [_with_outputs(graph, stand_in) for graph, _, _ in traced]
    graphs = [graph for graph, _, _ in traced]
    _, first, leaves = traced[0]
    for graph, result, other_leaves in traced[1:]:
        if len(graph.outputs) != len(graphs[0].outputs) or other_leaves != leaves:
            check(first, result)
            raise ValueError(
                "Lengths of branch outputs of cond must match.\n"
                f"len(graphs[0].outputs): {len(graphs[0].outputs)}\nlen(graphs[1].outputs): {len(graph.outputs)}"
            )
        check(first, result)
    captures = share_captures(outer, graphs)
    if outer.graph_mode and not any(leaves):  # the caller may run it, or let others wait for it
        with awaiting(outer, graphs):
            return outer.operation_of_call(lambda: _core.add_case(index, graphs, captures))
    with awaiting(outer, graphs):
        found = iter(_core.add_case(index, graphs, captures))
    return nest.pack_sequence_as(first, [next(found) if leaf else None for leaf in leaves], expand_composites=True)


def _trace_branch(function: Callable[[], Any], outer: Any, stand_in: Any) -> tuple[Any, Any, list[bool]]:
    """The graph of a branch, what the function returned with tensors for its leaves, and which leaves are not None."""
    graph = FuncGraph(outer)
    with building_inside(graph):
        result = function()
        graph.gives_variable = isinstance(result, _core.Variable)
        if _is_operation(result):
            result = None
        leaves = nest.flatten(result, expand_composites=True)
        leaves = [stand_in if _is_operation(leaf) else leaf for leaf in leaves]
        tensors = [None if leaf is None else convert_to_tensor(leaf) for leaf in leaves]
        result = nest.pack_sequence_as(result, tensors, expand_composites=True)
    return _with_outputs(graph, result)


def _is_operation(leaf: Any) -> bool:
    """Whether a branch gives an operation of TensorFlow 1's graphs, which has effects and no value."""
    return getattr(type(leaf), "_is_graph_operation", False)


def _with_outputs(graph: Any, result: Any) -> tuple[Any, Any, list[bool]]:
    tensors = nest.flatten(result, expand_composites=True)
    graph.set_outputs([t for t in tensors if t is not None])
    return graph, result, [t is not None for t in tensors]


def _with_equal_index_dtypes(traced: list[tuple[Any, Any, list[bool]]]) -> list[tuple[Any, Any, list[bool]]]:
    """Where branches give IndexedSlices with int32 and with int64 indices, all get int64, as in TensorFlow."""
    results = [nest.flatten(result) for _, result, _ in traced]
    if len({len(leaves) for leaves in results}) != 1:
        return traced
    mixed = [
        place
        for place, leaves in enumerate(zip(*results))
        if all(isinstance(leaf, IndexedSlices) for leaf in leaves)
        and {leaf.indices.dtype.name for leaf in leaves} == {"int32", "int64"}
    ]
    if not mixed:
        return traced
    widened = []
    for (graph, result, _), leaves in zip(traced, results):
        with building_inside(graph):
            for place in mixed:
                slices = leaves[place]
                indices = primitives.Cast(slices.indices, "int64")
                leaves[place] = IndexedSlices(slices.values, indices, slices.dense_shape)
        widened.append(_with_outputs(graph, nest.pack_sequence_as(result, leaves)))
    return widened


def _without_effects(traced: list[tuple[Any, Any, list[bool]]]) -> list[tuple[Any, Any, list[bool]]]:
    """Where one branch gives nothing and another the variable that it has changed, none gives anything."""
    if not any(result is None for _, result, _ in traced):
        return traced
    changed = [_core.is_tensor(result) and getattr(graph, "gives_variable", False) for graph, result, _ in traced]
    return [
        _with_outputs(graph, None) if drop else (graph, result, leaves)
        for drop, (graph, result, leaves) in zip(changed, traced)
    ]


def _check_pair(first: Any, second: Any) -> None:
    """Raises TensorFlow's error if two branches give different kinds of results."""
    problem = ""
    try:
        nest.assert_same_structure(first, second, expand_composites=True)
    except (ValueError, TypeError) as error:
        problem = str(error)
    for one, two in zip(nest.flatten(first, True), nest.flatten(second, True)):
        if not problem and one is not None and two is not None and one.dtype != two.dtype:
            problem = f"{one} and {two} have different types"
    if problem:
        raise TypeError(
            "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure of "
            f"return values.\n\ntrue_fn output:  {first}\nfalse_fn output: {second}\n\nError details:\n{problem}"
        )


# ---- the public functions


@public("cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if the predicate holds, else of `false_fn()`.

    Args:
        pred: A bool scalar.
        true_fn: A function without arguments.
        false_fn: A function without arguments.
        name: A name for the operation in graphs.

    Returns:
        What the branch gives; both give the same structure.

    Gradient:
        That of the branch that ran.

    >>> tf.cond(tf.constant(1.) > 0., lambda: 10, lambda: 20)
    10
    """
    if true_fn is None or false_fn is None:
        raise TypeError(f"cond(): '{'true_fn' if true_fn is None else 'false_fn'}' argument required")
    _require_callable(true_fn, "true_fn")
    _require_callable(false_fn, "false_fn")
    if isinstance(pred, bool) and _core.is_tracing():
        raise TypeError("pred must not be a Python bool", pred)
    if _is_staged(pred):
        condition = _as_condition(pred)
        is_false = primitives.LogicalNot(condition)
        return _staged_branches(is_false, [true_fn, false_fn], _check_pair, condition)
    return true_fn() if bool(pred) else false_fn()


def _as_condition(pred: Any) -> Any:
    tensor = convert_to_tensor(pred)
    if tensor.shape.rank is not None and tensor.shape.num_elements() not in (1, None):
        raise InvalidArgumentError.of(f"cond: pred must be a scalar, but it has shape {tensor.shape}")
    return tensor if tensor.dtype.name == "bool" else primitives.NotEqual(tensor, zeros_like(tensor))


@public("case")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    >>> tf.case([(tf.constant(False), lambda: 1)], default=lambda: 2)
    2
    """
    if not isinstance(pred_fn_pairs, Mapping | Sequence):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}")
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
    pairs = [(p.deref() if hasattr(p, "deref") else p, function) for p, function in pairs]
    for pred, _ in pairs:
        if not _core.is_tensor(pred):
            raise TypeError(f"pred must be a Tensor, got: {pred}")
        if pred.dtype.name != "bool":
            raise TypeError(f"case: pred must be Tensor of type bool; got dtype {pred.dtype.name}")
    for _, function in pairs:
        _require_callable(function, "pred_fn_pairs")
    if default is not None:
        _require_callable(default, "default")
    if any(_is_staged(p) for p, _ in pairs):
        return _staged_case(pairs, default, exclusive)
    conditions = [bool(p) for p, _ in pairs]
    if exclusive and sum(conditions) > 1:
        raise InvalidArgumentError.of("case: Input error: exclusive=True: more than 1 conditions evaluated as True.")
    for holds, (_, function) in zip(conditions, pairs):
        if holds:
            return function()
    if default is None:
        raise InvalidArgumentError.of(_NONE_HOLDS)
    return default()


def _staged_case(pairs: list[Any], default: Callable[[], Any] | None, exclusive: bool) -> Any:
    conditions = primitives.Pack([primitives.Reshape(_as_condition(convert_to_tensor(p)), []) for p, _ in pairs], 0)
    if exclusive:
        count = primitives.Sum(primitives.Cast(conditions, "int32"))
        conditions = _core.required(conditions, primitives.LessEqual(count, 1), _EXCLUSIVE)
    functions = [function for _, function in pairs]
    if default is None:
        conditions = _core.required(conditions, primitives.Any(conditions), _NONE_HOLDS)
        default = functions[-1]
    number, holds = primitives.ArgMax(primitives.Cast(conditions, "int32"), 0), primitives.Any(conditions)
    number = primitives.SelectV2(holds, number, primitives.Cast(len(functions), "int64"))
    return _staged_branches(number, [*functions, default], _check_pair, holds)


@public("switch_case")
def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """The result of the function with number `branch_index`; of `default`, or the last function, if there is none.

    >>> tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20])
    20
    """
    if not _core.is_tensor(branch_index):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype}")
    if branch_index.shape.rank not in (0, None):
        text = f"switch_case: branch_index must be a scalar, but it has shape {branch_index.shape}"
        raise InvalidArgumentError.of(text)
    if not isinstance(branch_fns, Mapping | Sequence):
        raise TypeError(f"'branch_fns' must be a list, tuple, or dict; got {type(branch_fns)}")
    if isinstance(branch_fns, Mapping) or (branch_fns and isinstance(branch_fns[0], tuple)):
        pairs = list(branch_fns.items()) if isinstance(branch_fns, Mapping) else list(branch_fns)
    else:
        pairs = list(enumerate(branch_fns))
    if not pairs:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    for key, _ in pairs:
        if not isinstance(key, int):
            raise TypeError(f"switch_case: key must be a Python `int`, got {type(key)}")
    if sorted(key for key, _ in pairs) != list(range(len(pairs))):
        found = ",".join(str(key) for key, _ in pairs)
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{found}}}"
        )
    function_by_index: dict[int, Any] = dict(pairs)
    for function in function_by_index.values():
        _require_callable(function, "branch_fns")
    last = function_by_index[max(function_by_index)]
    if _is_staged(branch_index):
        places = range(max(function_by_index) + 1)
        functions = [function_by_index.get(place, default or last) for place in places]
        index = convert_to_tensor(branch_index)
        return _staged_branches(index, [*functions, default or last], _check_pair, index)
    return function_by_index.get(int(branch_index), default or last)()


@public("control_dependencies")
@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Operations inside run after `control_inputs`, as they do anyway when run one by one.

    >>> with tf.control_dependencies([tf.constant(1)]):
    ...     x = tf.constant(2)
    >>> x
    <tf.Tensor: shape=(), dtype=int32, numpy=2>
    """
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        with graph.control_dependencies(control_inputs):
            yield
        return
    if callable(control_inputs):
        control_inputs()
    elif graph is not None and control_inputs is not None:
        await_outer(graph, control_inputs)
    yield
