"""`tf.compat`: text and bytes of Python, and the classes of its numbers."""

from __future__ import annotations

import codecs
import numbers
import os
from typing import Any

import numpy as np

from tapeflow._src.namespace import public

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
for _name in ("bytes_or_text_types", "integral_types", "real_types", "complex_types"):
    public(f"compat.{_name}", f"compat.v1.compat.{_name}")(globals()[_name])


@public("compat.as_bytes", "compat.v1.compat.as_bytes")
def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text encoded; bytes as they are.

    >>> tf.compat.as_bytes("a")
    b'a'
    """
    encoding = codecs.lookup(encoding).name
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


@public("compat.as_text", "compat.v1.compat.as_text", "compat.as_str", "compat.v1.compat.as_str")
def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes decoded; text as it is.

    >>> tf.compat.as_text(b"a")
    'a'
    """
    encoding = codecs.lookup(encoding).name
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


@public("compat.as_str_any", "compat.v1.compat.as_str_any")
def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Bytes decoded, anything else as `str` gives it.

    >>> tf.compat.as_str_any(3)
    '3'
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


@public("compat.path_to_str", "compat.v1.compat.path_to_str")
def path_to_str(path: Any) -> str:
    """The text of a path object; anything else as it is.

    >>> tf.compat.path_to_str("a/b")
    'a/b'
    """
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path
