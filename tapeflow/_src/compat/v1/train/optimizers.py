"""The optimizers of TensorFlow 1, each a formula. `y` is a variable's value, `dy` the gradient of the loss by it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.train.optimizer import Optimizer, Values, summed_rows
from tapeflow._src.compat.v1.variables.variable_scope import beside_the_model
from tapeflow._src.compat.v1.variables.variables import VariableV1
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.variables import session_graph


def _square(x: Any) -> Tensor:
    return primitives.Square(x)


def _soft_threshold(y: Any, by: Any) -> Tensor:
    return primitives.Sign(y) * primitives.Maximum(primitives.Abs(y) - by, cast(0, y.dtype))


@public("compat.v1.train.GradientDescentOptimizer")
class GradientDescentOptimizer(Optimizer):
    """y - rate * dy.

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.8)
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _apply(self, dx: Any, variable: Any) -> list[Any]:
        rate = self._as(self._learning_rate, variable.dtype)
        if isinstance(dx, IndexedSlices):
            return [variable.scatter_sub(IndexedSlices(dx.values * rate, dx.indices, dx.dense_shape))]
        if variable.constraint is None:
            return [variable.assign_sub(rate * dx)]
        return [variable.assign(variable.constraint(variable.read_value() - rate * dx))]


@public("compat.v1.train.ProximalGradientDescentOptimizer")
class ProximalGradientDescentOptimizer(Optimizer):
    """y - rate * dy, then moved towards zero by the two regularizations.

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.ProximalGradientDescentOptimizer(0.1).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.8)
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        rate = self._as(self._learning_rate, value.dtype)
        return _soft_threshold(value - rate * dy, rate * self._l1) / (1.0 + rate * self._l2), {}


@public("compat.v1.train.MomentumOptimizer")
class MomentumOptimizer(Optimizer):
    """a' = momentum * a + dy; y - rate * a', or with Nesterov y - rate * (dy + momentum * a').

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.MomentumOptimizer(0.1, 0.9).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.8)
    """

    slots = MappingProxyType({"momentum": 0.0})

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum, self._nesterov = learning_rate, momentum, use_nesterov

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        rate, momentum = self._as(self._learning_rate, value.dtype), self._as(self._momentum, value.dtype)
        sums = slots["momentum"] * momentum + dy
        step = dy * rate + sums * momentum * rate if self._nesterov else sums * rate
        return value - step, {"momentum": sums}


@public("compat.v1.train.AdamOptimizer")
class AdamOptimizer(Optimizer):
    """m' = b1 m + (1 - b1) dy, v' = b2 v + (1 - b2) dy^2; y - rate_t * m' / (sqrt(v') + epsilon).

    rate_t = rate * sqrt(1 - b2^t) / (1 - b1^t). A sparse gradient counts as zero in the rows that it does not have.

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.AdamOptimizer(0.1).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.90000004)
    """

    slots = MappingProxyType({"m": 0.0, "v": 0.0})

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
        use_own_namescope_for_non_slot_vars: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._epsilon = learning_rate, epsilon
        self._beta1, self._beta2 = beta1, beta2
        self._own_scope = use_own_namescope_for_non_slot_vars
        self._powers_by_graph: dict[Any, Any] = {}

    def _powers(self) -> tuple[Any, Any]:
        first, second = self._powers_by_graph[session_graph()]
        return first, second

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._powers()

    def _create_slots(self, variables: list[Any]) -> None:
        graph = session_graph()
        if graph not in self._powers_by_graph:
            prefix = f"{self._name}/" if self._own_scope else ""
            with beside_the_model(named_by_operations=True):
                self._powers_by_graph[graph] = tuple(
                    VariableV1(
                        lambda beta=beta: self._as(beta, variables[0].dtype), trainable=False, name=f"{prefix}{name}"
                    )
                    for beta, name in ((self._beta1, "beta1_power"), (self._beta2, "beta2_power"))
                )
        super()._create_slots(variables)

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        dtype = value.dtype
        beta1, beta2 = self._as(self._beta1, dtype), self._as(self._beta2, dtype)
        m = slots["m"] + (dy - slots["m"]) * (1.0 - beta1)
        v = slots["v"] + (_square(dy) - slots["v"]) * (1.0 - beta2)
        return value - self._rate(dtype) * m / (primitives.Sqrt(v) + self._as(self._epsilon, dtype)), {"m": m, "v": v}

    def _rate(self, dtype: Any) -> Any:
        power1, power2 = (cast(power.read_value(), dtype) for power in self._powers())
        return self._as(self._learning_rate, dtype) * primitives.Sqrt(1.0 - power2) / (1.0 - power1)

    def _apply_rows(self, dx: IndexedSlices, variable: Any) -> list[Any]:
        dtype = variable.dtype
        beta1, beta2 = self._as(self._beta1, dtype), self._as(self._beta2, dtype)
        m_slot, v_slot = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        dy, _ = summed_rows(dx, variable)
        m = m_slot * beta1 + dy * (1.0 - beta1)
        v = v_slot * beta2 + _square(dy) * (1.0 - beta2)
        step = self._rate(dtype) * m / (primitives.Sqrt(v) + self._as(self._epsilon, dtype))
        return [m_slot.assign(m), v_slot.assign(v), variable.assign_sub(step)]

    def _last_updates(self) -> list[Any]:
        power1, power2 = self._powers()
        dtype = power1.dtype
        return [
            power1.assign(power1 * self._as(self._beta1, dtype)),
            power2.assign(power2 * self._as(self._beta2, dtype)),
        ]

    def variables(self) -> list[Any]:
        """The variables of the optimizer itself."""
        powers = [power for pair in self._powers_by_graph.values() for power in pair]
        return powers + super().variables()


@public("compat.v1.train.AdagradOptimizer")
class AdagradOptimizer(Optimizer):
    """a' = a + dy^2; y - rate * dy / sqrt(a').

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.AdagradOptimizer(0.1, 0.).minimize(lambda: v ** 2)
    Traceback (most recent call last):
    ValueError: initial_accumulator_value must be positive: 0.0
    """

    slots = MappingProxyType({"accumulator": 0.1})

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self.slots = MappingProxyType({"accumulator": initial_accumulator_value})

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        sums = slots["accumulator"] + _square(dy)
        rate = self._as(self._learning_rate, value.dtype)
        return value - rate * dy / primitives.Sqrt(sums), {"accumulator": sums}


@public("compat.v1.train.ProximalAdagradOptimizer")
class ProximalAdagradOptimizer(AdagradOptimizer):
    """Adagrad, then moved towards zero by the two regularizations, each at the element's own rate.

    >>> tf.compat.v1.train.ProximalAdagradOptimizer(0.1).get_name()
    'ProximalAdagrad'
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        sums = slots["accumulator"] + _square(dy)
        rate = self._as(self._learning_rate, value.dtype) / primitives.Sqrt(sums)
        new = _soft_threshold(value - rate * dy, rate * self._l1) / (1.0 + rate * self._l2)
        return new, {"accumulator": sums}


@public("compat.v1.train.AdagradDAOptimizer")
class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averages: -rate * a / (rate * l2 * step + sqrt(b)), a and b the sums of dy and of dy^2.

    >>> step = tf.Variable(0, dtype=tf.int64)
    >>> tf.compat.v1.train.AdagradDAOptimizer(0.1, step).get_name()
    'AdagradDA'
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        first = initial_gradient_squared_accumulator_value
        if first <= 0.0:
            raise ValueError(f"initial_gradient_squared_accumulator_value must be positive: {first}")
        super().__init__(use_locking, name)
        self._learning_rate, self._global_step = learning_rate, global_step
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self.slots = {"gradient_accumulator": 0.0, "gradient_squared_accumulator": first}

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        rate = self._as(self._learning_rate, value.dtype)
        step = cast(self._global_step, value.dtype) + 1.0
        total = slots["gradient_accumulator"] + dy
        squares = slots["gradient_squared_accumulator"] + _square(dy)
        new = -rate * _soft_threshold(total, self._l1 * step) / (rate * self._l2 * step + primitives.Sqrt(squares))
        return new, {"gradient_accumulator": total, "gradient_squared_accumulator": squares}


@public("compat.v1.train.RMSPropOptimizer")
class RMSPropOptimizer(Optimizer):
    """s' = decay * s + (1 - decay) dy^2; step = momentum * step + rate * dy / sqrt(s' + epsilon); y - step.

    Centered, the square of the mean gradient is subtracted from s'.

    >>> tf.compat.v1.train.RMSPropOptimizer(0.1).get_name()
    'RMSProp'
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay, self._momentum, self._epsilon = learning_rate, decay, momentum, epsilon
        self._centered = centered
        self.slots = {"rms": 1.0, "mg": 0.0, "momentum": 0.0} if centered else {"rms": 1.0, "momentum": 0.0}

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        dtype = value.dtype
        rate, keep = self._as(self._learning_rate, dtype), 1.0 - self._as(self._decay, dtype)
        new = {"rms": slots["rms"] + (_square(dy) - slots["rms"]) * keep}
        variance = new["rms"] + self._as(self._epsilon, dtype)
        if self._centered:
            new["mg"] = slots["mg"] + (dy - slots["mg"]) * keep
            variance = variance - _square(new["mg"])
        new["momentum"] = slots["momentum"] * self._as(self._momentum, dtype) + rate * dy / primitives.Sqrt(variance)
        return value - new["momentum"], new


@public("compat.v1.train.AdadeltaOptimizer")
class AdadeltaOptimizer(Optimizer):
    """a' = rho * a + (1 - rho) dy^2; step = sqrt(u + epsilon) / sqrt(a' + epsilon) * dy; y - rate * step.

    u' = rho * u + (1 - rho) step^2.

    >>> tf.compat.v1.train.AdadeltaOptimizer(1.).get_name()
    'Adadelta'
    """

    slots = MappingProxyType({"accum": 0.0, "accum_update": 0.0})

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        dtype = value.dtype
        rho, epsilon = self._as(self._rho, dtype), self._as(self._epsilon, dtype)
        squares = slots["accum"] * rho + _square(dy) * (1.0 - rho)
        step = primitives.Sqrt(slots["accum_update"] + epsilon) / primitives.Sqrt(squares + epsilon) * dy
        steps = slots["accum_update"] * rho + _square(step) * (1.0 - rho)
        return value - self._as(self._learning_rate, dtype) * step, {"accum": squares, "accum_update": steps}


@public("compat.v1.train.FtrlOptimizer")
class FtrlOptimizer(Optimizer):
    """a' = a + dy^2; z' = z + dy - (a'^p - a^p) / rate * y; y' = (sign(z') l1 - z') / (a'^p / rate + 2 l2), p = -power.

    Elements with |z'| <= l1 become zero.

    >>> tf.compat.v1.train.FtrlOptimizer(0.1).get_name()
    'Ftrl'
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power must be negative or zero, got {learning_rate_power}")
        super().__init__(use_locking, name)
        self._learning_rate, self._power = learning_rate, learning_rate_power
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._shrinkage, self._beta = l2_shrinkage_regularization_strength, beta or 0.0
        self.slots = {"accum": initial_accumulator_value, "linear": 0.0}

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        dtype = value.dtype
        rate = self._as(self._learning_rate, dtype)
        shrunk = dy + 2.0 * self._shrinkage * value if self._shrinkage else dy
        sums = slots["accum"] + _square(dy)
        power, power_before = self._raised(sums), self._raised(slots["accum"])
        linear = slots["linear"] + shrunk - (power - power_before) / rate * value
        curvature = power / rate + 2.0 * self._l2 + self._beta / rate
        return -_soft_threshold(linear, cast(self._l1, dtype)) / curvature, {"accum": sums, "linear": linear}

    def _raised(self, x: Any) -> Any:
        return primitives.Sqrt(x) if self._power == -0.5 else primitives.Pow(x, cast(-self._power, x.dtype))
