"""Trading time for memory, and gradients that skip a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.namespace import public
from tapeflow._src.ops.random.seeds import replayed, snapshot
from tapeflow._src.types import nest


@public("recompute_grad")
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose intermediate results are not kept for the backward pass, but computed again there.

    Random operations inside give the same numbers again. Gradients flow to the arguments and to variables in `f`.

    >>> f = tf.recompute_grad(lambda x: tf.tanh(x * x))
    >>> x = tf.constant(0.)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = f(x)
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        random_state = snapshot()

        @custom_gradient
        def run(*inputs: Any) -> tuple[Any, Callable[..., Any]]:
            result = f(*inputs, **kwargs)

            def rule(*dys: Any, variables: Any = None) -> Any:
                with replayed(random_state), GradientTape() as tape:
                    # The inputs of this run are new tensors, so that an outer tape tracks the gradient through them.
                    copies = nest.map_structure(lambda x: x + 0 if _is_float(x) else x, inputs)
                    flat_copies = [x for x in nest.flatten(copies) if isinstance(x, _core.Tensor)]
                    tape.watch([x for x in flat_copies if _is_float(x)])
                    again = nest.flatten(f(*copies, **kwargs))
                gradients = tape.gradient(again, [flat_copies, list(variables or [])], output_gradients=list(dys))
                return tuple(gradients) if variables else gradients[0]

            return result, rule

        return run(*args)

    return checkpointed


def _is_float(value: Any) -> bool:
    return isinstance(value, _core.Tensor) and (value.dtype.is_floating or value.dtype.is_complex)


@public("grad_pass_through")
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient is that of the identity.

    >>> f = tf.grad_pass_through(tf.round)
    >>> x = tf.constant(1.7)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = f(x)
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    @custom_gradient
    def passed_through(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        def rule(*dys: Any, **ignored: Any) -> Any:
            variables = ignored.get("variables")
            dx = dys[0] if len(dys) == 1 else list(dys)
            return (dx, [None] * len(variables)) if variables is not None else dx

        return f(*args, **kwargs), rule

    return functools.wraps(f)(passed_through)
