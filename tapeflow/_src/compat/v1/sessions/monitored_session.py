"""`tf.compat.v1.train.MonitoredSession`: a session that initialises, saves and stops by itself, with hooks."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.graph.graph_def import write_graph
from tapeflow._src.compat.v1.sessions.scaffold import ChiefSessionCreator, Scaffold
from tapeflow._src.compat.v1.sessions.session_hooks import SecondOrStepTimer
from tapeflow._src.compat.v1.sessions.session_layers import (
    CoordinatedSessionCreator,
    RecoverableSession,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tapeflow._src.compat.v1.summaries import FileWriterCache
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.compat.v1.train.training_step import get_global_step
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import OutOfRangeError


@public("compat.v1.train.StopAtStepHook")
class StopAtStepHook(SessionRunHook):
    """Stops after a number of steps, or at a step.

    >>> hook = tf.compat.v1.train.StopAtStepHook(last_step=100)
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("Exactly one of num_steps or last_step must be specified.")
        self._count, self._last = num_steps, last_step
        self._step: Any = None

    def begin(self) -> None:
        """Finds the global step."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use StopAtStepHook.")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Finds out the last step."""
        if self._last is None:
            self._last = int(session.run(self._step)) + (self._count or 0)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """The step is wanted."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Stops if this was the last step."""
        if run_values.results + 1 >= self._last and run_context.session.run(self._step) >= self._last:
            run_context.request_stop()


@public("compat.v1.train.NanLossDuringTrainingError")
class NanLossDuringTrainingError(RuntimeError):
    """The loss was not a number.

    >>> issubclass(tf.compat.v1.train.NanLossDuringTrainingError, RuntimeError)
    True
    """

    def __str__(self) -> str:
        return "NaN loss during training."


@public("compat.v1.train.NanTensorHook")
class NanTensorHook(SessionRunHook):
    """Raises an error, or stops, when the loss is not a number.

    >>> hook = tf.compat.v1.train.NanTensorHook("loss:0", fail_on_nan_loss=False)
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """The loss is wanted."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at the loss."""
        if not np.any(np.isnan(run_values.results)):
            return
        if self._fails:
            raise NanLossDuringTrainingError
        run_context.request_stop()


@public("compat.v1.train.CheckpointSaverListener")
class CheckpointSaverListener:
    """What can be done before and after the checkpoints of a `CheckpointSaverHook`.

    >>> tf.compat.v1.train.CheckpointSaverListener().before_save(None, 7)
    """

    def begin(self) -> None:
        """Before the session exists."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """After it was written; True asks the session to stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """At the end, after the last checkpoint."""


@public("compat.v1.train.CheckpointSaverHook")
class CheckpointSaverHook(SessionRunHook):
    """Saves the variables every so many seconds or steps, and at the end.

    >>> hook = tf.compat.v1.train.CheckpointSaverHook("folder", save_steps=100)
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._folder, self._prefix = checkpoint_dir, os.path.join(checkpoint_dir, checkpoint_basename)
        self._save_graph_def = save_graph_def
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._saver, self._scaffold = saver, scaffold
        self._listeners = list(listeners or [])
        self._steps_per_run = 1
        self._step: Any = None

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        """Says by how much one run moves the global step."""
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step, the saver and the event file."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use CheckpointSaverHook.")
        self._writer = FileWriterCache.get(self._folder)
        if self._saver is None and self._scaffold is None:
            self._saver = Scaffold.get_or_default("saver", GraphKeys.SAVERS, Saver)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph, and saves what there is at the beginning."""
        step = int(session.run(self._step))
        if self._save_graph_def:
            write_graph(session.graph.as_graph_def(add_shapes=True), self._folder, "graph.pbtxt")
        self._writer.add_graph(session.graph)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """The step is wanted."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves if it is time: the step is read again only then."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + self._steps_per_run):
            return
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Saves the last values."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Writes a checkpoint; whether a listener wants to stop."""
        for listener in self._listeners:
            listener.before_save(session, step)
        os.makedirs(os.path.dirname(self._prefix), exist_ok=True)
        saver = self._scaffold.saver if self._saver is None else self._saver
        saver.save(session, self._prefix, global_step=step, write_meta_graph=self._save_graph_def)
        log = messages.SessionLog(status=messages.SessionLog.CHECKPOINT, checkpoint_path=self._prefix)
        self._writer.add_session_log(log, step)
        answers = [listener.after_save(session, step) for listener in self._listeners]
        return any(answers)


class _MonitoredSession:
    """A session with hooks around its runs. It is used in a `with` statement, and is stopped by a hook."""

    _recovers = False  # whether a run that a lost worker has ended is run again, in a new session

    def __init__(self, creator: Any, hooks: Any = None, grace_seconds: float = 120) -> None:
        self._hooks = list(hooks or [])
        self._graph_was_finalized = get_default_graph().finalized
        for hook in self._hooks:
            hook.begin()
        creator = CoordinatedSessionCreator(creator or ChiefSessionCreator(), self._hooks, grace_seconds)
        self._coordinated_creator = creator
        self._sess: Any = RecoverableSession(creator) if self._recovers else creator.create_session()

    @property
    def graph(self) -> Any:
        """The graph that it runs; None if the session is closed."""
        return None if self._tf_sess() is None else self._tf_sess().graph

    def _is_closed(self) -> bool:
        """Whether it was closed."""
        return self._tf_sess() is None

    def _tf_sess(self) -> Any:
        """The session without hooks; None if it is closed."""
        return self._coordinated_creator.tf_sess

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of the fetches; hooks see the run."""
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def should_stop(self) -> bool:
        """Whether a hook, or a thread that fills a queue, has asked to stop."""
        return self._sess is None or self._sess.should_stop()

    def run_step_fn(self, step_fn: Any) -> Any:
        """Calls a function with a context that runs this session without and with hooks."""
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if it's "
                f"an instance method. Got {names} instead."
            )
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def close(self) -> None:
        """Lets the hooks end, and ends the session."""
        self._close(failed=False)

    def _close(self, failed: bool) -> None:
        try:
            if not failed:
                for hook in self._hooks:
                    hook.end(self._tf_sess())
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = self._coordinated_creator.tf_sess = self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph().frozen = False

    def __enter__(self) -> _MonitoredSession:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        ended = kind is not None and issubclass(kind, OutOfRangeError | StopIteration)
        self._close(failed=kind is not None and not ended)
        return ended


@public("compat.v1.train.MonitoredSession")
class MonitoredSession(_MonitoredSession):
    """A session with hooks, whose variables are initialised. After AbortedError or UnavailableError it begins anew.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     with tf.compat.v1.train.MonitoredSession() as session:
    ...         session.run(v)
    np.float32(2.0)
    """

    _recovers = True

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: int = 120) -> None:
        super().__init__(session_creator, hooks, stop_grace_period_secs)


@public("compat.v1.train.SingularMonitoredSession")
class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks, whose variables are initialised, or restored from a folder.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     with tf.compat.v1.train.SingularMonitoredSession() as session:
    ...         session.run(v)
    np.float32(2.0)
    """

    def __init__(
        self,
        hooks: Any = None,
        scaffold: Any = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: int = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session without hooks."""
        return self._tf_sess()
