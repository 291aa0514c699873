"""What libraries make metrics of their own with: inner names of `tensorflow.python.ops.metrics_impl`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.metrics.metric_counts import counts_at_thresholds
from tapeflow._src.compat.v1.metrics.metric_variables import gathered, ratio, squeezed
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_CASE_BY_KEY = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
_assert_less_equal, _assert_greater_equal, _control_dependencies, _identity = (
    find_public(name)
    for name in (
        "compat.v1.assert_less_equal", "compat.v1.assert_greater_equal", "control_dependencies", "identity"
    )
)  # fmt: skip


def metric_variable(shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A local variable of zeros in the collection of metric variables."""
    return gathered(name, shape, dtype, validate_shape)


def confusion_matrix_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any = None, includes: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers of true positives ("tp") and so on at each threshold, and the operations that take more in."""
    for key in (keys := tuple(_CASE_BY_KEY) if includes is None else includes):
        if key not in _CASE_BY_KEY:
            raise ValueError(f"Invalid key: {key}")
    predictions = convert_to_tensor(predictions)
    message = "predictions must be in [0, 1]"
    checks = [
        _assert_greater_equal(predictions, convert_to_tensor(0.0, predictions.dtype), message=message),
        _assert_less_equal(predictions, convert_to_tensor(1.0, predictions.dtype), message=message),
    ]
    with _control_dependencies(checks):
        predictions = _identity(predictions)
    counts = counts_at_thresholds(labels, predictions, thresholds, weights, [_CASE_BY_KEY[key] for key in keys])
    pairs = {key: counts[_CASE_BY_KEY[key]] for key in keys}
    return {key: value for key, (value, _) in pairs.items()}, {key: update for key, (_, update) in pairs.items()}


def aggregate_variable(v: Any, collections: Any) -> Any:
    """The value of a metric variable, which the graph also finds in the collections."""
    value = convert_to_tensor(v)
    if collections:
        get_default_graph().add_to_collections(collections, value)
    return value


names_by_path: dict[str, dict[str, Any]] = {
    "python.ops.metrics_impl": {
        "_aggregate_variable": aggregate_variable,
        "_confusion_matrix_at_thresholds": confusion_matrix_at_thresholds,
        "_remove_squeezable_dimensions": squeezed,
        "_safe_div": ratio,
        "_safe_scalar_div": ratio,
        "metric_variable": metric_variable,
    },
}
