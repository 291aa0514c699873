"""Names of type specs in saved configurations, as "tf.TensorSpec"."""

from __future__ import annotations

from tapeflow.namespace import registered_definitions
from tapeflow.types.tensor_spec import TypeSpec

_class_by_name = {
    f"tf.{path}": definition
    for path, definition in registered_definitions().items()
    if "." not in path and isinstance(definition, type) and issubclass(definition, TypeSpec)
}
_name_by_class = {kind: name for name, kind in _class_by_name.items()}


def get_name(kind: type) -> str:
    """The name of a class of specs."""
    if kind not in _name_by_class:
        raise ValueError(f"TypeSpec {kind.__module__}.{kind.__name__} has not been registered.")
    return _name_by_class[kind]


def lookup(name: str) -> type:
    """The class of specs with a name."""
    if name not in _class_by_name:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return _class_by_name[name]
