"""What ragged tensors refuse in TensorFlow's words, their specs, and empty rows of texts."""

import numpy as np
import pytest

import tapeflow as tf

R = tf.ragged.constant
RT = tf.RaggedTensor


def test_lists_that_hold_no_values():
    x = R([[], [], []], dtype=tf.string)
    assert (x.dtype, x.to_list()) == (tf.string, [[], [], []])
    assert R([[], []], dtype=tf.bool).dtype == tf.bool


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: RT.from_nested_row_splits([1, 2], tf.constant([[0, 1, 2]])), TypeError, "`nested_row_splits` must be"),
        (lambda: RT.from_nested_row_lengths([1], tf.constant([[1]])), TypeError, "`nested_row_lengths` must be a list"),
        (lambda: RT.from_nested_value_rowids([1], [[0]], tf.constant([1])), TypeError, "`nested_nrows` must be a list"),
        (lambda: RT.from_nested_value_rowids([1], [[0]], [1, 1]), ValueError, "must have the same length as argument"),
        (lambda: RT.from_tensor([1, 2]), ValueError, "must be greater than 1"),
        (lambda: tf.RaggedTensorSpec([None], ragged_rank="a"), TypeError, "`ragged_rank` must be an int"),
        (lambda: tf.ragged.stack([]), ValueError, "may not be empty"),
        (lambda: tf.ragged.stack([[1], [2]], axis="a"), TypeError, "axis must be an int"),
        (lambda: tf.concat([R([[1]]), R([[2]])], "a"), TypeError, "axis must be an int"),
        (lambda: tf.gather_nd(R([[1]]), 0), ValueError, "indices.rank must be at least 1"),
        (lambda: tf.gather_nd([1, 2], R([[0]])), ValueError, "innermost dimension of indices may not be ragged"),
        (lambda: tf.where(R([[True]]), R([[1]])), ValueError, "either both None or both non-None"),
        (
            lambda: tf.strings.ngrams(["a"], 2, pad_values=[5, 3]),
            TypeError,
            "must be a string, tuple of strings, or None",
        ),
        (lambda: tf.strings.ngrams(["a"], 2, padding_width=0, pad_values="X"), ValueError, "must be greater than 0"),
        (lambda: tf.strings.ngrams(["a"], 2, padding_width=1), ValueError, "pad_values must be provided"),
        (lambda: tf.strings.ngrams(["a"], 2, separator=5), TypeError, "separator must be a string"),
        (lambda: tf.ragged.boolean_mask(R([[1]]), R([[0]])), ValueError, "requested dtype bool for RaggedTensor"),
        (lambda: tf.ragged.boolean_mask([[1, 2]], [[0, 1]]), (TypeError, ValueError), "bool"),
        (lambda: tf.ragged.boolean_mask([1], True), ValueError, "mask cannot be scalar"),
        (
            lambda: tf.ragged.boolean_mask(R([[1, 2]]), R([[True, False, True]])),
            tf.errors.InvalidArgumentError,
            "Inputs must have identical ragged splits",
        ),
        (lambda: tf.sparse.bincount([[1]], weights=R([[1]])), ValueError, "`weights` must be a tf.Tensor"),
        (lambda: tf.sparse.bincount(R([[1]]), weights=[[1]]), ValueError, "`weights` must be a RaggedTensor"),
        (
            lambda: tf.sparse.bincount(tf.sparse.from_dense([[1]]), weights=[[1]]),
            ValueError,
            "`weights` must be a SparseTensor",
        ),
        (
            lambda: tf.sparse.bincount(R([[1], [2]]), weights=R([[1, 2], []])),
            tf.errors.InvalidArgumentError,
            "must have the same row splits",
        ),
        (lambda: tf.image.resize(R([[1.0]]), [2, 2]), ValueError, "rank must be 4"),
    ],
)
def test_arguments_that_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_elements_outside_of_rows_of_one_length():
    x = RT.from_uniform_row_length(R([[1], [2], [3], [4]]), 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        x[:, 5]


def test_splits_keep_their_dtype():
    assert RT.from_row_splits([1, 2], np.array([0, 1, 2], np.int32)).row_splits.dtype == tf.int32
    assert RT.from_row_splits([1, 2], np.array([0, 1, 2], np.int64)).row_splits.dtype == tf.int64


def test_short_sequences_keep_their_padding():
    found = tf.strings.ngrams(
        R([["a"], ["b", "c", "d"]]), 5, "|", ("L", "R"), padding_width=1, preserve_short_sequences=True
    )
    assert found.to_list() == [[b"L|a|R"], [b"L|b|c|d|R"]]


def test_specs_of_batches():
    spec = tf.RaggedTensorSpec([2, None], tf.float32, 1)
    assert spec._batch(32) == tf.RaggedTensorSpec([32, 2, None], tf.float32, 2)
    assert spec._batch(None)._unbatch() == spec
    flat = tf.RaggedTensorSpec([2, 3], tf.float32, 0)
    assert flat.value_type is tf.Tensor and spec.value_type is RT
    assert flat._component_specs == [tf.TensorSpec([2, 3])]
    x = tf.ones([2, 3])
    assert flat._from_components(flat._to_components(x)) is x


def test_split_into_a_number_that_is_known():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)])
    def split(x, sizes):
        return tf.split(x, sizes, num=2)

    first, second = split(R([[1, 2], [3], []]), [1, 2])
    assert (first.to_list(), second.to_list()) == ([[1, 2]], [[3], []])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`num` must be the number of sizes"):
        split(R([[1]]), [1])


def test_values_of_a_graph_have_no_array():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="only supported in eager mode"):
        tf.RaggedTensor.from_row_splits(tf.compat.v1.placeholder(tf.int32, [2]), [0, 2]).numpy()


@pytest.mark.parametrize("key", ["a", 0.5, [[0]], np.array([0, 1]), tf.constant([0, 1]), tf.constant(1.0)])
def test_an_index_that_is_no_integer_is_refused(key):
    with pytest.raises(TypeError, match="Only integers, slices"):
        tf.ragged.constant([[1, 2], [3]])[key]


def test_integers_of_every_kind_choose_a_row():
    rows = tf.ragged.constant([[1, 2], [3]])
    for key in (1, -1, np.int64(1), tf.constant(1), tf.constant(1, tf.int64)):
        assert rows[key].numpy().tolist() == [3]


def test_parts_with_different_rows_are_refused_when_the_graph_runs():
    spec = tf.RaggedTensorSpec([None, None], tf.int32, row_splits_dtype=tf.int64)
    join = tf.function(lambda x, y: tf.concat([x, y], 1), input_signature=[spec, spec])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 0 \(=x\) and 1 \(=y\) have incompatible shapes"):
        join(R([[1]]), R([[1], [2]]))
    assert join(R([[1], []]), R([[2], [3]])).to_list() == [[1, 2], [3]]


def test_stacked_matrices_have_splits_of_one_dtype():
    found = tf.ragged.stack([tf.zeros([2, 2, 3]), tf.zeros([1, 2, 3])])
    assert [splits.dtype for splits in found.nested_row_splits] == [tf.int64, tf.int64]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RT.from_value_rowids([1, 2], [0.0, 1.0]), "value_rowids must have dtype int32 or int64"),
        (lambda: RT.from_row_splits([1, 2], tf.constant([0, 1, 2], tf.int16)), "row_splits must have dtype"),
        (lambda: RT.from_row_lengths([1, 2], [1.0, 1.0]), "row_lengths must have dtype"),
        (lambda: RT.from_row_starts([1, 2], [0.0, 1.0]), "row_starts must have dtype"),
        (lambda: RT.from_row_limits([1, 2], ["a"]), "row_limits must have dtype"),
        (lambda: RT.from_uniform_row_length([1, 2], 1.0), "UniformRowLength must have dtype"),
        (lambda: RT.from_value_rowids([1, 2], [[0, 1]]), r"Shape \(1, 2\) must have rank 1"),
        (lambda: RT.from_value_rowids([1, 2], [0, 1], -1), "Expected nrows >= 0"),
        (lambda: RT.from_tensor([[1, 2], [3, 4]], padding=[1]), r"Shapes .* are incompatible"),
        (lambda: RT.from_tensor([[1, 2], [3, 4]], ragged_rank=5), r"Shape \(2, 2\) must have rank at least 6"),
        (lambda: RT.from_tensor([[1, 2], [3, 4]], ragged_rank=0), "`ragged_rank` must be greater than 0"),
        (lambda: tf.ragged.constant([[1], [2, 3]]).with_values([1]), r"Shapes \(3,\) and \(1,\) are incompatible"),
        (lambda: tf.ragged.constant([[1], [2, 3]]).row_lengths(2), "axis=2 out of bounds: expected -2<=axis<2"),
        (lambda: tf.ragged.constant([[1], [2, 3]]).merge_dims(0, 2), "inner_axis=2 out of bounds: expected"),
    ],
)
def test_rows_of_wrong_dtypes_and_shapes(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_numbers_of_rows_and_lengths_must_be_integers():
    with pytest.raises(TypeError):
        RT.from_value_rowids([1, 2], [0, 1], 2.5)
    with pytest.raises(TypeError, match=r"lengths.* must be of type integer"):
        RT.from_tensor([[1, 2], [3, 4]], lengths=[1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = 2 is not in \[0, 2\)"):
        tf.ragged.constant([[1], [2, 3]]).bounding_shape(axis=2)


def test_empty_rows_and_rows_of_rows_are_printed():
    assert str(tf.ragged.constant([[1], [2, 3]])[:, 5:]) == "<tf.RaggedTensor [[], []]>"
    assert str(tf.ragged.constant([[], [[]]])) == "<tf.RaggedTensor [[], [[]]]>"
    rows = tf.ragged.constant([[[1], [2]], [[3], [4, 5]]])
    assert rows.numpy().shape == (2, 2)
    assert str(rows) == "<tf.RaggedTensor [[[1], [2]],\n [[3], [4, 5]]]>"


def test_lengths_along_an_axis_counted_from_the_end():
    assert tf.ragged.constant([[[1], [2, 3]], [[4]]]).row_lengths(-1).to_list() == [[1, 2], [1]]
