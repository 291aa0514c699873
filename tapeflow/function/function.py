"""`tf.function`: which graph a call runs. Tracing is in trace.py, the key of a call in signature.py."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from tapeflow import _core
from tapeflow.function.signature import CallSignature, Signature
from tapeflow.function.trace import FuncGraph, building
from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest


class ConcreteFunction:
    """One traced graph of a function: what it takes, and what it gives."""

    def __init__(self, graph: FuncGraph, call: CallSignature, structure: Any, leaves: list[Any], name: str) -> None:
        self.graph, self.signature, self.name = graph, call, name
        self._structure, self._leaves = structure, leaves

    def call_flat(self, tensors: list[Any]) -> Any:
        """The result for the flat list of tensors that the signature names."""
        found = iter(self.graph.call([*tensors, *self.graph.captures]))
        values = [next(found) if leaf is True else leaf for leaf in self._leaves]
        return nest.pack_sequence_as(self._structure, values, expand_composites=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_flat(self.signature.tensors_for(args, kwargs))

    @property
    def structured_outputs(self) -> Any:
        """The result with a tensor specification in place of each tensor."""
        outputs = iter(self.graph.outputs)
        leaves = [next(outputs) if leaf is True else leaf for leaf in self._leaves]
        return nest.pack_sequence_as(self._structure, leaves, expand_composites=True)

    inputs = property(lambda self: self.graph.inputs)
    outputs = property(lambda self: self.graph.outputs)
    variables = property(lambda self: tuple(self.graph.variables_used))
    trainable_variables = property(lambda self: tuple(v for v in self.graph.variables_used if v.trainable))
    structured_input_signature = property(lambda self: self.signature.structured_input_signature)


class Function(_core.FunctionBase):
    """A Python function that is traced once per kind of arguments, and then runs as a graph."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str | None = None,
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
    ) -> None:
        self.python_function = python_function
        self._autograph, self._jit_compile, self._reduce_retracing = autograph, jit_compile, reduce_retracing
        self._signature = Signature(python_function, input_signature)
        self.name = self._name = name or getattr(python_function, "__name__", type(python_function).__name__)
        self._concrete_by_key: dict[Any, ConcreteFunction] = {}
        self._created_variables = False
        self._traces = 0
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function, updated=())

    input_signature = property(lambda self: self._signature.input_signature)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if _core.get_run_eagerly():
            return self.python_function(*args, **kwargs)
        call = self._signature.bind(args, kwargs)
        concrete = self._concrete(call)
        if not kwargs and len(args) == len(call.tensors) and not concrete.graph.created_variables:
            self._quicken(concrete.graph, concrete.structured_outputs)
        return concrete.call_flat(call.tensors)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = self._bound.get(instance)
        if bound is None:
            method = self.python_function.__get__(instance, owner)
            bound = Function(
                method, self._name, self.input_signature, self._autograph, self._jit_compile, self._reduce_retracing
            )
            self._bound[instance] = bound
        return bound

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The graph for arguments of this kind; `tf.TensorSpec`s stand for tensors."""
        return self._concrete(self._signature.bind(args, kwargs))

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function has been traced."""
        return self._traces

    def _concrete(self, call: CallSignature) -> ConcreteFunction:
        outer = _core.current_graph()
        concrete = self._concrete_by_key.get(call.key)
        if concrete is None and outer is not None:
            concrete = self._concrete_by_key.get((call.key, id(outer)))
        if concrete is None:
            concrete = self._trace(call, outer)
            key = (call.key, id(outer)) if concrete.graph.captures else call.key
            if not concrete.graph.created_variables:
                self._concrete_by_key[key] = concrete
        return concrete

    def _trace(self, call: CallSignature, outer: Any) -> ConcreteFunction:
        graph = FuncGraph(outer)
        graph.name = self._name
        graph.may_create_variables = not self._created_variables
        self._traces += 1
        with building(graph):
            inputs = [graph.add_input(spec.dtype, spec.shape) for spec in call.tensor_specs]
            args, kwargs = call.with_tensors(inputs)
            result = self._converted()(*args, **kwargs)
            leaves, tensors = [], []
            for leaf in nest.flatten(result, expand_composites=True):
                if leaf is None:
                    leaves.append(None)
                else:
                    leaves.append(True)
                    tensors.append(convert_to_tensor(leaf))
            graph.set_outputs(tensors)
        self._created_variables = True
        return ConcreteFunction(graph, call, result, leaves, self._name)

    def _converted(self) -> Callable[..., Any]:
        return self.python_function


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
) -> Any:
    """Makes a graph of a function: traced once for each kind of arguments, run without Python from then on.

    >>> @tf.function
    ... def square(x):
    ...     return x * x
    >>> square(tf.constant(3.))
    9.0
    """

    def decorate(python_function: Callable[..., Any]) -> Any:
        return Function(
            python_function,
            input_signature=input_signature,
            autograph=autograph,
            jit_compile=experimental_compile if jit_compile is None else jit_compile,
            reduce_retracing=reduce_retracing or bool(experimental_relax_shapes),
        )

    return decorate if func is None else decorate(func)
