"""Gradients of branches and loops in functions: nothing runs twice, whatever is in them."""

import numpy as np
import pytest

import tapeflow as tf


def gradient(function, *sources):
    """The result of a function of the sources that are tensors, and its gradients by all of them."""
    tensors = [x for x in sources if not isinstance(x, tf.Variable)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return y, tape.gradient(y, list(sources))


def inside(program):
    """The program and its gradient in one function."""

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return y, tape.gradient(y, x)

    return tf.function(both)


def agree(program, x, signature=None):
    """First and second derivatives of the traced program are those of the program itself."""
    found = []
    for function in (tf.function(program, input_signature=signature), program):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        found.append([y, first, outer.gradient(first, x)])
    found.append([*inside(program)(x), found[1][2]])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5)


def power(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * tf.sin(x)), (0, x))[1]


def nested(x):
    def outer(i, s):
        return i + 1, tf.while_loop(lambda j, _: j < 2, lambda j, s: (j + 1, tf.sin(s) * x + s), (0, s))[1]

    return tf.while_loop(lambda i, _: i < 3, outer, (0, x))[1]


def branch_in_loop(x):
    def step(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: s + tf.sin(x * s))

    return tf.while_loop(lambda i, _: i < 4, step, (0, x))[1]


def growing_value(x):
    def step(i, y):
        return i + 1, tf.concat([y, x * tf.reduce_sum(y)], 0)

    return tf.while_loop(lambda i, _: i < 3, step, (0, x), shape_invariants=([], [None]))[1]


def swapped(x):
    return tf.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, b, a * b), (0, x, tf.sin(x)))[2]


def replaced(x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, tf.sin(x)), (0, x * 2.0))[1]


def limited(x):
    loop = {"maximum_iterations": 3, "swap_memory": True, "parallel_iterations": 2}
    return tf.while_loop(lambda _: True, lambda y: (y * x,), (x,), **loop)[0]


def no_rounds(x):
    return tf.while_loop(lambda i, _: i < 0, lambda i, y: (i + 1, y * x), (0, x * x))[1]


def rows(x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s * x[i] + x[-i]), (tf.constant(0), x))[1]


PROGRAMS = [power, nested, branch_in_loop, growing_value, swapped, replaced, limited, no_rounds, rows]


@pytest.mark.parametrize("signature", [None, [tf.TensorSpec([None])]], ids=["known", "unknown"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_of_loops(program, signature):
    agree(program, tf.constant([0.3, 0.7]), signature)


# ---- lists


def filled(x):
    array = tf.TensorArray(tf.float32, 3)
    for i in tf.range(3):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.stack()


def written_twice(x):
    array = tf.TensorArray(tf.float32, 3, element_shape=[2])
    for i in tf.range(6):
        array = array.write(i // 2, x**2 * tf.cast(i, tf.float32))
    return array.stack()


def two_writes(x):
    array = tf.TensorArray(tf.float32, 6)
    for i in tf.range(3):
        array = array.write(2 * i, x * tf.cast(i, tf.float32)).write(2 * i + 1, x**2)
    return array.stack()


def read_and_written(x):
    array = tf.TensorArray(tf.float32, 5, clear_after_read=False).write(0, x).write(1, x * 2.0)
    for i in tf.range(2, 5):
        array = array.write(i, array.read(i - 1) * array.read(i - 2))
    return array.stack()


def read_and_growing(x):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False).write(0, x).write(1, x * 2.0)
    for i in tf.range(2, 5):
        array = array.write(i, array.read(i - 1) * array.read(i - 2))
    return array.stack()


LISTS = [filled, written_twice, two_writes, read_and_written, read_and_growing]


@pytest.mark.parametrize("program", LISTS, ids=lambda p: p.__name__)
def test_derivatives_of_lists(program):
    x = tf.constant([0.3, 0.7])
    expected = gradient(program, x)
    for found in (gradient(tf.function(program), x), inside(program)(x)):
        for one, two in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_list_written_in_a_loop_stays_as_it_was_for_others():
    @tf.function
    def function(x):
        before = tf.TensorArray(tf.float32, 3).unstack(x)
        after = before
        for i in tf.range(3):
            after = after.write(i, x[i] * 10.0)
        return before.stack(), after.stack()

    before, after = function(tf.constant([1.0, 2.0, 3.0]))
    assert before.numpy().tolist() == [1, 2, 3]
    assert after.numpy().tolist() == [10, 20, 30]


# ---- what a second run would show


def test_effects_happen_once():
    count = tf.Variable(0)

    @tf.function
    def function(x):
        for _ in tf.range(3):
            count.assign_add(1)
            x = x * x
        if x > 0:
            count.assign_add(10)
            x = x * 2.0
        return x

    gradient(function, tf.constant(1.0))
    assert count.numpy() == 13


@pytest.mark.parametrize("wrap", [tf.function, lambda program: program], ids=["outside", "inside"])
def test_random_numbers_are_those_of_the_run(wrap):
    @tf.function
    def function(x):
        y = x
        for _ in tf.range(3):
            y = y * tf.random.uniform([], 1.0, 2.0)
        return tf.cond(x > 0, lambda: y * tf.random.uniform([], 1.0, 2.0), lambda: y)

    x = tf.constant(3.0)
    y, (slope,) = gradient(wrap(function), x)
    np.testing.assert_allclose(slope * x, y, rtol=1e-6)


def test_memory_of_a_loop_is_what_its_rule_needs():
    x = tf.ones([1000, 256])

    @tf.function
    def function(x):
        return tf.while_loop(lambda i, _: i < 50, lambda i, y: (i + 1, y + x), (0, x))[1]

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    np.testing.assert_array_equal(tape.gradient(y, x), tf.fill(x.shape, 51.0))
    assert before < 20 * 1000 * 256 * 4


# ---- variables that a loop assigns to and reads: each reading is one of the value then


def test_variable_assigned_in_a_loop():
    v = tf.Variable(2.0)

    @tf.function
    def function(x):
        for _ in tf.range(3):
            x = x * v
            v.assign_add(1.0)
        return x

    y, (dx, dv) = gradient(function, tf.constant(3.0), v)
    assert (y.numpy(), dx.numpy(), dv.numpy(), v.numpy()) == (72, 24, 78, 5)


def test_variable_assigned_in_a_branch():
    v = tf.Variable(2.0)

    @tf.function
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if x > 0:
                y = x * v
                v.assign(y)
                y = y * v
            else:
                y = x
        return y, *tape.gradient(y, [x, v])

    assert [t.numpy() for t in function(tf.constant(3.0))] == [36, 12, 24]


# ---- derivatives of higher order repeat a run as it was


def derivatives(function, x, order):
    """What the function gives and its derivatives by its argument; it returns what is differentiated first."""
    if order == 0:
        result = function(x)
        return [*result] if isinstance(result, tuple) else [result]
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = derivatives(function, x, order - 1)
    return [tape.gradient(result[0], x), *result]


def random_loop(x):
    """A power of the argument times random numbers, and these."""

    def step(i, y, drawn):
        r = tf.random.uniform([], 1.0, 2.0)
        return i + 1, y * x * r, drawn * r

    return tf.while_loop(lambda i, *_: i < 3, step, (0, tf.constant(1.0), tf.constant(1.0)))[1:]


def random_branch(x):
    def third_power():
        r = tf.random.uniform([], 1.0, 2.0)
        return x**3 * r, r

    return tf.cond(x > 0, third_power, lambda: (x, x))


def random_branch_in_loop(x):
    def step(i, y, drawn):
        r, z = tf.cond(
            i < 2, lambda: (tf.random.uniform([], 1.0, 2.0), x), lambda: (tf.random.normal([], 3.0), 1.0 * x)
        )
        return i + 1, y * z * r, drawn * r

    return tf.while_loop(lambda i, *_: i < 3, step, (0, tf.constant(1.0), tf.constant(1.0)))[1:]


@pytest.mark.parametrize("program", [random_loop, random_branch, random_branch_in_loop])
@pytest.mark.parametrize("within", [False, True])
def test_random_numbers_are_the_same_in_all_derivatives(program, within):
    function = tf.function(program)
    if within:
        function = tf.function(lambda x: tuple(derivatives(program, x, 3)))
    for _ in range(2):
        x = tf.constant(1.5)
        third, second, first, y, drawn = function(x) if within else derivatives(function, x, 3)
        found = [float(t / drawn) for t in (y, first, second, third)]
        np.testing.assert_allclose(found, [1.5**3, 3 * 1.5**2, 6 * 1.5, 6], rtol=1e-5)


def test_second_derivative_leaves_the_streams_where_they_are():
    numbers = []
    for order in (1, 3):
        tf.random.set_seed(5)
        function = tf.function(random_loop)
        numbers.append(
            [float(derivatives(function, tf.constant(1.5), order)[-1]), float(function(tf.constant(1.0))[1])]
        )
    assert numbers[0] == numbers[1]


def test_random_loop_in_forward_mode():
    x = tf.constant(1.5)
    for function in (tf.function(random_loop), random_loop):

        def directional(x, function=function):
            with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y, drawn = function(x)
                slope = tape.gradient(y, x)
            return accumulator.jvp(y) / drawn, slope / drawn, accumulator.jvp(slope) / drawn

        for run in (directional, tf.function(directional)):
            np.testing.assert_allclose(run(x), [6.75, 6.75, 9], rtol=1e-5)


def test_second_derivative_by_an_assigned_variable():
    v = tf.Variable(2.0)

    def program(x):
        for _ in tf.range(3):
            x = x * v * x
            v.assign_add(1.0)
        return x

    def expected(x, w):
        for k in range(3):
            x = x * (w + float(k)) * x
        return x

    def twice(function, x, w):
        with tf.GradientTape() as outer:
            outer.watch([x] if isinstance(w, tf.Variable) else [x, w])
            with tf.GradientTape() as tape:
                tape.watch([x] if isinstance(w, tf.Variable) else [x, w])
                y = function(x)
            total = tf.add_n(tape.gradient(y, [x, w]))
        return [y, total, *outer.gradient(total, [x, w])]

    x, w = tf.constant(1.5), tf.constant(2.0)
    right = twice(lambda x: expected(x, w), x, w)
    for function in (tf.function(program), tf.function(lambda x: tf.cond(x > 0, lambda: program(x), lambda: x))):
        v.assign(2.0)
        found = twice(function, x, v)
        np.testing.assert_allclose(found, right, rtol=1e-5)
        assert v.numpy() == 5
        v.assign(2.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = function(x)
            total = tf.add_n(tape.gradient(y, [x, v]))
        np.testing.assert_allclose([y, total, *tape.gradient(total, [x, v])], right, rtol=1e-5)
        assert v.numpy() == 5


def test_a_large_variable_that_is_also_assigned_outside_of_the_loop():
    """Assignments write over old values where nobody needs them; a repetition does."""
    begin = np.linspace(0.5, 1.5, 5000, dtype=np.float32)
    x, w, v = tf.constant(begin + 0.5), tf.constant(begin), tf.Variable(begin)

    @tf.function
    def program(x):
        y = x
        for _ in tf.range(3):
            y = y * v * x
            v.assign_sub(0.1 * v)
        v.assign_add(tf.ones([5000]))
        z = tf.cond(tf.reduce_sum(x) > 0, lambda: y * v, lambda: y)
        v.assign_add(tf.ones([5000]))
        return z

    def expected(x):
        y, factor = x, 1.0
        for _ in range(3):
            y = y * (w + tf.stop_gradient(w * factor - w)) * x
            factor *= 0.9
        return y * (w + tf.stop_gradient(w * factor + 1.0 - w))

    def twice(function, x, w):
        with tf.GradientTape() as outer:
            outer.watch(x)
            outer.watch(w)
            with tf.GradientTape() as tape:
                tape.watch(x)
                tape.watch(w)
                y = function(x)
            one, two = tape.gradient(y, [x, w])
            product = one * two
        return [one, two, *outer.gradient(product, [x, w])]

    right = twice(expected, x, w)
    for run in (twice, tf.function(lambda function, x, w: twice(function, x, v))):
        v.assign(begin)
        for one, two in zip(run(program, x, v), right, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4)
        np.testing.assert_allclose(v, begin * 0.9**3 + 2, rtol=1e-5)


# ---- known values that a tape follows


@pytest.mark.parametrize(
    "program",
    [
        lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * tf.sin(x)), (0, x))[1],
        lambda x: tf.cond(tf.random.uniform([]) < 2, lambda: tf.sin(x) * x, lambda: x),
        lambda x: tf.map_fn(lambda t: tf.sin(x) * t, tf.stack([x, 2 * x]))[1],
        nested,
        branch_in_loop,
    ],
)
def test_a_known_value_is_followed_into_loops(program):
    """It could be computed with while tracing; then no tape would hear of that."""

    def differentiate():
        x = tf.constant(0.7)
        return derivatives(program, x, 2)

    np.testing.assert_allclose(tf.function(differentiate)(), differentiate(), rtol=1e-5)


# ---- several tapes


def test_a_branch_may_give_what_it_was_given():
    """Under two tapes, one of them persistent, branches are recorded one by one."""
    x, y = tf.constant([0.3, 0.5]), tf.constant([0.7, -0.1])

    @tf.function
    def function(x, y):
        z = x - tf.reduce_mean(y)
        one, two = tf.cond(tf.reduce_sum(x) > 0, lambda: [z * 0.9, y], lambda: [z, y])
        return tf.while_loop(lambda i, *_: i < 2, lambda i, a, b: (i + 1, a + b, b), (0, one, two))[1]

    with tf.GradientTape() as outer:
        outer.watch([x, y])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            result = function(x, y)
        found = tape.gradient(result, [x, y])
    np.testing.assert_allclose(found[0], [0.9, 0.9], rtol=1e-6)
    np.testing.assert_allclose(found[1], [1.1, 1.1], rtol=1e-6)


@pytest.mark.parametrize("persistent", [False, True])
def test_second_order_with_a_persistent_tape(persistent):
    x = tf.constant([0.3, 0.7])
    found = []
    for function in (tf.function(branch_in_loop), branch_in_loop):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        found.append([y, first, outer.gradient(first, x)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_a_loop_whose_shapes_go_on_changing():
    """It runs without plans after a few rounds; results and gradients are the same."""

    def shrinking(x):
        body = lambda x, s: (x[1:], s + x[0] ** 2 * x[-1])  # noqa: E731
        invariants = (tf.TensorShape([None]), tf.TensorShape([]))
        return tf.while_loop(lambda x, _: tf.size(x) > 0, body, (x, tf.constant(0.0)), shape_invariants=invariants)[1]

    def growing(x):
        body = lambda i, y: (i + 1, tf.concat([y, y[-2:] * x[0]], 0))  # noqa: E731
        invariants = (tf.TensorShape([]), tf.TensorShape([None]))
        return tf.while_loop(lambda i, _: i < 9, body, (tf.constant(0), x), shape_invariants=invariants)[1]

    agree(shrinking, tf.range(1.0, 10.0))
    agree(growing, tf.constant([1.1, 0.5]))


def test_nan_is_found_in_a_loop_whose_shapes_go_on_changing():
    @tf.function
    def function(x):
        body = lambda i, y: (i + 1, tf.concat([y, tf.math.log(x - tf.cast(i, tf.float32))], 0))  # noqa: E731
        invariants = (tf.TensorShape([]), tf.TensorShape([None]))
        return tf.while_loop(lambda i, _: i < 9, body, (tf.constant(0), x), shape_invariants=invariants)[1]

    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?i)log"):
            function(tf.constant([6.5]))
    finally:
        tf.debugging.disable_check_numerics()


def test_a_rule_that_fails_while_a_plan_is_made():
    @tf.custom_gradient
    def double(x):
        def rule(dy):
            raise ValueError("the rule's own error")

        return x * 2.0, rule

    @tf.function
    def slope():
        x = tf.constant([1.0, 2.0])
        (y,) = tf.while_loop(lambda y: tf.reduce_sum(y) < 100.0, lambda y: double(y), [x])
        return tf.gradients(y, x)

    for _ in range(2):
        with pytest.raises(ValueError, match="the rule's own error"):
            slope()
