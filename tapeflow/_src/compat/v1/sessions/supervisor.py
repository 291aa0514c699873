"""`tf.compat.v1.train.Supervisor`: a session that is restored, saved and summarised by threads beside the program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.queues.queue_runner import start_queue_runners
from tapeflow._src.compat.v1.sessions.coordinator import Coordinator, LooperThread
from tapeflow._src.compat.v1.sessions.scaffold import Scaffold, SessionManager
from tapeflow._src.compat.v1.summaries import FileWriter, merge_all
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.compat.v1.train.training_step import get_global_step
from tapeflow._src.compat.v1.variables.variables import (
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
)
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.logging import get_logger

_DEFAULT = 0  # TensorFlow's mark for what the supervisor makes itself; None means that there is none


@public("compat.v1.train.Supervisor")
class Supervisor:
    """Looks after a training session: restores or initialises it, and saves and summarises it every so many seconds.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     supervisor = tf.compat.v1.train.Supervisor()
    ...     with supervisor.managed_session() as session:
    ...         session.run(v)
    np.float32(2.0)
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self, graph: Any = None, ready_op: Any = _DEFAULT, ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True, init_op: Any = _DEFAULT, init_feed_dict: Any = None, local_init_op: Any = _DEFAULT,
        logdir: str | None = None, summary_op: Any = _DEFAULT, saver: Any = _DEFAULT, global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120, save_model_secs: float = 600, recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120, checkpoint_basename: str = "model.ckpt", session_manager: Any = None,
        summary_writer: Any = _DEFAULT, init_fn: Any = None, local_init_run_options: Any = None,
    ) -> None:  # fmt: skip
        self._graph, self._is_chief, self._logdir = graph or get_default_graph(), is_chief, logdir
        self._init_feed_dict, self._init_fn, self._grace = init_feed_dict, init_fn, stop_grace_secs
        self._save_summaries_secs, self._save_model_secs = save_summaries_secs, save_model_secs
        self._coord = Coordinator()
        self._save_path = os.path.join(logdir, checkpoint_basename) if logdir else None
        found = Scaffold.get_or_default
        with self._graph.as_default():
            self._ready_op = _made(ready_op, report_uninitialized_variables)
            self._ready_for_local = _made(
                ready_for_local_init_op, lambda: report_uninitialized_variables(global_variables())
            )
            self._init_op = _made(init_op, lambda: found("init_op", GraphKeys.INIT_OP, global_variables_initializer))
            self._local_init_op = _made(
                local_init_op, lambda: found("local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
            )
            self._saver = _made(saver, lambda: found("saver", GraphKeys.SAVERS, Saver) if global_variables() else None)
            self._summary_op = _made(summary_op, lambda: found("summary_op", GraphKeys.SUMMARY_OP, merge_all))
            self._global_step = _made(global_step, get_global_step)
        self._writer = _made(summary_writer, lambda: FileWriter(logdir) if logdir and is_chief else None)
        self._manager = session_manager or SessionManager(
            self._local_init_op, self._ready_op, self._ready_for_local if self._local_init_op is not None else None,
            self._graph, recovery_wait_secs,
        )  # fmt: skip
        self._graph.finalize()

    is_chief = property(lambda self: self._is_chief, doc="Whether it initialises and saves.")
    session_manager = property(lambda self: self._manager, doc="What makes its sessions.")
    coord = property(lambda self: self._coord, doc="The coordinator of its threads.")
    init_op = property(lambda self: self._init_op, doc="The operation that initialises variables.")
    init_feed_dict = property(lambda self: self._init_feed_dict, doc="What it is fed.")
    ready_op = property(lambda self: self._ready_op, doc="The names of variables without a value.")
    ready_for_local_init_op = property(lambda self: self._ready_for_local, doc="The same before local ones.")
    summary_writer = property(lambda self: self._writer, doc="The writer of summaries.")
    summary_op = property(lambda self: self._summary_op, doc="All summaries of the graph, or None.")
    save_summaries_secs = property(lambda self: self._save_summaries_secs, doc="How often summaries are written.")
    global_step = property(lambda self: self._global_step, doc="The global step, or None.")
    saver = property(lambda self: self._saver, doc="The saver.")
    save_model_secs = property(lambda self: self._save_model_secs, doc="How often the variables are saved.")
    save_path = property(lambda self: self._save_path, doc="Where they are saved, without the step.")

    # ---- sessions

    def prepare_or_wait_for_session(
        self, master: str = "", config: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:  # fmt: skip
        """A session with values, whose queues are being filled; threads save and summarise it."""
        self._coord.clear_stop()
        if not self._is_chief:
            session = self._manager.wait_for_session(master, config, max_wait_secs)
        else:
            session = self._manager.prepare_session(
                master, self._init_op, self._saver, self._logdir, None, wait_for_checkpoint, max_wait_secs, config,
                self._init_feed_dict, self._init_fn,
            )  # fmt: skip
            if start_standard_services:
                self.start_standard_services(session)
        self.start_queue_runners(session)
        return session

    PrepareSession = prepare_or_wait_for_session

    @contextmanager
    def managed_session(
        self, master: str = "", config: Any = None, start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:  # fmt: skip
        """A context with such a session; an error in it or in a thread is raised, unless data came to an end."""
        session = None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            with session.as_default():
                yield session
        except Exception as error:
            self._coord.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def start_standard_services(self, sess: Any) -> list[LooperThread]:
        """Starts the threads that write summaries, the speed, and checkpoints."""
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            get_logger().warning("Standard services need a 'logdir' passed to the SessionManager")
            return []
        self._last: tuple[float, int | None] = (time.monotonic(), None)
        jobs = []
        if self._save_summaries_secs and self._writer is not None:
            if self._summary_op is not None:
                jobs.append((self._save_summaries_secs, self._summarise))
            if self._global_step is not None:
                jobs.append((self._save_summaries_secs, self._tell_speed))
        if self._saver is not None and self._save_model_secs:
            jobs.append((self._save_model_secs, self._save))
        return [LooperThread.loop(self._coord, seconds, job, (sess,)) for seconds, job in jobs]

    def _summarise(self, sess: Any) -> None:
        self.summary_computed(sess, sess.run(self._summary_op))

    def _tell_speed(self, sess: Any) -> None:
        now, step = time.monotonic(), int(sess.run(self._global_step))
        (before, last), self._last = self._last, (now, step)
        if last is not None:
            value = messages.Summary.Value(
                tag=f"{self._global_step.op.name}/sec", simple_value=(step - last) / (now - before)
            )
            self._writer.add_summary(messages.Summary(value=[value]), step)

    def _save(self, sess: Any) -> None:
        os.makedirs(str(self._logdir), exist_ok=True)
        self._saver.save(sess, self._save_path, global_step=self._global_step)

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary that the program has computed."""
        if self._writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = int(sess.run(self._global_step))
        self._writer.add_summary(summary, global_step)

    # ---- threads

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> list[Any]:
        """Starts the threads that fill queues."""
        if queue_runners is None:
            return start_queue_runners(sess, self._coord)
        started = [runner.create_threads(sess, self._coord, daemon=True, start=True) for runner in queue_runners]
        return [thread for threads in started for thread in threads]

    def loop(
        self, timer_interval_secs: float | None, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> LooperThread:
        """Starts a thread that calls a function every so many seconds."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stops the threads, and raises what went wrong in them."""
        self._coord.request_stop()
        try:
            self._coord.join(threads, self._grace, ignore_live_threads)
        finally:
            if close_summary_writer and self._writer is not None:
                self._writer.close()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether somebody asked to stop."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A context in which an exception asks all threads to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> bool:
        """Waits until somebody asks to stop."""
        return self._coord.wait_for_stop()

    StartStandardServices, SummaryComputed = start_standard_services, summary_computed
    StartQueueRunners, Loop, Stop = start_queue_runners, loop, stop
    RequestStop, ShouldStop = request_stop, should_stop
    StopOnException, WaitForStop = stop_on_exception, wait_for_stop


def _made(given: Any, make: Callable[[], Any]) -> Any:
    return make() if type(given) is int and given == _DEFAULT else given


@public("compat.v1.train.basic_train_loop")
def basic_train_loop(
    supervisor: Supervisor, train_step_fn: Callable[..., Any], args: Any = None, kwargs: Any = None, master: str = ""
) -> None:
    """Calls `train_step_fn(session, ...)` in a managed session until the supervisor stops.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     supervisor = tf.compat.v1.train.Supervisor()
    ...     def step(session):
    ...         print(session.run(v))
    ...         supervisor.request_stop()
    ...     tf.compat.v1.train.basic_train_loop(supervisor, step)
    2.0
    """
    with supervisor.managed_session(master) as session:
        while not supervisor.should_stop():
            train_step_fn(session, *(args or ()), **(kwargs or {}))
