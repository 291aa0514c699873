"""Training steps of many kinds are planned as a whole: no graph break, and a bounded number of steps."""

import numpy as np
import pytest

import tapeflow as tf


def normal(*shape):
    return tf.constant(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) * 0.3)


def variables(*shapes):
    return [tf.Variable(normal(*shape)) for shape in shapes]


def adam(parameters, gradients, state):
    for (m, v), p, g in zip(state, parameters, gradients):
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.99 * v + 0.01 * tf.square(g))
        p.assign_sub(0.01 * m / (tf.sqrt(v) + 1e-7))


def step_of(loss, parameters):
    state = [(tf.Variable(tf.zeros(p.shape)), tf.Variable(tf.zeros(p.shape))) for p in parameters]

    def step(x):
        with tf.GradientTape() as tape:
            value = loss(x, *parameters)
        adam(parameters, tape.gradient(value, parameters), state)
        return value

    return step


def perceptron():
    def loss(x, w, b, v):
        return tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v)))

    return step_of(loss, variables((8, 16), (16,), (16, 4)))


def mixed_precision():
    def loss(x, w, v):
        h = tf.nn.relu(tf.matmul(tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16)))
        return tf.reduce_mean(tf.square(tf.matmul(tf.cast(h, tf.float32), v)))

    return step_of(loss, variables((8, 16), (16, 4)))


def attention():
    def loss(x, q, k, v):
        x = tf.reshape(x, [3, 2, 8])
        scores = tf.nn.softmax(tf.matmul(tf.matmul(x, q), tf.matmul(x, k), transpose_b=True))
        y = tf.matmul(scores, tf.matmul(x, v))
        mean, variance = tf.nn.moments(y, [-1], keepdims=True)
        return tf.reduce_mean(tf.nn.gelu((y - mean) * tf.math.rsqrt(variance + 1e-5)) ** 2)

    return step_of(loss, variables((8, 8), (8, 8), (8, 8)))


def convolution():
    def loss(x, f, g):
        image = tf.reshape(x, [6, 4, 2, 1])
        h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(image, f, 1, "SAME")), 2, 2, "VALID")
        return tf.reduce_mean(tf.square(tf.matmul(tf.reshape(h, [6, -1]), g)))

    return step_of(loss, variables((3, 3, 1, 5), (10, 2)))


def recurrent():
    def loss(x, w, u):
        def body(t, h, outputs):
            h = tf.tanh(tf.matmul(x[t][None], w) + tf.matmul(h, u))
            return t + 1, h, outputs.write(t, h)

        state = [0, tf.zeros([1, 4]), tf.TensorArray(tf.float32, 6, element_shape=[1, 4])]
        outputs = tf.while_loop(lambda t, h, outputs: t < 6, body, state)[2]
        return tf.reduce_mean(tf.square(outputs.stack()))

    return step_of(loss, variables((8, 4), (4, 4)))


def branching():
    def loss(x, w):
        y = tf.matmul(x, w)
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.reduce_sum(tf.square(y)), lambda: tf.reduce_sum(tf.abs(y)))

    return step_of(loss, variables((8, 4)))


def embedding():
    (table,) = variables((30, 8))
    m, v = tf.Variable(tf.zeros([30, 8])), tf.Variable(tf.zeros([30, 8]))

    def step(x):
        ids = tf.cast(tf.abs(x[:, 0]) * 10.0, tf.int32)
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.square(tf.gather(table, ids) - x))
        g = tape.gradient(value, table)
        m.assign(m * 0.9)
        m.scatter_add(tf.IndexedSlices(g.values * 0.1, g.indices))
        v.assign(v * 0.99)
        v.scatter_add(tf.IndexedSlices(g.values * g.values * 0.01, g.indices))
        table.assign_sub(0.01 * m / (tf.sqrt(v) + 1e-7))
        return value

    return step


def per_example():
    w, b = variables((8, 4), (4,))

    def step(x):
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(tf.tanh(tf.matmul(x, w) + b)), 1)
        for p, g in zip([w, b], tape.jacobian(losses, [w, b])):
            p.assign_sub(0.1 * tf.reduce_mean(tf.clip_by_value(g, -1.0, 1.0), 0))
        return losses

    return step


def vectorised():
    (w,) = variables((8, 4))

    def step(x):
        def gradient(row):
            with tf.GradientTape() as tape:
                value = tf.reduce_sum(tf.square(tf.matmul(row[None], w)))
            return tape.gradient(value, w)

        w.assign_sub(0.1 * tf.reduce_mean(tf.vectorized_map(gradient, x), 0))
        return w.read_value()

    return step


def second_order():
    def loss(x, w, v):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.matmul(tf.tanh(tf.matmul(x, w)), v)
        return tf.reduce_mean(tf.square(tape.gradient(y, x)))

    return step_of(loss, variables((8, 16), (16, 1)))


def counting():
    """Metrics beside the update."""
    (w,) = variables((8, 5))
    confusion, correct = tf.Variable(tf.zeros([5, 5], tf.int32)), tf.Variable(0.0)

    def step(x):
        labels = tf.cast(tf.abs(x[:, 0]) * 4.0, tf.int64)
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, w)
            value = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        w.assign_sub(0.1 * tape.gradient(value, w))
        found = tf.argmax(logits, 1)
        correct.assign_add(tf.reduce_sum(tf.cast(found == labels, tf.float32)))
        confusion.assign_add(tf.math.confusion_matrix(labels, found, 5))
        places = tf.reshape(tf.range(25.0), [5, 5])
        return value + correct + tf.reduce_sum(tf.cast(confusion, tf.float32) * places)

    return step


MOST_STEPS = {
    perceptron: 12, mixed_precision: 20, attention: 45, convolution: 25, recurrent: 40, branching: 15, embedding: 15,
    per_example: 15, vectorised: 12, second_order: 25, counting: 25,
}  # fmt: skip


@pytest.mark.parametrize("make", MOST_STEPS)
def test_the_whole_step_is_planned(make):
    function = tf.function(make())
    x = normal(6, 8)
    give = function.experimental_get_compiler_ir(x)
    text = give(stage="after-specialise")
    assert "graph break" not in text and "untraceable" not in text
    steps = give(stage="after-emit").count("\nstep ")
    assert 0 < steps <= MOST_STEPS[make]


@pytest.mark.parametrize("make", MOST_STEPS)
def test_two_steps_are_those_of_the_eager_program(make):
    x = normal(6, 8)
    eager, compiled = make(), tf.function(make())
    for _ in range(2):
        expected, found = eager(x), compiled(x)
        np.testing.assert_allclose(found, expected, rtol=2e-2 if make is mixed_precision else 1e-4, atol=1e-5)
