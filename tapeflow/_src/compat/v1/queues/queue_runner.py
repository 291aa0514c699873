"""`tf.train.QueueRunner`: threads that run the operations that fill a queue, until it is closed or all shall stop."""

from __future__ import annotations

import logging
import threading
from typing import Any
from weakref import WeakKeyDictionary

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import defaults, get_default_graph
from tapeflow._src.compat.v1.sessions.session import Session
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import CancelledError, OutOfRangeError


@public("compat.v1.train.QueueRunner", "compat.v1.train.queue_runner.QueueRunner")
class QueueRunner:
    """For each of `enqueue_ops` a thread that runs it again and again; then the queue is closed.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     queue = tf.compat.v1.FIFOQueue(2, tf.int32)
    ...     runner = tf.compat.v1.train.QueueRunner(queue, [queue.enqueue(7)])
    ...     coordinator = tf.train.Coordinator()
    ...     threads = runner.create_threads(session, coordinator, start=True)
    ...     print(session.run(queue.dequeue()))
    ...     coordinator.request_stop()
    ...     coordinator.join(threads)
    7
    """

    def __init__(
        self, queue: Any = None, enqueue_ops: Any = None, close_op: Any = None, cancel_op: Any = None,
        queue_closed_exception_types: Any = None, queue_runner_def: Any = None, import_scope: str | None = None,
    ) -> None:  # fmt: skip
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        types = (OutOfRangeError,) if queue_closed_exception_types is None else queue_closed_exception_types
        if not isinstance(types, tuple) or not types or not all(issubclass(t, Exception) for t in types):
            raise TypeError(
                f"queue_closed_exception_types, when provided, must be a tuple of tf.error types. Got: {types}"
            )
        self._queue, self._enqueue_ops, self._end_types = queue, list(enqueue_ops), types
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._lock = threading.Lock()
        self._running_by_session: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._exceptions: list[Exception] = []

    queue = property(lambda self: self._queue, doc="The queue.")
    enqueue_ops = property(lambda self: self._enqueue_ops, doc="The operations that fill it.")
    close_op = property(lambda self: self._close_op, doc="The operation that closes it.")
    cancel_op = property(lambda self: self._cancel_op, doc="The operation that sends those away who wait to fill it.")
    queue_closed_exception_types = property(lambda self: self._end_types, doc="The errors that mean the end.")
    exceptions_raised = property(lambda self: self._exceptions, doc="What went wrong in threads without a coordinator.")
    name = property(lambda self: self._queue.name, doc="The name of the queue.")

    def create_threads(self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False) -> list[Any]:
        """The threads; none if those of an earlier call still run. One more waits for the coordinator's stop."""
        with self._lock:
            if self._running_by_session.get(sess, 0) > 0:
                return []
            self._running_by_session[sess] = len(self._enqueue_ops)
            self._exceptions = []
        name = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), daemon=daemon, name=f"{name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            close = threading.Thread(
                target=self._close_on_stop, args=(sess, coord), daemon=daemon, name=f"{name}-close_on_stop"
            )
            threads.append(close)
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, sess: Any, enqueue_op: Any, coord: Any) -> None:
        ended = False
        try:
            while coord is None or not coord.should_stop():
                try:
                    sess.run(enqueue_op)
                except self._end_types:
                    ended = True
                    break
        except Exception as error:
            self._tell(error, coord)
        finally:
            with self._lock:
                self._running_by_session[sess] = left = self._running_by_session.get(sess, 1) - 1
            if ended and left == 0:
                self._run_quietly(sess, self._close_op)

    def _tell(self, error: Exception, coord: Any) -> None:
        if coord is not None:
            coord.request_stop(error)
        elif not isinstance(error, CancelledError):
            logging.getLogger("tensorflow").error("Exception in QueueRunner: %s", error)
            self._exceptions.append(error)

    def _close_on_stop(self, sess: Any, coord: Any) -> None:
        coord.wait_for_stop()
        self._run_quietly(sess, self._cancel_op)

    @staticmethod
    def _run_quietly(sess: Any, operation: Any) -> None:
        try:
            sess.run(operation)
        except Exception as error:  # a session that is closed has no queue to close
            logging.getLogger("tensorflow").debug("Ignored exception: %s", error)

    def to_proto(self, export_scope: str | None = None) -> None:
        """Queue runners are not written to files."""
        raise NotImplementedError("QueueRunner.to_proto: graphs are not written to files; the program makes them")


@public("compat.v1.train.add_queue_runner", "compat.v1.train.queue_runner.add_queue_runner")
def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to those that `start_queue_runners` starts.

    >>> with tf.Graph().as_default() as graph:
    ...     queue = tf.compat.v1.FIFOQueue(2, tf.int32)
    ...     tf.compat.v1.train.add_queue_runner(tf.compat.v1.train.QueueRunner(queue, [queue.enqueue(7)]))
    ...     len(graph.get_collection("queue_runners"))
    1
    """
    get_default_graph().add_to_collection(collection, qr)


@public("compat.v1.train.start_queue_runners", "compat.v1.train.queue_runner.start_queue_runners")
def start_queue_runners(
    sess: Any = None, coord: Any = None, daemon: bool = True, start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:  # fmt: skip
    """Starts the threads that fill the queues of the graph.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session():
    ...     tf.compat.v1.train.start_queue_runners()
    []
    """
    if sess is None:
        sess = defaults.sessions[-1] if defaults.sessions else None
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
                "explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, Session):
        if not hasattr(sess, "should_stop"):  # a monitored session has started them itself
            raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
        return []
    runners = sess.graph.get_collection(collection)
    return [thread for runner in runners for thread in runner.create_threads(sess, coord, daemon, start)]
