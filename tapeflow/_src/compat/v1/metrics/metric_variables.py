"""What the metrics of TensorFlow 1 share: variables that gather, weights that fit, collections, and ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.signatures.families import family
from tapeflow._src.compat.v1.train.weights import check_weights
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.compat.v1.variables.variables import VariableV1
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32


@contextmanager
def metric_scope(metric: str, name: str | None, default_name: str | None = None) -> Iterator[None]:
    """The scope of a metric: its variables are named by it."""
    if _core.current_graph() is None:
        raise RuntimeError(f"tf.metrics.{metric} is not supported when eager execution is enabled.")
    with variable_scope(name, default_name or metric):
        yield


def gathered(name: str | None, shape: Any = (), dtype: Any = float32, validate_shape: bool = True) -> Any:
    """A local variable of zeros."""
    keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    zeros = find_public("zeros")
    return VariableV1(lambda: zeros(shape, dtype), False, keys, validate_shape, name=name)


def collect(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> tuple[Any, Any]:
    """The value and its update, which the graph also finds in the given collections."""
    graph = get_default_graph()
    for keys, item in ((metrics_collections, value), (updates_collections, update)):
        if keys:
            graph.add_to_collections(keys, item)
    return value, update


def _run_metric(
    label: str,
    values: Callable[[], tuple[Any, Any]],
    metrics_collections: Any,
    updates_collections: Any,
    name: str | None,
) -> tuple[Any, Any]:
    metric, _, scope = label.partition("/")
    with metric_scope(metric, name, scope):
        return collect(*values(), metrics_collections, updates_collections)


# Defines a metric by the function that gives its value and its update; a label "metric/scope" names the scope.
define_metric = family("metrics", "metrics_collections=None, updates_collections=None, name=None", _run_metric)


def total(x: Any) -> Any:
    """The sum of all elements."""
    return find_public("reduce_sum")(x)


def ratio(part: Any, whole: Any, name: str | None = None) -> Any:
    """part / whole, and 0 where the whole is 0."""
    return find_public("math.divide_no_nan")(part, whole, name=name)


def added(variable: Any, change: Any) -> Any:
    """The tensor that adds to a variable and gives its new value."""
    return convert_to_tensor(variable.assign_add(change))


def squeezed(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any, Any]:
    """Predictions, labels and weights of one rank: a last dimension of 1 goes, or comes, where that is needed."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels = convert_to_tensor(labels)
        ranks = predictions.shape.rank, labels.shape.rank
        if None not in ranks and abs(ranks[0] - ranks[1]) == 1:
            if ranks[0] > ranks[1]:
                predictions = _without_last(predictions)
            else:
                labels = _without_last(labels)
        predictions.shape.assert_is_compatible_with(labels.shape)
    return predictions, labels, None if weights is None else _as_many(convert_to_tensor(weights), predictions)


def _without_last(x: Any) -> Any:
    return find_public("squeeze")(x, -1) if x.shape.as_list()[-1] in (None, 1) else x


def _as_many(weights: Any, values: Any) -> Any:
    """Weights of the rank of the values."""
    have, wanted = weights.shape.rank, values.shape.rank
    if not have or wanted is None or have == wanted:
        return weights
    if have - wanted == 1:
        return _without_last(weights)
    return primitives.ExpandDims(weights, -1) if wanted - have == 1 else weights


def weights_like(values: Any, weights: Any) -> Any:
    """A weight for each value, or an error if the weights do not broadcast."""
    ones = find_public("ones_like")(values)
    if weights is None:
        return ones
    weights = cast(weights, values.dtype)
    check_weights(values, weights)
    return ones * weights


def mean_of(values: Any, weights: Any) -> tuple[Any, Any]:
    """The mean so far, and the operation that takes more values in and gives it."""
    return ratio_of(*_weighted_sums(values, weights), ("total", "count"))


def _weighted_sums(values: Any, weights: Any) -> tuple[Any, Any]:
    values = cast(values, float32)
    weights = weights_like(values, weights)
    return total(values * weights), total(weights)


def ratio_of(part: Any, whole: Any, names: tuple[str, str], dtype: Any = float32) -> tuple[Any, Any]:
    """The ratio of two sums over all runs, and the operation that adds to them and gives it."""
    sums = [gathered(name, change.shape, dtype) for name, change in zip(names, (part, whole))]
    value = ratio(sums[0].read_value(), sums[1].read_value(), name="value")
    return value, ratio(added(sums[0], part), added(sums[1], whole), name="update_op")
