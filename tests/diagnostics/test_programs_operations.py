"""Small programs with a None gradient: dtypes, operations, detours, state, indices and missing paths."""

import numpy as np
import pytest

import tapeflow as tf
from tests.diagnostics.programs import Programs, check, why

PROGRAMS = Programs()
program = PROGRAMS.expect


# ---- dtypes


@program("source dtype", "cast")
def integer_source():
    x = tf.constant(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0  # <- here
    return why(tape, y, x)


@program("source dtype", "multiply")
def integer_variable():
    x = tf.Variable([1, 2, 3])
    with tf.GradientTape() as tape:
        y = x * x  # <- here
    return why(tape, y, x)


@program("source dtype", "where")
def boolean_source():
    mask = tf.constant([True, False])
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.where(mask, w, 0.0)  # <- here
    return why(tape, y, mask)


@program("target dtype", "cast")
def integer_target():
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        y = x * 2.0
        y = tf.cast(y, tf.int32)  # <- here
    return why(tape, y, x)


@program("target dtype", "argmax")
def position_as_target():
    logits = tf.Variable([1.0, 3.0, 2.0])
    with tf.GradientTape() as tape:
        choice = tf.argmax(logits)  # <- here
    return why(tape, choice, logits)


@program("target dtype", "greater")
def truth_as_target():
    x = tf.Variable([1.0, -1.0])
    with tf.GradientTape() as tape:
        positive = x > 0.0  # <- here
    return why(tape, positive, x)


@program("dtype on the path")
def through_text():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        text = tf.strings.as_string(x * 2.0)  # <- here
        y = tf.reduce_sum(tf.strings.to_number(text))
    return why(tape, y, x)


# ---- operations without gradient


@program("operation without gradient", "argmax")
def argmax_as_a_number():
    logits = tf.Variable([1.0, 3.0, 2.0])
    with tf.GradientTape() as tape:
        best = tf.argmax(logits)  # <- here
        y = tf.cast(best, tf.float32) * 2.0
    return why(tape, y, logits)


@program("operation without gradient", "round")
def rounding():
    x = tf.Variable(2.6)
    with tf.GradientTape() as tape:
        y = x * 3.0
        y = tf.round(y)  # <- here
        z = y**2
    return why(tape, z, x)


@program("operation without gradient", "floordiv")
def floor_division():
    x = tf.Variable(7.0)
    with tf.GradientTape() as tape:
        y = x // 2.0  # <- here
        z = tf.sqrt(y)
    return why(tape, z, x)


@program("operation without gradient", "greater")
def accuracy_as_a_loss():
    w = tf.Variable([0.2, 0.9])
    with tf.GradientTape() as tape:
        predictions = tf.sigmoid(w)
        correct = predictions > 0.6  # <- here
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    return why(tape, accuracy, w)


@program("operation without gradient", "cast")
def cast_and_back():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        whole = tf.cast(x, tf.int32)  # <- here
        y = tf.reduce_sum(tf.cast(whole, tf.float32))
    return why(tape, y, x)


@program("operation without gradient", "equal")
def equality_counted():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        hits = tf.equal(x, [1.0, 5.0])  # <- here
        count = tf.math.count_nonzero(hits, dtype=tf.float32)
    return why(tape, count, x)


@program("operation without gradient", "floor")
def binning_in_a_function():
    def binned(v, width):
        scaled = v / width
        return tf.floor(scaled) * width  # <- here

    x = tf.Variable([0.3, 1.7])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(binned(x, 0.5))
    return why(tape, loss, x)


# ---- a detour through NumPy or Python numbers


@program("numpy or numbers", "numpy")
def numpy_function():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.sin(x)
        array = np.exp(y.numpy())  # <- here
        z = tf.reduce_sum(tf.constant(array))
    return why(tape, z, x)


@program("numpy or numbers", "numpy")
def numpy_of_a_variable():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        x2 = x.numpy() ** 2  # <- here
        y = tf.reduce_mean(x2, axis=0)
    return why(tape, y, x)


@program("numpy or numbers", "float")
def python_number():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        number = float(y)  # <- here
        z = tf.constant(number * 2.0) + 1.0
    return why(tape, z, x)


@program("numpy or numbers", "float")
def number_mixed_with_a_weight():
    x, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        norm = float(tf.sqrt(x * x))  # <- here
        y = w * norm
    return why(tape, y, x)


@program("numpy or numbers", "numpy")
def numpy_implicitly():
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        length = np.linalg.norm(x)  # <- here
        y = tf.convert_to_tensor(length) * 2.0
    return why(tape, y, x)


@program("numpy or numbers", "numpy")
def numpy_in_a_helper():
    def activation(v):
        values = np.asarray(v)  # <- here
        return tf.constant(np.maximum(values, 0.0))

    x = tf.Variable([-1.0, 5.0])
    with tf.GradientTape() as tape:
        hidden = activation(x * 2.0)
        loss = tf.reduce_sum(hidden**2)
    return why(tape, loss, x)


@program("numpy or numbers", "numpy")
def numpy_function_in_the_middle():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        doubled = x * 2.0
        y = tf.numpy_function(np.cumsum, [doubled], tf.float32)  # <- here
        z = tf.reduce_sum(y)
    return why(tape, z, x)


# ---- state changed by assign


@program("assign", "assign")
def through_a_variable():
    x, state = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        state.assign(x * 2.0)  # <- here
        y = state * state
    return why(tape, y, x)


@program("assign", "assign")
def accumulated_in_a_loop():
    x, total = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        for _ in range(3):
            total.assign_add(x * 2.0)  # <- here
        y = total * 1.0
    return why(tape, y, x)


@program("assign", "assign")
def state_of_a_cell():
    class Cell:
        def __init__(self):
            self.state = tf.Variable([0.0, 0.0], trainable=False)

        def __call__(self, x):
            new = tf.tanh(self.state + x)
            self.state.assign(new)  # <- here
            return self.state * 1.0

    cell, x = Cell(), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        out = cell(x)
        loss = tf.reduce_sum(out)
    return why(tape, loss, x)


@program("assign", "assign")
def part_of_a_variable():
    x, table = tf.Variable(3.0), tf.Variable([0.0, 0.0])
    with tf.GradientTape() as tape:
        table[1].assign(x * 5.0)  # <- here
        y = tf.reduce_sum(table * 2.0)
    return why(tape, y, x)


@program("assign", "assign")
def variable_made_inside():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        copy = tf.Variable(x * 2.0)  # <- here
        y = tf.reduce_sum(copy * copy)
    return why(tape, y, x)


# ---- only as an index or a shape


@program("index or shape", "gather")
def position_in_a_table():
    logits, table = tf.Variable([1.0, 3.0, 2.0]), tf.Variable([10.0, 20.0, 30.0])
    with tf.GradientTape() as tape:
        best = tf.argmax(logits)
        y = tf.gather(table, best) * 2.0  # <- here
    return why(tape, y, logits)


@program("index or shape")
def position_in_brackets():
    x, table = tf.Variable(1.7), tf.Variable([10.0, 20.0, 30.0])
    with tf.GradientTape() as tape:
        i = tf.cast(x, tf.int32)
        y = table[i] * 2.0  # <- here
    return why(tape, y, x)


@program("index or shape")
def number_of_rows():
    x, w = tf.Variable([[1.0], [2.0], [3.0]]), tf.Variable(6.0)
    with tf.GradientTape() as tape:
        rows = tf.shape(x)[0]  # <- here
        y = w / tf.cast(rows, tf.float32)
    return why(tape, y, x)


@program("index or shape")
def ones_like_the_source():
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(6.0)
    with tf.GradientTape() as tape:
        mask = tf.ones_like(x)  # <- here
        y = tf.reduce_sum(mask * w)
    return why(tape, y, x)


@program("index or shape", "gather")
def embedding_by_rounded_values():
    def look_up(table, positions):
        return tf.gather(table, positions)  # <- here

    x, table = tf.Variable([0.2, 1.9]), tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        positions = tf.cast(tf.round(x), tf.int64)
        loss = tf.reduce_sum(look_up(table, positions))
    return why(tape, loss, x)


@program("index or shape")
def length_read_in_python():
    x, w = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]), tf.Variable(6.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        n = x.shape[0]  # <- here
        y = w / n
    return why(tape, y, x)


@program("index or shape")
def filled_to_the_shape():
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(6.0)
    with tf.GradientTape() as tape:
        tiled = tf.fill(tf.shape(x), w)  # <- here
        y = tf.reduce_sum(tiled)
    return why(tape, y, x)


@program("index or shape", "broadcast_to")
def ones_of_the_static_shape():
    x, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(6.0)
    with tf.GradientTape() as tape:
        mask = tf.ones(x.shape)  # <- here
        y = tf.reduce_sum(mask * w)
    return why(tape, y, x)


# ---- the tape


@program("tape used up")
def second_question():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)  # <- here
    return tape.explain(y, x)


@program("tape used up")
def used_up_in_a_helper():
    def first_gradient(tape, y, x):
        return tape.gradient(y, x)  # <- here

    x, w = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = x * w
    first_gradient(tape, y, x)
    return tape.explain(y, w)


@program("tape used up")
def used_up_by_a_jacobian():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.jacobian(y, x)  # <- here
    return tape.explain(y, x)


@program("tape reset")
def reset_in_the_block():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()  # <- here
        x * 2.0
    return why(tape, y, x)


@program("tape reset")
def reset_in_a_loop():
    x = tf.Variable(3.0)
    losses = []
    with tf.GradientTape(persistent=True) as tape:
        for factor in (1.0, 2.0):
            tape.reset()  # <- here
            losses.append(x * factor)
    return why(tape, losses[0], x)


@program("another tape")
def target_of_another_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as first:
        y = x * x  # <- here
    with tf.GradientTape() as second:
        x * 2.0
    assert first is not second
    return why(second, y, x)


@program("another tape")
def intermediate_of_another_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as encoder_tape:
        code = tf.tanh(x)  # <- here
    with tf.GradientTape() as decoder_tape:
        out = code * 2.0
        loss = tf.square(out)
    assert encoder_tape.explain(code, x).cause == "connected"
    return why(decoder_tape, loss, x)


# ---- Python decides by the value what is computed


@program("numpy or numbers")
def number_of_iterations():
    v = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        total = tf.constant(0.0)
        for k in range(int(v)):  # <- here
            total += tf.constant(float(k))
    return why(tape, total, v)


@program("operation without gradient", "greater")
def branch_by_the_value():
    v = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        if v * 2.0 > 3.0:  # <- here
            y = tf.constant(1.0) * 2.0
        else:
            y = tf.constant(0.0) * 2.0
    return why(tape, y, v)


# ---- no path at all


@program("no path")
def a_branch_that_uses_something_else():
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        score = tf.sin(x)  # <- here
        print(f"{float(score):.3f}")
        y = w * 2.0
    return why(tape, y, x)


@program("no path")
def wrong_variable_used():
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        hidden = tf.sin(a)  # <- here
        loss = b * 2.0
    assert hidden is not None
    return why(tape, loss, a)


@program("no path")
def one_of_two_heads():
    shared, head1, head2 = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        features = tf.tanh(shared)
        first = features * head1
        second = features * head2  # <- here
    assert second is not None
    return why(tape, first, head2)


@program("no path")
def overwritten_result():
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = tf.exp(x)
        loss = w * w  # <- here
    return why(tape, loss, x)


@program("constant derivative")
def second_derivative_of_something_linear():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(w * [3.0, 4.0])
        slope = inner.gradient(y, w)  # <- here
    return why(outer, slope, w)


@program("variable not used")
def never_read():
    used, unused = tf.Variable(2.0), tf.Variable(30.0)
    with tf.GradientTape() as tape:
        loss = used * 4.0  # <- here
    return why(tape, loss, unused)


@pytest.mark.parametrize("function, cause, operation", PROGRAMS, ids=lambda value: getattr(value, "__name__", None))
def test_cause_and_line(function, cause, operation):
    check(function, cause, operation)


def test_there_are_many_programs():
    assert len(PROGRAMS) >= 30
