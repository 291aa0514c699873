"""Fourier and cosine transforms against NumPy and SciPy, frames and windows, and their gradients."""

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import tapeflow as tf

LENGTHS = [
    *range(1, 40),
    49,
    64,
    97,
    100,
    101,
    121,
    127,
    128,
    210,
    257,
    360,
    509,
    1000,
    1009,
    1024,
    1155,
    2047,
    4096,
    10007,
]
rng = np.random.default_rng(0)


def numbers(*shape, complex_=True):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if complex_ else real


def close(got, expected, accuracy=2e-15):
    scale = max(1e-300, np.max(np.abs(expected), initial=0))
    assert got.shape == expected.shape
    assert np.max(np.abs(np.asarray(got) - expected), initial=0) <= accuracy * scale


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n):
    for batch in ((), (3,), (19,)) if n < 2000 else ((),):
        x, real = numbers(*batch, n), numbers(*batch, n, complex_=False)
        half = numbers(*batch, n // 2 + 1)
        close(tf.signal.fft(x), np.fft.fft(x))
        close(tf.signal.ifft(x), np.fft.ifft(x))
        close(tf.signal.rfft(tf.constant(real)), np.fft.rfft(real))
        close(tf.signal.irfft(tf.constant(half), [n]), np.fft.irfft(half, n))
        single = x.astype(np.complex64)
        close(tf.signal.fft(single), np.fft.fft(x), 5e-7)
        close(tf.signal.rfft(tf.constant(real.astype(np.float32))), np.fft.rfft(real), 5e-7)


def test_several_dimensions():
    x = numbers(3, 4, 5, 6)
    close(tf.signal.fft2d(x), np.fft.fft2(x))
    close(tf.signal.ifft2d(x), np.fft.ifft2(x))
    close(tf.signal.fft3d(x), np.fft.fftn(x, axes=(1, 2, 3)))
    close(tf.signal.ifft3d(x), np.fft.ifftn(x, axes=(1, 2, 3)))
    real = tf.constant(x.real)
    close(tf.signal.rfft2d(real), np.fft.rfft2(x.real))
    close(tf.signal.rfft3d(real), np.fft.rfftn(x.real, axes=(1, 2, 3)))
    close(tf.signal.irfft2d(tf.constant(x)), np.fft.irfft2(x))
    close(tf.signal.irfft3d(tf.constant(x), [4, 5, 9]), np.fft.irfftn(x, (4, 5, 9), axes=(1, 2, 3)))
    close(tf.signal.rfft2d(real, [7, 4]), np.fft.rfft2(x.real, (7, 4)))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_any_dimensions(norm):
    x = numbers(3, 4, 5)
    for axes in (None, [0], [1], [0, 2], [2, 0], [-1, 1]):
        close(tf.signal.fftnd(x, axes=axes, norm=norm), np.fft.fftn(x, axes=axes, norm=norm))
        close(tf.signal.ifftnd(x, axes=axes, norm=norm), np.fft.ifftn(x, axes=axes, norm=norm))
        real = tf.constant(x.real)
        close(tf.signal.rfftnd(real, axes=axes, norm=norm), np.fft.rfftn(x.real, axes=axes, norm=norm))
    lengths, axes = [3, 7], [2, 1]
    close(tf.signal.fftnd(x, lengths, axes, norm), np.fft.fftn(x, lengths, axes, norm))
    close(tf.signal.irfftnd(tf.constant(x), lengths, axes, norm), np.fft.irfftn(x, lengths, axes, norm))


def test_dtypes_and_empty():
    assert tf.signal.fft([1.0, 2.0]).dtype == tf.complex64
    assert tf.signal.fft(np.ones(2, np.complex128)).dtype == tf.complex128
    assert tf.signal.rfft(np.ones(4)).dtype == tf.complex64
    assert tf.signal.rfft(tf.ones([4], tf.float64)).dtype == tf.complex128
    assert tf.signal.fft(tf.zeros([0, 4], tf.complex64)).shape == [0, 4]
    assert tf.signal.rfft(tf.zeros([2, 0])).shape == [2, 0]
    assert tf.signal.irfft(tf.ones([2, 1], tf.complex64)).shape == [2, 0]
    close(tf.signal.irfft(tf.constant([1 + 5j, 2, 3, 4 + 9j]), [4]), np.fft.irfft([1, 2, 3], 4))


def gradient(function, x, seed=0):
    """The gradient of a random linear function of the result, and the same by finite differences."""
    x = tf.constant(x)
    y = function(x)
    state = np.random.default_rng(seed)
    weight = state.normal(size=y.shape) + (1j * state.normal(size=y.shape) if y.dtype.is_complex else 0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    got = tape.gradient(y, x, output_gradients=tf.constant(weight, y.dtype)).numpy()
    expected = np.zeros_like(got)
    for unit in (1, 1j) if got.dtype.kind == "c" else (1,):
        for i in range(got.size):
            step = np.zeros(got.size, got.dtype)
            step[i] = unit
            change = function(tf.constant(step.reshape(got.shape))).numpy()  # all these functions are linear
            expected.reshape(-1)[i] += unit * np.sum(np.real(np.conj(weight) * change))
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 8])
def test_gradients_of_transforms(n):
    gradient(tf.signal.fft, numbers(2, n))
    gradient(tf.signal.ifft, numbers(n))
    gradient(tf.signal.rfft, numbers(2, n, complex_=False))
    gradient(lambda x: tf.signal.rfft(x, [4]), numbers(n, complex_=False))
    gradient(lambda x: tf.signal.irfft(x, [n]), numbers(2, n // 2 + 1))
    gradient(lambda x: tf.signal.irfft(x, [5]), numbers(n))
    gradient(tf.signal.rfft2d, numbers(3, n, complex_=False))
    gradient(lambda x: tf.signal.irfft2d(x, [3, n]), numbers(3, n // 2 + 1))
    gradient(tf.signal.rfft3d, numbers(2, 3, n, complex_=False))
    gradient(lambda x: tf.signal.irfft3d(x, [2, 3, n]), numbers(2, 3, n // 2 + 1))
    gradient(lambda x: tf.signal.fftnd(x, [3, 3], [0, 2]), numbers(2, 2, n))


def test_forward_mode_and_second_order():
    x = tf.constant(numbers(6, complex_=False))
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = tf.signal.rfft(x)
    close(forward.jvp(y), np.fft.rfft(np.ones(6)))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            energy = tf.reduce_sum(tf.square(tf.abs(tf.signal.fft(tf.cast(x, tf.complex128)))))
        dx = inner.gradient(energy, x)
    np.testing.assert_allclose(dx, 12 * x.numpy(), rtol=1e-12)
    np.testing.assert_allclose(outer.gradient(dx, x), np.full(6, 12.0), rtol=1e-12)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(kind, norm):
    if (kind, norm) == (1, "ortho"):
        with pytest.raises(ValueError, match="Type-I"):
            tf.signal.dct(tf.ones([4]), 1, norm=norm)
        return
    for n in (2, 3, 8, 15):
        x = numbers(2, n, complex_=False)
        close(tf.signal.dct(x, kind, norm=norm), scipy.fft.dct(x, kind, norm=norm), 1e-14)
        close(tf.signal.dct(x, kind, n=5, norm=norm), scipy.fft.dct(x, kind, 5, norm=norm), 1e-14)
        inverse = tf.signal.idct(tf.signal.dct(x, kind, norm=norm), kind, norm=norm).numpy()
        close(inverse / (1 if norm else 2 * (n - 1 if kind == 1 else n)), x, 1e-14)
    gradient(lambda t: tf.signal.dct(t, kind, norm=norm), numbers(6, complex_=False))


def test_shifts():
    x = rng.normal(size=(4, 5))
    for axes in (None, 0, 1, [1], [-2, 1]):
        np.testing.assert_array_equal(tf.signal.fftshift(x, axes), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(tf.signal.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def test_frames():
    x = rng.normal(size=(2, 11, 3))
    for length, step in ((4, 2), (3, 3), (5, 2), (4, 7), (20, 1)):
        got = tf.signal.frame(x, length, step, axis=1).numpy()
        starts = range(0, max(0, 11 - length + 1), step)
        assert got.shape == (2, len(starts), length, 3)
        for i, s in enumerate(starts):
            np.testing.assert_array_equal(got[:, i], x[:, s : s + length])
        padded = tf.signal.frame(x, length, step, pad_end=True, pad_value=7.0, axis=-2).numpy()
        longer = np.pad(x, [(0, 0), (0, 40), (0, 0)], constant_values=7.0)
        assert padded.shape == (2, -(-11 // step), length, 3)
        for i in range(padded.shape[1]):
            np.testing.assert_array_equal(padded[:, i], longer[:, i * step : i * step + length])
    np.testing.assert_array_equal(tf.signal.frame([1.0, 2.0, 3.0], 0, 2).shape, [2, 0])


def test_overlap_and_add():
    for length, step in ((4, 2), (5, 2), (3, 3), (2, 4), (4, 1)):
        x = rng.normal(size=(2, 3, length))
        expected = np.zeros([2, length + 2 * step])
        for i in range(3):
            expected[:, i * step : i * step + length] += x[:, i]
        np.testing.assert_allclose(tf.signal.overlap_and_add(x, step), expected, atol=1e-12)
    gradient(lambda t: tf.signal.overlap_and_add(t, 2), numbers(3, 5, complex_=False))
    np.testing.assert_array_equal(tf.signal.overlap_and_add(tf.ones([0, 4]), 2), [0.0, 0.0])


def test_short_time_transform_and_back():
    x = tf.constant(rng.normal(size=(2, 64)))
    spectra = tf.signal.stft(x, 16, 4)
    assert spectra.shape == [2, 13, 9]
    frame = x.numpy()[0, 8:24] * scipy.signal.get_window("hann", 16)
    close(spectra[0, 2], np.fft.rfft(frame), 1e-14)
    back = tf.signal.inverse_stft(spectra, 16, 4, window_fn=tf.signal.inverse_stft_window_fn(4))
    np.testing.assert_allclose(back[:, 16:48], x[:, 16:48], atol=1e-12)
    gradient(lambda t: tf.signal.stft(t, 6, 3, fft_length=7, pad_end=True), numbers(13, complex_=False))


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_mdct_and_back(norm):
    x = tf.constant(rng.normal(size=32))
    frames = tf.signal.mdct(x, 8, norm=norm, pad_end=True)
    back = tf.signal.inverse_mdct(frames, norm=norm)
    np.testing.assert_allclose(back[4:32], x[4:32], atol=1e-12)
    with pytest.raises(ValueError, match="multiple of 4"):
        tf.signal.mdct(x, 6)


def test_windows():
    for n in (1, 2, 7, 8):
        hann = scipy.signal.windows.hann(n, sym=n % 2 == 1)
        np.testing.assert_allclose(tf.signal.hann_window(n, dtype=tf.float64), hann, atol=1e-15)
        flat = scipy.signal.windows.hamming(n) if n > 1 else np.ones(1)
        np.testing.assert_allclose(tf.signal.hamming_window(n, False, tf.float64), flat, atol=1e-15)
    half = tf.signal.vorbis_window(8, tf.float64).numpy()
    np.testing.assert_allclose(half[:4] ** 2 + half[4:] ** 2, np.ones(4))
    with pytest.raises(ValueError, match="floating"):
        tf.signal.hann_window(4, dtype=tf.int32)


def test_kaiser_windows():
    np.testing.assert_allclose(
        tf.signal.kaiser_window(9, 8.0, tf.float64), scipy.signal.windows.kaiser(9, 8.0), rtol=1e-6
    )
    half = tf.signal.kaiser_bessel_derived_window(8, 4.0, tf.float64).numpy()
    np.testing.assert_allclose(half[:4] ** 2 + half[4:] ** 2, np.ones(4))


def test_mel():
    weights = tf.signal.linear_to_mel_weight_matrix(3, 8, dtype=tf.float64)
    np.testing.assert_allclose(weights[1], [0.98019228, 0.01980772, 0.0], atol=1e-8)
    np.testing.assert_allclose(weights[5], [0.0, 0.0, 0.55438083], atol=1e-8)
    with pytest.raises(ValueError, match="Nyquist"):
        tf.signal.linear_to_mel_weight_matrix(sample_rate=4000)
    x = rng.normal(size=(2, 6))
    expected = scipy.fft.dct(x, 2) / np.sqrt(12)
    np.testing.assert_allclose(tf.signal.mfccs_from_log_mel_spectrograms(x), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "at least", lambda: tf.signal.rfft(1.0)),
        (tf.errors.InvalidArgumentError, "rank of at least 2", lambda: tf.signal.fft2d(tf.constant([1j]))),
        (ValueError, "RFFT requires", lambda: tf.signal.rfft(tf.constant([1, 2]))),
        (ValueError, "IRFFT requires", lambda: tf.signal.irfft(tf.constant([1.0, 2.0]))),
        (tf.errors.InvalidArgumentError, "fft_length must have shape", lambda: tf.signal.rfft([1.0, 2.0], [2, 3])),
        (ValueError, "must be >= 0", lambda: tf.signal.rfft([1.0, 2.0], [-2])),
        (NotImplementedError, "axis must be -1", lambda: tf.signal.dct(tf.ones([2, 3]), axis=0)),
        (TypeError, "float32", lambda: tf.signal.dct([1, 2])),
        (ValueError, "Types I", lambda: tf.signal.dct(tf.ones([4]), 5)),
        (IndexError, "range", lambda: tf.signal.frame(tf.ones([5]), 2, 1, axis=2)),
        (tf.errors.InvalidArgumentError, "frame_step", lambda: tf.signal.frame(tf.ones([5]), 2, 0)),
        (ValueError, "must be an integer", lambda: tf.signal.overlap_and_add(tf.ones([3, 2]), 1.0)),
        (tf.errors.InvalidArgumentError, "range", lambda: tf.signal.fftshift(tf.range(6), 3)),
    ],
)  # fmt: skip
def test_errors(error, words, call):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("rows", [1, 5, 8, 19, 33])
@pytest.mark.parametrize("n", [2, 7, 8, 30, 64, 74, 200])
def test_transforms_of_several_rows(rows, n):
    """Rows are transformed side by side, eight at a time and the rest one by one."""
    random = np.random.default_rng(rows * n)
    for real, dtype, tolerance in ((np.float32, np.complex64, 3e-5), (np.float64, np.complex128, 1e-12)):
        x = random.standard_normal((rows, n)).astype(real)
        z = (random.standard_normal((rows, n)) + 1j * random.standard_normal((rows, n))).astype(dtype)
        half = z[:, : n // 2 + 1]
        for ours, numpys in (
            (tf.signal.rfft(tf.constant(x)), np.fft.rfft(x)),
            (tf.signal.irfft(tf.constant(half), [n]), np.fft.irfft(half, n)),
            (tf.signal.fft(tf.constant(z)), np.fft.fft(z)),
            (tf.signal.ifft(tf.constant(z)), np.fft.ifft(z)),
        ):
            np.testing.assert_allclose(ours, numpys, atol=tolerance * np.sqrt(n))
