"""The array API standard: arrays on tensors, dtypes, assignments, gradients, and code written for the standard."""

import numpy as np
import pytest

import tapeflow as tf
import tapeflow.array_api as xp


def test_tensors_and_variables_know_the_namespace():
    for x in (tf.constant([1.0]), tf.Variable([1.0]), xp.asarray([1.0])):
        assert x.__array_namespace__() is xp
        assert x.__array_namespace__(api_version="2024.12") is xp
        with pytest.raises(ValueError, match=r"versions .* exist; got '1999.12'"):
            x.__array_namespace__(api_version="1999.12")


def test_every_name_of_the_list_is_there():
    for module in (xp, xp.linalg, xp.fft):
        assert len(module.__all__) == len(set(module.__all__))
        for name in module.__all__:
            assert getattr(module, name) is not None or name == "newaxis"


@pytest.mark.parametrize(
    ("one", "two", "result"),
    [
        ("int8", "int16", "int16"),
        ("uint8", "int8", "int16"),
        ("uint32", "int8", "int64"),
        ("float32", "float64", "float64"),
        ("float64", "complex64", "complex128"),
        ("int64", "float32", "float32"),
        ("uint64", "int8", None),
        ("bool", "int8", None),
    ],
)
def test_promotion(one, two, result):
    x, y = xp.ones(2, dtype=getattr(xp, one)), xp.ones(2, dtype=getattr(xp, two))
    if result is None:
        with pytest.raises(TypeError, match="have no common dtype"):
            x + y
        return
    assert (x + y).dtype == (y + x).dtype == getattr(xp, result) == xp.result_type(x, y)


def test_python_numbers_take_the_dtype_of_the_array():
    assert (xp.ones(2, dtype=xp.uint8) + 1).dtype == xp.uint8
    assert (2.0 * xp.ones(2, dtype=xp.float64)).dtype == xp.float64
    assert (xp.ones(2, dtype=xp.float32) * 1j).dtype == xp.complex64
    with pytest.raises(OverflowError):
        xp.ones(2, dtype=xp.uint8) + 256
    with pytest.raises(TypeError):
        xp.asarray([True]) + 1


def test_elements_can_be_set():
    x = xp.reshape(xp.arange(6.0), (2, 3))
    x[0, 1:] = xp.asarray([7.0, 8.0])
    x[x > 7.5] = -1.0
    x[1, ::-1] = x[0, :]
    np.testing.assert_array_equal(np.asarray(x), [[0, 7, -1], [-1, 7, 0]])
    with pytest.raises(IndexError, match="out of bounds"):
        x[2, 0] = 1.0
    with pytest.raises(TypeError, match="cannot be set"):
        xp.arange(3)[0] = 0.5
    x += 1.0
    with pytest.raises(TypeError, match="in place"):
        x += 1j


def test_an_array_that_is_not_copied_sees_assignments():
    for share in (xp.asarray, xp.from_dlpack, lambda x, **copy: xp.astype(x, x.dtype, copy=False)):
        x = xp.asarray([1, 2], dtype=xp.uint8)
        shared = share(x, copy=False)
        x[0] = 7
        assert int(shared[0]) == 7
    x = xp.asarray([1, 2])
    copied = xp.asarray(x, copy=True)
    x[0] = 7
    assert int(copied[0]) == 1


def test_foreign_arrays_are_not_taken_without_a_copy():
    assert int(xp.from_dlpack(np.array([3]))[0]) == 3
    with pytest.raises(BufferError, match="from_dlpack: elements of a ndarray must be copied"):
        xp.from_dlpack(np.array([3]), copy=False)


def test_gradients_go_through_assignments():
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        a = xp.asarray(v) * 2.0
        a[0] = a[1] ** 2
        y = xp.sum(a)
        norm = xp.linalg.vector_norm(v)
    np.testing.assert_allclose(tape.gradient(y, v), [0.0, 34.0])
    np.testing.assert_allclose(tape.gradient(norm, v), [0.6, 0.8], rtol=1e-6)


def test_arrays_are_sources_of_gradients():
    x = xp.asarray([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(tf.convert_to_tensor(x))
        y = xp.sum(x**3)
    gradient = tape.gradient(y, x)
    assert isinstance(gradient, xp.Array)
    np.testing.assert_allclose(np.asarray(gradient), [3.0, 12.0])


def test_arrays_are_arguments_of_functions():
    @tf.function
    def double(x):
        return 2 * xp.sin(x)

    x = xp.asarray([1.0, 2.0])
    result = double(x)
    assert isinstance(result, xp.Array)
    np.testing.assert_allclose(np.asarray(result), 2 * np.sin([1.0, 2.0]), rtol=1e-6)


def test_code_of_the_standard_runs_with_tensors():
    def softmax(x):
        xp = x.__array_namespace__()
        powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    x = tf.Variable([[1.0, 2.0, 4.0]])
    with tf.GradientTape() as tape:
        y = softmax(x)[0, 2]
    expected = np.exp([1.0, 2, 4]) / np.exp([1.0, 2, 4]).sum()
    assert float(y) == pytest.approx(expected[2])
    np.testing.assert_allclose(tape.gradient(y, x)[0], expected[2] * (np.eye(3)[2] - expected), rtol=1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 3, 7])
def test_fourier_transforms(name, norm, n):
    x = np.random.default_rng(0).normal(size=[2, 5])
    found = getattr(xp.fft, name)(xp.asarray(x), n=n, norm=norm, axis=1)
    np.testing.assert_allclose(np.asarray(found), getattr(np.fft, name)(x, n=n, norm=norm, axis=1), atol=1e-12)


def test_real_transforms_of_several_axes():
    x = np.random.default_rng(0).normal(size=[4, 6])
    spectrum = xp.fft.rfftn(xp.asarray(x))
    np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfftn(x), atol=1e-12)
    np.testing.assert_allclose(np.asarray(xp.fft.irfftn(spectrum)), x, atol=1e-12)


def test_linear_algebra():
    a = np.random.default_rng(0).normal(size=[3, 3, 3])
    x = xp.asarray(a)
    np.testing.assert_allclose(np.asarray(xp.linalg.pinv(x)), np.linalg.pinv(a), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(xp.linalg.matrix_power(x, -2)), np.linalg.matrix_power(a, -2), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(xp.linalg.matrix_norm(x, ord="nuc")), np.linalg.norm(a, "nuc", (1, 2)))
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(np.asarray((u * s[:, None, :]) @ vh), a, rtol=1e-6)


def test_what_the_namespace_has():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == xp.float32
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    with pytest.raises(ValueError, match="the only device is 'cpu'"):
        xp.zeros(3, device="gpu")


@pytest.mark.parametrize("shape, mask", [((0,), (1,)), ((3,), (2,)), ((3,), (1,)), ((2, 2), (2, 1))])
def test_masks_of_other_sizes_are_refused(shape, mask):
    """Also masks in which nothing is set."""
    x = xp.zeros(shape)
    for key in (xp.zeros(mask, dtype=xp.bool), xp.ones(mask, dtype=xp.bool)):
        with pytest.raises(IndexError, match="boolean index did not match"):
            x[key]
    assert xp.zeros((3,))[xp.zeros((0,), dtype=xp.bool)].shape == (0,)
