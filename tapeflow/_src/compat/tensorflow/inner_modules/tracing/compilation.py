"""Tracing without `tf.function`: functions that are called or traced with options, and the cache of their traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tapeflow._src.function.annotations import FunctionType
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function


class ParametersType(FunctionType):
    """The parameters of a function and, if it was given, the specifications that its arguments have."""

    input_signature: Any = None

    def bind_with_defaults(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], default_values: dict[str, Any]
    ) -> inspect.BoundArguments:
        """The arguments of a call, with the default values of those that are missing."""
        bound = self.bind(*args, **kwargs)
        for name, value in default_values.items():
            bound.arguments.setdefault(name, value)
        bound.arguments = {name: bound.arguments[name] for name in self.parameters if name in bound.arguments}
        return bound


def make_function_type(
    python_function: Callable[..., Any], input_signature: Any
) -> tuple[ParametersType, dict[str, Any]]:
    """The parameters of a function, and their default values."""
    signature = inspect.signature(python_function)
    made = ParametersType(list(signature.parameters.values()))
    made.input_signature = input_signature
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return made, defaults


class FunctionCache:
    """The traces of functions, for calls of the same kind."""

    def __init__(self) -> None:
        self._function_by_key: dict[Any, Function] = {}

    def __len__(self) -> int:
        return sum(len(function._traces.concrete) for function in self._function_by_key.values())

    def clear(self) -> None:
        """Forgets all traces."""
        self._function_by_key.clear()

    def function_for(self, key: Any, make: Callable[[], Function]) -> Function:
        """The function of a key, made at the first call."""
        if key not in self._function_by_key:
            self._function_by_key[key] = make()
        return self._function_by_key[key]


class TracingOptions:
    """Which function is traced, how, and where its traces are kept."""

    def __init__(
        self,
        python_function: Callable[..., Any] = lambda *args, **kwargs: None,
        name: str = "function",
        polymorphic_type: ParametersType | None = None,
        default_values: dict[str, Any] | None = None,
        attributes: dict[str, Any] | None = None,
        autograph: bool = True,
        autograph_options: Any = None,
        reduce_retracing: bool = False,
        bind_graph_to_function: bool = False,
        function_cache: FunctionCache | None = None,
    ) -> None:
        self.python_function, self.name = python_function, name
        made, defaults = make_function_type(python_function, None)
        self.polymorphic_type = made if polymorphic_type is None else polymorphic_type
        self.default_values = defaults if default_values is None else default_values
        self.attributes, self.autograph, self.autograph_options = attributes, autograph, autograph_options
        self.reduce_retracing, self.bind_graph_to_function = reduce_retracing, bind_graph_to_function
        self.function_cache = function_cache

    @property
    def input_signature(self) -> Any:
        """The specifications that the arguments have, if they were given."""
        return self.polymorphic_type.input_signature

    def function(self) -> Function:
        """The function, with the traces that are in the cache."""
        if self.function_cache is None:
            return self._make()
        key = (self.python_function, self.name, repr(self.input_signature), self.autograph, self.reduce_retracing)
        return self.function_cache.function_for(key, self._make)

    def _make(self) -> Function:
        return Function(
            self.python_function,
            name=self.name,
            input_signature=self.input_signature,
            autograph=self.autograph,
            reduce_retracing=self.reduce_retracing,
            attributes=self.attributes,
            autograph_options=self.autograph_options,
        )


def call_function(args: Any = None, kwargs: Any = None, tracing_options: TracingOptions | None = None) -> Any:
    """Calls a function by its graph, traced at the first call of a kind."""
    return (tracing_options or TracingOptions()).function()(*(args or ()), **(kwargs or {}))


def trace_function(
    args: Any = None, kwargs: Any = None, tracing_options: TracingOptions | None = None
) -> ConcreteFunction:
    """The graph of a function for arguments of this kind."""
    traced: ConcreteFunction = (
        (tracing_options or TracingOptions()).function().get_concrete_function(*(args or ()), **(kwargs or {}))
    )
    return traced


names_by_path: dict[str, dict[str, Any]] = {
    "core.function.polymorphism.function_cache": {"FunctionCache": FunctionCache},
    "python.eager.polymorphic_function.function_type_utils": {"make_function_type": make_function_type},
    "python.eager.polymorphic_function.concrete_function": {"ConcreteFunction": ConcreteFunction},
    "python.eager.polymorphic_function.tracing_compilation": {
        "TracingOptions": TracingOptions,
        "call_function": call_function,
        "trace_function": trace_function,
    },
}
