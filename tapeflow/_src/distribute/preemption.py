"""`tf.distribute.experimental.PreemptionCheckpointHandler`: a checkpoint when the scheduler ends the job."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tapeflow._src.distribute.processes import world
from tapeflow._src.distribute.variables import SyncOnReadVariable
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.checkpoint import Checkpoint
from tapeflow._src.train.checkpoint.manager import CheckpointManager
from tapeflow._src.train.checkpoint.object_graph import ObjectGraph
from tapeflow._src.types.logging import get_logger

_RESTART_CODE = 143  # 128 + SIGTERM: what a scheduler expects of a job that it ended


@public("distribute.experimental.TerminationConfig")
class TerminationConfig:
    """How a program ends when its machine is taken away: what to call, and how long it may go on.

    >>> tf.distribute.experimental.TerminationConfig(grace_period=10).grace_period
    10
    """

    def __init__(
        self,
        termination_watcher_fn: Callable[[], bool] | None = None,
        exit_fn: Callable[[], None] | None = None,
        grace_period: float | None = None,
        save_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.termination_watcher_fn, self.exit_fn = termination_watcher_fn, exit_fn
        self.grace_period, self.save_fn = grace_period, save_fn


@public("distribute.experimental.PreemptionCheckpointHandler")
class PreemptionCheckpointHandler:
    """Saves a checkpoint on all processes at the same step after one of them got SIGTERM, and ends the program.

    `run(step)` runs a step and looks for the signal. A checkpoint that an earlier run left is restored first.

    >>> import tempfile
    >>> checkpoint = tf.train.Checkpoint(v=tf.Variable(1.))
    >>> resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    >>> handler = tf.distribute.experimental.PreemptionCheckpointHandler(resolver, checkpoint, tempfile.mkdtemp())
    >>> handler.run(lambda: 5)
    5
    """

    def __init__(
        self,
        cluster_resolver: Any,
        checkpoint_or_checkpoint_manager: Any,
        checkpoint_dir: str | None = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        given = checkpoint_or_checkpoint_manager
        if isinstance(given, Checkpoint):
            if not checkpoint_dir:
                raise ValueError("When a checkpoint is passed, a checkpoint_dir must be passed as well.")
            given = CheckpointManager(given, checkpoint_dir, max_to_keep=1)
        if not isinstance(given, CheckpointManager):
            raise TypeError(
                "PreemptionCheckpointHandler: checkpoint_or_checkpoint_manager must be a tf.train.Checkpoint or a "
                f"tf.train.CheckpointManager; got {type(given).__name__}"
            )
        self._manager, self._config = given, termination_config or TerminationConfig()
        self._group = world()
        self._signalled = False
        self._total_runs = 0
        self._before = signal.signal(signal.SIGTERM, self._note_signal)
        if self._manager.latest_checkpoint:
            self._manager.restore_or_initialize()

    @property
    def total_run_calls(self) -> int:
        """How many steps `run` has run."""
        return self._total_runs

    def _note_signal(self, number: int, frame: Any) -> None:
        self._signalled = True

    def run(self, distributed_train_function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Runs a step; then, if a process was told to end, saves a checkpoint and ends the program."""
        result = distributed_train_function(*args, **kwargs)
        self._total_runs += 1
        watcher = self._config.termination_watcher_fn
        wanted = self._signalled or (watcher is not None and bool(watcher()))
        if self._group.any(wanted, "whether a worker was told to end"):
            self._save_and_exit()
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Looks for the signal between steps that the program runs by itself."""
        if self._group.any(self._signalled, "whether a worker was told to end"):
            self._save_and_exit()

    def watch_preemption_scope(self) -> Any:
        """A block of steps at whose end the signal is looked for."""
        return _Watching(self)

    def _save_and_exit(self) -> None:
        save = self._config.save_fn or self._manager.save
        if self._group.rank == 0:
            save()
        else:
            for leaf in ObjectGraph(self._manager.checkpoint).leaf_by_key.values():
                if isinstance(leaf, SyncOnReadVariable):
                    leaf.numpy()  # its value is merged, and the first process asks for it
        self._group.barrier("checkpoint before the end")
        get_logger().info("PreemptionCheckpointHandler: a checkpoint was saved; the program ends")
        signal.signal(signal.SIGTERM, self._before)
        if self._config.exit_fn is not None:
            self._config.exit_fn()
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self._group.barrier("end")
        os._exit(_RESTART_CODE)


class _Watching:
    def __init__(self, handler: PreemptionCheckpointHandler) -> None:
        self._handler = handler

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self._handler.save_checkpoint_if_preempted()
