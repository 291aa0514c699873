"""`tf.compat.v1.train.MonitoredSession`: a session that initialises, saves and stops by itself, with hooks."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph_def import write_graph
from tapeflow._src.compat.v1.queues.queue_runner import start_queue_runners
from tapeflow._src.compat.v1.sessions.coordinator import Coordinator
from tapeflow._src.compat.v1.sessions.scaffold import ChiefSessionCreator, Scaffold
from tapeflow._src.compat.v1.summaries import FileWriterCache
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.compat.v1.train.training_step import get_global_step
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import AbortedError, OutOfRangeError, UnavailableError
from tapeflow._src.types.logging import get_logger


@public("compat.v1.train.SessionRunArgs")
class SessionRunArgs(NamedTuple):
    """What a hook wants to be fetched and fed besides.

    >>> tf.compat.v1.train.SessionRunArgs("loss:0").fetches
    'loss:0'
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


@public("compat.v1.train.SessionRunValues")
class SessionRunValues(NamedTuple):
    """What a run gave to a hook.

    >>> tf.compat.v1.train.SessionRunValues(1, None, None).results
    1
    """

    results: Any
    options: Any
    run_metadata: Any


@public("compat.v1.train.SessionRunContext")
class SessionRunContext:
    """A run that hooks see: what was asked for, in which session, and whether to stop after it.

    >>> context = tf.compat.v1.train.SessionRunContext(None, None)
    >>> context.request_stop()
    >>> context.stop_requested
    True
    """

    def __init__(self, original_args: Any, session: Any) -> None:
        self.original_args, self.session, self.stop_requested = original_args, session, False

    def request_stop(self) -> None:
        """The session is to stop after this run."""
        self.stop_requested = True


@public("compat.v1.train.SessionRunHook")
class SessionRunHook:
    """What can be done around the runs of a monitored session; each method does nothing by itself.

    >>> tf.compat.v1.train.SessionRunHook().before_run(None)
    """

    def begin(self) -> None:
        """Before the session exists: operations may still be added."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """When the session has its values."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before a run: what to fetch besides."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """After a run."""

    def end(self, session: Any) -> None:
        """At the end, if there was no error."""


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
        if save_secs is not None and save_steps is not None:
            raise ValueError("Can not provide both save_secs and save_steps.")
        self._folder, self._prefix = checkpoint_dir, os.path.join(checkpoint_dir, checkpoint_basename)
        self._save_graph_def = save_graph_def
        self._seconds, self._steps, self._saver, self._scaffold = save_secs, save_steps, saver, scaffold
        self._listeners = list(listeners or [])
        self._saved_step = self._saved_time = 0.0
        self._step: Any = None

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

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves if it is time."""
        step = int(run_context.session.run(self._step))
        by_steps = self._steps is not None and step - self._saved_step >= self._steps
        by_time = self._seconds is not None and time.monotonic() - self._saved_time >= self._seconds
        if (by_steps or by_time) and self._save(run_context.session, step):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Saves the last values."""
        step = int(session.run(self._step))
        if step != self._saved_step:
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
        self._saved_step, self._saved_time = step, time.monotonic()
        answers = [listener.after_save(session, step) for listener in self._listeners]
        return any(answers)


class _MonitoredSession:
    """A session with hooks around its runs. It is used in a `with` statement, and is stopped by a hook."""

    def __init__(self, creator: Any, hooks: Any = None, grace_seconds: float = 120) -> None:
        self._hooks, self._grace_seconds = list(hooks or []), grace_seconds
        self._creator = creator or ChiefSessionCreator()
        for hook in self._hooks:
            hook.begin()
        self._start()

    _recovers = False  # whether a run that a lost worker has ended is run again, in a new session

    def _start(self) -> None:
        self._session: Any = self._creator.create_session()
        self._coordinator = Coordinator()
        start_queue_runners(self._session, self._coordinator)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)

    @property
    def graph(self) -> Any:
        """The graph that it runs; None if the session is closed."""
        return None if self._session is None else self._session.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of the fetches; hooks see the run."""
        while True:
            try:
                return self._run_once(fetches, feed_dict, options, run_metadata)
            except (AbortedError, UnavailableError) as error:
                if not self._recovers:
                    raise
                get_logger().info(
                    "An error was raised. This may be due to a preemption in a connected worker. The current session "
                    "will be closed and a new session will be created. Error: %s",
                    error,
                )
                self._close(failed=True)
                self._start()

    def _run_once(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        if self._session is None:
            raise RuntimeError("Attempted to use a closed Session.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict, options), self._session)
        wanted: dict[Any, Any] = {-1: fetches}
        fed = dict(feed_dict or {})
        for i, hook in enumerate(self._hooks):
            asked = hook.before_run(context)
            if asked is not None:
                if asked.fetches is not None:
                    wanted[i] = asked.fetches
                fed.update(asked.feed_dict or {})
        found = self._session.run(wanted, fed or None)
        for i, hook in enumerate(self._hooks):
            hook.after_run(context, SessionRunValues(found.get(i), options, run_metadata))
        if context.stop_requested:
            self._coordinator.request_stop()
        return found[-1]

    def should_stop(self) -> bool:
        """Whether a hook, or a thread that fills a queue, has asked to stop."""
        return self._session is None or self._coordinator.should_stop()

    def run_step_fn(self, step_fn: Any) -> Any:
        """Calls a function with a context that runs this session without and with hooks."""
        return step_fn(_StepContext(self))

    def close(self) -> None:
        """Lets the hooks end, and ends the session."""
        self._close(failed=False)

    def _close(self, failed: bool) -> None:
        if self._session is None:
            return
        try:
            if not failed:
                for hook in self._hooks:
                    hook.end(self._session)
            self._coordinator.request_stop()
            self._coordinator.join(stop_grace_period_secs=self._grace_seconds, ignore_live_threads=True)
        finally:
            self._session.close()
            self._session = None

    def __enter__(self) -> _MonitoredSession:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        ended = kind is not None and issubclass(kind, OutOfRangeError | StopIteration)
        self._close(failed=kind is not None and not ended)
        return ended


class _StepContext:
    def __init__(self, session: _MonitoredSession) -> None:
        self._monitored, self.session = session, session._session
        self.run_with_hooks = session.run

    def request_stop(self) -> None:
        """The session is to stop."""
        self._monitored._coordinator.request_stop()


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
        return self._session
