"""The containers in which TensorFlow keeps lists and dictionaries of an object's attributes: here plain ones serve."""

from __future__ import annotations

from typing import Any


class ListWrapper(list[Any]):
    """A list that an object holds."""


class _DictWrapper(dict[Any, Any]):
    """A dictionary that an object holds."""
