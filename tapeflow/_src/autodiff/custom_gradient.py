"""`tf.custom_gradient`: functions that bring their own derivative, backwards and, if they like, forwards."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, overload

from tapeflow._src import _core
from tapeflow._src.autodiff.composite_gradients import flat_tensors, is_composite, with_tensors
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.like import DecoratedFunction, Parameters, Result


class _CustomGradient:
    """A decorated function. Calling it runs the function unrecorded and records the result with the given rule."""

    def __init__(self, function: Callable[..., Any], forward_rule: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.forward_rule = forward_rule
        functools.update_wrapper(self, function)
        self.__original_wrapped__ = function
        if not isinstance(function, functools.partial):  # what has __get__ is taken for a builtin without a signature
            with contextlib.suppress(ValueError, TypeError):
                self.__signature__ = signature(function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The function as a method: the instance is no input."""
        if instance is None:
            return self
        rule = self.forward_rule
        return _CustomGradient(
            functools.partial(self.function, instance), rule if rule is None else functools.partial(rule, instance)
        )

    def def_jvp(self, forward_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the function a rule for forward mode: from the inputs and their tangents to those of the results.

        It is called with two lists, of the tensors given as arguments and of their tangents (None for no tangent).
        Without one, forward mode follows the operations inside, and transposes the reverse rule where they stop.

        >>> @tf.custom_gradient
        ... def square(x):
        ...     return x * x, lambda dy: 2. * x * dy
        >>> @square.def_jvp
        ... def square_forward(inputs, tangents):
        ...     return 2. * inputs[0] * tangents[0]
        """
        self.forward_rule = forward_rule
        return forward_rule

    @property
    def _name(self) -> str:
        function = getattr(self.function, "func", self.function)
        return getattr(function, "__name__", repr(function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs = nest.map_structure(_to_tensor, args)
        # Variables given as arguments are read, so that their gradient is that of the reading.
        leaves = nest.flatten(inputs)
        flat_inputs = flat_tensors([x for x in leaves if isinstance(x, _core.Tensor) or is_composite(x)])
        if not flat_inputs and any(isinstance(x, _core.Tensor | _core.Variable) for x in nest.flatten(kwargs)):
            # Rules are about positional arguments. With tensors as keywords alone, the operations inside are recorded.
            return self._results(self.function(*inputs, **kwargs))[0]
        probe = _core.GradientTape(persistent=False)
        with _core.StopRecording(self.forward_rule is not None), probe:
            result, rule = self._results(self.function(*inputs, **kwargs))
        given = {id(v) for v in nest.flatten(args) if isinstance(v, _core.Variable)}
        variables = [v for v in probe.watched_variables() if id(v) not in given]
        takes_variables = _takes_variables(rule)
        if variables and not takes_variables and _core.is_recording():
            raise TypeError(
                "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
                f"{variables}. If using @custom_gradient with a function that uses variables, then grad_fn must accept "
                f"a 'variables' keyword argument. {self._name} uses {[v.name for v in variables]}."
            )
        results = [y if is_composite(y) else convert_to_tensor(y) for y in nest.flatten(result)]
        flat_results = flat_tensors(results)

        def flat_rule(dys: list[Any]) -> list[Any]:
            dys = [zeros_like(y) if dy is None else dy for dy, y in zip(dys, flat_results)]
            dys = with_tensors(results, dys)
            if variables or _must_have_variables(rule):
                gradients, variable_gradients = self._both_gradients(rule(*dys, variables=variables), variables)
            else:
                gradients, variable_gradients = rule(*dys), []
            gradients = nest.flatten(gradients) if isinstance(gradients, list | tuple | dict) else [gradients]
            if any(is_composite(x) for x in leaves):
                gradients = flat_tensors(gradients)
            if len(gradients) != len(flat_inputs):
                raise ValueError(
                    f"custom_gradient function expected to return {len(flat_inputs)} gradients, but returned "
                    f"{len(gradients)} instead. (The rule of {self._name} must give one for each tensor among its "
                    "positional arguments.)"
                )
            for i, (gradient, x) in enumerate(zip(gradients, flat_inputs)):
                self._check(gradient, x, f"input {i}")
            for gradient, variable in zip(variable_gradients, variables):
                self._check(gradient, variable, f"variable {variable.name}")
            return [*gradients, *variable_gradients]

        if observers.custom_gradient is not None and not _core.is_tracing():
            evaluate = self._evaluate(inputs, kwargs)
            observers.custom_gradient(self._name, evaluate, flat_inputs, flat_results, flat_rule, rule)
        sources = [*flat_inputs, *variables]
        traced = trace_rule(flat_rule, flat_results, sources)
        forward_rule = self._flat_forward_rule(flat_inputs, flat_results)
        if traced is not None:
            recorded = _core.record_traced(flat_results, sources, *traced, forward_rule)
        else:
            recorded = _core.record_operation(flat_results, sources, flat_rule, forward_rule)
        return nest.pack_sequence_as(result, with_tensors(results, recorded))

    def _evaluate(self, inputs: Any, kwargs: dict[str, Any]) -> Callable[[list[Any]], list[Any]]:
        """The function of the flat tensors among its arguments, without its rule."""
        others = nest.flatten(inputs)

        def evaluate(tensors: list[Any]) -> list[Any]:
            remaining = iter(tensors)
            flat = [next(remaining) if isinstance(x, _core.Tensor) else x for x in others]
            result = self._results(self.function(*nest.pack_sequence_as(inputs, flat), **kwargs))[0]
            return [convert_to_tensor(y) for y in nest.flatten(result)]

        return evaluate

    def _results(self, returned: Any) -> tuple[Any, Callable[..., Any]]:
        if isinstance(returned, tuple | list) and len(returned) == 2 and callable(returned[1]):
            return returned[0], returned[1]
        what = f"{type(returned).__name__}" + (f" of {len(returned)}" if isinstance(returned, tuple | list) else "")
        raise TypeError(
            f"custom_gradient: {self._name} must return two things, its result and a function that computes gradients "
            f"(`return y, grad_fn`); got a {what}: unsupported callable."
        )

    def _both_gradients(self, returned: Any, variables: list[Any]) -> tuple[Any, list[Any]]:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise TypeError(
                f"custom_gradient: {self._name} uses variables, so its rule must return two things, the gradients of "
                f"the inputs and the list of those of the {len(variables)} variables; got {type(returned).__name__}."
            )
        gradients, by_variable = returned
        by_variable = list(by_variable) if isinstance(by_variable, tuple | list) else [by_variable]
        if len(by_variable) != len(variables):
            raise ValueError(
                "Must return gradient for each variable from @custom_gradient grad_fn. custom_gradient: the rule must "
                f"return one gradient for each of {len(variables)} variables; got {len(by_variable)}"
            )
        return gradients, by_variable

    def _check(self, gradient: Any, x: Any, what: str) -> None:
        """Refuses a gradient that does not fit the value it belongs to."""
        if gradient is None or hasattr(gradient, "indices"):
            return
        shape, dtype = getattr(gradient, "shape", None), getattr(gradient, "dtype", None)
        if shape is not None and not x.shape.is_compatible_with(shape):
            raise ValueError(
                f"custom_gradient: the gradient of {what} must have the {what.split()[0]}'s shape {x.shape}; got "
                f"{shape}. (In the rule of {self._name}.)"
            )
        if isinstance(gradient, _core.Tensor) and dtype != x.dtype:
            raise ValueError(
                f"custom_gradient: the gradient of {what} must have the {what.split()[0]}'s dtype {x.dtype.name}; got "
                f"{gradient.dtype.name}. (In the rule of {self._name}; use tf.cast there.)"
            )

    def _flat_forward_rule(self, inputs: list[Any], results: list[Any]) -> Callable[..., list[Any]] | None:
        rule, own_inputs = self.forward_rule, inputs
        if rule is None:
            return None

        def flat(x_dots: list[Any], inputs: list[Any] = own_inputs) -> list[Any]:
            inputs = inputs[: len(own_inputs)]
            if any(t is not None for t in x_dots[len(inputs) :]):
                raise ValueError(
                    f"custom_gradient: {self._name} uses a variable that has a tangent, of which its forward rule "
                    "cannot know. Give the variable as an argument."
                )
            returned = rule(inputs, x_dots[: len(inputs)])
            y_dots = nest.flatten(returned) if isinstance(returned, list | tuple | dict) else [returned]
            if len(y_dots) != len(results):
                raise ValueError(
                    f"custom_gradient: the forward rule of {self._name} must return {len(results)} tangents, one for "
                    f"each result; got {len(y_dots)}."
                )
            for i, (y_dot, y) in enumerate(zip(y_dots, results)):
                self._check(y_dot, y, f"result {i}")
            return y_dots

        return flat


def _to_tensor(value: Any) -> Any:
    """Arguments that are no tensors (functions, strings, objects) are passed on as they are."""
    if value is None or callable(value) or isinstance(value, str | bytes):
        return value
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError):
        return value


def _takes_variables(rule: Callable[..., Any]) -> bool:
    parameters = signature(rule).parameters
    return "variables" in parameters or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())


def _must_have_variables(rule: Callable[..., Any]) -> bool:
    parameter = signature(rule).parameters.get("variables")
    return parameter is not None and parameter.default is Parameter.empty


@overload
def custom_gradient(f: Callable[Parameters, tuple[Result, Any]]) -> DecoratedFunction[Parameters, Result]: ...


@overload
def custom_gradient(
    f: None = None,
) -> Callable[[Callable[Parameters, tuple[Result, Any]]], DecoratedFunction[Parameters, Result]]: ...


@public("custom_gradient")
def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Decorates a function that returns its value and a rule: from the upstream gradient to the gradient by its inputs.

    If the function uses variables, the rule takes them as `variables=` and returns a pair: the gradients by the inputs
    and the list of those by the variables. `f.def_jvp(rule)` adds a rule for forward mode.

    Args:
        f: A function that returns its value and a rule, a function from `dy` to the gradients by the arguments.

    Returns:
        The decorated function.

    >>> @tf.custom_gradient
    ... def double_gradient(x):
    ...     return x * 1., lambda dy: 2. * dy
    >>> x = tf.constant(3.)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = double_gradient(x)
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    return custom_gradient if f is None else _CustomGradient(f)


_TRACED_DEPTH = 3


def trace_rule(rule: Callable[..., Any], results: list[Any], sources: list[Any]) -> tuple[Any, Any, Any] | None:
    """While tracing, the rule as a graph: what it captures, the graph, and which kind of gradient each source gets.

    None if nothing is traced, or if the rule cannot be called yet: then it is called when somebody asks for a gradient.
    The same holds for rules inside rules inside rules: one that calls its own function would never end.
    """
    outer = _core.current_graph()
    if outer is None or not any(_core.is_symbolic(x) for x in (*results, *sources)):
        return None
    depth = getattr(outer, "rule_depth", 0)
    if depth >= _TRACED_DEPTH:
        return None
    graph = _core.Graph(outer)
    graph.name, graph.may_create_variables, graph.created_variables = "gradient", False, []
    graph.rule_depth = depth + 1
    try:
        with _core.StopRecording(True), graph:
            gradients = rule([graph.add_input(y.dtype, y.shape) for y in results])
            outputs: list[Any] = []
            for gradient, source in zip(gradients, sources):
                if isinstance(gradient, IndexedSlices):
                    outputs += [convert_to_tensor(gradient.values), convert_to_tensor(gradient.indices)]
                elif gradient is not None:
                    outputs.append(convert_to_tensor(gradient, dtype=source.dtype))
            graph.set_outputs(outputs)
    except Exception:
        return None
    kinds = [0 if g is None else 2 if isinstance(g, IndexedSlices) else 1 for g in gradients]
    graph.capture_held_constants()
    return graph.captures, graph, kinds
