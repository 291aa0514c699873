"""GIF files, still or moving, as arrays of frames: blocks, color tables and LZW."""

from __future__ import annotations

import struct

import numpy as np

from tapeflow._src import _core
from tapeflow._src.types.errors import InvalidArgumentError

_INTERLACED_ROWS = ((0, 8), (4, 8), (2, 4), (1, 2))


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
        """Blocks of up to 255 bytes, until an empty one."""
        parts = []
        while size := self.byte():
            parts.append(self.take(size))
        return b"".join(parts)

    def colors(self, flags: int) -> np.ndarray | None:
        if not flags & 0x80:
            return None
        return np.frombuffer(self.take(3 * 2 ** ((flags & 7) + 1)), np.uint8).reshape(-1, 3)


def _decompressed(data: bytes, first_bits: int, count: int) -> np.ndarray:
    out = np.empty(count, np.uint8)
    written = _core.decode_gif_codes(data, first_bits, out)
    if written < 0:
        raise _bad("a code is used before it is made")
    if written < count:
        raise _bad("an image ends too early")
    return out


def _indices(blocks: _Blocks, height: int, width: int, interlaced: bool) -> np.ndarray:
    size = blocks.byte()
    if not 1 <= size <= 8:  # of 256 colours at most
        raise _bad(f"a code size of {size}")
    rows = _decompressed(blocks.chained(), size, height * width).reshape(height, width)
    if not interlaced:
        return rows
    found, at = np.empty_like(rows), 0
    for first, step in _INTERLACED_ROWS:
        count = len(range(first, height, step))
        found[first::step] = rows[at : at + count]
        at += count
    return found


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
            if label == 0xF9 and len(body) >= 4:
                transparent = body[3] if body[0] & 1 else None
        elif kind == 0x2C:
            left, top, w, h, flags = struct.unpack("<HHHHB", blocks.take(9))
            own = blocks.colors(flags)
            colors = shared if own is None else own
            if colors is None:
                raise _bad(f"missing color map for frame {len(frames)}")
            cells = _indices(blocks, h, w, bool(flags & 0x40))
            if not frames and (height == 0 or width == 0):
                height, width = h, w
            canvas = frames[-1].copy() if frames else np.zeros((height, width, 3), np.uint8)
            part = canvas[top : top + h, left : left + w]
            cells = cells[: part.shape[0], : part.shape[1]]
            if cells.size and int(cells[cells != transparent].max(initial=0)) >= len(colors):
                raise _bad(f"found color index outside of the map in frame {len(frames)}")
            if transparent is None:
                part[...] = colors[cells]
            else:
                drawn = cells != transparent
                part[drawn] = colors[cells[drawn]]
            frames.append(canvas)
            transparent = None
        else:
            raise _bad(f"a block of kind {kind}")
    if not frames:
        raise _bad("there is no image")
    return np.stack(frames)
