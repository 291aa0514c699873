"""`tf.custom_gradient`: functions that bring their own derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from tapeflow import _core
from tapeflow.namespace import public
from tapeflow.ops.constants import zeros_like
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest


class _CustomGradient:
    """A decorated function. Calling it runs the function unrecorded and records the result with the given rule."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        def to_tensor(x: Any) -> Any:
            return x if x is None or _is_opaque(x) else convert_to_tensor(x)

        inputs = nest.map_structure(to_tensor, args)
        # Variables given as arguments are read, so that their gradient is that of the reading.
        flat_inputs = [x for x in nest.flatten(inputs) if isinstance(x, _core.Tensor)]
        probe = _core.GradientTape(persistent=False)
        with _core.StopRecording(), probe:
            result, rule = self.function(*inputs, **kwargs)
        given = {id(v) for v in nest.flatten(args) if isinstance(v, _core.Variable)}
        variables = [v for v in probe.watched_variables() if id(v) not in given]
        takes_variables = _takes_variables(rule)
        if variables and not takes_variables and _core.is_recording():
            raise TypeError(
                "If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' "
                f"keyword argument. {getattr(self.function, '__name__', self.function)} uses "
                f"{[v.name for v in variables]}."
            )
        flat_results = [convert_to_tensor(y) for y in nest.flatten(result)]

        def flat_rule(dys: list[Any]) -> list[Any]:
            dys = [zeros_like(y) if dy is None else dy for dy, y in zip(dys, flat_results)]
            if variables:
                gradients, variable_gradients = rule(*dys, variables=variables)
                variable_gradients = list(variable_gradients)
                if len(variable_gradients) != len(variables):
                    raise ValueError(
                        f"custom_gradient: the rule must return one gradient for each of {len(variables)} variables; "
                        f"got {len(variable_gradients)}"
                    )
            else:
                gradients, variable_gradients = rule(*dys), []
            gradients = _flat_gradients(gradients, inputs)
            if len(gradients) != len(flat_inputs):
                raise ValueError(
                    f"custom_gradient function expected to return {len(flat_inputs)} gradients, but returned "
                    f"{len(gradients)} instead."
                )
            _check_shapes(gradients, flat_inputs)
            return [*gradients, *variable_gradients]

        recorded = _core.record_operation(flat_results, [*flat_inputs, *variables], flat_rule)
        return nest.pack_sequence_as(result, recorded)


def _is_opaque(value: Any) -> bool:
    """Arguments that are no tensors (functions, strings, objects) are passed on as they are."""
    return callable(value) or isinstance(value, str | bytes)


def _takes_variables(rule: Callable[..., Any]) -> bool:
    parameters = signature(rule).parameters
    return "variables" in parameters or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())


def _flat_gradients(gradients: Any, inputs: Any) -> list[Any]:
    if isinstance(gradients, list | tuple | dict):
        return nest.flatten(gradients)
    return [gradients]


def _check_shapes(gradients: list[Any], inputs: list[Any]) -> None:
    for i, (gradient, x) in enumerate(zip(gradients, inputs)):
        if gradient is None or hasattr(gradient, "indices"):
            continue
        shape = getattr(gradient, "shape", None)
        if shape is not None and tuple(shape) != tuple(x.shape):
            raise ValueError(
                f"custom_gradient: the gradient of input {i} must have the input's shape {x.shape}; got {shape}."
            )


@public("custom_gradient")
def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Decorates a function that returns its value and a rule: from the upstream gradient to the gradient by its inputs.

    >>> @tf.custom_gradient
    ... def double_gradient(x):
    ...     return x * 1., lambda dy: 2. * dy
    >>> x = tf.constant(3.)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = double_gradient(x)
    >>> tape.gradient(y, x)
    2.0
    """
    return custom_gradient if f is None else _CustomGradient(f)
