"""The float8 and the quantized dtypes: stored, moved and cast; only products are computed, in float32."""

import ml_dtypes
import numpy as np
import pytest

import tapeflow as tf

FLOAT8 = ("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz")
QUANTIZED = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}


def float8(name):
    return getattr(tf.dtypes.experimental, name)


@pytest.mark.parametrize("name", FLOAT8)
def test_all_codes_decode_as_in_ml_dtypes(name):
    codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))
    x = tf.constant(codes)
    assert x.dtype is float8(name)
    np.testing.assert_array_equal(tf.cast(x, tf.float32).numpy(), codes.astype(np.float32))
    np.testing.assert_array_equal(x.numpy().view(np.uint8), codes.view(np.uint8))


@pytest.mark.parametrize("name", FLOAT8)
def test_encoding_rounds_as_in_ml_dtypes(name):
    random = np.random.RandomState(0)
    halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
    small = random.randn(1000).astype(np.float32) * np.float32(1e-3)
    values = np.concatenate([halves[~np.isnan(halves)], small, np.array([1e30, -1e30, 0.0, -0.0], np.float32)])
    want = values.astype(getattr(ml_dtypes, name)).view(np.uint8)
    np.testing.assert_array_equal(tf.cast(values, float8(name)).numpy().view(np.uint8), want)
    assert np.isnan(tf.cast(tf.cast([np.nan], float8(name)), tf.float32).numpy()[0])


def test_doubles_are_rounded_once():
    value = 1.125 + 2.0**-40  # just above the middle between 1 and 1.25
    assert float(tf.cast(tf.cast(np.float64(value), tf.dtypes.experimental.float8_e5m2), tf.float32)) == 1.25


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_constants_moves_and_products(name):
    dtype = float8(name)
    x = tf.constant([[1.0, 2.0], [3.0, -3.0]], dtype)
    wide = tf.cast(x, tf.float32)
    for f in (
        lambda t: tf.transpose(t),
        lambda t: tf.concat([t, t], 0)[1:],
        lambda t: tf.gather(t, [1]),
        lambda t: tf.pad(t, [[1, 0], [0, 0]]),
        lambda t: tf.where([[True, False]], t, t[::-1]),
        lambda t: tf.Variable(t).assign(t),
    ):
        y = f(x)
        assert y.dtype is dtype
        np.testing.assert_array_equal(tf.cast(y, tf.float32), f(wide))
    assert tf.zeros([2], dtype).numpy().tolist() == [0, 0]
    product = tf.matmul(x, x)
    assert product.dtype is dtype
    np.testing.assert_array_equal(tf.cast(product, tf.float32), tf.cast(tf.cast(wide @ wide, dtype), tf.float32))
    np.testing.assert_array_equal(tf.matmul(x, x, output_type=tf.float32), wide @ wide)
    np.testing.assert_array_equal(tf.function(lambda t: tf.cast(t, tf.float32))(x), wide)


def test_float8_has_no_arithmetic_and_no_gradient():
    x = tf.constant([1.0, 2.0], tf.dtypes.experimental.float8_e4m3fn)
    for f in (lambda: x + x, lambda: x == x, lambda: tf.reduce_sum(x), lambda: tf.exp(x)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the list of allowed values"):
            f()
    a = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.cast(tf.cast(a, tf.dtypes.experimental.float8_e5m2), tf.float32)
    assert tape.gradient(y, a) is None


@pytest.mark.parametrize("name", (*FLOAT8, *QUANTIZED))
def test_serialized(name):
    dtype = tf.as_dtype(name)
    x = tf.constant([1, 2, 3], dtype)
    y = tf.io.parse_tensor(tf.io.serialize_tensor(x), dtype)
    assert y.dtype is dtype
    np.testing.assert_array_equal(tf.cast(y, tf.float32), [1, 2, 3])
    message = tf.make_tensor_proto(x)
    np.testing.assert_array_equal(tf.cast(tf.constant(tf.make_ndarray(message)), tf.float32), [1, 2, 3])


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_numbers(name):
    dtype, storage = getattr(tf, name), QUANTIZED[name]
    x = tf.constant([1, 2], dtype)
    assert x.dtype is dtype and x.numpy().dtype == storage
    assert repr(x) == f"<tf.Tensor: shape=(2,), dtype={name}, numpy={np.array([1, 2], storage)!r}>"
    structured = np.array([(1,), (7,), (2,)], dtype.as_numpy_dtype)
    assert tf.constant(structured).dtype is dtype
    assert tf.constant(structured[::2]).numpy().tolist() == [1, 2]
    assert tf.cast(x, tf.float32).numpy().tolist() == [1.0, 2.0]
    assert tf.cast([1.0, 2.0], dtype).numpy().tolist() == [1, 2]
    bits = tf.bitcast(x, tf.as_dtype(storage))
    assert bits.dtype == storage and tf.bitcast(bits, dtype).dtype is dtype
    assert tf.reshape(tf.stack([x, x]), [4])[1].numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the list of allowed values"):
        x + x


def test_quantize_and_dequantize():
    q = tf.quantization.quantize([1.0, 2.0], 0.0, 3.0, tf.qint8)
    assert q.output.dtype is tf.qint8 and q.output.numpy().tolist() == [-43, 42]
    np.testing.assert_allclose(tf.quantization.dequantize(q.output, 0.0, 3.0), [1.0, 2.0], atol=0.02)


def test_few_elements_of_a_message_stand_in_a_list():
    for value, field, listed in [
        (tf.constant(10.0), "float_val", [10.0]),
        (tf.constant(7, tf.int64), "int64_val", [7]),
        (tf.constant(1.0, tf.float16), "half_val", [0x3C00]),
        (tf.constant([1 + 2j, 3]), "dcomplex_val", [1, 2, 3, 0]),
        (tf.constant([True, False]), "bool_val", [True, False]),
    ]:
        message = tf.make_tensor_proto(value)
        assert list(getattr(message, field)) == listed
        assert not message.tensor_content
        assert tf.make_ndarray(message).tolist() == value.numpy().tolist()
    assert tf.make_tensor_proto([1.0, 2.0]).tensor_content == np.array([1, 2], np.float32).tobytes()
    message = tf.make_tensor_proto(5, shape=[2, 2])
    assert list(message.int_val) == [5]
    assert tf.make_ndarray(message).tolist() == [[5, 5], [5, 5]]
