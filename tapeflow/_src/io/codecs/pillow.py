"""The package Pillow, which is loaded when a file needs it, and its decoders of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.types.errors import UnimplementedError

MOST_BYTES = 2**31  # of all frames of an image together


def load_pillow(kind: str) -> Any:
    """Pillow's module `Image`, for files of a kind."""
    try:
        from PIL import Image
    except ImportError:
        raise UnimplementedError.of(
            f"{kind} files need the package Pillow, which is not installed: pip install tapeflow[image]"
        ) from None
    return Image


def decode_pixels(kind: str, mode: str, size: tuple[int, int], data: bytes, decoder: str, *options: Any) -> np.ndarray:
    """The pixels (H, W) or (H, W, channels) that one of Pillow's decoders finds in data; ValueError if it cannot.

    What surrounds the pixels in a file, and which of them are right, is the caller's.
    """
    Image = load_pillow(kind)
    try:
        return np.asarray(Image.frombytes(mode, size, data, decoder, *options))
    except (OSError, MemoryError) as error:
        raise ValueError(str(error)) from None
