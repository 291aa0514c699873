"""How a session gets its values: from a checkpoint or from initializers, checked before it is used."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.sessions.session import Session
from tapeflow._src.compat.v1.summaries import merge_all
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.compat.v1.variables.variables import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.train.checkpoint.state import get_checkpoint_state, latest_checkpoint
from tapeflow._src.types.errors import DeadlineExceededError


@public("compat.v1.train.Scaffold")
class Scaffold:
    """The operations that a monitored session needs; those that are not given are made by `finalize`.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", [2])
    ...     scaffold = tf.compat.v1.train.Scaffold().finalize()
    ...     scaffold.saver
    <tf.train.Saver of v>
    """

    def __init__(
        self, init_op: Any = None, init_feed_dict: Any = None, init_fn: Any = None, ready_op: Any = None,
        ready_for_local_init_op: Any = None, local_init_op: Any = None, summary_op: Any = None, saver: Any = None,
        copy_from_scaffold: Any = None, local_init_feed_dict: Any = None,
    ) -> None:  # fmt: skip
        other = copy_from_scaffold
        if other is not None and not isinstance(other, Scaffold):
            raise TypeError(f"copy_from_scaffold should be an instance of Scaffold; got {type(other).__name__}")

        def given(value: Any, name: str) -> Any:
            return getattr(other, name) if value is None and other is not None else value

        self._init_op, self._init_feed_dict = given(init_op, "init_op"), given(init_feed_dict, "init_feed_dict")
        self._init_fn = given(init_fn and (lambda session: init_fn(self, session)), "init_fn")
        self._ready_op, self._local_init_op = given(ready_op, "ready_op"), given(local_init_op, "local_init_op")
        self._ready_for_local_init_op = given(ready_for_local_init_op, "ready_for_local_init_op")
        self._summary_op, self._saver = given(summary_op, "summary_op"), given(saver, "saver")
        self._local_init_feed_dict = given(local_init_feed_dict, "local_init_feed_dict")

    init_op = property(lambda self: self._init_op, doc="The operation that initialises variables.")
    init_feed_dict = property(lambda self: self._init_feed_dict, doc="What it is fed.")
    init_fn = property(lambda self: self._init_fn, doc="A function of the session that follows it.")
    ready_op = property(lambda self: self._ready_op, doc="The names of variables without a value.")
    ready_for_local_init_op = property(lambda self: self._ready_for_local_init_op, doc="The same before local ones.")
    local_init_op = property(lambda self: self._local_init_op, doc="The operation that initialises local variables.")
    local_init_feed_dict = property(lambda self: self._local_init_feed_dict, doc="What it is fed.")
    summary_op = property(lambda self: self._summary_op, doc="All summaries of the graph, or None.")
    saver = property(lambda self: self._saver, doc="The saver.")

    def finalize(self) -> Scaffold:
        """Makes what is missing, or finds it in the collections of the graph, to which nothing is added any more."""
        found = self.get_or_default
        self._init_op = self._init_op or found("init_op", GraphKeys.INIT_OP, global_variables_initializer)
        self._ready_op = _or(self._ready_op, found, "ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        self._ready_for_local_init_op = _or(
            self._ready_for_local_init_op, found, "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP,
            lambda: report_uninitialized_variables(global_variables()),
        )  # fmt: skip
        self._local_init_op = self._local_init_op or found(
            "local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op
        )
        self._summary_op = _or(self._summary_op, found, "summary_op", GraphKeys.SUMMARY_OP, merge_all)
        self._saver = self._saver or found("saver", GraphKeys.SAVERS, lambda: Saver(allow_empty=True, defer_build=True))
        self._saver.build()
        get_default_graph().finalize()
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one member of a collection; if there is none, a new one, which is added."""
        graph = get_default_graph()
        members = graph.get_collection(collection_key)
        if len(members) > 1:
            raise RuntimeError(
                f"More than one item in the collection {collection_key!r}. Please indicate which one to use by passing "
                f"it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if members:
            return members[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """The operation that initialises local variables and tables."""
        return group(local_variables_initializer(), tables_initializer())


def _or(value: Any, found: Any, name: str, key: str, make: Callable[[], Any]) -> Any:
    return found(name, key, make) if value is None else value


@public("compat.v1.train.SessionManager")
class SessionManager:
    """Makes sessions whose variables have values.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     start = tf.compat.v1.global_variables_initializer()
    ...     tf.compat.v1.train.SessionManager().prepare_session("", init_op=start).run(v)
    np.float32(2.0)
    """

    def __init__(
        self, local_init_op: Any = None, ready_op: Any = None, ready_for_local_init_op: Any = None, graph: Any = None,
        recovery_wait_secs: float = 30, local_init_run_options: Any = None, local_init_feed_dict: Any = None,
    ) -> None:  # fmt: skip
        self._local_init_op, self._local_feeds, self._ready_op = local_init_op, local_init_feed_dict, ready_op
        self._ready_for_local = ready_for_local_init_op
        self._graph, self._wait = graph or get_default_graph(), recovery_wait_secs
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , ready_for_local_init_op "
                f"[{ready_for_local_init_op}]"
            )

    def _restored(
        self, saver: Any, folder: Any, path: Any, wait: bool, seconds: float, config: Any
    ) -> tuple[Any, bool]:
        session = Session(graph=self._graph, config=config)
        if folder and path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        if saver is None or not (folder or path):
            return session, False
        if path:
            saver.restore(session, path)
            return session, True
        end = time.monotonic() + seconds
        while (latest := latest_checkpoint(folder)) is None:
            if not wait or time.monotonic() > end:
                return session, False
            time.sleep(min(self._wait, 1.0))
        saver.restore(session, latest)
        state = get_checkpoint_state(folder)
        if state is not None:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def prepare_session(
        self, master: str, init_op: Any = None, saver: Any = None, checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        config: Any = None, init_feed_dict: Any = None, init_fn: Any = None,
    ) -> Session:  # fmt: skip
        """A session with the values of the last checkpoint, or those that `init_op` and `init_fn` give."""
        session, restored = self._restored(
            saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        details = f"Init op: {_name(init_op)}, init fn: {init_fn}"
        problem = self._run_local(session)
        if problem:
            raise RuntimeError(f"Init operations did not make model ready for local_init.  {details}, error: {problem}")
        problem = _missing(session, self._ready_op)
        if problem:
            local = _name(self._local_init_op)
            raise RuntimeError(
                f"Init operations did not make model ready.  {details}, local_init_op: {local}, error: {problem}"
            )
        result: Session = session
        return result

    def recover_session(
        self, master: str, saver: Any = None, checkpoint_dir: Any = None, checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200, config: Any = None,
    ) -> tuple[Session, bool]:  # fmt: skip
        """A session, and whether a checkpoint gave it its values."""
        session, restored = self._restored(
            saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        ready = not self._run_local(session) and not _missing(session, self._ready_op)
        return session, restored and ready

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float = float("inf")) -> Session:
        """A session once its variables have values; in one process nobody else gives them."""
        session = Session(graph=self._graph, config=config)
        problem = self._run_local(session) or _missing(session, self._ready_op)
        if problem:
            raise DeadlineExceededError.of(f"Session was not ready after waiting. {problem}")
        return session

    def _run_local(self, session: Session) -> str | None:
        if self._local_init_op is None:
            return None
        problem = _missing(session, self._ready_for_local)
        if problem is None:
            session.run(self._local_init_op, feed_dict=self._local_feeds)
        return problem


def _name(operation: Any) -> Any:
    return getattr(operation, "name", operation)


def _missing(session: Session, ready_op: Any) -> str | None:
    """What is not initialised, or None."""
    if ready_op is None:
        return None
    names = session.run(ready_op)
    return f"Variables not initialized: {', '.join(n.decode() for n in names)}" if len(names) else None


@public("compat.v1.train.SessionCreator")
class SessionCreator:
    """Something with a method `create_session`, for `MonitoredSession`.

    >>> issubclass(tf.compat.v1.train.ChiefSessionCreator, tf.compat.v1.train.SessionCreator)
    True
    """

    def create_session(self) -> Any:
        """A session whose variables have values."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


@public("compat.v1.train.ChiefSessionCreator")
class ChiefSessionCreator(SessionCreator):
    """Makes the session of a scaffold: from the last checkpoint of a folder, or with its initializers.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", initializer=2.)
    ...     tf.compat.v1.train.ChiefSessionCreator().create_session().run(v)
    np.float32(2.0)
    """

    def __init__(
        self, scaffold: Any = None, master: str = "", config: Any = None, checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
    ) -> None:  # fmt: skip
        self._scaffold, self._master, self._config = scaffold or Scaffold(), master, config
        self._folder, self._path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """The session; from now on the graph does not change."""
        scaffold = self._scaffold.finalize()
        graph = get_default_graph()
        manager = SessionManager(
            scaffold.local_init_op, scaffold.ready_op, scaffold.ready_for_local_init_op, graph,
            local_init_feed_dict=scaffold.local_init_feed_dict,
        )  # fmt: skip
        return manager.prepare_session(
            self._master, scaffold.init_op, scaffold.saver, self._folder, self._path, config=self._config,
            init_feed_dict=scaffold.init_feed_dict, init_fn=scaffold.init_fn,
        )  # fmt: skip


@public("compat.v1.train.WorkerSessionCreator")
class WorkerSessionCreator(SessionCreator):
    """Makes a session of variables that another process initialises: there is none, so they must have values.

    >>> creator = tf.compat.v1.train.WorkerSessionCreator()
    """

    def __init__(self, scaffold: Any = None, master: str = "", config: Any = None, max_wait_secs: float = 1800) -> None:
        self._scaffold, self._master, self._config, self._seconds = (
            scaffold or Scaffold(),
            master,
            config,
            max_wait_secs,
        )

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        manager = SessionManager(scaffold.local_init_op, scaffold.ready_op, scaffold.ready_for_local_init_op)
        return manager.wait_for_session(self._master, self._config, self._seconds)
