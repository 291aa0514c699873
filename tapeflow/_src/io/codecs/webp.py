"""WebP files as arrays: the work is Pillow's."""

from __future__ import annotations

import io

import numpy as np

from tapeflow._src.io.codecs.pillow import MOST_BYTES, load_pillow
from tapeflow._src.types.errors import InvalidArgumentError


def is_webp(data: bytes) -> bool:
    """Whether a file begins as WebP files do."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def read_webp(data: bytes, channels: int, who: str) -> np.ndarray:
    """The frames (frames, H, W, channels) in a file: RGB, or RGBA of animations and of images with transparency."""
    if channels not in (0, 3, 4):
        raise InvalidArgumentError.of(f"{who}: WebP only supports 3 or 4 channels; got channels={channels}")
    Image = load_pillow("WebP")
    try:
        file = Image.open(io.BytesIO(data), formats=["WEBP"])
        count = getattr(file, "n_frames", 1)
        mode = "RGBA" if count > 1 else file.mode
        if channels not in (0, len(mode)):
            raise InvalidArgumentError.of(
                f"{who}: Number of channels requested does not match input; got channels={channels} and {len(mode)}"
            )
        if count * file.width * file.height * len(mode) > MOST_BYTES:
            raise InvalidArgumentError.of(f"{who}: {count} frames of {file.height} x {file.width} are too large")
        frames = []
        for number in range(count):
            file.seek(number)
            frames.append(np.asarray(file.convert(mode)))
    except Image.DecompressionBombError as error:
        raise InvalidArgumentError.of(f"{who}: the image is too large: {error}") from None
    except (OSError, SyntaxError, ValueError, EOFError):
        raise InvalidArgumentError.of(f"{who}: Failed to decode WebP image.") from None
    return np.stack(frames)
