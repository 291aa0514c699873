"""`tf.compat.v1.losses`: weights and labels as TensorFlow takes them."""

import numpy as np
import pytest

import tapeflow as tf

losses = tf.compat.v1.losses
LOGITS = np.random.RandomState(0).rand(3, 4).astype(np.float32)
OTHERS = np.random.RandomState(1).rand(3, 4).astype(np.float32)


def mean_over_pairs(errors):
    """The mean, over pairs of different elements, of the squared difference of their errors."""
    n = len(errors)
    return sum((a - b) ** 2 for a in errors for b in errors) / (n * (n - 1))


def test_pairwise_errors_are_means_over_the_pairs_of_each_row():
    rows = np.array([mean_over_pairs(row) for row in LOGITS - OTHERS])
    for weights, expected in ((1.0, rows.sum()), (2.0, 2 * rows.sum()), ([[1.0], [0.0], [2.0]], rows[0] + 2 * rows[2])):
        found = losses.mean_pairwise_squared_error(LOGITS, OTHERS, weights)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"weights can not be broadcast to values\. values\.rank=2\. weights\.rank=1"):
        losses.mean_pairwise_squared_error(LOGITS, OTHERS, [1.0, 2.0, 3.0])


def test_labels_and_weights_of_one_column():
    expected = losses.sparse_softmax_cross_entropy([0, 1, 3], LOGITS, [1.0, 0.0, 2.0]).numpy()
    for labels in ([0, 1, 3], [[0], [1], [3]]):
        found = losses.sparse_softmax_cross_entropy(labels, LOGITS, [[1.0], [0.0], [2.0]])
        np.testing.assert_allclose(found.numpy(), expected)


def test_an_axis_has_one_name():
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        losses.cosine_distance(LOGITS, OTHERS, axis=1, dim=1)


def test_a_last_dimension_that_is_known_when_the_graph_runs():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        labels, logits, weights = v1.placeholder(tf.int32), v1.placeholder(tf.float32), v1.placeholder(tf.float32)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weights)
        feeds = {labels: [[0], [1]], logits: [[0.0, 0.0], [0.0, 0.0]], weights: [[1.0], [3.0]]}
        np.testing.assert_allclose(session.run(loss, feeds), 2 * np.log(2), rtol=1e-6)
        feeds.update({labels: [0, 1], weights: 1.0})
        np.testing.assert_allclose(session.run(loss, feeds), np.log(2), rtol=1e-6)
