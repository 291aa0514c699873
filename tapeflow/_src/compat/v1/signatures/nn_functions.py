"""Functions of `tf.compat.v1.nn` whose arguments mean more than those of today: partitioned tables, sparse labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn.convolution_gradients import filter_gradient, input_gradient
from tapeflow._src.ops.nn.ctc import beam_search_paths, check_time, collapse_repeated, dense_labels, is_sparse_matrix
from tapeflow._src.ops.nn.embeddings import lookup, lookup_sparse, safe_lookup_sparse
from tapeflow._src.ops.nn.sampled_losses import nce_of_logits, sampled_logits, softmax_of_logits
from tapeflow._src.ops.nn.window_arguments import geometry


@public("compat.v1.nn.embedding_lookup")
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Any:
    """The rows with the numbers `ids` of a table, or of tables among which the rows are dealt by the strategy.

    >>> tf.compat.v1.nn.embedding_lookup(tf.constant([[1., 2.], [3., 4.]]), [1])
    [[3., 4.]]
    """
    return lookup(params, ids, partition_strategy, max_norm)


@public("compat.v1.nn.embedding_lookup_sparse")
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """For each row of the sparse matrix `sp_ids`, the (weighted) mean, sum or sum by sqrt of squares of its embeddings.

    >>> tf.compat.v1.nn.embedding_lookup_sparse(tf.eye(3), tf.sparse.from_dense([[1, 2]]), None, combiner="sum")
    [[0., 1., 1.]]
    """
    return lookup_sparse(params, sp_ids, sp_weights, partition_strategy, combiner, max_norm)


@public("compat.v1.nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """As `embedding_lookup_sparse`, but bad ids and weights are left out, and an empty row gives zeros or `default_id`.

    >>> tf.compat.v1.nn.safe_embedding_lookup_sparse(tf.eye(2), tf.sparse.from_dense([[1], [0]]))
    [[0., 1.], [0., 0.]]
    """
    return safe_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner, default_id, partition_strategy, max_norm
    )


@public("compat.v1.nn.nce_loss")
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
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Any:
    """Noise-contrastive estimation over tables dealt by `partition_strategy`.

    >>> tf.compat.v1.nn.nce_loss(tf.zeros([5, 2]), tf.zeros([5]), [[1]], [[1., 1.]], 2, 5).shape
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
    return nce_of_logits(*sampled_logits(*given, partial(lookup, strategy=partition_strategy)))


@public("compat.v1.nn.sampled_softmax_loss")
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
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: Any = None,
) -> Any:
    """The softmax cross entropy over a sample of classes, with tables dealt by `partition_strategy`.

    >>> tf.compat.v1.nn.sampled_softmax_loss(tf.zeros([5, 2]), tf.zeros([5]), [[1]], [[1., 1.]], 2, 5).shape
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
    return softmax_of_logits(*sampled_logits(*given, partial(lookup, strategy=partition_strategy), seed))


@public("compat.v1.nn.ctc_loss")
def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Any:
    """The loss of sparse labels, with the last class as the blank.

    >>> labels = tf.sparse.from_dense([[1]])
    >>> tf.compat.v1.nn.ctc_loss(labels, tf.zeros([1, 1, 3]), [1])
    [1.0986123]
    """
    logits = convert_to_tensor(inputs if logits is None else logits)
    if not is_sparse_matrix(labels):
        raise TypeError(
            f"Expected argument `labels` to be a SparseTensor. Received labels={labels} of type: {type(labels)}"
        )
    dense, lengths = dense_labels(labels)
    sequence_length = convert_to_tensor(sequence_length)
    if preprocess_collapse_repeated:
        dense, lengths = collapse_repeated(dense, lengths)
    if not ignore_longer_outputs_than_inputs:
        check_time(dense, lengths, sequence_length, ctc_merge_repeated)
    if not time_major:
        logits = primitives.Transpose(logits, [1, 0, 2])
    blank = logits.shape[-1] - 1
    loss = primitives.CTCLossDense(logits, dense, lengths, sequence_length, blank, bool(ctc_merge_repeated))
    if ignore_longer_outputs_than_inputs:
        loss = primitives.SelectV2(primitives.IsFinite(loss), loss, cast(0, loss.dtype))
    return loss


@public("compat.v1.nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[Any], Any]:
    """As `tf.nn.ctc_beam_search_decoder`; with `merge_repeated`, runs of one label in a result become one.

    >>> paths, scores = tf.compat.v1.nn.ctc_beam_search_decoder(tf.constant([[[5., 0., 0.]]]), [1])
    >>> paths[0].values
    [0]
    """
    return beam_search_paths(inputs, sequence_length, beam_width, top_paths, merge_repeated)


@public("compat.v1.nn.conv2d_backprop_input")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: Any = None,
) -> Any:
    """The gradient of a 2-D convolution by its input.

    >>> dy, filters = tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1])
    >>> tf.compat.v1.nn.conv2d_backprop_input([1, 2, 2, 1], filters, dy, 1, "SAME").shape
    TensorShape([1, 2, 2, 1])
    """
    filters = filter if filters is None else filters
    windows = geometry(strides, padding, data_format, dilations, 2)
    return input_gradient(primitives.ConvBackpropInput, input_sizes, filters, out_backprop, windows)


@public("compat.v1.nn.conv2d_backprop_filter")
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a 2-D convolution by its filters.

    >>> x, dy = tf.ones([1, 2, 2, 1]), tf.ones([1, 2, 2, 1])
    >>> tf.compat.v1.nn.conv2d_backprop_filter(x, [1, 1, 1, 1], dy, 1, "SAME").shape
    TensorShape([1, 1, 1, 1])
    """
    windows = geometry(strides, padding, data_format, dilations, 2)
    return filter_gradient(primitives.ConvBackpropFilter, input, filter_sizes, out_backprop, windows)


@public("compat.v1.nn.conv3d_backprop_filter", "compat.v1.nn.conv3d_backprop_filter_v2")
def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a 3-D convolution by its filters.

    >>> x = tf.ones([1, 2, 2, 2, 1])
    >>> tf.compat.v1.nn.conv3d_backprop_filter(x, [1, 1, 1, 1, 1], x, [1, 1, 1, 1, 1], "SAME").shape
    TensorShape([1, 1, 1, 1, 1])
    """
    windows = geometry(strides, padding, data_format, dilations, 3)
    return filter_gradient(primitives.ConvBackpropFilter, input, filter_sizes, out_backprop, windows)
