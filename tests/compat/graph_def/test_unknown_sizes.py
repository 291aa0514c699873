"""Functions whose sizes only the running graph knows are written and read back, with their gradients inside."""

import numpy as np
import pytest

import tapeflow as tf

numpy = tf.experimental.numpy
RANDOM = np.random.default_rng(8)
SIGNALS = RANDOM.normal(size=(2, 40)).astype(np.float32)
IMAGES = RANDOM.uniform(size=(2, 9, 8, 3)).astype(np.float32)
LOGITS = RANDOM.normal(size=(4, 5)).astype(np.float32)
MATRICES = RANDOM.normal(size=(2, 3, 3)).astype(np.float32)


def flat(result):
    """The numbers of a result: complex ones as real and imaginary parts."""
    parts = [tf.convert_to_tensor(y) for y in tf.nest.flatten(result)]
    return [z for y in parts for z in ((tf.math.real(y), tf.math.imag(y)) if y.dtype.is_complex else (y,))]


def complex_of(x):
    return tf.complex(x, tf.sin(x))


def arrays(x):
    """Functions of `tf.experimental.numpy` that ask for the sizes of a matrix."""
    weights = tf.nn.softmax(x)
    order = tf.argsort(x)
    return [
        *(numpy.tile(x, [2, 1]), numpy.take(x, [0, 9], axis=1), numpy.roll(x, 1), numpy.diff(x, 2)),
        *(numpy.tril(x, -1), numpy.triu(x, 1), numpy.diagonal(x, 1), numpy.diagonal(x, -2), numpy.trace(x)),
        *(numpy.diag(x[0], -1), numpy.kron(x, x[:1]), *numpy.split(x, [1, 3], 1), *numpy.split(x, 2)),
        *(numpy.take_along_axis(x, order, 1), numpy.broadcast_arrays(x, x[:1])[1], numpy.full_like(x, x[0, 0])),
        *(numpy.var(x, 0, ddof=1), *numpy.average(x, 0, returned=True), numpy.average(x, 0, weights)),
    ]


def labels(x):
    """Runs of labels, and the different ones of each row."""
    numbers = tf.cast(x * 2, tf.int32)
    return [*tf.nn.collapse_repeated(numbers, tf.shape(x)[1] - [0, 1, 2, 3]), *tf.nn.ctc_unique_labels(numbers)]


DIFFERENTIABLE = {
    "arrays": (arrays, LOGITS),
    "frames added up": (lambda x: (tf.signal.overlap_and_add(x, 3), tf.signal.overlap_and_add(x, 5)), LOGITS),
    "cepstrum": (tf.signal.mfccs_from_log_mel_spectrograms, SIGNALS),
    "inverse stft of any frames": (lambda x: tf.signal.inverse_stft(complex_of(x), 8, 4), LOGITS),
    "stft": (lambda x: tf.signal.stft(x, 16, 8), SIGNALS),
    "stft to the end": (lambda x: tf.abs(tf.signal.stft(x, 16, 6, 32, pad_end=True)) ** 2, SIGNALS),
    "inverse stft": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8), SIGNALS),
    "frames": (lambda x: tf.signal.frame(x, 7, 3, axis=-2), IMAGES),
    "dct": (lambda x: tf.signal.dct(x, norm="ortho"), SIGNALS),
    "idct": (lambda x: tf.signal.idct(x, type=3), SIGNALS),
    "dct 1": (lambda x: tf.signal.dct(x, type=1), SIGNALS),
    "dct 4": (lambda x: tf.signal.dct(x, type=4), SIGNALS),
    "shift": (lambda x: (tf.signal.fftshift(x), tf.signal.ifftshift(x, [1])), SIGNALS),
    "fft": (lambda x: tf.signal.fft(complex_of(x)), SIGNALS),
    "ifft2d": (lambda x: tf.signal.ifft2d(complex_of(x)), MATRICES),
    "rfft": (lambda x: tf.signal.rfft(x), SIGNALS[:, :37]),
    "rfft2d": (lambda x: tf.signal.rfft2d(x), MATRICES),
    "complex product": (lambda x: tf.linalg.matmul(complex_of(x), complex_of(x), adjoint_b=True), MATRICES),
    "sobel": (tf.image.sobel_edges, IMAGES),
    "repeat": (lambda x: tf.repeat(x, tf.range(tf.shape(x)[0]) + 1, 0) * x[1], LOGITS),
    "standardized": (tf.image.per_image_standardization, IMAGES),
    "similarity": (lambda x: tf.image.ssim(x, x[:, ::-1], 1.0, filter_size=3), IMAGES),
    "scales": (
        lambda x: tf.image.ssim_multiscale(x, x * 0.9 + 0.05, 1.0, power_factors=(0.4, 0.6), filter_size=3),
        IMAGES,
    ),
    "weighted moments": (lambda x: tf.nn.weighted_moments(x, [0], tf.nn.sigmoid(x)), LOGITS),
    "transposed convolution": (
        lambda x: tf.nn.conv2d_transpose(x, tf.ones([3, 3, 2, 3]) * 0.1, tf.shape(x) * [1, 2, 2, 0] + [0, 0, 0, 2], 2),
        IMAGES,
    ),
    "gather by batch": (lambda x: tf.gather(x, [[0, 2], [1, 1]], axis=2, batch_dims=1), MATRICES),
    "diagonals": (lambda x: (tf.linalg.diag_part(x, k=(-1, 1)), tf.linalg.diag(x), tf.linalg.trace(x)), MATRICES),
    "set diagonal": (lambda x: tf.linalg.set_diag(x, x[:, 0]), MATRICES),
    "solve": (lambda x: tf.linalg.solve(x + 3 * tf.eye(3), x), MATRICES),
    "segment maximum": (lambda x: tf.math.unsorted_segment_max(x, [0, 1, 0, -1], 3)[:2], LOGITS),
    "eigenvectors": (lambda x: tf.linalg.eigh(x + tf.linalg.matrix_transpose(x)), MATRICES),
    "eigenvalues": (tf.linalg.eigvalsh, MATRICES),
    "complex eigenvectors": (lambda x: tf.abs(tf.linalg.eig(x)[1]) ** 2, MATRICES),
    "complex eigenvalues": (lambda x: tf.abs(tf.linalg.eigvals(x)), MATRICES),
    "singular values": (lambda x: tf.linalg.svd(x, compute_uv=False), MATRICES),
    "singular vectors": (lambda x: [y**2 for y in tf.linalg.svd(x[:, :2])], MATRICES),
    "wide factors": (lambda x: [y**2 for y in tf.linalg.qr(x[:, :2])], MATRICES),
    "one factor": (lambda x: tf.linalg.qr(x)[1] ** 2, MATRICES),
    "tall factors": (lambda x: [y**2 for y in tf.linalg.qr(x[..., :2])], MATRICES),
    "running logarithms": (
        lambda x: (
            tf.math.cumulative_logsumexp(x, 1, reverse=True),
            tf.math.cumulative_logsumexp(x, 0, exclusive=True)[1:],
        ),
        LOGITS,
    ),
    "square root": (lambda x: tf.linalg.sqrtm(tf.matmul(x, x, transpose_b=True) + tf.eye(3)), MATRICES),
    "exponential": (lambda x: tf.linalg.expm(x * 0.3), MATRICES),
    "logarithm": (
        lambda x: tf.linalg.logm(tf.cast(tf.matmul(x, x, transpose_b=True) + tf.eye(3), tf.complex64)),
        MATRICES,
    ),
    "pseudo-inverse": (tf.linalg.pinv, MATRICES),
    "running products": (
        lambda x: (tf.math.cumprod(x, 1), tf.math.cumprod(x, -1, exclusive=True, reverse=True)),
        MATRICES,
    ),
    "segment product": (
        lambda x: tf.math.unsorted_segment_prod(x * [[1.0], [0.0], [1.0], [1.0]], [0, 1, 0, -1], 3),
        LOGITS,
    ),
    "rows one by one": (lambda x: tf.stack(tf.unstack(x[:, :3], 3, axis=1)), LOGITS),
    "rows by a map": (lambda x: tf.vectorized_map(lambda row: row * tf.reduce_sum(row), x), LOGITS),
    "pool with places": (lambda x: tf.nn.max_pool_with_argmax(x, 2, 1, "SAME")[0], IMAGES),
    "scattered maximum": (lambda x: tf.tensor_scatter_nd_max(x, [[0], [2]], tf.cos(x[:2])), LOGITS),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_values_and_gradients(name, tmp_path):
    function, x = DIFFERENTIABLE[name]

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            ys = flat(function(x))
            total = tf.add_n([tf.reduce_sum(y * tf.stop_gradient(tf.cos(y))) for y in ys])
        return [*ys, tape.gradient(total, x)]

    module = tf.Module()
    module.f = tf.function(run, input_signature=[tf.TensorSpec([None] * (x.ndim - 1) + [x.shape[-1] if x.ndim == 4 else None])])  # fmt: skip  # noqa: E501
    tf.saved_model.save(module, tmp_path)
    for found, expected in zip(tf.saved_model.load(tmp_path).f(x), run(tf.constant(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-4)


SECOND = {
    "deviation": (lambda x: tf.math.reduce_std(x, 0), LOGITS),
    "logarithm of sums": (lambda x: tf.reduce_logsumexp(x, 1), LOGITS),
    "spectrum": (lambda x: tf.abs(tf.signal.fft2d(tf.cast(x, tf.complex64))), LOGITS),
    "column": (lambda x: tf.linalg.matvec(x, x[:, 0] ** 2, transpose_a=True), LOGITS),
    "outer": (lambda x: x[:, None] * x[None] ** 2, LOGITS),
    "halves": (lambda x: tf.nn.crelu(x) ** 3, LOGITS),
    "determinant": (lambda x: tf.linalg.logdet(tf.matmul(x, x, transpose_b=True) + tf.eye(3)), MATRICES),
    "exponential": (lambda x: tf.linalg.expm(x * 0.3), MATRICES),
    "products": (lambda x: tf.reduce_prod(x), MATRICES),
    "backwards": (lambda x: x[::-1, 1:] ** 3, LOGITS),
    "pool": (lambda x: tf.nn.max_pool2d(x**3, 2, 1, "SAME"), IMAGES),
    "einsum": (lambda x: tf.einsum("ij,kj,kl->il", x, x, x), LOGITS),
}


@pytest.mark.parametrize("name", SECOND)
def test_derivatives_of_second_order(name, tmp_path):
    """They are written as what the rules of first order became: a rule traced for unknown sizes gave wrong numbers."""
    function, x = SECOND[name]

    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                total = tf.reduce_sum(tf.sin(function(x)))
            dx = inner.gradient(total, x)
            again = tf.reduce_sum(tf.sin(dx))
        return dx, outer.gradient(again, x)

    module = tf.Module()
    sizes = [None] * (x.ndim - 1) + [x.shape[-1] if x.ndim == 4 else None]
    module.f = tf.function(run, input_signature=[tf.TensorSpec(sizes)])
    tf.saved_model.save(module, tmp_path)
    for found, expected in zip(tf.saved_model.load(tmp_path).f(x), run(tf.constant(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=5e-4)


INTEGERS = {
    "edges in any channel": (tf.image.sobel_edges, IMAGES),
    "labels": (lambda x: tf.concat([tf.reshape(tf.cast(y, tf.float32), [-1]) for y in labels(x)], 0), LOGITS),
    "equal arrays": (lambda x: tf.stack([numpy.array_equal(x, y) for y in (x, x[1:], x[:1], x + 1)]), LOGITS),
    "in the top": (lambda x: tf.math.in_top_k(tf.constant([0, 1, 9, 2]), x, 2), LOGITS),
    "searched": (lambda x: tf.searchsorted(tf.sort(x), x[:, :3], side="right"), LOGITS),
    "confused": (lambda x: tf.math.confusion_matrix(tf.argmax(x, 1), tf.argmin(x, 1)), LOGITS),
    "confused of 7": (lambda x: tf.math.confusion_matrix(tf.argmax(x, 1), tf.argmin(x, 1), 7), LOGITS),
    "dilated pool": (lambda x: tf.nn.pool(x, [2, 3], "MAX", dilations=[2, 2], padding="VALID"), IMAGES),
    "inverse of rfft": (lambda x: tf.signal.irfft(tf.signal.rfft(x)), SIGNALS),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_values(name, tmp_path):
    function, x = INTEGERS[name]
    module = tf.Module()
    module.f = tf.function(function, input_signature=[tf.TensorSpec([None] * x.ndim)])
    tf.saved_model.save(module, tmp_path)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).f(x), function(tf.constant(x)), rtol=1e-4, atol=1e-5)


def test_classes_out_of_bound_are_an_error_when_the_graph_runs():
    run = tf.function(lambda x: tf.math.confusion_matrix(x, x, 3), input_signature=[tf.TensorSpec([None], tf.int32)])
    np.testing.assert_array_equal(run([0, 2, 2]), [[1, 0, 0], [0, 0, 0], [0, 0, 2]])
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="confusion_matrix"):
            run(wrong)


def test_safe_lookups_of_unknown_sizes(tmp_path):
    table = tf.Variable(LOGITS)
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, -1], tf.int64), [3, 2])
    module = tf.Module()
    module.table = table
    module.f = tf.function(
        lambda ids: tf.nn.safe_embedding_lookup_sparse(table, ids), [tf.SparseTensorSpec([None, None], tf.int64)]
    )
    tf.saved_model.save(module, tmp_path)
    expected = tf.nn.safe_embedding_lookup_sparse(table, ids)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).f(ids), expected, rtol=1e-6)


@pytest.mark.parametrize("sampler", ["uniform_candidate_sampler", "log_uniform_candidate_sampler"])
def test_candidates_are_drawn_anew(sampler, tmp_path):
    module = tf.Module()
    draw = getattr(tf.random, sampler)
    module.f = tf.function(lambda x: draw(x, 2, 4, True, 9), input_signature=[tf.TensorSpec([None, 2], tf.int64)])
    tf.saved_model.save(module, tmp_path)
    sampled, true_expected, expected = tf.saved_model.load(tmp_path).f(tf.constant([[1, 2], [3, 4], [0, 8]], tf.int64))
    assert len(set(sampled.numpy().tolist())) == 4
    assert true_expected.shape == [3, 2]
    assert expected.shape == [4]
