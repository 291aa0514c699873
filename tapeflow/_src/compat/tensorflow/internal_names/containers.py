"""Lists, dictionaries and tuples that an object holds in its attributes, so that what is in them is tracked."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types.trackable import NoDependency, Trackable


def _has_weights(thing: Any) -> bool:
    return hasattr(thing, "trainable_weights") and hasattr(thing, "non_trainable_weights")


@public("__internal__.tracking.TrackableDataStructure")
class TrackableDataStructure(Trackable):
    """A container whose contents are tracked; it answers for the variables of the layers in it.

    >>> isinstance(tf.__internal__.tracking.wrap([1]), tf.__internal__.tracking.TrackableDataStructure)
    True
    """

    trainable = True

    @property
    def _values(self) -> Iterable[Any]:
        raise NotImplementedError("a container gives its values")

    def _tracked_items(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError("a container gives its values by name")

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        children = {name: value for name, value in self._tracked_items() if isinstance(value, Trackable)}
        return {**super()._trackable_children(save_type, **kwargs), **children}

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Any:
        return self._trackable_children().get(name)

    @property
    def layers(self) -> list[Any]:
        """The layers inside, those of containers included."""
        found: list[Any] = []
        for value in self._values:
            if isinstance(value, TrackableDataStructure):
                found += value.layers
            elif _has_weights(value):
                found.append(value)
        return found

    _layers = layers

    def _variables(self, trainable: bool) -> list[Any]:
        found: list[Any] = []
        name = "trainable_variables" if trainable else "non_trainable_variables"
        for value in self._values:
            if isinstance(value, Trackable) and not isinstance(value, _core.Variable):
                found += list(getattr(value, name, ()))
        own = [v for v in self._values if isinstance(v, _core.Variable)]
        return found + [v for v in own if v.trainable == trainable]

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables inside that training changes."""
        return self._variables(True) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables inside that training leaves alone."""
        return self._variables(False) if self.trainable else self._variables(True) + self._variables(False)

    @property
    def weights(self) -> list[Any]:
        """All variables inside."""
        return self.trainable_weights + self.non_trainable_weights

    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights
    variables = weights

    @property
    def losses(self) -> list[Any]:
        """The losses of the layers inside."""
        return [loss for layer in self.layers for loss in getattr(layer, "losses", ())]

    @property
    def updates(self) -> list[Any]:
        """The updates of the layers inside."""
        return [update for layer in self.layers for update in getattr(layer, "updates", ())]


class ListWrapper(TrackableDataStructure, list[Any]):
    """A list that an object holds."""

    def __init__(self, wrapped_list: Iterable[Any] = ()) -> None:
        list.__init__(self, map(wrap_or_unwrap, wrapped_list))

    _values = _storage = property(lambda self: self)

    def _tracked_items(self) -> Iterator[tuple[str, Any]]:
        return ((str(i), value) for i, value in enumerate(self))

    def _added(self, index: int) -> None:
        restoration = self.__dict__.get("_restoration")
        if restoration is not None:
            restoration.attribute_set(self, str(index), self[index])

    def append(self, value: Any) -> None:
        """Adds a value at the end."""
        list.append(self, wrap_or_unwrap(value))
        self._added(len(self) - 1)

    def extend(self, values: Iterable[Any]) -> None:
        """Adds values at the end."""
        for value in values:
            self.append(value)

    def insert(self, index: Any, value: Any) -> None:
        """Adds a value before an index."""
        list.insert(self, index, wrap_or_unwrap(value))

    def __iadd__(self, values: Iterable[Any]) -> ListWrapper:  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        list.__setitem__(self, key, [*map(wrap_or_unwrap, value)] if isinstance(key, slice) else wrap_or_unwrap(value))

    def copy(self) -> ListWrapper:
        """A list with the same values."""
        return ListWrapper(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> ListWrapper:
        return ListWrapper(copy.deepcopy(list(self), memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)

    __hash__ = object.__hash__  # type: ignore[assignment]


class _DictWrapper(TrackableDataStructure, OrderedDict[Any, Any]):
    """A dictionary that an object holds."""

    def __init__(self, wrapped_dict: Any = (), **more: Any) -> None:
        OrderedDict.__init__(self, wrapped_dict, **more)

    _values = property(lambda self: self.values())

    def _tracked_items(self) -> Iterator[tuple[str, Any]]:
        return ((key, value) for key, value in self.items() if isinstance(key, str))

    def __setitem__(self, key: Any, value: Any) -> None:
        OrderedDict.__setitem__(self, key, wrap_or_unwrap(value))
        restoration = self.__dict__.get("_restoration")
        if restoration is not None and isinstance(key, str):
            restoration.attribute_set(self, key, self[key])

    def __copy__(self) -> _DictWrapper:
        return _DictWrapper(self)

    def __deepcopy__(self, memo: Any) -> _DictWrapper:
        return _DictWrapper(copy.deepcopy(dict(self), memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    __hash__ = object.__hash__  # type: ignore[assignment]


class _TupleWrapper(TrackableDataStructure, tuple[Any, ...]):
    """A tuple that an object holds."""

    def __new__(cls, original_wrapped_tuple: Iterable[Any] = ()) -> _TupleWrapper:
        return tuple.__new__(cls, map(wrap_or_unwrap, original_wrapped_tuple))

    _values = property(lambda self: self)

    def _tracked_items(self) -> Iterator[tuple[str, Any]]:
        return ((str(i), value) for i, value in enumerate(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return tuple, (tuple(self),)


def _holds_trackable(values: tuple[Any, ...]) -> bool:
    return any(isinstance(wrap_or_unwrap(value), Trackable) for value in values)


@public("__internal__.tracking.wrap")
def wrap_or_unwrap(value: Any) -> Any:
    """The container that tracks what is in a list, dictionary or tuple; other values as they are.

    >>> tf.__internal__.tracking.wrap([1, 2]) == [1, 2]
    True
    """
    if isinstance(value, NoDependency):
        return value.value
    if isinstance(value, Trackable):
        return value
    if type(value) is list:
        return ListWrapper(value)
    if type(value) in (dict, OrderedDict):
        return _DictWrapper(value)
    if type(value) is tuple and _holds_trackable(value):
        return _TupleWrapper(value)
    return value


@public("__internal__.tracking.sticky_attribute_assignment")
def sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """The value that an object keeps for an attribute: a container that is tracked; the object notes it.

    >>> module = tf.Module()
    >>> tf.__internal__.tracking.sticky_attribute_assignment(module, "x", [1])
    [1]
    """
    wrapped = wrap_or_unwrap(value)
    if isinstance(wrapped, Trackable) and not isinstance(value, NoDependency):
        trackable._track_trackable(wrapped, name, overwrite=True)
    return wrapped
