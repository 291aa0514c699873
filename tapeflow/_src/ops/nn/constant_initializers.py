"""Initial values of variables that are not random: zeros, ones, given values."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.tensor_shape import as_shape


def part_shape(shape: Any, kwargs: dict[str, Any]) -> list[int]:
    """The sizes of what is asked for: all of a variable, or the part of it that `partition_shape` names."""
    unknown = set(kwargs) - {"partition_shape", "partition_offset", "layout"}
    if unknown:
        allowed = "['partition_shape', 'partition_offset', 'layout']"
        raise TypeError(f"Keyword argument should be one of {allowed}. Received: {min(unknown)}")
    return dims_of(kwargs["partition_shape"] if kwargs.get("partition_shape") is not None else shape)


def _numeric(dtype: Any) -> DType:
    wanted = as_dtype(dtype)
    if not wanted.is_numpy_compatible or wanted.name == "string":
        raise ValueError(f"Argument `dtype` expected to be numeric or boolean. Received {wanted}.")
    return wanted


class _Settings:
    """How an initializer without settings is written down and made again."""

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The initializer with these arguments."""
        config.pop("dtype", None)
        return cls(**config)


@public("zeros_initializer")
class ZerosInitializer(_Settings):
    """Makes zeros.

    >>> tf.zeros_initializer()([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        return primitives.BroadcastTo(cast(0, _numeric(dtype)), part_shape(shape, kwargs))


@public("ones_initializer")
class OnesInitializer(_Settings):
    """Makes ones.

    >>> tf.ones_initializer()([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>
    """

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        return primitives.BroadcastTo(cast(1, _numeric(dtype)), part_shape(shape, kwargs))


@public("constant_initializer")
class ConstantInitializer(_Settings):
    """Makes a tensor of the given value or values.

    >>> tf.constant_initializer(3.)([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if _core.is_tensor(value):
            raise TypeError(
                f"constant_initializer: Invalid type for initial value: {type(value).__name__}. Expected Python "
                "scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value, self.support_partition = value, support_partition

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        return {"value": self.value}

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        tensor = _core.convert_to_tensor(self.value, dtype, None, "constant_initializer")
        if kwargs and not self.support_partition:
            part_shape(shape, kwargs)
            raise ValueError(
                "constant_initializer: partition_shape and partition_offset need support_partition=True; got "
                f"{sorted(kwargs)}"
            )
        if kwargs and tensor.shape.rank:
            begin, size = kwargs["partition_offset"], part_shape(shape, kwargs)
            whole = primitives.Reshape(tensor, list(as_shape(shape)))
            return whole[tuple(slice(at, at + count) for at, count in zip(begin, size))]
        dims = part_shape(shape, kwargs)
        if tensor.shape.rank == 0:
            return primitives.BroadcastTo(tensor, dims)
        if tensor.shape.num_elements() != as_shape(dims).num_elements():
            raise TypeError(
                f"constant_initializer: {tensor.shape.num_elements()} values with unsupported shape: the `shape` "
                f"{tuple(dims)} has {as_shape(dims).num_elements()} elements"
            )
        return primitives.Reshape(tensor, dims)
