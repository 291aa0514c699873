"""`tf.function`: which graph a call runs. The key of a call is in signature.py, a traced graph in concrete.py."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from tapeflow._src import _core
from tapeflow._src.autodiff.graph_gradients import TraceAgain
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.tracing import FuncGraph, building
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.function import retracing
from tapeflow._src.function.autograph.api import feature_names
from tapeflow._src.function.autograph.conversion import convert, user_traceback, without_frames_of
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.escape import refused_while_tracing
from tapeflow._src.function.nesting import named_nesting
from tapeflow._src.function.signature import CallSignature, Signature, common_shape, structure_key
from tapeflow._src.io.tensorboard.summary import record_traced
from tapeflow._src.namespace import PACKAGE_FOLDER, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.assertions import is_traceback_filtering_enabled
from tapeflow._src.types import nest
from tapeflow._src.types.like import DecoratedFunction, Parameters, Result


class Traces:
    """What a function has been traced for. The bound copies of one method share it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.concrete_by_key: dict[Any, ConcreteFunction] = {}
        self.concrete: list[ConcreteFunction] = []
        self.inline_calls: dict[Any, CallSignature] = {}  # of replicas, which have no graph of their own
        self.count = 0
        self.created_variables = False
        self.holds_variables = False  # of its first call
        self.history = retracing.history_of(function)
        self.bound_copy: weakref.ref[Function] | None = None  # of a method
        self.signature: Signature | None = None
        self.call_cache = _core.CallCache()  # how the last calls could have gone without Python
        self._swept_at = 16
        self._eager_calls = 0

    def is_looked_at(self) -> bool:
        """Whether a doctor is notified of this call: of the first ones, and of every sixteenth later."""
        self._eager_calls += 1
        return self._eager_calls <= 64 or self._eager_calls % 16 == 0

    def add(self, concrete: ConcreteFunction) -> None:
        """Keeps a graph. Whenever their number has doubled, those go whose arguments do not exist any more."""
        self.concrete.append(concrete)
        if len(self.concrete) < self._swept_at:
            return
        outdated = {id(c) for c in self.concrete if c.signature.outdated}
        if outdated:
            self.concrete[:] = [c for c in self.concrete if id(c) not in outdated]
            for key in [key for key, c in list(self.concrete_by_key.items()) if id(c) in outdated]:
                del self.concrete_by_key[key]
        self._swept_at = 2 * max(8, len(self.concrete))


class Function(_core.FunctionBase):
    """A Python function that is traced once per kind of arguments, and then runs as a graph.

    >>> isinstance(tf.function(abs), tf.__internal__.function.Function)
    True
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str | None = None,
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        features: frozenset[str] = frozenset(),
        attributes: dict[str, Any] | None = None,
        autograph_options: Any = None,
        memory_budget: int | None = None,
    ) -> None:
        self.python_function = self._python_function = self.__wrapped__ = python_function
        self._attributes, self._memory_budget = attributes or {}, memory_budget
        self._autograph, self._jit_compile, self._reduce_retracing = autograph, jit_compile, reduce_retracing
        self._features, self._experimental_autograph_options = features, autograph_options
        self._signature = Signature(python_function, input_signature)
        self.name: str = name or str(getattr(python_function, "__name__", "function"))
        self._name = self.name
        self._traces = Traces(python_function)
        self._concrete_by_key = self._traces.concrete_by_key
        self._bound: dict[int, tuple[Any, Traces]] = {}
        self._share(self._traces.call_cache, self._traces.history)
        functools.update_wrapper(self, python_function, updated=())
        for attribute, value in getattr(python_function, "__dict__", {}).items():
            self.__dict__.setdefault(attribute, value)  # of a module, say, that is called through this function

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the Python function, which `inspect.getfullargspec` looks for here."""
        try:
            return inspect.signature(self.python_function)
        except ValueError as error:  # of a builtin
            raise AttributeError("__signature__") from error

    input_signature = property(lambda self: self._signature.input_signature)
    function_spec = property(lambda self: self._signature)

    @property
    def _asks_graph(self) -> bool:
        """Whether the function calls tf.gradients, which needs a graph: it never runs eagerly for a doctor."""
        return "gradients" in getattr(getattr(self.python_function, "__code__", None), "co_names", ())

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if _core.get_run_eagerly() and not (observers.graph_gradients is not None and self._asks_graph):
            if observers.function_call is not None and self._traces.is_looked_at():
                self._tell_call(args, kwargs)
            return self.python_function(*args, **kwargs)
        if _core.current_place()[2]:  # each replica of a strategy has a trace of its own, and may merge values in it
            self._keep_inline_call(args, kwargs)
            return self._call_inline(args, kwargs)
        call = self._signature.bind(args, kwargs)
        try:
            concrete = self._concrete(call)
        except Exception as error:
            named = named_nesting(error, getattr(self, "__name__", "function"))
            if is_traceback_filtering_enabled():  # the program's frames and this one
                raise named.with_traceback(without_frames_of(PACKAGE_FOLDER, error.__traceback__)) from named.__cause__
            raise named from named.__cause__
        self._traces.call_cache.add(
            args, kwargs, call.leaves, call.tensors, concrete.graph, concrete.traced_result, concrete.pack,
            self.input_signature is not None,
        )  # fmt: skip
        return concrete.call_flat(call.tensors)

    def _tell_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Tells a doctor for which arguments there would be a graph."""
        call = self._signature.bind(args, kwargs)
        observe = observers.function_call
        if observe is not None:
            observe(self._traces, call, lambda known: retracing.explain(self._name, self._signature, call, known))

    def _call_inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the Python function as a part of its caller, with arrays as tensors."""
        function = self.python_function
        if self._autograph and _core.current_graph() is not None:
            function = convert(function, self._features)
        args, kwargs = nest.map_structure(
            lambda leaf: convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf, (args, kwargs)
        )
        return function(*args, **kwargs)

    def _keep_inline_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = self._signature.bind(args, kwargs)
        if call.key not in self._traces.inline_calls:
            self._traces.inline_calls[call.key] = call.without_values()

    def _trace_inline_calls(self) -> None:
        """Makes graphs for the arguments with which replicas called the function, for whoever saves it."""
        for call in self._traces.inline_calls.values():
            args, kwargs = call.described()
            self.get_concrete_function(*args, **kwargs)

    def _decorate(self, decorator: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Puts a decorator around the Python function, inside this one; only before the first call."""
        if self._traces.concrete or self._bound:
            raise ValueError(
                "Functions cannot be decorated after they have been traced: "
                f"{self._name} has been called already. Decorate it first."
            )
        self.python_function = decorator(self.python_function)
        self._signature = Signature(self.python_function, self.input_signature)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        traces = self._traces_for(instance)
        bound = traces.bound_copy and traces.bound_copy()
        if bound is None:
            bound = self._bind(MethodType(self.python_function, instance), traces)
            traces.bound_copy = weakref.ref(bound)
        return bound

    def _traces_for(self, instance: Any) -> Traces:
        """The traces of the method of one object; they do not keep the object alive."""
        known = self._bound.get(id(instance))
        if known is not None:
            return known[1]
        traces, key, bound = Traces(self.python_function), id(instance), self._bound
        try:
            owner: Any = weakref.ref(instance, lambda _: bound.pop(key, None))
        except TypeError:
            owner = instance
        bound[key] = (owner, traces)
        return traces

    def _bind(self, method: Callable[..., Any], traces: Traces) -> Function:
        """The function for one object. Bound copies come and go with every call, so they share what is slow to make."""
        if traces.signature is None:
            traces.signature = Signature(method, self.input_signature)
        bound = Function.__new__(Function)
        bound.__dict__.update(self.__dict__)
        bound.python_function, bound.__wrapped__, bound._signature = method, method, traces.signature
        bound._traces, bound._concrete_by_key, bound._bound = traces, traces.concrete_by_key, {}
        bound._share(traces.call_cache, traces.history)
        return bound

    # ---- which graph

    def _concrete(self, call: CallSignature, counts: bool = True) -> ConcreteFunction:
        concrete: ConcreteFunction | None = self._concrete_by_key.get(call.key)
        if counts:
            self._traces.history.add_call()
        if concrete is not None:
            return concrete
        outer = _core.current_graph()
        inner_by_key: dict[Any, ConcreteFunction] = (
            {} if outer is None else outer.__dict__.setdefault("inner_by_key", {})
        )
        concrete = inner_by_key.get((self._traces, call.key))
        if concrete is not None:
            return concrete
        covering = [c for c in self._traces.concrete if c.signature.covers(call)]
        if covering:
            concrete = functools.reduce(lambda a, b: b if a.signature.covers(b.signature) else a, covering)
        else:
            concrete = self._trace(self._relaxed(call), outer)
            if counts and outer is None:
                self._traces.history.add_trace(self.python_function)
                if observers.function_call is not None:
                    self._tell_call(*call.described())
            if concrete.graph.captures:
                inner_by_key[(self._traces, call.key)] = concrete
                return concrete
            if (other := self._concrete_by_key.get(call.key)) is not None:  # another thread was faster
                return other
            self._traces.add(concrete)
        self._concrete_by_key[call.key] = concrete
        return concrete

    def _relaxed(self, call: CallSignature) -> CallSignature:
        """With `reduce_retracing`, a call like this one whose shapes also cover those seen before."""
        if not self._reduce_retracing or self.input_signature is not None:
            return call
        shapes, alike = call.shapes, False
        for concrete in self._traces.concrete:
            if concrete.signature.kind == call.kind:
                alike = True
                shapes = [common_shape(a, b) for a, b in zip(shapes, concrete.signature.shapes)]
        return call.with_shapes(shapes) if alike else call

    def _trace(self, call: CallSignature, outer: Any) -> ConcreteFunction:
        may_create = not self._traces.created_variables
        made_outside = 0 if outer is None else len(outer.created_variables)
        concrete = self._trace_once(call, outer, may_create)
        self._traces.created_variables = True
        # A graph that made variables is no good for a second call: the next trace finds them made.
        if may_create and len(concrete.graph.created_variables) > made_outside:
            self._traces.holds_variables = outer is None
            concrete = self._trace_once(call, outer, False)
        if outer is None:
            record_traced(concrete.graph)
        return concrete

    def _trace_once(self, call: CallSignature, outer: Any, may_create_variables: bool) -> ConcreteFunction:
        try:
            return self._build(call, outer, may_create_variables, False)
        except TraceAgain:
            return self._build(call, outer, may_create_variables, True)

    def _build(
        self, call: CallSignature, outer: Any, may_create_variables: bool, keeps_constants: bool
    ) -> ConcreteFunction:
        graph = FuncGraph(outer)
        graph.is_function = True
        if self._memory_budget is not None:
            graph.memory_budget = self._memory_budget
        graph.keeps_constants = keeps_constants
        if keeps_constants:
            _core.keep_constants(graph)
        graph.name = self._name
        if outer is None:
            graph.may_create_variables = may_create_variables
            graph.follows_first_call = bool(self._traces.concrete) and not self._traces.holds_variables
        function = self.python_function
        if self._autograph:
            function = convert(function, self._features)
        self._traces.count += 1
        names = self._signature.argument_names(call.args, call.kwargs)
        _check_names(names)
        with building(graph):
            inputs = [graph.add_input(spec.dtype, spec.shape) for spec in call.tensor_specs]
            if outer is None and all(isinstance(t, _core.Tensor) for t in call.tensors):
                graph.first_arguments = list(call.tensors)
            graph.input_names = _input_names(call, names)
            args, kwargs = call.with_tensors(inputs)
            before = [(nest.flatten(argument), structure_key(argument)) for argument in (*args, *kwargs.values())]
            try:
                result = function(*args, **kwargs)
                self._check_unchanged(before, args, kwargs, names)
                leaves, tensors = self._outputs(result)
                graph.set_outputs(tensors)
            except Exception as error:
                refused = refused_while_tracing(error)
                raise refused.with_traceback(user_traceback(error.__traceback__)) from error.__cause__
            graph.first_arguments = []
            for callback in graph.exit_callbacks:
                callback()
            if any(isinstance(leaf, TensorArray) for leaf in nest.flatten(result)):
                found = iter(tensors)
                result = nest.pack_sequence_as(
                    result, [leaf and next(found) for leaf in leaves], expand_composites=True
                )
        return ConcreteFunction(graph, call.without_values(), result, leaves, self._signature)

    def _check_unchanged(
        self, before: list[tuple[list[Any], Any]], args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]
    ) -> None:
        """Raises TensorFlow's error if the function has changed a list or dictionary that it was given."""
        changed = []
        for name, (leaves, structure), argument in zip(names, before, (*args, *kwargs.values())):
            now = nest.flatten(argument)
            same = len(now) == len(leaves) and all(one is two for one, two in zip(now, leaves))
            if not same or structure_key(argument) != structure:
                changed.append(name)
        if changed:
            raise ValueError(
                f"{self._name}{self._signature} should not modify its Python input arguments. Modifying a copy is "
                f"allowed. The following parameter(s) were modified: {', '.join(changed)}"
            )

    def _outputs(self, result: Any) -> tuple[list[Any], list[Any]]:
        """For each leaf of the result None or True, and the tensors in place of the latter."""
        leaves: list[Any] = []
        tensors = []
        for leaf in nest.flatten(result, expand_composites=True):
            leaves.append(None if leaf is None else True)
            if leaf is None:
                continue
            try:
                tensors.append(convert_to_tensor(leaf))
            except (TypeError, ValueError) as error:
                if _core.is_tensor(leaf):
                    raise
                raise TypeError(
                    "To be compatible with tf.function, Python functions must return zero or more Tensors or "
                    f"ExtensionTypes or None values; in compilation of {self.python_function}, found return value of "
                    f"type {type(leaf).__name__}, which is not a Tensor or ExtensionType."
                ) from error
        return leaves, tensors

    # ---- what can be asked

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The graph for arguments of this kind; `tf.TensorSpec`s stand for tensors."""
        if self.input_signature is not None and not args and not kwargs:
            return self._concrete(self._signature.specified(), counts=False)
        return self._concrete(self._signature.bind(args, kwargs), counts=False)

    def get_initialization_function(self, *args: Any, **kwargs: Any) -> Callable[[], None]:
        """A function that gives the variables their first values: they have them once they are made, by a trace."""
        self.get_concrete_function(*args, **kwargs)
        return lambda: None

    def _clone(self, python_function: Callable[..., Any]) -> Function:
        """A function with the same options, which has not been traced."""
        options = list(self._options())
        options[0] = python_function
        return Function(*options)

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function has been traced."""
        return self._traces.count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures of all graphs so far."""
        return "\n\n".join(c.pretty_printed_signature(verbose) for c in self._traces.concrete)

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str]:
        """A function `f(stage="hlo")` that gives the graph for these arguments as text.

        Stage "hlo" is the graph as traced; "after-specialise", "after-elementwise-fusion" and so on are the planner's
        IR after each of its passes, and "optimized_hlo" is the one after the last.
        """
        concrete = self.get_concrete_function(*args, **kwargs)
        shapes = [tensor.shape for tensor in self._signature.bind(args, kwargs).tensors] if args or kwargs else []

        def text(stage: str = "hlo", device_name: str | None = None, platform_name: str | None = None) -> str:
            return concrete.compiler_ir(stage, shapes)

        return text

    def graph_svg(self, *args: Any, **kwargs: Any) -> str:
        """A drawing of the graph for these arguments; of the last one traced if none are given."""
        if not args and not kwargs and self._traces.concrete:
            return self._traces.concrete[-1].graph_svg()
        return self.get_concrete_function(*args, **kwargs).graph_svg()

    def explain_retrace(self, *args: Any, **kwargs: Any) -> str:
        """Why a call with these arguments, or else the last trace, needed a graph of its own, and what to do."""
        known = [c.signature for c in self._traces.concrete]
        if args or kwargs:
            call = self._signature.bind(args, kwargs)
            if any(c.covers(call) for c in known):
                return f"{self._name}: these arguments need no trace: a graph for them exists."
        elif len(known) < 2:
            return f"{self._name}: traced {self._traces.count} times; there was nothing to compare with."
        else:
            call, known = known[-1], known[:-1]
        return retracing.explain(self._name, self._signature, call, known)

    def _list_all_concrete_functions(self) -> list[ConcreteFunction]:
        """The graphs that were traced so far; Keras asks for them when it exports a model."""
        if self.input_signature is not None and not self._traces.concrete:
            self.get_concrete_function()
        return list(self._traces.concrete)

    _list_all_concrete_functions_for_serialization = _list_all_concrete_functions
    _concrete_variable_creation_fn = property(lambda self: next(iter(self._traces.concrete), None))

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The graphs that were traced so far, for a saved model; nothing for a checkpoint."""
        if save_type == "checkpoint":
            return {}
        return {f"trace_{number}": trace for number, trace in enumerate(self._list_all_concrete_functions())}

    def __repr__(self) -> str:
        return f"<tf.function {self._name} at 0x{id(self):x}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return Function(*self._options())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._options()

    def _options(self) -> tuple[Any, ...]:
        return (
            self.python_function, self._name, self.input_signature, self._autograph, self._jit_compile,
            self._reduce_retracing, self._features, self._attributes, self._experimental_autograph_options,
            self._memory_budget,
        )  # fmt: skip


def _restored(python_function: Any, *options: Any) -> Function:
    if isinstance(python_function, Function):  # the name in its module is the decorated function
        return python_function
    return Function(python_function, *options)


def _as_input_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _check_names(names: list[str]) -> None:
    """An error if two arguments would have the same name in the graph."""
    made = {_as_input_name(name) for name in names}
    if len(made) < len(set(names)):
        raise ValueError(
            "Name collision after sanitization. Please rename tf.function input parameters. "
            f"Original: {sorted(names)}, Sanitized: {sorted(made)}"
        )


def _input_names(call: CallSignature, names: list[str]) -> list[str]:
    """The names of the graph's inputs: given by specifications, else those of the arguments, each made unique."""
    args, kwargs = call.described()
    taken: set[str] = set()
    result = []
    for argument, value in zip(names, (*args, *kwargs.values())):
        for leaf in nest.flatten(value, expand_composites=True):
            if not hasattr(leaf, "dtype") or not hasattr(leaf, "name") or isinstance(leaf, _core.Variable):
                continue
            base = _as_input_name(leaf.name or argument)
            name = next(n for n in (f"{base}_{i}" if i else base for i in itertools.count()) if n not in taken)
            taken.add(name)
            result.append(name)
    return result


@public("config.run_functions_eagerly", "config.experimental_run_functions_eagerly")
def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether calls of `tf.function`s run the Python function itself.

    >>> tf.config.run_functions_eagerly(False)
    """
    _core.set_run_eagerly(run_eagerly)


@public("config.functions_run_eagerly", "config.experimental_functions_run_eagerly")
def functions_run_eagerly() -> bool:
    """Whether calls of `tf.function`s run the Python function itself.

    >>> tf.config.functions_run_eagerly()
    False
    """
    return _core.get_run_eagerly()


@public("inside_function")
def inside_function() -> bool:
    """Whether a `tf.function` is being traced.

    >>> tf.inside_function()
    False
    """
    graph = _core.current_graph()
    return graph is not None and not graph.graph_mode


class _Options(TypedDict, total=False):
    """The options of `tf.function` by keyword."""

    autograph: bool
    jit_compile: bool | None
    reduce_retracing: bool
    experimental_implements: str | None
    experimental_autograph_options: Any
    experimental_attributes: Any
    experimental_relax_shapes: bool | None
    experimental_compile: bool | None
    experimental_follow_type_hints: bool | None
    memory_budget: int | None


def _check_budget(memory_budget: Any) -> None:
    if memory_budget is None:
        return
    if isinstance(memory_budget, bool) or not hasattr(memory_budget, "__index__") or memory_budget < 1:
        raise ValueError(f"tf.function: memory_budget must be a positive number of bytes; got {memory_budget!r}")


@overload
def function(
    func: Callable[Parameters, Result],
    input_signature: Any = None,
    **options: Unpack[_Options],
) -> DecoratedFunction[Parameters, Result]: ...


@overload
def function(
    func: None = None,
    input_signature: Any = None,
    **options: Unpack[_Options],
) -> Callable[[Callable[Parameters, Result]], DecoratedFunction[Parameters, Result]]: ...


@public("function", "compat.v1.function")
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    memory_budget: int | None = None,
) -> Any:
    """Makes a graph of a function: traced once for each kind of arguments, run without Python from then on.

    Args:
        func: The function; with None, a decorator is returned.
        input_signature: `tf.TensorSpec`s of the arguments, for a single graph.
        autograph: Whether `if`, `for` and `while` on tensors become part of the graph.
        jit_compile: A hint of TensorFlow's; graphs are always compiled to plans.
        reduce_retracing: Whether to trace for unknown sizes when sizes change from call to call.
        experimental_implements: A name of TensorFlow's; it changes nothing.
        experimental_autograph_options: Features of AutoGraph.
        experimental_attributes: Attributes that the graph keeps.
        experimental_relax_shapes: Deprecated: `reduce_retracing`.
        experimental_compile: Deprecated: `jit_compile`.
        experimental_follow_type_hints: Deprecated.
        memory_budget: Not in TensorFlow: the bytes that a call may use for intermediate results, beside arguments,
            variables and results. What the backward pass needs is computed a second time where this saves memory. A
            call of the function inside another one counts for the budget of that one.

    Returns:
        A function that is called like the one given.

    Raises:
        tf.errors.ResourceExhaustedError: By a call, if it needs more than `memory_budget` all the same.

    Gradient:
        Through the traced graph, to any order.

    >>> @tf.function
    ... def square(x):
    ...     return x * x
    >>> square(tf.constant(3.))
    <tf.Tensor: shape=(), dtype=float32, numpy=9.0>
    """

    _check_budget(memory_budget)

    def decorate(python_function: Callable[..., Any]) -> Any:
        if not callable(python_function):
            raise TypeError(f"{python_function!r} is not a callable object")
        return Function(
            python_function,
            input_signature=input_signature,
            autograph=autograph,
            jit_compile=experimental_compile if jit_compile is None else jit_compile,
            reduce_retracing=experimental_relax_shapes or reduce_retracing,
            features=feature_names(experimental_autograph_options),
            autograph_options=experimental_autograph_options,
            attributes=dict(experimental_attributes or {}),
            memory_budget=memory_budget,
        )

    return decorate if func is None else decorate(func)
