"""`tf.TensorArray`: a list of tensors that a loop fills, with gradients.

The elements are a Python list as long as all positions are known. In a graph whose positions or length are known only
when it runs, they are the rows of one symbolic tensor, the buffer; or `UnevenRows`, if they may have different shapes.
"""

from __future__ import annotations

import copy
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow import uneven_list
from tapeflow._src.control_flow.uneven_list import UnevenRows
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros, zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int32
from tapeflow._src.types.errors import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec


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

    @property
    def _component_specs(self) -> list[TensorSpec]:
        if self._is_even():
            return [TensorSpec(None, self.dtype)]
        return [TensorSpec([None, None], self.dtype), TensorSpec([None, None], int32)]

    def _is_even(self) -> bool:
        return self._infer_shape or self._element_shape.is_fully_defined()

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """The kind of an array."""
        spec = cls(value.element_shape, value._dtype, value.dynamic_size, value._infer_shape)
        spec._length = value._known_length()
        return spec

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self.dtype, self._dynamic_size, self._infer_shape

    def _to_components(self, value: TensorArray) -> list[Any]:
        buffer = value._as_buffer()
        return list(buffer) if isinstance(buffer, UnevenRows) else [buffer]

    def _empty(self) -> TensorArray:
        """An array of this kind without elements."""
        return TensorArray(
            self.dtype, 0, self._dynamic_size, infer_shape=self._infer_shape, element_shape=self._element_shape
        )

    def _from_components(self, components: Any) -> TensorArray:
        array = self._empty()
        buffer = components[0] if self._is_even() else UnevenRows(*components)
        in_graph = _core.is_tracing() or _core.is_symbolic(buffer)
        if in_graph or not self._is_even() or not isinstance(buffer, _core.Tensor):
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
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
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
        if size is None and flow is None:
            raise ValueError(
                "Argument `size` must be provided if argument `flow` is not provided."
                if _core.is_tracing()
                else "Size must be declared for TensorArrays when eager execution is enabled."
            )
        if _core.is_symbolic(size):
            sizes = self._element_shape.as_list() if self._element_shape.is_fully_defined() else [0]
            self._buffer = (
                zeros([size, *sizes], self._dtype) if self._is_even() else uneven_list.blank(size, self._dtype)
            )
        else:
            try:
                self._tensors = [None] * int(0 if size is None else size)
            except (MemoryError, OverflowError):
                raise ResourceExhaustedError.of(f"TensorArray: the memory does not hold {size} elements") from None
            if size is not None and size < 0 and _core.is_tracing():
                raise InvalidArgumentError.of(f"TensorArray: size must be a non negative number, but got {size}")

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic_size)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: convert_to_tensor(0.0))
    handle = property(lambda self: None)

    _type_spec = property(TensorArraySpec.from_value)

    # ---- in a graph

    def _is_even(self) -> bool:
        """Whether all elements must have one shape."""
        return self._infer_shape or self._element_shape.is_fully_defined()

    def _as_buffer(self) -> Any:
        """The elements as the rows of one tensor, empty if nothing is known of them; or as UnevenRows."""
        if self._buffer is not None:
            return self._buffer
        if not self._is_even():
            return uneven_list.from_tensors(self._tensors, self._dtype)
        written = next((t for t in self._tensors if t is not None), None)
        if written is not None:
            blank = zeros_like(written) if None in [t if t is None else 0 for t in self._tensors] else None
            return primitives.Pack([blank if t is None else t for t in self._tensors], 0)
        return self._blank(len(self._tensors))

    def _blank(self, length: int) -> Any:
        """The buffer of so many elements of which none has been written."""
        known = self._element_shape.is_fully_defined()
        return zeros([length, *(self._element_shape.as_list() if known else [0])], self._dtype)

    @classmethod
    def _of_loop(cls, dtype: Any, length: Any, element_shape: Any) -> TensorArray:
        """An array that a staged loop fills: its elements are the rows of a buffer from the beginning."""
        if not isinstance(length, int):
            return cls(dtype, length, element_shape=element_shape)
        array = cls(dtype, 0, element_shape=element_shape)
        array._buffer, array._length = array._blank(length), length
        return array

    def _buffer_shapes(self) -> list[TensorShape]:
        """The shapes that the tensors of the buffer keep while a loop writes to it."""
        first = None if self._dynamic_size else self._known_length()
        if not self._is_even():
            return [TensorShape([first, None]), uneven_list.shapes_shape(first)]
        if not self._element_shape.is_fully_defined():
            return [TensorShape(None)]
        return [TensorShape([first, *self._element_shape.as_list()])]

    def _with_buffer(self, buffer: Any) -> TensorArray:
        array = copy.copy(self)
        array._tensors, array._cleared, array._buffer = [], set(), buffer
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

    def __autograph_call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`len` of a list of tensors in converted code."""
        return self.size() if function is len else NotImplemented

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
        if self._buffer is not None:
            rows = self._buffer.rows if isinstance(self._buffer, UnevenRows) else self._buffer
            return primitives.Shape(rows, int32)[0]
        return convert_to_tensor(len(self._tensors), dtype=int32)

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def _place(self, index: int) -> None:
        length = len(self._tensors)
        if index < 0 or (index >= length and not self._dynamic_size):
            if _core.is_tracing():
                raise InvalidArgumentError.of(
                    f"TensorArray.write: Trying to modify element {index} in a list with {length} elements."
                )
            if index < 0:
                text = f"Writing to negative indices (index {index}) is not allowed."
            else:
                text = f"Tried to write to index {index} but array is not resizeable and size is: {length}"
            raise OutOfRangeError.of(f"TensorArray.write: {text}")
        self._tensors.extend([None] * (index + 1 - length))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts a tensor at a position."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype != self._dtype:
            raise InvalidArgumentError.of(
                f"TensorArray.write: TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name}",
            )
        if not self._element_shape.is_compatible_with(tensor.shape):
            if _core.is_tracing():
                text = f"Inconsistent shapes: saw {tensor.shape} but expected {self._element_shape}"
            else:
                text = f"Incompatible shape for value ({tensor.shape}), expected ({self._element_shape})"
            raise ValueError(f"TensorArray.write: {text}")
        if isinstance(index, _core.Variable):
            index = convert_to_tensor(index)
        if self._waits_for(index):
            rows = self._buffer_written(convert_to_tensor(index), tensor, self._dynamic_size)
            array = self._with_buffer(rows)
        else:
            index = int(index)
            array = self._own()
            array._place(index)
            array._tensors[index] = tensor
            array._cleared.discard(index)
        if self._infer_shape:
            array._element_shape = self._element_shape.merge_with(tensor.shape)
        return array

    def _buffer_written(self, place: Any, tensor: Any, growing: bool) -> Any:
        """The buffer with a tensor at a position that is a tensor; `growing` lets it lie behind the end."""
        buffer = self._as_buffer()
        if isinstance(buffer, UnevenRows):
            return buffer.written(place, tensor, growing)
        return _core.list_set(buffer, place, tensor, growing)

    def _element(self, index: int, cleared: bool = False) -> Any:
        """The tensor at a position, zeros if nothing was written there or, with `cleared`, if it was let go."""
        if not 0 <= index < len(self._tensors):
            if _core.is_tracing():
                raise InvalidArgumentError.of(
                    f"TensorArray.read: Trying to access element {index} in a list with {len(self._tensors)} elements.",
                )
            raise OutOfRangeError.of(
                f"TensorArray.read: Tried to read from index {index} but array size is: {len(self._tensors)}",
            )
        if index in self._cleared and not cleared:
            raise InvalidArgumentError.of(
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)",
            )
        tensor = self._tensors[index]
        if tensor is None:
            if not self._element_shape.is_fully_defined():
                text = (
                    f"TensorArray.read: Could not read index {index}: it is uninitialized, and element_shape not known."
                )
                raise InvalidArgumentError.of(text) if _core.is_tracing() else ValueError(text)
            tensor = zeros(self._element_shape, self._dtype)
        return tensor

    def read(self, index: Any, name: str | None = None) -> Any:
        """The tensor at a position; it is then let go unless `clear_after_read` is False."""
        if isinstance(index, _core.Variable):
            index = convert_to_tensor(index)
        if self._waits_for(index):
            place, buffer = convert_to_tensor(index), self._as_buffer()
            if isinstance(buffer, UnevenRows):
                return _narrowed(buffer.element(place), self._element_shape)
            return _core.list_get(buffer, place, self._element_shape)
        index = int(index)
        tensor = self._element(index)
        if self._clear_after_read and not _core.is_tracing():
            self._tensors[index] = None
            self._cleared.add(index)
        return tensor

    def _elements(self, indices: Any) -> list[Any]:
        return [self._element(int(i), True) for i in indices]

    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor, along a new first dimension."""
        if isinstance(self._buffer, UnevenRows):
            rows = self._buffer.stacked(self._element_shape)
            return _narrowed(rows, TensorShape([self._length]).concatenate(self._element_shape))
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
        indices = convert_to_tensor(indices)
        if self._waits_for(indices):
            buffer = self._as_buffer()
            if isinstance(buffer, UnevenRows):
                rows = buffer.at(indices).stacked(self._element_shape)
                return _narrowed(rows, TensorShape([None]).concatenate(self._element_shape))
            return primitives.GatherV2(_core.list_stack(buffer, self._element_shape), indices, 0, 0)
        return primitives.Pack(self._elements(indices.numpy()), 0)

    def concat(self, name: str | None = None) -> Any:
        """All elements joined along their first dimension."""
        if isinstance(self._buffer, UnevenRows):
            rest = self._element_shape[1:] if self._element_shape.rank else TensorShape(None)
            return _narrowed(self._buffer.joined(self._element_shape), TensorShape([None]).concatenate(rest))
        if self._buffer is not None:
            rows = self.stack()
            sizes = primitives.Shape(rows, int32)
            return primitives.Reshape(rows, primitives.ConcatV2([sizes[:1] * sizes[1:2], sizes[2:]], 0))
        if not self._tensors:
            known = self._element_shape.rank and self._element_shape[1:].is_fully_defined()
            return zeros([0, *(self._element_shape[1:] if known else [])], self._dtype)
        return primitives.ConcatV2(self._elements(range(len(self._tensors))), 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Fills the array with the slices of a tensor."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if self._buffer is not None or _core.is_symbolic(tensor):
            # A list of its own: what is read from it has dense gradients, unlike rows of the tensor that are gathered.
            rows = _core.list_stack(tensor, tensor.shape[1:]) if tensor.shape.rank else tensor
            array = self._with_buffer(rows if self._is_even() else uneven_list.from_slices(tensor))
            array._length = tensor.shape[0] if tensor.shape.rank and not self._dynamic_size else None
            if self._infer_shape and tensor.shape.rank:
                array._element_shape = self._element_shape.merge_with(tensor.shape[1:])
            return array
        parts = primitives.Unpack(tensor, -1, 0)
        if len(parts) > len(self._tensors) and not self._dynamic_size:
            text = f"Cannot unstack {len(parts)} tensors into a TensorArray of static size {len(self._tensors)}"
            if _core.is_tracing():
                raise InvalidArgumentError.of(f"TensorArray.unstack: {text}")
            raise ValueError(f"TensorArray.unstack: {text}")
        return self._filled(parts)

    def _filled(self, parts: Any) -> TensorArray:
        """The array with these elements and no others."""
        array = self._own()
        array._tensors, array._cleared = [None] * len(parts), set()
        for i, part in enumerate(parts):
            array = array.write(i, part)
        return array

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the slices of a tensor at the given positions."""
        tensor, indices = convert_to_tensor(value, dtype_hint=self._dtype), convert_to_tensor(indices)
        if self._waits_for(indices) or _core.is_symbolic(tensor):
            places, buffer = indices, self._as_buffer()
            if isinstance(buffer, UnevenRows):
                return self._with_buffer(buffer.scattered(places, tensor, self._dynamic_size))
            array = self.write(primitives.Max(places), primitives.GatherV2(tensor, 0, 0, 0))
            rows = primitives.TensorScatterUpdate(array._as_buffer(), primitives.ExpandDims(places, -1), tensor)
            return array._with_buffer(rows)
        array = self
        for i, part in zip(indices.numpy(), primitives.Unpack(tensor, -1, 0)):
            array = array.write(i, part)
        return array

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Fills the array with parts of the given lengths."""
        tensor, lengths = convert_to_tensor(value, dtype_hint=self._dtype), convert_to_tensor(lengths)
        if self._buffer is not None or _core.is_symbolic(lengths):
            array = self._with_buffer(uneven_list.from_parts(tensor, lengths))
            array._infer_shape, array._element_shape = False, TensorShape(None)
            return array
        sizes = [int(n) for n in lengths.numpy()]
        if len(sizes) != len(self._tensors) and not self._dynamic_size and not _core.is_tracing():
            raise InvalidArgumentError.of(
                f"TensorArray.split: TensorArray's size is not equal to the size of lengths ({len(self._tensors)} vs. "
                f"{len(sizes)}), and the TensorArray is not marked as dynamically resizeable.",
            )
        self._infer_shape = self._infer_shape and len(set(sizes)) <= 1
        return self._filled(primitives.SplitV(tensor, sizes, 0))

    def close(self, name: str | None = None) -> None:
        """Lets go of all elements."""
        self._tensors.clear()


def _narrowed(tensor: Any, shape: TensorShape) -> Any:
    """The tensor, of which this is known too."""
    if shape.rank is not None:
        tensor.set_shape(shape)
    return tensor
