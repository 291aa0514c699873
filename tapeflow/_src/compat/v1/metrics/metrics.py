"""`tf.compat.v1.metrics` that are means: local variables gather them over the runs of a session."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.metrics.metric_variables import (
    collect,
    mean_of,
    metric_scope,
    ratio_of,
    squeezed,
    weights_like,
)
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32


@public("compat.v1.metrics.mean")
def mean(
    values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The weighted mean of all values so far, and the operation that takes `values` in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean([1., 3.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    2.0
    """
    with metric_scope("mean", name):
        values, _, weights = squeezed(values, None, weights)
        return collect(*mean_of(values, weights), metrics_collections, updates_collections)


@public("compat.v1.metrics.mean_tensor")
def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The weighted mean of each element over all runs so far, and the operation that takes `values` in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_tensor([1., 3.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    array([1., 3.], dtype=float32)
    """
    with metric_scope("mean_tensor", name, "mean"):
        values, _, weights = squeezed(cast(values, float32), None, weights)
        weights = weights_like(values, weights)
        found = ratio_of(values * weights, weights, ("total_tensor", "count_tensor"))
        return collect(*found, metrics_collections, updates_collections)


@public("compat.v1.metrics.accuracy")
def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """How often predictions and labels were equal so far, and the operation that takes more in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.accuracy([1, 0], [1, 1])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    0.5
    """
    with metric_scope("accuracy", name):
        predictions, labels, weights = squeezed(predictions, labels, weights)
        same = primitives.Equal(predictions, cast(labels, predictions.dtype))
        return collect(*mean_of(same, weights), metrics_collections, updates_collections)


def _error_metric(name: str, error: Any, summary: str, last: Any = lambda x: x) -> None:
    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        with metric_scope(metric.__name__, name):
            predictions, labels, weights = squeezed(cast(predictions, float32), cast(labels, float32), weights)
            value, update = mean_of(error(predictions - labels), weights)
            return collect(last(value), last(update), metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"""{summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default():
    ...     value, update = tf.compat.v1.metrics.{name}([1.], [3.])
    ...     value.shape
    TensorShape([])
    """
    public(f"compat.v1.metrics.{name}")(metric)


_error_metric("mean_squared_error", primitives.Square, "The mean of the squared errors")
_error_metric("mean_absolute_error", primitives.Abs, "The mean of the absolute errors")
_error_metric("root_mean_squared_error", primitives.Square, "The root of the mean squared error", primitives.Sqrt)


@public("compat.v1.metrics.mean_relative_error")
def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The mean of the absolute errors, each divided by `normalizer` (0 where that is 0), and its update.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_relative_error([1.], [3.], [4.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    0.5
    """
    with metric_scope("mean_relative_error", name):
        predictions, labels, weights = squeezed(predictions, labels, weights)
        predictions, normalizer, _ = squeezed(predictions, normalizer)
        error = find_public("math.divide_no_nan")(primitives.Abs(labels - predictions), normalizer)
        return collect(*mean_of(error, weights), metrics_collections, updates_collections)


@public("compat.v1.metrics.mean_cosine_distance")
def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """1 minus the mean of the products of labels and predictions, summed along `dim`, and its update.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_cosine_distance([[0., 1.]], [[0., 1.]], 1)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    0.0
    """
    with metric_scope("mean_cosine_distance", name):
        predictions, labels, weights = squeezed(predictions, labels, weights)
        products = find_public("reduce_sum")(predictions * labels, [dim], keepdims=True)
        value, update = mean_of(products, weights)
    return collect(1.0 - value, 1.0 - update, metrics_collections, updates_collections)


@public("compat.v1.metrics.percentage_below")
def percentage_below(
    values: Any, threshold: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The share of values below the threshold so far, and the operation that takes more in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.percentage_below([1., 3.], 2.)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    0.5
    """
    with metric_scope("percentage_below", name, "percentage_below_threshold"):
        values, _, weights = squeezed(convert_to_tensor(values), None, weights)
        below = primitives.Less(values, cast(threshold, values.dtype))
        return collect(*mean_of(below, weights), metrics_collections, updates_collections)
