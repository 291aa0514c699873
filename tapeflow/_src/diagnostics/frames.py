"""The frames of the user's program at one moment, and the names by which values can be reached from them."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.namespace import PACKAGE_FOLDER
from tapeflow._src.types.library_folders import is_library

_FRAMES = 30
_LOOKED_INTO = 400  # of the names of a scope, the last ones, whose items and attributes are looked at


class Closure:
    """What a function holds of the scopes around it, in the form of a frame: they have all run."""

    def __init__(self, function: FunctionType) -> None:
        self.f_code: CodeType = function.__code__
        self.f_globals: dict[str, Any] = function.__globals__
        self.f_lineno = sys.maxsize
        self.f_locals: dict[str, Any] = {}
        for name, cell in zip(self.f_code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # nothing was bound to the name yet
                self.f_locals[name] = cell.cell_contents


class Named(NamedTuple):
    """A name by which a value can be reached from a frame of the program."""

    name: str
    frame: FrameType | Closure
    item: str = ""  # "[2]" or "['key']" for an item of what has the name
    inside: int = 0  # a line of the function that has the name, if it is not that of the frame

    @property
    def label(self) -> str:
        return self.name + self.item

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename


class Frames(list[FrameType]):
    """Frames of the program at one moment. Their names are read once, however many questions are asked about them."""

    def __init__(self, frames: Iterable[FrameType] = ()) -> None:
        super().__init__(frames)
        self._held: list[_Held] | None = None
        self._held_by_id: dict[int, list[_Held]] = {}
        self._tensors: list[_Held] | None = None
        self._owners: list[_Held] | None = None

    def held(self) -> list[_Held]:
        """All but numbers, texts, functions and the like."""
        if self._held is None:  # holds the values, so that ids stay theirs
            self._held = [row for row in _held_values(self) if type(row[0]) not in _PLAIN]
            for row in self._held:
                self._held_by_id.setdefault(id(row[0]), []).append(row)
        return self._held

    def names_of(self, value: Any) -> list[Named]:
        self.held()
        return [_named(row) for row in self._held_by_id.get(id(value), ())]

    def tensors(self) -> list[_Held]:
        if self._tensors is None:
            self._tensors = [row for row in self.held() if _core.is_tensor(row[0])]
        return self._tensors

    def owners(self) -> list[_Held]:
        """Layers, models and modules in sight, by their own names or as attributes of what has one."""
        if self._owners is None:
            kinds = {type(row[0]) for row in self.held()}
            kinds = {kind for kind in kinds if hasattr(kind, "trainable_variables") and not issubclass(kind, type)}
            own = [row for row in self.held() if type(row[0]) in kinds and row[4] is None and row[1] in self[:5]]
            self._owners = sorted(own, key=lambda row: row[3] is not None)
        return self._owners


class _Items(tuple[Any, Any]):
    """The position or key of an item, and the position or key of an item of it."""


def user_frames() -> Frames:
    """The frames of the program, innermost first, without Tapeflow's and (if others are left) libraries'."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < 2 * _FRAMES:
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            frames.append(frame)
        frame = frame.f_back
    own = [f for f in frames if not is_library(f.f_code.co_filename)]
    return Frames((own or frames)[:_FRAMES])


# A value and its name: the frame, the name, and the attribute or item of what has the name.
_Held = tuple[Any, FrameType | Closure, str, str | None, Any]
_PLAIN = frozenset({int, float, bool, str, bytes, type(None), FunctionType})


def _named(held: _Held) -> Named:
    _, frame, name, attribute, item = held
    items = item if isinstance(item, _Items) else () if item is None else (item,)
    label = "".join(f"[{key!r}]" for key in items)
    return Named(name if attribute is None else f"{name}.{attribute}", frame, label)


def named_values(frames: Frames) -> Iterator[tuple[Named, Any]]:
    """Names and values within reach: locals, attributes and items of locals, and globals."""
    return ((_named(held), held[0]) for held in _held_values(frames))


def named_tensors(frames: Frames, chosen: Callable[[Any], bool]) -> Iterator[tuple[Named, Any]]:
    """Of `named_values`, the tensors and variables for which a question is answered by yes."""
    return ((_named(held), held[0]) for held in frames.tensors() if chosen(held[0]))


def _held_values(frames: list[FrameType]) -> Iterator[_Held]:
    for frame in frames:
        held = list(frame.f_locals.items())
        looked_into = len(held) - _LOOKED_INTO
        for number, (name, own) in enumerate(held):
            value = own
            yield value, frame, name, None, None
            if type(value) is FunctionType and value.__closure__ and number >= looked_into:
                closure = Closure(value)
                yield from ((inner, closure, own, None, None) for own, inner in closure.f_locals.items())
            if number < looked_into or type(value) in _PLAIN or _core.is_tensor(value):
                continue
            if isinstance(value, deque):
                value = list(itertools.islice(value, 50))
            if isinstance(value, list | tuple):
                yield from ((item, frame, name, None, i) for i, item in enumerate(value[:50]))
                rows = ((i, row) for i, row in enumerate(value[:50]) if isinstance(row, list | tuple | dict))
                yield from ((item, frame, name, None, _Items((i, j))) for i, row in rows for j, item in _entries(row))
            elif isinstance(value, dict):
                pairs = list(value.items())[:50]
                yield from ((item, frame, name, None, key) for key, item in pairs)
                pairs = [(key, row) for key, row in pairs if type(row) in (list, tuple)]
                yield from (
                    (item, frame, name, None, _Items((key, j))) for key, row in pairs for j, item in enumerate(row[:9])
                )
            elif name != "tf" and isinstance(getattr(value, "__dict__", None), dict):
                for attribute, item in list(vars(value).items())[:100]:
                    yield item, frame, name, attribute, None
                    if type(item) is list:
                        yield from ((inner, frame, name, attribute, i) for i, inner in enumerate(item[:9]))
                    if hasattr(type(item), "trainable_variables"):  # the weights of a model that an object holds
                        yield from (
                            (w, frame, name, f"{attribute}.{own}", None) for own, w in list(vars(item).items())[:50]
                        )
    for frame in frames[:3]:
        if frame.f_locals is not frame.f_globals:
            yield from ((value, frame, name, None, None) for name, value in list(frame.f_globals.items()))


def _entries(row: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The first items of a row, with their positions or keys."""
    return list(row.items())[:9] if isinstance(row, dict) else list(enumerate(row[:9]))


def is_direct(named: Named, value: Any) -> bool:
    """Whether the name is the value's own, not that of a list or dictionary that holds it."""
    if named.item:
        return False
    first, *attributes = named.name.split(".")
    frame = named.frame
    held = frame.f_locals.get(first, frame.f_globals.get(first))
    for attribute in attributes:
        held = getattr(held, "__dict__", {}).get(attribute)
    return held is value


def names_of(value: Any, frames: Frames) -> list[Named]:
    """The names of a value, nearest first."""
    return frames.names_of(value)


def owners_of(variable: Any, frames: Frames) -> list[Named]:
    """The names of layers, models and modules that hold a variable, nearest first."""
    return [_named(owner) for owner, _ in _holders(variable, frames)]


def twins_of(variable: Any, frames: Frames) -> Iterator[tuple[Named, list[Any]]]:
    """Other models in sight that have variables of the same shapes as one that holds a variable: their variables."""
    own = [(row, _forms(row[0])) for row, _ in _holders(variable, frames)]
    own = [(row, forms) for row, forms in own if len(forms) > 1]
    mine = {id(row[0]) for row, _ in own}
    for other in frames.owners() if own else ():
        if id(other[0]) not in mine and any(_forms(other[0]) == forms for _, forms in own):
            yield _named(other), [getattr(v, "handle", v) for v in list(other[0].variables)[:1000]]


def _forms(model: Any) -> list[Any]:
    return [tuple(v.shape) for v in list(getattr(model, "variables", ()))[:1000]]


def held_as(variable: Any, frames: Frames) -> Any:
    """The object by which a layer or model in sight holds a variable, as Keras's own; else the variable itself."""
    return next((held for _, held in _holders(variable, frames)), variable)


def _holders(variable: Any, frames: Frames) -> Iterator[tuple[_Held, Any]]:
    for owner in frames.owners():
        for held in list(getattr(owner[0], "variables", ()))[:1000]:
            if held is variable or getattr(held, "handle", None) is variable:
                yield owner, held
                break
