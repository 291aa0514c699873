"""Errors of Python functions inside a computation: TensorFlow's classes, and the functions' own."""

import numpy as np
import pytest

import tapeflow as tf


class OwnError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


ERRORS = [
    (ValueError("boom"), tf.errors.InvalidArgumentError),
    (TypeError("boom"), tf.errors.InvalidArgumentError),
    (StopIteration("boom"), tf.errors.OutOfRangeError),
    (MemoryError("boom"), tf.errors.ResourceExhaustedError),
    (NotImplementedError("boom"), tf.errors.UnimplementedError),
    (KeyError("boom"), tf.errors.UnknownError),
    (OwnError("b", "boom"), tf.errors.UnknownError),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=lambda x: getattr(x, "__name__", type(x).__name__))
def test_errors_are_of_both_classes(error, kind):
    def fail(x):
        raise error

    def call():
        return tf.py_function(fail, [1.0], tf.float32)

    def call_with_arrays():
        return tf.numpy_function(fail, [1.0], tf.float32)

    def run(make):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.run(make())

    for go in (
        call,
        tf.function(call),
        tf.function(call_with_arrays),
        lambda: run(call),
        lambda: run(call_with_arrays),
    ):
        with pytest.raises(kind, match=f"{type(error).__name__}: .*boom") as raised:
            go()
        assert isinstance(error, StopIteration) or isinstance(raised.value, type(error))
    with pytest.raises(type(error), match="boom"):
        call_with_arrays()


def test_a_tensor_given_twice_to_one_composition_gets_the_sum_of_both_gradients():
    add = tf.function(lambda s: tf.sparse.add(s, s), input_signature=[tf.SparseTensorSpec([None, 5], tf.float32)])
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = tf.reduce_sum(add(tf.SparseTensor([[0, 1], [2, 3], [2, 4]], values, [3, 5])).values)
    assert tape.gradient(total, values).numpy().tolist() == [2.0, 2.0, 2.0]


def test_composite_tensors_go_in_and_out():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    spec = tf.RaggedTensorSpec([None, None], tf.float32)

    def doubled(rows):
        return rows + tf.py_function(lambda r: 2.0 * r, [rows], spec)

    for function in (doubled, tf.function(doubled)):
        assert function(x).to_list() == [[3.0, 6.0], [9.0]]
    total, rows = tf.py_function(lambda r: (tf.reduce_sum(r), r), [x], [tf.float32, spec])
    assert total == 6.0 and rows.to_list() == x.to_list()
    sparse = tf.py_function(tf.sparse.from_dense, [[[0.0, 5.0]]], tf.SparseTensorSpec([None, None], tf.float32))
    np.testing.assert_array_equal(tf.sparse.to_dense(sparse), [[0.0, 5.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="which did not match Tout"):
        tf.py_function(lambda r: r, [[[1.0]]], [spec])


def test_gradients_pass_ragged_values():
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        rows = tf.RaggedTensor.from_row_lengths(values, [2, 1])
        y = tf.py_function(lambda r: tf.reduce_sum(r * r), [rows], tf.float32)
    np.testing.assert_array_equal(tape.gradient(y, values), [2.0, 4.0, 6.0])


def test_functions_must_be_callable():
    for call in (tf.py_function, tf.numpy_function):
        with pytest.raises(ValueError, match="callable"):
            call(tf.constant(1), [1], tf.int32)
