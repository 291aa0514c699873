"""`tf.compat.v1.metrics`: values that local variables gather over the runs of a session, and their updates."""

from __future__ import annotations

from typing import Any

from tapeflow import _core, primitives
from tapeflow.namespace import find_public, public
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.types.dtypes import as_dtype, float32
from tapeflow.v1.collections import GraphKeys
from tapeflow.v1.graph import get_default_graph
from tapeflow.v1.variable_scope import get_variable, variable_scope
from tapeflow.variables import ZerosInitializer

_boolean = as_dtype("bool")


def _gathered(name: str) -> Any:
    keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return get_variable(name, [], float32, ZerosInitializer(), trainable=False, collections=keys)


def _collect(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> tuple[Any, Any]:
    graph = get_default_graph()
    for keys, item in ((metrics_collections, value), (updates_collections, update)):
        for key in [keys] if isinstance(keys, str) else keys or []:
            graph.add_to_collection(key, item)
    return value, update


def _check_graph(name: str) -> None:
    if _core.current_graph() is None:
        raise RuntimeError(f"tf.metrics.{name} is not supported when eager execution is enabled.")


def _sum(x: Any) -> Any:
    return find_public("reduce_sum")(x)


def _weights_like(values: Any, weights: Any) -> Any:
    ones = find_public("ones_like")(values)
    return ones if weights is None else ones * cast(weights, float32)


def _ratio(total: Any, count: Any) -> Any:
    return find_public("math.divide_no_nan")(total, count)


def _mean_of(values: Any, weights: Any) -> tuple[Any, Any]:
    """The mean so far, and the operation that takes more values in and gives it."""
    total, count = _gathered("total"), _gathered("count")
    values = cast(values, float32)
    weights = _weights_like(values, weights)
    updates = [total.assign_add(_sum(values * weights)), count.assign_add(_sum(weights))]
    value = _ratio(total.read_value(), count.read_value())
    with find_public("control_dependencies")(updates):
        return value, _ratio(total.read_value(), count.read_value())


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
    _check_graph("mean")
    with variable_scope(name, default_name="mean"):
        return _collect(*_mean_of(values, weights), metrics_collections, updates_collections)


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
    _check_graph("accuracy")
    predictions = convert_to_tensor(predictions)
    with variable_scope(name, default_name="accuracy"):
        same = primitives.Equal(predictions, cast(labels, predictions.dtype))
        return _collect(*_mean_of(same, weights), metrics_collections, updates_collections)


def _error_metric(name: str, error: Any, summary: str, last: Any = lambda x: x) -> None:
    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        _check_graph(metric.__name__)
        with variable_scope(name, default_name=metric.__name__):
            difference = cast(predictions, float32) - cast(labels, float32)
            value, update = _mean_of(error(difference), weights)
            return _collect(last(value), last(update), metrics_collections, updates_collections)

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


# ---- how often labels and predictions agree, by kind


def _count(labels: Any, predictions: Any, weights: Any, name: str, label: bool, prediction: bool) -> tuple[Any, Any]:
    """The number of cases with this label and this prediction, and its update."""
    labels, predictions = cast(labels, _boolean), cast(predictions, _boolean)
    hits = primitives.LogicalAnd(primitives.Equal(labels, label), primitives.Equal(predictions, prediction))
    hits = cast(hits, float32)
    total = _gathered(name)
    update = total.assign_add(_sum(hits * _weights_like(hits, weights)))
    return total.read_value(), convert_to_tensor(update)


def _count_metric(name: str, label: bool, prediction: bool, summary: str) -> None:
    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        _check_graph(metric.__name__)
        with variable_scope(name, default_name=metric.__name__):
            found = _count(labels, predictions, weights, "count", label, prediction)
            return _collect(*found, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"""The number of {summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default():
    ...     value, update = tf.compat.v1.metrics.{name}([1, 0], [1, 1])
    ...     value.shape
    TensorShape([])
    """
    public(f"compat.v1.metrics.{name}")(metric)


_count_metric("true_positives", True, True, "true labels that were predicted")
_count_metric("false_positives", False, True, "false labels that were predicted as true")
_count_metric("true_negatives", False, False, "false labels that were predicted")
_count_metric("false_negatives", True, False, "true labels that were predicted as false")


def _share_metric(name: str, wrong: tuple[bool, bool], wrong_name: str, summary: str) -> None:
    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        _check_graph(metric.__name__)
        with variable_scope(name, default_name=metric.__name__):
            right, more_right = _count(labels, predictions, weights, "true_positives/count", True, True)
            other, more_other = _count(labels, predictions, weights, f"{wrong_name}/count", *wrong)
            value, update = _ratio(right, right + other), _ratio(more_right, more_right + more_other)
            return _collect(value, update, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"""{summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default():
    ...     value, update = tf.compat.v1.metrics.{name}([1, 0], [1, 1])
    ...     value.shape
    TensorShape([])
    """
    public(f"compat.v1.metrics.{name}")(metric)


_share_metric("precision", (False, True), "false_positives", "The share of true labels among those predicted as true")
_share_metric("recall", (True, False), "false_negatives", "The share of true labels that were predicted")
