"""Losses: cross entropies and the Poisson loss."""

from __future__ import annotations

import math
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32, float64, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError


@public("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """The cross entropy between probabilities `labels` and softmax of `logits`, one number per row.

    Args:
        labels: Distributions along `axis`.
        logits: Unnormalised log-probabilities.
        axis: The dimension of the classes.
        name: A name for the operation in graphs.

    Returns:
        A tensor: one number for each distribution.

    Gradient:
        `dy * (softmax(logits) - labels)` for `logits`, and `-dy * log_softmax(logits)` for `labels`.

    >>> tf.nn.softmax_cross_entropy_with_logits([[1., 0.]], [[0., 0.]])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.6931472], dtype=float32)>
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    if axis == -1 and labels.dtype is logits.dtype and (logits.dtype is float32 or logits.dtype is float64):
        try:
            return primitives.SoftmaxCrossEntropyWithLogits(logits, labels)
        except InvalidArgumentError:
            pass  # shapes that must be broadcast first; or it is said again below
    small = logits.dtype.size == 2 and logits.dtype.is_floating
    result_dtype = logits.dtype
    if small:
        logits = cast(logits, float32)
    if labels.dtype != logits.dtype:
        labels = cast(labels, logits.dtype)
    rank = logits.shape.rank
    if rank is None and axis == -1:
        loss = primitives.SoftmaxCrossEntropyWithLogits(logits, labels)
        return cast(loss, result_dtype) if small else loss
    if not -rank <= axis < max(rank, 1):
        raise InvalidArgumentError.of(
            f"softmax_cross_entropy_with_logits: `axis` must be in the range [{-rank}, {rank}); got {axis}"
        )
    axis = axis % rank if rank else 0
    if labels.shape.rank is not None and 0 < labels.shape.rank < rank and axis == rank - 1:
        labels = primitives.Reshape(labels, [1] * (rank - labels.shape.rank) + dynamic_dims(labels))
    if axis != rank - 1 and labels.shape.rank == rank:
        order = [i for i in range(rank) if i != axis] + [axis]
        labels, logits = primitives.Transpose(labels, order), primitives.Transpose(logits, order)
    if labels.shape != logits.shape and labels.shape.rank == rank:
        target = [max(a, b) if 1 in (a, b) else a for a, b in zip(labels.shape, logits.shape)]
        if all(a in (1, t) and b in (1, t) for a, b, t in zip(labels.shape, logits.shape, target)):
            labels, logits = primitives.BroadcastTo(labels, target), primitives.BroadcastTo(logits, target)
    loss = primitives.SoftmaxCrossEntropyWithLogits(logits, labels)
    return cast(loss, result_dtype) if small else loss


@public("nn.sparse_softmax_cross_entropy_with_logits", node=primitives.SparseSoftmaxCrossEntropyWithLogits)
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross entropy between class numbers `labels` and softmax of `logits`, one number per row.

    Args:
        labels: Class numbers, int32 or int64, of shape `logits.shape[:-1]`.
        logits: Unnormalised log-probabilities; classes along the last dimension.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `labels`.

    Gradient:
        `dy * (softmax(logits) - one_hot(labels))` for `logits`.

    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([0], [[0., 0.]])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.6931472], dtype=float32)>
    """
    if not isinstance(labels, _core.Tensor):
        labels = convert_to_tensor(labels)
    if not isinstance(logits, _core.Tensor):
        logits = convert_to_tensor(logits)
    if logits.dtype in (float32, float64) and labels.dtype in (int32, int64):
        try:
            return primitives.SparseSoftmaxCrossEntropyWithLogits(logits, labels)
        except InvalidArgumentError:
            pass  # the questions below say what is wrong, or it is said again at the end
    if logits.shape.rank == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}`")
    if None not in (labels.shape.rank, logits.shape.rank) and labels.shape.rank != logits.shape.rank - 1:
        raise ValueError(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
            f"labels.shape={labels.shape} of rank {labels.shape.rank} and "
            f"logits.shape={logits.shape} of rank {logits.shape.rank}"
        )
    if not labels.shape.is_compatible_with(logits.shape[:-1]):
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={labels.shape} and logits.shape={logits.shape}"
        )
    if labels.dtype.is_integer and labels.dtype.size < 4:
        labels = cast(labels, int32)
    if logits.dtype.size == 2 and logits.dtype.is_floating:
        loss = primitives.SparseSoftmaxCrossEntropyWithLogits(cast(logits, float32), labels)
        return cast(loss, logits.dtype)
    return primitives.SparseSoftmaxCrossEntropyWithLogits(logits, labels)


def _same_shape(logits: Any, labels: Any, names: str = "`logits` and `labels`") -> None:
    if labels.shape != logits.shape and not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(f"{names} must have the same shape, received ({logits.shape} vs {labels.shape}).")


def _log_one_plus_exp_of_minus_size(logits: Any) -> Tensor:
    """log(1 + exp(-|x|)), with the derivative of x on the right of 0."""
    negative_size = primitives.SelectV2(logits >= 0, -logits, logits)
    return primitives.Log1p(primitives.Exp(negative_size))


@public("nn.sigmoid_cross_entropy_with_logits", node="logistic_loss")
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """The cross entropy of independent probabilities `labels` and sigmoid of `logits`, element by element.

    Args:
        labels: Probabilities, of the shape and dtype of `logits`.
        logits: Log-odds.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `logits`.

    Gradient:
        `dy * (sigmoid(logits) - labels)` for `logits`, and `-dy * logits` for `labels`.

    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.], [0.])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.6931472], dtype=float32)>
    """
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    _same_shape(logits, labels)
    return primitives.SigmoidCrossEntropy(logits, labels)


@public("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    """The sigmoid cross entropy in which positive labels count `pos_weight` times.

    >>> tf.nn.weighted_cross_entropy_with_logits([1.], [0.], pos_weight=2.)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.3862944], dtype=float32)>
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    _same_shape(logits, labels)
    pos_weight = convert_to_tensor(pos_weight, dtype_hint=logits.dtype)
    log_weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + log_weight * (_log_one_plus_exp_of_minus_size(logits) + primitives.Relu(-logits))


@public("nn.log_poisson_loss", "compat.v1.nn.log_poisson_loss")
def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    """The Poisson loss `exp(log_input) - targets * log_input`; in full, with Stirling's term for `targets > 1`.

    >>> tf.nn.log_poisson_loss([2.], [0.])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>
    """
    log_input = convert_to_tensor(log_input)
    targets = convert_to_tensor(targets, dtype_hint=log_input.dtype)
    _same_shape(log_input, targets, "`log_input` and `targets`")
    loss = primitives.Exp(log_input) - log_input * targets
    if not compute_full_loss:
        return loss
    inside = primitives.LogicalAnd(targets >= 0, targets <= 1)
    one = cast(1, targets.dtype)
    above = primitives.SelectV2(inside, one, targets)
    stirling = above * primitives.Log(above) - above + 0.5 * primitives.Log(2 * math.pi * above)
    return loss + primitives.SelectV2(inside, cast(0, targets.dtype), stirling)


@public("nn.l2_loss", "compat.v1.nn.l2_loss", node="L2Loss")
def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares.

    >>> tf.nn.l2_loss([3., 4.])
    <tf.Tensor: shape=(), dtype=float32, numpy=12.5>
    """
    t = convert_to_tensor(t)
    if not t.dtype.is_floating:
        raise InvalidArgumentError.of(
            f"l2_loss: Value for attr 'T' of {t.dtype.name} is not in the list of allowed values: half, bfloat16, "
            "float, double"
        )
    return primitives.SumOfSquares(t) * 0.5
