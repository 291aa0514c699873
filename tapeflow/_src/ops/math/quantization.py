"""Quantization: rounding to a grid as training sees it, with gradients that pass inside the range, and to integers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math.arithmetic import clip_by_value
from tapeflow._src.types.dtypes import as_dtype, float32, int8, int16, int32, uint8, uint16
from tapeflow._src.types.errors import InvalidArgumentError

FakeQuantWithMinMaxVarsGradient = namedtuple(
    "FakeQuantWithMinMaxVarsGradient", ["backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"]
)
FakeQuantWithMinMaxVarsPerChannelGradient = namedtuple(
    "FakeQuantWithMinMaxVarsPerChannelGradient", ["backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"]
)
QuantizeV2 = namedtuple("QuantizeV2", ["output", "output_min", "output_max"])


class _Grid:
    """A grid of `2 ** num_bits` numbers near [min, max], moved so that 0 lies on it."""

    def __init__(self, low: Any, high: Any, num_bits: int, narrow_range: bool) -> None:
        if not 2 <= num_bits <= 16:
            raise InvalidArgumentError.of(f"num_bits must be between 2 and 16, inclusive; got {num_bits}")
        first, last = (1 if narrow_range else 0), 2**num_bits - 1
        low, high = primitives.StopGradient(low), primitives.StopGradient(high)
        self.empty = primitives.LogicalAnd(primitives.Equal(low, 0.0), primitives.Equal(high, 0.0))
        self.step = primitives.SelectV2(self.empty, cast(1, float32), (high - low) / (last - first))
        zero = first - low / self.step
        zero = primitives.Maximum(primitives.Minimum(primitives.Floor(zero + 0.5), float(last)), float(first))
        self.low, self.high = (first - zero) * self.step, (last - zero) * self.step

    def rounded(self, x: Any) -> Tensor:
        inside = primitives.Maximum(primitives.Minimum(x, self.high), self.low)
        y = primitives.Floor((inside - self.low) / self.step + 0.5) * self.step + self.low
        return primitives.SelectV2(self.empty, cast(0, float32), y)

    def below(self, x: Any) -> Tensor:
        return primitives.LogicalAnd(primitives.Less(x, self.low), primitives.LogicalNot(self.empty))

    def above(self, x: Any) -> Tensor:
        return primitives.LogicalAnd(primitives.Greater(x, self.high), primitives.LogicalNot(self.empty))


def _fake_quant(inputs: Any, low: Any, high: Any, num_bits: int, narrow_range: bool) -> Tensor:
    x = convert_to_tensor(inputs, dtype_hint=float32)
    grid = _Grid(low, high, num_bits, narrow_range)
    y = primitives.StopGradient(grid.rounded(x))
    # The value is y; the derivative is that of x inside the range, and of the border outside.
    passed = primitives.SelectV2(grid.below(x), low, primitives.SelectV2(grid.above(x), high, x))
    return y + (passed - primitives.StopGradient(passed))


def _check_range(low: float, high: float) -> None:
    if low >= high:
        raise InvalidArgumentError.of(f"min has to be smaller than max, was: {low} >= {high}")


@public("quantization.fake_quant_with_min_max_args")
def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`inputs` rounded to a grid of `2 ** num_bits` numbers on [min, max]; the gradient passes inside the range.

    >>> tf.quantization.fake_quant_with_min_max_args([0.3], 0., 1., num_bits=2)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.33333334], dtype=float32)>
    """
    _check_range(min, max)
    return _fake_quant(inputs, cast(min, float32), cast(max, float32), num_bits, narrow_range)


def _check_scalars(x: Any, low: Any, high: Any) -> None:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape.rank:
            raise InvalidArgumentError.of(f"fake_quant: `{name}` must be rank 0 but is rank {bound.shape.rank}")


def _check_channels(x: Any, low: Any, high: Any) -> None:
    if x.shape.rank == 0:
        raise InvalidArgumentError.of("fake_quant: inputs must be at least rank 1 but is rank 0")
    for name, bound in (("min", low), ("max", high)):
        if bound.shape.rank not in (None, 1):
            raise InvalidArgumentError.of(f"fake_quant: `{name}` must be rank 1 but is rank {bound.shape.rank}")
        if not bound.shape.is_compatible_with(x.shape[-1:]):
            raise InvalidArgumentError.of(
                f"fake_quant: {name} has incorrect size, expected {x.shape[-1]} was {bound.shape[0]}: it must have one "
                "element per channel"
            )


def _fake_quant_in_range(check: Callable[[Any, Any, Any], None], doc: str, path: str) -> Callable[..., Any]:
    """Fake quantization with a range that is a tensor."""

    @public_as(doc, path)
    def function(
        inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
    ) -> Tensor:
        x, low, high = (convert_to_tensor(v, dtype_hint=float32) for v in (inputs, min, max))
        check(x, low, high)
        return _fake_quant(x, low, high, num_bits, narrow_range)

    return function


fake_quant_with_min_max_vars = _fake_quant_in_range(
    _check_scalars,
    """`inputs` rounded to a grid on [min, max]; outside of it the gradient goes to `min` or `max`.

    >>> tf.quantization.fake_quant_with_min_max_vars([0.3], 0., 1., num_bits=2)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.33333334], dtype=float32)>
    """,
    "quantization.fake_quant_with_min_max_vars",
)
fake_quant_with_min_max_vars_per_channel = _fake_quant_in_range(
    _check_channels,
    """As `fake_quant_with_min_max_vars`, with a range for each element of the last dimension.

    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel([[0.3, 0.3]], [0., 0.], [1., 3.], num_bits=2)
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[0.33333334, 0.        ]], dtype=float32)>
    """,
    "quantization.fake_quant_with_min_max_vars_per_channel",
)


def _fake_quant_gradients(
    dy: Any, inputs: Any, low: Any, high: Any, num_bits: int, narrow_range: bool
) -> tuple[Any, Any, Any]:
    x = convert_to_tensor(inputs, dtype_hint=float32)
    dy = convert_to_tensor(dy, dtype_hint=float32)
    if not dy.shape.is_compatible_with(x.shape):
        raise InvalidArgumentError.of(
            f"fake_quant: gradient and input must be the same size; got {dy.shape.as_list()} and {x.shape.as_list()}"
        )
    grid = _Grid(low, high, num_bits, narrow_range)
    below, above, zero = grid.below(x), grid.above(x), cast(0, float32)
    inside = primitives.LogicalNot(primitives.LogicalOr(below, above))
    axes = list(range(x.shape.rank - low.shape.rank))
    return (
        primitives.SelectV2(inside, dy, zero),
        primitives.Sum(primitives.SelectV2(below, dy, zero), axes, False),
        primitives.Sum(primitives.SelectV2(above, dy, zero), axes, False),
    )


@public("quantization.fake_quant_with_min_max_args_gradient")
def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of `fake_quant_with_min_max_args` by its inputs.

    >>> tf.quantization.fake_quant_with_min_max_args_gradient([1., 1.], [0.3, 2.], 0., 1.)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 0.], dtype=float32)>
    """
    _check_range(min, max)
    dx = _fake_quant_gradients(gradients, inputs, cast(min, float32), cast(max, float32), num_bits, narrow_range)[0]
    return primitives.StopGradient(dx)


def _fake_quant_gradient_in_range(
    result: Any, check: Callable[[Any, Any, Any], None], doc: str, path: str
) -> Callable[..., Any]:
    """The gradients of fake quantization with a range that is a tensor."""

    @public_as(doc, path)
    def function(
        gradients: Any,
        inputs: Any,
        min: Any,
        max: Any,
        num_bits: int = 8,
        narrow_range: bool = False,
        name: str | None = None,
    ) -> Any:
        low, high = (convert_to_tensor(v, dtype_hint=float32) for v in (min, max))
        check(convert_to_tensor(inputs, dtype_hint=float32), low, high)
        return result(*_fake_quant_gradients(gradients, inputs, low, high, num_bits, narrow_range))

    return function


fake_quant_with_min_max_vars_gradient = _fake_quant_gradient_in_range(
    FakeQuantWithMinMaxVarsGradient,
    _check_scalars,
    """The gradients of `fake_quant_with_min_max_vars` by inputs, min and max.

    >>> tf.quantization.fake_quant_with_min_max_vars_gradient([1., 1.], [0.3, 2.], 0., 1.).backprop_wrt_max
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """,
    "quantization.fake_quant_with_min_max_vars_gradient",
)
fake_quant_with_min_max_vars_per_channel_gradient = _fake_quant_gradient_in_range(
    FakeQuantWithMinMaxVarsPerChannelGradient,
    _check_channels,
    """The gradients of `fake_quant_with_min_max_vars_per_channel` by inputs, min and max.

    >>> dy, x = [[1., 1.]], [[0.3, 2.]]
    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(dy, x, [0., 0.], [1., 1.]).backprop_wrt_max
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 1.], dtype=float32)>
    """,
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient",
)


# ---- quantize and dequantize


def _along(x: Any, values: Any, axis: int | None) -> Any:
    """Range borders of one slice each, broadcast over the dimensions of `x`."""
    if axis is None or values.shape.rank == 0:
        return values
    return primitives.Reshape(values, [-1 if a == axis % x.shape.rank else 1 for a in range(x.shape.rank)])


def _rounded_to_range(
    x: Any,
    low: Any,
    high: Any,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int | None,
) -> Tensor:
    first = -(2 ** (num_bits - 1)) + (1 if narrow_range else 0) if signed_input else 0
    last = 2 ** (num_bits - 1) - 1 if signed_input else 2**num_bits - 1
    axes = None if axis is None else [a for a in range(x.shape.rank) if a != axis % x.shape.rank]
    if range_given:
        low, high = _along(x, low, axis), _along(x, high, axis)
    else:
        low, high = primitives.Min(x, axes, axes is not None), primitives.Max(x, axes, axes is not None)
    largest = cast(np.finfo(x.dtype.as_numpy_dtype).max, x.dtype)
    by_low = (
        primitives.SelectV2(first * low > 0, first / low, largest)
        if first
        else primitives.BroadcastTo(largest, low.shape.as_list())
    )
    by_high = primitives.SelectV2(last * high > 0, last / high, largest)
    from_low = by_low < by_high
    scale = primitives.SelectV2(from_low, by_low, by_high)
    step = primitives.SelectV2(from_low, low / (first or 1), high / last)
    if range_given:
        x = clip_by_value(
            x, primitives.SelectV2(from_low, low, first * step), primitives.SelectV2(from_low, last * step, high)
        )
    scaled = x * scale
    if round_mode == "HALF_TO_EVEN":
        return primitives.Round(scaled) * step
    if round_mode == "HALF_UP":
        return primitives.Floor(scaled + 0.5) * step
    raise InvalidArgumentError.of(f"Round mode string must be 'HALF_TO_EVEN' or 'HALF_UP', is '{round_mode}'")


def _range(x: Any, input_min: Any, input_max: Any, range_given: bool, num_bits: int) -> tuple[Any, Any]:
    if not 0 < num_bits < 63:
        raise InvalidArgumentError.of(f"num_bits is out of range: {num_bits}")
    low = convert_to_tensor(input_min, dtype_hint=x.dtype)
    high = convert_to_tensor(input_max, dtype_hint=x.dtype)
    if range_given and bool(primitives.Any(primitives.Greater(low, high), None, False)):
        raise InvalidArgumentError.of(f"Invalid range: input_min {low} > input_max {high}")
    return low, high


def _check_slices(x: Any, axis: int | None, input_min: Any, input_max: Any, range_given: bool) -> None:
    """Raises unless the axis is one of `x` and, where a range is given, it has one border for each slice."""
    who, rank = "quantize_and_dequantize", x.shape.rank
    if axis is not None and axis < -1:
        raise InvalidArgumentError.of(f"{who}: Axis should be >= -1, got {axis}")
    if axis is not None and rank is not None and axis >= rank:
        raise InvalidArgumentError.of(f"{who}: Shape must be at least rank {axis + 1} but is rank {rank}")
    for name, border in (("input_min", input_min), ("input_max", input_max)) if range_given else ():
        shape = convert_to_tensor(border).shape
        if axis is None and shape.rank:
            raise InvalidArgumentError.of(f"{who}: {name} must be a scalar; got shape {shape}")
        if axis is not None and shape.rank is not None and shape.rank != 1:
            raise InvalidArgumentError.of(f"{who}: Shape must be rank 1 but is rank {shape.rank}; got {name}")
        if axis is not None and not shape.is_compatible_with([x.shape[axis] if rank is not None else None]):
            raise InvalidArgumentError.of(
                f"{who}: {name} has incorrect size, expected {x.shape[axis]} was {shape.as_list()}"
            )


def _inside_range(x: Any, low: Any, high: Any) -> Tensor:
    # The range has a gradient, of 0.
    inside = primitives.LogicalAnd(x >= low, x <= high)
    return primitives.SelectV2(inside, x, 0 * (low + high))


def _everywhere(x: Any, low: Any, high: Any) -> Any:
    return x


def _quantized_and_back(passed: Callable[[Any, Any, Any], Any], doc: str, path: str) -> Callable[..., Any]:
    """Rounding to levels; the gradient is that of `passed(x, low, high)`."""

    @public_as(doc, path)
    def function(
        input: Any,
        input_min: Any,
        input_max: Any,
        signed_input: bool = True,
        num_bits: int = 8,
        range_given: bool = False,
        round_mode: str = "HALF_TO_EVEN",
        name: str | None = None,
        narrow_range: bool = False,
        axis: int | None = None,
    ) -> Any:
        x = convert_to_tensor(input)
        axis = None if axis in (None, -1) else axis
        _check_slices(x, axis, input_min, input_max, range_given)
        low, high = _range(x, input_min, input_max, range_given, num_bits)
        y = _rounded_to_range(x, low, high, signed_input, num_bits, range_given, round_mode, narrow_range, axis)
        straight = passed(x, _along(x, low, axis), _along(x, high, axis))
        return primitives.StopGradient(y) + (straight - primitives.StopGradient(straight))

    return function


quantize_and_dequantize_v2 = _quantized_and_back(
    _inside_range,
    """`input` rounded to `2 ** num_bits` levels of the given range, or of its own; gradients pass inside the given one.

    >>> tf.quantization.quantize_and_dequantize_v2([0.4], -1., 1., num_bits=3, range_given=True)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.33333334], dtype=float32)>
    """,
    "quantization.quantize_and_dequantize_v2",
)
quantize_and_dequantize = _quantized_and_back(
    _everywhere,
    """As `quantize_and_dequantize_v2`, but the gradient passes everywhere.

    >>> tf.quantization.quantize_and_dequantize([0.4], -1., 1., num_bits=3, range_given=True)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.33333334], dtype=float32)>
    """,
    "quantization.quantize_and_dequantize",
)


_STORAGE = {"quint8": uint8, "qint8": int8, "quint16": uint16, "qint16": int16, "qint32": int32}


@public("quantization.quantize")
def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> QuantizeV2:
    """`input` as numbers of the quantized dtype `T`, and the range that they stand for.

    >>> tf.quantization.quantize([0.5], 0., 1., tf.quint8).output
    <tf.Tensor: shape=(1,), dtype=quint8, numpy=array([128], dtype=uint8)>
    """
    x = convert_to_tensor(input, dtype_hint=float32)
    kind = as_dtype(T)
    if kind.name not in _STORAGE:
        raise TypeError(f"quantization.quantize: T must be a quantized dtype; got {kind!r}")
    storage = _STORAGE[kind.name]
    least, most = (int(v) for v in (np.iinfo(storage.as_numpy_dtype).min, np.iinfo(storage.as_numpy_dtype).max))
    low, high = convert_to_tensor(min_range, dtype_hint=float32), convert_to_tensor(max_range, dtype_hint=float32)
    low = primitives.Minimum(low, 0.0)
    size = primitives.Maximum(primitives.Maximum(primitives.Abs(low), primitives.Abs(high)), 1.0)
    high = primitives.Maximum(primitives.Maximum(high, low + size * ensure_minimum_range), 0.0)
    if mode == "SCALED":
        first = least + 1 if narrow_range and least < 0 else least
        by_low = primitives.SelectV2(first * low > 0, first / low, np.float32(np.inf)) if first else np.float32(np.inf)
        scale = primitives.Minimum(by_low, primitives.SelectV2(high > 0, most / high, np.float32(np.inf)))
        low, high = first / scale, most / scale
        levels = primitives.Maximum(primitives.Minimum(x, _along(x, high, axis)), _along(x, low, axis)) * _along(
            x, scale, axis
        )
    elif mode in ("MIN_COMBINED", "MIN_FIRST"):
        inside = primitives.Maximum(primitives.Minimum(x, _along(x, high, axis)), _along(x, low, axis))
        levels = (inside - _along(x, low, axis)) * ((most - least) / (_along(x, high, axis) - _along(x, low, axis)))
    else:
        raise InvalidArgumentError.of(f"Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{mode}'")
    if round_mode == "HALF_TO_EVEN" and mode == "SCALED":
        levels = primitives.Round(levels)
    else:
        levels = primitives.Sign(levels) * primitives.Floor(primitives.Abs(levels) + 0.5)
    shift = 0 if mode == "SCALED" else least
    return QuantizeV2(cast(cast(cast(levels, "float64") + shift, storage), kind), low, high)


@public("quantization.dequantize")
def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = float32,
) -> Any:
    """The numbers that integers of a range stand for; the inverse of `quantize`.

    >>> tf.quantization.dequantize(tf.constant([255], tf.uint8), 0., 1.)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>
    """
    x = convert_to_tensor(input)
    storage = _STORAGE.get(x.dtype.name, x.dtype)
    least, most = (int(v) for v in (np.iinfo(storage.as_numpy_dtype).min, np.iinfo(storage.as_numpy_dtype).max))
    low, high = convert_to_tensor(min_range, dtype_hint=float32), convert_to_tensor(max_range, dtype_hint=float32)
    low, high, levels = _along(x, low, axis), _along(x, high, axis), cast(x, float32)
    if mode == "SCALED":
        first = least + 1 if narrow_range and least < 0 else least
        step = primitives.Maximum(low / first, high / most) if first else high / most
        return cast(levels * step, dtype)
    return cast((levels - least) * ((high - low) / (most - least)) + low, dtype)
