"""Several replicas in one process: they run one after the other, and meet where they merge their values.

Each replica has a thread, of which one runs at a time. A replica runs until it returns or asks for a merge; when all of
them ask, the caller merges and hands each its part of the result. So the order is the same in every run. A branch of
`tf.cond` in which replicas merge values is traced by all of them together, as one branch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Any
from weakref import WeakKeyDictionary

from tapeflow._src import _core, variables
from tapeflow._src.control_flow.branches import trace_branches
from tapeflow._src.control_flow.joint import Branches, MergeInBranch, joint
from tapeflow._src.control_flow.tracing import FuncGraph
from tapeflow._src.distribute.context import ReplicaContext, _places, inside, merging
from tapeflow._src.distribute.values import regroup, select
from tapeflow._src.function.autograph.conversion import convert
from tapeflow._src.function.function import Function
from tapeflow._src.module import current_name_scope, name_scope

_MERGE_OUTSIDE = (
    "Strategy.run: a gradient through a collective of several replicas of a process must be computed in the replica "
    "that called it. Open the tf.GradientTape in the function that is given to `strategy.run()`, or use one replica "
    "for each process."
)
_MERGE_IN_GRAPH = (
    "`merge_call` called while defining a new graph or a tf.function. This can happen if the function `fn` passed to "
    "`strategy.run()` contains a loop, or a branch inside a tf.GradientTape, that merges values (all_reduce, "
    "optimizer.apply_gradients, metrics). Merge them outside of it, or use one replica for each process."
)


class _Stopped(BaseException):
    """Ends a replica after another one has failed."""


class _Merge:
    """What a replica asks of the others: one call of a function with the arguments of all of them."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs


class _JointBranches:
    """What a replica asks of the others: one node for a branch in which all of them merge values."""

    def __init__(self, index: Any, functions: Branches) -> None:
        self.index, self.functions = index, functions


class _Replica(Thread):
    """One replica: its function, and a pair of semaphores by which it and the caller take turns."""

    def __init__(self, context: ReplicaContext, function: Callable[[], Any], shared: _SharedVariables) -> None:
        super().__init__(name=f"replica-{context._replica_id}", daemon=True)
        self.context, self._function = context, function
        self._go, self._paused = Semaphore(0), Semaphore(0)
        self._surroundings = _Surroundings(context, shared.creator(context.local_id))
        self.request: _Merge | _JointBranches | None = None
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
        graph = _core.current_graph()
        if graph is not self._surroundings.stage:
            if isinstance(graph, FuncGraph):
                raise MergeInBranch
            raise RuntimeError(_MERGE_IN_GRAPH)  # a rule that is tried out: it runs when a gradient is computed
        return self._ask(request)

    def trace_together(self, index: Any, functions: Branches) -> Any:
        """Called in the replica: traces branches together with the other replicas."""
        if _core.current_graph() is not self._surroundings.stage:
            raise MergeInBranch  # the outer branch must be traced together
        if _core.is_recording():
            raise RuntimeError(_MERGE_IN_GRAPH)
        return self._ask(_JointBranches(index, functions))

    def _ask(self, request: _Merge | _JointBranches) -> Any:
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
                joint.trace = self.trace_together
                self.result = self._function()
        except _Stopped:
            pass
        except MergeInBranch:
            self.error = RuntimeError(_MERGE_IN_GRAPH)
        except BaseException as error:
            self.error = error
        finally:
            _core.swap_stage(None)
            self._paused.release()


class _Surroundings:
    """What a replica has of the thread that made this: the graph that is traced, the scope of names, the creators of
    variables; and its own device."""

    def __init__(self, context: ReplicaContext, creator: Callable[..., Any]) -> None:
        self.stage = _core.current_graph()
        self._scope = current_name_scope()
        self._creators = [*variables._creators.stack, creator]
        self._place = (context.device_number + 1, context.local_id, True)

    def __enter__(self) -> None:
        _core.swap_stage(self.stage)
        _core.place(*self._place)
        self._names = name_scope(f"{self._scope}/" if self._scope else "")
        self._names.__enter__()
        variables._creators.stack[:] = self._creators

    def __exit__(self, *exception: object) -> None:
        self._names.__exit__(*exception)
        _core.swap_stage(None)


class _SharedVariables:
    """The variables that replicas make in one run. The first replica makes them, with a copy for each of the others,
    which get them in the same order by name."""

    def __init__(self) -> None:
        self._made: dict[str, list[Any]] = {}

    def creator(self, replica: int) -> Callable[..., Any]:
        """What `tf.Variable` makes in a replica."""

        def create(next_creator: Callable[..., Any], **arguments: Any) -> Any:
            variable = next_creator(**arguments)
            self._made.setdefault(_without_number(arguments.get("name")), []).append(variable)
            return variable

        taken: Counter[str] = Counter()

        def take(next_creator: Callable[..., Any], **arguments: Any) -> Any:
            name = _without_number(arguments.get("name"))
            made = self._made.get(name, [])
            if taken[name] == len(made):
                raise RuntimeError(
                    f"Tried to create variable {arguments.get('name')} with mismatching name on device {replica}: the "
                    "first replica has not made it"
                )
            taken[name] += 1
            return made[taken[name] - 1]

        return take if replica else create


def _without_number(name: str | None) -> str:
    """The name of a variable without what tells it apart from others: "a_2/v_1" is "a/v"."""
    return re.sub(r"_\d+(?=/|$)", "", name or "Variable")


_lifted: WeakKeyDictionary[Any, dict[int, Function]] = WeakKeyDictionary()  # by the traces of a function, by strategy


def run_replicas(contexts: list[ReplicaContext], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`function` in each replica, with its parts of the arguments; the results together."""
    if _core.current_graph() is not None and not isinstance(function, Function):
        function = convert(function, frozenset())
    if len(contexts) == 1:
        with contexts[0]:
            return function(*select(args, 0), **select(kwargs, 0))
    if isinstance(function, Function) and _core.current_graph() is None and not _core.get_run_eagerly():
        lifted = _lift(contexts, function)
        newest = lifted._traces.concrete[-1:]
        results = lifted(args, kwargs)
        if lifted._traces.concrete[-1:] != newest:
            function._keep_inline_call(select(args, 0), select(kwargs, 0))
        return results

    def bound(place: int) -> Callable[[], Any]:
        return lambda: function(*select(args, place), **select(kwargs, place))

    return regroup(_in_turns(contexts, [bound(place) for place in range(len(contexts))]))


def _lift(contexts: list[ReplicaContext], function: Function) -> Function:
    """A traced function that runs all replicas of another one, so that they can merge values inside it."""
    by_strategy = _lifted.setdefault(function._traces, {})
    strategy = contexts[0].strategy
    lifted = by_strategy.get(id(strategy))
    if lifted is None:
        python_function = function.python_function

        def call_for_each_replica(args: Any, kwargs: Any) -> Any:
            with inside(strategy, None):
                return run_replicas(contexts, python_function, args, kwargs)

        lifted = by_strategy[id(strategy)] = Function(call_for_each_replica, function.name)
    return lifted


def _in_turns(contexts: list[ReplicaContext], functions: list[Callable[[], Any]]) -> list[Any]:
    """The results of functions, one for each replica, which run in turns from merge to merge."""
    shared = _SharedVariables()
    replicas = [_Replica(context, function, shared) for context, function in zip(contexts, functions)]
    try:
        while True:
            for replica in replicas:
                replica.resume()
            requests = [replica.request for replica in replicas]
            if all(request is None for request in requests):
                return [replica.result for replica in replicas]
            if len({type(request) for request in requests}) > 1:
                raise RuntimeError(
                    "Strategy.run: some replicas returned while others wait in merge_call or all_reduce; all replicas "
                    "must merge their values equally often."
                )
            if isinstance(requests[0], _Merge):
                _merge(replicas, requests)
            else:
                _trace_together(replicas, requests)
    finally:
        for replica in replicas:
            replica.stop()


def _merge(replicas: list[_Replica], requests: list[Any]) -> None:
    strategy = replicas[0].context.strategy
    args = regroup([request.args for request in requests])
    kwargs = regroup([request.kwargs for request in requests])
    with inside(strategy, None):
        result = requests[0].function(strategy, *args, **kwargs)
    for place, replica in enumerate(replicas):
        replica.answer = select(result, place)


def _trace_together(replicas: list[_Replica], requests: list[Any]) -> None:
    """One branch for all replicas: which one runs is what the first replica says."""
    contexts = [replica.context for replica in replicas]

    def together(number: int) -> Callable[[], Any]:
        return lambda: _in_turns(contexts, [request.functions[number] for request in requests])

    branches = [together(number) for number in range(len(requests[0].functions))]
    for replica, result in zip(replicas, trace_branches(requests[0].index, branches)):
        replica.answer = result


def merge(strategy: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`function(strategy, *args)` for all replicas at once, called in each of them."""
    replica = getattr(_places, "replica_thread", None)
    if replica is None or replica.context.strategy is not strategy:
        if strategy._replicas_here > 1:
            raise RuntimeError(_MERGE_OUTSIDE)
        with merging(strategy):
            return function(strategy, *args, **kwargs)
    return replica.merge(_Merge(function, args, kwargs))
