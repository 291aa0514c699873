"""What a variable is called in reports, and where its learning rate was set."""

from __future__ import annotations

import re
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.frames import Frames, Named, named_values, names_of
from tapeflow._src.diagnostics.program import bindings_used_at, bound_at, class_around, makes_variable, optimizer_line
from tapeflow._src.diagnostics.source_line import place_text, source_line

_RATE = re.compile(r"^(lr|learning_?rate|step_?size|eta|alpha|rate)$", re.IGNORECASE)


def variable_behind(value: Any) -> Any:
    """The variable that an object, such as a Keras variable, shows as its `handle`."""
    return value if _core.is_tensor(value) else getattr(value, "handle", value)


def describe_source(source: Any, frames: Frames, number: int | None = None) -> str:
    """Which source it is: its name in the program, its Keras path, its place in the list, and the line that made it."""
    variable = variable_behind(source)
    names = [n.label for value in (source, variable) for n in names_of(value, frames)]
    path = getattr(source, "path", None) or (getattr(variable, "name", "") if is_variable(variable) else "")
    parts = [f"`{names[0]}`" if names else ""]
    if path and path.removesuffix(":0") not in ("Variable", names[0] if names else ""):
        parts.append(f"'{path.removesuffix(':0')}'")
    if number is not None:
        parts.append(f"sources[{number}]")
    if (made := made_at(variable)) is not None:
        parts.append(f"made at {place_text(*made)}")
    return ", ".join(part for part in parts if part) or "a tensor without a name"


def is_variable(value: Any) -> bool:
    return isinstance(value, _core.Variable)


def made_at(variable: Any) -> tuple[str, int] | None:
    """The line of the program that made a variable."""
    place = getattr(variable, "_made_at", None) if is_variable(variable) else None
    return source_line(*place) if place and place[0] is not None else None


def class_of_variable(variable: Any) -> tuple[str, int, int] | None:
    """The class, as file and lines, whose text makes a variable."""
    made = made_at(variable)
    return None if made is None else class_around(*made)


def forgotten_weight(variable: Any, places: set[tuple[str, int]]) -> tuple[str, int] | None:
    """Where a class made a weight that it does not use, if other lines of the class are among the places."""
    made = made_at(variable)
    maker = class_around(*made) if made is not None and makes_variable(*made) else None
    return made if maker is not None and any(class_around(*place) == maker for place in places) else None


def name_of_variable(source: Any, frames: Frames) -> str:
    """Its Keras path, its name in the program, or the name that it was given."""
    path = getattr(source, "path", None)
    if isinstance(path, str):
        return path
    variable = variable_behind(source)
    names = [n.label for n in names_of(source, frames)]
    names = [name for name in names if not name.endswith("._value")]  # a variable that Keras holds has a path
    if names:
        return names[0]
    given = str(getattr(variable, "name", "")).removesuffix(":0") if isinstance(variable, _core.Variable) else ""
    if given and given != "Variable":
        return given
    made = made_at(variable)
    return f"the variable made at line {made[1]}" if made else "a tensor"


def rate_now(optimizer: Any) -> float | None:
    """The learning rate of an optimizer at its present step, if it tells."""
    rate = getattr(optimizer, "learning_rate", getattr(optimizer, "_learning_rate", None))
    try:
        return float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def learning_rate_of(
    optimizer: Any, frames: Frames, made: tuple[str, int] | None = None, is_set_there: bool = False
) -> tuple[float | None, tuple[str, int] | None]:  # fmt: skip
    """The learning rate and the line that set it: of an optimizer, else of a number with such a name.

    `made` is the line that made the optimizer, if it is known; `is_set_there` says that it set the rate, too.
    """
    if optimizer is not None:
        rate = rate_now(optimizer)
        if is_set_there:
            return rate, made
        for named in names_of(optimizer, frames):
            if (line := bound_at(named)) is not None:
                return rate, (named.file, line)
        if made is not None:
            return rate, made
        for frame in frames:
            if (line := optimizer_line(frame.f_code.co_filename, frame.f_lineno)) is not None:
                return rate, (frame.f_code.co_filename, line)
        return rate, None
    for named, value in named_values(frames):
        if isinstance(value, float) and _RATE.match(named.name.rpartition(".")[2]):
            line = bound_at(Named(named.name, named.frame))
            if line is not None:
                return value, (named.file, line)
    return None, None


def rate_line(file: str, line: int) -> tuple[str, int]:
    """Of an update that the program writes itself: where the rate that it names was set, else the update."""
    bound = [at for name, at in bindings_used_at(file, line) if _RATE.match(name)]
    return file, max((at for at in bound if at <= line), default=max(bound, default=line))
