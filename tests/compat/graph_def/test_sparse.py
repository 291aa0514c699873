"""Functions on sparse tensors of unknown sizes are written as TensorFlow's operations and read back."""

import numpy as np
import pytest

import tapeflow as tf
from tests.compat.graph_def.test_compositions import restored

MATRIX = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
DENSE = tf.TensorSpec([None, 4])


def dense(function):
    return lambda x: tf.sparse.to_dense(function(tf.sparse.from_dense(x)))


CASES = {
    "reordered": dense(tf.sparse.reorder),
    "transposed": dense(tf.sparse.transpose),
    "maximum": dense(lambda s: tf.sparse.maximum(s, tf.sparse.map_values(tf.negative, s))),
    "softmax": dense(tf.sparse.softmax),
    "slice": dense(lambda s: tf.sparse.slice(s, [0, 1], [2, 3])),
    "reshape": dense(lambda s: tf.sparse.reshape(s, [2, 6])),
    "expanded": dense(lambda s: tf.sparse.expand_dims(s, 1)),
    "split": dense(lambda s: tf.sparse.split(s, 2, 1)[1]),
    "filled": dense(lambda s: tf.sparse.fill_empty_rows(s, 7.0)[0]),
    "sum": lambda x: tf.sparse.reduce_sum(tf.sparse.from_dense(x), 1),
    "added": lambda x: tf.sparse.add(tf.sparse.from_dense(x), x),
    "least squares": lambda x: tf.linalg.lstsq(tf.transpose(x) + tf.eye(4, 3), tf.ones([4, 1]), 0.1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("spec", [DENSE, tf.TensorSpec([3, 4])])
def test_functions_on_sparse_tensors(name, spec, tmp_path):
    found = restored(CASES[name], [spec], tmp_path)(tf.constant(MATRIX))
    np.testing.assert_allclose(found, CASES[name](tf.constant(MATRIX)), rtol=1e-5)


def test_a_traced_transpose_is_in_order():
    indices = tf.function(lambda x: tf.sparse.transpose(tf.sparse.from_dense(x)).indices)(tf.constant(MATRIX))
    assert indices.numpy().tolist() == sorted(indices.numpy().tolist())


def test_one_part_is_not_concatenated(tmp_path):
    assert restored(lambda x: tf.concat([x], 0), [DENSE], tmp_path)(tf.constant(MATRIX)).shape == (3, 4)
