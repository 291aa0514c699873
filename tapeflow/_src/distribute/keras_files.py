"""Files that Keras's callbacks write: on several workers the first one writes, and the others wait until it has."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tapeflow._src.distribute.communicator import Communicator

# Keras has no hook for this. Its callbacks write where all workers share a folder, and would overwrite each other.
_WRITERS = {
    "keras.src.callbacks.model_checkpoint": ("ModelCheckpoint", ("_save_model",)),
    "keras.src.callbacks.backup_and_restore": ("BackupAndRestore", ("_save_model", "on_train_end")),
}
_done: set[str] = set()


def write_on_first_worker(group: Communicator) -> None:
    """Lets the callbacks of Keras, as far as it is imported, write on the first worker alone."""
    for name in _WRITERS.keys() - _done:
        module = sys.modules.get(name)
        if module is None:
            continue
        kind, methods = _WRITERS[name]
        callback = getattr(module, kind)
        for method in methods:
            setattr(callback, method, _on_first_worker(getattr(callback, method), group, f"{kind}.{method}"))
        _done.add(name)


def _on_first_worker(write: Callable[..., None], group: Communicator, what: str) -> Callable[..., None]:
    @functools.wraps(write)
    def write_and_wait(*args: Any, **kwargs: Any) -> None:
        if group.rank == 0:
            write(*args, **kwargs)
        group.barrier(f"keras.callbacks.{what} of the first worker")

    return write_and_wait
