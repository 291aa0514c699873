"""Small programs with a None gradient: what is watched, recorded, stopped or trainable."""

import numpy as np
import pytest

import tapeflow as tf
from tests.diagnostics.programs import Programs, check, why

PROGRAMS = Programs()
program = PROGRAMS.expect


# ---- the source is not watched


@program("not watched", "multiply")
def constant_used_directly():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x  # <- here
    return why(tape, y, x)


@program("not watched", "matmul")
def data_beside_a_watched_weight():
    data = tf.ones([2, 3])
    weight = tf.Variable(tf.ones([3, 1]))
    with tf.GradientTape() as tape:
        hidden = tf.matmul(data, weight)  # <- here
        loss = tf.reduce_sum(hidden**2)
    return why(tape, loss, data)


@program("not watched", "sin")
def watched_too_late():
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        y = tf.sin(x)  # <- here
        tape.watch(x)
        z = y * 2.0
    return why(tape, z, x)


@program("not watched", "exp")
def only_the_other_input_is_watched():
    def energy(a, b):
        inner = tf.exp(b)  # <- here
        return tf.reduce_sum(a * inner)

    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = energy(a, b)
    return why(tape, y, b)


@program("not watched", "square")
def used_in_a_loop():
    x, total = tf.constant(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = total * 1.0
        for _ in range(3):
            y = y + tf.square(x)  # <- here
    return why(tape, y, x)


# ---- the constant was made again


@program("constant made again")
def made_again_inside():
    x = tf.constant([1.25, 2.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        again = tf.constant([1.25, 2.5])  # <- here
        y = tf.reduce_sum(again * again)
    return why(tape, y, x)


@program("constant made again")
def made_again_in_a_function():
    value = 4.75

    def loss():
        x = tf.constant(value)  # <- here
        return x * x

    source = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = loss()
    return why(tape, y, source)


@program("constant made again")
def converted_twice():
    array = np.array([0.5, 0.25, 7.0], np.float32)
    x = tf.convert_to_tensor(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.convert_to_tensor(array) ** 2)  # <- here
    return why(tape, y, x)


@program("constant made again")
def the_list_was_used_itself():
    weights = [0.125, 0.375]
    x, scale = tf.constant(weights), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(scale * weights)  # <- here
    return why(tape, y, x)


@program("constant made again")
def a_twin_made_before():
    x = tf.constant([8.5, 9.5])
    twin = tf.constant([8.5, 9.5])  # <- here
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = twin * 3.0
    return why(tape, y, x)


# ---- a variable was rebound to a tensor


@program("rebound")
def variable_plus_one():
    x = tf.Variable(2.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x + 1.0
        answer = None if isinstance(x, tf.Variable) else why(tape, y, x)
        x = x + 1.0  # <- here
    return answer


@program("rebound")
def step_of_descent_without_assign():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    w = w - 0.1 * tape.gradient(loss, w)  # <- here
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    return why(tape, loss, w)


@program("rebound")
def in_place_operator():
    w = tf.Variable(3.0)
    w -= 0.5  # <- here
    with tf.GradientTape() as tape:
        loss = w * w
    return why(tape, loss, w)


@program("rebound")
def attribute_of_a_model():
    class Model:
        def __init__(self):
            self.weight = tf.Variable(1.0)

        def update(self, step):
            self.weight = self.weight - step  # <- here

    model = Model()
    model.update(0.5)
    with tf.GradientTape() as tape:
        loss = model.weight**2
    return why(tape, loss, model.weight)


@program("rebound")
def rebound_after_the_target():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        x = x + 1.0  # <- here
    return why(tape, y, x)


# ---- computed before or after


@program("before the tape")
def target_computed_before():
    x = tf.Variable(3.0)
    y = x * x  # <- here
    with tf.GradientTape() as tape:
        pass
    return why(tape, y, x)


@program("before the tape")
def intermediate_computed_before():
    x = tf.Variable(3.0)
    squared = tf.square(x)  # <- here
    with tf.GradientTape() as tape:
        y = squared + 1.0
        z = tf.sin(y)
    return why(tape, z, x)


@program("before the tape")
def features_computed_before():
    def features(v):
        return tf.tanh(v) * 2.0

    x, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    inputs = features(x)  # <- here
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(inputs * w)
    return why(tape, loss, x)


@program("before the tape")
def cached_in_an_object():
    class Layer:
        def __init__(self, weight):
            self.weight = weight
            self.doubled = self.weight * 2.0  # <- here

        def __call__(self, x):
            return x * self.doubled

    weight = tf.Variable(2.0)
    layer = Layer(weight)
    with tf.GradientTape() as tape:
        y = layer(tf.constant(3.0))
    return why(tape, y, layer.weight)


@program("after the tape", "multiply")
def target_computed_after():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x)
    z = y * 2.0  # <- here
    return why(tape, z, x)


@program("after the tape", "reduce_mean")
def loss_outside_the_block():
    def loss_of(predictions):
        return tf.reduce_mean(predictions)

    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        predictions = w * 3.0
    loss = loss_of(predictions)  # <- here
    return why(tape, loss, w)


@program("after the tape", "multiply")
def everything_after():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    y = x * x  # <- here
    return why(tape, y, x)


@program("after the tape", "add")
def indentation_lost_in_a_loop():
    w = tf.Variable(1.0)
    total = tf.constant(0.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            part = w * 2.0
        total = total + part  # <- here
    return why(tape, total, w)


# ---- stop_recording


@program("stop_recording", "square")
def inside_stop_recording():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
        with tape.stop_recording():
            z = tf.square(y)  # <- here
    return why(tape, z, x)


@program("stop_recording", "sin")
def stopped_in_the_middle():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = tf.sin(x)  # <- here
            y = y * 2.0
        z = y + 1.0
    return why(tape, z, x)


@program("stop_recording", "reduce_mean")
def statistics_without_recording():
    def normalise(tape, x):
        with tape.stop_recording():
            mean = tf.reduce_mean(x)  # <- here
        return mean * 2.0

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = normalise(tape, x)
    return why(tape, y, x)


@program("stop_recording", "exp")
def stopped_on_the_inner_tape_only():
    x = tf.Variable(1.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        with inner.stop_recording():
            y = tf.exp(x)  # <- here
        z = y * 3.0
    assert outer.gradient(z, x) is not None
    return why(inner, z, x)


# ---- stop_gradient


@program("stop_gradient", "stop_gradient")
def stopped_directly():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x * 2.0)  # <- here
        z = y * y
    return why(tape, z, x)


@program("stop_gradient", "stop_gradient")
def target_network():
    def value(w, state, frozen):
        out = tf.reduce_sum(w * state)
        return tf.stop_gradient(out) if frozen else out  # <- here

    w, v = tf.Variable([1.0, 2.0]), tf.Variable([0.5, 0.5])
    state = tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        goal = 1.0 + 0.9 * value(w, state, True)
        loss = tf.square(value(v, state, False) - goal)
    return why(tape, loss, w)


@program("stop_gradient", "stop_gradient")
def stopped_in_a_loop():
    h = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        state = h * 1.0
        for _ in range(3):
            state = tf.tanh(state)
            state = tf.stop_gradient(state)  # <- here
    return why(tape, state, h)


# ---- variables


@program("not trainable", "multiply")
def frozen_variable():
    scale = tf.Variable(3.0, trainable=False)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = scale * x  # <- here
    return why(tape, y, scale)


@program("not trainable", "add")
def frozen_bias_in_a_layer():
    class Layer(tf.Module):
        def __init__(self):
            self.w = tf.Variable([1.0, 2.0])
            self.b = tf.Variable([0.0, 0.0], trainable=False)

        def __call__(self, x):
            hidden = self.w * x
            return hidden + self.b  # <- here

    layer = Layer()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([1.0, 1.0])))
    return why(tape, loss, layer.b)


@program("not trainable", "square")
def moving_average():
    average = tf.Variable([1.0], trainable=False)
    with tf.GradientTape() as tape:
        penalty = tf.square(average)  # <- here
        loss = tf.reduce_sum(penalty)
    return why(tape, loss, average)


@program("variables not watched", "multiply")
def variables_by_hand():
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * b  # <- here
    return why(tape, y, b)


@program("variables not watched", "sin")
def none_watched():
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        y = tf.sin(x)  # <- here
        z = y * 2.0
    return why(tape, z, x)


@program("variables not watched", "matmul")
def part_of_a_model_watched():
    first, second = tf.Variable(tf.ones([2, 2])), tf.Variable(tf.ones([2, 1]))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(first)
        hidden = tf.nn.relu(tf.ones([1, 2]) @ first)
        out = hidden @ second  # <- here
    return why(tape, out, second)


@pytest.mark.parametrize("function, cause, operation", PROGRAMS, ids=lambda value: getattr(value, "__name__", None))
def test_cause_and_line(function, cause, operation):
    check(function, cause, operation)


def test_there_are_many_programs():
    assert len(PROGRAMS) >= 30
