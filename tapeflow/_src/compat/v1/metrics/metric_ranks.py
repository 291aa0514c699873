"""`tf.compat.v1.metrics` of ranked predictions: whether the labels of a row are among its best `k` classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.metrics.metric_variables import (
    added,
    collect,
    gathered,
    metric_scope,
    ratio,
    total,
    weights_like,
)
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float64, int64
from tapeflow._src.types.sparse_tensor import SparseTensor


class _Labels(NamedTuple):
    """The labels of each row, and which of them count: each class once, and none that only fills a sparse row."""

    values: Any
    count: Any
    size: Any  # how many a row has, repeated ones included unless the labels are sparse


def _once(values: Any) -> Tensor:
    """Which elements of each row are not there already, further left."""
    size = values.shape[-1]
    if size is None:
        size = find_public("shape")(values)[-1]
    same = primitives.Equal(primitives.ExpandDims(values, -1), primitives.ExpandDims(values, -2))
    place = find_public("range")(size)
    earlier = primitives.Less(primitives.ExpandDims(place, 0), primitives.ExpandDims(place, 1))
    return primitives.LogicalNot(find_public("reduce_any")(primitives.LogicalAnd(same, earlier), -1))


def _prepared(labels: Any, ranks: Any) -> _Labels:
    labels = find_public("compat.v1.convert_to_tensor_or_sparse_tensor")(labels)
    if isinstance(labels, SparseTensor):
        ones = SparseTensor(labels.indices, find_public("ones_like")(labels.values), labels.dense_shape)
        there = primitives.Greater(find_public("sparse.to_dense")(ones), cast(0, labels.values.dtype))
        values = cast(find_public("sparse.to_dense")(labels, default_value=-1), int64)
        count = primitives.LogicalAnd(there, _once(values))
        return _Labels(values, count, _number(count))
    values = cast(convert_to_tensor(labels), int64)
    if values.shape.rank is not None and values.shape.rank == ranks.shape.rank - 1:
        values = primitives.ExpandDims(values, -1)
    count = _once(values)
    return _Labels(values, count, _number(find_public("ones_like")(count)))


def _number(flags: Any) -> Any:
    return find_public("reduce_sum")(cast(flags, float64), -1)


def _found_in(values: Any, others: Any, count: Any = None) -> Any:
    """Which elements of each row are among the `others` of the row, of those that count."""
    same = primitives.Equal(primitives.ExpandDims(values, -1), primitives.ExpandDims(others, -2))
    if count is not None:
        same = primitives.LogicalAnd(same, primitives.ExpandDims(count, -2))
    return find_public("reduce_any")(same, -1)


def _hits(labels: _Labels, ranks: Any, class_id: int | None) -> Any:
    return _number(_of_class(primitives.LogicalAnd(_once(ranks), _found_in(ranks, *labels[:2])), ranks, class_id))


def _false_alarms(labels: _Labels, ranks: Any, class_id: int | None) -> Any:
    missed = primitives.LogicalNot(_found_in(ranks, *labels[:2]))
    return _number(_of_class(primitives.LogicalAnd(_once(ranks), missed), ranks, class_id))


def _misses(labels: _Labels, ranks: Any, class_id: int | None) -> Any:
    missed = primitives.LogicalNot(_found_in(labels.values, ranks))
    return _number(_of_class(primitives.LogicalAnd(labels.count, missed), labels.values, class_id))


def _of_class(flags: Any, classes: Any, class_id: int | None) -> Tensor:
    return flags if class_id is None else primitives.LogicalAnd(flags, primitives.Equal(classes, cast(class_id, int64)))


def _best(predictions: Any, k: int) -> Any:
    return cast(find_public("math.top_k")(convert_to_tensor(predictions), k).indices, int64)


def _share(
    metric: str, name: str | None, labels: Any, ranks: Any, k: Any, class_id: Any, weights: Any,
    wrong: Callable[..., Any], wrong_name: str, collections: tuple[Any, Any],
) -> tuple[Any, Any]:  # fmt: skip
    """The share of hits among hits and `wrong` cases, and its update."""
    short = metric.partition("_")[0]
    suffix = "" if k is None else f"_at_{k}"
    suffix += "" if class_id is None else f"_class{class_id}"
    with metric_scope(metric, name, f"{short}{suffix}"):
        ranks = cast(convert_to_tensor(ranks), int64)
        labels = _prepared(labels, ranks)
        cases = ((f"true_positive{suffix}", _hits), (f"{wrong_name}{suffix}", wrong))
        counts = []
        for label, function in cases:
            by_row = function(labels, ranks, class_id)
            counts.append(_gather(label, total(by_row * weights_like(by_row, weights))))
        (right, more_right), (other, more_other) = counts
        value = primitives.RealDiv(right, right + other)  # NaN before the first case, as in TensorFlow
        update = primitives.RealDiv(more_right, more_right + more_other, name="update")
        return collect(value, update, *collections)


def _gather(name: str, change: Any) -> tuple[Any, Any]:
    """A sum over all runs, and the operation that adds to it."""
    variable = gathered(name, (), float64)
    return variable.read_value(), added(variable, change)


def _share_metrics(short: str, wrong: Callable[..., Any], wrong_name: str, summary: str) -> None:
    def at_k(
        labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        return _share(
            f"{short}_at_k", name, labels, _best(predictions, k), k, class_id, weights, wrong, wrong_name,
            (metrics_collections, updates_collections),
        )  # fmt: skip

    def at_top_k(
        labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        return _share(
            f"{short}_at_top_k", name, labels, predictions_idx, k, class_id, weights, wrong, wrong_name,
            (metrics_collections, updates_collections),
        )  # fmt: skip

    for metric, name, given in (
        (at_k, f"{short}_at_k", "[[0.1, 0.7, 0.2]], 1"),
        (at_top_k, f"{short}_at_top_k", "[[1]]"),
    ):
        metric.__name__ = metric.__qualname__ = name
        metric.__doc__ = f"""{summary} so far, and the operation that takes more in.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     value, update = tf.compat.v1.metrics.{name}(tf.constant([[1]], tf.int64), {given})
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    1.0
    """
    public(
        f"compat.v1.metrics.{short}_at_k", *([f"compat.v1.metrics.sparse_{short}_at_k"] if short == "precision" else [])
    )(at_k)
    public(f"compat.v1.metrics.{short}_at_top_k")(at_top_k)


_share_metrics("precision", _false_alarms, "false_positive", "The share of labels among the best `k` classes of a row")
_share_metrics(
    "recall", _misses, "false_negative", "The share of the labels that are among the best `k` classes of a row"
)


@public("compat.v1.metrics.average_precision_at_k", "compat.v1.metrics.sparse_average_precision_at_k")
def average_precision_at_k(
    labels: Any, predictions: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The mean over rows of their average precision: that at the place of each label among the best `k` classes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     labels = tf.constant([[0]], tf.int64)
    ...     value, update = tf.compat.v1.metrics.average_precision_at_k(labels, [[0.2, 0.7, 0.1]], 2)
    ...     session.run(tf.compat.v1.local_variables_initializer())
    ...     session.run(update)
    np.float64(0.5)
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")
    with metric_scope("average_precision_at_k", name, f"average_precision_at_{k}"):
        ranks = _best(predictions, k)
        labels = _prepared(labels, ranks)
        hits = cast(_found_in(ranks, *labels[:2]), float64)
        places = find_public("range")(1.0, k + 1.0, dtype=float64)
        precision = find_public("cumsum")(hits, -1) / places
        relevant = primitives.Minimum(labels.size, cast(k, float64))
        average = ratio(find_public("reduce_sum")(hits * precision, -1), relevant)
        weights = weights_like(average, weights)
        whole, more_whole = _gather("max_1", total(weights))
        right, more_right = _gather("total", total(average * weights))
        value, update = ratio(right, whole), ratio(more_right, more_whole, name="update")
        return collect(value, update, metrics_collections, updates_collections)
