"""Rounding to a few levels, with gradients that pass through the rounding."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow import primitives
from tapeflow.namespace import public
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.types.dtypes import float32
from tapeflow.types.errors import InvalidArgumentError

FakeQuantWithMinMaxVarsGradient = namedtuple(
    "FakeQuantWithMinMaxVarsGradient", ["backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"]
)
FakeQuantWithMinMaxVarsPerChannelGradient = namedtuple(
    "FakeQuantWithMinMaxVarsPerChannelGradient", ["backprops_wrt_input", "backprop_wrt_min", "backprop_wrt_max"]
)


def _select(condition: Any, x: Any, y: Any) -> Any:
    return primitives.SelectV2(condition, x, y)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return primitives.Minimum(primitives.Maximum(x, low), high)


def _nudged_range(low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[Any, Any, Any]:
    """The range moved so that zero is one of the levels, and the distance between levels."""
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(
            None, None, f"fake_quant: num_bits is out of range, expected between 2 and 16; got {num_bits}"
        )
    lowest, highest = (1.0 if narrow_range else 0.0), float(2**num_bits - 1)
    scale = (high - low) / (highest - lowest)
    zero = lowest - low / scale
    nudged = _select(zero < lowest, lowest, _select(zero > highest, highest, primitives.Floor(zero + 0.5)))
    return (lowest - nudged) * scale, (highest - nudged) * scale, scale


def _fake_quant(inputs: Any, low: Any, high: Any, num_bits: int, narrow_range: bool) -> Any:
    x = convert_to_tensor(inputs, dtype_hint=float32)
    low, high = convert_to_tensor(low, dtype_hint=float32), convert_to_tensor(high, dtype_hint=float32)
    fixed_low, fixed_high, fixed_x = (primitives.StopGradient(t) for t in (low, high, x))
    nudged_low, nudged_high, scale = _nudged_range(fixed_low, fixed_high, num_bits, narrow_range)
    step = 1.0 / scale
    zero_level = primitives.Floor(-nudged_low * step + 0.5)
    level = primitives.Floor((_clip(fixed_x, nudged_low, nudged_high) - nudged_low) * step - zero_level + 0.5)
    empty = primitives.LogicalAnd(primitives.Equal(fixed_low, 0.0), primitives.Equal(fixed_high, 0.0))
    rounded = _select(empty, 0.0, level * scale)
    source = _select(x < nudged_low, low, _select(x > nudged_high, high, x))
    return primitives.StraightThrough(_select(empty, x, source), rounded)


@public("quantization.fake_quant_with_min_max_args")
def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """Elements rounded to one of `2**num_bits` levels between `min` and `max`.

    >>> tf.quantization.fake_quant_with_min_max_args([0.0, 10.0])
    [0., 5.9764705]
    """
    if min >= max:
        raise InvalidArgumentError(None, None, f"fake_quant: min has to be smaller than max, was: {min} >= {max}")
    return _fake_quant(inputs, float(min), float(max), num_bits, narrow_range)


@public("quantization.fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """Elements rounded to one of `2**num_bits` levels between two scalars, which get the gradient of what is outside.

    >>> tf.quantization.fake_quant_with_min_max_vars([0.0, 10.0], -6., 6.)
    [0., 5.9764705]
    """
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


@public("quantization.fake_quant_with_min_max_vars_per_channel")
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """As `fake_quant_with_min_max_vars`, with a range for each element of the last dimension.

    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel([[0.0, 10.0]], [-6., -6.], [6., 6.])
    [[0., 5.9764705]]
    """
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


def _fake_quant_gradient(
    gradients: Any, inputs: Any, low: Any, high: Any, num_bits: int, narrow_range: bool
) -> tuple[Any, ...]:
    x, dy = convert_to_tensor(inputs), convert_to_tensor(gradients)
    low, high = convert_to_tensor(low, dtype_hint=float32), convert_to_tensor(high, dtype_hint=float32)
    nudged_low, nudged_high, _ = _nudged_range(low, high, num_bits, narrow_range)
    empty = primitives.LogicalAnd(primitives.Equal(low, 0.0), primitives.Equal(high, 0.0))
    below, above = (primitives.LogicalAnd(primitives.LogicalNot(empty), t) for t in (x < nudged_low, x > nudged_high))
    inside = primitives.LogicalNot(primitives.LogicalOr(below, above))
    axes = list(range(x.shape.rank - low.shape.rank))
    parts = [primitives.Sum(_select(where, dy, 0.0), axes, False) for where in (below, above)]
    return _select(inside, dy, 0.0), *parts


@public("quantization.fake_quant_with_min_max_args_gradient")
def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradient of `fake_quant_with_min_max_args`: `gradients` where the input is in range.

    >>> tf.quantization.fake_quant_with_min_max_args_gradient([1., 1.], [0., 10.])
    [1., 0.]
    """
    return _fake_quant_gradient(gradients, inputs, float(min), float(max), num_bits, narrow_range)[0]


@public("quantization.fake_quant_with_min_max_vars_gradient")
def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of `fake_quant_with_min_max_vars` by the inputs and by both ends of the range.

    >>> tf.quantization.fake_quant_with_min_max_vars_gradient([1., 1.], [0., 10.], -6., 6.).backprop_wrt_max
    1.0
    """
    return FakeQuantWithMinMaxVarsGradient(*_fake_quant_gradient(gradients, inputs, min, max, num_bits, narrow_range))


@public("quantization.fake_quant_with_min_max_vars_per_channel_gradient")
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` by the inputs and by both ends of the ranges.

    >>> tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient([[1.]], [[10.]], [-6.], [6.]).backprop_wrt_max
    [1.]
    """
    return FakeQuantWithMinMaxVarsPerChannelGradient(
        *_fake_quant_gradient(gradients, inputs, min, max, num_bits, narrow_range)
    )


def _round_to_levels(
    x: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int | None,
) -> Any:
    """The rounded elements, without a gradient."""
    if not 1 <= num_bits <= 63:
        raise InvalidArgumentError(None, None, f"quantize_and_dequantize: num_bits is out of range: {num_bits}")
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise InvalidArgumentError(
            None,
            None,
            f"quantize_and_dequantize: Round mode string must be 'HALF_TO_EVEN' or 'HALF_UP', is '{round_mode}'",
        )
    rank = x.shape.rank
    across = None if axis in (None, -1) else axis
    if range_given:
        low, high = (cast(convert_to_tensor(v, dtype_hint=x.dtype), x.dtype) for v in (input_min, input_max))
        if across is not None:
            shape = [1] * rank
            shape[across] = -1
            low, high = primitives.Reshape(low, shape), primitives.Reshape(high, shape)
    else:
        axes = [i for i in range(rank) if i != across]
        low, high = primitives.Min(x, axes, across is not None), primitives.Max(x, axes, across is not None)
    low, high = primitives.StopGradient(low), primitives.StopGradient(high)
    if signed_input:
        lowest, highest = -float(2 ** (num_bits - 1)) + narrow_range, float(2 ** (num_bits - 1) - 1)
    else:
        lowest, highest = 0.0, float(2**num_bits - 1)
    huge = float(x.dtype.max)
    from_low = _select(low * lowest > 0.0, lowest / low, huge)
    from_high = _select(high * highest > 0.0, highest / high, huge)
    by_low = from_low < from_high
    scale = _select(by_low, from_low, from_high)
    unit = _select(by_low, low / lowest if lowest else low, high / highest)
    low, high = _select(by_low, low, lowest * unit), _select(by_low, highest * unit, high)
    inside = _clip(x, low, high) if range_given else x
    scaled = inside * scale
    levels = primitives.Rint(scaled) if round_mode == "HALF_TO_EVEN" else primitives.Floor(scaled + 0.5)
    return levels * unit


@public("quantization.quantize_and_dequantize_v2")
def quantize_and_dequantize_v2(
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
    """Elements rounded to one of `2**num_bits` levels of the given, or of their own, range; no gradient outside it.

    >>> tf.quantization.quantize_and_dequantize_v2([0.1, 1.0], 0., 1., range_given=True, num_bits=2)
    [0., 1.]
    """
    x = convert_to_tensor(input)
    fixed = primitives.StopGradient(x)
    y = _round_to_levels(
        fixed, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
    )
    if not range_given:
        return primitives.StraightThrough(x, y)
    low, high = (cast(convert_to_tensor(v, dtype_hint=x.dtype), x.dtype) for v in (input_min, input_max))
    if axis not in (None, -1):
        shape = [1] * x.shape.rank
        shape[axis] = -1
        low, high = primitives.Reshape(low, shape), primitives.Reshape(high, shape)
    inside = primitives.LogicalAnd(fixed >= low, fixed <= high)
    # The ends of the range take part with a gradient of zero.
    source = _select(inside, x, fixed) + 0.0 * (low + high)
    return primitives.StraightThrough(source, y)


@public("quantization.quantize_and_dequantize")
def quantize_and_dequantize(
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
    """As `quantize_and_dequantize_v2`, with a gradient that passes everywhere.

    >>> tf.quantization.quantize_and_dequantize([0.1, 1.0], 0., 1., range_given=True, num_bits=2)
    [0., 1.]
    """
    x = convert_to_tensor(input)
    y = _round_to_levels(
        primitives.StopGradient(x),
        input_min,
        input_max,
        signed_input,
        num_bits,
        range_given,
        round_mode,
        narrow_range,
        axis,
    )
    return primitives.StraightThrough(x, y)
