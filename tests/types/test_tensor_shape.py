"""`tf.TensorShape` and `Dimension` behave, print and fail as in TensorFlow 2.21."""

import copy
import pickle
import re

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.types.tensor_shape import unknown_shape

Dimension = tf.compat.v1.Dimension
known = tf.TensorShape([2, 3, 4])
partly = tf.TensorShape([None, 3])
unknown = tf.TensorShape(None)


@pytest.mark.parametrize(
    ("dims", "text", "short"),
    [
        ([2, 3, 4], "TensorShape([2, 3, 4])", "(2, 3, 4)"),
        ([2], "TensorShape([2])", "(2,)"),
        ([], "TensorShape([])", "()"),
        ([None, 3], "TensorShape([None, 3])", "(None, 3)"),
        (None, "TensorShape(None)", "<unknown>"),
        (3, "TensorShape([3])", "(3,)"),
        (np.int64(3), "TensorShape([3])", "(3,)"),
        (np.array([1, 2]), "TensorShape([1, 2])", "(1, 2)"),
        (range(3), "TensorShape([0, 1, 2])", "(0, 1, 2)"),
        ((size for size in (1, 2)), "TensorShape([1, 2])", "(1, 2)"),
        (Dimension(3), "TensorShape([3])", "(3,)"),
        ([Dimension(3), Dimension(None)], "TensorShape([3, None])", "(3, None)"),
        (tf.TensorShape([5]), "TensorShape([5])", "(5,)"),
    ],
)
def test_construction_and_text(dims, text, short):
    shape = tf.TensorShape(dims)
    assert (repr(shape), str(shape), f"{shape}") == (text, short, short)


def test_tensors_as_sizes():
    assert tf.TensorShape(tf.constant([1, 2])) == [1, 2]
    assert tf.TensorShape([tf.constant(1), 2]) == [1, 2]
    assert known[tf.constant(1)] == 3


@pytest.mark.parametrize(
    ("dims", "error", "message"),
    [
        ([-1], ValueError, "Dimension -1 must be >= 0"),
        ([1.5], TypeError, "Dimension value must be integer or None or have an __index__ method, got value '1.5' "
                           "with type '<class 'float'>'"),
        (2.0, TypeError, "got value '2.0' with type '<class 'float'>'"),
        (["a"], TypeError, "got value ''a'' with type '<class 'str'>'"),
        ([[1]], TypeError, "got value '[1]' with type '<class 'list'>'"),
        ("ab", TypeError, "Failed to convert ''ab'' to a shape: ''a''could not be converted to a dimension. A shape "
                          "should either be single dimension (e.g. 10), or an iterable of dimensions "
                          "(e.g. [1, 10, None])."),
    ],
)  # fmt: skip
def test_construction_refuses(dims, error, message):
    with pytest.raises(error, match=re.escape(message)):
        tf.TensorShape(dims)


def test_as_a_sequence():
    assert (known[0], known[-1], known[np.int64(1)], len(known), list(known), tuple(partly)) == (
        2, 4, 3, 3, [2, 3, 4], (None, 3))  # fmt: skip
    assert list(reversed(known)) == [4, 3, 2]
    assert 3 in known
    assert 9 not in known
    assert (known[1:], known[:-1], known[::-1], known[::2]) == ([3, 4], [2, 3], [4, 3, 2], [2, 4])
    assert isinstance(known[1:], tf.TensorShape)
    assert (known.rank, known.ndims, unknown.rank, unknown.ndims) == (3, 3, None, None)
    assert (known.as_list(), partly.as_list()) == ([2, 3, 4], [None, 3])
    assert np.zeros(known).shape == (2, 3, 4)
    with pytest.raises(IndexError):
        known[3]
    with pytest.raises(TypeError):
        known["a"]


def test_unknown_rank_as_a_sequence():
    assert unknown[0] is None
    assert unknown[1:3].as_list() == [None, None]
    assert unknown[:2].as_list() == [None, None]
    assert unknown[1:] == unknown[:-1] == unknown[-2:] == unknown
    with pytest.raises(ValueError, match="Steps are not yet handled"):
        unknown[::2]
    with pytest.raises(ValueError, match=r"Cannot take the length of shape with unknown rank."):
        len(unknown)
    with pytest.raises(ValueError, match=r"Cannot iterate over a shape with unknown rank."):
        list(unknown)
    with pytest.raises(ValueError, match=r"as_list\(\) is not defined on an unknown TensorShape."):
        unknown.as_list()


def test_truth():
    assert known
    assert tf.TensorShape([])
    assert not unknown


def test_equality_and_hash():
    assert known == (2, 3, 4) == known
    assert known == [2, 3, 4] == known
    assert known == tf.TensorShape([2, 3, 4])
    assert known == np.array([2, 3, 4])
    assert partly == [None, 3]
    assert partly != [2, 3]
    assert unknown == tf.TensorShape(None)
    assert (unknown == None) is True  # noqa: E711
    assert (known == None) is False  # noqa: E711
    assert tf.TensorShape([2]) == 2
    for other in ("abc", 5, [1], [-1], {1: 2}, object(), unknown):
        assert known != other
    assert {known: 1}[tf.TensorShape([2, 3, 4])] == 1
    assert hash(known) == hash((2, 3, 4))


def test_num_elements():
    shapes = (known, partly, unknown, tf.TensorShape([]), tf.TensorShape([0, 5]))
    assert [shape.num_elements() for shape in shapes] == [24, None, None, 1, 0]


def test_concatenation():
    assert known.concatenate([5]) == known + [5] == known + 5 == [2, 3, 4, 5]
    assert [1] + known == 1 + known == [1, 2, 3, 4]
    assert known + (None,) == [2, 3, 4, None]
    assert known + unknown == unknown + known == known + None == unknown
    with pytest.raises(TypeError, match="Failed to convert"):
        known + "a"


def test_merging():
    assert partly.merge_with([5, None]) == [5, 3]
    assert known.merge_with(None) == unknown.merge_with(known) == known
    with pytest.raises(ValueError, match=re.escape("Shapes (2, 3, 4) and (2, 3) are not compatible")):
        known.merge_with([2, 3])
    with pytest.raises(ValueError, match=re.escape("Shapes (None, 3) and (5, 4) are not compatible")):
        partly.merge_with([5, 4])


def test_compatibility():
    assert [known.is_compatible_with(other) for other in ([2, 3, 4], [None, None, 4], None, [2, 3, 5], [2, 3])] == [
        True, True, True, False, False]  # fmt: skip
    with pytest.raises(ValueError, match=re.escape("Shapes (None, 3) and [2, 3, 4] are incompatible")):
        partly.assert_is_compatible_with([2, 3, 4])


def test_supertypes():
    assert known.most_specific_compatible_shape([2, 3, 5]).as_list() == [2, 3, None]
    assert known.most_specific_compatible_shape([2, 3]) == unknown
    assert known.most_specific_common_supertype([known, tf.TensorShape([2, 1, 4])]).as_list() == [2, None, 4]
    assert tf.TensorShape([2, 3]).is_subtype_of(partly)
    assert known.is_subtype_of(unknown)
    assert not partly.is_subtype_of(tf.TensorShape([2, 3]))
    assert not unknown.is_subtype_of(partly)


def test_definedness():
    assert [shape.is_fully_defined() for shape in (known, partly, unknown)] == [True, False, False]
    known.assert_is_fully_defined()
    with pytest.raises(ValueError, match=re.escape("Shape (None, 3) is not fully defined")):
        partly.assert_is_fully_defined()
    with pytest.raises(ValueError, match="Shape <unknown> is not fully defined"):
        unknown.assert_is_fully_defined()


def test_ranks():
    known.assert_has_rank(3)
    unknown.assert_has_rank(7)
    known.assert_same_rank([1, 2, 5])
    assert known.with_rank(3) == known.with_rank_at_least(3) == known.with_rank_at_most(3) == known
    assert unknown.with_rank(2).as_list() == [None, None]
    assert unknown.with_rank_at_least(4) == unknown.with_rank_at_most(4) == unknown
    for method, argument, text in (
        ("assert_has_rank", 2, "Shape (2, 3, 4) must have rank 2"),
        ("with_rank", 2, "Shape (2, 3, 4) must have rank 2"),
        ("with_rank_at_least", 4, "Shape (2, 3, 4) must have rank at least 4"),
        ("with_rank_at_most", 2, "Shape (2, 3, 4) must have rank at most 2"),
        ("assert_same_rank", [1, 2], "Shapes (2, 3, 4) and (1, 2) must have the same rank"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            getattr(known, method)(argument)


@pytest.mark.parametrize("shape", [known, partly, unknown], ids=repr)
def test_copies(shape):
    for again in (pickle.loads(pickle.dumps(shape)), copy.copy(shape), copy.deepcopy(shape)):
        assert again == shape
        assert type(again) is tf.TensorShape


def test_dims():
    assert repr(partly.dims) == "[Dimension(None), Dimension(3)]"
    assert unknown.dims is None
    assert unknown_shape(2).as_list() == [None, None]


def test_dimension_arithmetic():
    three, maybe = Dimension(3), Dimension(None)
    results = [three + 2, 2 + three, three - 1, 5 - three, three * 2, three // 2, 7 // three, three % 2, 7 % three]
    assert [result.value for result in results] == [5, 5, 2, 2, 6, 1, 2, 1, 1]
    assert (maybe + 1).value is None
    assert (three == 3, three == None, maybe == maybe, three != 3, three == "a") == (  # noqa: E711
        True, None, None, False, False)  # fmt: skip
    assert (three < 4, three >= 4, three > maybe) == (True, False, None)
    assert (int(three), range(5)[three], bool(Dimension(0)), bool(maybe)) == (3, 3, False, False)
    assert (repr(three), str(three), str(maybe)) == ("Dimension(3)", "3", "?")
    with pytest.raises(TypeError, match=r"unsupported operand type.* for /: 'Dimension' and 'int', please use // inst"):
        three / 2
    with pytest.raises(TypeError, match=r"unsupported operand type.* for /: 'int' and 'Dimension', please use // inst"):
        2 / three
    with pytest.raises(TypeError, match="unsupported operand"):
        three + "a"
    with pytest.raises(TypeError, match="unhashable"):
        hash(three)


def test_dimension_compatibility():
    three, maybe = Dimension(3), Dimension(None)
    assert (three.is_compatible_with(4), three.is_compatible_with(None), maybe.is_compatible_with(4)) == (
        False, True, True)  # fmt: skip
    assert (three.merge_with(None).value, maybe.merge_with(4).value) == (3, 4)
    with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
        three.merge_with(4)
    assert pickle.loads(pickle.dumps(three)).value == 3


def test_dimension_functions():
    assert [tf.compat.dimension_value(value) for value in (Dimension(3), None, 3)] == [3, None, 3]
    assert tf.compat.dimension_at_index(known, -1).value == 4
    assert tf.compat.dimension_at_index(unknown, 0).value is None


def test_as_a_message():
    message = tf.TensorShape([2, None]).as_proto()
    assert [dim.size for dim in message.dim] == [2, -1] and not message.unknown_rank
    assert tf.TensorShape(None).as_proto().unknown_rank


def test_shapes_as_libraries_ask_tensors_for_them():
    x = tf.zeros([2, 3])
    assert x._shape_as_list() == [2, 3] and x._shape_tuple() == (2, 3) and x._rank() == 2
    seen = []
    f = tf.function(lambda t: seen.append((t._shape_as_list(), t._rank())))
    f.get_concrete_function(tf.TensorSpec([None, 3]))
    f.get_concrete_function(tf.TensorSpec(None))
    assert seen == [([None, 3], 2), (None, None)]
