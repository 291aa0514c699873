"""Objects that give the tensors which a checkpoint keeps for them, and take them back, by methods of their own."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core

_GIVES, _TAKES = "_serialize_to_tensors", "_restore_from_tensors"


def serializes(thing: Any) -> bool:
    """Whether an object gives its tensors by name; variables of Keras, which have a value, are saved as variables."""
    kind = type(thing)
    if issubclass(kind, _core.Variable) or not hasattr(kind, _GIVES):
        return False
    return not hasattr(kind, "value") and "value" not in getattr(thing, "__dict__", ())


class SerializedTensor:
    """One of the tensors of such an object; a callable is called for its value when a checkpoint is written."""

    def __init__(self, owner: Any, value: Any) -> None:
        self.owner, self._value = owner, value

    def tensor(self) -> Any:
        """The tensor."""
        return self._value() if callable(self._value) else self._value


def tensors_of(thing: Any) -> dict[str, SerializedTensor]:
    """What a checkpoint keeps for an object, by name."""
    return {str(name): SerializedTensor(thing, value) for name, value in getattr(thing, _GIVES)().items()}


def give_back(thing: Any, tensor_by_name: dict[str, Any]) -> Any:
    """Has an object take its tensors back; in a graph, the operation that does it."""
    return getattr(thing, _TAKES)(tensor_by_name)
