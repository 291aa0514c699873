"""Tensors against NumPy: indexing, operators, conversions, sharing of memory."""

import copy
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tapeflow as tf

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def sample(dtype, shape=(2, 3)):
    values = np.arange(np.prod(shape)).reshape(shape)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(dtype):
    array = sample(dtype)
    for given_array in (array, array.T, array[:, ::2], np.asfortranarray(array), array[:0], array[0, 0]):
        tensor = tf.constant(given_array)
        assert tensor.dtype.name == dtype
        back = tensor.numpy()
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, given_array)


def test_byte_order_is_understood():
    array = np.arange(5, dtype=">f4")
    np.testing.assert_array_equal(tf.constant(array), array)


@given(
    hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=4, max_side=5), elements=st.integers(-9, 9)).flatmap(
        lambda a: st.tuples(st.just(a), hnp.basic_indices(a.shape, allow_newaxis=True, max_dims=6))
    )
)
def test_indexing_is_numpys(case):
    array, key = case
    np.testing.assert_array_equal(tf.constant(array)[key], array[key])


def test_indexing_with_tensors_and_numpy_integers():
    x = tf.reshape(tf.range(12), [3, 4])
    assert int(x[tf.constant(1), np.int64(2)]) == 6
    np.testing.assert_array_equal(x[tf.constant(1) :, tf.Variable(0) : 2], [[4, 5], [8, 9]])
    np.testing.assert_array_equal(x[x > 5], [6, 7, 8, 9, 10, 11])


@pytest.mark.parametrize("key", [slice(None, None, 0), (0, 0, 0), (..., ...), 1.5, "a", 7, -8])
def test_bad_indices_are_refused(key):
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)):
        tf.zeros([3, 4])[key]


def test_leading_slices_share_memory_and_reshapes_too():
    x = tf.constant(np.arange(1000.0).reshape(10, 100))
    start = np.asarray(x).__array_interface__["data"][0]
    assert np.asarray(tf.reshape(x, [100, 10])).__array_interface__["data"][0] == start
    assert np.asarray(x[3]).__array_interface__["data"][0] == start + 3 * 800
    assert np.asarray(tf.split(x, 2)[1]).__array_interface__["data"][0] == start + 5 * 800


def test_arrays_from_array_protocol_are_read_only_and_numpy_gives_a_copy():
    x = tf.ones([100])
    view = np.asarray(x)
    assert not view.flags.writeable
    own = x.numpy()
    own[:] = 5
    np.testing.assert_array_equal(x, np.ones(100))
    np.testing.assert_array_equal(np.array(x, copy=True), np.ones(100))
    assert np.array(x, dtype=np.float64).dtype == np.float64


def test_numpy_of_a_passing_tensor_needs_no_copy():
    array = (tf.ones([1000]) * 2.0).numpy()
    array[0] = 7.0
    np.testing.assert_array_equal(array[:3], [7, 2, 2])


def test_buffer_protocol_and_dlpack():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    memory = memoryview(x)
    assert memory.readonly and memory.shape == (2, 2) and memory.format == "f"
    np.testing.assert_array_equal(np.from_dlpack(x), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle_and_copy(dtype):
    x = tf.constant(sample(dtype))
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y.numpy(), x.numpy())


def test_pickling_strings():
    x = tf.constant([["a", "bc"], ["", "ü"]])
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [[b"a", b"bc"], [b"", "ü".encode()]]


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
    "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_operators_with_numbers_arrays_and_lists_on_either_side(name, dtype):
    apply = OPERATORS[name]
    a = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    b = np.array([3, 1, 2], dtype)
    x = tf.constant(a)
    for other in (tf.constant(b), b, b.tolist(), tf.Variable(b), 2):
        reference = np.asarray(b if not isinstance(other, int) else other, dtype)
        np.testing.assert_allclose(apply(x, other), apply(a, reference), rtol=1e-6)
        np.testing.assert_allclose(apply(other, x), apply(reference, a), rtol=1e-6)


def test_float_tensors_of_two_widths_do_not_mix():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"float.*double"):
        tf.constant(1.0) + tf.constant(1.0, tf.float64)


def test_own_classes_can_take_part_in_operators():
    class Money:
        def __radd__(self, other):
            return "money"

    assert tf.constant(1.0) + Money() == "money"


def test_attributes_weak_references_and_cycles():
    import gc
    import weakref

    x = tf.ones([3])
    x._keras_mask = x
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_strings():
    x = tf.constant(["a", "b"]) + tf.constant("c")
    assert x.numpy().tolist() == [b"ac", b"bc"]
    np.testing.assert_array_equal(x == "ac", [True, False])
    assert tf.concat([x, x], 0).shape == [4]


def test_too_many_dimensions_are_refused():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="16"):
        tf.reshape(tf.zeros([1]), [1] * 17)


def test_objects_that_convert_themselves():
    class Wrapped:
        def __tf_tensor__(self, dtype=None, name=None):
            return tf.constant([1.0, 2.0])

    np.testing.assert_array_equal(tf.constant([1.0, 1.0]) + Wrapped(), [2.0, 3.0])
    np.testing.assert_array_equal(tf.square(Wrapped()), [1.0, 4.0])


def test_instances_cannot_be_made_by_hand():
    with pytest.raises(TypeError):
        tf.Tensor()


def test_tensors_in_cycles_are_collected_and_their_wrappers_used_again():
    for _ in range(600):
        x = tf.constant([1.0])
        x.me = x
    del x
    gc.collect()
    made = [tf.constant([float(i)]) for i in range(600)]
    for x in made:
        x.note = 1
    gc.collect()
    assert [float(x[0]) for x in made] == list(range(600))


def test_operators_that_classes_of_others_may_take_over():
    names = tf.Tensor.OVERLOADABLE_OPERATORS
    assert {"__add__", "__radd__", "__getitem__", "__neg__", "__matmul__", "__eq__"} <= names
    assert all(callable(getattr(tf.Tensor, name)) for name in names)
    assert tf.Tensor.__nonzero__(tf.constant(1.0)) is True


def test_numpy_values_take_the_dtype_of_tensors_beside_them():
    i, f = tf.constant(5), tf.constant(1.5)
    for found, wanted, dtype in [
        (i + np.float64(3.0), 8, tf.int32),
        (np.float32(2.0) * i, 10, tf.int32),
        (tf.add(i, np.array([3.0, 4.0])), [8, 9], tf.int32),
        (np.float64(2.0) ** i, 32, tf.int32),
        (i == np.float64(5.0), True, tf.bool),
        (tf.where([True, False], np.float64(1.0), f), [1.0, 1.5], tf.float32),
        (tf.maximum(np.array([1.0, 2.0]), f), [1.5, 2.0], tf.float32),
        (tf.concat((tf.shape([1, 2]), (np.int64(3),)), 0), [2, 3], tf.int32),
        (tf.concat((tf.shape([1, 2]), (tf.constant(5, tf.int64),), [7]), 0), [2, 5, 7], tf.int32),
    ]:
        assert found.dtype == dtype and found.numpy().tolist() == wanted
    assert not bool(i == np.float64(5.5))


@pytest.mark.parametrize("value", [np.float64(3.5), np.array([1.0, np.nan]), np.float64(1e20), np.complex64(1)])
def test_numpy_values_that_would_change_are_refused(value):
    """TensorFlow cuts off what does not fit: 5 + np.float64(3.5) is 8 there."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a int32 tensor"):
        tf.constant(5) + value


@pytest.mark.parametrize("run", [lambda f: f(), lambda f: tf.function(f)()], ids=["eager", "function"])
def test_python_floats_before_an_array_decide_its_dtype(run):
    doubles, integers = np.array([[3.0]]), np.array([3])
    for result in (
        run(lambda: tf.maximum(0.0, doubles)),
        run(lambda: tf.matmul([[1.0]], doubles)),
        run(lambda: tf.where([[True]], 0.0, doubles)),
        run(lambda: tf.stack([[[1.0]], doubles])),
        run(lambda: tf.concat([[[1.0]], doubles], 0)),
        run(lambda: tf.add(1.0, integers)),
        run(lambda: tf.maximum(0.0, np.float64(3.0))),
    ):
        assert result.dtype == tf.float32
    for result in (
        run(lambda: tf.maximum(doubles, 0.0)),
        run(lambda: tf.maximum(np.float64(3.0), 1.0)),
        run(lambda: tf.maximum([np.float64(3.0)], doubles)),
        run(lambda: tf.maximum(0.0, tf.constant(doubles))),
    ):
        assert result.dtype == tf.float64
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError)):
        run(lambda: tf.add(integers, 1.0))
    assert run(lambda: tf.add(1.0, np.array([1j]))).dtype == tf.complex128


def test_none_stands_for_the_default_of_a_flag():
    matrix, right = [[2.0, 3.0], [1.0, 4.0]], [[2.0], [6.0]]
    np.testing.assert_array_equal(
        tf.linalg.triangular_solve(matrix, right, lower=None), tf.linalg.triangular_solve(matrix, right)
    )


def test_lists_of_numpy_values():
    """Integers become Python's, and real numbers what the first one is, as in TensorFlow."""
    assert tf.constant([np.int64(3), 0]).dtype == tf.int32
    assert tf.constant([0, np.int64(2**40)]).dtype == tf.int64
    assert tf.constant([np.int8(3)]).dtype == tf.int32
    assert tf.constant([np.array([1, 2]), [3, 4]]).dtype == tf.int32
    assert tf.constant([[1, 2], np.array([3.0, 4.0])]).dtype == tf.float32
    assert tf.constant([np.float64(3), 1.0]).dtype == tf.float64
    assert tf.constant([1.0, np.float64(3)]).dtype == tf.float32
    assert tf.constant([np.zeros(2), [1.0, 2.0]]).dtype == tf.float64
    assert tf.constant([np.uint64(2**63)]).numpy().tolist() == [2**63]
    assert tf.constant([1, True]).numpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match="mixed types"):
        tf.constant([True, 1])
    with pytest.raises(ValueError, match="out of range"):
        tf.constant(1e300)


def test_a_number_before_a_tensor_takes_its_dtype():
    assert (2 + tf.constant(1.0)).dtype == tf.float32
    with pytest.raises(TypeError, match=r"Cannot convert 1\.5"):
        1.5 + tf.constant(1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(1) + 1.5


@pytest.mark.parametrize("value", [np.array([True, False]), [True, False], (True, False)])
def test_booleans_beside_numbers_are_numbers(value):
    for dtype in (tf.float32, tf.int64, tf.complex64, tf.bfloat16):
        x = tf.cast([3, 4], dtype)
        for y in (x * value, value * x, tf.multiply(value, x), tf.function(lambda v: v * value)(x)):
            assert y.dtype == dtype and tf.cast(y, tf.float32).numpy().tolist() == [3.0, 0.0]
    assert (tf.constant([1.0, 2.0]) * np.bool_(True)).numpy().tolist() == [1.0, 2.0]
    assert tf.convert_to_tensor(value, dtype_hint=tf.float32).dtype == tf.float32


def test_a_value_of_an_unknown_type_in_a_graph():
    with pytest.raises(ValueError, match="unsupported type"):
        tf.convert_to_tensor(object())
    with pytest.raises(TypeError, match="Failed to convert elements of <object object"):
        tf.function(lambda: tf.convert_to_tensor(object()))()
