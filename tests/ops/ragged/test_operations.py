"""Operations with a rule of their own for ragged tensors; expected values are TensorFlow's."""

import pickle

import numpy as np
import pytest

import tapeflow as tf

_X = tf.ragged.constant([[3.0, -1.5], [], [0.5, 2.0, 4.0]])
_UNIFORM = tf.RaggedTensor.from_uniform_row_length([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], 2)
_VECTORS = tf.RaggedTensor.from_row_splits([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 3])


def test_integers_have_means_of_float64():
    x = tf.ragged.constant([[3, 1], [0, 2, 1]])
    mean, deviation = tf.reduce_mean(x), tf.math.reduce_std(x, 1)
    assert mean.dtype == deviation.dtype == tf.float64
    assert float(mean) == 1.4
    np.testing.assert_allclose(deviation, [1.0, 0.816496580927726])


def test_numbers_as_booleans():
    np.testing.assert_array_equal(tf.reduce_all(_X, 1), [True, True, False])
    np.testing.assert_array_equal(tf.reduce_any(_X, 1), [True, False, True])
    assert not tf.reduce_all(_X)


def test_moments_along_rows():
    mean, variance = tf.nn.moments(_X, 1)
    np.testing.assert_allclose(mean, [0.75, np.nan, 2.1666667], rtol=1e-6)
    np.testing.assert_allclose(variance, [5.0625, np.nan, 2.0555556], rtol=1e-6)


def test_repeat_flattens():
    np.testing.assert_array_equal(tf.repeat(_X, 2)[:4], [3.0, 3.0, -1.5, -1.5])
    with pytest.raises(ValueError):
        tf.repeat(_X, 2, axis=1)


def test_softmax_of_vectors_and_places_of_true_elements():
    y = tf.nn.softmax(_VECTORS)
    np.testing.assert_allclose(y.flat_values, [[0.26894143, 0.7310586]] * 3, rtol=1e-6)
    np.testing.assert_array_equal(tf.where(_VECTORS > 4.5), [[1, 1, 0], [1, 1, 1]])


def test_matmul_needs_matrices_that_fit():
    y = tf.matmul(_UNIFORM, _UNIFORM)
    assert y.shape.as_list() == [2, 2, 2]
    assert y.to_list() == [[[7.0, 10.0], [15.0, 22.0]], [[67.0, 78.0], [91.0, 106.0]]]
    for x in (_X, _VECTORS):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.matmul(x, x)


def test_uniform_rows_stay_uniform():
    for y in (tf.reverse(_UNIFORM, [0]), tf.split(_UNIFORM, 1)[0], tf.cumsum(_UNIFORM, 1)):
        assert y.shape.as_list() == [2, 2, 2]
    assert tf.expand_dims(_X, 0).shape.as_list() == [1, 3, None]
    assert tf.concat(_X, 0) is _X


def _lists(function, *args):
    return [call(*args).to_list() for call in (function, tf.function(function))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [[[4]], [[6, 2], [3]], []]),
        ("prod", [[[4]], [[5, 2], [3]], []]),
        ("max", [[[4]], [[5, 2], [3]], []]),
        ("min", [[[4]], [[1, 2], [3]], []]),
        ("mean", [[[4.0]], [[3.0, 2.0], [3.0]], []]),
    ],
)
def test_segments_of_rows_of_rows(name, expected):
    rows = tf.ragged.constant([[[1, 2], [3]], [[4]], [[5]]], dtype=tf.float32 if name == "mean" else tf.int32)
    fold = getattr(tf.math, f"unsorted_segment_{name}")
    assert _lists(lambda x: fold(x, [1, 0, 1], 3), rows) == [expected] * 2


def test_reductions_of_four_dimensions():
    rows = tf.ragged.constant([[[[1, 2], [3]], [[4]]], [[[5], [], [6]]]])
    assert _lists(lambda x: tf.reduce_sum(x, 0), rows) == [[[[6, 2], [3], [6]], [[4]]]] * 2
    assert _lists(lambda x: tf.reduce_sum(x, 1), rows) == [[[[5, 2], [3]], [[5], [], [6]]]] * 2


def test_exclusive_or():
    rows = tf.ragged.constant([[True, False], [True]])
    assert (rows ^ tf.ragged.constant([[True, True], [False]])).to_list() == [[False, True], [True]]
    assert (True ^ rows).to_list() == [[False, True], [False]]


def test_masks_of_dense_rows():
    rows = tf.RaggedTensor.from_row_splits([[1, 2], [3, 4], [5, 6]], [0, 1, 1, 3])
    expected = [[[]], [], [[3, 4], [5, 6]]]
    assert _lists(lambda x: tf.ragged.boolean_mask(x, x > 2), rows) == [expected] * 2


def test_join_of_columns():
    words = tf.ragged.constant([["a", "b"], ["c"], ["d", "e", "f"]])
    for call in (tf.strings.reduce_join, tf.function(tf.strings.reduce_join)):
        assert call(words, 0, separator="-").numpy().tolist() == [b"a-c-d", b"b-e", b"f"]
        assert call(words, 1).numpy().tolist() == [b"ab", b"c", b"def"]
        assert call(words, [0, 1]).numpy() == b"abcdef"


def test_a_ragged_tensor_is_not_printed_to_run_an_operation_on_it(monkeypatch):
    def refuse(value):
        raise AssertionError("a large ragged tensor takes long to print")

    def step():
        with tf.GradientTape() as tape:
            tape.watch(_X.flat_values)
            value = tf.reduce_sum(tf.concat([tf.exp(_X), tf.nn.softmax(_X)], 1))
        return value, tape.gradient(value, _X.flat_values)

    monkeypatch.setattr(tf.RaggedTensor, "__repr__", refuse)
    for value, slope in (step(), tf.function(step)()):
        np.testing.assert_allclose(value, np.exp(_X.flat_values).sum() + 2, rtol=1e-6)
        np.testing.assert_allclose(slope, np.exp(_X.flat_values), rtol=1e-5)


@pytest.mark.parametrize("wrapper", [lambda f: f, tf.function])
def test_the_error_of_a_refused_ragged_tensor_prints_it(wrapper):
    refused = tf.ragged.constant([[1, 2], [3]])
    with pytest.raises((TypeError, ValueError), match=r"<tf.RaggedTensor \[\[1, 2\], \[3\]\]>") as caught:
        wrapper(lambda: tf.sort(refused))()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value) and copied.args == (str(caught.value),)


_DEEP = [[[1.0, 2.0], [3.0]], [], [[4.0]], [[7.0], [8.0, 10.0, 12.0]]]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("axes", "means", "variances", "ones"),
    [
        ([1, 2], [2.0, np.nan, 4.0, 9.25], [2 / 3, np.nan, 0.0, 3.6875], (4, 1, 1)),
        ([0, 1], [4.6, 6.0, 12.0], [6.64, 16.0, 0.0], (1, 1, 3)),
        ([2, 0], [3.5, 8.25], [5.25, 11.1875], (1, 2, 1)),
    ],
)
def test_means_over_several_axes_weigh_every_element_alike(axes, means, variances, ones, keepdims):
    x = tf.ragged.constant(_DEEP)
    for reduce, wanted in (
        (tf.reduce_mean, means),
        (tf.math.reduce_variance, variances),
        (tf.math.reduce_std, np.sqrt(variances)),
    ):
        found = reduce(x, axis=axes, keepdims=keepdims)
        found = found.to_tensor() if isinstance(found, tf.RaggedTensor) else found
        np.testing.assert_allclose(found, np.reshape(wanted, ones if keepdims else [-1]), rtol=1e-5)


def test_reductions_of_all_elements_can_keep_the_dimensions():
    x = tf.ragged.constant(_DEEP)
    for axis in (None, [0, 1, 2]):
        np.testing.assert_allclose(tf.reduce_sum(x, axis=axis, keepdims=True), [[[47.0]]])


def test_reductions_over_no_axis():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert tf.reduce_mean(x, axis=[]).to_list() == [[1.0, 2.0], [3.0]]
    assert tf.math.reduce_variance(x, axis=[]).to_list() == [[0.0, 0.0], [0.0]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: tf.reduce_sum(r, 5), ValueError, "axis=5 out of bounds: expected -2<=axis<2"),
        (lambda r: tf.reverse(r, [5]), ValueError, r"axis\[0\]=5 out of bounds"),
        (lambda r: tf.tile(r, [1]), tf.errors.InvalidArgumentError, "vector of length 2"),
        (lambda r: tf.tile(r, [1, -1]), tf.errors.InvalidArgumentError, "without negative numbers"),
        (lambda r: tf.ragged.boolean_mask(r, [True]), ValueError, r"Shapes \(2,\) and \(1,\) are incompatible"),
        (lambda r: tf.RaggedTensorSpec([None, None], ragged_rank=2), ValueError, r"must be less than rank \(2\)"),
    ],
)
def test_axes_masks_and_multiples_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call(tf.ragged.constant([[1, 2], [3]]))
