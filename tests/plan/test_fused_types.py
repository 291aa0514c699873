"""Fusions of half types, integers and complex numbers: what joins, and that values are those of eager operations."""

import numpy as np
import pytest

import tapeflow as tf

EDGES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 1e-7, 3e38, 65504, 1.5, -2.5], np.float32)


def steps(function, *args, stage="elementwise-fusion"):
    text = tf.function(function).experimental_get_compiler_ir(*args)(stage=f"after-{stage}")
    return text.split("step ")[1:]


def normal(*shape, dtype=tf.float32, seed=0):
    return tf.cast(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), dtype)


def assert_same_bits(function, *args):
    eager, compiled = function(*args), tf.function(function)(*args)
    assert eager.dtype == compiled.dtype
    np.testing.assert_array_equal(compiled.numpy().view(np.uint8), eager.numpy().view(np.uint8))


HALF_PROGRAMS = [
    lambda x: tf.tanh(x * 2 + tf.exp(-x)) / (tf.sigmoid(x) + 1),
    lambda x: tf.where(x > 0, x * 3, -x) + tf.maximum(x, tf.cast(0.5, x.dtype)),
    lambda x: tf.cast(tf.cast(x, tf.float32) * 1.1, x.dtype) + x,
    lambda x: tf.cast(x > 0, x.dtype) * x + x[0],
    lambda x: x[:, ::2] * 3 + x[:, 1::2],
    lambda x: tf.square(x - tf.reduce_max(x, 1, keepdims=True)),
]


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("program", HALF_PROGRAMS)
def test_half_types_are_rounded_after_each_operation(program, dtype):
    assert_same_bits(program, normal(70, 300, dtype=dtype))
    assert_same_bits(program, normal(3, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_types_at_the_edges(dtype):
    x = tf.cast(np.tile(EDGES, 30), dtype)

    def program(x):
        return tf.where(x < 1, tf.abs(x) * x, x / 3) - tf.maximum(x, tf.cast(1, dtype))

    np.testing.assert_array_equal(
        tf.function(program)(x).numpy().astype(np.float32), program(x).numpy().astype(np.float32)
    )


def test_half_types_join_one_fusion():
    x = normal(64, 64, dtype=tf.bfloat16)
    assert len(steps(lambda x: tf.cast(tf.nn.relu(x * 2 + 1), tf.float32) - 3.0, x)) == 1


def test_a_product_of_half_types_is_one_of_floats_with_an_epilogue():
    x, w, b = normal(64, 32, dtype=tf.float16), normal(32, 48, dtype=tf.float16), normal(48, dtype=tf.float16)

    def layer(x, w, b):
        return tf.nn.relu(x @ w + b)

    product = next(s for s in steps(layer, x, w, b, stage="epilogue-fusion") if "MatMul" in s)
    assert "float32[64,48] = MatMul" in product
    assert "epilogue" in product
    assert "float16[64,48] = Relu" in product
    assert_same_bits(layer, x, w, b)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_work_on_half_types_that_is_rounded_once(dtype):
    x, images = normal(40, 30, dtype=dtype), normal(2, 8, 8, 3, dtype=dtype)
    kernel = normal(3, 3, 3, 4, dtype=dtype, seed=1)
    assert_same_bits(lambda x: tf.matmul(x, x, transpose_b=True), x)
    assert_same_bits(tf.nn.softmax, x)
    assert_same_bits(lambda x: tf.reduce_max(x, 0), x)
    assert_same_bits(lambda a, k: tf.nn.conv2d(a, k, 1, "SAME"), images, kernel)
    mean = tf.function(lambda x: tf.reduce_mean(x * 2, 0))(x)
    np.testing.assert_allclose(mean.numpy().astype(np.float32), tf.reduce_mean(x * 2, 0).numpy(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_gradients_of_half_types(dtype):
    x, w = normal(20, 30, dtype=dtype), tf.Variable(normal(30, 10, dtype=dtype))

    def gradient():
        with tf.GradientTape() as tape:
            y = tf.reduce_mean(tf.square(tf.nn.relu(x @ w)))
        return tape.gradient(y, w)

    np.testing.assert_allclose(
        tf.function(gradient)().numpy().astype(np.float32), gradient().numpy().astype(np.float32), rtol=2e-2, atol=1e-3
    )


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_integers_join_fusions(dtype):
    a = tf.cast(np.random.default_rng(0).integers(-99, 99, (64, 70)), dtype)

    def program(a):
        return tf.where(a > 3, tf.maximum(a * 3 - 1, 7), tf.abs(-a)) + tf.square(a[0]) * tf.sign(a)

    assert_same_bits(program, a)
    assert len(steps(lambda a: tf.maximum(a * 3 - 1, 7) + tf.abs(-a), a)) == 1


def test_a_division_of_integers_still_fails():
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        tf.function(lambda a, b: (a * 2) // b + a)(tf.ones([4], tf.int32), tf.zeros([4], tf.int32))


def test_complex_numbers_join_fusions():
    re, im = normal(50, 60), normal(50, 60, seed=1)

    def program(re, im):
        z = tf.complex(re, im)
        w = (z * z + 2) * tf.math.conj(z) / (z - 1j)
        return tf.math.real(w) + tf.math.imag(z - tf.cast(im, tf.complex64)) * tf.abs(w)

    assert len(steps(program, re, im)) == 1
    assert_same_bits(program, re, im)


def test_wide_complex_numbers_stay_kernels():
    z = tf.cast(normal(50, 60), tf.complex128)
    assert_same_bits(lambda z: tf.math.real(z * tf.math.conj(z)) + 1, z)


def test_fusions_of_many_scalars():
    """A compiled loop takes the places of single numbers from a table of limited size."""
    scalars = [float(i + 1) for i in range(48)]

    def chain(x, *factors):
        for i, factor in enumerate(factors):
            x = x + factor if i % 2 else x * factor / (factor + 1.0)
        return x

    y = tf.function(chain)(tf.ones([5000]), *map(tf.constant, scalars))
    np.testing.assert_allclose(y, np.full(5000, chain(1.0, *scalars)), rtol=1e-5)
