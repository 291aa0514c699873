"""Losses over a sample of many classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import ones_like, shape_argument, zeros_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn.candidates import log_uniform_candidate_sampler
from tapeflow._src.ops.nn.embeddings import lookup
from tapeflow._src.ops.nn.losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from tapeflow._src.types.dtypes import float32, int32, int64


@public("nn.compute_accidental_hits", "compat.v1.nn.compute_accidental_hits")
def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: Any = None, name: str | None = None
) -> tuple[Any, Any, Any]:
    """Where a sampled candidate is a true class: rows, numbers of candidates, and the lowest float for each.

    >>> tf.nn.compute_accidental_hits([[1], [2]], [2, 5], 1)[:2]
    (<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>, <tf.Tensor: shape=(1,), dtype=int64,
     numpy=array([0])>)
    """
    true = cast(convert_to_tensor(true_classes), int64)
    sampled = cast(convert_to_tensor(sampled_candidates), int64)
    same = primitives.Equal(primitives.ExpandDims(true, 2), primitives.Reshape(sampled, [1, 1, -1]))
    places = primitives.Where(same)
    count = shape_argument(primitives.Shape(places, int32)[:1])
    weights = primitives.BroadcastTo(cast(float(np.finfo(np.float32).min), float32), count)
    return cast(places[:, 0], int32), places[:, 2], weights


def sampled_loss(
    loss: Callable[[Any, Any], Any],
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    strategy: str = "div",
    seed: Any = None,
) -> Any:
    """`loss(logits, labels)` of the logits of the true classes and of a sample of others, and labels that fit them."""
    labels = cast(convert_to_tensor(labels), int64)
    if labels.shape.rank == 1:
        labels = primitives.ExpandDims(labels, 1)
    inputs = convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_expected, sampled_expected = (primitives.StopGradient(convert_to_tensor(v)) for v in sampled_values)
    sampled = cast(sampled, int64)
    width = inputs.shape[1]
    flat = primitives.Reshape(labels, [-1])
    ids = primitives.ConcatV2([flat, sampled], 0)
    rows, offsets = lookup(weights, ids, strategy), lookup(biases, ids, strategy)
    count = flat.shape[0] if flat.shape[0] is not None else primitives.Shape(flat, int32)[0]
    true_rows = primitives.Reshape(rows[:count], [-1, num_true, width])
    true_logits = primitives.Sum(primitives.ExpandDims(inputs, 1) * true_rows, [2], False)
    true_logits = true_logits + primitives.Reshape(offsets[:count], [-1, num_true])
    other_logits = primitives.MatMul(inputs, rows[count:], False, True) + offsets[count:]
    if remove_accidental_hits:
        hits = primitives.Equal(primitives.ExpandDims(labels, 2), primitives.Reshape(sampled, [1, 1, -1]))
        lowest = cast(float(np.finfo(np.float32).min), other_logits.dtype)
        hit = primitives.Any(hits, [1], False)
        other_logits = other_logits + primitives.SelectV2(hit, lowest, cast(0, other_logits.dtype))
    true_logits = true_logits - primitives.Log(cast(true_expected, true_logits.dtype))
    other_logits = other_logits - primitives.Log(cast(sampled_expected, other_logits.dtype))
    logits = primitives.ConcatV2([true_logits, other_logits], 1)
    share = ones_like(true_logits) / num_true
    none = zeros_like(other_logits)
    return loss(logits, primitives.ConcatV2([share, none], 1))


def nce_of_logits(logits: Any, targets: Any) -> Tensor:
    """The noise-contrastive loss of sampled logits, one number per row."""
    return primitives.Sum(sigmoid_cross_entropy_with_logits(targets, logits), [1], False)


def softmax_of_logits(logits: Any, targets: Any) -> Tensor:
    """The softmax cross entropy of sampled logits, one number per row."""
    return softmax_cross_entropy_with_logits(primitives.StopGradient(targets), logits)


@public("nn.nce_loss")
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Any:
    """Noise-contrastive estimation: the true classes against a sample of others, one number per row.

    >>> tf.nn.nce_loss(tf.zeros([5, 2]), tf.zeros([5]), [[1]], [[1., 1.]], 2, 5).shape
    TensorShape([1])
    """
    given = (
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
    )
    return sampled_loss(nce_of_logits, *given)


@public("nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: Any = None,
    name: str = "sampled_softmax_loss",
) -> Any:
    """The softmax cross entropy over the true classes and a sample of others, one number per row.

    >>> tf.nn.sampled_softmax_loss(tf.zeros([5, 2]), tf.zeros([5]), [[1]], [[1., 1.]], 2, 5).shape
    TensorShape([1])
    """
    given = (
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
    )
    return sampled_loss(softmax_of_logits, *given, seed=seed)
