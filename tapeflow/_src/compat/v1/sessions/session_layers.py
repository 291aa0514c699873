"""The layers of a monitored session: hooks around its runs, threads that stop with it, recovery of lost workers."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src.compat.v1.queues.queue_runner import start_queue_runners
from tapeflow._src.compat.v1.sessions.coordinator import Coordinator
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import AbortedError, UnavailableError
from tapeflow._src.types.logging import get_logger

_LOST_WORKER = (AbortedError, UnavailableError)


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


class StepContext:
    """What a function of `run_step_fn` is called with."""

    def __init__(self, session: Any, run_with_hooks: Any) -> None:
        self._session, self._run = session, run_with_hooks

    @property
    def session(self) -> Any:
        """The session without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """`run` of the monitored session."""
        return self._run(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the loop around the monitored session."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class WrappedSession:
    """A session around another one: it stops when that one does."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess

    @property
    def graph(self) -> Any:
        """The graph that it runs."""
        return self._sess.graph

    @property
    def sess_str(self) -> Any:
        """The target of the session."""
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Whether this layer, or one inside, is to stop; a closed session is."""
        if self._check_stop() or self._sess is None:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        return False

    def close(self) -> None:
        """Closes the session inside; a lost worker is no error."""
        if self._sess is None:
            return
        try:
            self._sess.close()
        except _LOST_WORKER as error:
            get_logger().error(
                "An error occurred when attempting to close the session. This may be due to a preemption in a "
                "connected worker or parameter server. Error: %s",
                error,
            )
        finally:
            self._sess = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """`run` of the session inside."""
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn: Any, raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls a function with a context that runs the session without and with hooks."""
        return step_fn(StepContext(raw_session, run_with_hooks or self.run))


class RecoverableSession(WrappedSession):
    """A session that begins anew, and runs again, after a lost worker."""

    def __init__(self, sess_creator: Any) -> None:
        self._sess_creator = sess_creator
        super().__init__(self._create_session())

    def _create_session(self) -> Any:
        while True:
            try:
                return self._sess_creator.create_session()
            except _LOST_WORKER as error:
                get_logger().info("An error was raised while a session was being created; trying again. %s", error)

    def _check_stop(self) -> bool:
        try:
            return self._sess is None or self._sess._check_stop()
        except _LOST_WORKER as error:
            self._begin_anew(error)
            self._sess = self._create_session()
            return False
        except Exception:  # `should_stop` answers, whatever happened
            return True

    def _begin_anew(self, error: Exception) -> None:
        get_logger().info(
            "An error was raised. This may be due to a preemption in a connected worker. The current session will be "
            "closed and a new session will be created. Error: %s",
            error,
        )
        self.close()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """`run` of the session inside, or of the next one."""
        return self._trying(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn: Any, raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls a function with a context, again if a worker is lost."""
        return self._trying(
            lambda: self._sess.run_step_fn(step_fn, self._sess_creator.tf_sess or raw_session, run_with_hooks)
        )

    def _trying(self, call: Any) -> Any:
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create_session()
                return call()
            except _LOST_WORKER as error:
                self._begin_anew(error)


class CoordinatedSession(WrappedSession):
    """A session that stops with the threads of a coordinator, and raises what one of them raised."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord, self._stop_grace_period_secs = coord, stop_grace_period_secs

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        """Stops the threads, and closes the session inside."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except Exception as error:  # what the threads raised counts more
                get_logger().info("Closing the session raised %s", error)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """`run` of the session inside; of two errors, that of a thread if it is of a lost worker."""
        try:
            return self._sess.run(*args, **kwargs)
        except _LOST_WORKER:
            raise
        except Exception as error:
            try:
                self._coord.raise_requested_exception()
            except _LOST_WORKER:
                raise
            except Exception:
                raise error from None
            raise


class HookedSession(WrappedSession):
    """A session with hooks before and after each run."""

    def __init__(self, sess: Any, hooks: list[Any]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of the fetches; hooks may fetch and feed more, and set options."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        wanted: dict[Any, Any] = {"caller": fetches}
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        options = options or messages.RunOptions()
        feeds = self._ask_hooks(context, wanted, feed_dict, options)
        run_metadata = run_metadata or messages.RunMetadata()
        found = self._sess.run(fetches=wanted, feed_dict=feeds, options=options, run_metadata=run_metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(found.get(hook), options, run_metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return found["caller"]

    def _ask_hooks(self, context: Any, wanted: dict[Any, Any], feed_dict: Any, options: Any) -> Any:
        """What is fed, once each hook has said what it wants."""
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            asked = hook.before_run(context)
            if asked is None:
                continue
            if asked.fetches is not None:
                wanted[hook] = asked.fetches
            if asked.feed_dict:
                _check_disjoint(feeds, asked.feed_dict, "Same tensor is fed by two hooks.")
                feeds.update(asked.feed_dict)
            if asked.options:
                _merge_options(options, asked.options)
        if not feeds:
            return feed_dict
        _check_disjoint(feed_dict or {}, feeds, "Same tensor is fed by a SessionRunHook and user.")
        return feeds | dict(feed_dict or {})


def _check_disjoint(first: Any, second: Any, message: str) -> None:
    names = [getattr(tensor, "name", tensor) for tensor in second if any(tensor is other for other in first)]
    if names:
        raise RuntimeError(f"{message} Conflict(s): {', '.join(map(str, names))}")


def _merge_options(options: Any, more: Any) -> None:
    """Adds what more options ask for."""
    options.trace_level = max(options.trace_level, more.trace_level)
    options.timeout_in_ms = max(options.timeout_in_ms, more.timeout_in_ms)
    options.inter_op_thread_pool = max(options.inter_op_thread_pool, more.inter_op_thread_pool)
    options.output_partition_graphs = max(options.output_partition_graphs, more.output_partition_graphs)
    options.debug_options.debug_tensor_watch_opts.extend(more.debug_options.debug_tensor_watch_opts)


class CoordinatedSessionCreator:
    """Makes sessions with hooks and a coordinator."""

    def __init__(self, session_creator: Any, hooks: list[Any], stop_grace_period_secs: float) -> None:
        self._session_creator, self._hooks = session_creator, hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self.coord: Any = None
        self.tf_sess: Any = None

    def create_session(self) -> CoordinatedSession:
        """A new session, with the threads that fill its queues."""
        self.tf_sess = self._session_creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])
        start_queue_runners(self.tf_sess, self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        return CoordinatedSession(HookedSession(self.tf_sess, self._hooks), self.coord, self._stop_grace_period_secs)
