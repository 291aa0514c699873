"""`tf.compat.v1.train.Checkpoint`: as the one of TensorFlow 2, with the session to save in as an argument."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.checkpoint import Checkpoint
from tapeflow._src.train.checkpoint.load_status import CheckpointLoadStatus


@public("compat.v1.train.Checkpoint")
class CheckpointV1(Checkpoint):
    """Saves and restores the values of objects that hold variables; those of a graph have them in a session.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     checkpoint = tf.compat.v1.train.Checkpoint(v=tf.compat.v1.get_variable("v", initializer=3.))
    ...     checkpoint.restore(None).initialize_or_restore(session)
    ...     path = checkpoint.save("model", session=session)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(None, **kwargs)

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Writes the values to files that begin with `file_prefix`; gives it back."""
        return self._write_in(file_prefix, session)

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Writes the values to files that begin with `file_prefix` and a number; gives their common path."""
        return self._save_in(file_prefix, session)

    def restore(self, save_path: Any) -> CheckpointLoadStatus:  # type: ignore[override]
        """Puts the values of a checkpoint into the objects; those of a graph when the status says so."""
        return super().restore(save_path)
