"""Names of type specs in saved configurations and SavedModels, as "my_project.MySpec"."""

from __future__ import annotations

import re
from collections.abc import Callable

from tapeflow._src.namespace import registered_definitions
from tapeflow._src.types.tensor_spec import TypeSpec

class_by_name: dict[str, type] = {}
name_by_class: dict[type, str] = {}


def name_public_specs() -> None:
    """Gives the public specs their names, as "tf.TensorSpec"; once all of them are defined."""
    for path, definition in registered_definitions().items():
        if "." not in path and isinstance(definition, type) and issubclass(definition, TypeSpec):
            class_by_name[f"tf.{path}"] = definition
            name_by_class[definition] = f"tf.{path}"


def get_name(kind: type) -> str:
    """The name of a class of specs."""
    if kind not in name_by_class:
        raise ValueError(f"TypeSpec {kind.__module__}.{kind.__name__} has not been registered.")
    return name_by_class[kind]


def lookup(name: str) -> type:
    """The class of specs with a name."""
    if name not in class_by_name:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return class_by_name[name]


def register(name: str) -> Callable[[type], type]:
    """A decorator that gives a class of specs its name, as "my_project.MyTypeSpec"."""
    if not isinstance(name, str):
        raise TypeError(f"Expected `name` to be a string; got {name!r}")
    if not re.fullmatch(r"(\w+\.)+\w+", name):
        raise ValueError(
            "Registered name must have the form '{project_name}.{type_name}' (e.g. 'my_project.MyTypeSpec'); "
            f"got {name!r}."
        )

    def decorate(kind: type) -> type:
        if not (isinstance(kind, type) and issubclass(kind, TypeSpec)):
            raise TypeError(f"Expected `cls` to be a TypeSpec; got {kind!r}")
        if kind in name_by_class:
            given = name_by_class[kind]
            raise ValueError(f"Class {kind.__module__}.{kind.__name__} has already been registered with name {given}.")
        if name in class_by_name:
            other = class_by_name[name]
            raise ValueError(f"Name {name} has already been registered for class {other.__module__}.{other.__name__}.")
        name_by_class[kind], class_by_name[name] = name, kind
        return kind

    return decorate
