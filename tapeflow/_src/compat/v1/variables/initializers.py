"""The initializers of TensorFlow 1 that give the same values each time; they know their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32


class _SettledInitializer:
    """What they share: a dtype, and their settings as a dictionary."""

    _settings: tuple[str, ...] = ("dtype",)
    dtype: Any

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {name: self.dtype.name if name == "dtype" else getattr(self, name) for name in self._settings}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initializer with the settings of another."""
        return cls(**config)

    def _dtype(self, dtype: Any) -> Any:
        return self.dtype if dtype is None else as_dtype(dtype)


@public("compat.v1.zeros_initializer", "compat.v1.initializers.zeros")
class ZerosInitializerV1(_SettledInitializer):
    """Zeros.

    >>> tf.compat.v1.zeros_initializer(dtype=tf.int32)([2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([0, 0], dtype=int32)>
    """

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """The tensor of this shape."""
        return find_public("zeros")(shape, self._dtype(dtype))


@public("compat.v1.ones_initializer", "compat.v1.initializers.ones")
class OnesInitializerV1(_SettledInitializer):
    """Ones.

    >>> tf.compat.v1.ones_initializer(dtype=tf.int32)([2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 1], dtype=int32)>
    """

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """The tensor of this shape."""
        return find_public("ones")(shape, self._dtype(dtype))


@public("compat.v1.constant_initializer", "compat.v1.initializers.constant")
class ConstantInitializerV1(_SettledInitializer):
    """A number, or an array; if there are too few elements, the last one fills the rest.

    >>> tf.compat.v1.constant_initializer([1, 2])([2, 2])
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 2.],
           [2., 2.]], dtype=float32)>
    """

    _settings = ("value", "dtype")

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. Expected Python scalar, list "
                "or tuple of values, or numpy.ndarray."
            )
        self.value, self.dtype, self._verify = value, as_dtype(dtype), verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Any:
        """The tensor of this shape."""
        sizes, values = dims_of(shape), np.asarray(self.value)
        if (self._verify if verify_shape is None else verify_shape) and values.shape != (*sizes,):
            raise TypeError(f"Expected Tensor's shape: {(*sizes,)}, but got {values.shape}.")
        count = int(np.prod(sizes, dtype=np.int64))
        if values.size > max(count, 1):
            raise ValueError(f"Too many elements provided. Takes at most {count:d}, but got {values.size:d}.")
        flat = values.reshape(-1)
        if 0 < flat.size < count:
            flat = np.concatenate([flat, np.full(count - flat.size, flat[-1])])
        return convert_to_tensor(flat[:count].reshape(sizes), self._dtype(dtype))


@public("compat.v1.initializers.identity")
class IdentityInitializerV1(_SettledInitializer):
    """A matrix with `gain` on its diagonal, and zeros elsewhere.

    >>> tf.compat.v1.initializers.identity()([2, 2])
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [0., 1.]], dtype=float32)>
    """

    _settings = ("gain", "dtype")

    def __init__(self, gain: float = 1.0, dtype: Any = float32) -> None:
        self.gain, self.dtype = gain, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """The matrix of this shape."""
        sizes, kind = dims_of(shape), self._dtype(dtype)
        if len(sizes) != 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at least two-dimensional. Received "
                f"shape={sizes}"
            )
        if partition_info is None:
            return convert_to_tensor(self.gain, kind) * find_public("eye")(*sizes, dtype=kind)
        whole = find_public("eye")(*dims_of(partition_info.full_shape), dtype=kind)
        part = find_public("slice")(whole, list(partition_info.var_offset), sizes)
        return convert_to_tensor(self.gain, kind) * part
