"""Variables that are assigned and then updated by rows in one graph: as in an eager program, also with a wrong row."""

import numpy as np
import pytest

import tapeflow as tf

ROWS, WIDTH = 50, 7


def sparse_adam(w, m, v, gradient):
    m.assign(m * 0.9)
    m.scatter_add(tf.IndexedSlices(gradient.values * 0.1, gradient.indices))
    v.assign(v * 0.99)
    v.scatter_add(tf.IndexedSlices(tf.square(gradient.values) * 0.01, gradient.indices))
    w.assign_sub(0.1 * m / (tf.sqrt(v) + 1e-7))


def read_between(w, m, v, gradient):
    m.assign(m + 1.0)
    between = m.read_value()
    m.scatter_update(tf.IndexedSlices(gradient.values, gradient.indices))
    w.assign(between + m)
    v.assign(between)


def read_old_value_later(w, m, v, gradient):
    old = m.read_value()
    m.assign(m * 2.0)
    m.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))
    w.assign(old * 3.0)


def update_by_itself(w, m, v, gradient):
    m.assign(m * 0.5)
    m.scatter_add(tf.IndexedSlices(tf.gather(m, gradient.indices), gradient.indices))
    m.scatter_max(tf.IndexedSlices(gradient.values, gradient.indices))


def run(program, compiled):
    rng = np.random.default_rng(3)
    variables = [tf.Variable(np.abs(rng.standard_normal((ROWS, WIDTH))).astype(np.float32)) for _ in range(3)]
    w = variables[0]

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(w, ids)))
        program(*variables, tape.gradient(loss, w))
        return loss

    step = tf.function(step) if compiled else step
    losses = [step(tf.constant(rng.integers(0, ROWS, 20))).numpy() for _ in range(3)]
    return losses + [v.numpy() for v in variables]


@pytest.mark.parametrize("program", [sparse_adam, read_between, read_old_value_later, update_by_itself])
def test_compiled_as_eager(program):
    for eager, compiled in zip(run(program, False), run(program, True), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5)


def test_a_wrong_row_leaves_what_was_assigned_before():
    v = tf.Variable(np.ones((40, 9), np.float32))

    @tf.function
    def step(rows):
        v.assign(v * 2.0)
        v.scatter_add(tf.IndexedSlices(tf.ones([2, 9]), rows))

    step(tf.constant([1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([1, 40]))
    assert v.numpy()[0, 0] in (2.0, 4.0)


def test_a_wrong_row_does_not_assign_the_rest():
    v = tf.Variable(np.ones((40, 9), np.float32))

    @tf.function
    def step(rows):
        v.assign(tf.tensor_scatter_nd_add(v * 2.0, rows, tf.ones([2, 9])))

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([[1], [40]]))
    np.testing.assert_array_equal(v, np.ones((40, 9)))
