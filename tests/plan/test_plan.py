"""Plans: a traced program gives what the same program gives when it runs eagerly, call after call."""

import numpy as np
import pytest

import tapeflow as tf


class RandomProgram:
    """A program over tensors and variables made from random choices; the same choices give the same program."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.rows, self.columns = (int(rng.integers(1, 6)), int(rng.integers(1, 7)))
        if seed % 7 == 0:
            self.rows, self.columns = 130, 300  # large enough for blocks, threads and waiting results

    def variables(self) -> list[tf.Variable]:
        rng = np.random.default_rng(self.seed + 1)
        shapes = [(self.rows, self.columns), (self.rows, self.columns), (self.columns,), (self.rows, 1), ()]
        return [tf.Variable(rng.standard_normal(s).astype("float32")) for s in shapes]

    def argument(self, call: int) -> tf.Tensor:
        rng = np.random.default_rng(self.seed + 100 + call)
        return tf.constant(rng.standard_normal((self.rows, self.columns)).astype("float32"))

    def run(self, variables: list[tf.Variable], x: tf.Tensor) -> list[tf.Tensor]:
        rng = np.random.default_rng(self.seed)
        values = [x, x * 2.0]
        results = []
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            for _ in range(int(rng.integers(4, 18))):
                values.append(self.step(rng, values, variables))
            target = tf.reduce_sum(values[-1] * values[-2])
        results += [g for g in tape.gradient(target, [x, *variables]) if g is not None]
        for _ in range(int(rng.integers(0, 5))):
            self.update(rng, variables, values, results)
        picks = rng.integers(0, len(values), 2)
        return [target, *results, *(values[i] for i in picks), variables[0].read_value(), variables[4] + 0.0]

    def step(self, rng, values, variables):
        a, b = (values[i] for i in rng.integers(0, len(values), 2))
        match int(rng.integers(0, 14)):
            case 0:
                return tf.tanh(a) * b
            case 1:
                return a + variables[2]
            case 2:
                return a * variables[3] - variables[4]
            case 3:
                return tf.nn.relu(a) + tf.sigmoid(variables[0])
            case 4:
                return tf.reshape(tf.reshape(a, [-1]) * 0.5, [self.rows, self.columns])
            case 5:
                return tf.concat([a[:1], b[1:]], 0)
            case 6:
                return a - tf.reduce_mean(b, 1, keepdims=True)
            case 7:
                return tf.matmul(tf.matmul(a, b, transpose_b=True), variables[1]) * 0.1
            case 8:
                return tf.where(a > b, a, b * 0.5)
            case 9:
                return tf.transpose(tf.transpose(a) + 1.0)
            case 10:
                return a[::-1] + b[:, ::-1]
            case 11:
                return tf.add_n([a, b, a])
            case 12:
                return tf.stop_gradient(a) * b / (tf.square(b) + 1.0)
            case _:
                return tf.nn.softmax(a) + tf.cast(tf.cast(b > 0, tf.int32), tf.float32)

    def update(self, rng, variables, values, results):
        v = variables[int(rng.integers(0, 2))]
        match int(rng.integers(0, 6)):
            case 0:
                v.assign_sub(0.1 * values[-1])
            case 1:
                v.assign(0.9 * v + 0.1 * values[-2])
            case 2:
                results.append(v + 0.0)
                v.assign_add(values[0])
            case 3:
                variables[0].assign(variables[1])
            case 4:
                variables[4].assign_add(tf.reduce_sum(values[-1]) * 1e-3)
            case _:
                v.assign(v * variables[3] + values[-1])
                results.append(v.read_value() * 2.0)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    program = RandomProgram(seed)
    eager, traced = program.variables(), program.variables()
    function = tf.function(lambda x: program.run(traced, x), autograph=False)
    held = []
    for call in range(4):
        x = program.argument(call)
        expected, found = program.run(eager, x), function(x)
        assert len(expected) == len(found)
        for e, f in zip(expected, found):
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=2e-4, atol=1e-5)
        for e, f in zip(eager, traced):
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=2e-4, atol=1e-5)
        # What was returned before must not change with later calls.
        for tensor, copy in held:
            np.testing.assert_array_equal(tensor.numpy(), copy)
        held += [(f, f.numpy().copy()) for f in found]


@pytest.mark.parametrize("seed", range(20))
def test_gradient_through_a_traced_program(seed):
    program = RandomProgram(seed)
    eager, traced = program.variables(), program.variables()
    function = tf.function(lambda x: program.run(traced, x)[0], autograph=False)
    x = program.argument(0)
    for variables, run in ((eager, lambda x: program.run(eager, x)[0]), (traced, function)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        variables.append(tape.gradient(y, [x, *variables[:5]]))
    for e, f in zip(eager[5], traced[5]):
        assert (e is None) == (f is None)
        if e is not None:
            e, f = np.array(tf.convert_to_tensor(e)), np.array(tf.convert_to_tensor(f))
            np.testing.assert_allclose(f, e, rtol=2e-4, atol=1e-6 * max(10, np.abs(e).max(initial=0)))


def test_a_value_read_before_an_update_keeps_its_elements():
    v = tf.Variable([1.0, 2.0, 3.0, 4.0, 5.0])

    @tf.function
    def step(x):
        before = v.read_value()
        v.assign_add(x)
        return before, before[1:3] + v[1:3], v

    before, both, after = step(tf.ones([5]))
    assert before.numpy().tolist() == [1, 2, 3, 4, 5]
    assert both.numpy().tolist() == [5, 7]
    assert after.numpy().tolist() == [2, 3, 4, 5, 6]
    step(tf.ones([5]))
    assert after.numpy().tolist() == [2, 3, 4, 5, 6]


def test_a_tensor_that_shares_a_variables_memory_does_not_change():
    v = tf.Variable(tf.ones([1000]))
    update = tf.function(lambda: v.assign_sub(0.5 * v))
    held = v.read_value()
    update()
    assert held.numpy().tolist() == [1.0] * 1000
    assert v.numpy().tolist() == [0.5] * 1000


def test_swapped_variables():
    a, b = tf.Variable([1.0, 2.0, 3.0, 4.0, 5.0]), tf.Variable([10.0, 20.0, 30.0, 40.0, 50.0])

    @tf.function
    def swap():
        x, y = a.read_value(), b.read_value()
        a.assign(y + 1.0)
        b.assign(x + 1.0)

    swap()
    assert a.numpy().tolist() == [11, 21, 31, 41, 51]
    assert b.numpy().tolist() == [2, 3, 4, 5, 6]


def test_a_failing_step_leaves_the_function_usable():
    @tf.function
    def check(x):
        return tf.debugging.check_numerics(x, "bad") + 1.0

    with pytest.raises(tf.errors.InvalidArgumentError):
        check(tf.constant([np.nan]))
    assert check(tf.constant([1.0])).numpy().tolist() == [2.0]


def test_variable_of_unknown_shape_may_change_it():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]))
    double = tf.function(lambda: v * 2.0)
    assert double().numpy().tolist() == [2, 4]
    v.assign([1.0, 2.0, 3.0])
    assert double().numpy().tolist() == [2, 4, 6]


def same_after_steps(make, calls: int = 3) -> None:
    """Runs a training step eagerly and traced, each on variables of its own, and compares losses and variables."""
    results = []
    for wrap in (lambda step: step, tf.function):
        variables, step = make()
        step = wrap(step)
        losses = [float(step()) for _ in range(calls)]
        results.append((losses, [v.numpy() for v in variables]))
    (eager_losses, eager_values), (traced_losses, traced_values) = results
    np.testing.assert_allclose(traced_losses, eager_losses, rtol=2e-5)
    for eager, traced in zip(eager_values, traced_values, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=2e-4, atol=2e-6)


CONVOLUTIONS = {
    "same": ((6, 9, 11, 5), (3, 3, 5, 7), {"strides": 1, "padding": "SAME"}),
    "valid": ((9, 12, 10, 16), (3, 2, 16, 32), {"strides": 1, "padding": "VALID"}),
    "strided": ((4, 13, 12, 6), (3, 3, 6, 9), {"strides": 2, "padding": "SAME"}),
    "dilated": ((4, 13, 12, 6), (3, 3, 6, 9), {"strides": 1, "padding": "SAME", "dilations": 2}),
    "one cell": ((5, 14, 14, 24), (1, 1, 24, 48), {"strides": 1, "padding": "SAME"}),
    "one image": ((1, 20, 20, 3), (5, 5, 3, 16), {"strides": 1, "padding": "SAME"}),
    "large filter": ((2, 6, 6, 256), (3, 3, 256, 256), {"strides": 1, "padding": "SAME"}),
    "groups": ((3, 10, 10, 8), (3, 3, 4, 12), {"strides": 1, "padding": "SAME"}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_what_follows_a_convolution(case):
    x_shape, filter_shape, options = CONVOLUTIONS[case]

    def make():
        rng = np.random.default_rng(5)
        x = tf.Variable(rng.standard_normal(x_shape).astype("float32"))
        kernel = tf.Variable(0.1 * rng.standard_normal(filter_shape).astype("float32"))
        bias = tf.Variable(rng.standard_normal(filter_shape[-1:]).astype("float32"))

        def step():
            with tf.GradientTape() as tape:
                y = tf.nn.relu(tf.nn.conv2d(x * 1.5, kernel, **options) + bias)
                pooled = tf.nn.max_pool2d(y, 2, 2, "SAME") + tf.nn.avg_pool2d(tf.tanh(y), 2, 2, "SAME")
                loss = tf.reduce_mean(tf.square(pooled)) + tf.reduce_mean(y)
            for v, dv in zip([x, kernel, bias], tape.gradient(loss, [x, kernel, bias]), strict=True):
                v.assign_sub(0.1 * dv)
            return loss

        return [x, kernel, bias], step

    same_after_steps(make)


@pytest.mark.parametrize("sizes", [(300, 40, 70), (700, 60, 90), (20, 300, 500), (3, 4, 5), (513, 130, 257)])
def test_what_follows_a_product(sizes):
    rows, inner, columns = sizes

    def make():
        rng = np.random.default_rng(6)
        x = tf.constant(rng.standard_normal((rows, inner)).astype("float32"))
        w = tf.Variable(0.1 * rng.standard_normal((inner, columns)).astype("float32"))
        bias, m = tf.Variable(tf.ones([columns])), tf.Variable(tf.zeros([inner, columns]))
        back = tf.Variable(0.1 * rng.standard_normal((columns, rows)).astype("float32"))
        v = tf.Variable(tf.zeros([columns, rows]))

        def step():
            with tf.GradientTape() as tape:
                h = tf.nn.relu(x @ w + bias)
                loss = tf.reduce_mean(tf.square(tf.tanh(h @ back) - 0.5)) + tf.reduce_mean(h)
            dw, db, d_back = tape.gradient(loss, [w, bias, back])
            m.assign(0.9 * m + 0.1 * dw)
            w.assign_sub(0.1 * m / (tf.sqrt(tf.square(m)) + 1.0))
            v.assign(0.9 * v + 0.1 * tf.square(d_back))
            back.assign_sub(0.1 * d_back / (tf.sqrt(v) + 1.0))
            bias.assign_sub(0.1 * db)
            return loss

        return [w, bias, back, m, v], step

    same_after_steps(make)


def test_a_broadcast_that_an_operation_makes_itself():
    x = tf.Variable(np.arange(24, dtype="float32").reshape(4, 6))

    def mean_and_back():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(
                tf.square(x - tf.reduce_mean(x, 1, keepdims=True))
                * tf.broadcast_to([[1.0], [2.0], [3.0], [4.0]], [4, 6])
            )
        return y, tape.gradient(y, x)

    for eager, traced in zip(mean_and_back(), tf.function(mean_and_back)(), strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4, 5), (700, 30), (40, 1), (1, 50), (130, 17, 11), (9,), (2, 40_000)])
def test_sums_of_what_a_group_computes(shape):
    x = tf.constant(np.random.default_rng(3).standard_normal(shape).astype("float32"))

    def sums(x):
        y = tf.square(x) * 0.5 + tf.tanh(x)
        last = len(shape) - 1
        several = [tf.reduce_sum(y, list(range(k, last + 1))) for k in range(last + 1)]
        return [
            tf.reduce_mean(y),
            *several,
            tf.reduce_mean(y, -1, keepdims=True) * 2.0,
            tf.reduce_sum(y, 0),
            tf.reduce_sum(y - 1.0),
        ]

    for eager, traced in zip(sums(x), tf.function(sums)(x), strict=True):
        assert eager.shape == traced.shape
        np.testing.assert_allclose(traced, eager, rtol=2e-5, atol=2e-5 * np.sqrt(x.shape.num_elements()))


# ---- chains that become one node


def gradient_in_both_modes(program, *sources):
    def gradients():
        with tf.GradientTape() as tape:
            loss = program(*sources)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, sources)]

    eager, compiled = gradients(), tf.function(gradients)()
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_array_equal(a, b)
    return [g.numpy() for g in compiled]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_gradients_of_many_slices(dtype):
    x = tf.Variable(tf.cast(tf.reshape(tf.range(24.0), [2, 3, 4]), dtype))

    def program(x):
        parts = [x[:, i] for i in range(3)] + [x[::-1, 1], x[:, ::2][:, 0], x[1:, 0]]
        return tf.add_n([tf.reduce_sum(p * tf.cast(k + 1, dtype)) for k, p in enumerate(parts)])

    (gradient,) = gradient_in_both_modes(program, x)
    expected = np.array([[1 + 5, 2 + 4, 3], [1 + 5 + 6, 2 + 4, 3]])
    np.testing.assert_array_equal(gradient.real.astype(np.float64), np.broadcast_to(expected[:, :, None], [2, 3, 4]))


def test_slices_beside_dense_terms_and_other_readers():
    x, y = tf.Variable(tf.reshape(tf.range(6.0), [3, 2])), tf.Variable(2.0)

    def program(x, y):
        slices = tf.add_n([x[i] * float(i + 1) for i in range(3)])
        return tf.reduce_sum(slices) * y + tf.reduce_sum(x * x) + tf.reduce_sum(tf.gather(x, [1, 1, 0], axis=1))

    gradient, _ = gradient_in_both_modes(program, x, y)
    np.testing.assert_array_equal(gradient, [[2 + 0 + 1, 2 + 2 + 2], [4 + 4 + 1, 4 + 6 + 2], [6 + 8 + 1, 6 + 10 + 2]])


def test_gradients_of_many_looked_up_rows():
    table = tf.Variable(tf.zeros([5, 3]))
    rows = [[0, 1], [1], [4, 4, 4], [2]]

    def program(table):
        return tf.add_n([tf.reduce_sum(tf.gather(table, r)) * float(k + 1) for k, r in enumerate(rows)])

    (gradient,) = gradient_in_both_modes(program, table)
    np.testing.assert_array_equal(gradient[:, 0], [1, 3, 4, 0, 9])


def test_concatenations_of_concatenations():
    a, b, c = tf.constant([[1.0], [2.0]]), tf.constant([[3.0], [4.0]]), tf.constant([[5.0], [6.0]])

    @tf.function
    def program(a, b, c):
        along = tf.concat([tf.concat([a, b], 1), tf.concat([tf.concat([c, a], 1), b], 1)], 1)
        across = tf.concat([tf.concat([a, b], 1), tf.concat([b, c], 1)], 0)
        shared = tf.concat([a, b], 0)
        return along, across, tf.concat([shared, c], 0), shared

    along, across, long, shared = program(a, b, c)
    np.testing.assert_array_equal(along, [[1, 3, 5, 1, 3], [2, 4, 6, 2, 4]])
    np.testing.assert_array_equal(across, [[1, 3], [2, 4], [3, 5], [4, 6]])
    np.testing.assert_array_equal(long[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(shared[:, 0], [1, 2, 3, 4])


# ---- memory and groups


def in_both_modes(program, *args):
    expected, found = program(*args), tf.function(program)(*args)
    for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "part",
    [lambda z: z[:1], lambda z: z[1:], lambda z: tf.reshape(z, [-1])[:3], lambda z: tf.reshape(z, [-1])[3:]],
    ids=["first row", "last row", "front", "back"],
)
def test_a_part_of_what_the_same_group_makes_is_repeated(part):
    x, y = tf.constant([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tf.constant([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])

    def program(x, y):
        z = y * 2.0
        return x * 1.0 + part(z), (x * 1.0 + part(z)) * part(z), z

    in_both_modes(program, x, y)


def test_a_result_that_lies_in_a_value_is_not_written_over():
    v0, v1 = tf.Variable(tf.reshape(tf.range(18.0), [3, 6])), tf.Variable(-tf.ones([3, 6]))

    def program():
        with tf.GradientTape() as tape:
            scattered = tf.tensor_scatter_nd_add(v0, [[0]], v0[1:2])
            chosen = tf.cond(tf.reduce_sum(v1) > 0.0, lambda: v1 * v0, lambda: v1 - v0)
            loss = tf.reduce_sum(tf.square(chosen + scattered))
        return tape.gradient(loss, [v0, v1])

    in_both_modes(program)


def test_a_value_that_a_kernel_may_show_is_not_written_over_in_its_last_step():
    v = tf.Variable([[-0.5, 0.1], [0.2, -0.7], [0.3, -0.4]])
    x = tf.constant([[0.1, 0.9], [0.7, 0.2], [0.3, 0.4]])

    def program():
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = tf.gather(x, [2, 0, 2])
            first = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x[:, ::-1] * v, lambda: x - v)
            second = tf.cond(tf.reduce_sum(v) > 0.0, lambda: v[:, ::-1] * rows, lambda: v - rows)
            loss = tf.reduce_sum(tf.square(tf.concat([rows[:0], second[0:]], 0) + first))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [v, x])]

    in_both_modes(program)
