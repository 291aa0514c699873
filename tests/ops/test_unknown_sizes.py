"""Operations in graphs whose sizes only running tells: their shapes stay as far known as they can be."""

import numpy as np
import pytest

import tapeflow as tf

OPEN = tf.TensorSpec([None, 4, 5])


def staged(function, spec=OPEN):
    """The static shape that a function has for an open batch, and the function."""
    shapes = []

    @tf.function(input_signature=[spec])
    def run(x):
        y = function(x)
        shapes.append(y.shape)
        return y

    run.get_concrete_function()
    return run, shapes[0].as_list()


def test_random_integers():
    run, shape = staged(lambda x: tf.random.stateless_uniform([tf.shape(x)[0], 3], [1, 2], 0, 9, dtype=tf.int32))
    assert shape == [None, 3]
    expected = tf.random.stateless_uniform([2, 3], [1, 2], 0, 9, dtype=tf.int32)
    np.testing.assert_array_equal(run(tf.ones([2, 4, 5])), expected)


def test_dropout():
    drop = tf.nn.experimental.stateless_dropout
    run, shape = staged(lambda x: drop(x, 0.5, seed=[1, 2]))
    assert shape == [None, 4, 5]
    np.testing.assert_array_equal(run(tf.ones([2, 4, 5])), drop(tf.ones([2, 4, 5]), 0.5, seed=[1, 2]))
    run, shape = staged(lambda x: drop(x, 0.5, seed=[1, 2], noise_shape=[None, 1, 5]))
    assert shape == [None, 4, 5]
    x = tf.ones([3, 4, 5])
    np.testing.assert_array_equal(run(x), drop(x, 0.5, seed=[1, 2], noise_shape=[3, 1, 5]))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_reflections(mode):
    x = np.arange(6.0, dtype=np.float32)
    run, _ = staged(lambda x: tf.pad(x, [[3, 2]], mode), tf.TensorSpec([None]))
    np.testing.assert_array_equal(run(x), np.pad(x, [[3, 2]], mode.lower()))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(x[:2])


def test_pictures_through_a_projection():
    def project(images, mode="CONSTANT"):
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=images,
            transforms=tf.constant([[1.0, 0.1, 0.5, 0.2, 1.0, -1.5, 0.0, 0.0]]),
            output_shape=tf.shape(images)[1:3],
            fill_value=0.5,
            interpolation="BILINEAR",
            fill_mode=mode,
        )

    images = tf.random.stateless_uniform([2, 6, 7, 3], [1, 2])
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for spec in (tf.TensorSpec([None, 6, 7, 3]), tf.TensorSpec([None, None, None, 3])):
            run, _ = staged(lambda x: project(x, mode), spec)  # noqa: B023
            np.testing.assert_allclose(run(images), project(images, mode), rtol=1e-5, atol=1e-6)


def test_a_size_of_zero_is_not_learnt_from_small_samples():
    run, shape = staged(lambda x: tf.signal.frame(x, 16, 4), tf.TensorSpec([None]))
    assert shape == [None, 16]
    assert run(tf.ones([24])).shape == (3, 16)


def test_buckets():
    run, shape = staged(lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[0.5, 2.0]))
    assert shape == [None, 4, 5] and int(run(tf.ones([1, 4, 5]))[0, 0, 0]) == 1


def test_embeddings_of_sparse_ids():
    table = tf.reshape(tf.range(12.0), [4, 3])

    @tf.function(input_signature=[tf.SparseTensorSpec([2, 4], tf.int64)])
    def look_up(ids):
        y = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
        assert y.shape.as_list() == [None, 3]
        return y

    ids = tf.sparse.from_dense(tf.constant([[1, 0, 3, 0], [0, 2, 0, 0]], tf.int64))
    np.testing.assert_array_equal(look_up(ids), tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"))


def test_sizes_that_are_floating_tensors():
    sizes = tf.constant([2.0, 3.0])
    assert tf.reshape(tf.ones([6]), (sizes[0], sizes[1], 1)).shape == (2, 3, 1)
    assert tf.function(lambda s: tf.reshape(tf.ones([6]), (s[0], s[1])))(sizes).shape == (2, 3)
    for shape in (sizes, [2.0, 3.0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape must be integers"):
            tf.reshape(tf.ones([6]), shape)


def test_a_custom_gradient_of_unknown_rank():
    @tf.custom_gradient
    def clip(x):
        return x, lambda dy: tf.clip_by_norm(dy, 0.5)

    run = tf.function(lambda x: clip(x), input_signature=[tf.TensorSpec(None)])
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = run(v * v)
    assert tape.gradient(y, v) == 2.0


def test_nothing_in_between():
    assert tf.linspace(0.0, 1.0, 0).shape == (0,) and tf.linspace([0.0, 1.0], [1.0, 2.0], 0, axis=-1).shape == (2, 0)
    found = tf.raw_ops.UniqueWithCountsV2(x=tf.zeros([0, 2]), axis=[0])
    assert found.y.shape == (0, 2) and found.count.shape == (0,)


def test_products_with_square_matrices():
    rows = tf.TensorSpec([None, None])
    assert staged(lambda x: tf.matmul(x, tf.ones([10, 10])), rows)[1] == [None, 10]
    assert staged(lambda x: tf.matmul(x, tf.ones([3, 10]), transpose_b=True), rows)[1] == [None, 3]
    assert staged(lambda x: tf.matmul(x, tf.ones([2, 1, 6, 6])), tf.TensorSpec([None, None, None]))[1] == [
        2,
        None,
        None,
        6,
    ]
    run = tf.function(lambda x: tf.matmul(x, tf.ones([2, 2])), input_signature=[tf.TensorSpec(None)])
    assert run.get_concrete_function().output_shapes.rank is None
    np.testing.assert_array_equal(run(tf.ones([1, 2])), [[2.0, 2.0]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones([1, 3]))


def test_biases_of_unknown_channels():
    add = lambda x: tf.nn.bias_add(x, tf.range(3.0))  # noqa: E731
    run, shape = staged(add, tf.TensorSpec([None, None]))
    assert shape == [None, 3]
    np.testing.assert_array_equal(run(tf.ones([1, 3])), [[1.0, 2.0, 3.0]])
    with pytest.raises(tf.errors.InvalidArgumentError):  # and not broadcast
        run(tf.ones([2, 1]))
    run, shape = staged(lambda b: tf.nn.bias_add(tf.ones([1, 2, 4]), b, "NC..."), tf.TensorSpec([None]))
    assert shape == [1, 2, 4]


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_resized_images(method):
    double = lambda x: tf.image.resize(x, tf.shape(x)[1:3] * 2, method)  # noqa: E731
    run, shape = staged(double, tf.TensorSpec([None, None, 2, 3]))
    assert shape == [None, None, None, 3]
    image = tf.reshape(tf.range(12.0), [1, 2, 2, 3])
    np.testing.assert_array_equal(run(image), tf.image.resize(image, [4, 4], method))
    assert staged(double, tf.TensorSpec([None, 2, 2, 3]))[1] == [None, 4, 4, 3]  # the size follows from the shape
    with tf.Graph().as_default():
        size = tf.constant([2, 2]) * tf.constant([2, 1])
        assert tf.image.resize(tf.ones([1, 2, 2, 3]), size, method).shape == [1, 4, 2, 3]


def test_loss_of_sparse_labels():
    logits = tf.random.stateless_normal([5, 2, 6], [1, 2])
    loss = lambda labels, logits: tf.nn.ctc_loss(labels, logits, None, [5, 5], blank_index=0)  # noqa: E731
    specs = [tf.SparseTensorSpec([None, None], tf.int32), tf.TensorSpec([None, None, 6])]
    run = tf.function(loss, input_signature=specs)
    labels = tf.sparse.from_dense([[1, 2], [3, 0]])
    np.testing.assert_allclose(run(labels, logits), loss(labels, logits))
    too_long = tf.sparse.from_dense([[1, 1, 1, 1], [3, 0, 0, 0]])  # needs three blanks between
    with pytest.raises(tf.errors.InvalidArgumentError, match="Not enough time"):
        run(too_long, logits)


X = np.random.default_rng(0).normal(size=[2, 3, 3, 2]).astype(np.float32)
LABELS = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
OF_UNKNOWN_RANK = {
    "average loss": (lambda x: tf.nn.compute_average_loss(x, sample_weight=x, global_batch_size=8), X[0, 0, 0]),
    "pairwise loss": (lambda x: tf.compat.v1.losses.mean_pairwise_squared_error(x, 2.0 * x * x), X[0, 0]),
    "smoothed labels": (
        lambda x: tf.compat.v1.losses.softmax_cross_entropy(x, 2.0 * x, label_smoothing=0.2),
        LABELS,
    ),
    "sparse times dense": (
        lambda x: (tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2]) * x).values,
        LABELS + 1.0,
    ),
    "rows of a tensor": (lambda x: tf.RaggedTensor.from_tensor(x, ragged_rank=2).flat_values, X),
    "rows without padding": (lambda x: tf.RaggedTensor.from_tensor(x, padding=0.0).row_lengths(), LABELS),
    "rows of lengths": (lambda x: tf.RaggedTensor.from_tensor(x, lengths=[1, 2]).flat_values, X),
    "transposed convolution": (
        lambda x: tf.nn.conv2d_transpose(x, tf.ones([3, 3, 1, 2]), [2, 6, 6, 1], 2, "SAME"),
        X,
    ),
    "top k": (lambda x: tf.math.in_top_k([1, 0], x, 1), LABELS),
    "accidental hits": (
        lambda x: tf.nn.compute_accidental_hits(tf.cast(x, tf.int64), [1, 2, 0], num_true=2)[2],
        LABELS,
    ),
}


@pytest.mark.parametrize("what", OF_UNKNOWN_RANK)
def test_unknown_ranks(what):
    """As eagerly: in a function, and in a graph of TensorFlow 1, where no call gives an example."""
    function, x = OF_UNKNOWN_RANK[what]
    expected = function(tf.constant(x)).numpy()
    run = tf.function(function, input_signature=[tf.TensorSpec(None)])
    np.testing.assert_allclose(run(x), expected, rtol=1e-5)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = tf.compat.v1.placeholder(tf.float32)
        np.testing.assert_allclose(session.run(function(given), {given: x}), expected, rtol=1e-5)


def test_row_numbers_in_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rows = tf.RaggedTensor.from_value_rowids(tf.constant([1.0, 2.0, 3.0]), [0, 0, 2], nrows=4)
        np.testing.assert_array_equal(session.run(rows.row_splits), [0, 2, 2, 3, 3])
