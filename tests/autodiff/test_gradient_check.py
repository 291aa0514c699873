"""The checker finds injected mistakes, blames the right mode, and stays silent about what is right."""

import itertools

import numpy as np
import pytest

import tapeflow as tf


def constant(*shape, seed=0, low=0.3, high=1.4):
    return tf.constant(np.random.default_rng(seed).uniform(low, high, shape))


# Functions of one or two arguments with their right gradient, from which wrong ones are made.
BASES = {
    "square": (lambda x: x * x, lambda dy, x: [2.0 * x * dy], [constant(3)]),
    "sin": (tf.sin, lambda dy, x: [tf.cos(x) * dy], [constant(2, 2)]),
    "exp": (tf.exp, lambda dy, x: [tf.exp(x) * dy], [constant(4)]),
    "cube": (lambda x: x**3, lambda dy, x: [3.0 * x**2 * dy], [constant(2)]),
    "product": (lambda x, y: x * y, lambda dy, x, y: [dy * y, dy * x], [constant(3), constant(3, seed=1)]),
    "quotient": (
        lambda x, y: x / y,
        lambda dy, x, y: [dy / y, -dy * x / y**2],
        [constant(3), constant(3, seed=1)],
    ),
    "matmul": (
        tf.matmul,
        lambda dy, a, b: [tf.matmul(dy, b, transpose_b=True), tf.matmul(a, dy, transpose_a=True)],
        [constant(2, 2), constant(2, 2, seed=1)],
    ),
    "matvec": (
        tf.linalg.matvec,
        lambda dy, a, b: [dy[:, None] * b[None], tf.linalg.matvec(a, dy, transpose_a=True)],
        [constant(3, 3), constant(3, seed=1)],
    ),
    "logsumexp": (
        tf.reduce_logsumexp,
        lambda dy, x: [dy * tf.nn.softmax(x)],
        [constant(4)],
    ),
    "norm": (
        lambda x: tf.reduce_sum(x * x) ** 0.5,
        lambda dy, x: [dy * x / tf.reduce_sum(x * x) ** 0.5],
        [constant(3)],
    ),
}


def one_element(change):
    """Changes the first element alone."""

    def changed(g, dy, *x):
        mask = np.zeros(tuple(g.shape))
        mask.flat[0] = 1.0
        return g + (change(g) - g) * mask

    return changed


def transposed(g, dy, *x):
    return tf.transpose(g) if len(g.shape) == 2 and g.shape[0] == g.shape[1] else g[::-1]


MISTAKES = {
    "factor 2": lambda g, dy, *x: 2.0 * g,
    "factor 1.01": lambda g, dy, *x: 1.01 * g,
    "factor 0.999": lambda g, dy, *x: 0.999 * g,
    "sign": lambda g, dy, *x: -g,
    "transposed": transposed,
    "zero": lambda g, dy, *x: 0.0 * g,
    "shifted": lambda g, dy, *x: g + 0.01,
    "none": lambda g, dy, *x: None,
    "squared": lambda g, dy, *x: g * g,
    "an input too many": lambda g, dy, *x: g * x[0] if g.shape == x[0].shape else g * 0.5,
    "one element doubled": one_element(lambda g: 2.0 * g),
    "one element lost": one_element(lambda g: 0.0 * g),
    "one element of other sign": one_element(lambda g: -g),
    "ignores dy": lambda g, dy, *x: g / (tf.reduce_mean(dy) + 1e-3),
}
INJECTIONS = [
    (base, mistake, which)
    for base, mistake in itertools.product(BASES, MISTAKES)
    for which in range(len(BASES[base][2]))
]


def wrong_function(base, mistake, which):
    function, rule, _ = BASES[base]

    def run(*x):
        def wrong(dy):
            gradients = rule(dy, *x)
            gradients[which] = MISTAKES[mistake](gradients[which], dy, *x)
            return gradients

        return function(*x), wrong

    return tf.custom_gradient(run)


def test_injected_mistakes_are_caught():
    assert len(INJECTIONS) >= 100
    missed, blamed = [], []
    for base, mistake, which in INJECTIONS:
        report = tf.debugging.check_gradients(
            wrong_function(base, mistake, which), BASES[base][2], 1, raise_error=False
        )
        if report.passed:
            missed.append((base, mistake, which))
        elif any(d.culprit != "reverse" or d.argument != which for d in report.disagreements):
            blamed.append((base, mistake, which))
    assert len(missed) <= len(INJECTIONS) // 100, missed
    assert not blamed


def test_a_wrong_forward_rule_is_blamed():
    @tf.custom_gradient
    def function(x):
        return x * x, lambda dy: 2.0 * x * dy

    function.def_jvp(lambda inputs, tangents: 3.0 * inputs[0] * tangents[0])
    with pytest.raises(AssertionError, match="forward mode is wrong"):
        tf.debugging.check_gradients(function, [constant(2)])


def test_modes_that_share_a_mistake_are_blamed_together():
    @tf.custom_gradient
    def function(x):
        return x * x, lambda dy: 2.5 * x * dy

    function.def_jvp(lambda inputs, tangents: 2.5 * inputs[0] * tangents[0])
    report = tf.debugging.check_gradients(function, [constant(2)], raise_error=False)
    assert {d.culprit for d in report.disagreements} == {"reverse and forward"}


def test_a_mistake_in_the_second_order_alone():
    @tf.custom_gradient
    def function(x):
        return x**3, lambda dy: dy * tf.stop_gradient(3.0 * x**2)

    assert tf.debugging.check_gradients(function, [constant(2)], order=1).passed
    with pytest.raises(AssertionError, match="order 2"):
        tf.debugging.check_gradients(function, [constant(2)], order=2)


RIGHT = {
    "matmul": (lambda a, b: tf.matmul(a, tf.tanh(b)), [constant(2, 3), constant(3, 2)]),
    "softmax": (tf.nn.softmax, [constant(2, 3)]),
    "softplus": (tf.nn.softplus, [constant(3)]),
    "solve": (tf.linalg.solve, [constant(3, 3) + 3 * tf.eye(3, dtype=tf.float64), constant(3, 1)]),
    "cholesky": (lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(2, dtype=tf.float64)), [constant(2, 2)]),
    "conv": (lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), [constant(1, 3, 3, 1), constant(2, 2, 1, 1)]),
    "gather": (lambda x: tf.gather(x, [0, 2, 2]), [constant(3, 2)]),
    "lgamma": (tf.math.lgamma, [constant(3)]),
    "complex": (lambda z: z * tf.exp(z), [tf.constant([0.3 + 1j, -0.5 + 0.2j])]),
    "to real": (tf.abs, [tf.constant([0.3 + 1j, -0.5 + 0.2j])]),
    "constant": (lambda x: x * 0.0 + 3.0, [constant(2)]),
    "large": (lambda x: 1e6 * x * x, [constant(2)]),
    "small": (lambda x: 1e-3 * tf.sin(x), [constant(2)]),
    "several": (lambda x, y: (x * y, {"a": tf.exp(x)}), [constant(2), constant(2)]),
    "integers": (lambda x, n: x * tf.cast(n, tf.float64), [constant(2), tf.constant([2, 3])]),
    "scan": (lambda x: tf.cumsum(tf.cumsum(x)), [constant(3)]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_no_false_alarm(name):
    report = tf.debugging.check_gradients(*RIGHT[name])
    assert report.passed and not report.not_smooth, str(report)


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv", "softplus"])
def test_no_false_alarm_in_float32(name):
    function, arguments = RIGHT[name]
    assert tf.debugging.check_gradients(function, [tf.cast(a, tf.float32) for a in arguments]).passed


def test_kinks_are_told_from_mistakes():
    x = tf.constant([0.0, 1.0, -1.0], tf.float64)
    report = tf.debugging.check_gradients(tf.nn.relu, [x])
    assert report.passed and report.not_smooth[0].element == (0,)

    @tf.custom_gradient
    def outside(v):
        return tf.nn.relu(v), lambda dy: dy * tf.cast(v > 0, v.dtype) + 2.0 * dy * tf.cast(v == 0, v.dtype)

    with pytest.raises(AssertionError, match="not smooth there"):
        tf.debugging.check_gradients(outside, [x])


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ValueError, match="other values"):
        tf.debugging.check_gradients(lambda x: x + tf.random.normal([2]), [tf.ones([2])])
    with pytest.raises(ValueError, match="no argument"):
        tf.debugging.check_gradients(lambda x: x, [tf.constant([1])])
    with pytest.raises(ValueError, match="list or tuple"):
        tf.debugging.check_gradients(lambda x: x, tf.ones([2]))
    with pytest.raises(ValueError, match="order"):
        tf.debugging.check_gradients(lambda x: x, [tf.ones([2])], order=0)
    with pytest.raises(ValueError, match="at most 8"):
        tf.debugging.check_gradients(lambda x: x, [tf.ones([2])], order=100)


def test_compute_gradient():
    theory, measured = tf.test.compute_gradient(lambda x, y: x * y, [[1.0, 2.0], [3.0, 4.0]], delta=1e-3)
    np.testing.assert_allclose(theory, [[[3, 0], [0, 4]], [[1, 0], [0, 2]]])
    np.testing.assert_allclose(measured, theory, atol=1e-3)
    assert [m.dtype for m in (*theory, *measured)] == [np.float32] * 4
    theory, measured = tf.test.compute_gradient(lambda z: z * z, [tf.constant([1 + 2j, 2 - 1j])])
    np.testing.assert_array_equal(theory[0], [[2, -4, 0, 0], [4, 2, 0, 0], [0, 0, 4, 2], [0, 0, -2, 4]])
    np.testing.assert_allclose(measured, theory)
    theory, _ = tf.test.compute_gradient(tf.stop_gradient, [[1.0, 2.0]])
    np.testing.assert_array_equal(theory[0], np.zeros((2, 2)))
    assert tf.test.compute_gradient(lambda x: x, [tf.zeros([0, 2])])[0][0].shape == (0, 0)
    with pytest.raises(ValueError, match="must be a list or tuple"):
        tf.test.compute_gradient(tf.sin, tf.ones([2]))
    with pytest.raises(AssertionError, match="unsupported type int32 of argument 0"):
        tf.test.compute_gradient(tf.identity, [tf.constant([1, 2])])
