"""`tf.IndexedSlices` holds its parts, prints and has a spec as in TensorFlow 2.21."""

import operator

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.types import nest, nest_paths


def make(dense_shape=None):
    shape = None if dense_shape is None else tf.constant(dense_shape)
    return tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([0]), shape)


def test_parts():
    slices = make([4, 2])
    assert (slices.dtype, slices.shape.as_list(), "CPU" in slices.device) == (tf.float32, [4, 2], True)
    assert make().shape.rank is None
    assert make().dense_shape is None
    with pytest.raises(AttributeError):
        slices.values = 1
    slices.note = "attributes may be added"


@pytest.mark.parametrize("beside", [tf.constant([[3.0, 4.0], [5.0, 6.0]]), tf.Variable([[3.0, 4.0], [5.0, 6.0]])])
def test_operators_beside_a_tensor_take_the_dense_value(beside):
    slices = make([2, 2])
    for operate in (operator.add, operator.sub, operator.mul, operator.pow, operator.matmul, operator.gt):
        for args in ((slices, beside), (beside, slices)):
            expected = operate(*(tf.convert_to_tensor(x).numpy() for x in args))
            np.testing.assert_array_equal(operate(*args), expected)
    np.testing.assert_array_equal(tf.function(lambda x: x * slices + slices)(beside), [[4, 10], [0, 0]])


def test_operators_without_a_tensor_or_a_shape():
    with pytest.raises(TypeError, match="unsupported operand"):
        make([2, 2]) * 2.0
    with pytest.raises(ValueError, match="without `dense_shape`"):
        tf.ones([2, 2]) * make()


def test_text():
    text = (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32)"
    )
    assert str(make()) == f"{text})"
    assert str(make([4, 2])) == f"{text}, dense_shape=tf.Tensor([4 2], shape=(2,), dtype=int32))"


def test_negative():
    slices = make([4, 2])
    negative = -slices
    assert negative.values.numpy().tolist() == [[-1.0, -2.0]]
    assert negative.indices is slices.indices
    assert negative.dense_shape is slices.dense_shape


def test_parts_of_any_type():
    slices = tf.IndexedSlices(values=1, indices=2, dense_shape=[3])
    assert (slices.values, slices.indices, slices.shape) == (1, 2, tf.TensorShape([3]))


def test_spec():
    assert repr(make([4, 2])._type_spec) == (
        "IndexedSlicesSpec(TensorShape([4, 2]), tf.float32, tf.int32, tf.int32, TensorShape([1]))"
    )
    assert repr(tf.type_spec_from_value(make())) == (
        "IndexedSlicesSpec(TensorShape([None, 2]), tf.float32, tf.int32, None, TensorShape([1]))"
    )
    assert repr(make([4, 2])._shape_invariant_to_type_spec([None, 2])) == (
        "IndexedSlicesSpec(TensorShape([None, 2]), tf.float32, tf.int32, tf.int32, TensorShape([None]))"
    )


def test_spec_defaults_and_components():
    spec = tf.IndexedSlicesSpec()
    assert repr(spec) == "IndexedSlicesSpec(TensorShape(None), tf.float32, tf.int64, None, TensorShape([None]))"
    assert spec.value_type is tf.IndexedSlices
    spec = tf.IndexedSlicesSpec([3, 2], dense_shape_dtype=tf.int64, indices_shape=[5])
    assert spec._component_specs == (
        tf.TensorSpec([5, 2]), tf.TensorSpec([5], tf.int64), tf.TensorSpec([2], tf.int64))  # fmt: skip


def test_spec_compatibility():
    value = make([4, 2])
    assert tf.IndexedSlicesSpec([None, 2], tf.float32, tf.int32, tf.int32).is_compatible_with(value)
    assert not tf.IndexedSlicesSpec([None, 2]).is_compatible_with(value)
    assert not tf.IndexedSlicesSpec([None, 2]).is_compatible_with(5)
    common = tf.IndexedSlicesSpec([3]).most_specific_compatible_type(tf.IndexedSlicesSpec([4]))
    assert common == tf.IndexedSlicesSpec([None])
    with pytest.raises(ValueError, match="No TypeSpec is compatible with both IndexedSlicesSpec"):
        tf.IndexedSlicesSpec([3]).most_specific_compatible_type(tf.TensorSpec([4]))


def test_in_structures():
    slices = make([4, 2])
    assert nest.flatten([slices]) == [slices]
    assert nest.flatten([slices], expand_composites=True) == [slices.values, slices.indices, slices.dense_shape]
    packed = nest.pack_sequence_as(slices, [1, 2, 3], expand_composites=True)
    assert (type(packed), packed.values, packed.indices, packed.dense_shape) == (tf.IndexedSlices, 1, 2, 3)
    assert nest_paths.flatten_with_tuple_paths({"a": make()}, expand_composites=True)[1][0] == ("a", "IndexedSlices", 1)
    nest.assert_same_structure(slices, slices._type_spec, expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor TypeSpecs"):
        nest.assert_same_structure(slices, make(), expand_composites=True)
    with pytest.raises(ValueError, match="is a sequence, while substructure"):
        nest.assert_same_structure(slices, tf.constant(1.0), expand_composites=True)
