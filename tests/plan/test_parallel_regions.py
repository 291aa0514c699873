"""Branches of a function that run at the same time give what one operation after the other gives, to the last bit."""

import concurrent.futures
import os

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core

SIZE = 96


@pytest.fixture(autouse=True)
def two_threads():
    tf.config.threading.set_intra_op_parallelism_threads(2)
    yield
    tf.config.threading.set_intra_op_parallelism_threads(0)
    tf.config.threading.set_inter_op_parallelism_threads(0)


def matrices(count: int, size: int = SIZE, dtype: str = "float32") -> list[tf.Tensor]:
    rng = np.random.default_rng(count)
    parts = [rng.standard_normal((size, size)).astype(dtype) for _ in range(count)]
    return [tf.constant(p @ p.T + size * np.eye(size, dtype=dtype)) for p in parts]


def branches(function, *args) -> list[list[list[str]]]:
    """The names of the operations in each branch of each section."""
    sections = function.get_concrete_function(*args).graph.parallel_regions()
    return [[[operation for operation, _, _ in part] for part in parts] for _, parts in sections]


def both_ways(program, *args):
    """The results with branches and without; the first of them must have some."""
    with_branches, without = tf.function(program, autograph=False), tf.function(program, autograph=False)
    found = [with_branches(*args) for _ in range(3)]
    assert branches(with_branches, *args)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    expected = without(*args)
    assert not branches(without, *args)
    tf.config.threading.set_inter_op_parallelism_threads(0)
    for result in found:
        for f, e in zip(tf.nest.flatten(result), tf.nest.flatten(expected), strict=True):
            np.testing.assert_array_equal(f.numpy(), e.numpy())
    return found[0]


def test_factorizations_of_single_matrices_run_at_the_same_time():
    def program(*a):
        return [tf.reduce_sum(tf.linalg.cholesky(x)) for x in a]

    function = tf.function(program)
    args = matrices(4, 200)
    [section] = branches(function, *args)
    assert [sorted(part) for part in section] == [["Cholesky", "Sum"]] * 4
    found = both_ways(program, *args)
    for f, x in zip(found, args):
        np.testing.assert_array_equal(f.numpy(), tf.reduce_sum(tf.linalg.cholesky(x)).numpy())


def test_small_functions_have_no_branches():
    assert branches(tf.function(lambda a, b: (tf.linalg.cholesky(a), tf.linalg.cholesky(b))), *matrices(2, 4)) == []


def test_kernels_that_share_their_work_have_no_branches():
    x = tf.ones([1000, 1000])
    assert branches(tf.function(lambda a, b: (tf.tanh(a), tf.reduce_max(b, 0))), x, x) == []
    assert branches(tf.function(lambda a, b: (tf.matmul(a, a), tf.matmul(b, b))), x, x) == []


def test_one_thread_has_no_branches():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    assert branches(tf.function(lambda a, b: (tf.linalg.qr(a), tf.linalg.qr(b))), *matrices(2)) == []


def test_limits_hold_for_a_function_that_has_branches():
    function = tf.function(lambda a, b: (tf.linalg.qr(a)[0], tf.linalg.qr(b)[0]))
    args = matrices(2)
    expected = [t.numpy() for t in function(*args)]
    assert branches(function, *args)
    for threads, limit in ((1, 0), (2, 1), (4, 2), (4, 0), (2, 0)):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        for found, e in zip(function(*args), expected):
            np.testing.assert_array_equal(found.numpy(), e)


def test_the_text_and_the_picture_show_branches():
    function = tf.function(lambda a, b: (tf.linalg.qr(a), tf.linalg.qr(b)))
    args = matrices(2)
    text = function.experimental_get_compiler_ir(*args)()
    assert "parallel region:\n    lane 1: Qr  # test_parallel_regions.py:" in text
    assert "lane 2: Qr" in text
    assert "parallel region:" in function.graph_svg(*args)


def test_what_depends_on_two_branches_waits_for_both():
    def program(a, b):
        x, y = tf.linalg.inv(a), tf.linalg.inv(b)
        z = tf.linalg.inv(tf.matmul(x, y))
        return x + z, tf.linalg.cholesky(a + y) * 2.0, tf.linalg.cholesky(b + x), z

    both_ways(program, *matrices(2))


def test_towers_of_middle_steps():
    rng = np.random.default_rng(0)
    w = [tf.constant(rng.standard_normal((64, 64)).astype("float32") * 0.1) for _ in range(2)]

    def program(x):
        left = right = x
        for _ in range(20):
            left, right = tf.tanh(tf.matmul(left, w[0]) + 0.1), tf.sigmoid(tf.matmul(right, w[1]))
        return left + right

    both_ways(program, tf.constant(rng.standard_normal((64, 64)).astype("float32")))


def test_views_constants_and_inputs_are_shared():
    rng = np.random.default_rng(0)
    constant = tf.constant(rng.standard_normal((SIZE, SIZE)).astype("float32"))

    def program(a, b):
        rows = tf.reshape(a, [SIZE * SIZE])
        x = [tf.linalg.svd(tf.reshape(rows, [SIZE, SIZE]) + constant * k, compute_uv=False) for k in range(3)]
        y = [
            tf.linalg.solve(a[:48, :48], b[:48, :48]),
            tf.linalg.solve(constant, b),
            tf.linalg.triangular_solve(a, constant),
        ]
        return x, y, rows

    both_ways(program, *matrices(2))


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64"])
def test_kernels_that_make_tensors_of_their_own(dtype):
    def program(*a):
        return [tf.linalg.cholesky(x) for x in a], [tf.cast(tf.cumsum(tf.reshape(x, [-1])), dtype) for x in a]

    both_ways(program, *(tf.cast(x, dtype) for x in matrices(6, 128)))


def test_variables_are_written_in_the_order_of_the_program():
    def make():
        rng = np.random.default_rng(1)
        variables = [tf.Variable(rng.standard_normal((SIZE, SIZE)).astype("float32")) for _ in range(3)]

        def program(a, b):
            before = variables[0] + 0.0
            variables[0].assign(tf.linalg.inv(a) @ variables[1])
            variables[1].assign_add(tf.linalg.inv(b))
            variables[0].assign_sub(0.5 * variables[1])
            variables[2].assign(variables[0] * variables[2])
            return before, variables[0].read_value(), tf.linalg.qr(variables[1] + b), tf.linalg.qr(variables[2] + a)

        return variables, tf.function(program, autograph=False)

    args = matrices(2)
    runs = []
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        variables, function = make()
        results = [function(*args) for _ in range(4)]
        assert bool(branches(function, *args)) == (limit == 0)
        runs.append([t.numpy() for t in tf.nest.flatten(results)] + [v.numpy() for v in variables])
    for found, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_update_in_place_waits_for_the_other_branch_that_reads():
    def make():
        v = tf.Variable(tf.eye(SIZE) * 3.0)

        def program(a):
            old = tf.linalg.qr(v + 0.0)[1] + tf.linalg.svd(v, compute_uv=False)[0]
            v.assign(v + tf.linalg.inv(a) @ v)
            return old, tf.linalg.inv(a + v)

        return v, tf.function(program, autograph=False)

    [a] = matrices(1)
    runs = []
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        v, function = make()
        runs.append([t.numpy() for _ in range(3) for t in function(a)] + [v.numpy()])
    for found, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_update_in_place_waits_for_views_of_the_old_value():
    runs = []
    [a] = matrices(1)
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        v = tf.Variable(tf.eye(SIZE) * 3.0)

        def program(a, v=v):
            old = tf.ensure_shape(v, [SIZE, SIZE])
            first = tf.linalg.inv(a)
            old = tf.linalg.qr(old)[1] + tf.linalg.qr(tf.transpose(old))[1]
            v.assign(first * 2.0)
            return old, tf.linalg.inv(v + a)

        function = tf.function(program, autograph=False)
        runs.append([t.numpy() for _ in range(3) for t in function(a)] + [v.numpy()])
    for found, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_first_error_of_the_program_is_raised_and_variables_stay():
    v = tf.Variable(tf.zeros([SIZE, SIZE]))
    good, singular = matrices(1)[0], tf.zeros([SIZE, SIZE])

    @tf.function(autograph=False)
    def program(a, b, c):
        x = tf.linalg.qr(a)[1]
        y = tf.linalg.solve(b, a)
        z = tf.linalg.inv(c)
        v.assign(v + tf.linalg.svd(a)[1])
        return x, y, z

    program(good, good, good)
    assert branches(program, good, good, good)
    before = v.numpy()
    for _ in range(20):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"linalg\.solve"):
            program(good, singular, singular)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"linalg\.inv"):
            program(good, good, singular)
    np.testing.assert_array_equal(v.numpy(), before)
    _, y, z = program(good, good, good)
    np.testing.assert_array_equal(z.numpy(), tf.linalg.inv(good).numpy())
    np.testing.assert_array_equal(y.numpy(), tf.linalg.solve(good, good).numpy())


def follower(function, *args) -> list[list[str]]:
    """The operations of the first section whose second part follows the first: those of the chain, and the others."""
    sections = function.get_concrete_function(*args).graph.parallel_regions()
    return next([[operation for operation, _, _ in part] for part in parts] for follows, parts in sections if follows)


def chain_with_offshoots(c, d):
    """Inverses that wait for each other, and solutions that nobody but their sum waits for."""
    x, total = tf.eye(SIZE), 0.0
    for k in range(c.shape[0]):
        x = tf.linalg.inv(c[k] + 0.001 * x)
        total += tf.linalg.solve(d[k] + 0.001 * x, x)
    return x, total


def test_what_a_chain_does_not_need_follows_it():
    c, d = tf.stack(matrices(10)), tf.stack(matrices(10)) + 1.0
    chain, rest = follower(tf.function(chain_with_offshoots), c, d)
    assert chain.count("MatrixInverse") >= 5 and "MatrixSolve" not in chain[:-1]
    assert "MatrixInverse" not in rest and rest.count("MatrixSolve") >= 9
    both_ways(chain_with_offshoots, c, d)
    text = tf.function(chain_with_offshoots).experimental_get_compiler_ir(c, d)()
    assert "parallel region, the second lane waits for the first:" in text


@pytest.mark.parametrize(
    ("bad_chain", "bad_rest", "expected"),
    [(7, None, "inv"), (None, 3, "solve"), (7, 5, "solve"), (5, 7, "inv"), (6, 6, "inv"), (0, 0, "inv"), (9, 9, "inv")],
)
def test_errors_of_a_chain_and_its_follower(bad_chain, bad_rest, expected):
    def without(matrix, bad):
        rows = [m * (0.0 if k == bad else 1.0) for k, m in enumerate(tf.unstack(matrix))]
        return tf.stack(rows)

    def program(c, d):
        x, total = tf.eye(SIZE), 0.0
        for k in range(10):
            x = tf.linalg.inv(c[k] + 0.0 * x)
            total += tf.linalg.solve(d[k] + 0.0 * x, x)
        return x, total

    function = tf.function(program)
    c = d = tf.stack(matrices(10))
    assert follower(function, c, d)
    good = [t.numpy() for t in function(c, d)]
    for _ in range(5):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"linalg\.{expected}"):
            function(without(c, bad_chain), without(d, bad_rest))
    for found, before in zip(function(c, d), good):
        np.testing.assert_array_equal(found.numpy(), before)


def test_weights_are_updated_behind_the_walk_back():
    rng = np.random.default_rng(0)
    start = rng.standard_normal((128, 128)).astype("float32") * 0.1
    x = tf.constant(rng.standard_normal((32, 128)).astype("float32"))
    runs = []
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        w, b = tf.Variable(start), tf.Variable(tf.zeros([128]))

        def step(x, w=w, b=b):
            with tf.GradientTape() as tape:
                y = x
                for _ in range(20):
                    y = tf.tanh(y @ w + b)
                loss = tf.reduce_mean(y * y)
            for v, g in zip((w, b), tape.gradient(loss, (w, b))):
                v.assign_sub(0.1 * g)
            return loss

        function = tf.function(step, autograph=False)
        losses = [function(x).numpy() for _ in range(10)]
        if limit == 0:
            chain, rest = follower(function, x)
            assert "TanhGrad" in chain and "TanhGrad" not in rest and "MatMul" in rest
        runs.append([*losses, w.numpy(), b.numpy()])
    for found, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_random_numbers_keep_their_order():
    def program(a, b):
        x = tf.linalg.inv(a) + tf.random.normal([SIZE, SIZE])
        y = tf.linalg.inv(b) + tf.random.normal([SIZE, SIZE])
        return tf.linalg.qr(x), tf.linalg.qr(y), tf.random.uniform([3])

    runs = []
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        tf.random.set_seed(7)
        function = tf.function(program, autograph=False)
        runs.append([t.numpy() for _ in range(3) for t in tf.nest.flatten(function(*matrices(2)))])
    for found, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_effects_keep_their_order(capfd):
    @tf.function
    def program(a, b):
        x = tf.linalg.qr(a)[1]
        tf.print("first", tf.shape(x))
        y = tf.linalg.qr(b)[1]
        tf.print("second", tf.shape(y))
        return x, y

    program(*matrices(2))
    out, err = capfd.readouterr()
    assert (out + err).index("first") < (out + err).index("second")


def test_gradients_around_and_inside():
    def loss(a, b):
        return tf.reduce_sum(tf.linalg.inv(a) @ a) + tf.reduce_sum(tf.linalg.cholesky(b)) + tf.linalg.logdet(a + b)

    a, b = matrices(2)
    function = tf.function(loss)

    def gradients(call, a=a, b=b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = call(a, b)
        return tape.gradient(y, [a, b])

    inside = tf.function(lambda a, b: gradients(loss, a, b))
    expected = gradients(loss)
    for found in (gradients(function), inside(a, b), inside(a, b)):
        for f, e in zip(found, expected):
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=1e-4, atol=1e-5)
    assert branches(inside, a, b)
    with tf.GradientTape() as outer:
        outer.watch(a)
        first = gradients(function)[0]
    second = outer.gradient(first, a)
    with tf.GradientTape() as outer:
        outer.watch(a)
        first = gradients(loss)[0]
    np.testing.assert_allclose(second.numpy(), outer.gradient(first, a).numpy(), rtol=1e-3, atol=1e-4)


def test_functions_that_call_functions_and_loops():
    inner = tf.function(lambda a, b: (tf.linalg.inv(a), tf.linalg.inv(b)))

    def program(a, b):
        for _ in tf.range(3):
            a, b = inner(a + 1.0, b + 2.0)
        return inner(a, b)

    a, b = matrices(2)
    function = tf.function(program)
    found = function(a, b)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for f, e in zip(found, tf.function(program)(a, b)):
        np.testing.assert_array_equal(f.numpy(), e.numpy())


class RandomProgram:
    """Steps of middle size over a few matrices, chosen at random; the same seed gives the same program."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.start = [rng.standard_normal((SIZE, SIZE)).astype("float32") for _ in range(2)]

    def variables(self) -> list[tf.Variable]:
        return [tf.Variable(x) for x in self.start]

    def run(self, variables: list[tf.Variable], x: tf.Tensor):
        rng = np.random.default_rng(self.seed)
        values = [x, tf.transpose(x), variables[0] + 0.0]
        for _ in range(int(rng.integers(6, 25))):
            a, b = (values[i] for i in rng.integers(max(0, len(values) - 6), len(values), 2))
            values.append(self.step(int(rng.integers(0, 12)), a, b, variables))
            if rng.integers(0, 6) == 0:
                variables[int(rng.integers(0, 2))].assign(tf.tanh(values[-1] * 0.1))
        return values[-4:], tf.reduce_sum(values[-1]), variables[1] * 2.0

    def step(self, kind, a, b, variables):
        scaled = a / (1.0 + tf.reduce_max(tf.abs(a)))
        match kind:
            case 0:
                return tf.linalg.qr(scaled)[0]
            case 1:
                return tf.linalg.inv(scaled + 40.0 * tf.eye(SIZE))
            case 2:
                return tf.linalg.svd(scaled)[1] + b
            case 3:
                return tf.sort(b, axis=0)
            case 4:
                return tf.reshape(tf.cumsum(tf.reshape(scaled, [-1])), [SIZE, SIZE]) * 0.01
            case 5:
                return tf.matmul(scaled, b) + variables[0]
            case 6:
                return tf.concat([scaled[:40], b[40:]], 0)
            case 7:
                return tf.linalg.cholesky(tf.matmul(scaled, scaled, transpose_b=True) + 2.0 * tf.eye(SIZE))
            case 8:
                return tf.reshape(tf.reshape(scaled, [-1])[::-1], [SIZE, SIZE]) - variables[1]
            case 9:
                return tf.nn.softmax(scaled) * b
            case 10:
                return tf.transpose(scaled) + tf.reduce_mean(b, 1, keepdims=True)
            case _:
                return tf.linalg.solve(scaled + 40.0 * tf.eye(SIZE), b)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    program = RandomProgram(seed)
    sets = [program.variables(), program.variables()]
    functions = [tf.function(lambda x, v=v: program.run(v, x), autograph=False) for v in sets]
    for call in range(3):
        x = tf.constant(np.random.default_rng(call).standard_normal((SIZE, SIZE)).astype("float32"))
        found = functions[0](x)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        expected = functions[1](x)
        tf.config.threading.set_inter_op_parallelism_threads(0)
        for f, e in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_array_equal(f.numpy(), e.numpy())
        for f, e in zip(*sets):
            np.testing.assert_array_equal(f.numpy(), e.numpy())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_branches():
    function = tf.function(lambda a, b: (tf.linalg.qr(a)[1], tf.linalg.qr(b)[1]))
    args = matrices(2)
    expected = [t.numpy() for t in function(*args)]
    child = os.fork()
    if child == 0:
        equal = all(np.array_equal(f.numpy(), e) for f, e in zip(function(*args), expected))
        os._exit(0 if equal else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_of_the_program_share_a_function():
    function = tf.function(lambda a, b: (tf.linalg.qr(a)[1], tf.linalg.qr(b)[1]))
    args = matrices(2)
    expected = [t.numpy() for t in function(*args)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: function(*args), range(40)):
            for f, e in zip(found, expected):
                np.testing.assert_array_equal(f.numpy(), e)


def test_memory_is_given_back():
    function = tf.function(lambda *a: [tf.linalg.cholesky(tf.cast(x, tf.float16)) for x in a])
    args = matrices(4, 128)
    function(*args)
    before = _core.memory_info()["current"]
    for _ in range(10):
        function(*args)
    assert _core.memory_info()["current"] == before


def test_many_steps_that_read_a_variable():
    x = tf.Variable(tf.ones([10]))

    @tf.function
    def total():
        y = tf.identity(x)
        return tf.add_n([y * float(i % 7) for i in range(5000)])

    np.testing.assert_array_equal(total(), np.full(10, sum(i % 7 for i in range(5000)), np.float32))


def test_the_weights_of_a_long_recurrence_follow_its_chain_in_one_region():
    """However long the forward chain is, which no search finds a second lane for."""
    random = np.random.default_rng(0)
    x = tf.constant(random.standard_normal((120, 32, 64)).astype(np.float32))
    w = tf.Variable((0.1 * random.standard_normal((128, 384))).astype(np.float32))
    u = tf.Variable((0.1 * random.standard_normal((64, 384))).astype(np.float32))

    def step():
        with tf.GradientTape() as tape:
            h = tf.zeros([32, 128])
            for t in range(120):
                a, b = tf.split(tf.matmul(x[t], u), 3, axis=1), tf.split(tf.matmul(h, w), 3, axis=1)
                z, r = tf.sigmoid(a[0] + b[0]), tf.sigmoid(a[1] + b[1])
                h = z * h + (1.0 - z) * tf.tanh(a[2] + r * b[2])
            loss = tf.reduce_sum(h * h)
        return tape.gradient(loss, [w, u])

    function = tf.function(step)
    text = function.experimental_get_compiler_ir()(stage="after-schedule")
    assert "pipelined region" in text
    assert text.count("region of") <= 6, text.count("region of")
    for compiled, eager in zip(function(), step(), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-3, atol=1e-3)
