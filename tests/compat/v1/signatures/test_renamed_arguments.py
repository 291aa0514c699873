"""Functions of TensorFlow 1 under their older argument names and in their older order."""

import inspect

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_order_of_arguments():
    assert v1.pad([1], [[1, 0]], "CONSTANT", "n", 5).numpy().tolist() == [5, 1]
    assert v1.transpose([[1, 2]], [1, 0], "n").shape == [2, 1]
    assert v1.gather([5, 6], [1], None, "n").numpy() == [6]
    assert v1.nn.in_top_k([[0.1, 0.9]], [1], 1).numpy().tolist() == [True]
    assert v1.math.confusion_matrix([0], [0], 1, tf.int64).dtype == tf.int64
    assert v1.batch_to_space(tf.zeros([4, 1, 1, 1]), [[0, 0], [0, 0]], 2).shape == [1, 2, 2, 1]
    assert v1.sparse.segment_sum([1.0, 2.0], [0, 1], [0, 0], "n").numpy() == [3]
    assert list(inspect.signature(v1.assert_less).parameters)[2:4] == ["data", "summarize"]


def test_older_names():
    assert v1.reverse_sequence([[1, 2]], [2], seq_dim=1, batch_dim=0).numpy().tolist() == [[2, 1]]
    assert v1.zeros_like(tensor=[1], optimize=False).numpy() == [0]
    assert v1.strings.to_number(string_tensor="2").numpy() == 2
    assert v1.reduce_join([["a", "b"]], keep_dims=True, reduction_indices=1).numpy().tolist() == [[b"ab"]]
    sparse = tf.sparse.from_dense([[1, 2], [0, 3]])
    np.testing.assert_array_equal(v1.sparse_reduce_sum(sparse, reduction_axes=1, keep_dims=True).numpy(), [[3], [3]])
    with pytest.raises(ValueError, match="Cannot specify both 'seq_dim' and 'seq_axis'"):
        v1.reverse_sequence([[1, 2]], [2], seq_axis=1, seq_dim=1)
    with pytest.raises(TypeError, match=r"pad\(\) got an unexpected keyword argument 'x'"):
        v1.pad([1], [[0, 1]], x=1)


def test_split_gives_a_sparse_tensor():
    words = v1.strings.split(["a b", "c"])
    assert isinstance(words, tf.SparseTensor)
    assert words.dense_shape.numpy().tolist() == [2, 2]
    assert v1.strings.split(["a b"], result_type="RaggedTensor").to_list() == [[b"a", b"b"]]


def test_a_message_is_told():
    with pytest.raises(tf.errors.InvalidArgumentError, match="they differ"):
        v1.assert_equal(1, 2, data=["x"], message="they differ")


def test_py_func_gives_arrays():
    with tf.Graph().as_default(), v1.Session() as session:
        doubled = v1.py_func(lambda x: (2 * x, x.sum()), [tf.constant([1.0, 2.0])], [tf.float32, tf.float32])
        assert [value.tolist() for value in session.run(doubled)] == [[2.0, 4.0], 3.0]


def test_texts_become_numbers_in_a_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        assert session.run(v1.string_to_number(tf.constant(["1.5", "2"]))).tolist() == [1.5, 2.0]


def test_values_that_may_be_sparse_stay_so():
    np.testing.assert_allclose(v1.clip_by_average_norm([3.0, 4.0], 1.25).numpy(), [1.5, 2.0])
    np.testing.assert_allclose(v1.clip_by_average_norm([3.0, 4.0], 5.0).numpy(), [3.0, 4.0])
    sparse, slices = tf.sparse.from_dense([1, 0]), tf.IndexedSlices([1.0], [0])
    assert v1.convert_to_tensor_or_sparse_tensor(sparse) is sparse
    assert v1.convert_to_tensor_or_indexed_slices(slices) is slices
    assert v1.convert_to_tensor_or_indexed_slices([1]).numpy() == [1]
