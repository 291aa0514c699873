"""The package Pillow, which is loaded when a file needs it."""

from __future__ import annotations

from typing import Any

from tapeflow._src.types.errors import UnimplementedError


def load_pillow(kind: str) -> Any:
    """Pillow's module `Image`, for files of a kind."""
    try:
        from PIL import Image
    except ImportError:
        raise UnimplementedError.of(
            f"{kind} files need the package Pillow, which is not installed: pip install tapeflow[image]"
        ) from None
    return Image
