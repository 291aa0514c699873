"""PNG files: images of 1 to 16 bits in 1 to 4 channels as bytes, and back.

Pillow decodes the pixels; its own reader keeps 8 bits of colors that have 16, and passes over what is not whole."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from tapeflow._src.io.codecs.pillow import decode_pixels
from tapeflow._src.types.errors import InvalidArgumentError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOR_BY_CHANNELS = {1: 0, 2: 4, 3: 2, 4: 6}
_MODE_BY_CHANNELS = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_CHANNELS_BY_COLOR = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_BITS_BY_COLOR = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_KNOWN = (b"IHDR", b"PLTE", b"IDAT", b"IEND")  # chunks that nobody may pass over
_HIGHEST_RATIO = 1032  # of bytes to compressed ones, that deflate can reach
# The seven passes of an interlaced image: first row and column, and the steps between.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(image: np.ndarray, compression: int) -> bytes:
    """An image (H, W, channels) of uint8 or uint16 as the bytes of a file."""
    height, width, channels = image.shape
    bits = 8 * image.dtype.itemsize
    rows = image.astype(">u2" if bits == 16 else "u1").reshape(height, -1)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, bits, COLOR_BY_CHANNELS[channels], 0, 0, 0)
    data = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, compression)) + _chunk(b"IEND", b"")
    return SIGNATURE + data


def _bad(what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"decode_png: Invalid PNG data: {what}")


def _chunks(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    place = len(SIGNATURE)
    while place + 8 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if data[place + 8 + length : place + 12 + length] != struct.pack(">I", zlib.crc32(kind + body)):
            raise _bad(f"the checksum of the chunk {kind!r} does not match")
        if not kind[0] & 0x20 and kind not in _KNOWN:
            raise _bad(f"the chunk {kind!r}, without which the image is not whole, is unknown")
        found[kind] = found.get(kind, b"") + body
        place += 12 + length
        if kind == b"IEND":
            break
    if b"IEND" not in found or len(found.get(b"IHDR", b"")) != 13 or b"IDAT" not in found:
        raise _bad("a chunk is missing")
    return found


def read_png(data: bytes, channels: int, wide: bool) -> np.ndarray:
    """The image (H, W, channels) in a file, as uint8 or (`wide`) uint16; 0 channels: as many as there are."""
    chunks = _chunks(data)
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if color not in _CHANNELS_BY_COLOR or bits not in _BITS_BY_COLOR[color]:
        raise _bad(f"color type {color} with {bits} bits does not exist")
    if not 0 < width < 1 << 31 or not 0 < height < 1 << 31:
        raise _bad(f"an image of {height} x {width} pixels")
    stored = _CHANNELS_BY_COLOR[color]
    lines = _inflated(chunks[b"IDAT"], height, width, stored * bits, bool(interlaced))
    pixels = _pixels(lines, height, width, stored, bits, bool(interlaced))
    if color == 3:
        palette = chunks.get(b"PLTE", b"")
        if not palette or len(palette) % 3 or int(pixels.max()) >= len(palette) // 3:
            raise _bad("the palette does not fit the pixels")
        pixels = _colors(palette, chunks.get(b"tRNS", b""))[pixels[..., 0]]
        bits = 8
    else:
        clear = chunks.get(b"tRNS", b"") if channels == 4 and color in (0, 2) else b""
        visible = _visible(pixels, clear) if len(clear) == 2 * stored else None
        if bits < 8:
            pixels = pixels * (255 // (2**bits - 1))
        if visible is not None:
            opacity = visible.astype(pixels.dtype) * (65535 if bits == 16 else 255)
            pixels = np.concatenate([np.repeat(pixels, 3 // stored, 2), opacity], 2)
    if bits == 16 and not wide:
        pixels = pixels >> 8
    if bits <= 8 and wide:
        pixels = pixels.astype(np.uint16) * 257
    kind = np.uint16 if wide else np.uint8
    return with_channels(pixels, channels, np.iinfo(kind).max).astype(kind)


def _colors(palette: bytes, opacities: bytes) -> np.ndarray:
    """The colors of a palette, with their opacities if some are given; too many are none."""
    colors = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if not 0 < len(opacities) <= len(colors):
        return colors
    column = np.full((len(colors), 1), 255, np.uint8)
    column[: len(opacities), 0] = np.frombuffer(opacities, np.uint8)
    return np.concatenate([colors, column], 1)


def _visible(pixels: np.ndarray, clear: bytes) -> np.ndarray:
    """Which pixels (H, W, 1) have another color than the one that is transparent."""
    result: np.ndarray = (pixels != np.frombuffer(clear, ">u2")).any(2, keepdims=True)
    return result


def _inflated(data: bytes, height: int, width: int, pixel_bits: int, interlaced: bool) -> bytes:
    """The filtered lines. The header says how many bytes there are: more, and less, is an error, found in time."""
    passes = [
        (-(-(height - y) // dy), -(-(width - x) // dx))
        for y, x, dy, dx in (_PASSES if interlaced else [(0, 0, 1, 1)])
        if height > y and width > x
    ]
    size = sum(rows * (1 + -(-columns * pixel_bits // 8)) for rows, columns in passes)
    if size > _HIGHEST_RATIO * len(data) + 1024:
        raise _bad(f"{len(data)} compressed bytes cannot be an image of {height} x {width} pixels")
    unpacker = zlib.decompressobj()
    try:
        lines = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise _bad(str(error)) from error
    if len(lines) != size:
        raise _bad(f"an image of {height} x {width} pixels has {size} bytes, and {len(lines)} or more are there")
    return lines


def _pixels(lines: bytes, height: int, width: int, channels: int, bits: int, interlaced: bool) -> np.ndarray:
    """The numbers (H, W, channels) of filtered lines: Pillow's decoder undoes filters and passes.

    It takes compressed lines, so they are packed as they are. Of three and four channels of 16 bits it gives the upper
    or the lower bytes, which are the upper ones of the other byte order.
    """
    packed = zlib.compress(lines, 0)

    def decode(mode: str, layout: str) -> np.ndarray:
        try:
            return decode_pixels("PNG", mode, (width, height), packed, "zip", layout, int(interlaced))
        except ValueError as error:
            raise _bad(str(error)) from None

    if bits < 8:
        return decode("P", f"P;{bits}")[..., None]
    mode = _MODE_BY_CHANNELS[channels * bits // 8 if channels < 3 else channels]
    if bits == 8:
        return decode(mode, mode).reshape(height, width, channels)
    if channels < 3:
        pairs: np.ndarray = decode(mode, mode).view(">u2")
        return pairs.astype(np.uint16)
    upper, lower = decode(mode, mode + ";16B"), decode(mode, mode + ";16L")
    both: np.ndarray = np.left_shift(upper, 8, dtype=np.uint16)
    both |= lower
    return both


def with_channels(pixels: np.ndarray, channels: int, top: int) -> np.ndarray:
    """An image with another number of channels: gray, color, or color and opacity."""
    stored = pixels.shape[2]
    if channels in (0, stored):
        return pixels
    color = pixels[..., : 1 if stored < 3 else 3]
    alpha = pixels[..., stored - 1 :] if stored in (2, 4) else np.full((*pixels.shape[:2], 1), top, pixels.dtype)
    if channels == 1:
        weights = np.array([9797, 19234, 3737])  # in parts of 32768
        return color if color.shape[2] == 1 else ((color.astype(np.int64) @ weights) >> 15)[..., None]
    color = np.repeat(color, 3, 2) if color.shape[2] == 1 else color
    return color if channels == 3 else np.concatenate([color, alpha], 2)
