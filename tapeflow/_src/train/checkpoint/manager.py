"""`tf.train.CheckpointManager`: several checkpoints in a folder, of which the oldest are deleted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.checkpoint import Checkpoint, CheckpointOptions
from tapeflow._src.train.checkpoint.graph_sessions import is_in_graph, needed_session
from tapeflow._src.train.checkpoint.state import (
    CheckpointState,
    get_checkpoint_state,
    read_latest,
    write_checkpoint_state,
)
from tapeflow._src.train.checkpoint.tensor_bundle import bundle_exists, delete_bundle
from tapeflow._src.types.errors import NotFoundError
from tapeflow._src.types.logging import warn


@public("train.CheckpointManager")
class CheckpointManager:
    """Keeps the last `max_to_keep` checkpoints of an object in a folder.

    >>> step = tf.Variable(0)
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), "checkpoints", max_to_keep=2)
    >>> for _ in range(3):
    ...     path = manager.save()
    >>> manager.checkpoints
    ['checkpoints/ckpt-2', 'checkpoints/ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._max_to_keep, self._keep_hours = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval, self._init = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        state = get_checkpoint_state(self._directory)
        self._latest_checkpoint: str | None = None
        self._last_preserved = time.time() - 1.0
        self._time_by_path: dict[str, float] = {}
        if state is not None:
            self._latest_checkpoint = state.model_checkpoint_path
            self._recover(state)

    def _recover(self, state: CheckpointState) -> None:
        """Goes on where another manager stopped. What was saved without one, and so without a time, is not deleted."""
        now = time.time()
        preserved = self._last_preserved = state.last_preserved_timestamp
        if now < preserved:
            warn(
                "time.time() returned a value %f seconds behind the last preserved checkpoint timestamp.",
                preserved - now,
            )
            self._last_preserved = now
        for path, saved in zip(state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps):
            saved = min(saved, now)
            if saved > self._last_preserved and bundle_exists(path):
                self._time_by_path[path] = saved

    directory = property(lambda self: self._directory, doc="The folder.")
    checkpoint = property(lambda self: self._checkpoint, doc="What is saved.")
    checkpoint_interval = property(lambda self: self._interval, doc="At least so many steps lie between two saves.")
    latest_checkpoint = property(lambda self: self._latest_checkpoint, doc="The path of the last checkpoint, or None.")

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept for a time, the oldest first."""
        return list(self._time_by_path)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Saves a checkpoint and deletes those that are too many; gives its path, None if it is too early for one."""
        due = None if self._interval is None or self._last_step is None else self._last_step + self._interval
        if due is not None and check_interval and self._step() < due:
            return None
        if self._step_counter is not None:
            self._last_step = self._step()
        counted = self._checkpoint._count_save(None)
        number = counted if checkpoint_number is None else checkpoint_number
        path: str = self._checkpoint.write(f"{self._prefix}-{_number(number)}", options)
        self._time_by_path.pop(path, None)
        self._time_by_path[path] = time.time()
        self._latest_checkpoint = path
        self._record_state(path)  # before a reader can miss the one that it named
        if self._delete_old():
            self._record_state(path)
        return path

    def _record_state(self, path: str) -> None:
        state = CheckpointState(path, self.checkpoints, list(self._time_by_path.values()), self._last_preserved)
        write_checkpoint_state(self._directory, state)

    def _step(self) -> int:
        return _number(self._step_counter)

    def _delete_old(self) -> bool:
        """Deletes the checkpoints that are too many; whether there were any."""
        before = len(self._time_by_path)
        while self._max_to_keep is not None and len(self._time_by_path) > self._max_to_keep:
            path = next(iter(self._time_by_path))
            saved = self._time_by_path.pop(path)
            if self._keep_hours is not None and saved - self._keep_hours * 3600.0 >= self._last_preserved:
                self._last_preserved = saved
            else:
                self._delete(path)
        return len(self._time_by_path) < before

    def _delete(self, path: str) -> None:
        """Deletes a checkpoint of the folder; what the file `checkpoint` names elsewhere is not touched."""
        if os.path.dirname(os.path.abspath(path)) == os.path.abspath(self._directory):
            delete_bundle(path)

    def restore_or_initialize(self) -> str | None:
        """Restores the last checkpoint, or else calls `init_fn`; gives the path of the checkpoint, or None."""
        if self._latest_checkpoint is not None:
            self._restore_latest(self._latest_checkpoint)
            if self._step_counter is not None:
                self._last_step = self._step()
            return self._latest_checkpoint
        if self._init is not None:
            self._init()
        return None

    def _restore_latest(self, path: str) -> None:
        """Restores a checkpoint, or the last one of the folder if another manager has deleted it meanwhile."""
        try:
            self._checkpoint.restore(path, None)
        except NotFoundError:
            if bundle_exists(path) or read_latest(self._directory, self._restored) is None:
                raise

    def _restored(self, path: str) -> str:
        self._checkpoint.restore(path, None)
        self._latest_checkpoint = path
        return path

    def sync(self) -> None:
        """Waits for files that are being written: none are."""


def _number(value: Any) -> int:
    """The value of a number; that of a variable or tensor of a graph is the session's."""
    return int(needed_session(None).run(value)) if is_in_graph(value) else int(value)
