"""Learning rates that depend on the step: tensors in a graph, functions without arguments eagerly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.random.streams import normal


def _given(compute: Callable[[], Any]) -> Any:
    """In a graph the tensor itself; eagerly the function, so that each call sees the present step."""
    return compute() if _core.is_tracing() else compute


def _start(learning_rate: Any, global_step: Any, who: str) -> tuple[Any, Any]:
    if global_step is None:
        raise ValueError(f"global_step is required for {who}.")
    rate = convert_to_tensor(learning_rate)
    return rate, cast(global_step, rate.dtype)


def _decay(name: str, formula: Callable[[Any, Any, Any], Any], summary: str, example: str) -> None:
    """Defines a decay by its formula of the rate, the decay rate and the number of periods that have passed."""

    @public(f"compat.v1.train.{name}")
    def decay(
        learning_rate: Any,
        global_step: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> Any:
        def compute() -> Any:
            rate, step = _start(learning_rate, global_step, decay.__name__)
            periods = step / cast(decay_steps, step.dtype)
            return formula(rate, cast(decay_rate, rate.dtype), primitives.Floor(periods) if staircase else periods)

        return _given(compute)

    decay.__name__ = decay.__qualname__ = name
    call, _, value = example.partition(" => ")
    decay.__doc__ = f"""{summary}; with `staircase` the number of periods is an integer.

    >>> tf.compat.v1.train.{name}({call})()
    {value}
    """


_decay(
    "exponential_decay",
    lambda rate, decay, periods: rate * primitives.Pow(decay, periods),
    "rate * decay_rate ^ (step / decay_steps)",
    "1., tf.Variable(20), 10, 0.5 => 0.25",
)
_decay(
    "natural_exp_decay",
    lambda rate, decay, periods: rate * primitives.Exp(-decay * periods),
    "rate * exp(-decay_rate * step / decay_steps)",
    "1., tf.Variable(0), 10, 0.5 => 1.0",
)
_decay(
    "inverse_time_decay",
    lambda rate, decay, periods: rate / (1.0 + decay * periods),
    "rate / (1 + decay_rate * step / decay_steps)",
    "1., tf.Variable(10), 10, 1. => 0.5",
)


@public("compat.v1.train.polynomial_decay")
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """(rate - end) * (1 - step / decay_steps) ^ power + end, the step being at most `decay_steps`.

    >>> tf.compat.v1.train.polynomial_decay(1., tf.Variable(5), 10, 0.)()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """

    def compute() -> Any:
        rate, step = _start(learning_rate, global_step, "polynomial_decay")
        steps, end = cast(decay_steps, rate.dtype), cast(end_learning_rate, rate.dtype)
        if cycle:
            cycles = primitives.Ceil(step / steps)
            steps = steps * primitives.Maximum(cycles, cast(1, rate.dtype))
        else:
            step = primitives.Minimum(step, steps)
        return (rate - end) * primitives.Pow(1.0 - step / steps, cast(power, rate.dtype)) + end

    return _given(compute)


@public("compat.v1.train.piecewise_constant", "compat.v1.train.piecewise_constant_decay")
def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    """values[0] while x <= boundaries[0], then values[1] while x <= boundaries[1], and so on.

    >>> tf.compat.v1.train.piecewise_constant(tf.Variable(7), [5, 10], [1., 0.5, 0.1])()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")

    def compute() -> Any:
        step = convert_to_tensor(x)
        limits = [_limit(convert_to_tensor(boundary), step.dtype) for boundary in boundaries]
        rates = [convert_to_tensor(value) for value in values]
        for rate in rates:
            if rate.dtype != rates[0].dtype:
                raise ValueError(
                    f"Values must have elements all with the same dtype ({rates[0].dtype.name} vs {rate.dtype.name})."
                )
        result = rates[-1]
        for limit, rate in reversed(list(zip(limits, rates))):
            result = primitives.SelectV2(primitives.LessEqual(step, limit), rate, result)
        return result

    return _given(compute)


def _limit(boundary: Any, dtype: Any) -> Any:
    """A boundary in the dtype of the steps; only int32 becomes another one, as rounding would move it."""
    if boundary.dtype != dtype and (boundary.dtype.name, dtype.name) != ("int32", "int64"):
        raise ValueError(f"Boundaries ({boundary.dtype.name}) must have the same dtype as x ({dtype.name}).")
    return cast(boundary, dtype)


@public("compat.v1.train.cosine_decay")
def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Any:
    """rate * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha).

    >>> tf.compat.v1.train.cosine_decay(1., tf.Variable(10), 10)()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """

    def compute() -> Any:
        rate, step = _start(learning_rate, global_step, "cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        wave = 0.5 * (1.0 + primitives.Cos(math.pi * primitives.Minimum(step, steps) / steps))
        return rate * ((1.0 - alpha) * wave + alpha)

    return _given(compute)


@public("compat.v1.train.cosine_decay_restarts")
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Any:
    """A cosine decay that begins again: each period `t_mul` times as long and beginning `m_mul` times as high.

    >>> tf.compat.v1.train.cosine_decay_restarts(1., tf.Variable(10), 10)()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    def compute() -> Any:
        rate, step = _start(learning_rate, global_step, "cosine_decay_restarts")
        done = step / cast(first_decay_steps, rate.dtype)
        if t_mul == 1.0:
            period = primitives.Floor(done)
            done = done - period
        else:
            period = primitives.Floor(primitives.Log(1.0 - done * (1.0 - t_mul)) / math.log(t_mul))
            length = primitives.Pow(cast(t_mul, rate.dtype), period)
            done = (done - (1.0 - length) / (1.0 - t_mul)) / length
        wave = 0.5 * primitives.Pow(cast(m_mul, rate.dtype), period) * (1.0 + primitives.Cos(math.pi * done))
        return rate * ((1.0 - alpha) * wave + alpha)

    return _given(compute)


@public("compat.v1.train.linear_cosine_decay")
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """rate * ((alpha + linear) * cosine + beta), both falling over `decay_steps`.

    >>> tf.compat.v1.train.linear_cosine_decay(1., tf.Variable(10), 10, beta=0.)()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """

    def compute() -> Any:
        rate, step = _start(learning_rate, global_step, "linear_cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        done = primitives.Minimum(step, steps) / steps
        wave = 0.5 * (1.0 + primitives.Cos(math.pi * 2.0 * num_periods * done))
        return rate * ((alpha + 1.0 - done) * wave + beta)

    return _given(compute)


@public("compat.v1.train.noisy_linear_cosine_decay")
def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """`linear_cosine_decay` with normal noise on the linear part: its variance is initial / (1 + step)**decay.

    >>> tf.compat.v1.train.noisy_linear_cosine_decay(1., tf.Variable(10), 10, beta=0.)().shape
    TensorShape([])
    """

    def compute() -> Any:
        rate, step = _start(learning_rate, global_step, "noisy_linear_cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        step = primitives.Minimum(step, steps)
        variance = initial_variance / primitives.Pow(1.0 + step, cast(variance_decay, rate.dtype))
        noise = normal(step.shape, stddev=primitives.Sqrt(variance), dtype=rate.dtype)
        wave = 0.5 * (1.0 + primitives.Cos(math.pi * 2.0 * num_periods * step / steps))
        return rate * ((alpha + (steps - step) / steps + noise) * wave + beta)

    return _given(compute)
