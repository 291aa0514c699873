"""The file `checkpoint` in a folder: which checkpoints it holds, and which is the last."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.tensor_bundle import bundle_exists
from tapeflow._src.types.errors import NotFoundError

Result = TypeVar("Result")

_LINE = re.compile(r'^\s*(\w+):\s*(?:"((?:[^"\\]|\\.)*)"|(\S+))\s*$')


class CheckpointState:
    """Which checkpoints a folder holds."""

    def __init__(
        self,
        model_checkpoint_path: str,
        all_model_checkpoint_paths: Sequence[str],
        all_model_checkpoint_timestamps: Sequence[float] = (),
        last_preserved_timestamp: float = 0.0,
    ) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = list(all_model_checkpoint_paths)
        self.all_model_checkpoint_timestamps = list(all_model_checkpoint_timestamps)
        self.last_preserved_timestamp = last_preserved_timestamp

    def __str__(self) -> str:
        lines = [f'model_checkpoint_path: "{_escaped(self.model_checkpoint_path)}"']
        lines += [f'all_model_checkpoint_paths: "{_escaped(path)}"' for path in self.all_model_checkpoint_paths]
        lines += [f"all_model_checkpoint_timestamps: {time!r}" for time in self.all_model_checkpoint_timestamps]
        if self.last_preserved_timestamp:
            lines.append(f"last_preserved_timestamp: {self.last_preserved_timestamp!r}")
        return "\n".join(lines) + "\n"

    __repr__ = __str__


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _state_file(folder: str, latest_filename: str | None) -> str:
    return os.path.join(folder, latest_filename or "checkpoint")


def write_checkpoint_state(folder: str, state: CheckpointState, latest_filename: str | None = None) -> None:
    """Writes which checkpoints a folder holds; paths inside the folder are written relative to it."""

    def relative(path: str) -> str:
        inside = os.path.relpath(path, folder or ".")
        return path if inside.startswith(os.pardir) else inside

    paths = [relative(path) for path in state.all_model_checkpoint_paths]
    written = CheckpointState(
        relative(state.model_checkpoint_path),
        paths,
        state.all_model_checkpoint_timestamps,
        state.last_preserved_timestamp,
    )
    file = _state_file(folder, latest_filename)
    write_atomically(file, str(written).encode())


@public("train.get_checkpoint_state", "compat.v1.train.get_checkpoint_state")
def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """Which checkpoints a folder holds, or None.

    >>> tf.train.get_checkpoint_state("/no/such/folder")
    """
    folder = os.fspath(checkpoint_dir)
    try:
        with open(_state_file(folder, latest_filename), encoding="utf-8") as stream:
            found = [match for match in map(_LINE.match, stream) if match]
    except (OSError, UnicodeDecodeError):
        return None
    values: dict[str, list[str]] = {}
    for match in found:
        text = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        values.setdefault(match[1], []).append(text)
    if not values.get("model_checkpoint_path"):
        raise ValueError(f"Invalid checkpoint state loaded from {folder}: it names no checkpoint")
    try:
        times = [float(time) for time in values.get("all_model_checkpoint_timestamps", ())]
        last = float(values.get("last_preserved_timestamp", ["0"])[0])
    except ValueError:
        return None
    paths = [os.path.join(folder, path) for path in values.get("all_model_checkpoint_paths", ())]
    return CheckpointState(os.path.join(folder, values["model_checkpoint_path"][0]), paths, times, last)


@public("train.latest_checkpoint", "compat.v1.train.latest_checkpoint")
def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the last checkpoint in a folder, or None.

    >>> tf.train.latest_checkpoint("/no/such/folder")
    """
    path = None
    while True:
        state = get_checkpoint_state(checkpoint_dir, latest_filename)
        if state is None or state.model_checkpoint_path == path:
            return None
        path = state.model_checkpoint_path
        if bundle_exists(path):
            return path  # else it may have been deleted since the file was read, which names a newer one then


def read_latest(checkpoint_dir: Any, read: Callable[[str], Result]) -> Result | None:
    """What `read` gives for the last checkpoint of a folder, or None if it has none.

    It is called again if the checkpoint was deleted meanwhile because there is a newer one.
    """
    path = None
    while True:
        before, path = path, latest_checkpoint(checkpoint_dir)
        if path is None:
            return None
        try:
            return read(path)
        except NotFoundError:
            if path == before or bundle_exists(path):
                raise


@public("compat.v1.train.checkpoint_exists")
def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether there is a checkpoint at this path.

    >>> tf.compat.v1.train.checkpoint_exists("/no/such/file")
    False
    """
    return bundle_exists(os.fspath(checkpoint_prefix))
