"""`tf.compat.v1.metrics` that are means: local variables gather them over the runs of a session."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.metrics.metric_variables import (
    define_metric,
    mean_of,
    ratio_of,
    squeezed,
    weights_like,
)
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32


@define_metric("mean")
def mean(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """The weighted mean of all values so far, and the operation that takes `values` in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean([1., 3.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float32(2.0)
    """
    values, _, weights = squeezed(values, None, weights)
    return mean_of(values, weights)


@define_metric("mean_tensor", "mean_tensor/mean")
def mean_tensor(values: Any, weights: Any = None) -> tuple[Any, Any]:
    """The weighted mean of each element over all runs so far, and the operation that takes `values` in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_tensor([1., 3.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    array([1., 3.], dtype=float32)
    """
    values, _, weights = squeezed(cast(values, float32), None, weights)
    weights = weights_like(values, weights)
    return ratio_of(values * weights, weights, ("total_tensor", "count_tensor"))


@define_metric("accuracy")
def accuracy(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
    """How often predictions and labels were equal so far, and the operation that takes more in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.accuracy([1, 0], [1, 1])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float32(0.5)
    """
    predictions, labels, weights = squeezed(predictions, labels, weights)
    same = primitives.Equal(predictions, cast(labels, predictions.dtype))
    return mean_of(same, weights)


def _error_metric(name: str, error: Any, summary: str, last: Any = lambda x: x) -> None:
    def formula(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
        predictions, labels, weights = squeezed(cast(predictions, float32), cast(labels, float32), weights)
        value, update = mean_of(error(predictions - labels), weights)
        return last(value), last(update)

    formula.__doc__ = f"""{summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default():
    ...     value, update = tf.compat.v1.metrics.{name}([1.], [3.])
    ...     value.shape
    TensorShape([])
    """
    define_metric(name)(formula)


_error_metric("mean_squared_error", primitives.Square, "The mean of the squared errors")
_error_metric("mean_absolute_error", primitives.Abs, "The mean of the absolute errors")
_error_metric("root_mean_squared_error", primitives.Square, "The root of the mean squared error", primitives.Sqrt)


@define_metric("mean_relative_error")
def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None) -> tuple[Any, Any]:
    """The mean of the absolute errors, each divided by `normalizer` (0 where that is 0), and its update.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_relative_error([1.], [3.], [4.])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float32(0.5)
    """
    predictions, labels, weights = squeezed(predictions, labels, weights)
    predictions, normalizer, _ = squeezed(predictions, normalizer)
    error = find_public("math.divide_no_nan")(primitives.Abs(labels - predictions), normalizer)
    return mean_of(error, weights)


@define_metric("mean_cosine_distance")
def mean_cosine_distance(labels: Any, predictions: Any, dim: int, weights: Any = None) -> tuple[Any, Any]:
    """1 minus the mean of the products of labels and predictions, summed along `dim`, and its update.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_cosine_distance([[0., 1.]], [[0., 1.]], 1)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float32(0.0)
    """
    predictions, labels, weights = squeezed(predictions, labels, weights)
    products = find_public("reduce_sum")(predictions * labels, [dim], keepdims=True)
    value, update = mean_of(products, weights)
    return 1.0 - value, 1.0 - update


@define_metric("percentage_below", "percentage_below/percentage_below_threshold")
def percentage_below(values: Any, threshold: Any, weights: Any = None) -> tuple[Any, Any]:
    """The share of values below the threshold so far, and the operation that takes more in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.percentage_below([1., 3.], 2.)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float32(0.5)
    """
    values, _, weights = squeezed(convert_to_tensor(values), None, weights)
    below = primitives.Less(values, cast(threshold, values.dtype))
    return mean_of(below, weights)
