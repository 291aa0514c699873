"""Inner names about functions, dictionaries and specs."""

import functools

import pytest

import tapeflow as tf


@pytest.fixture(autouse=True, scope="module")
def as_tensorflow():
    tf.install_as_tensorflow()


class _Adder:
    def __call__(self, a, b, **rest):
        return a + b

    def method(self, a, b=1):
        return a + b


def test_what_callables_take():
    from tensorflow.python.util import function_utils

    assert function_utils.fn_args(lambda a, b: a) == ("a", "b")
    assert function_utils.fn_args(_Adder()) == ("a", "b")
    assert function_utils.fn_args(_Adder().method) == ("a", "b")
    assert function_utils.fn_args(functools.partial(_Adder().method, 1)) == ("b",)
    assert function_utils.has_kwargs(_Adder())
    assert not function_utils.has_kwargs(_Adder().method)
    assert function_utils.get_func_name(_Adder().method) == "_Adder.method"
    assert function_utils.get_func_code(_Adder()) is _Adder.__call__.__code__
    for function in (function_utils.get_func_name, function_utils.get_func_code):
        with pytest.raises(ValueError, match="must be a callable"):
            function(3)
    with pytest.raises(TypeError, match="should be a callable"):
        function_utils.has_kwargs(3)


def test_dictionaries():
    from tensorflow.python.framework import immutable_dict
    from tensorflow.python.util import nest

    assert nest.flatten_dict_items({("a", ("b", "c")): (1, (2, 3))}) == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(ValueError, match="Key had 2 elements"):
        nest.flatten_dict_items({("a", "b"): (1, 2, 3)})
    with pytest.raises(ValueError, match="not unique"):
        nest.flatten_dict_items({("a", "a"): (1, 2)})
    with pytest.raises(TypeError, match="must be a dictionary"):
        nest.flatten_dict_items([1])
    with pytest.raises(TypeError):
        immutable_dict.ImmutableDict(a=1)["a"] = 2


def test_specs_and_composites():
    from tensorflow.python.framework import dtypes, ops, tensor, tensor_util

    assert tensor.sanitize_spec_name("3 a-b") == "tensor_3_a_b"
    assert tensor.BoundedTensorSpec([1], tf.float32, 0.0, 1.0).maximum == 1.0
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert ops.convert_to_tensor_or_composite(ragged) is ragged
    assert ops.convert_to_tensor_or_composite([1, 2]).shape == [2]
    with pytest.raises(RuntimeError, match="dtype mismatch"):
        ops.convert_to_tensor_or_composite(ragged, tf.float32)
    assert tensor_util.ShapeEquals(tf.make_tensor_proto([[1, 2]]), [1, 2])
    assert not tensor_util.ShapeEquals(tf.make_tensor_proto([[1, 2]]), [2])
    assert {tf.float32, tf.string, tf.qint8} < dtypes.TF_VALUE_DTYPES
