"""`tf.SparseTensor`, a tensor of which only some elements are stored, and its spec; it computes nothing."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype, float32, int64
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import ShapedSpec, TensorSpec, ValuesTensor

SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])
SparseTensorValue.__doc__ = """The parts of a sparse tensor as arrays, as `Session.run` gives them in TensorFlow 1.

>>> tf.compat.v1.SparseTensorValue(indices=[[0]], values=[1.0], dense_shape=[2]).values
[1.0]
"""
public("compat.v1.SparseTensorValue")(SparseTensorValue)


_KEEPS_ZEROS = frozenset({"abs", "erf", "identity", "negative", "sign", "sqrt", "square", "tanh"})


_product_by_name: dict[str, Callable[[SparseTensor, Any], SparseTensor]] = {}


def define_products(**function_by_name: Callable[[SparseTensor, Any], SparseTensor]) -> None:
    """Registers the functions behind `*` and `/`, which are operations."""
    _product_by_name.update(function_by_name)


def _named_node(tensor: Tensor) -> Tensor:
    """In a graph of TensorFlow 1 a node, by which gradients are taken and which a session feeds."""
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode or not graph.names_nodes or _core.is_symbolic(tensor):
        return tensor
    node: Tensor = graph.add_constant(tensor, "SparseTensor/values")
    return node


@public("SparseTensor", "sparse.SparseTensor", "compat.v1.SparseTensor")
class SparseTensor(ValuesTensor):
    """Elements `values[i]` at the positions `indices[i]` of a tensor of shape `dense_shape`; all others are zero.

    `indices` has the shape [n, rank], `values` [n] and `dense_shape` [rank].

    >>> tf.SparseTensor([[0, 1]], [5.], [2, 2]).values
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = _core.convert_to_tensor(indices, int64, None, "SparseTensor")
        self._values = _named_node(_core.convert_to_tensor(values, None, None, "SparseTensor"))
        self._dense_shape = _core.convert_to_tensor(dense_shape, int64, None, "SparseTensor")
        self._static_shape = TensorShape(None)
        positions, elements, sizes = self._indices.shape, self._values.shape, self._dense_shape.shape
        if positions.rank not in (2, None) or elements.rank not in (1, None) or sizes.rank not in (1, None):
            wrong = "Shape must be rank 1 but is rank 2: " if positions.rank in (2, None) else ""
            raise ValueError(
                f"SparseTensor: {wrong}indices must have rank 2, values rank 1 and dense_shape rank 1; got shapes "
                f"{positions}, {elements} and {sizes}"
            )
        if positions.rank is None:
            return
        if not positions[:1].is_compatible_with(elements):
            raise ValueError(
                f"Dimensions {positions[0]} and {elements[0]} are not compatible: Number of elements of indices "
                "and values do not match"
            )
        if not positions[1:].is_compatible_with(sizes):
            raise ValueError(
                f"Dimensions {positions[1]} and {sizes[0]} are not compatible: Index rank {positions[1]} and shape "
                f"rank {sizes[0]} do not match"
            )

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor from a SparseTensor or a tuple of NumPy arrays."""
        if not isinstance(sparse_tensor_value, SparseTensor | SparseTensorValue):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor SparseTensorValue."
            )
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    @property
    def indices(self) -> Tensor:
        """The positions of the elements, int64 of shape [n, rank]."""
        return self._indices

    @property
    def values(self) -> Any:
        """The elements, of shape [n]."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the tensor, as an int64 tensor."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        if _core.is_symbolic(self._dense_shape):
            rank = self._dense_shape.shape[0]
            known = None if rank is None else _core.known_elements(self._dense_shape) or [None] * rank
            known = known and [None if size == -1 else size for size in known]  # -1 stands for an unknown size
            return TensorShape(known).merge_with(self._static_shape)
        sizes = self._dense_shape.numpy().tolist()
        return TensorShape([None if size == -1 else size for size in sizes])

    def get_shape(self) -> TensorShape:
        """The shape of the tensor."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Says what is known of the shape, which must be compatible with it."""
        if not self.shape.is_compatible_with(as_shape(shape)):
            raise ValueError(f"Shapes {self.shape} and {as_shape(shape)} are incompatible")
        self._static_shape = self.shape.merge_with(as_shape(shape))

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same positions with other elements.

        >>> tf.SparseTensor([[0, 1]], [5.], [2, 2]).with_values([7.]).values
        <tf.Tensor: shape=(1,), dtype=float32, numpy=array([7.], dtype=float32)>
        """
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The parts as arrays, computed in the session or in the default one."""
        parts = (self._values, self._indices, self._dense_shape)
        of_graph = next((part for part in parts if _core.is_symbolic(part)), self._values)  # others are constants
        session = session or of_graph.graph.default_session()
        if session is None:
            return of_graph.eval(feed_dict)  # says that there is no session
        return session.run(self, feed_dict)

    def _numpy(self) -> SparseTensorValue:
        return SparseTensorValue(self._indices.numpy(), self._values.numpy(), self._dense_shape.numpy())

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def _shape_invariant_to_type_spec(self, shape: Any) -> SparseTensorSpec:
        return SparseTensorSpec(shape, self.dtype)

    def __str__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"

    __repr__ = __str__

    def __mul__(self, other: Any) -> SparseTensor:
        return _product_by_name["multiply"](self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return _product_by_name["divide"](self, other)

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation that keeps zeros on the stored elements."""
        if getattr(function, "__name__", "") not in _KEEPS_ZEROS or args[:1] != (self,):
            return super().__tf_operation__(function, args, kwargs)
        return self.with_values(function(self._values, *args[1:], **kwargs))


@public("SparseTensorSpec")
class SparseTensorSpec(ShapedSpec):
    """The spec of a `tf.SparseTensor`.

    >>> tf.SparseTensorSpec([2, None])
    SparseTensorSpec(TensorShape([2, None]), tf.float32)
    """

    value_type = SparseTensor

    def __init__(self, shape: Any = None, dtype: Any = float32) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a sparse tensor, or of one that a session gave.

        >>> tf.SparseTensorSpec.from_value(tf.sparse.eye(2))
        SparseTensorSpec(TensorShape([2, 2]), tf.float32)
        """
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        of_session = isinstance(value, tuple) and hasattr(value, "dense_shape")
        if not of_session:
            raise TypeError(f"Expected SparseTensor or SparseTensorValue. Received: {value} of type {type(value)}.")
        return cls([int(n) for n in value.dense_shape], value.values.dtype)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        rank = self._shape.rank
        return TensorSpec([None, rank], int64), TensorSpec([None], self._dtype), TensorSpec([rank], int64)

    def _to_components(self, value: SparseTensor) -> tuple[Any, ...]:
        return value.indices, value.values, value.dense_shape

    def _from_components(self, components: Any) -> SparseTensor:
        value = SparseTensor(*components)
        if _core.is_symbolic(components[2]):
            value.set_shape(self._shape)
        return value
