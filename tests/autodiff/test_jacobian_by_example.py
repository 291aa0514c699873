"""Jacobians of a value per example: the backward pass runs once where examples do not mix."""

import re

import numpy as np
import pytest

import tapeflow as tf

EXAMPLES = 7


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(dtype)


def mlp(x, w, b, v):
    h = tf.nn.relu(tf.matmul(x, w) + b)
    return tf.reduce_sum(tf.square(tf.matmul(h, v)), axis=1)


def cross_entropy(x, w, b, v):
    logits = tf.matmul(tf.tanh(tf.matmul(x, w) + b), v)
    labels = tf.constant(np.arange(EXAMPLES) % 3)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def sequence(x, w, b, v):
    h = tf.tanh(tf.reshape(tf.matmul(x, w) + b, [EXAMPLES, 2, 3]))
    scores = tf.nn.softmax(tf.matmul(h, h, transpose_b=True))
    h = tf.matmul(scores, h) + tf.transpose(tf.transpose(h, [0, 2, 1]), [0, 2, 1])
    return tf.reduce_mean(tf.matmul(tf.reshape(h, [EXAMPLES, 6]), v), axis=-1)


def tokens(x, w, b, v):
    h = tf.reshape(tf.matmul(x, w) + b, [EXAMPLES * 2, 3])
    return tf.reduce_sum(tf.reshape(tf.sin(tf.matmul(h, v[:3])), [EXAMPLES, -1]), 1)


def lookup(x, w, b, v):
    ids = tf.constant(np.random.default_rng(0).integers(0, 4, (EXAMPLES, 5)))
    rows = tf.gather(w, ids)
    return tf.reduce_sum(tf.square(rows) * b, [1, 2]) * tf.reduce_sum(x, 1)


def images(x, w, b, v):
    pixels = tf.reshape(tf.tile(x, [1, 9]), [EXAMPLES, 6, 6, 1])
    filters = tf.reshape(w[:3, :3], [3, 3, 1, 1]) * v[0]
    h = tf.nn.max_pool2d(tf.nn.conv2d(pixels, filters, 1, "SAME"), 2, 2, "VALID")
    h = tf.nn.avg_pool2d(tf.nn.relu(h), 3, 1, "SAME")
    return tf.reduce_sum(tf.square(h) * b[0], [1, 2, 3])


def masked(x, w, b, v):
    h = tf.matmul(x, w) * b
    return tf.reduce_sum(tf.where(h > 0.0, h, tf.zeros_like(h)) / (1.0 + h * h), 1)


def column(x, w, b, v):
    return tf.matmul(tf.nn.softplus(tf.matmul(x, w) + b), v[:, :1])


def shared_factor(x, w, b, v):
    return tf.reduce_sum(x, 1) * tf.reduce_sum(w) + tf.reduce_sum(b)


def centred(x, w, b, v):
    h = tf.matmul(x, w) + b
    return tf.reduce_sum(tf.square(h - tf.reduce_mean(h, 0)), 1)


def neighbours(x, w, b, v):
    y = mlp(x, w, b, v)
    return y * tf.roll(y, 1, 0)


def transposed(x, w, b, v):
    return tf.reduce_sum(tf.matmul(w, x, transpose_a=True, transpose_b=True) * b[:, None], 0)


SEPARATE = [mlp, cross_entropy, sequence, tokens, lookup, images, masked, column, shared_factor]
MIXED = [centred, neighbours, transposed]


def arguments(dtype=np.float32):
    shapes = (EXAMPLES, 4), (4, 6), (6,), (6, 3)
    return [tf.constant(normal(*shape, dtype=dtype)) for shape in shapes]


def jacobian(program, args, chunk=None):
    with tf.GradientTape() as tape:
        tape.watch(args)
        y = program(*args)
    return tape.jacobian(y, args, unconnected_gradients="zero", chunk_size=chunk)


def row_by_row(program, args):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(args)
        y = program(*args)
        elements = tf.unstack(tf.reshape(y, [-1]))
    rows = [tape.gradient(e, args, unconnected_gradients="zero") for e in elements]
    return [tf.reshape(tf.stack(list(r)), [*y.shape, *a.shape]) for r, a in zip(zip(*rows), args)]


@pytest.mark.parametrize("program", SEPARATE + MIXED)
@pytest.mark.parametrize("compiled", [False, True])
def test_as_one_gradient_per_element(program, compiled):
    args = arguments()
    find = tf.function(lambda *args: jacobian(program, list(args)))
    if not compiled:
        find = find.python_function
    for found, expected in zip(find(*args), row_by_row(program, args), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def largest_value(function, *args):
    text = function.experimental_get_compiler_ir(*args)(stage="after-cse-and-views")
    shapes = re.findall(r"%\d+ float32\[([\d,]*)\] = ", text)
    return max(int(np.prod([int(d) for d in shape.split(",") if d])) for shape in shapes)


@pytest.mark.parametrize("program", SEPARATE)
def test_no_value_has_a_row_for_each_pair_of_examples(program):
    args = arguments()

    def weights(*args):
        with tf.GradientTape() as tape:
            tape.watch(args[1:])
            y = program(*args)
        return [g for g in tape.jacobian(y, list(args[1:])) if g is not None]

    function = tf.function(weights)
    outputs = max(int(np.prod(g.shape)) for g in function(*args))
    forward = largest_value(tf.function(program), *args)
    assert largest_value(function, *args) <= max(outputs, 2 * forward)


def test_double_precision_and_a_tape_around_it():
    args = arguments(np.float64)

    def norm(args):
        return tf.add_n([tf.reduce_sum(tf.square(j)) for j in jacobian(mlp, args)])

    with tf.GradientTape() as tape:
        tape.watch(args)
        y = norm(args)
    gradients = tape.gradient(y, args)
    for k, (x, g) in enumerate(zip(args, gradients)):
        direction = normal(*x.shape, dtype=np.float64)
        step = 1e-6
        up, down = ([*args[:k], x + s * direction, *args[k + 1 :]] for s in (step, -step))
        slope = (norm(up) - norm(down)) / (2 * step)
        np.testing.assert_allclose(np.sum(g.numpy() * direction), slope, rtol=1e-5)


def test_unknown_shapes_and_chunks():
    args = arguments()
    signature = [tf.TensorSpec([None, 4], tf.float32), *(tf.TensorSpec(a.shape, tf.float32) for a in args[1:])]
    function = tf.function(lambda *args: jacobian(mlp, list(args)), input_signature=signature)
    for found, expected in zip(function(*args), row_by_row(mlp, args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
    for found, expected in zip(jacobian(mlp, args, chunk=2), row_by_row(mlp, args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def test_an_example_with_infinities_does_not_touch_the_others():
    x = tf.constant([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0], [2.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.math.log(x), 1)
    found = tape.jacobian(y, x).numpy()
    assert np.isfinite(np.delete(found, 1, 0)).all()
    assert (found[1][[0, 2, 3]] == 0).all() and np.isinf(found[1, 1]).all()
