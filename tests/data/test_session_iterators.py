"""Iterators of TensorFlow 1's graphs."""

import numpy as np
import pytest

import tapeflow
from tapeflow.compat import v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def drained(session, fetches):
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(fetches))
    return found


def test_each_session_begins_anew():
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(6.0), np.arange(6))).map(lambda a, b: (a + 1, b)).batch(4)
    x, y = dataset.make_one_shot_iterator().get_next()
    assert x.shape.as_list() == [None] and y.dtype == tf.int64
    for _ in range(2):
        with tf.Session() as session:
            assert [a.tolist() for a, _ in drained(session, [x, y])] == [[1, 2, 3, 4], [5, 6]]


def test_constants_of_the_graph():
    ten = tf.constant(10)
    dataset = tf.data.Dataset.from_tensor_slices(tf.constant([1, 2])).map(lambda x: x + ten)
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    total = dataset.reduce(0, lambda total, x: total + x)
    with tf.Session() as session:
        assert drained(session, element) == [11, 12]
        assert session.run(total) == 23


def test_placeholders_are_read_by_the_initializer():
    rows, w = tf.placeholder(tf.float32, [None]), tf.Variable(2.0)
    iterator = tf.data.make_initializable_iterator(
        tf.data.Dataset.from_tensor_slices(rows).map(lambda x: x * w).repeat(2)
    )
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element)
        for values in ([1.0, 2.0], [5.0]):
            session.run(iterator.initializer, {rows: values})
            assert drained(session, element) == [2 * x for x in values] * 2


def test_one_iterator_for_two_datasets():
    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    small, large = (iterator.make_initializer(tf.data.Dataset.range(n, n + 2)) for n in (0, 10))
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(small)
        assert session.run(element) == 0
        session.run(large)
        assert drained(session, element) == [10, 11]
    with pytest.raises(TypeError, match=r"Expected output types .* but got dataset with output types"):
        iterator.make_initializer(tf.data.Dataset.from_tensors("text"))
    with pytest.raises(ValueError, match="The iterator does not have an initializer"):
        _ = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).initializer


def test_training_as_in_tensorflow():
    """The losses, and so the order of the elements, are TensorFlow's."""
    tf.set_random_seed(1)
    x = np.linspace(-1, 1, 32).astype(np.float32)[:, None]
    dataset = tf.data.Dataset.from_tensor_slices((x, 3 * x + 1)).shuffle(32, seed=3).batch(8).repeat(20)
    bx, by = dataset.make_one_shot_iterator().get_next()
    w, b = tf.Variable([[0.0]]), tf.Variable([0.0])
    loss = tf.reduce_mean((tf.matmul(bx, w) + b - by) ** 2)
    step = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [value for value, _ in drained(session, [loss, step])]
        found_w, found_b = session.run([w, b])
    np.testing.assert_allclose([found_w[0, 0], found_b[0]], [3.0, 1.0], rtol=1e-6)
    assert len(losses) == 80
    np.testing.assert_allclose(losses[:6], [4.8694, 1.6428, 1.3528, 0.5932, 0.6477, 0.2971], atol=1e-4)


def test_what_datasets_of_tensorflow_1_tell():
    dataset = tf.data.Dataset.from_tensor_slices({"a": [1.0], "b": [[1, 2]]})
    assert dataset.output_types == {"a": tf.float32, "b": tf.int32}
    assert {k: s.as_list() for k, s in dataset.batch(2).output_shapes.items()} == {"a": [None], "b": [None, 2]}
    assert tf.data.get_output_classes(dataset)["a"] is tf.Tensor


def test_a_handle_says_whose_elements_to_give():
    with tf.Session() as session:
        few, endless = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 102).repeat()
        handle = tf.placeholder(tf.string, [])
        element = tf.data.Iterator.from_string_handle(handle, few.output_types, few.output_shapes).get_next()
        begun, shot = few.make_initializable_iterator(), endless.make_one_shot_iterator()
        first, second = session.run([begun.string_handle(), shot.string_handle()])
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element, {handle: first})
        session.run(begun.initializer)
        found = [int(session.run(element, {handle: h})) for h in (first, second, second, first, second, first)]
        assert found == [0, 100, 101, 1, 100, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element, {handle: first})
        with pytest.raises(tf.errors.NotFoundError, match="there is no iterator of the handle"):
            session.run(element, {handle: b"nobody"})
