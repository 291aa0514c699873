"""`tf.TensorArray`: a list of tensors that a loop fills, with gradients."""

from __future__ import annotations

from typing import Any

from tapeflow import primitives
from tapeflow.namespace import public
from tapeflow.ops.constants import zeros
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types.dtypes import as_dtype, int32
from tapeflow.types.errors import InvalidArgumentError, OutOfRangeError
from tapeflow.types.tensor_shape import TensorShape, as_shape


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
        self._tensors: list[Any] = [None] * int(0 if size is None else size)
        self._cleared: set[int] = set()

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic_size)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: convert_to_tensor(0.0))
    handle = property(lambda self: None)

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
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
        index = int(index)
        self._place(index)
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
        if self._infer_shape:
            self._element_shape = self._element_shape.merge_with(tensor.shape)
        self._tensors[index] = tensor
        self._cleared.discard(index)
        return self

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
        index = int(index)
        tensor = self._element(index)
        if self._clear_after_read:
            self._tensors[index] = None
            self._cleared.add(index)
        return tensor

    def _elements(self, indices: Any) -> list[Any]:
        return [self._element(int(i)) for i in indices]

    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor, along a new first dimension."""
        if not self._tensors:
            shape = self._element_shape.as_list() if self._element_shape.is_fully_defined() else []
            return zeros([0, *shape], self._dtype)
        return primitives.Pack(self._elements(range(len(self._tensors))), 0)

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """The elements at the given positions, as one tensor."""
        return primitives.Pack(self._elements(convert_to_tensor(indices).numpy()), 0)

    def concat(self, name: str | None = None) -> Any:
        """All elements joined along their first dimension."""
        if not self._tensors:
            return zeros([0], self._dtype)
        return primitives.ConcatV2(self._elements(range(len(self._tensors))), 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Fills the array with the slices of a tensor."""
        parts = primitives.Unpack(convert_to_tensor(value, dtype_hint=self._dtype), -1, 0)
        if len(parts) > len(self._tensors) and not self._dynamic_size:
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray.unstack: Cannot unstack {len(parts)} values into an array of length {len(self._tensors)}",
            )
        if len(parts) > len(self._tensors):
            self._place(len(parts) - 1)
        for i, part in enumerate(parts):
            self.write(i, part)
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the slices of a tensor at the given positions."""
        parts = primitives.Unpack(convert_to_tensor(value, dtype_hint=self._dtype), -1, 0)
        for i, part in zip(convert_to_tensor(indices).numpy(), parts):
            self.write(i, part)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Fills the array with parts of the given lengths."""
        sizes = [int(n) for n in convert_to_tensor(lengths).numpy()]
        parts = primitives.SplitV(convert_to_tensor(value, dtype_hint=self._dtype), sizes, 0)
        self._infer_shape = self._infer_shape and len(set(sizes)) <= 1
        for i, part in enumerate(parts):
            self.write(i, part)
        return self

    def close(self, name: str | None = None) -> None:
        """Lets go of all elements."""
        self._tensors.clear()
