"""Losses of one replica's part of a batch, so that their sum over the replicas is the loss of the batch."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.distribute import strategy as _strategy  # noqa: F401  it sets the default strategy
from tapeflow._src.distribute.context import get_strategy, has_strategy, in_cross_replica_context
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.assertions import assert_integer, assert_non_negative, assert_scalar
from tapeflow._src.types.dtypes import float32, float64
from tapeflow._src.types.tensor import Tensor


@public("nn.compute_average_loss", "compat.v1.nn.compute_average_loss")
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the losses over the batch size of all replicas; by default that of this one times their number.

    Args:
        per_example_loss: One loss for each example.
        sample_weight: Weights of the examples.
        global_batch_size: The number of examples over all replicas; that of this one times the number of replicas if
            None.

    Returns:
        A tensor: a scalar.

    Gradient:
        By `per_example_loss` and `sample_weight`.

    >>> tf.nn.compute_average_loss([1., 3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    replicas = _number_of_replicas("compute_average_loss") if global_batch_size is None else 1
    loss = convert_to_tensor(per_example_loss)
    if loss.shape.rank == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. Received "
            f"per_example_loss={per_example_loss} with rank 0"
        )
    if loss.dtype.is_integer:
        loss = cast(loss, _quotient_dtype(loss.dtype))
    batch = loss.shape[0]
    if sample_weight is not None:
        weight = convert_to_tensor(sample_weight, dtype_hint=loss.dtype)
        loss = _weighted_whole(loss, cast(weight, loss.dtype))
    if global_batch_size is None:
        global_batch_size = replicas * (primitives.Shape(loss)[0] if batch is None else batch)
    else:
        global_batch_size = convert_to_tensor(global_batch_size)
        assert_scalar(global_batch_size, "global_batch_size must be scalar.")
        assert_integer(global_batch_size, "global_batch_size must be an integer.")
        assert_non_negative(global_batch_size, "global_batch_size must be non-negative.")
    size = cast(global_batch_size, loss.dtype)
    return primitives.DivNoNan(primitives.Sum(loss, None, False), size)


def _weighted(loss: Any, weight: Any) -> Any:
    """The losses times weights, whose rank may be one less or one more."""
    missing = loss.shape.rank - weight.shape.rank
    if weight.shape.rank and missing == 1:
        weight = primitives.ExpandDims(weight, -1)
    elif missing == -1 and weight.shape[-1] == 1:
        weight = primitives.Squeeze(weight, [-1])
    return loss * weight


_weighted_whole: Any = _core.Composition(_weighted)  # ranks may be unknown while tracing


@public("nn.scale_regularization_loss", "compat.v1.nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the losses over the number of replicas.

    Args:
        regularization_loss: The losses of a model's regularizers.

    Returns:
        A tensor: a scalar.

    Gradient:
        By `regularization_loss`.

    >>> tf.nn.scale_regularization_loss([1., 2.])
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    replicas = _number_of_replicas("scale_regularization_loss")
    loss = primitives.Sum(convert_to_tensor(regularization_loss), None, False)
    if loss.dtype.is_integer:
        loss = cast(loss, _quotient_dtype(loss.dtype))
    return loss if replicas == 1 else primitives.RealDiv(loss, cast(float(replicas), loss.dtype))


def _number_of_replicas(who: str) -> int:
    if has_strategy() and in_cross_replica_context():
        raise RuntimeError(
            f"You are calling `{who}` in cross replica context, while it was expected to be called in replica context."
        )
    return int(get_strategy().num_replicas_in_sync)


def _quotient_dtype(dtype: Any) -> Any:
    """The dtype of quotients of integers."""
    return float32 if dtype.size < 4 else float64
