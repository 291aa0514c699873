"""Functions that asked for values or sizes while they were traced: they are written, and read back."""

import numpy as np
import pytest

import tapeflow as tf

RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.uniform(size=(2, 6, 5, 3)).astype(np.float32)
MATRICES = RANDOM.normal(size=(2, 3, 3)).astype(np.float32)
DIAGONALS = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
RIGHT = RANDOM.normal(size=(2, 4, 2)).astype(np.float32)
LOGITS = RANDOM.normal(size=(6, 2, 5)).astype(np.float32)
NUMBERS = np.array([3, 1, 3, 2], np.int64)


def sparse():
    return tf.sparse.from_dense(tf.constant([[0, 1, 3], [2, 0, 0]], tf.int64))


def floats():
    return tf.sparse.from_dense([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]])


def ragged():
    return tf.ragged.constant([[1, 2], [3], []], dtype=tf.int64)


def crossed(x):
    return tf.ragged.cross([x, x]), tf.ragged.cross_hashed([x, x], num_buckets=10)


def filter_gradients(x):
    x = tf.ensure_shape(x, [None, None, None, 3])
    filters, dy = tf.ones([2, 2, 3, 2]), tf.ones([2, 6, 5, 2])
    strides = [1, 1, 1, 1]
    return tf.raw_ops.Conv2DBackpropFilterV2(input=x, filter=filters, out_backprop=dy, strides=strides, padding="SAME")


def normalized_rows(x):
    """As layer normalization of Keras 2 does it: each row is a channel."""
    sizes = tf.shape(x)
    rows = sizes[0] * sizes[1]
    channels = tf.reshape(x, [1, rows, sizes[2], 1])
    ones, zeros = tf.ones([rows]), tf.zeros([rows])
    return tf.reshape(tf.compat.v1.nn.fused_batch_norm(channels, ones, zeros, data_format="NCHW")[0], sizes)


def through_jpeg(x):
    levels = tf.cast(x[0] * 255, tf.uint8)
    return tf.io.is_jpeg(tf.io.encode_jpeg(levels)), tf.io.decode_jpeg(tf.io.encode_jpeg(levels, quality=50))


FUNCTIONS = {
    "grayscale": (lambda x: tf.image.grayscale_to_rgb(tf.image.rgb_to_grayscale(x)), IMAGES),
    "colours": (lambda x: (tf.image.rgb_to_yuv(x), tf.image.yiq_to_rgb(x), tf.image.rgb_to_hsv(x)), IMAGES),
    "hue": (lambda x: tf.image.stateless_random_hue(x, 0.1, [1, 2]), IMAGES),
    "saturation": (lambda x: tf.image.stateless_random_saturation(x, 0.1, 0.5, [1, 2]), IMAGES),
    "crop": (lambda x: tf.image.stateless_random_crop(x, [2, 3, 3, 3], [1, 2]), IMAGES),
    "crop to a size": (lambda x: tf.image.stateless_random_crop(x, tf.shape(x) - [0, 2, 1, 0], [1, 2]), IMAGES),
    "dilation": (
        lambda x: tf.nn.dilation2d(x, tf.ones([2, 3, 3]), [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
        IMAGES,
    ),
    "erosion": (
        lambda x: tf.nn.erosion2d(x, tf.constant(IMAGES[0, :2, :2]), [1, 1, 1, 1], "VALID", "NHWC", [1, 2, 2, 1]),
        IMAGES,
    ),
    "convolution gradients": (filter_gradients, IMAGES),
    "jpeg": (through_jpeg, IMAGES),
    "jpeg quality": (lambda x: tf.image.stateless_random_jpeg_quality(x[0], 50, 80, [1, 2]), IMAGES),
    "lu": (lambda x: tf.linalg.lu_reconstruct(*tf.linalg.lu(x)), MATRICES),
    "lu solve": (lambda x: tf.linalg.lu_solve(*tf.linalg.lu(x), x), MATRICES[0]),
    "tridiagonal product": (
        lambda x: tf.linalg.tridiagonal_matmul(tf.ensure_shape(x, [None, 3, None]), tf.constant(RIGHT)),
        DIAGONALS,
    ),
    "tridiagonal eigenvalues": (lambda x: tf.linalg.eigh_tridiagonal(x[:, 0], x[:, 0, 1:]), DIAGONALS),
    "diagonals of a band": (
        lambda x: tf.raw_ops.MatrixDiagPartV3(
            input=x, k=tf.cast(tf.shape(x)[:2] - [3, 2], tf.int32), padding_value=9.0
        ),
        MATRICES,
    ),
    "normalized rows": (normalized_rows, DIAGONALS),
    "flips": (lambda x: tf.image.stateless_random_flip_left_right(x, [1, 2]), IMAGES),
    "ragged mask": (lambda x: tf.ragged.boolean_mask(x[0], x[0] > 0.0), MATRICES),
    "ragged mask of ragged rows": (lambda x: tf.ragged.boolean_mask(x, x > 1), ragged),
    "reflected": (lambda x: tf.pad(x, tf.shape(x)[:2, None] - [[1, 1], [2, 1]], "REFLECT"), MATRICES[0]),
    "mirrored": (lambda x: tf.pad(x, tf.shape(x)[:2, None] - [[1, 0], [2, 3]], "SYMMETRIC"), MATRICES[0]),
    "ctc": (lambda x: tf.nn.ctc_greedy_decoder(x, tf.fill(tf.shape(x)[1:2], 5)), LOGITS),
    "indicator": (lambda x: tf.sparse.to_indicator(x, 5), sparse),
    "sparse sums": (lambda x: tf.sparse.reduce_sum(x, 1, output_is_sparse=True), floats),
    "edit distance": (lambda x: tf.edit_distance(x, x), sparse),
    "serialized": (lambda x: tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(x), tf.float32, 2), floats),
    "serialized at once": (lambda x: tf.io.serialize_sparse(x), floats),
    "crosses": (crossed, ragged),
    "unique": (lambda x: tf.raw_ops.UniqueV2(x=x, axis=[0]), NUMBERS),
    "unique with counts": (lambda x: tf.raw_ops.UniqueWithCountsV2(x=x, axis=[0]), NUMBERS),
    "padded bytes": (
        lambda x: tf.raw_ops.DecodePaddedRaw(input_bytes=tf.strings.as_string(x), fixed_length=4, out_type=tf.uint8),
        NUMBERS,
    ),
}


def unknown(spec):
    if isinstance(spec, tf.RaggedTensorSpec):
        return spec
    kind = tf.SparseTensorSpec if isinstance(spec, tf.SparseTensorSpec) else tf.TensorSpec
    return kind([None] * spec.shape.rank, spec.dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_unknown_sizes_after_loading(name, tmp_path):
    if "jpeg" in name:
        pytest.importorskip("PIL")
    function, x = FUNCTIONS[name]
    x = x() if callable(x) else tf.constant(x)
    model = tf.Module()
    model.f = tf.function(function, input_signature=[unknown(tf.type_spec_from_value(x))], autograph=False)
    tf.saved_model.save(model, tmp_path)
    found, expected = tf.saved_model.load(tmp_path).f(x), function(x)
    for one, other in zip(*(tf.nest.flatten(value, expand_composites=True) for value in (found, expected))):
        assert one.dtype == other.dtype
        if one.dtype == tf.string or not one.dtype.is_floating:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["hann", "hamming", "kaiser", "vorbis", "kaiser_bessel_derived"])
def test_windows_whose_length_the_graph_knows(name, tmp_path):
    window = getattr(tf.signal, f"{name}_window")
    model = tf.Module()
    model.f = tf.function(window, input_signature=[tf.TensorSpec([], tf.int32)], autograph=False)
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path).f
    for length in (2, 8) if name == "kaiser_bessel_derived" else (1, 2, 5, 8):
        np.testing.assert_allclose(loaded(tf.constant(length)), window(length), atol=1e-6)


def test_channels_are_checked_when_the_graph_runs():
    @tf.function(input_signature=[tf.TensorSpec([None] * 4)])
    def f(x):
        return tf.image.rgb_to_yuv(x)

    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.ones([1, 2, 2, 6]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the last dimension must be 3"):
        tf.image.rgb_to_yuv(tf.ones([1, 2, 2, 6]))


def test_a_crop_that_does_not_fit_is_refused_when_the_graph_runs():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def f(x):
        return tf.image.stateless_random_crop(x, [3, 3], [1, 2])

    assert f(tf.ones([4, 3])).shape == [3, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Need value\.shape >= size"):
        f(tf.ones([2, 5]))


def test_scales_are_counted_when_the_graph_runs():
    @tf.function(input_signature=[tf.TensorSpec([None] * 4), tf.TensorSpec([None])])
    def f(x, scale):
        return tf.compat.v1.nn.fused_batch_norm(x, scale, tf.zeros(tf.shape(x)[3:]))[0]

    assert f(tf.ones([2, 2, 2, 3]), tf.ones([3])).shape == [2, 2, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="scale and offset must have the same number"):
        f(tf.ones([2, 2, 2, 3]), tf.ones([1]))
