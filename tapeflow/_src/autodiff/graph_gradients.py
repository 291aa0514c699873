"""`tf.gradients`: derivatives between tensors of one graph, as new tensors of the same graph."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.autodiff.composite_gradients import flat_tensors, is_composite, with_tensors
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.enums import UnconnectedGradients
from tapeflow._src.types.indexed_slices import IndexedSlices

_EAGER = """tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.
In place of

    y = f(x)
    dx, = tf.gradients(y, [x])

write

    with tf.GradientTape() as tape:
        tape.watch(x)              # a tf.Variable needs no watch
        y = f(x)
    dx, = tape.gradient(y, [x])

or put both lines into a function with @tf.function."""


class TraceAgain(BaseException):
    """Asks the function that is traced to begin again, with operations on known numbers as nodes of its graph."""


def _require_nodes_from(graph: Any, sources: list[Any]) -> None:
    """Operations on known numbers run while a function is traced, and leave no path back to a source among them."""
    if all(isinstance(x, _core.Variable) or _core.is_symbolic(x) for x in sources):
        return
    while graph is not None and not hasattr(graph, "keeps_constants"):
        graph = graph.outer
    if graph is not None and not graph.keeps_constants:
        raise TraceAgain


_AGGREGATION_METHODS = [0, 1, 2]  # of `tf.AggregationMethod`; all give the same sums


@public("gradients")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivative of the sum of `ys` by each of `xs`, in a graph or inside a `tf.function`.

    `grad_ys` weigh the ys; `stop_gradients` are taken as constants; None stands where there is no path.

    >>> @tf.function
    ... def slope(x):
    ...     return tf.gradients(x ** 3, x)[0]
    >>> slope(tf.constant(2.))
    <tf.Tensor: shape=(), dtype=float32, numpy=12.0>
    """
    graph = _core.current_graph()
    if graph is None:
        raise RuntimeError(_EAGER)
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}") from None
    if aggregation_method not in (None, *_AGGREGATION_METHODS):
        raise ValueError(
            f"Invalid `aggregation_method` specified {aggregation_method}. Accepted values are {_AGGREGATION_METHODS}."
        )
    if any(is_composite(value) and not isinstance(value, IndexedSlices) for value in (*_listed(ys), *_listed(xs))):
        flat = gradients(
            flat_tensors(list(_listed(ys))), flat_tensors(list(_listed(xs))),
            None if grad_ys is None else flat_tensors(list(_listed(grad_ys))),
            name, gate_gradients, aggregation_method, stop_gradients, unconnected_gradients,
        )  # fmt: skip
        return with_tensors(list(_listed(xs)), flat)
    targets = [_tensor(y) for y in _listed(ys)]
    sources = [_source(x) for x in _listed(xs)]
    _require_nodes_from(graph, sources)
    weights = [None] * len(targets) if grad_ys is None else list(_listed(grad_ys))
    if len(weights) != len(targets):
        raise ValueError(f"Length mismatch. Passed {len(weights)} grad_ys for {len(targets)} ys")
    stops = [_tensor(x) for x in _listed(stop_gradients)] if stop_gradients is not None else []
    scope = graph.scope
    if graph.graph_mode:
        graph.enter_name_scope(name)
    try:
        cotangents = [_cotangent(y, weight) for y, weight in zip(targets, weights)]
        found: list[Any] = graph.gradients(targets, cotangents, sources, stops, _overriding_rules(graph))
        if observers.graph_gradients is not None and unconnected is not UnconnectedGradients.ZERO:
            observers.graph_gradients(graph, targets, sources, found)
        elif observers.graph_none is not None and any(dx is None for dx in found):
            observers.graph_none(graph, targets, sources, found)
        if unconnected is UnconnectedGradients.ZERO:
            found = [find_public("zeros_like")(_tensor(x)) if dx is None else dx for x, dx in zip(sources, found)]
    finally:
        graph.scope = scope
    return found


def _overriding_rules(graph: Any) -> list[dict[int, Any]]:
    """The rules that stand in place of the nodes' own: of this graph, then of those around it."""
    rules = []
    while graph is not None:
        rules.append(graph.overriding_rules() if hasattr(graph, "overriding_rules") else {})
        graph = graph.outer
    return rules


def _listed(structure: Any) -> Any:
    return structure if isinstance(structure, list | tuple) else [structure]


def _tensor(x: Any) -> Any:
    if isinstance(x, IndexedSlices):
        return x.values
    return x if isinstance(x, _core.Tensor) else convert_to_tensor(x)


def _source(x: Any) -> Any:
    return x if isinstance(x, _core.Variable) else _tensor(x)


def _cotangent(y: Any, weight: Any) -> Any:
    if weight is None:
        if y.shape.is_fully_defined() or not (y.dtype.is_floating or y.dtype.is_complex):
            return None
        return find_public("ones_like")(y)
    weight = convert_to_tensor(weight, dtype=y.dtype)
    if y.shape.rank == 0 and weight.shape.num_elements() == 1:
        weight = primitives.Reshape(weight, [])
    if not weight.shape.is_compatible_with(y.shape):
        raise ValueError(
            f"gradients: a weight of grad_ys must have the shape of its y; got {weight.shape} and {y.shape}"
        )
    return weight


def graph_hessians(ys: Any, xs: Any, **options: Any) -> list[Any]:
    """The Hessian of the sum of `ys` by each of `xs`, of known shape: one row of nodes for each element."""
    return [_hessian(ys, x, options) for x in _listed(xs)]


def _hessian(ys: Any, x: Any, options: dict[str, Any]) -> Tensor:
    (first,) = gradients(ys, x, **options)
    if first is None:
        raise ValueError(f"hessians: there is no path from {x} to the ys")
    first, shape = convert_to_tensor(first), x.shape
    if not shape.is_fully_defined():
        raise ValueError(f"hessians: the shape of each x must be known; got {shape}")
    flat = primitives.Reshape(first, [-1])
    rows = []
    for i in range(shape.num_elements()):
        (row,) = gradients(flat[i], x, unconnected_gradients=UnconnectedGradients.ZERO, **options)
        rows.append(convert_to_tensor(row))
    return primitives.Reshape(primitives.Pack(rows, 0), [*shape, *shape])
