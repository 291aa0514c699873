"""`tf.train.experimental.PythonState`: state of an object that is no variable, in checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.types.trackable import Trackable


@public("train.experimental.PythonState")
class PythonState(Trackable):
    """An object whose state is bytes: a subclass gives `serialize()` and `deserialize(string_value)`.

    >>> class Name(tf.train.experimental.PythonState):
    ...     value = "a"
    ...     def serialize(self):
    ...         return self.value.encode()
    ...     def deserialize(self, string_value):
    ...         self.value = string_value.decode()
    >>> Name().serialize()
    b'a'
    """

    _checkpoint_attribute = "py_state"

    def serialize(self) -> Any:
        """The state as bytes or text."""
        raise NotImplementedError(f"{type(self).__name__} must define serialize()")

    def deserialize(self, string_value: bytes) -> None:
        """Takes over a state that `serialize` gave."""
        raise NotImplementedError(f"{type(self).__name__} must define deserialize(string_value)")

    def _checkpoint_value(self) -> np.ndarray:
        state = self.serialize()
        return np.array(state.encode() if isinstance(state, str) else state, object)

    def _restore_checkpoint_value(self, value: np.ndarray) -> None:
        state: bytes = value.item()
        self.deserialize(state)
