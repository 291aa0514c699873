"""Type specs compare, combine and print as in TensorFlow 2.21."""

import copy
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.types.tensor_spec import BoundedTensorSpec

Spec = tf.TensorSpec


def test_text():
    assert repr(Spec([None, 2], tf.float32)) == "TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)"
    assert repr(Spec([], tf.int32, name="n")) == "TensorSpec(shape=(), dtype=tf.int32, name='n')"
    assert str(Spec(None)) == "TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)"


def test_parts():
    spec = Spec(shape=(None,), dtype=np.int32, name="q")
    assert (spec.shape.as_list(), spec.dtype, spec.name, spec.value_type) == ([None], tf.int32, "q", tf.Tensor)
    with pytest.raises(AttributeError):
        spec.shape = [3]
    with pytest.raises(TypeError, match="'foo' to a TensorFlow DType"):
        Spec([1], "foo")


def test_from_tensor_and_spec():
    x = tf.zeros([2, 3])
    assert Spec.from_tensor(x) == Spec([2, 3], tf.float32)
    assert Spec.from_tensor(x, name="k").name == "k"
    assert Spec.from_spec(Spec([1], name="a")) == Spec([1], name="a")
    assert Spec.from_spec(Spec([1]), name="z") == Spec([1], name="z")
    with pytest.raises(ValueError, match=r"`tensor` should be a tf.Tensor, but got type <class 'int'>."):
        Spec.from_tensor(5)


def test_compatibility():
    x = tf.zeros([2, 3])
    assert Spec([2, 3]).is_compatible_with(x)
    assert Spec([None, 3], name="a").is_compatible_with(Spec([2, 3], name="b"))
    assert Spec([2, 3]).is_compatible_with(Spec([None, 3]))
    for spec, other in ((Spec([2]), x), (Spec([2, 3], tf.int32), x), (Spec([1]), [1.0]), (Spec([1]), None)):
        assert not spec.is_compatible_with(other)


def test_equality():
    assert Spec([1]) == Spec((1,))
    assert hash(Spec([1])) == hash(Spec((1,)))
    for other in (Spec([2]), Spec([1], tf.int32), Spec([1], name="a"), 5):
        assert Spec([1]) != other


def test_supertypes():
    spec = Spec([2, 3])
    assert spec.most_specific_common_supertype([]) == spec
    assert spec.most_specific_common_supertype([Spec([2, 4]), spec]) == Spec([2, None])
    assert spec.most_specific_compatible_type(Spec([2])) == Spec(None)
    for other in (Spec([2, 3], tf.int32), Spec([2, 3], name="a"), 5):
        assert spec.most_specific_common_supertype([other]) is None
    message = (
        "No TypeSpec is compatible with both TensorSpec(shape=(2, 3), dtype=tf.float32, name=None) "
        "and TensorSpec(shape=(2, 3), dtype=tf.int32, name=None)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        spec.most_specific_compatible_type(Spec([2, 3], tf.int32))
    with pytest.raises(ValueError, match="and 5"):
        spec.most_specific_compatible_type(5)


def test_subtypes():
    named = Spec([2, 3], name="a")
    assert Spec([2, 3]).is_subtype_of(Spec([None, 3]))
    assert Spec([2, 3]).is_subtype_of(named)
    for spec, other in ((Spec([None, 3]), Spec([2, 3])), (named, Spec([2, 3])), (named, Spec([2, 3], name="b"))):
        assert not spec.is_subtype_of(other)


def test_copies():
    spec = Spec([2, None], name="a")
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec


def test_components():
    x = tf.zeros([2, 3])
    spec = Spec([2, 3])
    assert spec._component_specs is spec
    assert spec._flat_tensor_specs == [spec]
    assert spec._to_tensor_list(x)[0] is spec._from_tensor_list([x]) is x
    assert (spec._batch(5), spec._unbatch()) == (Spec([5, 2, 3]), Spec([3]))
    assert (spec._with_tensor_ranks_only(), Spec([1], name="a")._without_tensor_names()) == (
        Spec([None, None]), Spec([1]))  # fmt: skip
    with pytest.raises(ValueError, match="Unbatching a tensor is only supported for rank >= 1"):
        Spec([])._unbatch()


def test_spec_of_value():
    assert str(tf.type_spec_from_value(tf.constant([1, 2]))) == "TensorSpec(shape=(2,), dtype=tf.int32, name=None)"
    assert tf.type_spec_from_value([1, 2]) == Spec([2], tf.int32)
    assert tf.type_spec_from_value(np.zeros([2], np.float32)) == Spec([2])
    assert tf.type_spec_from_value(True) == Spec([], tf.bool)
    assert tf.type_spec_from_value(None) == tf.NoneTensorSpec()
    variable = tf.Variable([1.0, 2.0])
    expected = "VariableSpec(shape=(2,), dtype=tf.float32, trainable=True, alias_id=None)"
    assert repr(tf.type_spec_from_value(variable)) == expected
    with pytest.raises(TypeError, match=r"Could not build a TypeSpec for <object object .* of unsupported type"):
        tf.type_spec_from_value(object())


def test_none_spec():
    spec = tf.NoneTensorSpec()
    assert repr(spec) == "NoneTensorSpec()"
    assert spec == spec.most_specific_compatible_type(tf.NoneTensorSpec())
    assert spec.is_compatible_with(None)
    assert not spec.is_compatible_with(5)


class PairSpec(tf.TypeSpec):
    """A user's own spec, as the documentation of tf.TypeSpec asks for it."""

    value_type = tuple

    def __init__(self, first, second):
        self.first, self.second = first, second

    @property
    def _component_specs(self):
        return Spec([1]), {"k": Spec([2])}

    def _serialize(self):
        return self.first, self.second

    def _to_components(self, value):
        return value

    def _from_components(self, components):
        return components


def test_own_spec():
    shape = tf.TensorShape
    assert repr(PairSpec(1, shape([2]))) == "PairSpec(1, TensorShape([2]))"
    assert PairSpec(1, [1, {"a": 2}]) == PairSpec(1, [1, {"a": 2}]) != PairSpec(1, [1, {"a": 3}])
    assert hash(PairSpec(1, [1, {"a": np.ones(2)}])) == hash(PairSpec(1, [1, {"a": np.ones(2)}]))
    assert PairSpec(1, shape([1, 2])).most_specific_compatible_type(PairSpec(1, shape([1, 3]))) == PairSpec(
        1, shape([1, None])
    )
    assert PairSpec(None, {"a": Spec([2])}).most_specific_common_supertype(
        [PairSpec(None, {"a": Spec([3])})]
    ) == PairSpec(None, {"a": Spec([None])})
    assert PairSpec(1, 2).most_specific_common_supertype([PairSpec(1, 3)]) is None
    assert PairSpec(1, Spec([2])).is_compatible_with(PairSpec(1, Spec([None])))
    assert not PairSpec(1, Spec([2])).is_compatible_with(PairSpec(2, Spec([None])))
    assert PairSpec(1, shape([1, 2])).is_subtype_of(PairSpec(1, shape([None, 2])))
    assert not PairSpec(1, shape([None, 2])).is_subtype_of(PairSpec(1, shape([1, 2])))
    assert PairSpec(1, 2)._flat_tensor_specs == [Spec([1]), Spec([2])]
    assert PairSpec(1, 2)._from_tensor_list([5, 6]) == (5, {"k": 6})
    with pytest.raises(TypeError, match="Can't instantiate abstract class TypeSpec"):
        tf.TypeSpec()


def test_bounded_spec():
    spec = BoundedTensorSpec([1], tf.float32, 0, 1)
    assert repr(spec) == (
        "BoundedTensorSpec(shape=(1,), dtype=tf.float32, name=None, "
        "minimum=array(0., dtype=float32), maximum=array(1., dtype=float32))"
    )
    assert spec == BoundedTensorSpec([1], tf.float32, 0, 1) != BoundedTensorSpec([1], tf.float32, 0, 2)
    assert BoundedTensorSpec.from_spec(Spec([1], tf.int8)).maximum == 127
    of_numpy = BoundedTensorSpec.from_spec(
        SimpleNamespace(shape=(2,), dtype=np.dtype("float32"), minimum=0.5, name="s")
    )
    assert (of_numpy.dtype, of_numpy.minimum, of_numpy.maximum, of_numpy.name) == (tf.float32, 0.5, tf.float32.max, "s")
    assert not spec.maximum.flags.writeable
    assert spec == BoundedTensorSpec([1], tf.float32, 1e-9, [1.0])
    for low, high, name in (([0, 0], 1, "minimum"), (0, [1, 1, 1], "maximum"), (None, 1, "minimum")):
        with pytest.raises(ValueError, match=f"`{name}`.* (is not compatible with|can not be None)"):
            BoundedTensorSpec([5, 4], tf.float32, low, high)
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(
    "value",
    [
        tf.ragged.constant([[1.0, 2.0], [3.0]]),
        tf.sparse.eye(2),
        tf.constant([1, 2]),
        tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])),
    ],
)
def test_the_tensors_of_a_value(value):
    spec = tf.type_spec_from_value(value)
    tensors = spec.to_tensors(value)
    assert all(one.is_compatible_with(tensor) for one, tensor in zip(spec.flatten(), tensors, strict=True))
    rest = iter([*tensors, "next"])
    assert type(spec.from_tensors(rest)) is type(value) and next(rest) == "next"
    with pytest.raises(TypeError, match="Can not cast"):
        spec.to_tensors(tf.constant("text"))


def test_specs_of_values_and_of_what_a_session_gave():
    v1 = tf.compat.v1
    for value in (tf.ragged.constant([[1.0, 2.0], [3.0]], tf.float64), v1.ragged.constant_value([[1.0, 2.0], [3.0]])):
        assert tf.RaggedTensorSpec.from_value(value) == tf.RaggedTensorSpec([2, None], tf.float64)
    for value in (tf.sparse.eye(2, 3), v1.SparseTensorValue([[0, 0]], np.ones(1, np.float32), [2, 3])):
        assert tf.SparseTensorSpec.from_value(value) == tf.SparseTensorSpec([2, 3], tf.float32)
    for kind in (tf.RaggedTensorSpec, tf.SparseTensorSpec):
        with pytest.raises(TypeError, match=r"Expected (Ragged|Sparse)Tensor or"):
            kind.from_value(3)
