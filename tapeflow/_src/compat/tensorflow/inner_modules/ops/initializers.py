"""The initializers of `tensorflow.python.ops.init_ops` and `init_ops_v2` that have no public name of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.constant_initializers import part_shape
from tapeflow._src.ops.nn.initializers import (
    OrthogonalInitializerV1,
    RandomNormalInitializer,
    VarianceScalingInitializerV1,
    fans,
)
from tapeflow._src.types.dtypes import as_dtype, float32

_eye, _matmul = find_public("eye"), find_public("matmul")


def _floating(dtype: Any) -> Any:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


def _draw(kind: str, dims: Any, seed: int | None, low: float, high: float, dtype: Any) -> Any:
    """Random numbers: with a seed always the same."""
    if seed is None:
        return find_public(f"random.{kind}")(dims, low, high, dtype)
    return find_public(f"random.stateless_{kind}")(dims, [seed, 0], low, high, dtype)


class TruncatedNormal(RandomNormalInitializer):
    """Makes normal numbers within two deviations of the mean."""

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:
        dims = part_shape(shape, kwargs)
        return _draw("truncated_normal", dims, self.seed, self.mean, self.stddev, _floating(dtype))


class VarianceScaling(VarianceScalingInitializerV1):
    """Makes numbers whose variance is `scale` over the number of inputs, outputs or their mean."""

    _settings: tuple[str, ...] = ("scale", "mode", "distribution", "seed")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        super().__init__(scale, mode, distribution, seed)

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:  # type: ignore[override]
        kind, low, high = self._law(dims_of(shape))
        return _draw(kind, part_shape(shape, kwargs), self.seed, low, high, _floating(dtype))

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {name: getattr(self, name) for name in self._settings}


class GlorotUniform(VarianceScaling):
    """Glorot's uniform numbers."""

    _settings: tuple[str, ...] = ("seed",)

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)


class GlorotNormal(VarianceScaling):
    """Glorot's normal numbers."""

    _settings: tuple[str, ...] = ("seed",)

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


def _scaled(scale: float, distribution: str) -> Callable[..., VarianceScaling]:
    def make(seed: int | None = None) -> VarianceScaling:
        return VarianceScaling(scale, "fan_in", distribution, seed)

    return make


def _refuse_parts(who: str, kwargs: dict[str, Any]) -> None:
    part_shape([], dict.fromkeys(kwargs))
    if kwargs:
        raise ValueError(f"{who} initializer doesn't support partition-related arguments")


class Orthogonal(OrthogonalInitializerV1):
    """Makes matrices with orthogonal rows or columns, whichever are fewer."""

    _settings = ("gain", "seed")

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__(gain, seed)

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:  # type: ignore[override]
        _refuse_parts("Orthogonal", kwargs)
        return super().__call__(shape, _floating(dtype))


class Identity:
    """Makes a matrix with `gain` on its diagonal, and zeros elsewhere."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = float32, **kwargs: Any) -> Any:
        _refuse_parts("Identity", kwargs)
        return find_public("compat.v1.initializers.identity")(self.gain)(shape, _floating(dtype))

    def get_config(self) -> dict[str, Any]:
        """The settings, for `from_config`."""
        return {"gain": self.gain}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Identity:
        """An initializer with the settings of another."""
        return cls(config.get("gain", 1.0))


class _ConvolutionalOrthogonal(OrthogonalInitializerV1):
    """Makes filters of `rank` dimensions that keep the norm of what they are applied to (Xiao et al., 2018).

    A filter of size 2 in each dimension is the product, dimension by dimension, of a projection and its complement;
    longer filters are convolutions of such ones.
    """

    rank = 0

    def _sizes(self, shape: Any, dims: int) -> list[int]:
        sizes = dims_of(shape)
        if len(sizes) != dims:
            raise ValueError(f"Argument `shape` must be {dims}-dimensional; got {sizes}")
        return self._channels(sizes)

    @staticmethod
    def _channels(sizes: list[int]) -> list[int]:
        if sizes[-2] > sizes[-1]:
            raise ValueError(
                f"In_filters, specified by shape[-2]={sizes[-2]} cannot be greater than out_filters, specified by "
                f"shape[-1]={sizes[-1]}."
            )
        return sizes

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        *field, inputs, outputs = self._sizes(shape, self.rank + 2)
        if len(set(field)) != 1:
            raise ValueError(f"Kernel sizes, specified by shape[:-2]={field} must be equal.")
        dtype = _floating(dtype or self.dtype)
        square, seed = OrthogonalInitializerV1(dtype=dtype, seed=self.seed), self.seed
        start = square([outputs, outputs])[:inputs]
        blocks: dict[tuple[int, ...], Any] = {(0,) * self.rank: start}
        for _ in range(field[0] - 1):
            halves = []
            for _ in range(self.rank):
                seed = None if seed is None else seed + 1
                halves.append(_projections(outputs, dtype, seed))
            blocks = _convolved(blocks, halves)
        stacked = find_public("stack")([blocks[at] for at in sorted(blocks)])
        whole = find_public("reshape")(stacked, [*field, inputs, outputs])
        return whole * convert_to_tensor(self.gain, whole.dtype)


def _projections(size: int, dtype: Any, seed: int | None) -> tuple[Any, Any]:
    """A random orthogonal projection and its complement."""
    q = OrthogonalInitializerV1(dtype=dtype, seed=seed)([size, size])
    kept = find_public("cast")(find_public("random.normal")([size], dtype=dtype, seed=seed) > 0, dtype)
    p = _matmul(q * kept, q, adjoint_b=True)
    return p, _eye(size, dtype=dtype) - p


def _convolved(blocks: dict[tuple[int, ...], Any], halves: list[tuple[Any, Any]]) -> dict[tuple[int, ...], Any]:
    """The convolution of a filter, as matrices by place, with that of size 2 that `halves` make."""
    found: dict[tuple[int, ...], Any] = {}
    for step in itertools.product((0, 1), repeat=len(halves)):
        factor = halves[0][step[0]]
        for half, which in zip(halves[1:], step[1:]):
            factor = _matmul(factor, half[which])
        for at, block in blocks.items():
            place = tuple(a + b for a, b in zip(at, step))
            part = _matmul(block, factor)
            found[place] = found[place] + part if place in found else part
    return found


class ConvolutionOrthogonal1D(_ConvolutionalOrthogonal):
    """Makes filters [size, inputs, outputs] that keep the norm."""

    rank = 1


class ConvolutionOrthogonal2D(_ConvolutionalOrthogonal):
    """Makes filters [size, size, inputs, outputs] that keep the norm."""

    rank = 2


class ConvolutionOrthogonal3D(_ConvolutionalOrthogonal):
    """Makes filters [size, size, size, inputs, outputs] that keep the norm."""

    rank = 3


class ConvolutionDeltaOrthogonal(_ConvolutionalOrthogonal):
    """Makes filters that are zero but for their centre, an orthogonal matrix."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = dims_of(shape)
        if not 3 <= len(sizes) <= 5:
            raise ValueError(f"Argument `shape` must be at least 3-dimensional and at most 5-dimensional; got {sizes}")
        *field, inputs, outputs = self._channels(sizes)
        dtype = _floating(dtype or self.dtype)
        centre = OrthogonalInitializerV1(dtype=dtype, seed=self.seed)([outputs, outputs])[:inputs]
        sides = [[(size - 1) // 2, size - 1 - (size - 1) // 2] for size in field]
        block = find_public("reshape")(centre, [*[1] * len(field), inputs, outputs])
        return find_public("pad")(block, [*sides, [0, 0], [0, 0]]) * convert_to_tensor(self.gain, dtype)


v1_names = {
    "ConvolutionDeltaOrthogonal": ConvolutionDeltaOrthogonal,
    "ConvolutionOrthogonal1D": ConvolutionOrthogonal1D,
    "ConvolutionOrthogonal2D": ConvolutionOrthogonal2D,
    "ConvolutionOrthogonal3D": ConvolutionOrthogonal3D,
    "_compute_fans": fans,
    "convolutional_delta_orthogonal": ConvolutionDeltaOrthogonal,
    "convolutional_orthogonal_1d": ConvolutionOrthogonal1D,
    "convolutional_orthogonal_2d": ConvolutionOrthogonal2D,
    "convolutional_orthogonal_3d": ConvolutionOrthogonal3D,
}
v2_names = {
    **{kind.__name__: kind for kind in (GlorotNormal, GlorotUniform, Identity, Orthogonal, TruncatedNormal)},
    "VarianceScaling": VarianceScaling,
    "_compute_fans": fans,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "identity": Identity,
    "orthogonal": Orthogonal,
    "truncated_normal": TruncatedNormal,
    **{
        f"{name}_{distribution}": _scaled(scale, kind)
        for name, scale in (("he", 2.0), ("lecun", 1.0))
        for distribution, kind in (("normal", "truncated_normal"), ("uniform", "uniform"))
    },
}
