"""Lists into which nothing was written have the shape of their elements, in files too."""

import numpy as np
import pytest

import tapeflow as tf


def squares(n):
    array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    for i in tf.range(n):
        array = array.write(i, i * i)
    return array.stack()


def rows(n):
    array = tf.TensorArray(tf.float32, size=n, element_shape=[2, 3])
    for i in tf.range(1, n):
        array = array.write(i, tf.fill([2, 3], tf.cast(i, tf.float32)))
    return array.stack(), array.read(0), array.gather([0])


@pytest.mark.parametrize("function", [squares, rows])
@pytest.mark.parametrize("count", [1, 3])
def test_elements_that_were_never_written_after_loading(function, count, tmp_path):
    model = tf.Module()
    model.f = tf.function(function, input_signature=[tf.TensorSpec([], tf.int32)])
    tf.saved_model.save(model, tmp_path)
    loaded, n = tf.saved_model.load(tmp_path).f, tf.constant(count)
    for found, expected in zip(tf.nest.flatten(loaded(n)), tf.nest.flatten(model.f(n))):
        np.testing.assert_array_equal(found, expected)


def test_a_list_without_elements_after_loading(tmp_path):
    model = tf.Module()
    model.f = tf.function(squares, input_signature=[tf.TensorSpec([], tf.int32)])
    tf.saved_model.save(model, tmp_path)
    assert tf.saved_model.load(tmp_path).f(tf.constant(0)).shape == [0]


@pytest.mark.parametrize(("operation", "shape"), [("TensorListStack", [0, 3]), ("TensorListConcatV2", [0])])
def test_a_list_of_unknown_size_without_elements(operation, shape):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def run(n):
        array = tf.raw_ops.TensorListReserve(element_shape=-1, num_elements=n, element_dtype=tf.float32)
        common = {"input_handle": array, "element_shape": [3], "element_dtype": tf.float32}
        if operation == "TensorListStack":
            return tf.raw_ops.TensorListStack(**common)
        return tf.raw_ops.TensorListConcatV2(**common, leading_dims=tf.constant([], tf.int64))[0]

    assert run(tf.constant(0)).shape == shape
