"""JPEG files as arrays, and back: the work is Pillow's."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tapeflow._src.io.codecs.pillow import load_pillow
from tapeflow._src.types.errors import InvalidArgumentError


def _bad(who: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"{who}: jpeg::Uncompress failed. Invalid JPEG data or crop window.")


def jpeg_size(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels, from the head of the file."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        mark, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if mark == 0xFF:
            at += 1
            continue
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC) and at + 10 <= len(data):
            height, width = int.from_bytes(data[at + 5 : at + 7], "big"), int.from_bytes(data[at + 7 : at + 9], "big")
            return height, width, data[at + 9]
        at += 2 + length
    raise _bad("extract_jpeg_shape")


def read_jpeg(data: bytes, channels: int, ratio: int = 1, truncated: bool = False) -> np.ndarray:
    """The image (H, W, channels) in a file, each side divided by `ratio`; 0 channels: as many as there are."""
    if channels == 4:
        raise InvalidArgumentError.of("decode_jpeg: JPEG does not support 4 channels")
    if channels not in (0, 1, 3):
        raise InvalidArgumentError.of(f"decode_jpeg: channels must be 0, 1, 3, or 4, got {channels}")
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError.of(f"decode_jpeg: ratio must be 1, 2, 4, or 8, got {ratio}")
    Image = load_pillow("JPEG")
    try:
        decoded = Image.open(io.BytesIO(data), formats=["JPEG"])
        mode = decoded.mode if decoded.mode == "CMYK" else {0: decoded.mode, 1: "L", 3: "RGB"}[channels]
        decoded.draft(mode, (max(1, decoded.width // ratio), max(1, decoded.height // ratio)))
        try:
            decoded.load()
        except OSError:
            if not truncated:
                raise
    except Image.DecompressionBombError as error:
        raise InvalidArgumentError.of(f"decode_jpeg: the image is too large: {error}") from None
    except (OSError, SyntaxError, ValueError):
        raise _bad("decode_jpeg") from None
    if decoded.mode == "CMYK":
        ink = np.asarray(decoded).astype(np.int32)
        pixels = ((255 - ink[..., :3]) * (255 - ink[..., 3:]) // 255).astype(np.uint8)
        decoded = Image.fromarray(pixels)
    if channels and decoded.mode != {1: "L", 3: "RGB"}[channels]:
        decoded = decoded.convert("L" if channels == 1 else "RGB")
    found = np.asarray(decoded)
    return found[..., None] if found.ndim == 2 else found


def write_jpeg(
    image: np.ndarray,
    quality: int,
    progressive: bool = False,
    optimize: bool = False,
    downsampled: bool = True,
    density: tuple[str, int, int] = ("in", 300, 300),
    xmp: str = "",
) -> bytes:
    """An image (H, W, 1 or 3) of uint8 as the bytes of a file."""
    Image = load_pillow("JPEG")
    encoded = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    unit, across, down = density
    scale = 2.54 if unit == "cm" else 1.0
    file = io.BytesIO()
    options: dict[str, Any] = {"xmp": xmp.encode()} if xmp else {}
    encoded.save(
        file,
        "JPEG",
        quality=max(1, quality),
        progressive=progressive,
        optimize=optimize,
        subsampling="4:2:0" if downsampled else "4:4:4",
        dpi=(across * scale, down * scale),
        **options,
    )
    return file.getvalue()
