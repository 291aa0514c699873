"""`tensorflow.python.ops.list_ops`: tensor lists whose element shapes may be left out."""

import importlib

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture
def list_ops(as_tensorflow):
    return importlib.import_module("tensorflow.python.ops.list_ops")


def test_lists(list_ops):
    handle = list_ops.tensor_list_reserve(element_shape=None, num_elements=2, element_dtype=tf.float32)
    handle = list_ops.tensor_list_set_item(handle, 2, [1.0, 2.0], resize_if_index_out_of_bounds=True)
    np.testing.assert_array_equal(list_ops.tensor_list_stack(handle, tf.float32), [[0, 0], [0, 0], [1, 2]])
    handle = list_ops.tensor_list_scatter([3.0], [1], input_handle=list_ops.tensor_list_from_tensor([1.0, 2.0], []))
    handle, last = list_ops.tensor_list_pop_back(handle, tf.float32)
    assert last == 3.0 and list_ops.tensor_list_length(handle) == 1
    handle = list_ops.tensor_list_push_back(handle, 4.0)
    np.testing.assert_array_equal(list_ops.tensor_list_gather(handle, [1, 0], tf.float32), [4.0, 1.0])
    parts = list_ops.tensor_list_split(tf.range(3.0), None, [2, 1])
    np.testing.assert_array_equal(list_ops.tensor_list_concat(parts, tf.float32), [0.0, 1.0, 2.0])
    shape = list_ops.tensor_list_element_shape(list_ops.empty_tensor_list([None, 2], tf.int32), tf.int32)
    np.testing.assert_array_equal(shape, [-1, 2])


def test_shapes_as_the_operations_take_them(list_ops):
    build = list_ops._build_element_shape
    assert build(None) == -1 and build(tf.TensorShape(None)) == -1
    assert build([None, 5]) == [-1, 5] and build(tf.TensorShape([None, 5])) == [-1, 5]
    assert build([]).dtype == tf.int32
    shape = tf.constant([1])
    assert build(shape) is shape
