"""Embeddings of several tables, of ragged ids, and of ids whose number is dynamic."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1
TABLE = np.arange(20.0, dtype=np.float32).reshape(10, 2)


def parts(strategy, count=3):
    rows = [TABLE[i::count] for i in range(count)] if strategy == "mod" else np.array_split(TABLE, count)
    return [tf.constant(part) for part in rows]


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("where", ["eager", "function", "unknown size", "graph"])
def test_tables_in_parts(strategy, where):
    ids = np.array([[0, 9, 3], [4, 4, 7]], np.int64)

    def look(ids):
        return v1.nn.embedding_lookup(parts(strategy), ids, partition_strategy=strategy)

    if where == "eager":
        found = look(ids)
    elif where == "function":
        found = tf.function(look)(tf.constant(ids))
    elif where == "unknown size":
        found = tf.function(look, input_signature=[tf.TensorSpec([None, None], tf.int64)])(tf.constant(ids))
    else:
        with tf.Graph().as_default(), v1.Session() as session:
            given = v1.placeholder(tf.int64, [None, None])
            found = session.run(look(given), {given: ids})
    np.testing.assert_array_equal(found, TABLE[ids])


def test_an_id_outside_of_all_parts():
    look = lambda ids: tf.nn.embedding_lookup(parts("div"), ids)  # noqa: E731
    for run in (look, tf.function(look)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(tf.constant([0, 30]))


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_ragged_ids_are_sparse_ids(combiner):
    ids, weights = tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1.0, 2.0], [0.5]])
    found = tf.nn.embedding_lookup_sparse(TABLE, ids, weights, combiner=combiner)
    expected = tf.nn.embedding_lookup_sparse(TABLE, ids.to_sparse(), weights.to_sparse(), combiner=combiner)
    np.testing.assert_allclose(found, expected)
    with pytest.raises(TypeError, match="sp_weights must be RaggedTensor"):
        tf.nn.embedding_lookup_sparse(TABLE, ids, weights.to_sparse(), combiner=combiner)


def test_safe_lookup_of_ragged_ids():
    ids = tf.ragged.constant([[0, 1], [], [2]], dtype=tf.int64)
    weights = tf.ragged.constant([[1.0, 3.0], [], [2.0]])
    found = tf.nn.safe_embedding_lookup_sparse(tf.eye(3), ids, weights)
    assert found.numpy().tolist() == [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_ids_that_are_no_integers_are_refused():
    params = tf.eye(3)
    ids = tf.SparseTensor([[0, 0]], [1.0], [1, 1])
    for call in (
        lambda: tf.nn.embedding_lookup(params, [1.0]),
        lambda: tf.nn.embedding_lookup([params, params], [1.0]),
        lambda: tf.nn.embedding_lookup_sparse(params, ids, None),
    ):
        with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match="int"):
            call()
