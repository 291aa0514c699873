"""Effects inside functions: in program order, once per run, and not again when gradients are computed."""

import sys

import numpy as np
import pytest

import tapeflow as tf


def test_prints_in_program_order(capsys):
    v = tf.Variable(1.0)

    @tf.function
    def function(n):
        tf.print("start", output_stream=sys.stdout)
        for i in tf.range(n):
            v.assign_add(1.0)
            if i % 2 == 0:
                tf.print("v", v, output_stream=sys.stdout)
        tf.print("end", v, output_stream=sys.stdout)
        return v.read_value()

    assert function(tf.constant(3)).numpy() == 4.0
    assert capsys.readouterr().out.split("\n")[:-1] == ["start", "v 2", "v 4", "end 4"]
    function(tf.constant(1))
    assert capsys.readouterr().out.split("\n")[:-1] == ["start", "v 5", "end 5"]


def test_gradients_do_not_repeat_effects(capsys):
    v, x = tf.Variable(1.0), tf.constant(2.0)

    @tf.function
    def function(x):
        y = x
        for _ in tf.range(2):
            v.assign_add(1.0)
            tf.print("once", output_stream=sys.stdout)
            y = y * x
        return y

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert tape.gradient(y, x).numpy() == 12.0
    assert v.numpy() == 3.0
    assert capsys.readouterr().out == "once\nonce\n"


def test_python_side_effects_happen_while_tracing():
    seen = []
    function = tf.function(lambda x: seen.append(x) or x)
    for _ in range(3):
        function(tf.constant(1))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda x: tf.debugging.assert_equal(x, 1, message="hi"),
            r"assertion failed: hi\nCondition x == y did not hold",
        ),
        (lambda x: tf.debugging.assert_positive(x), "Condition x > 0 did not hold element-wise"),
        (lambda x: tf.debugging.Assert(x > 3, [x, "told"]), "told"),
        (lambda x: tf.debugging.assert_less(x, -5), "Condition x < y did not hold"),
    ],
)
def test_assertions_wait_for_values(check, message):
    @tf.function
    def function(x):
        check(x)
        return x + 1

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(tf.constant(-2))


def test_assertion_that_holds_and_one_on_constants():
    @tf.function
    def function(x):
        tf.debugging.assert_equal(x, 1)
        tf.debugging.assert_rank(x, 0)
        return x

    assert function(tf.constant(1)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold"):
        tf.function(lambda: tf.debugging.assert_equal(1, 2)).get_concrete_function()
    unknown = tf.function(lambda x: tf.debugging.assert_rank(x, 1), input_signature=[tf.TensorSpec(None)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank 1"):
        unknown(tf.constant(1.0))


def test_an_assertion_stops_what_follows():
    v = tf.Variable(0)

    @tf.function
    def function(x):
        v.assign(1)
        tf.debugging.assert_equal(x, 1)
        v.assign(2)

    with pytest.raises(tf.errors.InvalidArgumentError):
        function(tf.constant(5))
    assert v.numpy() == 1


def test_py_function_runs_each_time_with_gradients():
    calls = []

    def cube(x):
        calls.append(x.numpy())
        return x * x * x

    function = tf.function(lambda x: tf.py_function(cube, [x], tf.float32) + 1.0)
    x = tf.constant(2.0)
    assert [function(x).numpy(), function(x).numpy()] == [9.0, 9.0]
    assert len(calls) == 2
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
    assert (first.numpy(), outer.gradient(first, x).numpy()) == (12.0, 12.0)


def test_numpy_function_and_several_results():
    function = tf.function(lambda x: tf.numpy_function(lambda a: (a + 1, a.sum()), [x], [tf.float32, tf.float32]))
    a, b = function(tf.constant([1.0, 2.0]))
    assert (a.numpy().tolist(), b.numpy()) == ([2.0, 3.0], 3.0)
    with tf.GradientTape() as tape:
        x = tf.constant(1.0)
        tape.watch(x)
        y = tf.function(lambda x: tf.numpy_function(lambda a: a * 2, [x], tf.float32))(x)
    assert tape.gradient(y, x) is None


def test_wrong_promise_of_py_function():
    function = tf.function(lambda x: tf.py_function(lambda a: tf.cast(a, tf.int32), [x], tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tout promises float32"):
        function(tf.constant(1.0))


def test_variable_updates_of_every_kind():
    v = tf.Variable([0.0, 0.0, 0.0])
    rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([2]))

    @tf.function
    def function(i):
        v.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.reshape(i, [1])))
        first = v + 0
        v[i].assign(7.0)
        v[2:].assign([9.0])
        v.scatter_nd_update([[0]], [5.0])
        v.scatter_mul(rows)
        v.scatter_sub(rows)
        return first, v + 0

    first, last = function(tf.constant(1))
    assert first.numpy().tolist() == [0.0, 1.0, 0.0]
    assert last.numpy().tolist() == v.numpy().tolist() == [5.0, 7.0, 8.0]


def test_variables_changed_and_read_in_loops():
    v = tf.Variable(1.0)

    @tf.function
    def function(n):
        total = tf.constant(0.0)
        while v < tf.cast(n, tf.float32):
            total += v
            v.assign(v * 2.0)
            total += v
        return total

    assert function(tf.constant(8)).numpy() == 1 + 2 + 2 + 4 + 4 + 8
    assert v.numpy() == 8.0


def test_sparse_update_in_a_loop():
    v = tf.Variable(tf.zeros([4]))

    @tf.function
    def function(n):
        for i in tf.range(n):
            v[i].assign(tf.cast(i, tf.float32) + tf.reduce_sum(v))

    function(tf.constant(4))
    assert v.numpy().tolist() == [0.0, 1.0, 3.0, 7.0]


def test_training_loop_inside():
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def train(steps):
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * w)
            w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    train(tf.constant(3))
    np.testing.assert_allclose(w.numpy(), [0.512, 1.024], rtol=1e-6)


def test_branches_that_change_variables():
    w = tf.Variable(2.0)

    @tf.function
    def function(x):
        if x > 0:
            w.assign(x * 10)
        else:
            w.assign_sub(x)
        return w.read_value()

    assert function(tf.constant(1.0)).numpy() == 10.0
    assert function(tf.constant(-1.0)).numpy() == 11.0


def changing_functions(v):
    @tf.function
    def in_a_branch(x):
        if x > 0.0:
            v.assign_add(x)
        return x

    @tf.function
    def in_a_loop(x):
        for _ in tf.range(2):
            v.assign_add(x)
        return x

    return [tf.function(lambda x: v.assign_add(x)), in_a_branch, in_a_loop, tf.function(lambda x: in_a_branch(x))]


def reading_programs(v, change):
    def after_a_branch(x):
        y = v + 0.0
        if x > 0.0:
            change(x)
            y = y + v
        return y

    def in_rounds(x):
        y = tf.constant(0.0)
        for _ in tf.range(3):
            y = y * 10.0 + v
            change(x)
        return y

    def in_a_condition(x):
        y = tf.constant(0.0)
        for _ in tf.range(9):
            if v > 3.0:
                break
            y = y * 10.0 + v
            change(x)
        return y

    def in_rounds_of_rounds(x):
        y = tf.constant(0.0)
        for i in tf.range(2):
            if i >= 0:
                for _ in tf.range(2):
                    y = y * 10.0 + v
                    change(x)
            y = y + 100.0 * v
        return y

    return [after_a_branch, in_rounds, in_a_condition, in_rounds_of_rounds]


@pytest.mark.parametrize("change", range(4))
@pytest.mark.parametrize("program", range(4))
def test_variables_that_a_called_function_changes(program, change):
    v = tf.Variable(1.0)
    eager = reading_programs(v, changing_functions(v)[change])[program]
    expected = [float(eager(tf.constant(1.0))), float(v)]
    v.assign(1.0)
    assert [float(tf.function(eager)(tf.constant(1.0))), float(v)] == expected
