"""Functions of `tf.compat.v1.nn` whose arguments mean more than those of today: partitioned tables, sparse labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.signatures.declaration import v1_signature
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.ops.nn.convolution_gradients import filter_gradient, input_gradient
from tapeflow._src.ops.nn.ctc import beam_search_paths, check_time, collapse_repeated, dense_labels, is_sparse_matrix
from tapeflow._src.ops.nn.embeddings import lookup, lookup_sparse, safe_lookup_sparse
from tapeflow._src.ops.nn.sampled_losses import nce_of_logits, sampled_loss, softmax_of_logits
from tapeflow._src.ops.nn.window_arguments import geometry

v1_signature(
    "nn.embedding_lookup(params, ids, partition_strategy='mod', name=None, validate_indices=True, max_norm=None)",
    "nn.embedding_lookup",
    function=lookup,
    renamed={"partition_strategy": "strategy"},
    ignored=["name", "validate_indices"],
    example="tf.compat.v1.nn.embedding_lookup(tf.constant([[1., 2.], [3., 4.]]), [1]) => [[3., 4.]]",
)
v1_signature(
    "nn.embedding_lookup_sparse(params, sp_ids, sp_weights, partition_strategy='mod', name=None, combiner=None, "
    "max_norm=None, allow_fast_lookup=False)",
    "nn.embedding_lookup_sparse",
    function=lookup_sparse,
    renamed={"partition_strategy": "strategy"},
    ignored=["name", "allow_fast_lookup"],
    example="ids = tf.sparse.from_dense([[1, 2]])\n"
    "tf.compat.v1.nn.embedding_lookup_sparse(tf.eye(3), ids, None, combiner='sum') => [[0., 1., 1.]]",
)
v1_signature(
    "nn.safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner='mean', "
    "default_id=None, name=None, partition_strategy='div', max_norm=None, allow_fast_lookup=False)",
    "nn.safe_embedding_lookup_sparse",
    function=safe_lookup_sparse,
    renamed={
        "embedding_weights": "params",
        "sparse_ids": "ids",
        "sparse_weights": "weights",
        "partition_strategy": "strategy",
    },
    ignored=["name", "allow_fast_lookup"],
    example="ids = tf.sparse.from_dense([[1], [0]])\n"
    "tf.compat.v1.nn.safe_embedding_lookup_sparse(tf.eye(2), ids) => [[0., 1.], [0., 0.]]",
)
for _name, _loss, _hits, _tail in (
    ("nce_loss", nce_of_logits, False, "name='nce_loss'"),
    ("sampled_softmax_loss", softmax_of_logits, True, "name='sampled_softmax_loss', seed=None"),
):
    v1_signature(
        f"nn.{_name}(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, "
        f"remove_accidental_hits={_hits}, partition_strategy='mod', {_tail})",
        f"nn.{_name}",
        function=partial(sampled_loss, _loss),
        renamed={"partition_strategy": "strategy"},
        ignored=["name"],
        example="weights, biases = tf.zeros([5, 2]), tf.zeros([5])\n"
        f"tf.compat.v1.nn.{_name}(weights, biases, [[1]], [[1., 1.]], 2, 5).shape => TensorShape([1])",
    )
v1_signature(
    "nn.ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1, merge_repeated=True)",
    "nn.ctc_beam_search_decoder",
    function=beam_search_paths,
    example="paths, scores = tf.compat.v1.nn.ctc_beam_search_decoder(tf.constant([[[5., 0., 0.]]]), [1])\n"
    "paths[0].values => [0]",
)


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
) -> Tensor:
    """The loss of sparse labels, with the last class as the blank.

    >>> labels = tf.sparse.from_dense([[1]])
    >>> tf.compat.v1.nn.ctc_loss(labels, tf.zeros([1, 1, 3]), [1])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.0986123], dtype=float32)>
    """
    logits = of_rank(convert_to_tensor(inputs if logits is None else logits), 3)
    if not is_sparse_matrix(labels):
        raise TypeError(
            f"Expected argument `labels` to be a SparseTensor. Received labels={labels} of type: {type(labels)}"
        )
    dense, lengths = dense_labels(labels)
    sequence_length = convert_to_tensor(sequence_length)
    if preprocess_collapse_repeated:
        dense, lengths = collapse_repeated(dense, lengths)
    if not ignore_longer_outputs_than_inputs:
        dense = check_time(dense, lengths, sequence_length, ctc_merge_repeated)
    if not time_major:
        logits = primitives.Transpose(logits, [1, 0, 2])
    blank = logits.shape[-1] - 1
    loss = primitives.CTCLossDense(logits, dense, lengths, sequence_length, blank, bool(ctc_merge_repeated))
    if ignore_longer_outputs_than_inputs:
        loss = primitives.SelectV2(primitives.IsFinite(loss), loss, cast(0, loss.dtype))
    return loss


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
