"""Objects without their classes: what they hold that can be saved, as a table, and plain objects made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.compat.saved_model.saved_graphs import restored_function, saved_function
from tapeflow._src.function.function import Function
from tapeflow._src.train.checkpoint.object_graph import children_of, is_trackable, variable_of
from tapeflow._src.types.trackable import AutoTrackable

_OF_TRAINING = frozenset({"train_function", "test_function", "predict_function"})  # Keras makes them anew


def functions_of(thing: Any) -> dict[str, Function]:
    """The functions among the attributes of an object."""
    names = [
        *(name for name in dir(type(thing)) if not _is_property(type(thing), name)),
        *getattr(thing, "__dict__", ()),
    ]
    attributes = {name: getattr(thing, name, None) for name in names if name not in _OF_TRAINING}
    return {name: found for name, found in attributes.items() if isinstance(found, Function)}


def _is_property(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), property)


class SavedObjects(NamedTuple):
    """A table with a row for each object, the root first: its kind, and the numbers of the rows that it holds."""

    rows: list[Any]


class ObjectTable:
    """Makes the table of the objects below a root."""

    def __init__(self, root: Any) -> None:
        self.rows: list[Any] = []
        self._number_by_id: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the id of one that is gone
        self.number_of(root)

    def number_of(self, thing: Any) -> int:
        """The row of an object."""
        variable = variable_of(thing)
        thing = thing if variable is None else variable
        if id(thing) in self._number_by_id:
            return self._number_by_id[id(thing)]
        number = self._number_by_id[id(thing)] = len(self.rows)
        self._kept.append(thing)
        self.rows.append(None)
        self.rows[number] = self._row_of(thing)
        return number

    def _row_of(self, thing: Any) -> tuple[str, Any]:
        if isinstance(thing, _core.Variable):
            return "variable", thing
        if isinstance(thing, Function):
            return "function", saved_function(thing)
        if isinstance(thing, list | tuple):
            return "list", [self.number_of(item) for item in thing if _is_kept(item)]
        if isinstance(thing, Mapping):
            return "dict", {key: self.number_of(item) for key, item in thing.items() if _is_kept(item)}
        children = {name: child for name, child in children_of(thing).items() if _is_kept(child)}
        return "object", {name: self.number_of(child) for name, child in {**children, **functions_of(thing)}.items()}


def _is_kept(thing: Any) -> bool:
    return isinstance(thing, Function) or is_trackable(thing)


class LoadedObject(AutoTrackable):
    """An object of a saved model: it has the attributes that could be saved, and no other class."""


class LoadedFunctionObject(LoadedObject):
    """One that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__call__"](*args, **kwargs)


def objects_of(saved: SavedObjects) -> Any:
    """The first object of a table, with all that it holds."""
    rows = saved.rows
    made: list[Any] = [None] * len(rows)
    for number, (kind, content) in enumerate(rows):
        match kind:
            case "variable":
                made[number] = content
            case "function":
                made[number] = restored_function(content)
            case "list":
                made[number] = []
            case "dict":
                made[number] = {}
            case _:
                made[number] = LoadedFunctionObject() if "__call__" in content else LoadedObject()
    for thing, (kind, content) in zip(made, rows):
        if kind == "list":
            thing.extend(made[number] for number in content)
        elif kind == "dict":
            thing.update((key, made[number]) for key, number in content.items())
        elif kind == "object":
            for name, number in content.items():
                setattr(thing, name, made[number])
    return made[0]
