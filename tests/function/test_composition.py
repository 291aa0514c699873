"""Compositions that run whole when the graph runs: what is known of their results while tracing."""

import pytest

import tapeflow as tf
from tapeflow._src.function.composition import _stage


def test_sparse_results_have_the_shapes_that_all_calls_have():
    shapes = {}

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 4], tf.float32)])
    def run(x):
        results = {
            "add": tf.sparse.add(x, x),
            "concat": tf.sparse.concat(0, [x, x]),
            "transpose": tf.sparse.transpose(x),
            "expand": tf.sparse.expand_dims(x, 0),
        }
        shapes.update({name: result.shape.as_list() for name, result in results.items()})
        return results

    found = run(tf.SparseTensor([[0, 1]], [2.0], [7, 4]))
    assert shapes == {"add": [None, 4], "concat": [None, 4], "transpose": [4, None], "expand": [1, None, 4]}
    assert found["concat"].shape == [14, 4]


def test_tracing_takes_no_element_of_an_iterator():
    rows = tf.ragged.constant([[0, 1], [2]], dtype=tf.int64)
    iterator = iter(tf.data.Dataset.from_tensors(rows).repeat(3))
    text = tf.function(lambda given: tf.as_string(next(given)))
    assert text(iterator).to_list() == [[b"0", b"1"], [b"2"]]
    assert len(list(iterator)) == 2


def test_refused_values_are_errors_of_the_run():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        part = tf.strings.substr(tf.constant([b"bad"]), 4, 2)  # TensorFlow, too, looks at values when the graph runs
        with pytest.raises(tf.errors.InvalidArgumentError, match="pos 4 out of range"):
            session.run(part)


@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError, AssertionError, LookupError, RuntimeError, ImportError])
def test_errors_that_no_unknown_value_causes_are_raised_at_once(error):
    calls = []

    def broken(x):
        calls.append(x)
        raise error("broken")

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def run(x):
        return _stage(broken, (x,), {})

    with pytest.raises(error, match="broken"):
        run(tf.zeros([2]))
    assert len(calls) == 1


def test_sparse_placeholders_of_which_nothing_is_known():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.SparseTensor(v1.placeholder(tf.int64), v1.placeholder(tf.float64), v1.placeholder(tf.int64))
        ordered, joined = tf.sparse.reorder(x), tf.sparse.concat(1, [x, x])
        feed = {x: v1.SparseTensorValue([[1, 0], [0, 1]], [1.0, 2.0], [2, 2])}
        found = session.run([ordered, tf.sparse.to_dense(ordered), joined], feed)
    assert found[0].indices.tolist() == [[0, 1], [1, 0]]
    assert found[1].tolist() == [[0.0, 2.0], [1.0, 0.0]]
    assert found[2].dense_shape.tolist() == [2, 4]
