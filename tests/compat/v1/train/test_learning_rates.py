"""Learning rates of TensorFlow 1."""

import pytest

import tapeflow as tf

train = tf.compat.v1.train


def test_boundaries_and_values_keep_their_dtypes():
    step = tf.Variable(0, dtype=tf.int32)
    with pytest.raises(ValueError, match=r"Boundaries \(float32\) must have the same dtype as x \(int32\)"):
        train.piecewise_constant(step, [-1.0, 1.0], [1, 2, 3])()
    with pytest.raises(ValueError, match="same dtype"):
        train.piecewise_constant(step, [1, 2], [1.0, 2, 3])()
    large = tf.Variable(2**40, dtype=tf.int64)
    assert train.piecewise_constant(large, [100, 200], [1.0, 0.1, 0.01])().numpy() == pytest.approx(0.01)


def test_noise_of_the_linear_part():
    step = tf.Variable(2)
    plain = train.linear_cosine_decay(2.0, step, 10, num_periods=5, alpha=0.1, beta=0.2)().numpy()
    options = {"num_periods": 5, "alpha": 0.1, "beta": 0.2}
    still = train.noisy_linear_cosine_decay(2.0, step, 10, initial_variance=0.0, **options)().numpy()
    assert still == pytest.approx(plain)
    tf.random.set_seed(1)
    noisy = train.noisy_linear_cosine_decay(2.0, step, 10, **options)
    assert len({float(noisy()) for _ in range(4)}) == 4


def test_evaluate_calls_functions():
    class Case(tf.test.TestCase):
        def runTest(self):  # noqa: N802
            self.assertAllClose(self.evaluate(train.exponential_decay(1.0, tf.Variable(1), 1, 0.5)), 0.5)
            self.assertEqual(self.evaluate({"a": lambda: tf.constant(3)}), {"a": 3})

    Case().runTest()
