"""What Keras does together: the first worker writes files; all replicas skip a step of infinite gradients."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tapeflow._src.distribute.communicator import Communicator
from tapeflow._src.distribute.context import ReduceOp, get_replica_context
from tapeflow._src.distribute.values import select
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.dtypes import float32

# Keras has no hook for this. Its callbacks write where all workers share a folder, and would overwrite each other.
_WRITERS = {
    "keras.src.callbacks.model_checkpoint": ("ModelCheckpoint", ("_save_model",)),
    "keras.src.callbacks.backup_and_restore": ("BackupAndRestore", ("_save_model", "on_train_end")),
}
_LOSS_SCALES = "keras.src.optimizers.loss_scale_optimizer"
_TRAINER = "keras.src.backend.tensorflow.trainer"
_done: set[str] = set()


def work_together(group: Communicator) -> None:
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


def train_together() -> None:
    """Lets the loss scales of Keras, if they are imported, change in all replicas alike, and its models be built from
    a batch whose parts differ in size."""
    if _TRAINER in sys.modules and _TRAINER not in _done:
        trainer = sys.modules[_TRAINER].TensorFlowTrainer
        trainer._maybe_symbolic_build = _from_one_part(trainer._maybe_symbolic_build)
        _done.add(_TRAINER)
    if _LOSS_SCALES in sys.modules and _LOSS_SCALES not in _done:
        optimizer = sys.modules[_LOSS_SCALES].LossScaleOptimizer
        optimizer.check_finite = _in_all_replicas(optimizer.check_finite)
        _done.add(_LOSS_SCALES)


def _on_first_worker(write: Callable[..., None], group: Communicator, what: str) -> Callable[..., None]:
    @functools.wraps(write)
    def write_and_wait(*args: Any, **kwargs: Any) -> None:
        if group.rank == 0:
            write(*args, **kwargs)
        group.barrier(f"keras.callbacks.{what} of the first worker")

    return write_and_wait


def _in_all_replicas(check_finite: Callable[..., Any]) -> Callable[..., Any]:
    """Gradients are added after the check, so those of all replicas must be finite."""

    @functools.wraps(check_finite)
    def check(*args: Any, **kwargs: Any) -> Any:
        finite, replica = check_finite(*args, **kwargs), get_replica_context()
        if replica is None or replica.num_replicas_in_sync == 1:
            return finite
        return replica.all_reduce(ReduceOp.SUM, 1.0 - cast(finite, float32)) < 0.5

    return check


def _from_one_part(build: Callable[..., Any]) -> Callable[..., Any]:
    """Models are built from the shapes of a batch: those of a replica's part. Keras takes the mean of all parts, which
    exists only if they are equally large."""

    @functools.wraps(build)
    def build_from_one_part(trainer: Any, iterator: Any = None, data_batch: Any = None) -> Any:
        strategy = trainer._distribute_strategy
        if strategy is None or iterator is None:
            return build(trainer, iterator, data_batch)
        batch = next(iter(iterator))[-1]
        return build(trainer, None, select(next(batch), 0))

    return build_from_one_part
