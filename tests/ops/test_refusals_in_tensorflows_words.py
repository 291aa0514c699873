"""What operations say when they refuse arguments: the phrases of TensorFlow that programs match on."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.math.segment_sum(1.0, [0]), "at least rank 1"),
        (lambda: tf.math.segment_sum([1.0, 2.0], [-1, 1]), r"Segment id -1 out of range \[0, 2\), possibly because"),
        (lambda: tf.math.segment_sum([1.0, 2.0], [1, 0]), "possibly because 'segment_ids' input is not sorted"),
        (lambda: tf.math.unsorted_segment_sum([[1.0]], [[7]], 2), r"segment_ids\[0,0\] = 7 is out of range \[0, 2\)"),
        (lambda: tf.dynamic_partition(1.0, 17, 7), r"partitions = 17 is not in \[0, 7\)"),
        (lambda: tf.gather([1.0], 5), r"indices = 5 is not in \[0, 1\)"),
        (lambda: tf.math.betainc([1.0], [1.0], [1.0, 2.0]), "must be equal"),
        (lambda: tf.scatter_nd([[0, 0]], [[1.0]], [0, 3, 1]), "Indices and updates specified for empty"),
        (lambda: tf.gather_nd(np.zeros([0, 3]), [[0, 0]]), "Requested more than 0 entries, but params is empty"),
        (lambda: tf.split([1.0, 2.0], [1, 2]), "can't split axis"),
        (lambda: tf.concat([1.0, 2.0], 0), "rank of values must be greater than 0"),
        (lambda: tf.random.experimental.index_shuffle(5, [1, 2], 4), "max_index must be >= index"),
        (lambda: tf.reshape(tf.zeros([20]), [17, -1]), "must be evenly divisible by 17"),
        (lambda: tf.random.uniform([2], [0, 1], 5, tf.int32), "minval must be a scalar; got a tensor of shape"),
        (lambda: tf.reverse([[1.0]], [-30]), "is out of the range"),
        (lambda: tf.linalg.diag_part(1.0), "must be at least rank 2"),
        (lambda: tf.linalg.diag(1.0), "must be at least rank 1"),
        (lambda: tf.sparse.reshape(tf.sparse.from_dense([1, 2, 3]), [-1, -1]), "At most one dimension can"),
        (lambda: tf.sparse.reshape(tf.sparse.from_dense([1, 2, 3]), [2, 2]), "Cannot reshape"),
        (lambda: tf.dynamic_stitch([[0], [1]], [[1.0]]), "List argument .* must match"),
        (lambda: tf.math.confusion_matrix([1, 2, 3], [1, 2]), "must be equal"),
        (lambda: tf.histogram_fixed_width([1.0], [0.0, 1.0], -1), "must > 0"),
        (lambda: tf.raw_ops.DataFormatDimMap(x=[0], src_format="NHWC", dst_format="NHWW"), "determine a permutation"),
        (lambda: tf.raw_ops.DataFormatDimMap(x=[0], src_format="1234567", dst_format="NHWC"), "be of length 4 or 5"),
        (lambda: tf.raw_ops.NthElement(input=[1.0, 2.0], n=-1), "non-negative but is -1"),
        (lambda: tf.raw_ops.NthElement(input=[1.0, 2.0], n=2), "must have last dimension > n = 2"),
        (lambda: tf.ones([])[0], "Attempting to slice scalar input"),
    ],
)
def test_invalid_arguments(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.SparseTensor([[0], [1]], [1, 2, 3], [4]), "Dimensions 2 and 3 are not compatible"),
        (lambda: tf.SparseTensor([[0], [1]], [1, 2], [4, 5]), "Index rank 1 and shape rank 2 do not match"),
        (lambda: tf.io.decode_csv("1", [[1]], select_cols=[0, 1]), "Length of select_cols and record_defaults"),
        (lambda: tf.io.decode_csv("1,2", [[1], [1]], select_cols=[1, 0]), "is not strictly increasing"),
        (lambda: tf.nn.ctc_loss([[1]], tf.zeros([1, 1, 3]), [1], [1], blank_index=-4), r"must be in range \[-3, 3\)"),
        (lambda: tf.nn.ctc_loss([[1]], tf.zeros([1, 1, 0]), [1], [1]), "at least 1 class"),
        (lambda: tf.nn.conv_transpose(tf.ones([1]), tf.ones([1]), [2, 3], 1), "length 3, 4 or 5.* of length 2"),
        (lambda: tf.linalg.LinearOperatorBlockDiag([]), ">=1 operators"),
        (lambda: tf.sparse.cross([tf.constant(["a"])]), "Dense inputs should be a matrix"),
        (
            lambda: tf.ragged.map_flat_values(tf.add, tf.ragged.constant([[1]]), tf.ragged.constant([[[1]]])),
            "same ragged_rank",
        ),
        (
            lambda: tf.nn.fractional_max_pool(tf.ones([1, 4, 4, 1]), [1, -1, 1, 1]),
            "pooling_ratio cannot be smaller than 1",
        ),
    ],
)
def test_values(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_weights_of_losses_that_do_not_fit_when_the_graph_runs():
    with tf.Graph().as_default(), v1.Session() as session:
        values, weights = v1.placeholder(tf.float32), v1.placeholder(tf.float32)
        loss = v1.losses.compute_weighted_loss(values, weights)
        assert session.run(loss, {values: np.ones([3, 2]), weights: np.full([3, 1], 2.0)}) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast to values"):
            session.run(loss, {values: np.ones([3, 2]), weights: np.ones([2])})


def test_scalar_labels_when_the_graph_runs():
    with tf.Graph().as_default(), v1.Session() as session:
        labels = v1.placeholder(tf.int32)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, [[7.0, 8.0]])
        with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be 1-D"):
            session.run(loss, {labels: 0})


def test_scalar_labels_of_dense_cross_entropy_name_its_own_function():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^(?!sparse).*must be broadcastable.*labels_size=\[\]"):
        tf.nn.softmax_cross_entropy_with_logits(labels=1.0, logits=[[1.0, 2.0], [3.0, 4.0]])
