"""Functions of neural networks: what the families do not promise by themselves."""

import itertools

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tests.ops.gradients import gradient


def numeric(function, x, step=1e-6):
    x = np.array(x, np.float64)
    slope = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        up, down = np.sum(np.asarray(function(tf.constant(high)))), np.sum(np.asarray(function(tf.constant(low))))
        slope[i] = (up - down) / (2 * step)
    return slope


def test_silu_with_a_tensor_as_beta_has_its_gradient():  # tensorflow issue 127690
    x, beta = np.array([-2.0, 0.5, 3.0]), np.array(1.7)
    dx, dbeta = gradient(tf.nn.silu, x, beta)
    s = 1 / (1 + np.exp(-beta * x))
    np.testing.assert_allclose(dx, s + beta * x * s * (1 - s), rtol=1e-12)
    np.testing.assert_allclose(dbeta, np.sum(x * x * s * (1 - s)), rtol=1e-12)


def test_silu_in_float64_does_not_underflow():  # tensorflow issue 124835
    x = np.array([-745.0, -100.0, -40.0, 40.0, 800.0])
    expected = x * np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))
    np.testing.assert_allclose(tf.nn.silu(tf.constant(x)), expected, rtol=1e-12, atol=1e-320)


def test_leaky_relu_has_a_second_derivative_of_zero():
    x = tf.constant([-1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.nn.leaky_relu(x, 0.3)
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(slope, [0.3, 1.0])
    np.testing.assert_array_equal(outer.gradient(slope, x), [0.0, 0.0])


def test_batch_normalization_is_linear_in_gamma():  # tensorflow issue 107705
    x, gamma = np.random.RandomState(0).randn(5, 3), np.array([0.5, 2.0, -1.0])
    mean, variance = x.mean(0), x.var(0)

    def run(scale):
        return np.asarray(tf.nn.batch_normalization(x, mean, variance, None, tf.constant(scale), 1e-3))

    np.testing.assert_allclose(run(3 * gamma), 3 * run(gamma), rtol=1e-12)
    (slope,) = gradient(lambda g: tf.nn.batch_normalization(x, mean, variance, None, g, 1e-3), gamma)
    np.testing.assert_allclose(slope, ((x - mean) / np.sqrt(variance + 1e-3)).sum(0), atol=1e-12)


def test_isotonic_regression_gradient_keeps_the_shape_and_averages_runs():  # tensorflow issue 127234
    x = np.array([[3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    weights = np.array([[1.0, 2.0, 4.0, 8.0], [1.0, 0.0, 0.0, 3.0]])
    (slope,) = gradient(lambda v: tf.nn.isotonic_regression(v)[0] * weights, x)
    np.testing.assert_allclose(slope, [[1, 3, 3, 8], [1, 1, 1, 1]])
    (slope,) = gradient(lambda v: tf.nn.isotonic_regression(v)[0], x[0])
    assert slope.shape == (4,)


def all_alignments(labels, times, blank):
    """All paths of `times` symbols that collapse to `labels`, by trying every one."""
    symbols = sorted({*labels, blank})
    for path in itertools.product(symbols, repeat=times):
        collapsed = [s for i, s in enumerate(path) if s != blank and (i == 0 or s != path[i - 1])]
        if collapsed == list(labels):
            yield path


@pytest.mark.parametrize("labels", [[], [1], [1, 1], [2, 1], [1, 2, 1]])
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_loss_is_the_sum_over_all_alignments(labels, blank):
    logits = np.random.RandomState(1).randn(5, 1, 4)
    log_p = logits[:, 0] - np.log(np.exp(logits[:, 0]).sum(1, keepdims=True))
    paths = all_alignments(labels, 5, blank)
    expected = -np.log(sum(np.exp(sum(log_p[t, s] for t, s in enumerate(path))) for path in paths))
    padded = np.array([labels + [0] * (3 - len(labels))])

    def loss(x):
        return tf.nn.ctc_loss(padded, x, [len(labels)], [5], blank_index=blank)

    np.testing.assert_allclose(loss(tf.constant(logits)), [expected], rtol=1e-12)
    np.testing.assert_allclose(gradient(loss, logits)[0], numeric(loss, logits), atol=1e-7)


def ctc_by_logarithms(logits, labels):
    """The loss of one sequence with blank 0, by the logarithms of the probabilities of the states."""
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    symbols = [0] + [s for label in labels for s in (label, 0)]
    state = np.full(len(symbols), -np.inf)
    state[:2] = log_p[0, symbols[:2]]
    for row in log_p[1:]:
        before = np.concatenate([[-np.inf, -np.inf], state])
        skips = [k > 1 and s != 0 and s != symbols[k - 2] for k, s in enumerate(symbols)]
        state = np.logaddexp(np.logaddexp(before[2:], before[1:-1]), np.where(skips, before[:-2], -np.inf))
        state += row[symbols]
    return -np.logaddexp.reduce(state[-2:])


@pytest.mark.parametrize("scale", [0.1, 10.0, 200.0, 2000.0])
@pytest.mark.parametrize(("times", "count"), [(30, 5), (300, 80), (20, 10)])
def test_ctc_loss_at_any_scale_of_the_logits(scale, times, count):
    """States of any probability count: those that double cannot hold need logarithms."""
    rng = np.random.RandomState(count)
    logits = rng.randn(times, 1, 6) * scale
    labels = rng.randint(1, 6, [1, count])

    def loss(x):
        return tf.nn.ctc_loss(labels, x, [count], [times], blank_index=0)

    expected = ctc_by_logarithms(logits[:, 0], labels[0])
    np.testing.assert_allclose(loss(tf.constant(logits)), [expected], rtol=1e-9)
    (slope,) = gradient(loss, logits)
    np.testing.assert_allclose(np.sum(slope, 2), np.zeros([times, 1]), atol=1e-9)
    step = 1e-4 * scale
    for t, c in ((0, 0), (times // 2, labels[0, 0])):
        up, down = logits.copy(), logits.copy()
        up[t, 0, c] += step
        down[t, 0, c] -= step
        rise = ctc_by_logarithms(up[:, 0], labels[0]) - ctc_by_logarithms(down[:, 0], labels[0])
        np.testing.assert_allclose(slope[t, 0, c], rise / (2 * step), atol=0.02)


def test_ctc_loss_second_order():
    logits = np.random.RandomState(2).randn(4, 2, 3)
    weights = np.random.RandomState(3).randn(4, 2, 3)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.ctc_loss([[1, 2], [1, 1]], x, [2, 2], [4, 3], blank_index=0)
        return tape.gradient(y, x) * weights

    np.testing.assert_allclose(gradient(slope, logits)[0], numeric(slope, logits), atol=1e-6)


def test_ctc_loss_without_a_path_is_infinite_and_has_no_slope():
    logits = np.zeros([2, 1, 3], np.float32)
    loss, slope = tf.nn.ctc_loss([[1, 1]], logits, [2], [2], blank_index=0), None
    assert np.isinf(np.asarray(loss)).all()
    (slope,) = gradient(lambda x: tf.nn.ctc_loss([[1, 1]], x, [2], [2], blank_index=0), logits)
    np.testing.assert_array_equal(slope, np.zeros_like(logits))
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be in"):
        tf.nn.ctc_loss([[1, 9]], logits, [2], [2], blank_index=0)


def test_decoders():
    logits = np.random.RandomState(0).randn(5, 2, 4).astype(np.float32)
    paths, scores = tf.nn.ctc_beam_search_decoder(logits, [5, 4], beam_width=3, top_paths=2)
    np.testing.assert_array_equal(paths[0].values, [0, 0, 2, 1])
    np.testing.assert_array_equal(paths[1].values, [0, 0, 0, 2, 0])
    np.testing.assert_allclose(scores, [[-2.056244, -2.6588655], [-1.9905828, -2.186648]], rtol=1e-5)
    paths, scores = tf.nn.ctc_greedy_decoder(logits, [5, 4])
    np.testing.assert_array_equal(paths[0].indices, [[0, 0], [1, 0], [1, 1], [1, 2]])
    np.testing.assert_array_equal(paths[0].values, [0, 0, 2, 0])
    np.testing.assert_array_equal(paths[0].dense_shape, [2, 3])
    np.testing.assert_allclose(scores, [[-7.61535], [-5.025811]], rtol=1e-6)
    with pytest.raises(tf.errors.FailedPreconditionError, match="sequence_length"):
        tf.nn.ctc_beam_search_decoder(logits, [6, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="more paths than the beam width"):
        tf.nn.ctc_beam_search_decoder(logits, [5, 4], beam_width=1, top_paths=2)


def test_sparse_embeddings():
    table = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], np.float32)
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], np.array([1, 2, 3]), [2, 2])
    weights = tf.SparseTensor(ids.indices, np.float32([0.5, 2.0, 3.0]), [2, 2])
    expected = {"sum": [[6.5, 9], [15, 21]], "mean": [[2.6, 3.6], [5, 7]], "sqrtn": [[3.1529632, 4.3656416], [5, 7]]}
    for combiner, rows in expected.items():
        found = tf.nn.embedding_lookup_sparse(tf.constant(table), ids, weights, combiner=combiner)
        np.testing.assert_allclose(found, rows, rtol=1e-6)
    holes = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([1, -1, 2]), [4, 2])
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(table), holes)
    np.testing.assert_allclose(found, [[1, 2], [0, 0], [3, 4], [0, 0]])
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(table), holes, default_id=3, combiner="sum")
    np.testing.assert_allclose(found, [[1, 2], [5, 7], [3, 4], [5, 7]])
    with pytest.raises(ValueError, match="combiner must be one of"):
        tf.nn.embedding_lookup_sparse(tf.constant(table), ids, None, combiner="best")
    with pytest.raises(TypeError, match="sp_ids must be SparseTensor"):
        tf.nn.embedding_lookup_sparse(tf.constant(table), tf.constant([1]), None)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_both_data_formats_give_the_same_gradients(data_format):
    x, filters = np.random.RandomState(0).randn(2, 5, 6, 3), np.random.RandomState(1).randn(3, 2, 3, 4)

    def run(a, f, form):
        a = tf.transpose(a, [0, 3, 1, 2]) if form == "NCHW" else a
        y = tf.nn.max_pool2d(tf.nn.conv2d(a, f, 2, "SAME", data_format=form), 2, 1, "SAME", data_format=form)
        return tf.transpose(y, [0, 2, 3, 1]) if form == "NCHW" else y

    for found, expected in zip(
        gradient(lambda a, f: run(a, f, data_format), x, filters), gradient(lambda a, f: run(a, f, "NHWC"), x, filters)
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_max_pool_with_argmax_gradient_goes_to_the_named_element():
    x = np.random.RandomState(0).permutation(2 * 4 * 4 * 2).reshape(2, 4, 4, 2).astype(np.float32)
    for batched in (False, True):
        output, argmax = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=batched)
        flat = x.reshape(-1) if batched else x.reshape(2, -1)
        picked = flat[np.asarray(argmax)] if batched else np.stack([flat[b][np.asarray(argmax)[b]] for b in range(2)])
        np.testing.assert_array_equal(picked, output)
        (slope,) = gradient(
            lambda v, b=batched: tf.nn.max_pool_with_argmax(v, 2, 2, "VALID", include_batch_in_index=b).output, x
        )
        assert np.asarray(slope).sum() == 16 and set(np.unique(slope)) == {0.0, 1.0}
    with pytest.raises(tf.errors.InvalidArgumentError, match="argmax"):
        primitives.MaxPoolGradWithArgmax(
            dy=tf.ones([1, 1, 1, 1]), argmax=[[[[99]]]], ksize=[2, 2], strides=[2, 2], padding="VALID",
            explicit_paddings=[], dilations=[1, 1], include_batch_in_index=False, input_sizes=[1, 2, 2, 1],
        )  # fmt: skip


IMAGE, FILTERS = np.ones([1, 4, 4, 2], np.float32), np.ones([3, 3, 2, 1], np.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.nn.conv2d(IMAGE, tf.ones([3, 3, 3, 1]), 1, "SAME"), "evenly divisible by filter depth"),
        (lambda: tf.nn.conv2d(IMAGE, FILTERS, 0, "SAME"), "Stride must be > 0"),
        (lambda: tf.nn.conv2d(IMAGE[0], FILTERS, 1, "SAME"), "rank"),
        (lambda: tf.nn.max_pool2d(IMAGE, 0, 1, "SAME"), "ksize must be positive"),
        (lambda: tf.nn.softmax(tf.ones([2]), axis=3), "must be in the range"),
        (lambda: tf.nn.lrn(tf.ones([3, 3])), "4-dimensional"),
        (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 7], tf.ones([2, 4])), "outside the valid range"),
    ],
)
def test_invalid_arguments(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_dropout_rate(rate):
    with pytest.raises(ValueError, match="rate"):
        tf.nn.dropout(tf.ones([3]), rate)


def test_empty_batches():
    x = np.zeros([0, 4, 4, 2], np.float32)
    assert tf.nn.conv2d(x, tf.ones([3, 3, 2, 5]), 1, "SAME").shape == (0, 4, 4, 5)
    assert tf.nn.max_pool2d(x, 2, 2, "VALID").shape == (0, 2, 2, 2)
    assert tf.nn.lrn(x).shape == (0, 4, 4, 2)
    assert tf.nn.softmax(np.zeros([0, 3], np.float32)).shape == (0, 3)
    assert tf.nn.embedding_lookup(tf.ones([4, 2]), np.zeros([0], np.int32)).shape == (0, 2)


def test_dropout_scales_what_it_keeps():
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    y = tf.nn.experimental.general_dropout(x, 0.5, lambda shape, dtype: tf.constant([0.1, 0.9, 0.5, 0.2]))
    np.testing.assert_allclose(y, [0, 4, 6, 0])


def test_dropout_keeps_the_shape_under_a_rate_of_unknown_shape():
    with tf.Graph().as_default():
        x, keep = tf.compat.v1.placeholder(tf.float32, [None, 3]), tf.compat.v1.placeholder(tf.float32)
        assert tf.compat.v1.nn.dropout(x, keep).shape.as_list() == [None, 3]


def test_nce_loss_of_a_batch_of_unknown_size():
    weights, biases = np.ones([6, 2], np.float32), np.zeros([6], np.float32)
    sampled = (np.array([1, 4]), np.full([3, 1], 0.5, np.float32), np.full([2], 0.25, np.float32))

    def loss(labels, inputs):
        return tf.nn.nce_loss(weights, biases, labels, inputs, 2, 6, sampled_values=sampled)

    labels, inputs = np.array([[0], [2], [4]]), np.arange(6, dtype=np.float32).reshape(3, 2)
    signature = [tf.TensorSpec([None, 1], tf.int64), tf.TensorSpec([None, 2])]
    np.testing.assert_allclose(tf.function(loss, input_signature=signature)(labels, inputs), loss(labels, inputs))


def test_ctc_loss_without_merging():
    """TensorFlow's values, and the derivative of them."""
    logits = tf.constant(np.random.default_rng(0).normal(size=(5, 2, 4)).astype("float32"))
    labels = tf.sparse.from_dense([[1, 1, 2], [2, 0, 0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.compat.v1.nn.ctc_loss(labels, logits, [5, 4], ctc_merge_repeated=False)
    np.testing.assert_allclose(loss, [5.273308753967285, 4.250762939453125], rtol=1e-5)
    gradient = tape.gradient(loss, logits).numpy()
    np.testing.assert_allclose(gradient[0, 0], [0.22597685, -0.49569902, 0.37808728, -0.10836527], rtol=1e-4)
    np.testing.assert_allclose(gradient[4, 0], [0.16286038, 0.32798371, -0.60088861, 0.11004438], rtol=1e-4)
    first = tf.compat.v1.nn.ctc_loss(tf.sparse.from_dense([[1, 1, 2]]), logits[:3, :1], [3], ctc_merge_repeated=False)
    np.testing.assert_allclose(first, [5.18808], rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Not enough time"):
        tf.compat.v1.nn.ctc_loss(tf.sparse.from_dense([[1, 1, 2]]), logits[:2, :1], [2], ctc_merge_repeated=False)


def test_cross_entropy_of_no_classes_is_zero():
    empty = tf.zeros([0, 3])
    assert tf.nn.softmax_cross_entropy_with_logits(empty, empty, axis=0).numpy().tolist() == [0, 0, 0]


def test_older_cross_entropies_by_position():
    v1 = tf.compat.v1.nn
    labels, logits = tf.constant([[1.0, 0.0]]), tf.constant([[0.0, 0.0]])
    for loss in (v1.softmax_cross_entropy_with_logits, v1.sigmoid_cross_entropy_with_logits):
        np.testing.assert_allclose(loss(labels, logits).numpy().reshape(-1)[0], np.log(2), rtol=1e-6)


@pytest.mark.parametrize("pool", [tf.nn.max_pool2d, tf.nn.avg_pool2d])
def test_gradient_of_a_pool_without_channels(pool):
    x = tf.zeros([1, 4, 4, 0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(x, 2, 2, "VALID")
    assert tape.gradient(y, x).shape == [1, 4, 4, 0]


def test_moments_without_weight_are_zero():
    mean, variance = tf.nn.weighted_moments([1.0, 2.0], [0], [0.0, 0.0])
    assert mean == 0 and variance == 0


def test_sizes_may_be_numpy_numbers():
    x = tf.ones([1, 4, 4, 1])
    assert tf.nn.max_pool2d(x, np.int64(2), np.int64(2), "VALID").shape == [1, 2, 2, 1]
    assert tf.nn.convolution(x, tf.ones([2, 2, 1, 1]), strides=np.int64(2)).shape == [1, 2, 2, 1]


def test_a_transposed_convolution_of_an_open_batch():
    x, filters = tf.ones([3, 2, 2, 1]), tf.ones([2, 2, 1, 1])
    assert tf.nn.conv2d_transpose(x, filters, [-1, 4, 4, 1], 2).shape == [3, 4, 4, 1]
    widen = tf.function(
        lambda x: tf.nn.conv2d_transpose(x, filters, [-1, 4, 4, 1], 2),
        input_signature=[tf.TensorSpec([None, 2, 2, 1])],
    )
    assert widen(x).shape == [3, 4, 4, 1]


def test_gradients_of_quantization_pass_inside_the_given_range():
    x = tf.constant([-2.0, 0.5, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0)
    np.testing.assert_array_equal(tape.gradient(y, x), [0, 1, 0])


def test_losses_of_integers_are_real():
    assert tf.nn.scale_regularization_loss(tf.constant([1, 2])).dtype == tf.float64
    assert tf.nn.compute_average_loss(tf.constant([1, 2], tf.int8)).dtype == tf.float32


def test_windows_that_do_not_fit_are_refused():
    x = tf.ones([1, 3, 3, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Computed output size would be negative"):
        tf.nn.conv2d(x, tf.ones([5, 5, 1, 1]), 1, "VALID")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Computed output size would be negative"):
        tf.nn.max_pool2d(x, 6, 1, "VALID")
    assert tf.nn.max_pool2d(x, 4, 1, "VALID").shape == [1, 0, 0, 1]
    spec = tf.TensorSpec([None, None, None, 1])
    blurred = tf.function(lambda x: tf.nn.conv2d(x, tf.ones([5, 5, 1, 1]), 1, "VALID"), input_signature=[spec])
    assert blurred(tf.ones([1, 6, 6, 1])).shape == [1, 2, 2, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="would be negative"):
        blurred(x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [tf.nn.softmax, tf.nn.log_softmax])
def test_softmax_along_an_inner_axis_of_a_large_tensor(function, axis):
    x = tf.constant(np.random.default_rng(0).standard_normal((40, 50, 20)).astype(np.float32) * 5)
    order = [0, 1, 2]
    order[axis], order[2] = order[2], order[axis]
    values, gradients = [], []
    for along in (lambda x: function(x, axis), lambda x: tf.transpose(function(tf.transpose(x, order)), order)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = along(x)
            total = tf.reduce_sum(tf.sin(y))
        values.append(y)
        gradients.append(tape.gradient(total, x))
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


def test_pools_over_channels():
    x = tf.reshape(tf.range(16.0), [1, 2, 2, 4])
    pairs = tf.nn.max_pool2d(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID")
    np.testing.assert_array_equal(np.ravel(pairs), np.arange(1.0, 16.0, 2.0))
    np.testing.assert_array_equal(np.ravel(tf.nn.max_pool(x, [1, 1, 1, 4], [1, 1, 1, 4], "SAME")), [3, 7, 11, 15])
    with pytest.raises(tf.errors.UnimplementedError, match="Depthwise"):
        tf.nn.max_pool2d(x, [1, 1, 1, 2], [1, 1, 1, 1], "VALID")


WINDOWS = [  # length of the input, size of the window, stride, dilation
    *((length, size, stride, 1) for length in (1, 5) for size in (1, 2, 7, 20, 2**35) for stride in (1, 3)),
    *((length, 2, 1, 2) for length in (3, 5)),
]


@pytest.mark.parametrize(("length", "size", "stride", "dilation"), WINDOWS)
def test_a_window_may_be_larger_than_its_input(length, size, stride, dilation):
    padding = "VALID" if dilation > 1 else "SAME"
    x = np.random.default_rng(0).normal(size=[1, length, 1]).astype(np.float32)
    reach = (size - 1) * dilation + 1
    outputs = -(-length // stride) if padding == "SAME" else length - reach + 1
    before = max(0, (outputs - 1) * stride + reach - length) // 2 if padding == "SAME" else 0
    starts = [o * stride - before for o in range(outputs)]
    windows = [[x[0, i, 0] for i in range(length) if 0 <= i - s < reach and (i - s) % dilation == 0] for s in starts]
    arguments = {"strides": [stride], "padding": padding, "dilations": [dilation]}
    largest = tf.nn.pool(x, [size], "MAX", **arguments)
    mean = tf.nn.pool(x, [size], "AVG", **arguments)
    np.testing.assert_array_equal(largest[0, :, 0], [max(window) for window in windows])
    np.testing.assert_allclose(mean[0, :, 0], [np.mean(window) for window in windows], rtol=1e-5)


@pytest.mark.parametrize(("strides", "rates"), [([1, 0, 1, 1], [1, 1, 1, 1]), ([1, 1, 1, 1], [1, 0, 1, 1])])
def test_windows_of_dilations_move(strides, rates):
    x, filters = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        tf.nn.dilation2d(x, filters, strides, "SAME", "NHWC", rates)


def test_windows_of_open_size_leave_the_size_of_a_dilation_open():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, None]), tf.TensorSpec([None, None, None])])
    def dilated(x, filters):
        y = tf.nn.dilation2d(x, filters, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
        assert y.shape.as_list() == [None, None, None, None]
        return y

    assert dilated(tf.zeros([1, 5, 4, 2]), tf.zeros([2, 2, 2])).shape == (1, 4, 3, 2)
