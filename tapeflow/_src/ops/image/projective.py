"""Images seen through a projective map: rotations, shears and perspectives, as a composition of gathers."""

from __future__ import annotations

import math
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.errors import InvalidArgumentError


def _folded(at: Any, length: Any, mode: str) -> Any:
    """Coordinates brought into an image of this length, a float32 scalar, by its fill mode."""
    if mode == "CONSTANT":
        return at
    zero = convert_to_tensor(0.0, at.dtype)
    if mode in ("REFLECT", "WRAP"):
        at = primitives.SelectV2(primitives.Greater(length, 1.0), at, zero)
    if mode == "REFLECT":
        period = 2.0 * length
        low = primitives.SelectV2(primitives.Less(at, period), period * primitives.Floor(-at / period) + at, at)
        low = primitives.SelectV2(primitives.Less(low, -length), low + period, -low - 1.0)
        high = at - period * primitives.Floor(at / period)
        high = primitives.SelectV2(primitives.GreaterEqual(high, length), period - high - 1.0, high)
    elif mode == "WRAP":
        size = primitives.Maximum(length - 1.0, 1.0)
        low = at + length * (primitives.Floor(-at / size) + 1.0)
        high = at - length * primitives.Floor(at / size)
    else:
        low = high = at
    outside = primitives.SelectV2(primitives.Greater(at, length - 1.0), high, at)
    folded = primitives.SelectV2(primitives.Less(at, zero), low, outside)
    return primitives.Minimum(primitives.Maximum(folded, zero), length - 1.0)


def _sides(images: Any) -> tuple[Any, Any]:
    """Height and width, as float32 scalars."""
    dims = cast(primitives.Shape(images, "int64"), float32)
    return dims[1], dims[2]


def _rounded(at: Any) -> Any:
    """The nearest integer; halves go away from zero."""
    return primitives.Floor(primitives.Abs(at) + 0.5) * primitives.Sign(at)


def _read(images: Any, y: Any, x: Any, fill: Any) -> Any:
    """The cells (batch, rows, columns, channels) at whole coordinates (batch, rows, columns); `fill` outside."""
    height, width = _sides(images)
    inside = primitives.LogicalAnd(
        primitives.LogicalAnd(primitives.GreaterEqual(y, 0.0), primitives.LessEqual(y, height - 1.0)),
        primitives.LogicalAnd(primitives.GreaterEqual(x, 0.0), primitives.LessEqual(x, width - 1.0)),
    )
    rows, columns = (
        cast(primitives.Minimum(primitives.Maximum(at, 0.0), size - 1.0), "int64")
        for at, size in ((y, height), (x, width))
    )
    dims = primitives.Shape(images, "int64")
    numbers = primitives.Reshape(constants.range(dims[0], dtype="int64"), [-1, 1, 1])
    flat = primitives.Reshape(images, [-1, images.shape[-1]])
    found = primitives.GatherV2(flat, (numbers * dims[1] + rows) * dims[2] + columns)
    return primitives.SelectV2(primitives.ExpandDims(inside, -1), found, fill)


def project(
    images: Any, transforms: Any, output_shape: Any, fill_value: Any, interpolation: str, fill_mode: str
) -> Any:
    """The image whose cell (x, y) is the given image's at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k).

    `transforms` (batch or 1, 8) holds a0 a1 a2 b0 b1 b2 c0 c1, with k = c0 x + c1 y + 1.
    """
    images, transforms = convert_to_tensor(images), convert_to_tensor(transforms, float32)
    if interpolation not in ("NEAREST", "BILINEAR") or fill_mode not in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        raise InvalidArgumentError.of(
            f"ImageProjectiveTransformV3: got interpolation {interpolation!r} and fill mode {fill_mode!r}"
        )
    sizes = list(constants.numbers_of(output_shape))
    known = [int(n) for n in (*sizes, *images.shape[3:]) if not _core.is_symbolic(n) and n is not None]
    if min(known, default=0) < 0 or math.prod(known) >= 2**31:
        raise InvalidArgumentError.of(
            f"ImageProjectiveTransformV3: new_height and new_width must be >= 0, and the image have less than 2**31 "
            f"elements: Encountered overflow when multiplying; got {known}"
        )
    out_height, out_width = (cast(n, float32) for n in sizes)
    height, width = _sides(images)
    a0, a1, a2, b0, b1, b2, c0, c1 = (primitives.Reshape(transforms[:, i], [-1, 1, 1]) for i in range(8))
    y = primitives.Reshape(constants.range(out_height), [1, -1, 1])
    x = primitives.Reshape(constants.range(out_width), [1, 1, -1])
    k = c0 * x + c1 * y + 1.0
    at_x = _folded((a0 * x + a1 * y + a2) / k, width, fill_mode)
    at_y = _folded((b0 * x + b1 * y + b2) / k, height, fill_mode)
    fill = cast(fill_value, float32)
    source = cast(images, float32) if not images.dtype.is_floating else images
    fill = cast(fill, source.dtype)
    if interpolation == "NEAREST":
        found = _read(source, _rounded(at_y), _rounded(at_x), fill)
    else:
        top, left = primitives.Floor(at_y), primitives.Floor(at_x)
        down, right = (
            cast(primitives.ExpandDims(at - low, -1), source.dtype) for at, low in ((at_y, top), (at_x, left))
        )
        upper = (1.0 - right) * _read(source, top, left, fill) + right * _read(source, top, left + 1.0, fill)
        lower = (1.0 - right) * _read(source, top + 1.0, left, fill) + right * _read(
            source, top + 1.0, left + 1.0, fill
        )
        found = (1.0 - down) * upper + down * lower
    # Cells that the map sends to infinity.
    valid = primitives.ExpandDims(primitives.NotEqual(k, 0.0), -1)
    return cast(primitives.SelectV2(valid, found, fill), images.dtype)
