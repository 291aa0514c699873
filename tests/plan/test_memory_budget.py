"""`tf.function(memory_budget=)`: less is kept for the backward pass, and computed a second time."""

import copy
import re

import numpy as np
import pytest

import tapeflow as tf

KIB = 1 << 10
LAYERS = 16


def normal(*shape):
    return tf.constant(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) * 0.2)


def network(layer=lambda h, w: tf.nn.gelu(h @ w) + h):
    """A step of training whose hidden values have 16 KiB each."""
    weights = [tf.Variable(normal(32, 32)) for _ in range(LAYERS)]

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = layer(h, w)
            loss = tf.reduce_mean(tf.square(h))
        return [loss, *tape.gradient(loss, weights)]

    return step


def bytes_of(function, *args):
    """Of the buffers that the values of the plan share."""
    text = function.experimental_get_compiler_ir(*args)(stage="after-memory")
    sizes = {}
    for shape, buffer in re.findall(r"float32\[([\d,]*)\] @(buffer\d+)", text):
        sizes[buffer] = max(sizes.get(buffer, 0), 4 * int(np.prod([int(n) for n in shape.split(",")])))
    return sum(sizes.values())


def products(function, *args):
    return function.experimental_get_compiler_ir(*args)(stage="after-memory").count("MatMul")


def test_a_plan_keeps_to_its_budget_and_gives_the_same():
    x, step = normal(128, 32), network()
    free = tf.function(step)
    assert bytes_of(free, x) > 500 * KIB
    assert products(free, x) == 3 * LAYERS - 1  # the gradient of x is not needed
    for budget in (400 * KIB, 300 * KIB, 240 * KIB):
        small = tf.function(step, memory_budget=budget)
        assert bytes_of(small, x) <= budget
        assert products(small, x) <= 4 * LAYERS - 1
        for without, within in zip(free(x), small(x), strict=True):
            np.testing.assert_allclose(within, without, rtol=1e-6, atol=1e-7)


def test_nothing_is_computed_twice_within_a_large_budget():
    x, step = normal(128, 32), network()
    assert products(tf.function(step, memory_budget=1 << 30), x) == products(tf.function(step), x)


def test_the_text_shows_what_is_computed_again():
    x, step = normal(128, 32), network()
    give = tf.function(step, memory_budget=240 * KIB).experimental_get_compiler_ir(x)
    before, after = give(stage="after-cse-and-views"), give(stage="after-rematerialise")
    assert after.count("MatMul") > before.count("MatMul")


def test_a_budget_that_no_plan_keeps_to():
    function = tf.function(network(), memory_budget=10_000)
    message = r"tf.function: memory_budget is 10000 bytes, but this call needs \d{6} bytes"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=message) as refused:
        function(normal(128, 32))
    least = int(re.search(r"needs (\d+)", str(refused.value))[1])
    tf.function(network(), memory_budget=least)(normal(128, 32))
    function(tf.zeros([1, 32]))  # a smaller one fits


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1GB", True])
def test_a_budget_is_a_number_of_bytes(wrong):
    with pytest.raises(ValueError, match=r"tf.function: memory_budget must be a positive number of bytes; got"):
        tf.function(lambda x: x, memory_budget=wrong)


def convolution(h, w):
    image = tf.reshape(h, [2, 8, 8, 32])
    mixed = tf.nn.conv2d(image, tf.reshape(w, [1, 1, 32, 32]), 1, "SAME")
    return tf.reshape(tf.nn.max_pool2d(mixed, 3, 1, "SAME"), [128, 32])


def normalisation(h, w):
    mean, variance = tf.nn.moments(h @ w, [0])
    return tf.nn.batch_normalization(h @ w, mean, variance, None, None, 1e-3)


def halves(h, w):
    left, right = tf.split(h @ w, 2, axis=1)
    return tf.concat([tf.tanh(right), tf.sigmoid(left) * right], 1)


def attention(h, w):
    scores = tf.nn.softmax(tf.matmul(h, h @ w, transpose_b=True))
    return tf.matmul(scores, h)[::-1]


LAYER = {"conv": convolution, "norm": normalisation, "split": halves, "attention": attention}


@pytest.mark.parametrize("layer", LAYER.values(), ids=LAYER)
def test_layers_of_many_kinds(layer):
    x, step = normal(128, 32), network(layer)
    free = tf.function(step)
    budget = bytes_of(free, x) * 3 // 4
    small = tf.function(step, memory_budget=budget)
    assert bytes_of(small, x) <= budget
    for without, within in zip(free(x), small(x), strict=True):
        np.testing.assert_allclose(within, without, rtol=1e-5, atol=1e-6)


def test_random_numbers_are_drawn_once():
    x = normal(128, 32)
    step = network(lambda h, w: tf.nn.dropout(tf.nn.gelu(h @ w), 0.5) + h)

    def loss_and_gradients(budget):
        tf.random.set_seed(3)
        function = tf.function(step, memory_budget=budget)
        return [function(x), function(x)]

    free, small = loss_and_gradients(None), loss_and_gradients(600 * KIB)
    assert bytes_of(tf.function(step), x) > 600 * KIB
    for without, within in zip(free[0] + free[1], small[0] + small[1], strict=True):
        np.testing.assert_allclose(within, without, rtol=1e-5, atol=1e-6)


def test_variables_that_are_assigned_after_the_forward_pass():
    x = normal(128, 32)
    weights = [tf.Variable(normal(32, 32)) for _ in range(LAYERS)]
    start = [w.numpy() for w in weights]

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(h @ w)
            loss = tf.reduce_sum(h)
        for w, g in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.01 * g)
        return loss

    def trained(budget):
        for w, value in zip(weights, start):
            w.assign(value)
        function = tf.function(step, memory_budget=budget)
        losses = [function(x).numpy() for _ in range(3)]
        return losses, [w.numpy() for w in weights]

    (losses, values), (losses_within, values_within) = trained(None), trained(200 * KIB)
    np.testing.assert_allclose(losses_within, losses, rtol=1e-5)
    for without, within in zip(values, values_within, strict=True):
        np.testing.assert_allclose(within, without, rtol=1e-4, atol=1e-6)


def test_parts_between_calls_of_python_have_the_budget_each():
    step = network()

    def with_python(x):
        first = step(x)
        seen = tf.py_function(lambda loss: loss, [first[0]], tf.float32)
        return [seen, *first[1:]]

    x = normal(128, 32)
    for without, within in zip(step(x), tf.function(with_python, memory_budget=300 * KIB)(x), strict=True):
        np.testing.assert_allclose(within, without, rtol=1e-5, atol=1e-6)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="memory_budget is 1000 bytes"):
        tf.function(with_python, memory_budget=1000)(x)


def test_methods_and_copies_keep_the_budget():
    class Model(tf.Module):
        def __init__(self):
            self.step = network()

        @tf.function(memory_budget=1000)
        def train(self, x):
            return self.step(x)

    function = tf.function(network(), memory_budget=1000)
    for call in (Model().train, copy.deepcopy(function)):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="memory_budget"):
            call(normal(128, 32))


def test_many_shapes_keep_to_the_budget():
    function = tf.function(network(), memory_budget=150 * KIB, reduce_retracing=True)
    for rows in range(1, 30):
        function(normal(rows, 32))
    for _ in range(3):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="memory_budget"):
            function(normal(512, 32))
