"""`tf.compat.v1.losses`: losses with weights and reductions, which a graph collects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.eager_switch import name_scope
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.signatures.families import family
from tapeflow._src.compat.v1.train.weights import check_weights, require_broadcastable
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import after
from tapeflow._src.types.dtypes import float32


@public("compat.v1.losses.Reduction")
class Reduction:
    """How the losses of the elements become one number.

    >>> tf.compat.v1.losses.Reduction.MEAN
    'weighted_mean'
    """

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError if there is no such reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}. Key should be one of {cls.all()}.")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def _sum(x: Any) -> Any:
    return find_public("reduce_sum")(x)


@public("compat.v1.losses.compute_weighted_loss")
def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Any:
    """The losses times their weights, as one number; a graph collects it.

    >>> tf.compat.v1.losses.compute_weighted_loss([1., 3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss"):
        loss = _weighted(convert_to_tensor(losses), weights, reduction)
    add_loss(loss, loss_collection)
    return loss


def _weighted(losses: Any, weights: Any, reduction: str) -> Any:
    weights = cast(convert_to_tensor(weights), float32)
    check = require_broadcastable(losses, weights)
    weighted = after(check, cast(losses, float32)) * weights
    loss = weighted
    if reduction != Reduction.NONE:
        loss = _sum(weighted)
        ones, divide = find_public("ones_like")(weighted), find_public("math.divide_no_nan")
        if reduction == Reduction.MEAN:
            loss = divide(loss, _sum(ones * weights), name="value")
        elif reduction == _BY_NONZERO:
            present = cast(primitives.NotEqual(ones * weights, cast(0, float32)), float32)
            loss = divide(loss, _sum(present), name="value")
        elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
            loss = divide(loss, _sum(ones), name="value")
    return cast(loss, losses.dtype)


def _check_given(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise ValueError(f"Argument `{name}` must not be None.")


def _pair(labels: Any, predictions: Any) -> tuple[Any, Any]:
    _check_given(labels=labels, predictions=predictions)
    predictions, labels = cast(predictions, float32), cast(labels, float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def _run_loss(
    label: str, losses: Callable[[], Any], weights: Any, scope: str | None, loss_collection: str | None, reduction: str
) -> Any:
    return compute_weighted_loss(losses(), weights, scope or label, loss_collection, reduction)


_loss = family(
    "losses",
    f"weights=1.0, scope=None, loss_collection='{GraphKeys.LOSSES}', reduction='{_BY_NONZERO}'",
    _run_loss,
)


@_loss("mean_squared_error")
def mean_squared_error(labels: Any, predictions: Any) -> Tensor:
    """The mean of the squared differences.

    >>> tf.compat.v1.losses.mean_squared_error([1., 2.], [1., 4.])
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    labels, predictions = _pair(labels, predictions)
    return primitives.Square(predictions - labels)


@_loss("absolute_difference")
def absolute_difference(labels: Any, predictions: Any) -> Tensor:
    """The mean of the absolute differences.

    >>> tf.compat.v1.losses.absolute_difference([1., 2.], [1., 4.])
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    labels, predictions = _pair(labels, predictions)
    return primitives.Abs(predictions - labels)


@public("compat.v1.losses.cosine_distance")
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
    dim: int | None = None,
) -> Any:
    """One minus the products of vectors of length one along `axis` (`dim` is a deprecated name).

    >>> tf.compat.v1.losses.cosine_distance([[1., 0.]], [[0.6, 0.8]], axis=1)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.3999999761581421>
    """
    if axis is not None and dim is not None:
        raise ValueError("Cannot specify both 'dim' and 'axis'.")
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    labels, predictions = _pair(labels, predictions)
    losses = 1 - find_public("reduce_sum")(labels * predictions, axis=axis, keepdims=True)
    return compute_weighted_loss(losses, weights, scope or "cosine_distance_loss", loss_collection, reduction)


@public("compat.v1.losses.mean_pairwise_squared_error")
def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Any:
    """The sum over rows of the mean, over pairs of elements of the row, of the squared error of their difference.

    >>> tf.compat.v1.losses.mean_pairwise_squared_error([[0., 0.]], [[0., 2.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=4.0>
    """
    labels, predictions = _pair(labels, predictions)
    errors = predictions - labels
    weights = cast(convert_to_tensor(weights), float32)
    check_weights(errors, weights)
    loss = _pairwise_whole(errors, weights)
    add_loss(loss, loss_collection)
    return loss


def _pairwise(errors: Any, weights: Any) -> Any:
    present = cast(primitives.NotEqual(weights, cast(0, float32)), float32) * find_public("ones_like")(errors)
    sum_of_row = functools.partial(find_public("reduce_sum"), axis=list(range(1, errors.shape.rank)), keepdims=True)
    count, sums = sum_of_row(present), sum_of_row(errors)
    divide = find_public("math.divide_no_nan")
    squares = divide(sum_of_row(errors * errors), primitives.Maximum(count - 1.0, cast(0, float32)))
    products = divide(sums * sums, primitives.Maximum(count * (count - 1.0), cast(0, float32)))
    return _sum(2.0 * (squares - products) * weights)


_pairwise_whole: Any = _core.Composition(_pairwise)  # the rank may be unknown while tracing


@_loss("huber_loss")
def huber_loss(labels: Any, predictions: Any, *, delta: float = 1.0) -> Tensor:
    """Half the square of small differences; large ones count linearly.

    >>> tf.compat.v1.losses.huber_loss([0.], [3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=2.5>
    """
    labels, predictions = _pair(labels, predictions)
    size = primitives.Abs(predictions - labels)
    small = primitives.Minimum(size, cast(delta, float32))
    return 0.5 * primitives.Square(small) + delta * (size - small)


@_loss("log_loss")
def log_loss(labels: Any, predictions: Any, *, epsilon: float = 1e-7) -> Any:
    """The cross entropy of probabilities.

    >>> tf.compat.v1.losses.log_loss([1.], [1.]) < 1e-6
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    labels, predictions = _pair(labels, predictions)
    losses = -labels * primitives.Log(predictions + epsilon)
    return losses - (1.0 - labels) * primitives.Log(1.0 - predictions + epsilon)


@_loss("hinge_loss")
def hinge_loss(labels: Any, logits: Any) -> Tensor:
    """max(0, 1 - y * logits), y being -1 and 1 for the labels 0 and 1.

    >>> tf.compat.v1.losses.hinge_loss([1.], [0.])
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    labels, logits = _pair(labels, logits)
    return primitives.Relu(1.0 - (2.0 * labels - 1.0) * logits)


@_loss("sigmoid_cross_entropy", "sigmoid_cross_entropy_loss")
def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, *, label_smoothing: float = 0) -> Any:
    """The cross entropy of independent classes.

    >>> tf.compat.v1.losses.sigmoid_cross_entropy([[1.]], [[0.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.6931471824645996>
    """
    _check_given(multi_class_labels=multi_class_labels, logits=logits)
    logits = convert_to_tensor(logits)
    labels = cast(multi_class_labels, logits.dtype)
    logits.shape.assert_is_compatible_with(labels.shape)
    if label_smoothing > 0:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return find_public("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=logits)


@_loss("softmax_cross_entropy", "softmax_cross_entropy_loss")
def softmax_cross_entropy(onehot_labels: Any, logits: Any, *, label_smoothing: float = 0) -> Any:
    """The cross entropy of classes that exclude each other.

    >>> tf.compat.v1.losses.softmax_cross_entropy([[1., 0.]], [[0., 0.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.6931471824645996>
    """
    _check_given(onehot_labels=onehot_labels, logits=logits)
    logits = convert_to_tensor(logits)
    labels = cast(onehot_labels, logits.dtype)
    logits.shape.assert_is_compatible_with(labels.shape)
    if label_smoothing > 0:
        known = labels.shape[-1] if labels.shape.rank else None
        classes = cast(primitives.Shape(labels)[-1] if known is None else known, labels.dtype)
        labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
    labels = primitives.StopGradient(labels)
    return find_public("nn.softmax_cross_entropy_with_logits")(labels=labels, logits=logits)


@public("compat.v1.losses.sparse_softmax_cross_entropy")
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Any:
    """The cross entropy of class indices. Labels and weights may have a last dimension of size one.

    >>> tf.compat.v1.losses.sparse_softmax_cross_entropy([0], [[0., 0.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.6931471824645996>
    """
    _check_given(labels=labels, logits=logits)
    logits = convert_to_tensor(logits)
    labels = _without_last(convert_to_tensor(labels), logits)
    losses = find_public("nn.sparse_softmax_cross_entropy_with_logits")(labels=labels, logits=logits)
    weights = _without_last(convert_to_tensor(weights), logits)
    label = "sparse_softmax_cross_entropy_loss"
    return compute_weighted_loss(losses, weights, scope or label, loss_collection, reduction)


def _without_last(x: Any, logits: Any) -> Any:
    """A tensor of the rank of the logits without its last dimension, if that has size one."""
    if x.shape.rank is not None and (not x.shape.rank or x.shape[-1] not in (None, 1)):
        return x
    if None not in (x.shape.rank, logits.shape.rank):
        is_longer = x.shape.rank == logits.shape.rank and x.shape[-1] == 1
        return primitives.Squeeze(x, [-1]) if is_longer else x
    rank, equal = find_public("rank"), find_public("equal")
    return find_public("cond")(equal(rank(x), rank(logits)), lambda: find_public("squeeze")(x, [-1]), lambda: x)


@public("compat.v1.losses.add_loss")
def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to those that the graph collects.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.losses.add_loss(tf.constant(1.))
    """
    if loss_collection and _core.current_graph() is not None:
        get_default_graph().add_to_collection(loss_collection, loss)


@public("compat.v1.losses.get_losses")
def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses that the graph has collected.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.losses.get_losses()
    []
    """
    return get_default_graph().get_collection(loss_collection, scope)


@public("compat.v1.losses.get_regularization_losses")
def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses that regularizers of variables gave.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.losses.get_regularization_losses()
    []
    """
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


@public("compat.v1.losses.get_regularization_loss")
def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the losses that regularizers of variables gave.

    >>> tf.compat.v1.losses.get_regularization_loss()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """
    losses = get_regularization_losses(scope)
    return primitives.AddN(losses, name=name) if losses else convert_to_tensor(0.0)


@public("compat.v1.losses.get_total_loss")
def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses of the graph.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     tf.compat.v1.losses.add_loss(tf.constant(2.))
    ...     session.run(tf.compat.v1.losses.get_total_loss())
    np.float32(2.0)
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return primitives.AddN(losses, name=name)
