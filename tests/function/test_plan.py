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
            np.testing.assert_allclose(tf.convert_to_tensor(f), tf.convert_to_tensor(e), rtol=2e-4, atol=1e-5)


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
