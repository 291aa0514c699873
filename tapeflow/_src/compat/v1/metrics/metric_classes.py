"""`tf.compat.v1.metrics` of labels that are numbers of classes."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.metrics.metric_variables import (
    added,
    define_metric,
    gathered,
    ratio,
    squeezed,
    total,
)
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32, float64, int64


def _flat(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Labels and predictions as vectors of class numbers, and the weights as a vector or None."""
    parts = [cast(labels, int64), cast(predictions, int64), weights]
    labels, predictions, weights = (x if x is None else primitives.Reshape(convert_to_tensor(x), [-1]) for x in parts)
    labels.shape.assert_is_compatible_with(predictions.shape)
    return labels, predictions, weights


@define_metric("mean_iou")
def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """Intersection over union, the mean over the classes so far; and the operation that adds to the table of cases.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_iou([0, 1], [0, 0], 2)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update).tolist(), session.run(value)
    ([[1.0, 0.0], [1.0, 0.0]], np.float32(0.25))
    """
    labels, predictions, _ = squeezed(labels, predictions)
    table = gathered("total_confusion_matrix", [num_classes, num_classes], float64)
    labels, predictions, weights = _flat(labels, predictions, weights)
    cases = find_public("math.confusion_matrix")(labels, predictions, num_classes, weights, float64)
    update = added(table, cases)
    seen, reduce_sum = cast(table.read_value(), float32), find_public("reduce_sum")
    common = find_public("linalg.diag_part")(seen)
    union = reduce_sum(seen, 0) + reduce_sum(seen, 1) - common
    value = ratio(total(ratio(common, union)), total(cast(union > 0.0, float32)))
    return value, update


@define_metric("mean_per_class_accuracy", "mean_per_class_accuracy/mean_accuracy")
def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> tuple[Any, Any]:
    """How often the labels of each class were predicted, the mean over classes; its update gives it for each.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.mean_per_class_accuracy([0, 1], [0, 0], 2)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update).tolist(), session.run(value)
    ([1.0, 0.0], np.float32(0.5))
    """
    labels, predictions, _ = squeezed(labels, predictions)
    whole, right = gathered("total", [num_classes]), gathered("count", [num_classes])
    labels, predictions, weights = _flat(labels, predictions, weights)
    weights = find_public("ones_like")(labels, dtype=float32) if weights is None else cast(weights, float32)
    hits = cast(primitives.Equal(labels, predictions), float32) * weights
    by_class = [primitives.UnsortedSegmentSum(x, labels, num_classes) for x in (weights, hits)]
    value = find_public("reduce_mean")(ratio(right.read_value(), whole.read_value()), name="mean_accuracy")
    new_whole, new_right = added(whole, by_class[0]), added(right, by_class[1])
    update = ratio(new_right, new_whole, name="update_op")
    return value, update
