"""Connectionist temporal classification, isotonic regression: losses and decoders over sequences."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.types.dtypes import float32, float64, int32, int64
from tapeflow._src.types.errors import FailedPreconditionError, InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_spec import TensorSpec

IsotonicRegression = namedtuple("IsotonicRegression", ["output", "segments"])


def is_sparse_matrix(labels: Any) -> bool:
    """Whether the labels are a SparseTensor, or the parts of one."""
    return hasattr(labels, "dense_shape") and hasattr(labels, "indices")


def dense_labels(labels: Any) -> tuple[Any, Any]:
    """The labels of a sparse matrix as rows filled up with 0, and their lengths."""
    sizes, values = cast(labels.dense_shape, int64), cast(labels.values, int64)
    lengths = primitives.UnsortedSegmentSum(
        primitives.BroadcastTo(cast(1, int64), primitives.Shape(values)), labels.indices[:, 0], sizes[0]
    )
    return primitives.ScatterNd(labels.indices, values, sizes), lengths


@public("nn.ctc_loss", "compat.v1.nn.ctc_loss_v2")
def ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Minus the log probability of each label sequence under `logits` (time, batch, classes), which it may stretch.

    >>> tf.nn.ctc_loss([[1]], tf.zeros([1, 1, 2]), [1], [1], blank_index=0)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.6931472], dtype=float32)>
    """
    logits = of_rank(convert_to_tensor(logits), 3)
    if logits.shape.rank != 3:
        raise InvalidArgumentError.of(f"nn.ctc_loss: logits must have rank 3; got {logits.shape.as_list()}")
    sparse = is_sparse_matrix(labels)
    if sparse:
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when `labels` is a `SparseTensor`.")
        labels, label_length = dense_labels(labels)
    classes = logits.shape[2]
    blank = 0 if blank_index is None else int(blank_index)
    if classes == 0:
        raise ValueError("logits must have at least 1 class; got 0")
    if not -classes <= blank < classes:
        raise ValueError(f"blank_index must be in range [{-classes}, {classes}); got {blank_index}")
    if not logits_time_major:
        logits = primitives.Transpose(logits, [1, 0, 2])
    labels, label_length = convert_to_tensor(labels), convert_to_tensor(label_length)
    logit_length = convert_to_tensor(logit_length)
    if sparse:
        labels = check_time(labels, label_length, logit_length)
    loss = primitives.CTCLossDense(logits, labels, label_length, logit_length, blank % classes)
    if _core.is_symbolic(loss):
        loss.set_shape(label_length.shape.merge_with(logit_length.shape))
    return loss


def _loss_spec(labels: Any, logits: Any, label_length: Any, logit_length: Any, *_: Any, **__: Any) -> TensorSpec:
    """What is known of the losses while the number of classes is not."""
    return TensorSpec(convert_to_tensor(logit_length).shape, convert_to_tensor(logits).dtype)


ctc_loss.result_specs = _loss_spec  # type: ignore[attr-defined]


def check_time(labels: Any, label_length: Any, logit_length: Any, merge_repeated: bool = True) -> Any:
    """The labels, if each has a time step, and each repeated one a blank before it if repetitions are merged."""
    places = primitives.Range(cast(1, int64), cast(primitives.Shape(labels)[1], int64), cast(1, int64))
    inside = primitives.Less(places, primitives.ExpandDims(cast(label_length, int64), 1))
    repeated = primitives.LogicalAnd(primitives.Equal(labels[:, 1:], labels[:, :-1]), inside)
    blanks = primitives.Sum(cast(repeated, label_length.dtype), [1], False)
    needed = label_length + blanks if merge_repeated else label_length
    available = cast(logit_length, needed.dtype)
    short = primitives.Greater(needed, available)
    advice = "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs"
    if _core.is_symbolic(short):
        message = f"nn.ctc_loss: Not enough time for target transition sequence. {advice}"
        check = find_public("debugging.Assert")(primitives.LogicalNot(primitives.Any(short, None, False)), [message])
        with find_public("control_dependencies")([] if check is None else [check]):
            return primitives.Identity(labels)
    if bool(primitives.Any(short, None, False)):
        first = int(primitives.ArgMax(cast(short, int32), 0))
        raise InvalidArgumentError.of(
            f"nn.ctc_loss: Not enough time for target transition sequence (required: {int(needed[first])}, "
            f"available: {int(available[first])}) in sequence {first}. {advice}",
        )
    return labels


@public("nn.ctc_beam_search_decoder", "compat.v1.nn.ctc_beam_search_decoder_v2")
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Any]:
    """The most probable label sequences of logits (time, batch, classes), as sparse matrices, and log probabilities.

    >>> paths, scores = tf.nn.ctc_beam_search_decoder(tf.constant([[[5., 0., 0.]]]), [1])
    >>> paths[0].values
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([0])>
    """
    return beam_search_paths(inputs, sequence_length, beam_width, top_paths, False)


def beam_search_paths(
    inputs: Any, sequence_length: Any, beam_width: int, top_paths: int, merge_repeated: bool
) -> tuple[list[Any], Any]:
    """The most probable label sequences and their scores; with `merge_repeated`, runs of one label become one."""
    *parts, scores = primitives.CTCBeamSearchDecoder(inputs, sequence_length, beam_width, top_paths, merge_repeated)
    return [SparseTensor(*parts[k::top_paths]) for k in range(top_paths)], scores


@public("nn.ctc_greedy_decoder", "compat.v1.nn.ctc_greedy_decoder")
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[Any], Any]:
    """The labels of the largest logits at each time, without blanks, and minus the sum of those logits.

    >>> paths, scores = tf.nn.ctc_greedy_decoder(tf.constant([[[5., 0., 0.]]]), [1])
    >>> paths[0].values
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([0])>
    """
    inputs = of_rank(convert_to_tensor(inputs), 3)
    lengths = of_rank(convert_to_tensor(sequence_length), 1)
    if inputs.shape.rank != 3:
        raise InvalidArgumentError.of(f"nn.ctc_greedy_decoder: inputs is not a 3-Tensor; got {inputs.shape}")
    times, batch, classes = inputs.shape.as_list()
    if lengths.shape.as_list() != [batch]:
        raise FailedPreconditionError.of(
            f"nn.ctc_greedy_decoder: len(sequence_length) != batch_size. len(sequence_length): {lengths.shape} "
            f"batch_size: {batch}",
        )
    for b, length in enumerate(np.asarray(lengths)):
        if not 0 <= length <= times:
            raise FailedPreconditionError.of(f"nn.ctc_greedy_decoder: sequence_length({b}) <= {times}")
    blank = classes - 1 if blank_index is None else blank_index
    if not -classes <= blank < classes:
        raise InvalidArgumentError.of(
            f"nn.ctc_greedy_decoder: blank_index expected to be between {-classes} and {classes - 1}; got {blank}",
        )
    best = primitives.Transpose(primitives.ArgMax(inputs, 2), [1, 0])
    inside = np.arange(times)[None, :] < primitives.ExpandDims(cast(lengths, int64), 1)
    taken = primitives.LogicalAnd(primitives.NotEqual(best, cast(blank % classes, int64)), inside)
    if merge_repeated and times:
        none = primitives.BroadcastTo(cast(-1, int64), [batch, 1])
        before = primitives.ConcatV2([none, best[:, :-1]], 1)
        taken = primitives.LogicalAnd(taken, primitives.NotEqual(best, before))
    positions = primitives.Where(taken)
    values = primitives.GatherNd(best, positions)
    rank_in_row = primitives.Cumsum(cast(taken, int64), 1, False, False) - 1
    columns = primitives.GatherNd(rank_in_row, positions)
    indices = primitives.Pack([positions[:, 0], columns], 1)
    counts = primitives.Sum(cast(taken, int64), [1], False)
    width = primitives.Max(primitives.ConcatV2([counts, cast([0], int64)], 0), None, False)
    shape = primitives.Pack([cast(batch, int64), width], 0)
    largest = primitives.Transpose(primitives.Max(inputs, [2], False), [1, 0])
    score = -primitives.Sum(primitives.SelectV2(inside, largest, cast(0, inputs.dtype)), [1], True)
    return [SparseTensor(indices, values, shape)], score


@public("nn.ctc_unique_labels", "compat.v1.nn.ctc_unique_labels")
def ctc_unique_labels(labels: Any, name: str | None = None) -> list[Any]:
    """The different labels of each row in order of appearance, filled up with 0, and the number of each label's own.

    >>> tf.nn.ctc_unique_labels([[3, 4, 4, 3]])
    [<tf.Tensor: shape=(1, 4), dtype=int64, numpy=array([[3, 4, 0, 0]])>, <tf.Tensor: shape=(1, 4), dtype=int32,
     numpy=array([[0, 1, 1, 0]], dtype=int32)>]
    """
    labels = cast(convert_to_tensor(labels), int64)
    batch, width = dynamic_dims(labels)
    same = primitives.Equal(primitives.ExpandDims(labels, 2), primitives.ExpandDims(labels, 1))
    first = primitives.ArgMax(cast(same, int32), 2)
    new = primitives.Equal(first, constants.range(cast(width, int64)))
    number = primitives.Cumsum(cast(new, int64), 1, False, False) - 1
    idx = primitives.GatherV2(number, first, 1, 1)
    positions = primitives.Where(new)
    columns = primitives.GatherNd(number, positions)
    places = primitives.Pack([positions[:, 0], columns], 1)
    unique = primitives.ScatterNd(places, primitives.GatherNd(labels, positions), [batch, width])
    return [unique, cast(idx, int32)]


@public("nn.collapse_repeated", "compat.v1.nn.collapse_repeated")
def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Any, Any]:
    """Each run of one label as one label, filled up with 0, and the new lengths.

    >>> tf.nn.collapse_repeated([[1, 1, 2]], [3])
    (<tf.Tensor: shape=(1, 2), dtype=int32, numpy=array([[1, 2]], dtype=int32)>, <tf.Tensor: shape=(1,),
     dtype=int32, numpy=array([2], dtype=int32)>)
    """
    labels, seq_length = convert_to_tensor(labels), convert_to_tensor(seq_length)
    batch, width = dynamic_dims(labels)
    starts = primitives.Equal(labels[:, :1], labels[:, :1])
    fresh = primitives.ConcatV2([starts, primitives.NotEqual(labels[:, 1:], labels[:, :-1])], 1)
    inside = constants.range(cast(width, int64)) < primitives.ExpandDims(cast(seq_length, int64), 1)
    taken = primitives.LogicalAnd(fresh, inside)
    lengths = primitives.Sum(cast(taken, seq_length.dtype), [1], False)
    longest = primitives.Max(primitives.ConcatV2([lengths, cast([0], lengths.dtype)], 0), None, False)
    positions = primitives.Where(taken)
    columns = primitives.GatherNd(primitives.Cumsum(cast(taken, int64), 1, False, False) - 1, positions)
    places = primitives.Pack([positions[:, 0], columns], 1)
    return primitives.ScatterNd(places, primitives.GatherNd(labels, positions), [batch, cast(longest, int32)]), lengths


@public("nn.isotonic_regression", "compat.v1.nn.isotonic_regression")
def isotonic_regression(inputs: Any, decreasing: bool = True, axis: int = -1) -> tuple[Any, Any]:
    """The nearest sequence that never rises (or never falls) along `axis`, and the number of each element's run.

    >>> tf.nn.isotonic_regression([3., 1., 2.])[0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([3. , 1.5, 1.5], dtype=float32)>
    """
    x = convert_to_tensor(inputs)
    if x.dtype.is_integer:
        x = cast(x, float64 if x.dtype.size > 2 else float32)
    rank = x.shape.rank
    if rank == 0:
        return IsotonicRegression(x, convert_to_tensor(0, dtype=int32))
    order = None
    if axis % rank != rank - 1:
        order = list(range(rank))
        order[axis % rank], order[-1] = order[-1], order[axis % rank]
        x = primitives.Transpose(x, order)
    output, segments = primitives.IsotonicRegression(x if decreasing else -x)
    output = output if decreasing else -output
    if order is not None:
        output, segments = primitives.Transpose(output, order), primitives.Transpose(segments, order)
    return IsotonicRegression(output, segments)
