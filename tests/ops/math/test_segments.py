"""Segment reductions: empty segments, zeros in products, ties, numbers that are left out, errors."""

import numpy as np
import pytest

import tapeflow as tf

LOWEST = np.finfo(np.float32).min


def gradient(function, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def test_segments_that_do_not_occur():
    np.testing.assert_array_equal(tf.math.segment_max([1.0, -3.0], [0, 2]), [1.0, 0.0, -3.0])
    np.testing.assert_array_equal(tf.math.segment_prod([2.0, 3.0], [0, 2]), [2.0, 1.0, 3.0])
    np.testing.assert_array_equal(tf.math.unsorted_segment_max([1.0, -3.0], [0, 2], 4), [1.0, LOWEST, -3.0, LOWEST])
    np.testing.assert_array_equal(tf.math.unsorted_segment_mean([1.0, 2.0], [0, -1], 2), [1.0, 0.0])
    assert tf.math.segment_sum(tf.zeros([0, 2]), tf.zeros([0], tf.int32)).shape == [0, 2]


def test_product_with_zeros():
    np.testing.assert_array_equal(
        gradient(lambda x: tf.math.segment_prod(x, [0, 0, 1, 1]), [0.0, 2.0, 3.0, 4.0]), [2.0, 0.0, 4.0, 3.0]
    )
    np.testing.assert_array_equal(gradient(lambda x: tf.math.segment_prod(x, [0, 0]), [0.0, 0.0]), [0.0, 0.0])


def test_equal_largest_share():
    np.testing.assert_array_equal(
        gradient(lambda x: tf.math.unsorted_segment_max(x, [0, 0, -1], 3), [1.0, 1.0, 3.0]), [0.5, 0.5, 0.0]
    )


def test_half_sums_round_once():
    x = np.full(4096, 1.0, np.float16)
    assert float(tf.math.unsorted_segment_sum(x, np.zeros(4096, np.int32), 1)[0]) == 4096.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.math.segment_sum([1.0] * 4, [0, 1, 0, 1]), "not increasing"),
        (lambda: tf.math.segment_sum([1.0] * 3, [0, 1, 0]), r"Segment id 1 out of range \[0, 1\), possibly because"),
        (lambda: tf.math.segment_sum([1.0, 2.0], [-1, 0]), r"Segment id -1 out of range \[0, 1\)"),
        (lambda: tf.math.segment_sum([1.0, 2.0], [0, -1]), "segment ids must be >= 0"),
        (lambda: tf.sparse.segment_sum([1.0, 2.0], [0, 1], [-1, 0], num_segments=2), r"Segment id -1 out of range"),
        (lambda: tf.sparse.segment_sum([1.0, 2.0], [0, 1], [0, 2], num_segments=2), "must be < num_segments"),
        (lambda: tf.sparse.segment_sum([1.0, 2.0], [0, 1], [0, 1], num_segments=-2), "segment ids must be >= 0"),
        (lambda: tf.sparse.segment_sum([1.0], [0, 5], [0, 1]), r"indices\[1\] == 5 out of range \[0, 1\)"),
        (lambda: tf.sparse.segment_sum(1.0, [0], [0]), "Shape must be at least rank 1"),
        (lambda: tf.sparse.segment_sum([1.0], [[0]], [0]), "indices should be a vector"),
        (lambda: tf.math.segment_sum([1.0, 2.0], [0]), "same size as dimension 0"),
        (lambda: tf.math.unsorted_segment_sum([1.0, 2.0], [0, 5], 2), r"segment_ids\[1\] = 5 is out of range \[0, 2\)"),
        (lambda: tf.math.bincount([-1]), "non-negative"),
        (lambda: tf.dynamic_partition([1.0, 2.0], [0, 5], 2), r"partitions\[1\] = 5 is not in \[0, 2\)"),
    ],
)
def test_errors(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call()


def test_bincount_is_numpys():
    x = np.random.default_rng(0).integers(0, 9, 50)
    np.testing.assert_array_equal(tf.math.bincount(x), np.bincount(x))
    weights = np.linspace(0, 1, 50)
    np.testing.assert_allclose(tf.math.bincount(x, weights=weights), np.bincount(x, weights))
    assert tf.math.bincount([[1, 1], [0, 2]], axis=-1).numpy().tolist() == [[0, 2, 0], [1, 0, 1]]


@pytest.mark.parametrize("shape", [None, [None], [3]])
def test_bincount_of_numbers_that_only_the_graph_knows(shape):
    count = tf.function(lambda x: tf.math.bincount(x), input_signature=[tf.TensorSpec(shape, tf.int32)])
    assert count(tf.constant([3, 1, 1])).numpy().tolist() == [0, 2, 0, 1]
    weigh = tf.function(lambda x: tf.math.bincount(x, [1.0, 2.0, 4.0]))
    assert weigh(tf.constant([3, 1, 1])).numpy().tolist() == [0, 6, 0, 1]


@pytest.mark.parametrize(
    "dtype, largest", [(tf.float16, 65504.0), (tf.bfloat16, 3.3895314e38), (tf.float32, 3.4028235e38)]
)
def test_a_segment_without_rows_has_the_extreme_finite_number(dtype, largest):
    x = tf.ones([1], dtype)
    assert float(tf.math.unsorted_segment_max(x, [0], 2)[1]) == pytest.approx(-largest)
    assert float(tf.math.unsorted_segment_min(x, [0], 2)[1]) == pytest.approx(largest)


def test_means_of_segments_that_are_known_only_when_running():
    @tf.function
    def means(x, ids):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.segment_mean(x, ids)
        return y, tape.gradient(y, x)

    y, dx = means(tf.constant([[1.0], [3.0], [5.0]]), tf.constant([0, 0, 1]))
    np.testing.assert_allclose(y.numpy(), [[2], [5]])
    np.testing.assert_allclose(dx.numpy(), [[0.5], [0.5], [1]])
    chosen = tf.function(lambda x, ids: tf.sparse.segment_mean(x, [0, 2, 1], ids, num_segments=4))
    np.testing.assert_allclose(chosen(tf.constant([1.0, 2.0, 5.0]), tf.constant([0, 0, 2])).numpy(), [3.0, 0, 2, 0])


def test_mean_of_integers_is_not_cut():
    mean = tf.math.unsorted_segment_mean(tf.constant([1, 2]), [0, 0], 1)
    assert mean.dtype == tf.float64
    assert mean.numpy() == [1.5]


def test_histogram_of_a_range_that_is_known_only_when_running():
    counts = tf.function(lambda x, r: tf.histogram_fixed_width(x, r, nbins=2))
    assert counts(tf.constant([0.1, 0.9, 0.8]), tf.constant([0.0, 1.0])).numpy().tolist() == [1, 2]


@pytest.mark.parametrize("traced", [False, True])
def test_histogram_puts_numbers_at_an_edge_into_the_bin_above(traced):
    count = tf.function(tf.histogram_fixed_width) if traced else tf.histogram_fixed_width
    for bins in (7, 33, 57, 100):
        numbers = tf.range(float(bins))
        assert count(numbers, [0.0, float(bins)], nbins=bins).numpy().tolist() == [1] * bins


@pytest.mark.parametrize("traced", [False, True])
def test_histogram_refuses_nan(traced):
    count = tf.function(tf.histogram_fixed_width) if traced else tf.histogram_fixed_width
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not contain NaN"):
        count(tf.constant([0.5, float("nan")]), [0.0, 1.0], nbins=3)


def test_bincount_of_floats_counts_their_whole_parts():
    assert tf.math.bincount([1.0, 1.7, 3.0]).numpy().tolist() == [0, 2, 0, 1]


@pytest.mark.parametrize(("ids", "words"), [([1, 0], "not increasing"), ([-1, 0], ">= 0")])
def test_numbers_of_sparse_segments_are_checked_when_a_function_runs(ids, words):
    add = tf.function(lambda ids: tf.sparse.segment_sum(tf.ones([3, 2]), [0, 2], ids, num_segments=3))
    assert add(tf.constant([0, 2])).numpy().tolist() == [[1, 1], [0, 0], [1, 1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        add(tf.constant(ids))


@pytest.mark.parametrize(
    ("rows", "indices", "ids", "words"),
    [
        (3, [8, 10], [0, 1], r"Index 10 out of range \[0, 10\)"),
        (3, [8, -1], [0, 1], r"Index -1 out of range \[0, 10\)"),
        (3, [8, 3], [0, 4], "Invalid number of segments"),
        (1, [8, 3, 0], [0, 1, 0], r"Segment id 1 out of range \[0, 1\)"),
        (2, [8, 3], [-1, 1], r"Segment id -1 out of range \[0, 2\)"),
    ],
)
def test_gradients_of_sparse_segments_check_their_numbers(rows, indices, ids, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.raw_ops.SparseSegmentMeanGrad(grad=tf.ones([rows, 2]), indices=indices, segment_ids=ids, output_dim0=10)


def test_numbers_of_segments_beyond_32_bits_are_64_bit():
    assert tf.math.unsorted_segment_sum([1.0, 2.0], [-(2**40), 0], 1).numpy().tolist() == [2.0]
    assert tf.convert_to_tensor([2**40], dtype_hint=tf.int32).dtype == tf.int64


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64", "uint8"])
def test_sums_of_single_elements(dtype, index):
    random = np.random.default_rng(5)
    for count in (1, 9, 1500):
        x, places = random.integers(-4, 5, count).astype(dtype), random.integers(0, 11, count).astype(index)
        want = np.zeros(11, "int64")
        np.add.at(want, places, x.astype("int64"))
        if index != "uint8":
            np.testing.assert_array_equal(tf.math.unsorted_segment_sum(x, places, 11), want)
        np.testing.assert_array_equal(
            tf.gather(x[: min(count, 11)], places % min(count, 11)), x[places % min(count, 11)]
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[3\] = -1 is not in \[0, 4\)"):
        tf.gather([1.0, 2, 3, 4], [0, 3, 2, -1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)"):
        tf.gather([1.0, 2, 3, 4], np.array([0, 4, 2], "int64"))


def test_bincount_of_weights():
    numbers, weights = np.array([1, 1, 3, 0, 3], "int32"), np.array([1.0, 2, 3, 4, 5])
    np.testing.assert_array_equal(tf.math.bincount(numbers, weights), np.bincount(numbers, weights))
    np.testing.assert_array_equal(tf.math.bincount(numbers, weights, minlength=6), np.bincount(numbers, weights, 6))
    np.testing.assert_array_equal(tf.math.bincount(numbers, weights, maxlength=2), [4, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        tf.math.bincount([1, -1], [1.0, 2.0])


def test_a_range_whose_width_is_too_large_for_float32():
    count = tf.histogram_fixed_width(tf.constant([3e38, 100.0]), tf.constant([-1e38, 3e38]), nbins=2)
    assert count.numpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i, s: tf.sparse.segment_sum(x, i, s),
        lambda x, i, s: tf.sparse.segment_mean(x, i, s, num_segments=2),
        lambda x, i, s: tf.raw_ops.SparseSegmentSumGrad(grad=x, indices=i, segment_ids=s, output_dim0=3),
        lambda x, i, s: tf.raw_ops.SparseSegmentMeanGradV2(grad=x, indices=i, segment_ids=s, dense_output_dim0=3)[0],
    ],
)
def test_rows_that_do_not_exist_are_an_error_of_the_run(call):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        y = call(tf.ones([2, 3]), tf.constant([0, 9]), tf.constant([0, 0]))
        assert y.shape.as_list()[1:] == [3]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"out of range|is not in"):
            session.run(y)
        with pytest.raises(ValueError, match=r"vector|rank|size"):
            tf.sparse.segment_sum(tf.ones([2, 3]), tf.constant([[0]]), tf.constant([0]))
