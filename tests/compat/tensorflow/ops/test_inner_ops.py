"""Inner functions below `tensorflow.python.ops`: what they compute, checked by NumPy and by what must hold."""

import math

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table

v1 = tf.compat.v1


def inner(path):
    return table.find(f"python.{path}")


def run(function, *values, shapes=None):
    """The result of a function of placeholders, whose shapes are unknown unless given."""
    with tf.Graph().as_default(), v1.Session() as session:
        shapes = shapes or [None] * len(values)
        places = [v1.placeholder(np.asarray(value).dtype, shape) for value, shape in zip(values, shapes)]
        return session.run(function(*places), dict(zip(places, values)))


# ---- distributions


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [[1], [6], [2, 3, 10]])
def test_triangles_and_back(upper, shape):
    util = inner("ops.distributions.util")
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    matrix = util.fill_triangular(x, upper=upper)
    side = matrix.shape[-1]
    assert side * (side + 1) // 2 == shape[-1]
    kept = np.triu(matrix) if upper else np.tril(matrix)
    np.testing.assert_array_equal(kept, matrix)
    np.testing.assert_array_equal(np.sort(kept[kept > 0].ravel()), np.sort(x.ravel()))
    np.testing.assert_array_equal(util.fill_triangular_inverse(matrix, upper=upper), x)
    np.testing.assert_array_equal(run(lambda x: util.fill_triangular(x, upper=upper), x), matrix)


def test_triangles_are_filled_as_a_spiral():
    found = inner("ops.distributions.util").fill_triangular([1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found, [[4, 0, 0], [6, 5, 0], [3, 2, 1]])
    with pytest.raises(ValueError, match="triangular"):
        inner("ops.distributions.util").fill_triangular([1, 2])


def test_inverse_of_softplus():
    softplus_inverse = inner("ops.distributions.util").softplus_inverse
    x = tf.constant([-30.0, -3.0, 0.0, 2.0, 50.0])
    np.testing.assert_allclose(softplus_inverse(tf.nn.softplus(x)), x, rtol=1e-4, atol=1e-6)
    with tf.GradientTape() as tape:
        y = tf.constant([1e-7, 1.0, 1e4])
        tape.watch(y)
        found = softplus_inverse(y)
    np.testing.assert_allclose(tape.gradient(found, y), 1 / -np.expm1(-y.numpy().astype(np.float64)), rtol=1e-4)


def test_weighted_log_sum_of_exponentials():
    log_sum = inner("ops.distributions.util").reduce_weighted_logsumexp
    x, w = tf.constant([[0.0, -1.0, 1000.0], [0.0, 1.0, -1000.0]]), tf.constant([[1.0, 1.0, -1.0], [1.0, -2.0, 1.0]])
    found, sign = log_sum(x, w, axis=-1, return_sign=True)
    np.testing.assert_allclose(found, [1000.0, math.log(2 * math.e - 1)], rtol=1e-6)
    np.testing.assert_array_equal(sign, [-1, -1])


def test_checks_of_parameters():
    util = inner("ops.distributions.util")
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-integer"):
        run(lambda x: _after(util, x), np.float32([1.5]))
    with pytest.raises(ValueError, match="at least 2 events"):
        util.embed_check_categorical_event_shape(np.ones([1], np.float16))
    with pytest.raises(tf.errors.InvalidArgumentError, match="precision"):
        run(util.embed_check_categorical_event_shape, np.ones([2**11 + 1], np.float16))
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot exceed 32767"):
        util.embed_check_integer_casting_closed([1, 2**15], target_dtype=tf.int16)
    with pytest.raises(ValueError, match="but not both"):
        util.get_logits_and_probs(logits=[0.1], probs=[0.1])
    logits, probs = util.get_logits_and_probs(probs=[0.25, 0.5])
    np.testing.assert_allclose(logits, [math.log(1 / 3), 0.0], atol=1e-6)
    np.testing.assert_array_equal(probs, [0.25, 0.5])


def _after(util, x):
    with tf.control_dependencies([util.assert_integer_form(x)]):
        return tf.identity(x)


def test_static_values_and_shapes():
    util = inner("ops.distributions.util")
    with tf.Graph().as_default():
        known, unknown = tf.zeros([2, 3]), v1.placeholder(tf.float32)
        np.testing.assert_array_equal(util.prefer_static_shape(known), [2, 3])
        assert isinstance(util.prefer_static_rank(known), np.ndarray)
        assert tf.is_tensor(util.prefer_static_shape(unknown))
        assert util.maybe_get_static_value(unknown) is None
    assert util.rotate_transpose(np.zeros([2, 3, 4]), 1).shape.as_list() == [4, 2, 3]

    def called(a, b=2, *rest, **others):
        return util.parent_frame_arguments()

    assert called(1, c=3) == {"a": 1, "b": 2, "c": 3}


def test_logarithm_of_the_normal_distribution_function():
    special = inner("ops.distributions.special_math")
    x = np.array([-40.0, -10.0, 0.0, 3.0, 12.0])
    expected = [math.log(math.erfc(-v / math.sqrt(2)) / 2) if v > -20 else -804.608442 for v in x]
    expected[-1] = -math.erfc(12 / math.sqrt(2)) / 2
    np.testing.assert_allclose(special.log_ndtr(tf.constant(x)), expected, rtol=1e-8)
    with tf.GradientTape() as tape:
        y = tf.constant(x, tf.float32)
        tape.watch(y)
        found = special.log_cdf_laplace(y)
    np.testing.assert_allclose(found, np.where(x < 0, x - np.log(2), np.log1p(-0.5 * np.exp(-abs(x)))), rtol=1e-6)
    assert np.isfinite(tape.gradient(found, y)).all()


def test_parameters_of_any_sign():
    normal = inner("ops.distributions.normal").NormalWithSoftplusScale(0.0, -1.0)
    np.testing.assert_allclose(normal.scale, math.log1p(math.exp(-1.0)), rtol=1e-6)
    student = inner("ops.distributions.student_t").StudentTWithAbsDfSoftplusScale(-3.7, 0.0, 1.0)
    assert student.df.numpy() == 3.0
    assert student.parameters["df"] == -3.7


# ---- initializers


@pytest.mark.parametrize(("rank", "size"), [(1, 3), (2, 3), (3, 2)])
def test_orthogonal_filters_keep_the_norm(rank, size):
    make = getattr(inner("ops.init_ops"), f"convolutional_orthogonal_{rank}d")(seed=1, dtype=tf.float64)
    filters = make([size] * rank + [2, 4])
    assert filters.shape.as_list() == [size] * rank + [2, 4]
    x = np.random.default_rng(0).normal(size=[1, *[5] * rank, 2])
    pad = [[0, 0], *[[size - 1, size - 1]] * rank, [0, 0]]
    y = tf.nn.convolution(np.pad(x, pad), filters, padding="VALID")
    np.testing.assert_allclose(np.linalg.norm(y), np.linalg.norm(x), rtol=1e-10)
    with pytest.raises(ValueError, match="out_filters"):
        make([size] * rank + [4, 2])


def test_delta_filters_and_second_version():
    delta = inner("ops.init_ops").convolutional_delta_orthogonal(seed=1)([3, 3, 2, 2]).numpy()
    np.testing.assert_allclose(delta[1, 1] @ delta[1, 1].T, np.eye(2), atol=1e-6)
    delta[1, 1] = 0
    assert not delta.any()
    v2 = inner("ops.init_ops_v2")
    scaled = v2.VarianceScaling(2.0, "fan_in", "untruncated_normal", seed=3)
    np.testing.assert_array_equal(scaled([4, 4]), scaled([4, 4]))
    assert scaled.from_config(scaled.get_config()).scale == 2.0
    np.testing.assert_array_equal(v2.Identity(2.0)([2, 3]), 2 * np.eye(2, 3))
    with pytest.raises(ValueError, match="partition-related"):
        v2.Orthogonal()([4, 2], partition_shape=[2, 2])
    assert (np.abs(v2.TruncatedNormal(0.0, 1.0)([1000])) <= 2).all()


def test_part_of_an_identity():
    with tf.Graph().as_default(), v1.Session() as session:
        partitioner = v1.fixed_size_partitioner(2)
        v = v1.get_variable("v", [4, 4], initializer=v1.initializers.identity(), partitioner=partitioner)
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(v)), np.eye(4))


# ---- linear operators


def test_checks_of_linear_operators():
    util = inner("ops.linalg.linear_operator_util")
    operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]], is_self_adjoint=False)
    assert util.is_adjoint_pair(operator, operator.H)
    assert not util.is_adjoint_pair(operator, operator)
    assert util.is_aat_form([operator, operator.H])
    with pytest.raises(tf.errors.InvalidArgumentError, match="ABC"):
        util.assert_no_entries_with_modulus_zero([1.0, 0.0], message="ABC")
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        util.assert_compatible_matrix_dimensions(operator, tf.zeros([3, 1]))
    with pytest.raises(ValueError, match="at least two dimensions"):
        util.broadcast_matrix_batch_dims([[1.0], [[1.0]]])
    assert util.arg_is_blockwise([v1.Dimension(1), v1.Dimension(2)], [tf.zeros([1]), tf.zeros([2])], -1)
    sliced = inner("ops.linalg.slicing")._slice_single_param(tf.zeros([7, 1, 5, 4, 3]), 2, (slice(None), 2), [7, 6, 5])
    assert sliced.shape.as_list() == [7, 5, 4, 3]


# ---- arrays, sparse and ragged


def test_dimensions_that_labels_or_predictions_have_too_many():
    squeeze = inner("ops.confusion_matrix").remove_squeezable_dimensions
    labels, predictions = squeeze(tf.zeros([2, 3, 1]), tf.zeros([2, 3]))
    assert labels.shape == predictions.shape == [2, 3]
    labels, predictions = run(lambda a, b: squeeze(a, b, 1), np.zeros([2, 1]), np.zeros([2, 5]))
    assert labels.shape == (2,)
    assert predictions.shape == (2, 5)


def test_sparse_tensors_from_strings():
    sparse = tf.sparse.from_dense([[0, 5], [6, 0]])
    text = tf.io.serialize_sparse(sparse)
    read = inner("ops.sparse_ops").deserialize_sparse
    np.testing.assert_array_equal(tf.sparse.to_dense(read(text, tf.int32)), [[0, 5], [6, 0]])
    assert read(tf.stack([text, text, text]), tf.int32).dense_shape.numpy().tolist() == [3, 2, 2]


def test_ragged_rows():
    rows = tf.ragged.constant([[], [1, 3], []])
    filled, empty = inner("ops.ragged.ragged_array_ops").fill_empty_rows(rows, -1)
    assert filled.to_list() == [[-1], [1, 3], [-1]]
    assert empty.numpy().tolist() == [True, False, True]
    repeated = inner("ops.ragged.ragged_util").repeat_ranges(["a", "b", "c"], [0, 2, 3], [2, 1])
    assert repeated.numpy().tolist() == [b"a", b"b", b"a", b"b", b"c"]
    written = inner("ops.ragged.ragged_string_ops").ragged_tensor_to_string
    assert written(tf.ragged.constant([[1], [2, 3, 4, 5, 6], []]), summarize=2) == b"[[1], [2, 3, ..., 5, 6], []]"
    assert written(tf.ragged.constant([["a'"], []])) == b"[['a\\''], []]"
    gather = inner("ops.ragged.ragged_batch_gather_with_default_op").batch_gather_with_default
    found = gather(tf.ragged.constant([["a", "b"], ["c"]]), tf.ragged.constant([[1, -1, 5], [0]]), "?")
    assert found.to_list() == [[b"b", b"?", b"?"], [b"c"]]


def test_switches_of_float64():
    dtypes = inner("ops.numpy_ops.np_dtypes")
    assert dtypes.default_float_type() == tf.float64
    dtypes.set_allow_float64(False)
    try:
        assert tf.experimental.numpy.random.randn(2).dtype == tf.float32
        assert tf.experimental.numpy.zeros([2]).dtype == tf.float32
        assert tf.experimental.numpy.result_type(np.float64, 1.5) == tf.float32
    finally:
        dtypes.set_allow_float64(True)
    assert tf.experimental.numpy.random.randn(2).dtype == tf.float64


def test_rows_changed_in_a_copy():
    inplace = inner("ops.inplace_ops")
    x = tf.ones([3, 2])
    assert inplace.inplace_add(x, 1, [2.0, 3.0]).numpy().tolist() == [[1, 1], [3, 4], [1, 1]]
    assert inplace.inplace_sub(x, [0, 2], tf.ones([2, 2])).numpy().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert inplace.inplace_update(x, None, tf.zeros([3, 2])).numpy().tolist() == [[0, 0]] * 3


def test_functions_of_first_versions():
    assert inner("ops.string_ops").string_split(["a b"]).values.numpy().tolist() == [b"a", b"b"]
    assert tf.compat.v1.string_split(["ab", "c"], delimiter="").values.numpy().tolist() == [b"a", b"b", b"c"]
    np.testing.assert_allclose(inner("ops.nn_ops").log_softmax([[0.0, 0.0]], axis=0), [[0.0, 0.0]])
    found = inner("ops.sparse_ops").sparse_dense_cwise_add(tf.sparse.from_dense([[0, 5], [6, 0]]), [1, 2])
    assert found.values.numpy().tolist() == [7, 7]
