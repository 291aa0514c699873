"""Optimizers that scale their loss, and the switch of TensorFlow 1 that wraps an optimizer so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.train.loss_scales import FixedLossScale, LossScale, loss_scale_of
from tapeflow._src.compat.v1.train.optimizer import Optimizer
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.arrays.passing import group, no_op
from tapeflow._src.types.indexed_slices import IndexedSlices

_state = {"rewrite": False, "policy": False}
_wrappers: list[tuple[type, Callable[..., Any]]] = []


@public(
    "compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer",
    "compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer",
)
class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer that multiplies the loss by a factor, divides the gradients by it, and skips those not finite.

    >>> v = tf.Variable(1.)
    >>> inner = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    >>> tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(inner, 128.).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.8)
    """

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt._name)
        scale = loss_scale_of(loss_scale)
        if scale is None:
            raise ValueError("loss_scale cannot be None")
        self._optimizer, self._loss_scale = opt, scale

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        pairs = self._optimizer.compute_gradients(
            self._scaled(loss), var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        return [(self._unscaled(dx), variable) for dx, variable in pairs]

    def _scaled(self, loss: Any) -> Any:
        if callable(loss):
            return lambda: self._scaled(loss())
        return loss * cast(self._loss_scale(), loss.dtype)

    def _unscaled(self, dx: Any) -> Any:
        if dx is None:
            return None
        values = dx.values if isinstance(dx, IndexedSlices) else dx
        values = values * cast(1.0 / self._loss_scale(), values.dtype)
        return IndexedSlices(values, dx.indices, dx.dense_shape) if isinstance(dx, IndexedSlices) else values

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Any:  # fmt: skip
        pairs = list(grads_and_vars)
        if find_public("distribute.in_cross_replica_context")():
            raise ValueError("apply_gradients() must be called in a replica context.")
        if isinstance(self._loss_scale, FixedLossScale):
            return self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        update, should_apply = self._loss_scale.update([dx for dx, _ in pairs])

        def apply() -> Any:
            applied = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
            return no_op() if applied is None else applied

        self._optimizer._create_slots([variable for dx, variable in pairs if dx is not None])
        return group(find_public("__internal__.smart_cond.smart_cond")(should_apply, apply, no_op), update)

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer and of the factor."""
        return [*self._optimizer.variables(), *self._loss_scale._weights.values()]


@public("__internal__.mixed_precision.register_loss_scale_wrapper")
def register_loss_scale_wrapper(optimizer_cls: type, wrapper_fn: Callable[..., Any], wrapper_cls: Any = None) -> None:
    """Says how an optimizer of a class is wrapped so that it scales its loss.

    >>> class Descent: pass
    >>> tf.__internal__.mixed_precision.register_loss_scale_wrapper(Descent, lambda optimizer, scale: optimizer)
    """
    _wrappers.append((optimizer_cls, wrapper_fn))
    if wrapper_cls is not None:
        _wrapped_classes.append(wrapper_cls)


_wrapped_classes: list[type] = [MixedPrecisionLossScaleOptimizer]


def _wrapped(optimizer: Any, loss_scale: Any) -> Any:
    if isinstance(optimizer, tuple(_wrapped_classes)):
        raise ValueError(f'"opt" must not already be an instance of a {type(optimizer).__name__}.')
    scale: LossScale | None = loss_scale_of(loss_scale)
    for kind, wrap in _wrappers:
        if isinstance(optimizer, kind):
            return wrap(optimizer, scale)
    if isinstance(optimizer, Optimizer):
        return MixedPrecisionLossScaleOptimizer(optimizer, scale)
    raise ValueError(
        f'"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: {optimizer}'
    )


@public(
    "compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite",
    "compat.v1.train.experimental.enable_mixed_precision_graph_rewrite",
)
def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """The optimizer with a scaled loss. As in TensorFlow on a CPU, no operation is rewritten to half precision.

    >>> opt = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    >>> type(tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt)).__name__
    'MixedPrecisionLossScaleOptimizer'
    >>> tf.compat.v1.mixed_precision.disable_mixed_precision_graph_rewrite()
    """
    if _state["policy"]:
        raise ValueError(
            "The mixed precision graph rewrite cannot be enabled, because the global Keras dtype Policy has been set "
            "to a mixed precision policy. At most, one of the following can be called: "
            "keras.mixed_precision.set_global_policy() with a mixed precision policy, and "
            "tf.train.experimental.enable_mixed_precision_graph_rewrite()."
        )
    optimizer = _wrapped(opt, loss_scale)
    find_public("config.optimizer.set_experimental_options")({"auto_mixed_precision": True})
    _state["rewrite"] = True
    return optimizer


@public(
    "compat.v1.mixed_precision.disable_mixed_precision_graph_rewrite",
    "compat.v1.train.experimental.disable_mixed_precision_graph_rewrite",
)
def disable_mixed_precision_graph_rewrite() -> None:
    """Ends what `enable_mixed_precision_graph_rewrite` began; optimizers that were wrapped stay so.

    >>> tf.compat.v1.mixed_precision.disable_mixed_precision_graph_rewrite()
    """
    if _state["rewrite"]:
        find_public("config.optimizer.set_experimental_options")({"auto_mixed_precision": False})
    _state["rewrite"] = False


@public("__internal__.train.is_mixed_precision_graph_rewrite_enabled")
def is_mixed_precision_graph_rewrite_enabled() -> bool:
    """Whether `enable_mixed_precision_graph_rewrite` was called.

    >>> tf.__internal__.train.is_mixed_precision_graph_rewrite_enabled()
    False
    """
    return _state["rewrite"]


@public("__internal__.train.set_using_mixed_precision_policy")
def set_using_mixed_precision_policy(is_using: bool) -> None:
    """Records whether a policy of Keras computes in mixed precision.

    >>> tf.__internal__.train.set_using_mixed_precision_policy(False)
    """
    _state["policy"] = is_using
