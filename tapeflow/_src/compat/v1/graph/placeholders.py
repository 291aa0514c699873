"""Placeholders: tensors of a graph whose values are fed when it runs."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import check_node_name
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int64
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape


def _graph(who: str) -> Any:
    graph = _core.current_graph()
    if graph is None:
        raise RuntimeError(
            f"tf.{who}() is not compatible with eager execution. Build the graph inside "
            "`with tf.Graph().as_default():`, or call tf.compat.v1.disable_eager_execution() when the program starts."
        )
    while not hasattr(graph, "add_placeholder"):
        if graph.outer is None:
            raise RuntimeError(f"tf.{who}() cannot be used in a tf.function: give the function an argument instead.")
        graph = graph.outer
    return graph


@public("compat.v1.placeholder")
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor that has to be fed when the graph runs.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
    >>> x.shape
    TensorShape([None, 2])
    """
    known, graph = TensorShape(None) if shape is None else as_shape(shape), _graph("placeholder")
    check_node_name(graph.scope + (name or "Placeholder"))
    return graph.add_placeholder(as_dtype(dtype).base_dtype, known, name or "Placeholder")


@public("compat.v1.placeholder_with_default")
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor with a value that can be replaced when the graph runs.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     rate = tf.compat.v1.placeholder_with_default(0.1, [])
    ...     session.run(rate), session.run(rate, {rate: 0.5})
    (np.float32(0.1), np.float32(0.5))
    """
    if _core.current_graph() is None:
        return convert_to_tensor(input)
    known = TensorShape(None) if shape is None else as_shape(shape)
    return _graph("placeholder_with_default").add_placeholder_with_default(
        input, known, name or "PlaceholderWithDefault"
    )


@public("compat.v1.sparse_placeholder", "compat.v1.sparse.placeholder")
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor that has to be fed when the graph runs, by a SparseTensorValue or (indices, values, shape).

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.sparse_placeholder(tf.float32).values.dtype
    tf.float32
    """
    graph, base = _graph("sparse_placeholder"), name or "Placeholder"
    known = TensorShape(None)
    if _core.is_tensor(shape):
        rank, size = shape.shape.as_list()[0], cast(shape, int64)
    else:
        if shape is not None:
            sizes = shape.as_list() if isinstance(shape, TensorShape) else shape
            known = TensorShape([None if isinstance(size, int) and size == -1 else size for size in sizes])
        rank = known.rank
        size = None if rank is None else [-1 if d is None else d for d in known.as_list()]
    indices = graph.add_placeholder(int64, TensorShape([None, rank]), f"{base}/indices")
    values = graph.add_placeholder(as_dtype(dtype), TensorShape([None]), f"{base}/values")
    if size is None:
        size = graph.add_placeholder(int64, TensorShape([rank]), f"{base}/shape")
    else:
        size = _core.convert_to_tensor(size, int64, None, "sparse_placeholder")
        size = graph.add_placeholder_with_default(size, TensorShape([rank]), f"{base}/shape")
    made = SparseTensor(indices, values, size)
    made.set_shape(known)
    return made
