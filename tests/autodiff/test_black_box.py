"""Errors of Python functions inside a computation: TensorFlow's classes, and the functions' own."""

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
