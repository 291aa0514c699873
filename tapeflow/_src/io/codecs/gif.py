"""GIF files, still or moving, as arrays of frames: Pillow decodes the pixels.

Blocks and color tables are read here: Pillow's own reader disposes of frames, which TensorFlow does not."""

from __future__ import annotations

import struct

import numpy as np

from tapeflow._src.io.codecs.pillow import MOST_BYTES, decode_pixels
from tapeflow._src.types.errors import InvalidArgumentError

_MOST_PIXELS_PER_BYTE = 4096 * 8 // 12  # a code of 12 bits stands for as many pixels as there are codes


def _bad(what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"decode_gif: Invalid GIF data (size may be wrong): {what}")


class _Blocks:
    """The parts of a file, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise _bad("the data end too early")
        self.at += size
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def chained(self) -> bytes:
        """Blocks of up to 255 bytes, each behind its size, until an empty one."""
        start = self.at
        while size := self.byte():
            self.take(size)
        return self.data[start : self.at - 1]

    def colors(self, flags: int) -> np.ndarray | None:
        if not flags & 0x80:
            return None
        return np.frombuffer(self.take(3 * 2 ** ((flags & 7) + 1)), np.uint8).reshape(-1, 3)


def _indices(blocks: _Blocks, height: int, width: int, interlaced: bool) -> np.ndarray:
    bits = blocks.byte()
    if not 1 <= bits <= 8:  # of 256 colours at most
        raise _bad(f"a code size of {bits}")
    codes = blocks.chained()
    if not height or not width:
        return np.zeros((height, width), np.uint8)
    if height * width > _MOST_PIXELS_PER_BYTE * len(codes):
        raise _bad("an image ends too early")
    try:
        return decode_pixels("GIF", "L", (width, height), codes, "gif", bits, int(interlaced))
    except ValueError as error:
        raise _bad(str(error)) from None


def read_gif(data: bytes) -> np.ndarray:
    """The frames (frames, H, W, 3) of a file: each is drawn over the one before, transparent places aside."""
    blocks = _Blocks(data)
    if blocks.take(6) not in (b"GIF87a", b"GIF89a"):
        raise _bad("it does not start as a GIF file")
    width, height, flags, _, _ = struct.unpack("<HHBBB", blocks.take(7))
    shared = blocks.colors(flags)
    frames: list[np.ndarray] = []
    transparent = None
    while (kind := blocks.byte()) != 0x3B:
        if kind == 0x21:
            label, body = blocks.byte(), blocks.chained()
            if label == 0xF9 and len(body) >= 5 and body[0] >= 4:
                transparent = body[4] if body[1] & 1 else None
        elif kind == 0x2C:
            left, top, w, h, flags = struct.unpack("<HHHHB", blocks.take(9))
            own = blocks.colors(flags)
            colors = shared if own is None else own
            if colors is None:
                raise _bad(f"missing color map for frame {len(frames)}")
            cells = _indices(blocks, h, w, bool(flags & 0x40))
            if not frames and (height == 0 or width == 0):
                height, width = h, w
            if 3 * height * width * (len(frames) + 1) > MOST_BYTES:
                raise _bad(f"{len(frames) + 1} frames of {height} x {width} pixels are too large")
            canvas = frames[-1].copy() if frames else np.zeros((height, width, 3), np.uint8)
            part = canvas[top : top + h, left : left + w]
            cells = cells[: part.shape[0], : part.shape[1]]
            drawn = None if transparent is None else cells != transparent
            shown = cells if drawn is None else cells[drawn]
            if int(shown.max(initial=0)) >= len(colors):
                raise _bad(f"found color index outside of the map in frame {len(frames)}")
            if drawn is None:
                np.take(colors, cells, axis=0, out=part, mode="clip")
            else:
                part[drawn] = colors[shown]
            frames.append(canvas)
            transparent = None
        else:
            raise _bad(f"a block of kind {kind}")
    if not frames:
        raise _bad("there is no image")
    return np.stack(frames)
