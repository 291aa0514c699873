"""Variables in parts: partitioners say in how many one is kept, and `PartitionedVariable` is the whole of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.tensor_shape import TensorShape, as_shape

Partitioner = Callable[..., list[int]]


def _number_of_parts(shape: TensorShape, axis: int, count: int) -> list[int]:
    return [count if i == axis % len(shape) else 1 for i in range(len(shape))]


def _element_bytes(dtype: Any, bytes_per_string_element: int) -> int:
    return bytes_per_string_element if as_dtype(dtype).name == "string" else as_dtype(dtype).size


@public("compat.v1.fixed_size_partitioner")
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Keeps variables in a number of parts along an axis, or in as many as it is long.

    >>> tf.compat.v1.fixed_size_partitioner(2)(shape=tf.TensorShape([4, 3]))
    [2, 1]
    """

    def partition(shape: Any, **_: Any) -> list[int]:
        shape = as_shape(shape)
        return _number_of_parts(shape, axis, min(num_shards, shape[axis]))

    return partition


@public("compat.v1.variable_axis_size_partitioner")
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """Keeps variables in parts along an axis, none of which has more than a number of bytes.

    >>> tf.compat.v1.variable_axis_size_partitioner(24)(tf.TensorShape([4, 3]), tf.float32)
    [2, 1]
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        name = "max_shard_bytes" if max_shard_bytes < 1 else "bytes_per_string_element"
        raise ValueError(
            f"Argument `{name}` must be positive. Received: {min(max_shard_bytes, bytes_per_string_element)}"
        )
    if max_shards is not None and max_shards < 1:
        raise ValueError(f"Argument `max_shards` must be positive. Received: {max_shards}")

    def partition(shape: Any, dtype: Any) -> list[int]:
        shape = as_shape(shape)
        if not shape.is_fully_defined():
            raise ValueError(f"Shape should be a fully defined `TensorShape`. Received: {shape}")
        row_bytes = shape.num_elements() / shape[axis] * _element_bytes(dtype, bytes_per_string_element)
        rows = max(1, max_shard_bytes // row_bytes)
        count = math.ceil(shape[axis] / rows)
        return _number_of_parts(shape, axis, int(min(count, max_shards or count)))

    return partition


@public("compat.v1.min_max_variable_partitioner")
def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """Keeps variables in parts of at least a number of bytes, but in no more than a number of parts.

    >>> tf.compat.v1.min_max_variable_partitioner(3, min_slice_size=24)(tf.TensorShape([4, 3]), tf.float32)
    [2, 1]
    """

    def partition(shape: Any, dtype: Any) -> list[int]:
        shape = as_shape(shape)
        if axis >= len(shape):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
        whole = shape.num_elements() * _element_bytes(dtype, bytes_per_string_element)
        count = max(1, min(max_partitions, shape[axis], math.ceil(whole / min_slice_size)))
        return _number_of_parts(shape, axis, count)

    return partition


def partition_sizes(shape: TensorShape, counts: Sequence[int]) -> tuple[int, list[int]]:
    """The axis that is divided, and the sizes of the parts along it; the first ones are the longer ones."""
    if len(counts) != len(shape):
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {list(counts)} vs. {shape}"
        )
    divided = [axis for axis, count in enumerate(counts) if count > 1]
    if len(divided) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {list(counts)}")
    axis = divided[0] if divided else 0
    length, extra = divmod(shape[axis], counts[axis])
    if length == 0:
        raise ValueError(f"Cannot divide {shape[axis]} rows of {shape} into {counts[axis]} parts")
    return axis, [length + (part < extra) for part in range(counts[axis])]


class PartitionInfo:
    """Which part of a whole variable an initializer makes: the shape of the whole, and where the part begins."""

    def __init__(self, full_shape: Any, var_offset: Any) -> None:
        for name, value in (("full_shape", full_shape), ("var_offset", var_offset)):
            if not isinstance(value, Sequence) or isinstance(value, str):
                raise TypeError(f"`{name}` must be a sequence (like tuple or list) instead of {type(value).__name__}")
        if len(full_shape) != len(var_offset):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(var_offset)} while full_shape is of length "
                f"{len(full_shape)}."
            )
        for offset, size in zip(var_offset, full_shape):
            if not 0 <= offset < size:
                raise ValueError(f"Expected 0 <= offset < shape but found offset={offset}, shape={size}")
        self._full_shape, self._var_offset = full_shape, var_offset

    full_shape = property(lambda self: self._full_shape)
    var_offset = property(lambda self: self._var_offset)

    def single_offset(self, shape: Any) -> int:
        """Where the part begins along the one axis that is divided; 0 if none is."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else int(self.var_offset[axis])

    def single_slice_dim(self, shape: Any) -> int | None:
        """The one axis along which a part of this shape is less than the whole; None if there is none."""
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise TypeError(f"`shape` must be a sequence (like tuple or list) instead of {type(shape).__name__}")
        if len(shape) != len(self.full_shape):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while self.full_shape="
                f"{self.full_shape} is of length {len(self.full_shape)}."
            )
        for size, offset, whole in zip(shape, self.var_offset, self.full_shape):
            if offset + size > whole:
                raise ValueError(f"With self.var_offset={self.var_offset}, a partition of shape={shape} exceeds it")
        divided = [axis for axis, size in enumerate(shape) if size != self.full_shape[axis]]
        if len(divided) > 1:
            raise ValueError(f"Cannot use single_slice_dim() with shape={shape}: slice dim could be {divided}")
        return divided[0] if divided else None


class PartitionedVariable:
    """A variable that is kept in parts along an axis; an operation sees the whole."""

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Any], partitions: Sequence[int]
    ) -> None:
        for what, given in (("variable_list", variable_list), ("partitions", partitions)):
            if not isinstance(given, list | tuple):
                raise TypeError(f"{what} is not a list or tuple: {given}")
        if any(count < 1 for count in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        self._name, self._shape, self._dtype = name, as_shape(shape), as_dtype(dtype)
        parts = [variable._save_slice_info for variable in variable_list]
        if None in parts:
            raise ValueError(
                f"All variables must have a save_slice_info available: {[variable.name for variable in variable_list]}"
            )
        if self._shape.rank != len(partitions):
            raise ValueError(f"len(shape) != len(partitions): {shape} vs. {partitions}")
        for part in parts:
            if list(part.full_shape) != self._shape.as_list():
                raise ValueError(f"All variables' full shapes must match shape: {shape}; got {part.full_shape}")
        self._variable_list = sorted(variable_list, key=lambda variable: list(variable._save_slice_info.var_offset))
        self._partitions = list(partitions)
        self._axis = next((axis for axis, count in enumerate(partitions) if count > 1), 0)

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: self._shape)

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        return len(self._variable_list)

    def _concat(self) -> Any:
        """The whole, read where the program is: after what it waits for."""
        identity, scope = find_public("identity"), find_public("compat.v1.name_scope")
        whole = self._variable_list[0]
        if len(self._variable_list) > 1:
            with scope(f"{self._name}/ConcatPartitions/"):
                whole = find_public("concat")(self._variable_list, self._axis)
        with scope(None):
            return identity(whole, name=self._name)

    def as_tensor(self) -> Any:
        """The whole, as one tensor; like the value of any variable, it waits for nothing."""
        with find_public("control_dependencies")(None):
            return self._concat()

    def _change(self, method: str, value: Any, read_value: bool, **options: Any) -> list[Any]:
        """Calls a method of each part with its part of a value: of a tensor of the whole shape, or of a list."""
        values = value
        if not isinstance(value, list | tuple | PartitionedVariable):
            values = find_public("split")(value, [v.shape[self._axis] for v in self], self._axis)
        if len(values) != len(self):
            raise ValueError(f"{method}: {self._name} has {len(self)} parts; got {len(values)} values")
        done = [
            getattr(variable, method)(part, read_value=read_value, **options) for variable, part in zip(self, values)
        ]
        return done if read_value else [getattr(part, "op", part) for part in done]

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns a tensor of the whole shape, or one for each part; gives the assignments."""
        return self._change("assign", value, read_value, use_locking=use_locking, name=name)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds a tensor of the whole shape, or one for each part; gives the assignments."""
        return self._change("assign_add", value, read_value, use_locking=use_locking, name=name)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts a tensor of the whole shape, or one for each part; gives the assignments."""
        return self._change("assign_sub", value, read_value, use_locking=use_locking, name=name)

    def _get_variable_list(self) -> list[Any]:
        return list(self)

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def __repr__(self) -> str:
        return f"<PartitionedVariable '{self._name}' shape={self._shape} dtype={self._dtype.name} in {len(self)} parts>"


find_public("register_tensor_conversion_function")(
    PartitionedVariable,
    lambda value, dtype=None, name=None, as_ref=False: (
        value.as_tensor() if dtype in (None, value.dtype) else NotImplemented
    ),
)


@public("compat.v1.create_partitioned_variables")
def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """The parts of a new variable, as `slicing` divides it.

    >>> with tf.Graph().as_default():
    ...     parts = tf.compat.v1.create_partitioned_variables([4, 2], [2, 1], tf.compat.v1.ones_initializer())
    ...     [part.name for part in parts]
    ['PartitionedVariable/part_0:0', 'PartitionedVariable/part_1:0']
    """
    if not callable(initializer):
        dtype = find_public("convert_to_tensor")(initializer).dtype  # a value keeps its own
    with find_public("compat.v1.variable_scope")(name, "PartitionedVariable", reuse=reuse):
        whole = find_public("compat.v1.get_variable")(
            "", shape, dtype, initializer, trainable=trainable, collections=collections,
            partitioner=lambda **_: list(slicing),
        )  # fmt: skip
    return list(whole)
