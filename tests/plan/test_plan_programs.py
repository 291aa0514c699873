"""Random programs of slices, branches, loops and updates: compiled they do what they do eagerly, gradients included."""

import numpy as np
import pytest

import tapeflow as tf


def places(number, count):
    return np.random.default_rng(number).integers(0, count, count)


def over_rows(a, b):
    def body(i, s):
        return i + 1, tf.tanh(s + a[i]) * b[-1 - i]

    return a + tf.while_loop(lambda i, s: i < a.shape[0], body, [tf.constant(0), tf.zeros([a.shape[1]])])[1]


# Each takes two tensors of one shape and a number, and gives a tensor of that shape.
OPERATIONS = [
    lambda a, b, n: tf.concat([a[: n % a.shape[0]], b[n % a.shape[0] :]], 0),
    lambda a, b, n: tf.concat([tf.concat([a[:, :1], b[:, 1:-1]], 1), a[:, -1:]], 1),
    lambda a, b, n: tf.stack([a[i] * float(i + 1) for i in range(a.shape[0])]),
    lambda a, b, n: tf.gather(a, places(n, a.shape[0])) + b,
    lambda a, b, n: tf.gather(a, places(n, a.shape[1]), axis=1),
    lambda a, b, n: a + b[:1],
    lambda a, b, n: a * b[:, -1:],
    lambda a, b, n: tf.tanh(a) * b,
    lambda a, b, n: a[::-1, ::-1] + b,
    lambda a, b, n: over_rows(a, b),
    lambda a, b, n: tf.cond(tf.reduce_sum(a) > 0.1, lambda: a[:, ::-1] * b, lambda: a - b),
    lambda a, b, n: tf.switch_case(
        tf.cast(tf.reduce_sum(a) > 0.1, tf.int32) + n % 2, [lambda: a + b, lambda: a * b, lambda: b[::-1]]
    ),
    lambda a, b, n: tf.map_fn(lambda row: row * tf.reduce_sum(row), a),
    lambda a, b, n: tf.scan(lambda s, row: tf.tanh(s + row), a) * b,
    lambda a, b, n: tf.reduce_sum(a, 0, keepdims=True) + tf.reduce_mean(b, 1, keepdims=True),
    lambda a, b, n: tf.tensor_scatter_nd_add(a, [[0]], b[1:2]),
    lambda a, b, n: tf.stack(tf.unstack(a, axis=1)[::-1], 1) + b,
    lambda a, b, n: tf.transpose(tf.reshape(a, a.shape[::-1])) + b,
    lambda a, b, n: tf.matmul(tf.matmul(a, b, transpose_b=True), a) * 0.1,
    lambda a, b, n: tf.nn.softmax(a, axis=n % 2) + b,
    lambda a, b, n: tf.where(a > b, a * 2.0, b),
    lambda a, b, n: tf.reshape(tf.reshape(a, [-1])[-a.shape[1] :], [1, -1]) * tf.sigmoid(b),
    lambda a, b, n: tf.math.unsorted_segment_sum(a, places(n, a.shape[0]), a.shape[0]) + b,
]


def update(variable, a, b, number):
    if number % 3 == 0:
        variable.assign_add(0.1 * tf.tanh(a))
    elif number % 3 == 1:
        variable.assign(a * 0.9 + b * 0.1)
    else:
        variable.scatter_nd_update([[0]], a[1:2])
    return variable.read_value()


def results(seed, made_of, large=False):
    """What two calls of a program give, and the variables after each."""
    rng = np.random.default_rng(seed)
    shape = (40, 70) if large or seed % 9 == 0 else tuple(int(n) for n in rng.integers(2, 7, 2))
    variables = [tf.Variable(rng.standard_normal(shape).astype("float32")) for _ in range(2)]
    x = tf.constant(rng.standard_normal(shape).astype("float32"))
    steps = [rng.integers(0, [len(OPERATIONS) + 2, 3 + i, 3 + i, 100]) for i in range(rng.integers(3, 14))]

    def program():
        with tf.GradientTape() as tape:
            tape.watch(x)
            values = [*variables, x]
            for operation, first, second, number in steps:
                a, b, number = values[first], values[second], int(number)
                if operation < len(OPERATIONS):
                    value = OPERATIONS[operation](a, b, number)
                else:
                    value = update(variables[number % 2], a, b, number)
                values.append(tf.clip_by_value(value, -3.0, 3.0))
            y = values[-1] + values[len(values) // 2]
            loss = tf.reduce_sum(tf.square(y))
        gradients = tape.gradient(loss, [*variables, x], unconnected_gradients="zero")
        return [y, *(tf.convert_to_tensor(g) for g in gradients)]

    run = made_of(program)
    return [t.numpy() for _ in range(2) for t in [*run(), *(v.read_value() for v in variables)]]


@pytest.mark.parametrize("seed", range(100))
def test_compiled_as_eagerly(seed):
    for eager, compiled in zip(results(seed, lambda program: program), results(seed, tf.function), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-3, atol=1e-3 * (1 + np.abs(eager).max()))


@pytest.mark.parametrize("seed", range(30))
def test_within_a_budget_as_without(seed):
    expected = results(seed, tf.function, large=True)
    for kilobytes in (400, 200, 150, 100, 80, 60, 40):
        try:
            found = results(seed, tf.function(memory_budget=kilobytes << 10), large=True)
        except tf.errors.ResourceExhaustedError:
            return
        for without, within in zip(expected, found, strict=True):
            np.testing.assert_allclose(within, without, rtol=1e-5, atol=1e-5 * (1 + np.abs(without).max()))
