"""PNG files: images of 8 or 16 bits in 1 to 4 channels, without interlacing, as strings."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types.dtypes import as_dtype, uint8, uint16
from tapeflow.types.errors import InvalidArgumentError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_BY_CHANNELS = {1: 0, 2: 4, 3: 2, 4: 6}
_CHANNELS_BY_COLOR = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@public("image.encode_png", "io.encode_png", "compat.v1.image.encode_png")
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """An image (H, W, channels) of uint8 or uint16 as the bytes of a PNG file.

    >>> tf.image.decode_png(tf.image.encode_png(tf.constant([[[7]]], tf.uint8)))
    [[[7]]]
    """
    image = convert_to_tensor(image)
    if image.dtype not in (uint8, uint16) or image.shape.rank != 3 or image.shape[2] not in _COLOR_BY_CHANNELS:
        raise InvalidArgumentError(
            None,
            None,
            "image.encode_png: image must be uint8 or uint16 with shape [height, width, channels], channels 1 to 4; "
            f"got {image.dtype.name} {image.shape.as_list()}",
        )
    height, width, channels = image.shape.as_list()
    bits = 8 * image.dtype.size
    rows = np.asarray(image).astype(">u2" if bits == 16 else "u1").reshape(height, -1)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, bits, _COLOR_BY_CHANNELS[channels], 0, 0, 0)
    data = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, compression)) + _chunk(b"IEND", b"")
    return convert_to_tensor(_SIGNATURE + data)


def _bad(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"image.decode_png: Invalid PNG data: {what}")


@public("image.decode_png", "io.decode_png", "compat.v1.image.decode_png")
def decode_png(contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None) -> Any:
    """The image (H, W, channels) in the bytes of a PNG file.

    >>> tf.image.decode_png(tf.image.encode_png(tf.constant([[[7]]], tf.uint8)))
    [[[7]]]
    """
    dtype = as_dtype(dtype)
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(None, None, f"image.decode_png: channels must be 0, 1, 3, or 4, got {channels}")
    data = convert_to_tensor(contents).numpy()
    if not isinstance(data, bytes) or not data.startswith(_SIGNATURE):
        raise _bad("it does not start with the signature of a PNG file")
    chunks: dict[bytes, bytes] = {}
    place = len(_SIGNATURE)
    while place + 8 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        chunks[kind] = chunks.get(kind, b"") + body
        place += 12 + length
    if len(chunks.get(b"IHDR", b"")) != 13 or b"IDAT" not in chunks:
        raise _bad("a chunk is missing")
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if color not in _CHANNELS_BY_COLOR or bits not in (1, 2, 4, 8, 16) or interlaced:
        raise _bad(f"color type {color} with {bits} bits, interlacing {interlaced}, is not supported")
    stored = _CHANNELS_BY_COLOR[color]
    try:
        lines = zlib.decompress(chunks[b"IDAT"])
    except zlib.error as error:
        raise _bad(str(error)) from error
    pixels = _unfiltered(lines, height, width, stored, bits)
    if color == 3:
        pixels = np.frombuffer(chunks.get(b"PLTE", b""), np.uint8).reshape(-1, 3)[pixels[..., 0]]
        bits = 8
    elif bits < 8:
        pixels = pixels * (255 // (2**bits - 1))
    if bits == 16 and dtype == uint8:
        pixels = pixels >> 8
    if bits <= 8 and dtype == uint16:
        pixels = pixels.astype(np.uint16) * 257
    top = 255 if dtype == uint8 else 65535
    return convert_to_tensor(_with_channels(pixels, channels, top).astype(dtype.as_numpy_dtype))


def _unfiltered(lines: bytes, height: int, width: int, channels: int, bits: int) -> np.ndarray:
    """The numbers (H, W, channels) of filtered lines: each line names how it was predicted from its neighbours."""
    step = max(1, channels * bits // 8)
    length = (width * channels * bits + 7) // 8
    if len(lines) < height * (length + 1):
        raise _bad("the data end too early")
    above = np.zeros(length, np.uint8)
    rows = []
    for number in range(height):
        start = number * (length + 1)
        kind = lines[start]
        row = np.frombuffer(lines, np.uint8, length, start + 1).copy()
        if kind == 2:
            row += above
        elif kind in (1, 3, 4):
            _undo(kind, row, above, step)
        elif kind != 0:
            raise _bad(f"filter {kind} does not exist")
        rows.append(row)
        above = row
    table = np.stack(rows) if rows else np.zeros((0, length), np.uint8)
    if bits == 16:
        return table.view(">u2").astype(np.uint16).reshape(height, width, channels)
    if bits == 8:
        return table.reshape(height, width, channels)
    cells = np.unpackbits(table, axis=1).reshape(height, -1, bits)[:, : width * channels]
    return (cells @ (1 << np.arange(bits)[::-1])).astype(np.uint8).reshape(height, width, channels)


def _undo(kind: int, row: np.ndarray, above: np.ndarray, step: int) -> None:
    for i in range(len(row)):
        left = int(row[i - step]) if i >= step else 0
        up = int(above[i])
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            corner = int(above[i - step]) if i >= step else 0
            near = left + up - corner
            guess = min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
        row[i] = (int(row[i]) + guess) & 255


def _with_channels(pixels: np.ndarray, channels: int, top: int) -> np.ndarray:
    stored = pixels.shape[2]
    if channels in (0, stored):
        return pixels
    color = pixels[..., : 1 if stored < 3 else 3]
    alpha = pixels[..., stored - 1 :] if stored in (2, 4) else np.full((*pixels.shape[:2], 1), top, pixels.dtype)
    if channels == 1:
        weights = np.array([0.2989, 0.587, 0.114])
        return color if color.shape[2] == 1 else np.rint(color @ weights)[..., None]
    color = np.repeat(color, 3, 2) if color.shape[2] == 1 else color
    return color if channels == 3 else np.concatenate([color, alpha], 2)
