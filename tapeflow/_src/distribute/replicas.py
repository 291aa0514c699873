"""Several replicas in one process: they run one after the other, and meet where they merge their values.

Each replica has a thread, of which one runs at a time. A replica runs until it returns or asks for a merge; when all of
them ask, the caller merges and hands each its part of the result. So the order is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Any

from tapeflow._src import _core, variables
from tapeflow._src.distribute.context import ReplicaContext, _places
from tapeflow._src.distribute.values import regroup, select
from tapeflow._src.module import current_name_scope, name_scope


class _Stopped(BaseException):
    """Ends a replica after another one has failed."""


class _Merge:
    """What a replica asks of the others."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs


class _Replica(Thread):
    """One replica: its function, and a pair of semaphores by which it and the caller take turns."""

    def __init__(self, context: ReplicaContext, function: Callable[[], Any]) -> None:
        super().__init__(name=f"replica-{context.replica_id_in_sync_group}", daemon=True)
        self.context, self._function = context, function
        self._go, self._paused = Semaphore(0), Semaphore(0)
        self._surroundings = _Surroundings()
        self.request: _Merge | None = None
        self.answer: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._stop_requested = False

    def resume(self) -> None:
        """Lets the replica run until it returns or asks for a merge; raises its error."""
        self.request = None
        if self.ident is None:
            self.start()
        self._go.release()
        self._paused.acquire()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Ends a replica that waits for a merge."""
        if self.is_alive():
            self._stop_requested = True
            self._go.release()
            self.join()

    def merge(self, request: _Merge) -> Any:
        """Called in the replica: waits until the caller has merged the values of all replicas."""
        if _core.current_graph() is not self._surroundings.stage:
            raise RuntimeError(
                "merge_call called while defining a new graph or a tf.function. This can often happen if the function "
                "`fn` passed to `strategy.run()` contains a nested `@tf.function`, a loop or a branch, and merges "
                "values (all_reduce, optimizer.apply_gradients, metrics) inside it."
            )
        self.request = request
        self._paused.release()
        self._go.acquire()
        if self._stop_requested:
            raise _Stopped
        return self.answer

    def run(self) -> None:
        self._go.acquire()
        try:
            with self._surroundings, self.context:
                _places.replica_thread = self
                self.result = self._function()
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error
        finally:
            _core.swap_stage(None)
            self._paused.release()


class _Surroundings:
    """What a thread has that made this: the graph that is traced, the scope of names, the creators of variables."""

    def __init__(self) -> None:
        self.stage = _core.current_graph()
        self._scope = current_name_scope()
        self._creators = list(variables._creators.stack)

    def __enter__(self) -> None:
        _core.swap_stage(self.stage)
        self._names = name_scope(f"{self._scope}/" if self._scope else "")
        self._names.__enter__()
        variables._creators.stack[:] = self._creators

    def __exit__(self, *exception: object) -> None:
        self._names.__exit__(*exception)
        _core.swap_stage(None)


def run_replicas(contexts: list[ReplicaContext], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`function` in each replica, with its parts of the arguments; the results together."""
    if len(contexts) == 1:
        with contexts[0]:
            return function(*select(args, 0), **select(kwargs, 0))

    def bound(place: int) -> Callable[[], Any]:
        return lambda: function(*select(args, place), **select(kwargs, place))

    replicas = [_Replica(context, bound(place)) for place, context in enumerate(contexts)]
    try:
        while True:
            for replica in replicas:
                replica.resume()
            requests = [replica.request for replica in replicas]
            if all(request is None for request in requests):
                return regroup([replica.result for replica in replicas])
            if any(request is None for request in requests):
                raise RuntimeError(
                    "Strategy.run: some replicas returned while others wait in merge_call or all_reduce; all replicas "
                    "must merge their values equally often."
                )
            _answer(replicas)
    finally:
        for replica in replicas:
            replica.stop()


def _answer(replicas: list[_Replica]) -> None:
    requests = [replica.request for replica in replicas if replica.request is not None]
    first = requests[0]
    strategy = replicas[0].context.strategy
    args = regroup([request.args for request in requests])
    kwargs = regroup([request.kwargs for request in requests])
    with strategy.scope():
        result = first.function(strategy, *args, **kwargs)
    for place, replica in enumerate(replicas):
        replica.answer = select(result, place)


def merge(strategy: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`function(strategy, *args)` for all replicas at once, called in each of them."""
    replica = getattr(_places, "replica_thread", None)
    if replica is None or replica.context.strategy is not strategy:
        with strategy.scope():
            return function(strategy, *args, **kwargs)
    return replica.merge(_Merge(function, args, kwargs))
