"""`experimental_enable_numpy_behavior` with weak dtypes; in processes of their own, for it changes tensors for good."""

import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import numpy as np
import tapeflow as tf
import tapeflow.experimental.numpy as tnp
"""


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_promotions():
    run(
        """
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
        assert (tf.constant(10, tf.int32) + tf.constant(5.0, tf.float32)).dtype == tf.float32
        assert (tf.constant(10, tf.int8) + tf.constant(5, tf.uint32)).dtype == tf.int64
        assert (tf.constant(1, tf.int64) * tf.constant(3.5, tf.float16)).dtype == tf.float16
        assert (np.array(3.5, np.float16) + tf.constant(1, tf.int8) + tf.constant(50)).dtype == tf.float16
        assert tf.add(tf.add(np.int8(1), tf.constant(1)), np.float16(1)).dtype == tf.float16
        assert tf.matmul(tf.ones([1, 2], tf.int32), tf.ones([2, 1], tf.float64)).dtype == tf.float64
        assert (tf.constant(3, tf.int16) < tf.constant(4.0, tf.float32)).numpy()
        assert tf.maximum(tf.constant(3, tf.int16), 4).dtype == tf.int16
        """
    )


def test_weak_tensors():
    run(
        """
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
        five = tf.constant(5)
        assert repr(five) == "<tf.Tensor: shape=(), dtype=int32, numpy=5, weak=True>", repr(five)
        assert repr(-five).endswith("numpy=-5, weak=True>") and repr(tf.math.abs([1.0])).endswith("weak=True>")
        assert repr(five + 2.5).endswith("dtype=float32, numpy=7.5, weak=True>"), repr(five + 2.5)
        assert repr(five + tf.constant(1, tf.int16)) == "<tf.Tensor: shape=(), dtype=int16, numpy=6>"
        assert "weak" not in repr(tf.constant(5, tf.int32)) and "weak" not in repr(tf.constant(True))
        assert repr(tnp.array(1)).endswith("weak=True>") and int(five) == 5 and np.asarray(five) == 5
        assert [int(row) for row in tf.constant([1, 2])] == [1, 2]
        assert tf.concat([[1], tf.constant([2])], 0).shape == [2]
        assert tf.constant(tf.constant(10, tf.int16), tf.float32).dtype == tf.float32
        try:
            tf.constant(tf.constant(5.0, tf.float32), tf.int32)
            raise AssertionError
        except TypeError as error:
            assert "Expected tensor 5.0 with dtype tf.int32, but got dtype tf.float32." in str(error)
        """
    )


def test_gradients_and_functions():
    run(
        """
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
        x = tf.Variable(3.0, dtype=tf.float32)
        with tf.GradientTape() as tape:
            y = tf.constant(2) * x * x + tf.constant(1, tf.int16)
        assert y.dtype == tf.float32 and tape.gradient(y, x).numpy() == 12.0
        weak = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(weak.tensor)
            y = tf.reduce_sum(weak * weak)
        assert tape.gradient(y, weak).numpy().tolist() == [2.0, 4.0]
        assert tf.function(lambda a, b: a + b)(tf.constant(1), tf.constant(2.0, tf.float16)).dtype == tf.float16
        """
    )


def test_variables():
    run(
        """
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
        v = tf.Variable(10, dtype=tf.int32)
        v.assign_add(tf.constant(5, tf.int16))
        v.assign_sub(1)
        assert v.numpy() == 14
        try:
            v.assign(tf.constant(1.5, tf.float32))
            raise AssertionError
        except TypeError as error:
            assert "Variable dtype is immutable" in str(error)
        """
    )


def test_safe_promotions_and_back_to_the_older_rules():
    run(
        """
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="safe")
        for a, b in ((tf.int32, tf.float32), (tf.int8, tf.uint32)):
            try:
                tf.constant(10, a) + tf.constant(5, b)
                raise AssertionError
            except TypeError as error:
                assert "implicit dtype promotion between" in str(error), error
        assert (tf.constant(10, tf.int32) + tf.constant(5.0, tf.float64)).dtype == tf.float64
        assert (tf.constant(10, tf.int32) + 1).dtype == tf.int32
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="legacy")
        assert (np.array(3.5, np.float16) + tf.constant(1, tf.int8) + tf.constant(50)).dtype == tf.float64
        assert "weak" not in repr(tf.constant(5))
        """
    )


def test_floats_are_float32_if_preferred():
    run(
        """
        tnp.experimental_enable_numpy_behavior(prefer_float32=True)
        assert tnp.array(1.0).dtype == tf.float32 and tnp.array([1.0, 2]).dtype == tf.float32
        assert tnp.sin(tf.constant(1)).dtype == tf.float32 and tnp.array(1).dtype == tf.int64
        """
    )


def test_an_unknown_mode_is_refused():
    with pytest.raises(AssertionError, match="dtype_conversion_mode must be one of"):
        run('tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="some")')
