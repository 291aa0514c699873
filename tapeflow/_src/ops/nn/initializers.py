"""Random initial values of variables. With a seed, an initializer gives the same values at every call."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.nn.constant_initializers import part_shape
from tapeflow._src.ops.random.stateless import stateless_normal, stateless_uniform
from tapeflow._src.ops.random.streams import normal, truncated_normal, uniform
from tapeflow._src.types.dtypes import as_dtype, float32


class _Initializer:
    """What initializers share: their settings as a dictionary, and their making from one."""

    _settings: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {name: getattr(self, name) for name in self._settings}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initializer with the settings of another."""
        return cls(**{name: value for name, value in config.items() if name != "dtype" or "dtype" in cls._settings})


def _floating(dtype: Any) -> Any:
    """The dtype, if it is one of floats."""
    found = as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


@public("random_normal_initializer")
class RandomNormalInitializer(_Initializer):
    """Makes normal numbers.

    >>> tf.random_normal_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("mean", "stddev", "seed")

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:
        dims, dtype = part_shape(shape, kwargs), as_dtype(dtype)
        if not dtype.is_floating:
            raise ValueError(f"Expected floating point type, got {dtype}.")
        if self.seed is None:
            return normal(dims, self.mean, self.stddev, dtype)
        return stateless_normal(dims, [self.seed, 0], self.mean, self.stddev, dtype)


@public("random_uniform_initializer")
class RandomUniformInitializer(_Initializer):
    """Makes uniform numbers.

    >>> tf.random_uniform_initializer(-1., 1., seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("minval", "maxval", "seed")

    def __init__(self, minval: float = -0.05, maxval: float | None = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:
        dims, dtype = part_shape(shape, kwargs), as_dtype(dtype)
        if not (dtype.is_floating or dtype.is_integer):
            raise ValueError(f"Expected float or integer dtype, got {dtype}.")
        if self.seed is None:
            return uniform(dims, self.minval, self.maxval, dtype)
        return stateless_uniform(dims, [self.seed, 0], self.minval, self.maxval, dtype)


@public("compat.v1.random_normal_initializer", "compat.v1.initializers.random_normal")
class RandomNormalInitializerV1(_Initializer):
    """Makes normal numbers as TensorFlow 1 does.

    >>> tf.compat.v1.random_normal_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("mean", "stddev", "seed", "dtype")

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return normal(shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {**super().get_config(), "dtype": self.dtype.name}


@public("compat.v1.truncated_normal_initializer", "compat.v1.initializers.truncated_normal")
class TruncatedNormalInitializerV1(RandomNormalInitializerV1):
    """Makes normal numbers within two deviations.

    >>> tf.compat.v1.truncated_normal_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return truncated_normal(shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, seed=self.seed)


@public("compat.v1.random_uniform_initializer", "compat.v1.initializers.random_uniform")
class RandomUniformInitializerV1(_Initializer):
    """Makes uniform numbers as TensorFlow 1 does.

    >>> tf.compat.v1.random_uniform_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("minval", "maxval", "seed", "dtype")

    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = float32) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return uniform(shape, self.minval, self.maxval, self.dtype if dtype is None else dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {**super().get_config(), "dtype": self.dtype.name}


def fans(dims: Any) -> tuple[int, int]:
    """Inputs and outputs of a unit whose weights have this shape; leading dimensions are places of a filter."""
    if len(dims) < 2:
        size = dims[0] if dims else 1
        return size, size
    field = 1
    for d in dims[:-2]:
        field *= d
    return dims[-2] * field, dims[-1] * field


@public("compat.v1.variance_scaling_initializer", "compat.v1.initializers.variance_scaling")
class VarianceScalingInitializerV1(_Initializer):
    """Makes numbers whose variance is `scale` over the number of inputs, outputs or their mean.

    >>> tf.compat.v1.variance_scaling_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("scale", "mode", "distribution", "seed", "dtype")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in {"fan_in", "fan_out", "fan_avg"}:
            raise ValueError(f"Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). Received: {mode}")
        if not isinstance(distribution, str):
            raise ValueError(f"Argument `distribution` must be a string. Received: {distribution}")
        distribution = distribution.lower()
        if distribution not in {"normal", "uniform", "truncated_normal", "untruncated_normal"}:
            raise ValueError(
                "Argument `distribution` should be one of ('normal', 'uniform', 'truncated_normal', "
                f"'untruncated_normal'). Received: {distribution}"
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.seed, self.dtype = seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        dims, dtype = dims_of(shape), self.dtype if dtype is None else dtype
        kind, low, high = self._law(dims)
        draw = {"uniform": uniform, "normal": normal, "truncated_normal": truncated_normal}[kind]
        return draw(dims, low, high, dtype, seed=self.seed)

    def _law(self, dims: list[int]) -> tuple[str, float, float]:
        """The distribution of numbers in this shape: its kind, and its limits or its mean and deviation."""
        fan_in, fan_out = fans(dims)
        units = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        scale = self.scale / max(1.0, units)
        if self.distribution == "uniform":
            limit = sqrt(3.0 * scale)
            return "uniform", -limit, limit
        if self.distribution == "untruncated_normal":
            return "normal", 0.0, sqrt(scale)
        # Cutting at two deviations leaves this much of the deviation.
        return "truncated_normal", 0.0, sqrt(scale) / 0.87962566103423978

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {**super().get_config(), "dtype": self.dtype.name}


@public("compat.v1.orthogonal_initializer", "compat.v1.initializers.orthogonal")
class OrthogonalInitializerV1(_Initializer):
    """Makes matrices with orthogonal rows or columns, whichever are fewer.

    >>> q = tf.compat.v1.orthogonal_initializer(seed=1)([2, 2])
    >>> tf.round(q @ tf.transpose(q) * 1000.) / 1000.
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[ 1., -0.],
           [-0.,  1.]], dtype=float32)>
    """

    _settings: tuple[str, ...] = ("gain", "seed", "dtype")

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        dims = dims_of(shape)
        if len(dims) < 2:
            raise ValueError(
                f"The tensor to initialize, specified by argument `shape` must be at least "
                f"two-dimensional. Received shape={shape}"
            )
        rows, columns = prod(dims[:-1]), dims[-1]
        numbers = normal([max(rows, columns), min(rows, columns)], 0.0, 1.0, dtype or self.dtype, seed=self.seed)
        q, r = find_public("linalg.qr")(numbers, full_matrices=False)
        q = q * primitives.Sign(find_public("linalg.diag_part")(r))
        if rows < columns:
            q = find_public("linalg.matrix_transpose")(q)
        return find_public("reshape")(q, dims) * cast(self.gain, q.dtype)


@public("compat.v1.glorot_uniform_initializer", "compat.v1.initializers.glorot_uniform")
class GlorotUniformInitializerV1(VarianceScalingInitializerV1):
    """Glorot's uniform numbers.

    >>> tf.compat.v1.glorot_uniform_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


@public("compat.v1.glorot_normal_initializer", "compat.v1.initializers.glorot_normal")
class GlorotNormalInitializerV1(VarianceScalingInitializerV1):
    """Glorot's normal numbers.

    >>> tf.compat.v1.glorot_normal_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


@public("compat.v1.initializers.he_normal")
def he_normal(seed: int | None = None) -> VarianceScalingInitializerV1:
    """He's normal numbers.

    >>> tf.compat.v1.initializers.he_normal(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """
    return VarianceScalingInitializerV1(2.0, "fan_in", "truncated_normal", seed)


@public("compat.v1.initializers.he_uniform")
def he_uniform(seed: int | None = None) -> VarianceScalingInitializerV1:
    """He's uniform numbers.

    >>> tf.compat.v1.initializers.he_uniform(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """
    return VarianceScalingInitializerV1(2.0, "fan_in", "uniform", seed)


@public("compat.v1.initializers.lecun_normal")
def lecun_normal(seed: int | None = None) -> VarianceScalingInitializerV1:
    """LeCun's normal numbers.

    >>> tf.compat.v1.initializers.lecun_normal(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """
    return VarianceScalingInitializerV1(1.0, "fan_in", "truncated_normal", seed)


@public("compat.v1.initializers.lecun_uniform")
def lecun_uniform(seed: int | None = None) -> VarianceScalingInitializerV1:
    """LeCun's uniform numbers.

    >>> tf.compat.v1.initializers.lecun_uniform(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """
    return VarianceScalingInitializerV1(1.0, "fan_in", "uniform", seed)


@public("compat.v1.uniform_unit_scaling_initializer", "compat.v1.initializers.uniform_unit_scaling")
class UniformUnitScalingInitializerV1(_Initializer):
    """Makes uniform numbers that keep the scale of the inputs' variance.

    >>> tf.compat.v1.uniform_unit_scaling_initializer(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _settings: tuple[str, ...] = ("factor", "seed", "dtype")

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = float32) -> None:
        self.factor, self.seed, self.dtype = factor, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        dims, dtype = dims_of(shape), self.dtype if dtype is None else dtype
        inputs = 1.0
        for d in dims[:-1]:
            inputs *= float(d)
        limit = sqrt(3 / max(inputs, 1.0)) * self.factor
        return uniform(dims, -limit, limit, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {**super().get_config(), "dtype": self.dtype.name}
