"""`tf.compat.v1.mixed_precision`: factors that keep gradients of half precision from vanishing, fixed and adapted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tapeflow._src.compat.v1.graph.eager_switch import executing_eagerly
from tapeflow._src.compat.v1.variables.variable_scope import beside_the_model
from tapeflow._src.compat.v1.variables.variables import VariableV1
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import group, no_op
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import float32, int64
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.trackable import Trackable

_PLACES = ("mixed_precision", "mixed_precision.experimental", "train.experimental")


def _paths(name: str) -> list[str]:
    return [f"compat.v1.{place}.{name}" for place in _PLACES]


@public(*_paths("LossScale"))
class LossScale(Trackable, ABC):
    """A factor for losses: a call gives it, `update` adapts it to the gradients that came out.

    >>> tf.compat.v1.mixed_precision.FixedLossScale(4.)().numpy()
    np.float32(4.0)
    """

    def __init__(self) -> None:
        self._weights: dict[str, Any] = {}

    @abstractmethod
    def __call__(self) -> Any:
        """The factor, a float32 tensor."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """The operation that adapts the factor, and whether the gradients should be applied."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments of the class."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The loss scale with the arguments that `get_config` gave."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Any:
        """A variable of this loss scale, which is not trained."""
        with beside_the_model():
            variable = VariableV1(
                initial_value, name=name, dtype=dtype, trainable=False, use_resource=True,
                synchronization=find_public("VariableSynchronization").AUTO,
                aggregation=find_public("VariableAggregation").NONE,
            )  # fmt: skip
        self._weights[name] = variable
        return self._track_trackable(variable, name, overwrite=True)


@public(*_paths("FixedLossScale"))
class FixedLossScale(LossScale):
    """A factor that never changes.

    >>> tf.compat.v1.mixed_precision.FixedLossScale(8.).get_config()
    {'loss_scale_value': 8.0}
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, int | float):
            raise ValueError("loss_scale_value must be a Python int or float.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Any:
        return convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        return no_op(), True

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self) -> dict[str, Any]:
        return {"loss_scale_value": self._loss_scale_value}


@public(*_paths("DynamicLossScale"))
class DynamicLossScale(LossScale):
    """A factor that grows after `increment_period` steps with finite gradients, and shrinks when one is not finite.

    >>> scale = tf.compat.v1.mixed_precision.DynamicLossScale(8.)
    >>> _, should_apply = scale.update([tf.constant(float("inf"))])
    >>> bool(should_apply), scale().numpy()
    (False, np.float32(4.0))
    """

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period, self._multiplier = int(increment_period), float(multiplier)
        self._current_loss_scale = self._add_weight("current_loss_scale", self._initial_loss_scale, float32)
        self._num_good_steps = self._add_weight("good_steps", 0, int64)

    initial_loss_scale = property(lambda self: self._initial_loss_scale)
    increment_period = property(lambda self: self._increment_period)
    multiplier = property(lambda self: self._multiplier)

    def __call__(self) -> Any:
        return convert_to_tensor(self._current_loss_scale)

    def update(self, grads: Any) -> tuple[Any, Any]:
        cond = find_public("cond")
        finite = _all_finite_everywhere(nest.flatten(grads))
        return cond(finite, self._after_finite_gradients, self._after_others), finite

    def _after_finite_gradients(self) -> Any:
        good, scale = self._num_good_steps, self._current_loss_scale

        def grow() -> Any:
            larger = scale * self._multiplier
            kept = find_public("where")(find_public("math.is_finite")(larger), larger, scale)
            return group(scale.assign(kept), good.assign(cast(0, int64)))

        return find_public("cond")(
            good + 1 >= self._increment_period, grow, lambda: group(good.assign_add(cast(1, int64)))
        )

    def _after_others(self) -> Any:
        smaller = find_public("maximum")(self._current_loss_scale / self._multiplier, 1.0)
        return group(self._num_good_steps.assign(cast(0, int64)), self._current_loss_scale.assign(smaller))

    def __repr__(self) -> str:
        settings = (
            f"initial_loss_scale={self.initial_loss_scale}, increment_period={self.increment_period}, "
            f"multiplier={self.multiplier})"
        )
        if not executing_eagerly():
            return f"DynamicLossScale({settings}"
        scale, good = self._current_loss_scale.numpy(), self._num_good_steps.numpy()
        return f"DynamicLossScale(current_loss_scale={scale}, num_good_steps={good}, {settings}"

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }


def _all_finite(grads: list[Any]) -> Any:
    is_finite, reduce_all = find_public("math.is_finite"), find_public("reduce_all")
    values = [dx.values if isinstance(dx, IndexedSlices) else dx for dx in grads if dx is not None]
    return reduce_all([reduce_all(is_finite(value)) for value in values])


def _all_finite_everywhere(grads: list[Any]) -> Any:
    """Whether all gradients are finite, in every replica."""
    strategy = find_public("distribute.get_strategy")() if find_public("distribute.has_strategy")() else None
    if strategy is None:
        return _all_finite(grads)
    flags = strategy.extended.call_for_each_replica(lambda *own: cast(_all_finite(list(own)), float32), args=grads)
    count = strategy.reduce(find_public("distribute.ReduceOp").SUM, flags, axis=None)
    return find_public("equal")(count, float(strategy.num_replicas_in_sync))


def loss_scale_of(identifier: Any) -> LossScale | None:
    """The loss scale that a number, "dynamic" or a loss scale stands for; None for None."""
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    if isinstance(identifier, int | float):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")
