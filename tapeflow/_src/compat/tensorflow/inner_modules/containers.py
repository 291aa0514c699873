"""The containers in which TensorFlow keeps lists and dictionaries of an object's attributes: here plain ones serve."""

from __future__ import annotations

from typing import Any

from tapeflow._src.types.trackable import NoDependency, Trackable


class ListWrapper(list[Any]):
    """A list that an object holds."""


class _DictWrapper(dict[Any, Any]):
    """A dictionary that an object holds."""


def sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """The value that an object keeps for an attribute: it notes what can be saved."""
    if isinstance(value, NoDependency):
        return value.value
    if isinstance(value, Trackable):
        trackable._track_trackable(value, name, overwrite=True)
    return value
