"""BMP files without compression, of 8, 24 or 32 bits, as arrays: Pillow decodes the pixels.

The head is read here, as TensorFlow reads it: 8 bits are gray, whatever color table there is."""

from __future__ import annotations

import struct

import numpy as np

from tapeflow._src.io.codecs.pillow import decode_pixels
from tapeflow._src.types.errors import InvalidArgumentError


def _bad(what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"decode_bmp: {what}")


def read_bmp(data: bytes) -> np.ndarray:
    """The image (H, W, channels) in a file."""
    if len(data) < 32:
        raise _bad(f"Incomplete bmp content, requires at least 32 bytes to find the header size, got {len(data)} bytes")
    (start,) = struct.unpack_from("<i", data, 10)
    width, height = struct.unpack_from("<ii", data, 18)
    (bits,) = struct.unpack_from("<H", data, 28)
    if bits not in (8, 24, 32):
        raise _bad(f"Bits per pixel must be 8, 24 or 32; got {bits}")
    stored = bits // 8
    if width <= 0 or height == 0 or start < 0:
        raise _bad(f"`width` and `height` must not be 0; got {width} and {height}")
    row = (stored * width + 3) // 4 * 4
    missing = len(data) - (start + row * abs(height))
    if missing < 0:
        raise _bad(f"Input size should match (header_size + row_size * abs_height) but they differ by {missing}")
    mode, order = {1: ("L", "L"), 3: ("RGB", "BGR"), 4: ("RGBA", "BGRA")}[stored]
    pixels = data[start : start + row * abs(height)]
    found = decode_pixels("BMP", mode, (width, abs(height)), pixels, "raw", order, row, -1 if height > 0 else 1)
    return found.reshape(abs(height), width, stored)
