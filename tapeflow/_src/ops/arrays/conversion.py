"""Making tensors from Python values, and changing their element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype, string
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import Dimension, TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor


@public("convert_to_tensor")
def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    """The given value as a tensor: numbers, nested lists, NumPy arrays, variables.

    Args:
        value: A tensor, variable, NumPy array, number, string, or nested lists of them.
        dtype: The dtype; it follows from `value` if None.
        dtype_hint: A dtype to prefer where `dtype` is None and `value` leaves the choice.
        name: A name for the operation in graphs.

    Returns:
        A tensor; `value` itself if it is one.

    Gradient:
        `dx = dy`.

    >>> tf.convert_to_tensor([1, 2], dtype=tf.float32)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    return _core.convert_to_tensor(value, dtype, dtype_hint, "convert_to_tensor")


@public("constant", node="Const")
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor with the given elements; with `shape`, one element may fill it all.

    Args:
        value: A number, a string, a NumPy array or nested lists of them.
        dtype: The dtype; it follows from `value` if None.
        shape: The shape; a single value fills it.
        name: A name for the operation in graphs.

    Returns:
        A tensor.

    Gradient:
        None: a constant depends on nothing.

    >>> tf.constant(0., shape=[2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    held = getattr(value, "handle", value)
    if (isinstance(held, _core.Variable) or (shape is not None and _core.is_tensor(held))) and not _core.is_tracing():
        value = held.numpy()  # as in TensorFlow: no gradient passes
    if _core.is_tensor(value) and dtype is not None and as_dtype(dtype) != value.dtype:
        value = cast(value, dtype)
    tensor = _core.convert_to_tensor(value, dtype, None, "constant")
    if shape is None:
        return tensor
    size, wanted = int(np.prod(tensor.shape.as_list(), dtype=np.int64)), TensorShape(shape).num_elements()
    if size == wanted:
        return primitives.Reshape(tensor, TensorShape(shape).as_list())
    if size == 1:
        return primitives.BroadcastTo(primitives.Reshape(tensor, []), TensorShape(shape).as_list())
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        raise TypeError(f"constant: Expected Tensor's shape: {TensorShape(shape)}, but got {tensor.shape}.")
    raise TypeError(
        f"constant: Eager execution of tf.constant with unsupported shape. Tensor {value!r} (converted from it) has "
        f"{size} elements, but got `shape` {TensorShape(shape)} with {wanted} elements)."
    )


@public("cast", "dtypes.cast", node=primitives.Cast)
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The elements as another type; floats are truncated to integers. Gradients pass between float types.

    Args:
        x: The tensor, or a sparse or ragged one.
        dtype: The dtype of the result.
        name: A name for the operation in graphs.

    Returns:
        A tensor of dtype `dtype`; `x` itself if it has that dtype.

    Gradient:
        `dx = dy`, cast back, between floating and complex dtypes; None otherwise.

    >>> tf.cast([1.7, -1.2], tf.int32)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, -1], dtype=int32)>
    """
    wanted = as_dtype(dtype).base_dtype
    if type(x) is _core.Tensor:
        return x if x.dtype is wanted else primitives.Cast(x, wanted)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted), x.indices, x.dense_shape)
    if not _core.is_tensor(x):
        if hasattr(x, "with_flat_values"):
            return x.with_flat_values(cast(x.flat_values, wanted))
        if isinstance(x, SparseTensor):
            return x.with_values(cast(x.values, wanted))
        x = convert_to_tensor(x)
    elif isinstance(x, _core.Variable):
        x = x.read_value()
    if x.dtype == wanted:
        return x
    if x.dtype == string:
        name_of_wanted = {"float32": "float", "float64": "double"}.get(wanted.name, wanted.name)
        raise UnimplementedError.of(f"cast: Cast string to {name_of_wanted} is not supported")
    return primitives.Cast(x, wanted)


@public("saturate_cast", "dtypes.saturate_cast")
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """The elements as another type; what does not fit becomes the nearest number that does.

    >>> tf.saturate_cast([-5., 300.], tf.uint8)
    <tf.Tensor: shape=(2,), dtype=uint8, numpy=array([  0, 255], dtype=uint8)>
    """
    x, wanted = convert_to_tensor(value), as_dtype(dtype).base_dtype
    if x.dtype.is_complex:
        if wanted.is_complex:
            part = wanted.real_dtype
            return primitives.Complex(
                cast(saturate_cast(primitives.Real(x), part), part), cast(saturate_cast(primitives.Imag(x), part), part)
            )
        x = primitives.Real(x)
    if wanted.is_complex:
        return cast(saturate_cast(x, wanted.real_dtype), wanted)
    if wanted.is_bool or x.dtype.is_bool or (x.dtype == wanted and not wanted.is_floating):
        return cast(x, wanted)
    lowest, highest = max(x.dtype.min, wanted.min), min(x.dtype.max, wanted.max)
    if x.dtype.is_floating:
        # The limits as numbers of x's own type, rounded towards zero, so that the conversion cannot overflow.
        limits = np.asarray([lowest, highest]).astype(x.dtype.as_numpy_dtype)
        inward = np.nextafter(limits.astype(np.float64).astype(np.float32 if x.dtype.size < 4 else limits.dtype), 0)
        wide = [float(v) for v in limits]
        lowest = wide[0] if wide[0] >= wanted.min else float(inward[0])
        highest = wide[1] if wide[1] <= wanted.max else float(inward[1])
    low, high = (_core.convert_to_tensor(v, x.dtype, None, "saturate_cast") for v in (lowest, highest))
    return cast(primitives.Minimum(primitives.Maximum(x, low), high), wanted)


@public("is_tensor")
def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable, or built of tensors (`tf.IndexedSlices`).

    Args:
        x: Any object.

    Returns:
        A bool.

    >>> tf.is_tensor(tf.constant(1)), tf.is_tensor(1)
    (True, False)
    """
    return _core.is_tensor(x) or getattr(x, "is_tensor_like", isinstance(x, CompositeTensor)) is True


@public("get_static_value")
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The elements as a NumPy array, if they are known; what is no tensor is known as it is.

    >>> tf.get_static_value(tf.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    if not _core.is_symbolic(tensor):
        if isinstance(tensor, _core.Tensor):
            return tensor.numpy()
        return None if is_tensor(tensor) else tensor
    constant = _core.constant_of(tensor)
    if constant is not None:
        return np.asarray(constant.numpy())
    known = _core.known_elements(tensor) if tensor.dtype.is_integer else None
    if known is None or (None in known and not partial):
        folded = _core.known_value(tensor)
        return None if folded is None else np.asarray(folded.numpy())
    return np.array(known, object if None in known else tensor.dtype.as_numpy_dtype).reshape(tensor.shape.as_list())


@public("is_symbolic_tensor")
def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether `tensor` is symbolic: its value is computed when the graph runs.

    >>> tf.is_symbolic_tensor(tf.constant(1))
    False
    """
    return _core.is_symbolic(tensor)


@public("executing_eagerly")
def executing_eagerly() -> bool:
    """Whether operations run as they are called.

    Returns:
        A bool.

    >>> tf.executing_eagerly()
    True
    """
    return not _core.is_tracing()


def padding_value_of(value: Any, dtype: Any) -> Any:
    """What stands in places that nothing fills: also the default 0 of booleans."""
    if _core.is_tensor(value):
        return value
    if dtype == string and isinstance(value, int) and value == 0:
        value = ""
    return cast(value, dtype) if isinstance(value, int) and dtype.is_bool else convert_to_tensor(value, dtype=dtype)


def densify(slices: IndexedSlices) -> Any:
    """The dense tensor that an IndexedSlices stands for; repeated rows add up."""
    if slices.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices for argument without `dense_shape`: {slices!r}"
        )
    rows = slices.dense_shape[0]
    if not _core.is_symbolic(rows):
        rows = int(rows)
    return primitives.UnsortedSegmentSum(slices.values, slices.indices, rows)


def convert_other(value: Any, dtype: Any) -> Any:
    """What the core asks about objects it does not know."""
    if isinstance(value, IndexedSlices):
        return densify(value)
    if isinstance(value, TensorShape):
        if not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
        dims = value.as_list()
        large = any(d > np.iinfo(np.int32).max for d in dims)
        return _core.convert_to_tensor(dims, dtype or ("int64" if large else "int32"), None, "convert_to_tensor")
    if isinstance(value, Dimension):
        return _core.convert_to_tensor(value.value, dtype, None, "convert_to_tensor")
    return NotImplemented


_core.register_objects({"convert_other": convert_other})
