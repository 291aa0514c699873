"""Initial values of variables that are not random: zeros, ones, given values."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.tensor_shape import as_shape


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
        return primitives.BroadcastTo(cast(0, dtype), list(as_shape(shape)))


@public("ones_initializer")
class OnesInitializer(_Settings):
    """Makes ones.

    >>> tf.ones_initializer()([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>
    """

    def __call__(self, shape: Any, dtype: Any = "float32", **kwargs: Any) -> Tensor:
        return primitives.BroadcastTo(cast(1, dtype), list(as_shape(shape)))


@public("constant_initializer")
class ConstantInitializer(_Settings):
    """Makes a tensor of the given value or values.

    >>> tf.constant_initializer(3.)([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        self.value = value

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal initializer."""
        return {"value": self.value}

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        tensor = _core.convert_to_tensor(self.value, dtype, None, "constant_initializer")
        dims = list(as_shape(shape))
        if tensor.shape.rank == 0:
            return primitives.BroadcastTo(tensor, dims)
        if tensor.shape.num_elements() != as_shape(dims).num_elements():
            raise TypeError(
                f"constant_initializer: {tensor.shape.num_elements()} values with unsupported shape: the `shape` "
                f"{tuple(dims)} has {as_shape(dims).num_elements()} elements"
            )
        return primitives.Reshape(tensor, dims)
