"""Fusions that are compiled to one loop give what the operations give one by one, to the last bit."""

import numpy as np
import pytest

import tapeflow as tf

BINARY = [
    tf.add,
    tf.subtract,
    tf.multiply,
    tf.divide,
    tf.maximum,
    tf.minimum,
    tf.math.squared_difference,
    lambda a, b: tf.raw_ops.TanhGrad(y=a, dy=b),
    lambda a, b: tf.raw_ops.SigmoidGrad(y=a, dy=b),
    lambda a, b: tf.raw_ops.ReluGrad(gradients=a, features=b),
]
UNARY = [tf.square, tf.negative, tf.abs, tf.sign, tf.math.reciprocal, tf.math.rsqrt, tf.sqrt, tf.nn.relu]
UNARY += [lambda x: x * 0.75, lambda x: 1.0 - x, lambda x: tf.maximum(x, 0.1)]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, -1e30]


def numbers(random, dtype, *shape):
    x = random.standard_normal(shape).astype(dtype)
    places = random.integers(0, x.size, max(1, x.size // 8))
    x.flat[places] = random.choice(SPECIAL, len(places))
    return x


def same(a, b):
    """Equal bits, but for the sign and payload of NaN."""
    a, b = a.numpy(), b.numpy()
    word = {4: np.uint32, 8: np.uint64}[a.itemsize]
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        np.where(np.isnan(a), 0, a).view(word), np.where(np.isnan(b), 0, b).view(word)
    )


def random_program(random, inputs, length):
    """A function of its inputs that gives several of the values it computes."""
    steps = []
    for _ in range(length):
        values = inputs + len(steps)
        if random.random() < 0.3:
            steps.append((UNARY[random.integers(len(UNARY))], [random.integers(values)]))
        else:
            steps.append((BINARY[random.integers(len(BINARY))], [random.integers(values), random.integers(values)]))
    outputs = sorted({inputs + length - 1, *(inputs + int(k) for k in random.integers(0, length, 3))})

    def program(*arguments):
        values = list(arguments)
        for f, operands in steps:
            values.append(f(*(values[k] for k in operands)))
        return [values[k] for k in outputs]

    return program


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [300, 1023, 1024, 1031, 5000])
def test_random_programs(dtype, size):
    random = np.random.default_rng(size)
    for length in (2, 3, 5, 9, 17, 40, 70):
        program = random_program(random, 4, length)
        arguments = [tf.constant(numbers(random, dtype, size)) for _ in range(4)]
        for compiled, eager in zip(tf.function(program)(*arguments), program(*arguments), strict=True):
            assert same(compiled, eager), length


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 3, 16, 17, 64, 255])
def test_short_runs_with_many_operands(dtype, size):
    """More operands and results than there are registers for their pointers."""
    random = np.random.default_rng(size)
    for inputs, length in ((4, 9), (12, 30), (40, 90), (90, 60)):
        program = random_program(random, inputs, length)
        arguments = [tf.constant(numbers(random, dtype, size)) for _ in range(inputs)]
        for compiled, eager in zip(tf.function(program)(*arguments), program(*arguments), strict=True):
            assert same(compiled, eager), length


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", range(len(BINARY) + len(UNARY)))
def test_every_function(f, dtype):
    """With each pair of special numbers, before and after another operation."""
    f = (BINARY + UNARY)[f]
    a, b = (x.ravel() for x in np.meshgrid(np.array(SPECIAL * 6, dtype), np.array(SPECIAL * 6, dtype)))
    a, b = tf.constant(a), tf.constant(b)

    def program(a, b):
        y = f(a, b) if f in BINARY else f(a)
        return y, y + b

    for compiled, eager in zip(tf.function(program)(a, b), program(a, b), strict=True):
        assert same(compiled, eager)


def test_rows_columns_and_broadcasts():
    random = np.random.default_rng(0)
    x, short = (tf.constant(numbers(random, np.float32, *shape)) for shape in ((7, 300), (2100, 16)))
    short_row = tf.constant(numbers(random, np.float32, 16))
    row = tf.constant(numbers(random, np.float32, 300))
    column = tf.constant(numbers(random, np.float32, 7, 1))
    cube = tf.constant(numbers(random, np.float32, 5, 7, 300))

    def program(x, row, column, cube):
        y = (x - column) * row + 2.0
        z = cube * x - y * cube
        return y, z, tf.reduce_sum(z, -1), tf.exp(z) * cube + row

    def short_rows(x, row):
        return (x + row) * row - x, tf.reduce_max(x * row + 1.0, -1)

    for compiled, eager in zip(tf.function(short_rows)(short, short_row), short_rows(short, short_row), strict=True):
        assert same(compiled, eager)
    for compiled, eager in zip(tf.function(program)(x, row, column, cube), program(x, row, column, cube), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("size", [1000, 200_000])
def test_variables_are_updated_in_place(size):
    random = np.random.default_rng(1)
    start = [random.standard_normal(size).astype(np.float32) for _ in range(3)]
    gradient = tf.constant(random.standard_normal(size).astype(np.float32))

    def adam(w, m, v):
        new_m = 0.9 * m + 0.1 * gradient
        new_v = 0.999 * v + 0.001 * tf.square(gradient)
        return w * 0.99 - 0.01 * new_m / (tf.sqrt(tf.abs(new_v)) + 1e-7), new_m, new_v

    compiled = [tf.Variable(x) for x in start]
    eager = [tf.Variable(x) for x in start]

    def step(variables):
        for variable, value in zip(variables, adam(*variables), strict=True):
            variable.assign(value)

    run = tf.function(lambda: step(compiled))
    for _ in range(3):
        run()
        step(eager)
    for a, b in zip(compiled, eager, strict=True):
        assert same(a.read_value(), b.read_value())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [300, 1031, 5000])
def test_more_single_numbers_than_registers(dtype, size):
    random = np.random.default_rng(size)
    factors = [tf.constant(dtype(k)) for k in random.standard_normal(24)]
    x, y = (tf.constant(numbers(random, dtype, size)) for _ in range(2))

    def program(x, y, *factors):
        for k in range(0, len(factors), 4):
            a, b, c, d = factors[k : k + 4]
            x, y = tf.sign(a * x + b * y) + c * x, y - d * x
        return x * factors[0], y * factors[1] + factors[2]

    for compiled, eager in zip(tf.function(program)(x, y, *factors), program(x, y, *factors), strict=True):
        assert same(compiled, eager)


@pytest.mark.parametrize(
    ("result", "operand"),
    [
        ((4, 32, 32, 8, 4), (4, 1, 1, 8, 1)),  # a group normalisation
        ((3, 17, 5, 7), (3, 1, 5, 1)),
        ((2, 70, 16, 40), (2, 1, 16, 1)),  # runs longer than the ones that are written once
        ((2, 3000, 2), (2, 1, 2)),
        ((5, 2, 3, 40, 3), (1, 2, 1, 40, 1)),
    ],
)
def test_operands_that_are_repeated_between_and_inside_their_elements(result, operand):
    random = np.random.default_rng(0)
    x, k = random.standard_normal(result).astype("f4"), random.standard_normal(operand).astype("f4")

    def formula(x, k):
        return (x - k) * k + x

    expected = (x - k) * k + x
    np.testing.assert_array_equal(formula(tf.constant(x), tf.constant(k)), expected)
    np.testing.assert_array_equal(tf.function(formula)(tf.constant(x), tf.constant(k)), expected)
