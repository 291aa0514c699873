"""`tf.TensorArray`: a list of tensors that a loop fills, with gradients.

The elements are a Python list as long as all positions are known. In a graph whose positions or length are known only
when it runs, they are the rows of one symbolic tensor, the buffer.
"""

from __future__ import annotations

from typing import Any

from tapeflow import _core, primitives
from tapeflow.namespace import public
from tapeflow.ops.constants import zeros, zeros_like
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types.dtypes import as_dtype, int32
from tapeflow.types.errors import InvalidArgumentError, OutOfRangeError
from tapeflow.types.tensor_shape import TensorShape, as_shape
from tapeflow.types.tensor_spec import TensorSpec, TypeSpec


@public("TensorArraySpec")
class TensorArraySpec(TypeSpec):
    """The kind of a `tf.TensorArray`: the shape and dtype of its elements, and whether it grows.

    >>> tf.TensorArraySpec([2], tf.float32).dtype.name
    'float32'
    """

    def __init__(
        self, element_shape: Any = None, dtype: Any = "float32", dynamic_size: bool = False, infer_shape: bool = True
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self.dtype = as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape
        self._length: int | None = None

    value_type = property(lambda self: TensorArray)
    shape = property(lambda self: TensorShape([None]).concatenate(self._element_shape))
    _component_specs = property(lambda self: [TensorSpec(None, self.dtype)])

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """The kind of an array."""
        spec = cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)
        spec._length = value._known_length()
        return spec

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self.dtype, self._dynamic_size, self._infer_shape

    def _to_components(self, value: TensorArray) -> list[Any]:
        return [value._as_buffer()]

    def _from_components(self, components: Any) -> TensorArray:
        array = TensorArray(
            self.dtype, 0, self._dynamic_size, infer_shape=self._infer_shape, element_shape=self._element_shape
        )
        (buffer,) = components
        if _core.is_symbolic(buffer) or not isinstance(buffer, _core.Tensor):
            array._buffer, array._length = buffer, self._length
        elif buffer.shape.rank == 2 and buffer.shape[1] == 0:
            array._tensors = [None] * buffer.shape[0]
        else:
            array._tensors = list(primitives.Unpack(buffer, -1, 0))
        return array


@public("TensorArray")
class TensorArray:
    """A list of tensors of one dtype. Writing gives the array itself, so that TensorFlow's `ta = ta.write(...)` works.

    >>> array = tf.TensorArray(tf.float32, size=2)
    >>> array = array.write(0, 1.).write(1, 2.)
    >>> array.stack()
    [1., 2.]
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self._dtype = as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = True if clear_after_read is None else bool(clear_after_read)
        self._infer_shape = infer_shape
        self._element_shape = TensorShape(None) if element_shape is None else as_shape(element_shape)
        self._tensors: list[Any] = []
        self._cleared: set[int] = set()
        self._buffer: Any = None
        self._length: int | None = None  # of the buffer, if it is known and stays
        if isinstance(size, _core.Variable):
            size = convert_to_tensor(size)
        if _core.is_symbolic(size):
            sizes = self._element_shape.as_list() if self._element_shape.is_fully_defined() else [0]
            self._buffer = zeros([size, *sizes], self._dtype)
        else:
            self._tensors = [None] * int(0 if size is None else size)

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic_size)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: convert_to_tensor(0.0))
    handle = property(lambda self: None)

    _type_spec = property(TensorArraySpec.from_value)

    # ---- in a graph

    def _as_buffer(self) -> Any:
        """The elements as the rows of one tensor; empty rows if nothing is known of them."""
        if self._buffer is not None:
            return self._buffer
        written = next((t for t in self._tensors if t is not None), None)
        if written is not None:
            blank = zeros_like(written) if None in [t if t is None else 0 for t in self._tensors] else None
            return primitives.Pack([blank if t is None else t for t in self._tensors], 0)
        known = self._element_shape.is_fully_defined()
        return zeros([len(self._tensors), *(self._element_shape.as_list() if known else [0])], self._dtype)

    def buffer_shape(self) -> TensorShape:
        """The shape that the buffer keeps while a loop writes to it."""
        if not self._element_shape.is_fully_defined():
            return TensorShape(None)
        first = None if self._dynamic_size or self._buffer is not None else len(self._tensors)
        return TensorShape([first, *self._element_shape.as_list()])

    def _with_buffer(self, buffer: Any) -> TensorArray:
        array = TensorArray(
            self._dtype, 0, self._dynamic_size, infer_shape=self._infer_shape, element_shape=self._element_shape
        )
        array._buffer = buffer
        array._length = None if self._dynamic_size else self._known_length()
        return array

    def _known_length(self) -> int | None:
        return len(self._tensors) if self._buffer is None else self._length

    def _waits_for(self, index: Any) -> bool:
        return self._buffer is not None or _core.is_symbolic(index)

    def _own(self) -> TensorArray:
        """What a write changes: the array itself, or, while tracing, a copy, since a branch may be one of several."""
        if not _core.is_tracing():
            return self
        array = self._with_buffer(None)
        array._tensors = list(self._tensors)
        return array

    # ---- elements

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
        if self._buffer is not None:
            return primitives.Shape(self._buffer, int32)[0]
        return convert_to_tensor(len(self._tensors), dtype=int32)

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def _place(self, index: int) -> None:
        if index < 0:
            raise OutOfRangeError(
                None, None, f"TensorArray.write: Writing to negative indices (index {index}) is not allowed."
            )
        if index >= len(self._tensors):
            if not self._dynamic_size:
                raise OutOfRangeError(
                    None,
                    None,
                    f"TensorArray.write: Tried to write to index {index} but array is not resizeable and size is: "
                    f"{len(self._tensors)}",
                )
            self._tensors.extend([None] * (index + 1 - len(self._tensors)))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts a tensor at a position."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype != self._dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray.write: TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name}",
            )
        if not self._element_shape.is_compatible_with(tensor.shape):
            raise ValueError(f"Incompatible shape for value ({tensor.shape}), expected ({self._element_shape})")
        if isinstance(index, _core.Variable):
            index = convert_to_tensor(index)
        if self._waits_for(index):
            written = _core.list_set(self._as_buffer(), convert_to_tensor(index), tensor, self._dynamic_size)
            array = self._with_buffer(written)
        else:
            index = int(index)
            array = self._own()
            array._place(index)
            array._tensors[index] = tensor
            array._cleared.discard(index)
        if self._infer_shape:
            array._element_shape = self._element_shape.merge_with(tensor.shape)
        return array

    def _element(self, index: int) -> Any:
        if not 0 <= index < len(self._tensors):
            raise OutOfRangeError(
                None,
                None,
                f"TensorArray.read: Tried to read from index {index} but array size is: {len(self._tensors)}",
            )
        if index in self._cleared:
            raise InvalidArgumentError(
                None,
                None,
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)",
            )
        tensor = self._tensors[index]
        if tensor is None:
            if not self._element_shape.is_fully_defined():
                raise ValueError(f"TensorArray.read: Could not read index {index}: nothing was written there.")
            tensor = zeros(self._element_shape, self._dtype)
        return tensor

    def read(self, index: Any, name: str | None = None) -> Any:
        """The tensor at a position; it is then let go unless `clear_after_read` is False."""
        if isinstance(index, _core.Variable):
            index = convert_to_tensor(index)
        if self._waits_for(index):
            return _core.list_get(self._as_buffer(), convert_to_tensor(index), self._element_shape)
        index = int(index)
        tensor = self._element(index)
        if self._clear_after_read and not _core.is_tracing():
            self._tensors[index] = None
            self._cleared.add(index)
        return tensor

    def _elements(self, indices: Any) -> list[Any]:
        return [self._element(int(i)) for i in indices]

    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor, along a new first dimension."""
        if self._buffer is not None:
            rows = _core.list_stack(self._buffer, self._element_shape)
            if self._length is not None and rows.shape.rank:
                rows.set_shape([self._length, *rows.shape.as_list()[1:]])
            return rows
        if not self._tensors:
            shape = self._element_shape.as_list() if self._element_shape.is_fully_defined() else []
            return zeros([0, *shape], self._dtype)
        return primitives.Pack(self._elements(range(len(self._tensors))), 0)

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """The elements at the given positions, as one tensor."""
        if self._waits_for(indices):
            return primitives.GatherV2(_core.list_stack(self._as_buffer(), self._element_shape), indices, 0, 0)
        return primitives.Pack(self._elements(convert_to_tensor(indices).numpy()), 0)

    def concat(self, name: str | None = None) -> Any:
        """All elements joined along their first dimension."""
        if self._buffer is not None:
            rows = self.stack()
            sizes = primitives.Shape(rows, int32)
            return primitives.Reshape(rows, primitives.ConcatV2([sizes[:1] * sizes[1:2], sizes[2:]], 0))
        if not self._tensors:
            return zeros([0], self._dtype)
        return primitives.ConcatV2(self._elements(range(len(self._tensors))), 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Fills the array with the slices of a tensor."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if self._buffer is not None or _core.is_symbolic(tensor):
            array = self._with_buffer(tensor)
            array._length = tensor.shape[0] if tensor.shape.rank and not self._dynamic_size else None
            if self._infer_shape and tensor.shape.rank:
                array._element_shape = self._element_shape.merge_with(tensor.shape[1:])
            return array
        parts = primitives.Unpack(convert_to_tensor(value, dtype_hint=self._dtype), -1, 0)
        if len(parts) > len(self._tensors) and not self._dynamic_size:
            raise ValueError(
                f"TensorArray.unstack: Cannot unstack {len(parts)} tensors into a TensorArray of static size "
                f"{len(self._tensors)}"
            )
        if len(parts) > len(self._tensors):
            self._place(len(parts) - 1)
        array = self
        for i, part in enumerate(parts):
            array = array.write(i, part)
        return array

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the slices of a tensor at the given positions."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if self._waits_for(indices) or _core.is_symbolic(tensor):
            places = convert_to_tensor(indices)
            array = self.write(primitives.Max(places), primitives.GatherV2(tensor, 0, 0, 0))
            rows = primitives.TensorScatterUpdate(array._as_buffer(), primitives.ExpandDims(places, -1), tensor)
            return array._with_buffer(rows)
        parts = primitives.Unpack(convert_to_tensor(value, dtype_hint=self._dtype), -1, 0)
        array = self
        for i, part in zip(convert_to_tensor(indices).numpy(), parts):
            array = array.write(i, part)
        return array

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Fills the array with parts of the given lengths."""
        sizes = [int(n) for n in convert_to_tensor(lengths).numpy()]
        parts = primitives.SplitV(convert_to_tensor(value, dtype_hint=self._dtype), sizes, 0)
        self._infer_shape = self._infer_shape and len(set(sizes)) <= 1
        array = self._own()
        array._infer_shape = self._infer_shape
        for i, part in enumerate(parts):
            array = array.write(i, part)
        return array

    def close(self, name: str | None = None) -> None:
        """Lets go of all elements."""
        self._tensors.clear()
