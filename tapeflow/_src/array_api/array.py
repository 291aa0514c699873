"""The array object of the standard: a tensor with the standard's operators.

An array holds a tensor and can be given wherever a tensor can, to a tape as well. Assignments to its elements put
another tensor into its place, so they are recorded like everything else.
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.dtypes import DEFAULT_INT, default_dtype, dtype_beside, is_scalar, promoted
from tapeflow._src.numpy.indexing import needs_numpy_rules, take_like_numpy
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
DEVICE = "cpu"


def tensor_of(value: Any, dtype: Any = None) -> Any:
    """The tensor of an array, a tensor, a variable, or a Python number."""
    if isinstance(value, Array):
        value = value._tensor
    tensor = tf.convert_to_tensor(value) if dtype is None or not is_scalar(value) else _scalar(value, dtype)
    return tensor if dtype is None else tf.cast(tensor, dtype)


def _scalar(value: Any, dtype: Any) -> Any:
    if isinstance(value, builtins.int) and not isinstance(value, builtins.bool) and dtype.is_integer:
        info = np.iinfo(dtype.as_numpy_dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"array_api: {value} does not fit {dtype.name}")
    return tf.constant(np.asarray(value, dtype.as_numpy_dtype))


def dtype_of(value: Any) -> Any:
    """The dtype of an array or of a Python number."""
    return default_dtype(value) if is_scalar(value) else tensor_of(value).dtype


def in_common(*values: Any) -> list[Any]:
    """The tensors of arrays and Python numbers, in the dtype that they have in common."""
    tensors = {i: tensor_of(v) for i, v in enumerate(values) if not is_scalar(v)}
    if not tensors:
        raise TypeError("array_api: at least one of the arguments must be an array")
    dtype, *others = [tensor.dtype for tensor in tensors.values()]
    for other in others:
        dtype = promoted(dtype, other)
    for value in values:
        if is_scalar(value):
            dtype = dtype_beside(dtype, value)
    return [tf.cast(tensors[i], dtype) if i in tensors else _scalar(v, dtype) for i, v in enumerate(values)]


class ArraySpec(TypeSpec):
    """The specification of an array: that of its tensor."""

    def __init__(self, spec: TensorSpec) -> None:
        self._spec = spec

    value_type = property(lambda self: Array)
    shape = property(lambda self: self._spec.shape)
    dtype = property(lambda self: self._spec.dtype)
    _component_specs = property(lambda self: (self._spec,))

    def _serialize(self) -> tuple[Any, ...]:
        return (self._spec,)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        return (value._tensor,)

    def _from_components(self, components: Any) -> Array:
        return Array(components[0])


class ArrayGradient:
    """What a tape differentiates by where it is given an array: its tensor."""

    def get_gradient_components(self, value: Array) -> Any:
        """The tensor of an array."""
        return value._tensor

    def replace_gradient_components(self, value: Array, component_grads: Any) -> Array:
        """The array of a gradient."""
        return Array(component_grads)


def _is_operand(value: Any) -> builtins.bool:
    return is_scalar(value) or isinstance(value, Array | tf.Tensor | tf.Variable)


def _operator(name: str) -> tuple[Any, Any, Any]:
    """The methods of an operator: plain, reflected, in place. `name` is the function of the standard."""

    def plain(self: Any, other: Any, /) -> Any:
        return getattr(namespace(), name)(self, other) if _is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any, /) -> Any:
        return getattr(namespace(), name)(other, self) if _is_operand(other) else NotImplemented

    def in_place(self: Any, other: Any, /) -> Any:
        return self._set(plain(self, other))

    return plain, reflected, in_place


def _comparison(name: str) -> Any:
    return _operator(name)[0]


def _unary(name: str) -> Any:
    return lambda self: getattr(namespace(), name)(self)


class Array(CompositeTensor):
    """An array of the array API standard, on the tensor `tensor`.

    >>> import tapeflow.array_api as xp
    >>> x = xp.asarray([1.0, 2.0])
    >>> x[0] = 5.0
    >>> x + 1
    array([6., 3.], dtype=float32)
    """

    __array_priority__ = 100
    __composite_gradient__ = ArrayGradient()

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    _type_spec = property(lambda self: ArraySpec(TensorSpec(self._tensor.shape, self._tensor.dtype)))

    # ---- attributes

    dtype = property(lambda self: self._tensor.dtype, doc="The dtype of the elements.")
    device = property(lambda self: DEVICE, doc="The device of the memory: the processor.")
    ndim = property(lambda self: len(self.shape), doc="The number of dimensions.")

    @property
    def shape(self) -> tuple[builtins.int, ...]:
        """The sizes of the dimensions."""
        return tuple(self._tensor.shape.as_list())

    @property
    def size(self) -> builtins.int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Array:  # noqa: N802
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"array_api: x.T needs two dimensions; got {self.ndim}. x.mT transposes the last two.")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802
        """The array with its last two dimensions exchanged."""
        if self.ndim < 2:
            raise ValueError(f"array_api: x.mT needs at least two dimensions; got {self.ndim}")
        return Array(tf.linalg.matrix_transpose(self._tensor))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return namespace(api_version)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array; there is one device."""
        check_device(device)
        if stream is not None:
            raise ValueError("array_api: a processor has no streams")
        return self

    # ---- conversions

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return tf.convert_to_tensor(self._tensor, dtype)

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray:
        value = np.asarray(self._tensor.numpy())
        return value if dtype is None else value.astype(dtype)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: builtins.bool | None = None
    ) -> Any:
        value = np.asarray(self._tensor.numpy())
        return value.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        return (1, 0)

    def _only_element(self, kind: str) -> Any:
        if self.ndim:
            raise TypeError(f"array_api: only an array without dimensions can be a {kind}; got shape {self.shape}")
        return self._tensor.numpy()

    def __bool__(self) -> builtins.bool:
        return builtins.bool(self._only_element("bool"))

    def __int__(self) -> builtins.int:
        return builtins.int(self._only_element("int"))

    def __float__(self) -> builtins.float:
        if self.dtype.is_complex:
            raise TypeError("array_api: a complex array cannot be a float")
        return builtins.float(self._only_element("float"))

    def __complex__(self) -> builtins.complex:
        return builtins.complex(self._only_element("complex"))

    def __index__(self) -> builtins.int:
        if not self.dtype.is_integer:
            raise TypeError(f"array_api: only an integer array can be an index; got {self.dtype.name}")
        return builtins.int(self._only_element("index"))

    def __len__(self) -> builtins.int:
        if not self.ndim:
            raise TypeError("array_api: an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if tf.is_symbolic_tensor(self._tensor):
            return f"Array({self._tensor!r})"
        return repr(np.asarray(self._tensor.numpy()))

    __hash__ = None  # type: ignore[assignment]

    # ---- operators

    __add__, __radd__, __iadd__ = _operator("add")
    __sub__, __rsub__, __isub__ = _operator("subtract")
    __mul__, __rmul__, __imul__ = _operator("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operator("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operator("floor_divide")
    __mod__, __rmod__, __imod__ = _operator("remainder")
    __pow__, __rpow__, __ipow__ = _operator("pow")
    __matmul__, __rmatmul__, __imatmul__ = _operator("matmul")
    __and__, __rand__, __iand__ = _operator("bitwise_and")
    __or__, __ror__, __ior__ = _operator("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operator("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operator("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _operator("bitwise_right_shift")
    __lt__, __le__ = _comparison("less"), _comparison("less_equal")
    __gt__, __ge__ = _comparison("greater"), _comparison("greater_equal")
    __eq__, __ne__ = _comparison("equal"), _comparison("not_equal")
    __abs__, __neg__ = _unary("abs"), _unary("negative")
    __pos__, __invert__ = _unary("positive"), _unary("bitwise_invert")

    # ---- elements

    def _key(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        if taken > self.ndim and not builtins.any(_is_mask(part) for part in parts):
            raise IndexError(f"array_api: {taken} indices for an array with {self.ndim} dimensions")
        axis, found = 0, []
        for number, part in enumerate(parts):
            if part is Ellipsis:
                axis = self.ndim - sum(rest is not None for rest in parts[number + 1 :])
            elif part is not None:
                part = self._checked(part, axis)
                axis += len(part.shape) if _is_mask(part) else 1
            found.append(part)
        return tuple(found)

    def _checked(self, part: Any, axis: builtins.int) -> Any:
        """A part of a key, of which integers lie inside of the dimension."""
        if isinstance(part, slice):
            ends = (None if end is None else end.__index__() for end in (part.start, part.stop, part.step))
            return slice(*slice(*ends).indices(self.shape[axis])) if _whole(part) else _bounded(part, self.shape[axis])
        if isinstance(part, builtins.bool | np.bool_):
            raise IndexError("array_api: a Python bool is not an index; use an array")
        if isinstance(part, Array | tf.Tensor | tf.Variable | np.ndarray | list):
            return tensor_of(part)
        place = part.__index__()
        if not -self.shape[axis] <= place < self.shape[axis]:
            raise IndexError(f"array_api: index {place} is out of bounds for dimension {axis} of {self.shape[axis]}")
        return place

    def __getitem__(self, key: Any, /) -> Array:
        found = self._key(key)
        if len(found) == 1 and _is_mask(found[0]) and found[0].shape.rank == 0:
            return Array(tf.boolean_mask(self._tensor[None], found[0][None]))
        return Array(take_like_numpy(self._tensor, found) if needs_numpy_rules(found) else self._tensor[found])

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if not is_scalar(value) and promoted(self.dtype, dtype_of(value)) != self.dtype:
            raise TypeError(f"array_api: elements of {self.dtype.name} cannot be set to {dtype_of(value).name}")
        if is_scalar(value) and dtype_beside(self.dtype, value) != self.dtype:
            raise TypeError(f"array_api: elements of {self.dtype.name} cannot be set to {value!r}")
        places = Array(tf.reshape(tf.range(self.size, dtype=tf.int64), self.shape))[key]
        values = tf.broadcast_to(tensor_of(value, self.dtype), places.shape)
        flat = tf.reshape(self._tensor, [-1])
        flat = tf.tensor_scatter_nd_update(flat, tf.reshape(places._tensor, [-1, 1]), tf.reshape(values, [-1]))
        self._tensor = tf.reshape(flat, self.shape)

    def _set(self, result: Any) -> Any:
        """An assignment such as `x += y`: neither dtype nor shape may change."""
        if result is NotImplemented:
            return result
        if result.shape != self.shape or result.dtype != self.dtype:
            raise TypeError(
                f"array_api: an operation in place must keep {self.dtype.name}{list(self.shape)}; "
                f"got {result.dtype.name}{list(result.shape)}"
            )
        self._tensor = result._tensor
        return self


def _is_mask(part: Any) -> builtins.bool:
    return isinstance(part, Array | tf.Tensor | np.ndarray) and part.dtype in (tf.bool, np.bool_)


def _whole(part: slice) -> builtins.bool:
    return part.step is None or part.step > 0


def _bounded(part: slice, size: builtins.int) -> slice:
    """A slice that goes backwards; its end before the first element is None."""
    start, stop, step = part.indices(size)
    return slice(start, None if stop < 0 else stop, step) if start >= 0 else slice(0, 0, 1)


def check_device(device: Any) -> None:
    """Raises unless a device is the processor."""
    if device not in (None, DEVICE) and "CPU" not in str(device):
        raise ValueError(f"array_api: the only device is {DEVICE!r}; got {device!r}")


def namespace(api_version: str | None = None) -> Any:
    """The module with the standard's functions."""
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"array_api: versions {', '.join(VERSIONS)} exist; got {api_version!r}")
    return sys.modules["tapeflow.array_api"]


def index_array(tensor: Any) -> Array:
    """An array of positions, which has the dtype of integers."""
    return Array(tf.cast(tensor, DEFAULT_INT))
