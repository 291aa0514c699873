"""`tf.compat.v1.metrics` of true and false labels: how often they are predicted, at one threshold or at many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.metrics.metric_variables import (
    added,
    collect,
    define_metric,
    gathered,
    metric_scope,
    ratio,
    squeezed,
    total,
    weights_like,
)
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32

_SMALL = 1e-7  # added to denominators, and beyond the ends of the thresholds, as TensorFlow does
# What is counted: the label and the prediction of the cases.
_CASES = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}


def _define(name: str, formula: Callable[..., Any], summary: str, argument: str = "", scope: str = "") -> None:
    formula.__doc__ = f"""{summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default():
    ...     value, update = tf.compat.v1.metrics.{name}([1., 0.], [1., 1.]{argument})
    ...     value.shape
    TensorShape([{"1" if argument else ""}])
    """
    define_metric(name, f"{name}/{scope}")(formula)


# ---- predictions that are true or false


def _count(labels: Any, predictions: Any, weights: Any, case: str, name: str) -> tuple[Any, Any]:
    """The number of such cases, and its update."""
    boolean = as_dtype("bool")
    predictions, labels, weights = squeezed(cast(predictions, boolean), cast(labels, boolean), weights)
    label, prediction = _CASES[case]
    hits = primitives.LogicalAnd(primitives.Equal(labels, label), primitives.Equal(predictions, prediction))
    hits = cast(hits, float32)
    count = gathered(name)
    update = added(count, total(hits * weights_like(hits, weights)))
    return count.read_value(), update


def _count_metric(case: str, summary: str) -> None:
    def count(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
        return _count(labels, predictions, weights, case, "count")

    def at_thresholds(labels: Any, predictions: Any, thresholds: Any, weights: Any = None) -> tuple[Any, Any]:
        return counts_at_thresholds(labels, predictions, thresholds, weights, [case])[case]

    _define(case, count, f"The number of {summary}")
    _define(f"{case}_at_thresholds", at_thresholds, f"For each threshold, the number of {summary}", ", [0.5]", case)


_count_metric("true_positives", "true labels that were predicted")
_count_metric("false_positives", "false labels that were predicted as true")
_count_metric("true_negatives", "false labels that were predicted")
_count_metric("false_negatives", "true labels that were predicted as false")


def _share_metric(name: str, wrong: str, summary: str) -> None:
    def share(labels: Any, predictions: Any, weights: Any = None) -> tuple[Any, Any]:
        cases = ("true_positives", wrong)
        (right, more_right), (other, more_other) = (
            _count(labels, predictions, weights, case, f"{case}/count") for case in cases
        )
        value = ratio(right, right + other, name="value")
        return value, ratio(more_right, more_right + more_other, name="update_op")

    def at_thresholds(labels: Any, predictions: Any, thresholds: Any, weights: Any = None) -> tuple[Any, ...]:
        counts = counts_at_thresholds(labels, predictions, thresholds, weights, ["true_positives", wrong])
        rights, wrongs = counts["true_positives"], counts[wrong]
        return tuple(
            primitives.RealDiv(right, right + other + _SMALL, name=f"{name}_{end}")
            for right, other, end in zip(rights, wrongs, ("value", "update_op"))
        )

    _define(name, share, summary)
    each = f"For each threshold: {summary[0].lower()}{summary[1:]}"
    _define(f"{name}_at_thresholds", at_thresholds, each, ", [0.5]")


_share_metric("precision", "false_positives", "The share of true labels among those predicted as true")
_share_metric("recall", "false_negatives", "The share of true labels that were predicted")


# ---- predictions between 0 and 1, at many thresholds


def counts_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any, cases: Any
) -> dict[str, tuple[Any, Any]]:
    """For each kind of case, the numbers of cases at all thresholds, and their update."""
    predictions, labels, weights = squeezed(cast(predictions, float32), cast(labels, as_dtype("bool")), weights)
    weights = None if weights is None else primitives.Reshape(weights_like(predictions, weights), [1, -1])
    thresholds = cast(convert_to_tensor(list(thresholds)), float32)
    above = primitives.Greater(primitives.Reshape(predictions, [1, -1]), primitives.Reshape(thresholds, [-1, 1]))
    is_true = primitives.Reshape(labels, [1, -1])
    found = {}
    for case in cases:
        label, prediction = _CASES[case]
        hits = primitives.LogicalAnd(primitives.Equal(is_true, label), primitives.Equal(above, prediction))
        hits = cast(hits, float32) if weights is None else cast(hits, float32) * weights
        counts = gathered(case, [thresholds.shape[0]])
        found[case] = (counts.read_value(), added(counts, find_public("reduce_sum")(hits, 1)))
    return found


def _between(count: int) -> list[float]:
    return [(i + 1) / (count - 1) for i in range(count - 2)]


def _within_range(predictions: Any) -> Any:
    predictions = cast(predictions, float32)
    checks = [
        find_public("debugging.assert_greater_equal")(predictions, 0.0, message="predictions must be in [0, 1]"),
        find_public("debugging.assert_less_equal")(predictions, 1.0, message="predictions must be in [0, 1]"),
    ]
    with find_public("control_dependencies")(checks):
        return find_public("identity")(predictions)


def _all_counts(labels: Any, predictions: Any, inner: list[float], weights: Any) -> list[dict[str, Any]]:
    """The counts at the thresholds and beyond both ends: as they are, and as they are after the update."""
    thresholds = [-_SMALL, *inner, 1.0 + _SMALL]
    found = counts_at_thresholds(labels, _within_range(predictions), thresholds, weights, _CASES)
    return [{case: pair[i] for case, pair in found.items()} for i in range(2)]


@public("compat.v1.metrics.auc")
def auc(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200, metrics_collections: Any = None,
    updates_collections: Any = None, curve: str = "ROC", name: str | None = None,
    summation_method: str = "trapezoidal", thresholds: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The area under the curve of hits against false alarms ("ROC"), or of precision against recall ("PR"), so far.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.auc([1., 0., 1.], [0.9, 0.2, 0.6])
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     round(float(session.run(update)), 4)
    1.0
    """
    with metric_scope("auc", name):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Curve must be either ROC or PR. Curve {curve} is unknown.")
        if summation_method not in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
            raise ValueError(
                f"Invalid summation_method: {summation_method} summation_method should be 'trapezoidal', "
                "'careful_interpolation', 'minoring', or 'majoring'."
            )
        inner = _between(num_thresholds) if thresholds is None else sorted(thresholds)
        counts = _all_counts(labels, predictions, inner, weights)
        found = [_area(c, curve, summation_method, end) for c, end in zip(counts, ("value", "update_op"))]
        return collect(found[0], found[1], metrics_collections, updates_collections)


def _area(counts: dict[str, Any], curve: str, method: str, name: str) -> Any:
    hits, misses = counts["true_positives"], counts["false_negatives"]
    false_alarms, rejections = counts["false_positives"], counts["true_negatives"]
    small = 1e-6
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated_area(hits, misses, false_alarms, name)
    recall = (hits + small) / (hits + misses + small)
    if curve == "ROC":
        x, y = false_alarms / (false_alarms + rejections + small), recall
    else:
        x, y = recall, (hits + small) / (hits + false_alarms + small)
    if method == "minoring":
        heights = primitives.Minimum(y[:-1], y[1:])
    elif method == "majoring":
        heights = primitives.Maximum(y[:-1], y[1:])
    else:
        heights = (y[:-1] + y[1:]) / 2.0
    return find_public("reduce_sum")((x[:-1] - x[1:]) * heights, name=name)


def _interpolated_area(hits: Any, misses: Any, false_alarms: Any, name: str) -> Any:
    """Between two thresholds hits grow linearly with what is predicted as true, so precision is a + b log(p)."""
    predicted = hits + false_alarms
    gained = hits[:-1] - hits[1:]
    slope = ratio(gained, primitives.Maximum(predicted[:-1] - predicted[1:], 0.0))
    intercept = hits[1:] - slope * predicted[1:]
    both = primitives.LogicalAnd(predicted[:-1] > 0.0, predicted[1:] > 0.0)
    growth = ratio(predicted[:-1], primitives.Maximum(predicted[1:], 0.0))
    growth = primitives.SelectV2(both, growth, find_public("ones_like")(growth))
    parts = slope * (gained + intercept * primitives.Log(growth))
    return find_public("reduce_sum")(ratio(parts, primitives.Maximum(hits[1:] + misses[1:], 0.0)), name=name)


def _share_at(
    labels: Any, predictions: Any, weights: Any, count: int, fixed: Any, wanted: Any, at: float, last: bool
) -> tuple[Any, Any]:
    """The share of `wanted` cases at the threshold where that of the `fixed` ones is nearest to `at`."""
    found: list[Any] = []
    for counts in _all_counts(labels, predictions, _between(count), weights):
        known, other = (counts[right] / (counts[right] + counts[wrong] + _SMALL) for right, wrong in (fixed, wanted))
        distance = primitives.Abs(known - at)
        if last:  # of equal ones
            index = -1 - find_public("argmin")(find_public("reverse")(distance, [0]))
            index = index + cast(find_public("size")(distance), index.dtype)
        else:
            index = find_public("argmin")(distance)
        found.append(find_public("gather")(other, index))
    return found[0], found[1]


@define_metric("sensitivity_at_specificity")
def sensitivity_at_specificity(
    labels: Any, predictions: Any, specificity: float, weights: Any = None, num_thresholds: int = 200
) -> tuple[Any, Any]:
    """The share of true labels found where the share of false labels rejected is nearest to `specificity`.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.sensitivity_at_specificity([1., 0.], [0.9, 0.2], 0.9)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     round(float(session.run(update)), 4)
    1.0
    """
    if specificity < 0 or specificity > 1:
        raise ValueError(f"`specificity` must be in the range [0, 1]. Currently, `specificity` got {specificity}.")
    return _share_at(
        labels, predictions, weights, num_thresholds, ("true_negatives", "false_positives"),
        ("true_positives", "false_negatives"), specificity, last=False,
    )  # fmt: skip


@define_metric("specificity_at_sensitivity")
def specificity_at_sensitivity(
    labels: Any, predictions: Any, sensitivity: float, weights: Any = None, num_thresholds: int = 200
) -> tuple[Any, Any]:
    """The share of false labels rejected where the share of true labels found is nearest to `sensitivity`.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.specificity_at_sensitivity([1., 0.], [0.9, 0.2], 0.9)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     round(float(session.run(update)), 4)
    1.0
    """
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError(f"`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` is {sensitivity}.")
    return _share_at(
        labels, predictions, weights, num_thresholds, ("true_positives", "false_negatives"),
        ("true_negatives", "false_positives"), sensitivity, last=True,
    )  # fmt: skip
