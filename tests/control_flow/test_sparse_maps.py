"""`tf.map_fn` with sparse results, eager and in graphs, and the structure of what a mapped function returns."""

import numpy as np
import pytest

import tapeflow as tf

MODES = {"eager": lambda f: f, "function": tf.function}


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_sparse_tensors(mode):
    rows = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    found = MODES[mode](lambda x: tf.map_fn(lambda row: row, x))(rows)
    assert np.array_equal(found.indices, rows.indices) and np.array_equal(found.values, rows.values)
    assert found.dense_shape.numpy().tolist() == [2, 2]


@pytest.mark.parametrize("mode", MODES)
def test_sparse_results_of_several_sizes(mode):
    def run(sizes):
        return tf.map_fn(
            lambda n: (tf.sparse.from_dense(tf.range(n)), tf.range(n), n),
            sizes,
            fn_output_signature=(
                tf.SparseTensorSpec([None], tf.int32),
                tf.RaggedTensorSpec([None], tf.int32),
                tf.int32,
            ),
        )

    sparse, ragged, counts = MODES[mode](run)(tf.constant([3, 1, 4]))
    assert tf.sparse.to_dense(sparse).numpy().tolist() == [[0, 1, 2, 0], [0, 0, 0, 0], [0, 1, 2, 3]]
    assert ragged.to_list() == [[0, 1, 2], [0], [0, 1, 2, 3]] and counts.numpy().tolist() == [3, 1, 4]


@pytest.mark.parametrize("mode", MODES)
def test_gradient_through_sparse_results(mode):
    w = tf.Variable([1.0, 2.0, 3.0])

    def run():
        kind = tf.SparseTensorSpec([3], tf.float32)
        return tf.map_fn(lambda x: tf.sparse.from_dense(x * [1.0, 0.0, 2.0]), w, fn_output_signature=kind).values

    with tf.GradientTape() as tape:
        y = tf.reduce_sum(MODES[mode](run)() ** 2)
    assert tape.gradient(y, w).numpy().tolist() == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kinds", "result", "error"),
    [
        ([tf.int32, tf.int32], lambda x: (x, x), TypeError),
        ((tf.int32, tf.int32), lambda x: [x, x], TypeError),
        ({"a": tf.int32}, lambda x: [x], TypeError),
        ((tf.int32,), lambda x: x, ValueError),
        (tf.int32, lambda x: {"a": x}, ValueError),
        (None, lambda x: (x,), ValueError),
    ],
)
def test_results_have_the_structure_that_was_promised(mode, kinds, result, error):
    with pytest.raises(error, match="same nested structure"):
        MODES[mode](lambda: tf.map_fn(result, tf.range(3), fn_output_signature=kinds))()
