"""Tapes, accumulators and jacobians around functions, inside them, and both; results compared with eager ones."""

import numpy as np
import pytest

import tapeflow as tf


def polynomial(x):
    return x * x * x + 2.0 * x


def branching(x):
    if x > 0:
        y = x * x * x
    else:
        y = -x * x
    return y


def looping(x):
    y = x
    for _ in tf.range(3):
        y = y * x
    return y


def both(x):
    y = branching(x)
    while tf.abs(y) < 100.0:
        if y > 10.0:
            y = y * x * x
        else:
            y = y * x
    return y


def through_array(x):
    array = tf.TensorArray(tf.float32, size=3)
    y = x
    for i in tf.range(3):
        y = y * x
        array = array.write(i, y)
    return tf.reduce_sum(array.stack())


@tf.custom_gradient
def cubed(x):
    return x * x * x, lambda dy: dy * 3.0 * x * x


def with_custom_gradient(x):
    y = cubed(x)
    if x > 1.0:
        y = y + cubed(x)
    return y


PROGRAMS = [polynomial, branching, looping, both, through_array, with_custom_gradient]


def value_and_derivatives(function, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
    return [v.numpy() for v in (y, first, outer.gradient(first, x))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_two_orders_outside(program):
    x = tf.constant(1.5)
    np.testing.assert_allclose(
        value_and_derivatives(tf.function(program), x), value_and_derivatives(program, x), rtol=1e-5
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_tapes_inside(program):
    x = tf.constant(1.5)
    expected = value_and_derivatives(program, x)

    @tf.function
    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.gradient(y, x)

    @tf.function
    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            dx = first.python_function(x)
        return tape.gradient(dx, x)

    np.testing.assert_allclose(first(x).numpy(), expected[1], rtol=1e-5)
    np.testing.assert_allclose(second(x).numpy(), expected[2], rtol=1e-5)
    with tf.GradientTape() as tape:  # one inside, one outside
        tape.watch(x)
        dx = first(x)
    np.testing.assert_allclose(tape.gradient(dx, x).numpy(), expected[2], rtol=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_forward_accumulators(program):
    x, one = tf.constant(1.5), tf.constant(1.0)
    expected = value_and_derivatives(program, x)[1]
    function = tf.function(program)
    with tf.autodiff.ForwardAccumulator(x, one) as outside:
        y = function(x)
    np.testing.assert_allclose(outside.jvp(y).numpy(), expected, rtol=1e-5)

    @tf.function
    def inside(x):
        with tf.autodiff.ForwardAccumulator(x, one) as accumulator:
            y = program(x)
        return accumulator.jvp(y)

    np.testing.assert_allclose(inside(x).numpy(), expected, rtol=1e-5)


def test_reverse_over_forward_inside():
    @tf.function
    def slope(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
            y = looping(x)
        return accumulator.jvp(y)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = slope(x)
    assert tape.gradient(y, x).numpy() == 48.0


def test_jacobians_inside_and_outside():
    def program(x):
        return tf.map_fn(lambda r: r * r, x) * tf.reduce_sum(x)

    x = tf.constant([1.0, 2.0])

    def jacobian(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.jacobian(y, x).numpy()

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.jacobian(y, x)

    np.testing.assert_allclose(jacobian(tf.function(program)), jacobian(program))
    np.testing.assert_allclose(inside(x).numpy(), jacobian(program))


def test_variables_in_branches_and_loops():
    v = tf.Variable(3.0)

    @tf.function
    def function(x):
        y = x
        if x > 0:
            y = v * v * x
        for _ in tf.range(2):
            y = y * v
        return y

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = function(x)
        first = inner.gradient(y, v)
    assert (y.numpy(), first.numpy(), outer.gradient(first, v).numpy()) == (162.0, 216.0, 216.0)

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            y = function(x)
        return tape.gradient(y, v)

    assert inside(x).numpy() == 216.0


def test_constants_that_branches_use():
    k = tf.constant(5.0)

    @tf.function
    def function(x):
        y = k * x if x > 0 else k
        for _ in tf.range(2):
            y = y * k
        return y

    with tf.GradientTape() as tape:
        tape.watch(k)
        y = function(tf.constant(2.0))
    assert tape.gradient(y, k).numpy() == 150.0

    @tf.function
    def inside(x):
        c = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(c)
            y = tf.cond(x > 0, lambda: c * x, lambda: c)
        return tape.gradient(y, c)

    assert inside(tf.constant(2.0)).numpy() == 2.0


def test_persistent_tape_inside():
    @tf.function
    def function(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            z = y * y
            for _ in tf.range(2):
                z = z + y
        return tape.gradient(z, x), tape.gradient(y, x)

    assert [g.numpy() for g in function(tf.constant(2.0))] == [40.0, 4.0]


def test_sizes_that_only_the_run_knows():
    def program(x, w):
        return tf.reduce_mean(tf.nn.softmax(tf.nn.relu(x @ w))[:, 0] * tf.cast(tf.shape(x)[0], tf.float32))

    traced = tf.function(program, input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([3, 2])])
    for rows in (2, 5):
        x = tf.reshape(tf.range(3.0 * rows), [rows, 3])
        w = tf.constant([[0.1, 0.2], [0.3, 0.1], [0.2, 0.2]])
        results = []
        for function in (traced, program):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = function(x, w)
            results.append([g.numpy() for g in tape.gradient(y, [x, w])])
        for one, two in zip(*results):
            np.testing.assert_allclose(one, two, atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


def test_rows_stay_rows():
    table = tf.Variable(tf.ones([5, 2]))
    function = tf.function(lambda i: tf.reduce_sum(tf.gather(table, i) ** 2))
    with tf.GradientTape() as tape:
        y = function(tf.constant([1, 3, 1]))
    gradient = tape.gradient(y, table)
    assert isinstance(gradient, tf.IndexedSlices)
    assert tf.convert_to_tensor(gradient).numpy()[:, 0].tolist() == [0.0, 4.0, 0.0, 2.0, 0.0]


def test_boolean_mask_and_where():
    function = tf.function(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 1.0) ** 2) + tf.reduce_sum(x[x > 2.0]))
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert y.numpy() == 16.0
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 4.0, 7.0]


def test_recurrent_network():
    units = 3
    w = tf.Variable(tf.random.stateless_normal([2 + units, 4 * units], [1, 2]))
    b = tf.Variable(tf.zeros([4 * units]))

    def run(xs):
        h = c = tf.zeros([tf.shape(xs)[1], units])
        outputs = tf.TensorArray(tf.float32, size=tf.shape(xs)[0])
        for k in tf.range(tf.shape(xs)[0]):
            i, f, g, o = tf.split(tf.concat([xs[k], h], 1) @ w + b, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            outputs = outputs.write(k, h)
        return tf.reduce_sum(outputs.stack() ** 2)

    xs = tf.random.stateless_normal([5, 2, 2], [3, 4])
    results = []
    for function in (run, tf.function(run), tf.function(run, input_signature=[tf.TensorSpec([None, None, 2])])):
        with tf.GradientTape() as tape:
            y = function(xs)
        results.append([np.asarray(v) for v in (y, *tape.gradient(y, [w, b]))])
    for other in results[1:]:
        for one, two in zip(results[0], other):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_custom_gradient_over_a_variable():
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def scaled(x):
        return x * v, lambda dy, variables=None: (dy * v, [dy * x * 10.0])

    @tf.function
    def function(x):
        y = scaled(x)
        if x > 1.0:
            y = y + scaled(x)
        return y

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [6.0, 40.0]


def test_custom_gradient_whose_rule_refuses():
    @tf.custom_gradient
    def refusing(x):
        def rule(dy):
            raise NotImplementedError("no derivative")

        return x * 2.0, rule

    function = tf.function(lambda x: refusing(x))
    x = tf.constant(2.0)
    assert function(x).numpy() == 4.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(NotImplementedError, match="no derivative"):
            tape.gradient(function(x), x)


def test_recomputed_blocks():
    block = tf.recompute_grad(lambda x: tf.sin(x) * x)

    @tf.function
    def function(x):
        y = x
        for _ in tf.range(2):
            y = block(y)
        return y

    x = tf.constant(2.0)
    np.testing.assert_allclose(
        value_and_derivatives(function, x), value_and_derivatives(lambda x: block(block(x)), x), rtol=1e-5
    )


def test_hessians_and_their_products_inside():
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def product(u):
        with tf.autodiff.ForwardAccumulator(v, u) as accumulator:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v**3)
            dv = tape.gradient(y, v)
        return accumulator.jvp(dv)

    assert product(tf.constant([1.0, 1.0])).numpy().tolist() == [6.0, 12.0]

    @tf.function
    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(x**3) * x[0]
            dx = inner.gradient(y, x)
        return outer.jacobian(dx, x)

    assert hessian(tf.constant([1.0, 2.0])).numpy().tolist() == [[12.0, 12.0], [12.0, 12.0]]


def test_an_error_while_tracing_leaves_nothing_open():
    x = tf.constant(1.0)

    @tf.function
    def failing(x):
        if x > 0:
            with tf.GradientTape() as tape:
                tape.watch(x)
                raise RuntimeError("stop")
        return x

    with pytest.raises(RuntimeError, match="stop"):
        failing(x)
    assert tf.executing_eagerly()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 2.0


# ---- a call under several tapes, or under one that may be asked again, is one record


@tf.function
def curved(x):
    return tf.sin(x) * x**3


X3 = tf.constant([0.5, 1.0])


def test_persistent_tape_records_a_call_once():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X3)
        y = curved(X3)
        assert len(tape._records()) == 1
        first = tape.gradient(y, X3)
        second = tape.gradient(first, X3)
    s, c = np.sin(X3), np.cos(X3)
    x = X3.numpy()
    np.testing.assert_allclose(first, 3 * x**2 * s + x**3 * c, rtol=1e-6)
    np.testing.assert_allclose(second, 6 * x * s + 6 * x**2 * c - x**3 * s, rtol=1e-5)
    np.testing.assert_allclose(
        tape.gradient(second, X3), 6 * s + 18 * x * c - 9 * x**2 * s - x**3 * c, rtol=1e-5, atol=1e-5
    )


def test_nested_tapes_record_a_call_once():
    with tf.GradientTape() as third, tf.GradientTape() as second, tf.GradientTape() as tape:
        for t in (third, second, tape):
            t.watch(X3)
        y = curved(X3)
        assert [len(t._records()) for t in (third, second, tape)] == [1, 1, 1]
    np.testing.assert_array_equal(tape.gradient(y, X3), second.gradient(y, X3))
    assert third.gradient(y, X3) is not None


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_any_order_by_nested_tapes(order):
    def derivative(function, x, order):
        if order == 0:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(function, x, order - 1)
        return tape.gradient(y, x)

    weight = tf.Variable(2.0)
    traced = tf.function(lambda x: tf.sin(x) * x**4 * weight)
    plain = traced.python_function
    np.testing.assert_allclose(derivative(traced, X3, order), derivative(plain, X3, order), rtol=1e-4)


def test_second_derivative_by_a_variable_that_a_function_reads():
    weight = tf.Variable(2.0)
    function = tf.function(lambda x: x * weight**3)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = function(tf.constant(3.0))
        first = tape.gradient(y, weight)
    assert (first.numpy(), outer.gradient(first, weight).numpy()) == (36, 36)


def test_only_what_is_asked_for_is_computed():
    weight = tf.Variable([[1.0, 2.0]])
    function = tf.function(lambda x, y: tf.reduce_sum(x * weight + y))
    x, y = tf.ones([3, 2]), tf.ones([3, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = function(x, y)
    assert tape.gradient(z, weight).shape == [1, 2]
    assert tape.gradient(z, [y, x])[1].numpy().tolist() == [[1, 2]] * 3
    assert tape.gradient(z, [weight, y])[0].numpy().tolist() == [[3, 3]]


def test_random_function_under_a_persistent_tape():
    function = tf.function(lambda x: x**2 * tf.random.uniform([], 1.0, 2.0))
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
        slope = tape.gradient(y, x)
    np.testing.assert_allclose(slope, 2 * y / x, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(slope, x), 2 * y / x**2, rtol=1e-6)


CAPTURING = {
    "alone": lambda z, a: z,
    "with constants": lambda z, a: z * 2.0,
    "with arguments": lambda z, a: z * a,
    "in a function inside": lambda z, a: tf.function(lambda: z * 3.0)(),
    "in a branch": lambda z, a: tf.cond(a > 0.0, lambda: z * 3.0, lambda: z),
    "in the condition": lambda z, a: tf.cond(z * 2.0 > 0.0, lambda: z * 3.0, lambda: z),
    "in a loop": lambda z, a: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + z * z), [0, 0.0])[1],
    "for all slices": lambda z, a: tf.reduce_sum(tf.vectorized_map(lambda e: e * (z * z), tf.constant([1.0, 2.0]))),
}


@pytest.mark.parametrize("body", CAPTURING.values(), ids=CAPTURING)
@pytest.mark.parametrize("traced_before", [False, True])
def test_gradients_of_tensors_from_outside(body, traced_before):
    x, a = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as plain:
        plain.watch(x)
        expected = body(x * x, a)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = x * x
        f = tf.function(lambda a: body(z, a))
        if traced_before:
            with tape.stop_recording():
                f(a)
        y = f(a)
    assert float(y) == float(expected)
    assert float(tape.gradient(y, x)) == float(plain.gradient(expected, x))


def test_tensors_from_outside_that_are_watched_after_the_trace():
    x = tf.constant(3.0)
    cube = tf.function(lambda: x * x * x)
    cube()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube()
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (27.0, 18.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as forward:
        y = cube()
    assert float(forward.jvp(y)) == 54.0


def test_constants_of_the_trace_itself_are_computed_while_tracing():
    table = tf.constant([1.0, 2.0])
    inside = tf.function(lambda x: x * (tf.constant([1.0, 2.0]) * 2.0 + 1.0)).get_concrete_function(tf.TensorSpec([2]))
    outside = tf.function(lambda x: x * (table * 2.0 + 1.0)).get_concrete_function(tf.TensorSpec([2]))
    assert (inside.graph.node_count, outside.graph.node_count) == (1, 3)


def test_a_tape_that_ends_while_a_function_is_traced():
    x = tf.constant(3.0)

    def ask_inside():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            return tf.function(lambda y: tape.gradient(y, x))(y)

    assert ask_inside() is None
    assert float(x + x) == 6.0  # the tape does not listen any more: it is gone
