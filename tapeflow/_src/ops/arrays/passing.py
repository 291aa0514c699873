"""Operations that pass tensors through: identities, groups, and the order of effects."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.indexing import boolean_mask as boolean_mask
from tapeflow._src.ops.arrays.indexing import gather as gather
from tapeflow._src.ops.arrays.indexing import where as where
from tapeflow._src.types.indexed_slices import IndexedSlices


@public("identity_n")
def identity_n(input: Any, name: str | None = None) -> list[Any]:
    """Tensors with the same elements, one for each.

    >>> tf.identity_n([[1], [2, 3]])
    [<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>, <tf.Tensor: shape=(2,), dtype=int32,
     numpy=array([2, 3], dtype=int32)>]
    """
    return [primitives.Identity(x) for x in input]


@public("guarantee_const")
def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The same tensor, promised to be constant; no gradient flows.

    >>> tf.guarantee_const([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    return primitives.StopGradient(input)


@public("tuple")
def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """The tensors, None left as it is, once all are computed.

    >>> tf.tuple([[1.], None])
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>, None]
    """
    if all(x is None for x in tensors):
        raise ValueError(f"`tensors` must have at least one Tensor. Received: {tensors}.")
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        gate = graph.add_group([*tensors, *(control_inputs or ())], f"{name or 'tuple'}/group_deps")
        with graph.control_dependencies([gate]):
            return [_identity(x) for x in tensors]
    return [x if x is None or isinstance(x, IndexedSlices) else primitives.Identity(x) for x in tensors]


def after(operation: Any, x: Any) -> Any:
    """The same tensor; in a graph of TensorFlow 1 it waits for an operation, such as an assertion."""
    graph = _core.current_graph()
    if operation is None or graph is None or not graph.graph_mode:
        return x
    with graph.control_dependencies([operation]):
        return primitives.Identity(x)


def _identity(x: Any) -> Any:
    if isinstance(x, IndexedSlices):
        return IndexedSlices(primitives.Identity(x.values), x.indices, x.dense_shape)
    return None if x is None else primitives.Identity(x)


@public("group")
def group(*inputs: Any, **kwargs: Any) -> Any:
    """Nothing, once all `inputs` are computed; in a graph, the operation that waits for them.

    >>> tf.group([1., 2.])
    """
    unknown = [key for key in kwargs if key != "name"]
    if unknown:
        raise ValueError(f"Unknown keyword arguments: {unknown}")
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        return graph.add_group(list(inputs), kwargs.get("name") or "group_deps")
    return None


@public("no_op")
def no_op(name: str | None = None) -> Any:
    """Does nothing; in a graph, the operation that does nothing.

    >>> tf.no_op()
    """
    graph = _core.current_graph()
    return graph.add_group([], name or "NoOp") if graph is not None and graph.graph_mode else None


@public("parallel_stack")
def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Equally shaped tensors stacked along a new first dimension.

    >>> tf.parallel_stack([[1], [2]])
    <tf.Tensor: shape=(2, 1), dtype=int32, numpy=
    array([[1],
           [2]], dtype=int32)>
    """
    return primitives.Pack(values, 0)
