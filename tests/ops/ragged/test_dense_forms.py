"""Ragged tensors made dense or sparse, with sizes that are given, unknown, or known when the graph runs."""

import pytest

import tapeflow as tf

ROWS = tf.ragged.constant([[1, 2], [3, 4, 5], [], [6]])
DEEP = tf.ragged.constant([[[1, 2], [3]], [[4]], []])
PAIRS = tf.RaggedTensor.from_row_splits([[1, 2], [3, 4], [5, 6]], [0, 1, 1, 3])


def both(function, *args):
    """Results of a function eagerly and traced, as lists."""
    return [call(*args).numpy().tolist() for call in (function, tf.function(function))]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (tf.constant([3, 2]), [[1, 2], [3, 4], [9, 9]]),
        (tf.constant([-1, 2]), [[1, 2], [3, 4], [9, 9], [6, 9]]),
        (tf.constant([2, -1], tf.int64), [[1, 2, 9], [3, 4, 5]]),
        (tf.TensorShape(None), [[1, 2, 9], [3, 4, 5], [9, 9, 9], [6, 9, 9]]),
        ([None, 1], [[1], [3], [9], [6]]),
    ],
)
def test_sizes_that_are_asked_for(shape, expected):
    assert both(lambda rows: rows.to_tensor(9, shape=shape), ROWS) == [expected] * 2
    if tf.is_tensor(shape):  # given to the function, hence unknown while it is traced
        assert tf.function(lambda rows, sizes: rows.to_tensor(9, shape=sizes))(ROWS, shape).numpy().tolist() == expected


def test_sizes_of_inner_rows():
    assert both(lambda rows: rows.to_tensor(shape=tf.constant([1, -1, 3])), DEEP) == [[[[1, 2, 0], [3, 0, 0]]]] * 2


def test_static_shapes():
    shapes = []

    @tf.function
    def f(rows, dense):
        shapes.append(rows.to_tensor(shape=[4, 4]).shape.as_list())
        shapes.append(tf.RaggedTensor.from_tensor(dense, ragged_rank=2).to_tensor().shape.as_list())

    f(ROWS, tf.ones([2, 3, 4]))
    assert shapes == [[4, 4], [2, 3, 4]]


@pytest.mark.parametrize("call", [lambda f: f, tf.function])
def test_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"rt_input.rank = 3 but shape.rank = 2"):
        call(lambda: DEEP.to_tensor(shape=[1, 2]))()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be less than rt_input.flat_values.rank"):
        call(lambda: ROWS.to_tensor(default_value=[0]))()


def test_sparse_of_dense_rows():
    @tf.function
    def f(rows):
        found = rows.to_sparse()
        return found.indices, found.values, found.dense_shape

    indices, values, shape = f(PAIRS)
    assert indices.numpy().tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0], [2, 0, 1], [2, 1, 0], [2, 1, 1]]
    assert values.numpy().tolist() == [1, 2, 3, 4, 5, 6]
    assert shape.numpy().tolist() == [3, 2, 2]
