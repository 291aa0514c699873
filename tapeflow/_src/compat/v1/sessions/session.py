"""`tf.compat.v1.Session`: runs parts of a graph. A session owns the values of the graph's variables."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.graph import Graph, defaults, get_default_graph
from tapeflow._src.compat.v1.queues.queue_contents import deadline
from tapeflow._src.compat.v1.sessions.fetches import Fetches, PreparedRun, feeds_of
from tapeflow._src.compat.v1.sessions.partial_run import PartialRun
from tapeflow._src.compat.v1.sessions.run_trace import RunTrace, is_traced
from tapeflow._src.compat.v1.sessions.stepwise import StepwiseRun
from tapeflow._src.config import logical_device_count
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types import nest
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.device_spec import DeviceSpec
from tapeflow._src.types.errors import InvalidArgumentError, NotFoundError, OpError


class DeviceAttributes:
    """A device of a session: its whole name, its kind, its memory in bytes and a number of its life."""

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int) -> None:
        self.name = DeviceSpec.from_string(name).to_string()
        self.device_type = device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = incarnation

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


@public("compat.v1.get_default_session")
def get_default_session() -> Any:
    """The session that `eval` and `run` use, or None.

    >>> tf.compat.v1.get_default_session()
    """
    return defaults.sessions[-1] if defaults.sessions else None


def _check_innermost(session: Any) -> None:
    """An error for leaving a session while another one that was entered later is the default."""
    if session in defaults.sessions and defaults.sessions[-1] is not session:
        raise AssertionError(f"Nesting violated for default stack of {type(session)} objects")


@public("compat.v1.Session")
class Session:
    """Computes values of a graph; `with` makes it the default session and closes it at the end.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32, [2])
    ...     session.run(2. * x, {x: [1., 3.]})
    array([2., 6.], dtype=float32)
    """

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"')
        if config is not None and not isinstance(config, messages.ConfigProto):
            raise TypeError(f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"')
        self._graph = graph if graph is not None else get_default_graph()
        self._target, self._config = _checked_target(target), config
        self._run_count = 0
        self._partial_runs: dict[str, PartialRun] = {}
        self._closed = False
        self._plan_by_key: dict[Any, Any] = {}
        self._prepared_by_key: dict[Any, PreparedRun] = {}
        self._value_by_variable: dict[int, Any] = {}  # while another session's values are in the variables
        self._entered: list[Any] = []

    graph = property(lambda self: self._graph, doc="The graph that it runs.")
    sess_str = property(lambda self: self._target)

    @property
    def graph_def(self) -> Any:
        """The graph as a message."""
        return self._graph.as_graph_def()

    def list_devices(self) -> list[Any]:
        """The devices of the session: logical processors, as many as the configuration says."""
        count = 0 if self._config is None else self._config.device_count.get("CPU", 0)
        return [DeviceAttributes(device_name(i), "CPU", 1 << 28, i + 1) for i in range(count or logical_device_count())]

    # ---- running

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of `fetches`: tensors, variables, operations (None), their names, or any structure of them."""
        if run_metadata is not None and self._begin_report(options, run_metadata):
            return self._run_reporting(fetches, feed_dict, options, run_metadata)
        if observers.session_run is not None:
            return observers.session_run(self, fetches, lambda wanted: self._run(wanted, feed_dict, options))
        return self._run(fetches, feed_dict, options)

    def _begin_report(self, options: Any, run_metadata: Any) -> bool:
        """Empties the report of a run, and says whether its operations have to be timed."""
        run_metadata.Clear()
        if options is not None and options.output_partition_graphs:
            run_metadata.partition_graphs.append(self._graph.as_graph_def())
        self._run_count += 1
        return is_traced(options) or self._reports_cost

    @property
    def _reports_cost(self) -> bool:
        every = 0 if self._config is None else self._config.graph_options.build_cost_model
        return every > 0 and self._run_count % every == 0

    def _run_reporting(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """A run of one operation after the other, whose times go into a `RunMetadata`."""
        self._check_usable(fetches)
        trace, wanted = RunTrace(), Fetches(self._graph, fetches)
        steps = StepwiseRun(self._graph, trace.add)
        self.take_over()
        with running_at_once(), _core.StopRecording(True):
            for tensor, value in feeds_of(self._graph, feed_dict):
                steps.feed(tensor, value)
            results = [value.numpy() for value in steps.compute(wanted.tensors, wanted.operations)]
        if is_traced(options):
            trace.write_step_stats(run_metadata)
        if self._reports_cost:
            trace.write_cost_graph(run_metadata)
        return wanted.rebuilt(results)

    # ---- runs in parts

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Begins a run in parts: `partial_run` feeds some of `feeds` and computes some of `fetches` at a time."""
        self._check_usable(fetches)
        wanted = Fetches(self._graph, fetches)
        fed = [self._graph.as_graph_element(feed, allow_operation=False) for feed in feeds or ()]
        if not wanted.tensors and not wanted.operations:
            raise InvalidArgumentError.of("partial_run_setup: specify at least one target to fetch or execute.")
        handle = f"partial_run_{len(self._partial_runs)}"
        self._partial_runs[handle] = PartialRun(self._graph, wanted, fed)
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a run in parts: an operation that ran in an earlier part does not run again."""
        self._check_usable(fetches)
        if handle not in self._partial_runs:
            raise InvalidArgumentError.of(f"Must run 'partial_run_setup' before performing partial runs: {handle!r}")
        wanted = Fetches(self._graph, fetches)
        self.take_over()
        with running_at_once(), _core.StopRecording(True):
            feeds = feeds_of(self._graph, feed_dict)
            results = [value.numpy() for value in self._partial_runs[handle].go_on(wanted, feeds)]
        return wanted.rebuilt(results)

    def _run(self, fetches: Any, feed_dict: Any, options: Any) -> Any:
        self._check_usable(fetches)
        prepared = self._prepared_by_key.get(PreparedRun.key(fetches, feed_dict))
        before, deadline.moment = deadline.moment, self._moment_to_give_up(options)
        try:
            graph = self._graph
            if prepared is not None and prepared.node_count == graph.node_count and not graph._restricts_runs:
                return self._run_prepared(prepared, feed_dict)
            return self._run_anew(fetches, feed_dict)
        except OpError as error:
            self._name_operation(error)
            raise
        finally:
            deadline.moment = before

    def _run_prepared(self, prepared: PreparedRun, feed_dict: Any) -> Any:
        if self._graph.held_by is not self:
            self.take_over()
        stage = _core.swap_stage(None)
        try:
            with _core.StopRecording(True):
                feeds = prepared.tensors_for(feed_dict.values()) if feed_dict else []
                return prepared.wanted.rebuilt([tensor.numpy() for tensor in prepared.plan.call(feeds)])
        finally:
            _core.swap_stage(stage)

    def _run_anew(self, fetches: Any, feed_dict: Any) -> Any:
        graph = self._graph
        wanted = Fetches(graph, fetches)
        feeds = feeds_of(graph, feed_dict)
        fed = [tensor for tensor, _ in feeds]
        result = wanted.rebuilt(self._compute(wanted, fed, [value for _, value in feeds]))
        plan = self._plan_by_key.get(self._plan_key(wanted, fed))
        lasting = plan is not None and not wanted.variable_by_index
        if lasting and PreparedRun.is_possible(fetches, feed_dict):
            held = list(fetches) if type(fetches) is list else fetches
            prepared = PreparedRun(wanted, plan, held, fed, graph.node_count)
            self._prepared_by_key[PreparedRun.key(fetches, feed_dict)] = prepared
        return result

    def _name_operation(self, error: OpError) -> None:
        """Sets the operation of an error to the one that its message names."""
        named = re.search(r"\{\{node (.+?)\}\}", error.message)
        if error.op is None and named is not None:
            with contextlib.suppress(KeyError):
                error._op = self._graph.get_operation_by_name(named[1])
                error._node_def = error._op.node_def

    def _moment_to_give_up(self, options: Any) -> float | None:
        if options is None and self._config is None:
            return None
        for settings, name in ((options, "timeout_in_ms"), (self._config, "operation_timeout_in_ms")):
            if settings is not None and getattr(settings, name) > 0:
                result: float | None = time.monotonic() + getattr(settings, name) / 1000.0
                return result
        return None

    def _compute(self, wanted: Fetches, fed: list[Any], values: list[Any]) -> list[Any]:
        self.take_over()
        key = self._plan_key(wanted, fed)
        with running_at_once():
            plan = self._plan_by_key.get(key)
            if plan is None:
                _check_constants(wanted, fed)
                plan = self._graph.subgraph(wanted.tensors, fed, wanted.operations)
                if None not in key:
                    self._plan_by_key[key] = plan
            results = [tensor.numpy() for tensor in plan.call(values)]
            for index, variable in wanted.variable_by_index.items():
                if not any(tensor is wanted.tensors[index] for tensor in fed):
                    results[index] = variable.numpy()
            return results

    @staticmethod
    def _plan_key(wanted: Fetches, fed: list[Any]) -> tuple[Any, ...]:
        return _numbers(wanted.tensors), tuple(wanted.operations), _numbers(fed)

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """A function of the values for `feed_list` that gives the values of `fetches`."""
        self._check_usable()
        wanted = Fetches(self._graph, fetches)
        keys = [self._graph.as_graph_element(key, allow_operation=False) for key in feed_list or ()]

        def run_prepared(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if len(values) != len(keys):
                raise ValueError(f"Expected {len(keys)} values to feed; got {len(values)}")
            self._check_usable()
            if options is not None or run_metadata is not None:
                if not accept_options:
                    raise TypeError(
                        "Session.make_callable: `options` and `run_metadata` need a callable that was made with "
                        "accept_options=True"
                    )
                return self.run(fetches, dict(zip(keys, values)), options, run_metadata)
            feeds = feeds_of(self._graph, dict(zip(keys, values)))
            return wanted.rebuilt(self._compute(wanted, keys, [value for _, value in feeds]))

        return run_prepared

    def _make_callable_from_options(self, callable_options: Any) -> Callable[..., Any]:
        """A function of the values to feed, with all that the options name: Keras 2 runs its graphs by it."""
        names = [*callable_options.fetch]
        fetches = [self._graph.as_graph_element(name) for name in [*names, *callable_options.target]]
        feeds = [self._graph.as_graph_element(name, allow_operation=False) for name in callable_options.feed]
        links = [
            (self._graph.as_graph_element(link.from_tensor), self._graph.as_graph_element(link.to_tensor))
            for link in callable_options.tensor_connection
        ]

        def run_prepared(*values: Any, run_metadata: Any = None) -> list[Any]:
            fed = dict(zip(feeds, values, strict=True))
            if links:
                computed = self.run([source for source, _ in links])
                fed.update({target: value for (_, target), value in zip(links, computed)})
            options = callable_options.run_options if run_metadata is not None else None
            results: list[Any] = self.run(fetches, fed, options, run_metadata)
            return results[: len(names)]

        return run_prepared

    def _check_usable(self, fetches: Any = None) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.node_count == 0 and not _are_tensors(fetches):
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")

    # ---- the values of variables

    def _values_of(self, variables: list[Any]) -> list[Any]:
        """The arrays that variables have in this session; None for those without a value."""
        self.take_over()
        with running_at_once(), _core.StopRecording(True):
            return [variable.numpy() if variable._is_initialized() else None for variable in variables]

    def take_over(self) -> None:
        """Puts the values of this session into the variables of the graph; another session keeps its own values."""
        graph = self._graph
        if graph.held_by is self:
            return
        if graph.held_by is not None:
            graph.held_by.let_go()
        for variable in graph.created_variables:
            variable._exchange(self._value_by_variable.get(id(variable)))
        for stream, first in graph.first_value_by_stream:
            stream._exchange(self._value_by_variable.get(id(stream), first))
        self._value_by_variable = {}
        graph.held_by = self

    def let_go(self) -> None:
        """Takes the values of this session out of the variables."""
        graph = self._graph
        cells = [*graph.created_variables, *(stream for stream, _ in graph.first_value_by_stream)]
        self._value_by_variable = {id(cell): cell._exchange(None) for cell in cells}
        graph.held_by = None

    def set_variable(self, variable: Any, value: Any) -> None:
        """Gives a variable a value in this session."""
        self.take_over()
        with running_at_once():
            variable._exchange(_core.convert_to_tensor(value, variable.dtype, None, "load"))

    def get_variable(self, variable: Any) -> Any:
        """The value of a variable in this session, as an array."""
        return self.run(variable)

    # ---- its life

    def as_default(self) -> Any:
        """A context in which `eval` and `run` use this session, and operations go to its graph."""
        return self._as_default()

    @partial(lasting_context, leaving=_check_innermost)
    def _as_default(self) -> Iterator[Session]:
        defaults.sessions.append(self)
        try:
            if _core.current_graph() is self._graph:
                yield self
            else:
                with self._graph.as_default():
                    yield self
        finally:
            if self in defaults.sessions:  # a test case may have begun anew
                defaults.sessions.remove(self)

    def close(self) -> None:
        """Ends the session: its values are gone."""
        if self._graph.held_by is self:
            self.let_go()
        for thing in self._graph.per_session:
            thing.leave(self)
        self._closed = True
        self._plan_by_key, self._prepared_by_key = {}, {}
        self._value_by_variable = {}

    def __enter__(self) -> Session:
        if self._entered:
            raise RuntimeError("Session context managers are not re-entrant. Use `Session.as_default()` instead.")
        context = self._as_default()
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)
        if not self._entered:
            self.close()


def _checked_target(target: Any) -> Any:
    """The engine to run on, which is this process."""
    if target and not isinstance(target, str | bytes):
        raise TypeError(f"Argument `target` must be a string, but got {target!r} of type {type(target).__name__}")
    if target and target not in ("local", b"local"):
        raise NotFoundError.of(
            f"No session factory registered for the given session options: {{target: {target!r}}}. Sessions run in "
            'this process: the target must be "".'
        )
    return target


def _check_constants(wanted: Fetches, fed: list[Any]) -> None:
    """Refuses constants that no operation takes: shapes and axes are read when the graph is built."""
    for tensor in fed:
        if (
            tensor.op.type == "Const"
            and not tensor.consumers()
            and all(tensor is not other for other in wanted.tensors)
        ):
            raise InvalidArgumentError.of(
                f"Session.run: feeding the constant {tensor.name} would change nothing: no operation takes "
                "it. A constant that is a shape, an axis or a size is read when the graph is built; "
                "tf.compat.v1.placeholder_with_default makes one that can be fed"
            )


def _are_tensors(fetches: Any) -> bool:
    """Whether all that is fetched are tensors; constants have values without nodes."""
    leaves = nest.flatten(fetches, expand_composites=True)
    return bool(leaves) and all(isinstance(leaf, _core.Tensor) for leaf in leaves)


def _numbers(tensors: list[Any]) -> tuple[int, ...] | None:
    """The numbers of the tensors in the graph; None if one is an ordinary tensor, which has none that lasts."""
    places = [_core.place_of(tensor) for tensor in tensors]
    numbers = tuple([place[1] for place in places if place is not None])
    return numbers if len(numbers) == len(places) else None


@public("compat.v1.InteractiveSession")
class InteractiveSession(Session):
    """A session that is the default one from the beginning until it is closed.

    >>> with tf.Graph().as_default():
    ...     session = tf.compat.v1.InteractiveSession()
    ...     (tf.constant(2.) * 3.).eval()
    np.float32(6.0)
    >>> session.close()
    """

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._context: Any = self._as_default()
        self._context.__enter__()

    def close(self) -> None:
        """Ends the session; the one before is the default again."""
        super().close()
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None
