"""Steps that the program makes by hand beside those of an optimizer."""

import pytest

import tapeflow as tf


def kinds(act, steps=6):
    """The kinds of findings of steps in which `act` is given the optimizer, the gradient and the variable."""
    w, x = tf.Variable([1.0, 2.0, 3.0]), tf.constant([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]])
    tf.install_as_tensorflow()
    optimizer = tf.keras.optimizers.SGD(0.01)
    with tf.debugging.Doctor() as doctor:
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.linalg.matvec(x, w) ** 2)
            act(optimizer, tape.gradient(loss, w), w)
    return {f.kind for f in doctor.findings}


@pytest.mark.parametrize("first", [True, False])
def test_a_step_by_hand_beside_the_optimizer_is_the_same_step_twice(first):
    def act(optimizer, g, w):
        if first:
            w.assign_sub(0.01 * g)
        optimizer.apply_gradients([(g, w)])
        if not first:
            w.assign(w - 0.01 * g)

    assert "applied-twice" in kinds(act)


def test_decay_and_noise_by_hand_are_none():
    def act(optimizer, g, w):
        w.assign_sub(0.001 * w)
        optimizer.apply_gradients([(g, w)])
        w.assign_add(1e-3 * tf.random.normal([3]))

    assert "applied-twice" not in kinds(act)


def test_steps_by_hand_alone_are_none():
    assert "applied-twice" not in kinds(lambda optimizer, g, w: w.assign_sub(0.01 * g))


@pytest.mark.parametrize("rate", [0.01, None])
def test_a_scalar_that_moves_with_its_gradient_is_stepped_twice(rate):
    w = tf.Variable(1.0)
    tf.install_as_tensorflow()
    optimizer = tf.keras.optimizers.SGD(0.05)
    with tf.debugging.Doctor() as doctor:
        for step in range(8):
            with tf.GradientTape() as tape:
                loss = (3.0 * w - 1.0) ** 2
            g = tape.gradient(loss, w)
            optimizer.apply_gradients([(g, w)])
            w.assign_sub(0.01 * tf.sign(g) * (step % 3 + 1) if rate is None else rate * g)
    assert ("applied-twice" in {f.kind for f in doctor.findings}) == (rate is not None)


def test_that_the_doctor_reads_a_variable_is_no_event_of_the_program():
    w, read = tf.Variable([1.0, 2.0, 3.0]), []
    with tf.debugging.Doctor():
        for _ in range(2):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    loss = tf.reduce_sum(w**2)
                w.assign_sub(0.1 * inner.gradient(loss, w))
                loss = tf.reduce_sum(w**2)
            read += [event for event, *_ in outer._events()]
            outer.gradient(loss, w)
    assert read.count("assign") == 2 and "numpy" not in read


def test_a_trial_step_that_is_taken_back_is_none():
    rows = tf.constant([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])
    tf.install_as_tensorflow()
    optimizer = tf.keras.optimizers.SGD(0.05)
    b = tf.Variable([0.1, -0.1])  # its gradient has one direction only: the sum is zero

    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 0], rows + b))
        return tape.gradient(loss, b)

    with tf.debugging.Doctor() as doctor:
        for _ in range(8):
            change = 0.05 * tf.math.l2_normalize(gradient())
            b.assign_add(change)
            second = gradient()
            b.assign_sub(change)
            optimizer.apply_gradients([(second, b)])
    assert "applied-twice" not in {f.kind for f in doctor.findings}
