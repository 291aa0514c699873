"""`tf.experimental.numpy`: NumPy's dtype promotion, and gradients through it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf

tnp = tf.experimental.numpy


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "true_divide", "power", "less", "logical_and"])
@pytest.mark.parametrize("left", ["bool", "int8", "int32", "float32", "float64"])
@pytest.mark.parametrize("right", ["bool", "int32", "int64", "float32"])
def test_promotion_is_numpys(name, left, right):
    if name == "power" and left == right == "bool":
        pytest.skip("NumPy gives int8, TensorFlow nothing")
    x, y = np.array([1, 1], left), np.array([1, 0], right)
    with np.errstate(divide="ignore"):
        expected = getattr(np, name)(x, y)
    got = getattr(tnp, name)(tf.constant(x), tf.constant(y)).numpy()
    np.testing.assert_array_equal(got, expected)
    if name != "true_divide" or expected.dtype == np.float64:
        assert got.dtype == expected.dtype


def test_python_numbers_give_way():
    assert tnp.add(tf.constant([1.0]), 1.5).dtype == tf.float32
    assert tnp.add(tf.constant([1]), 1.5).dtype == tf.float64
    assert tnp.add(tf.constant([1.0]), [1.0]).dtype == tf.float32
    assert tnp.array([1.0]).dtype == tf.float64
    assert tnp.ones([2]).dtype == tf.float64
    assert tnp.arange(3).dtype == tf.int64


def test_reductions_widen():
    x = tf.constant([[1, 2], [3, 4]], tf.int8)
    assert tnp.sum(x).dtype == tf.int64
    assert tnp.mean(x).dtype == tf.float64
    assert tnp.max(x).dtype == tf.int8
    assert tnp.argmax(x).numpy() == 3
    np.testing.assert_array_equal(tnp.cumsum(x).numpy(), [1, 3, 6, 10])
    assert tnp.var(x, ddof=1).numpy() == pytest.approx(np.var([1, 2, 3, 4], ddof=1))


@pytest.mark.parametrize(("left", "right"), [([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([4, 2, 3], [3, 5])])
def test_matmul_shapes(left, right):
    x, y = np.ones(left), np.ones(right)
    np.testing.assert_array_equal(tnp.matmul(x, y).numpy(), np.matmul(x, y))


def test_gradients_pass():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.multiply(tnp.square(x), 3))
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [6, 12])


def test_choices_and_places():
    assert tnp.where([True, False], 1, 2.5).dtype == tf.float64
    np.testing.assert_array_equal(tnp.where([0, 3, 4])[0].numpy(), [1, 2])
    np.testing.assert_array_equal(tnp.take([1, 2, 3], [5, -1]).numpy(), [3, 1])
    np.testing.assert_array_equal(tnp.clip([1, 9], None, 5).numpy(), [1, 5])


MATRIX = np.arange(12.0).reshape(3, 4)
CUBE = np.arange(24).reshape(2, 3, 4)

SAME_AS_NUMPY = {
    "angle": [([1j, -1.0],), (np.array([1, -1]), True)],
    "append": [([1], [2.5]), (MATRIX, MATRIX, 1)],
    "around": [(np.array([1.256, -2.5, 3.5]), 1), (np.array([12, 15, 25]), -1), (2.5,)],
    "array_equal": [([1, 2], [1, 2]), ([1], [1, 2])],
    "atleast_1d": [(1,)],
    "atleast_2d": [([1, 2],)],
    "atleast_3d": [(1,), ([1, 2],), (MATRIX,)],
    "average": [(MATRIX,), (MATRIX, 1, [1, 2, 3, 4]), (MATRIX, None, MATRIX)],
    "broadcast_arrays": [([1, 2], [[3], [4]])],
    "compress": [([True, False, True], MATRIX, 0), ([True, False, True], MATRIX)],
    "cross": [([1, 2, 3], [4, 5, 6]), (CUBE[:, :, :3], CUBE[:, :, 1:], -1, -1, 0)],
    "diag": [([1, 2], 1), ([1, 2], -1), (MATRIX, 1), (MATRIX, -2)],
    "diag_indices": [(3,)],
    "diagflat": [([[1, 2]], 1)],
    "diagonal": [(CUBE, 1), (CUBE, -1, 1, 2), (CUBE, 9)],
    "diff": [(MATRIX,), (CUBE, 2, 1), ([True, False],)],
    "divmod": [([7, -7], 3)],
    "dot": [(MATRIX, [1, 2, 3, 4]), (CUBE, MATRIX.T), (2, MATRIX)],
    "dsplit": [(CUBE, 2)],
    "dstack": [(([1, 2], [3, 4]),)],
    "einsum": [("ij,kj->ik", MATRIX, MATRIX)],
    "eye": [(2,), (2, 3, 1)],
    "flip": [(MATRIX,), (CUBE, 1), (CUBE, (0, 2))],
    "fliplr": [(MATRIX,)],
    "flipud": [(MATRIX,)],
    "full_like": [([1, 2], 7)],
    "gcd": [([12, 18], 8)],
    "geomspace": [(1, 1000, 4), (-1, -8, 4)],
    "hsplit": [(MATRIX, 2), (np.array([1, 2, 3]), [1])],
    "hstack": [(([1], [2]),), ((MATRIX, MATRIX),)],
    "inner": [([1, 2], [3, 4]), (CUBE, MATRIX)],
    "iscomplex": [([1j, 1],), ([1, 2],)],
    "isreal": [([1j, 1],)],
    "ix_": [([0, 1], [2]), ([True, False, True], [1])],
    "kron": [([1, 2], MATRIX), (MATRIX, [[1, 2]])],
    "lcm": [([4, 6], 10)],
    "linspace": [(0, 1, 5), (0, 1, 4, False), ([0, 1], [2, 5], 3), (0, 1, 0), (0, 1, 1)],
    "logspace": [(0, 2, 3)],
    "meshgrid": [([1, 2], [3, 4, 5])],
    "moveaxis": [(CUBE, 0, 2), (CUBE, (0, 1), (2, 0))],
    "nanmean": [([1.0, np.nan, 4.0],)],
    "nanprod": [([2.0, np.nan],)],
    "nansum": [([1.0, np.nan],)],
    "nonzero": [([0, 1, 2],), (MATRIX,)],
    "pad": [(MATRIX, [(1, 2), (0, 1)], "constant"), (MATRIX, 1, "reflect")],
    "polyval": [([1, 2, 3], [1, 2])],
    "repeat": [(MATRIX, 2), (MATRIX, 2, 1)],
    "roll": [(MATRIX, 5), (MATRIX, 1, 1)],
    "rot90": [(CUBE, k, axes) for k in range(4) for axes in ((0, 1), (2, 1))],
    "select": [([[True, False], [True, True]], [[1, 2], [3.5, 4]])],
    "signbit": [([-1.0, 0.0, -0.0],), ([1, -1],)],
    "sinc": [([0.0, 0.5, 1.5],)],
    "size": [(CUBE,)],
    "sort": [([3, 1, 2],), (CUBE[::-1], 0), (MATRIX, None)],
    "split": [(np.array([1, 2, 3, 4]), 2), (MATRIX, [1, 3], 1)],
    "swapaxes": [(CUBE, 0, -1)],
    "take_along_axis": [(MATRIX, np.argsort(-MATRIX, 1), 1), (MATRIX, np.array([[-1]]), 0)],
    "tensordot": [(CUBE, MATRIX), (MATRIX, MATRIX, ([1], [1]))],
    "tile": [([1, 2], (2, 2)), (CUBE, 2)],
    "trace": [(CUBE,), (MATRIX, 1)],
    "tri": [(2, 3, 1)],
    "tril": [(CUBE, -1)],
    "triu": [(CUBE, 1)],
    "vander": [([1, 2, 3],), ([1, 2, 3], 2, True)],
    "vdot": [([1j, 2], [3, 4j])],
    "vsplit": [(MATRIX, 3)],
    "vstack": [(([1, 2], [3, 4]),)],
    "zeros_like": [(CUBE,)],
}


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_is_numpys(name):
    for arguments in SAME_AS_NUMPY[name]:
        expected = getattr(np, name)(*arguments)
        got = getattr(tnp, name)(*arguments)
        assert isinstance(got, list | tuple) == isinstance(expected, list | tuple)
        pairs = zip(got, expected, strict=True) if isinstance(expected, list | tuple) else [(got, expected)]
        for mine, numpys in pairs:
            np.testing.assert_allclose(np.asarray(mine), numpys, rtol=1e-12, atol=1e-12)
            assert np.shape(mine) == np.shape(numpys)


def test_gradients_pass_through():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.trace(tnp.rot90(x)) + tnp.sum(tnp.kron(x, [[2.0]])) + tnp.sinc(tnp.zeros_like(x))[0, 0]
    np.testing.assert_array_equal(tape.gradient(y, x), [[2.0, 3.0], [3.0, 2.0]])


def test_numpy_behavior():
    """It cannot be undone, so it has a process of its own."""
    program = """
import tapeflow as tf
tf.experimental.numpy.experimental_enable_numpy_behavior()
x = tf.constant([[1, 2], [3, 4]])
assert (x + 1.5).dtype == tf.float64 and (1.5 + x).dtype == tf.float64
assert (tf.constant(1) * tf.constant(2.5)).numpy() == 2.5
assert (tf.Variable(1) - tf.constant(0.5)).numpy() == 0.5
assert x.T.tolist() == [[1, 3], [2, 4]] and x.reshape(-1).tolist() == [1, 2, 3, 4] == x.ravel().tolist()
assert x.reshape(1, 4).shape == [1, 4] and x.transpose(1, 0).tolist() == x.T.tolist()
assert x.astype("float32").dtype == tf.float32 and x.size == 4 and x.ndim == 2
assert x.max().numpy() == 4 and x.mean().numpy() == 2.5 and x.clip(2, 3).tolist() == [[2, 2], [3, 3]]
assert x[x > 2.5].tolist() == [3, 4] and (x == 1.0).tolist() == [[True, False], [False, False]]
v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = v * 3 + v ** 2
assert tape.gradient(y, v).numpy() == 7.0
import random
import numpy as np
random.seed(0)
values = np.arange(120.0).reshape(2, 3, 4, 5)
parts = [0, -1, slice(None), slice(1, None), None, ..., [0, 1], [], (1, 1)]
parts += [np.array([[0, 1], [1, 0]]), np.array([-1, 0])]
checked = 0
for _ in range(300):
    key = tuple(random.choice(parts) for _ in range(random.randint(1, 5)))
    try:
        wanted = values[key]
    except IndexError:
        wanted = None
    try:
        found = tf.constant(values)[key]
    except (IndexError, ValueError, tf.errors.InvalidArgumentError):
        assert wanted is None, key
        continue
    assert wanted is not None and found.shape == wanted.shape and (found.numpy() == wanted).all(), key
    checked += 1
assert checked > 50
v = tf.Variable(values)
assert (v[v > 100.0].numpy() == values[values > 100]).all() and v[[1, 0]][:, [2]].shape == [2, 1, 4, 5]
with tf.GradientTape() as tape:
    y = tf.reduce_sum(v[[0, 0, 1], tf.constant([1, 1, -1])])
assert tape.gradient(y, v)[0, 1, 0, 0].numpy() == 2.0
try:
    v[[0.5]]
except IndexError as error:
    assert "must be of integer" in str(error)
taken = tf.function(lambda x, mask: (x[[1, 0]], x[mask]))
rows, chosen = taken(tf.constant(values), tf.constant(values > 100))
assert (rows.numpy() == values[[1, 0]]).all() and (chosen.numpy() == values[values > 100]).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})


def test_random_numbers_are_tensorflows():
    tnp.random.seed(1)
    np.testing.assert_allclose(tnp.random.randn(2), [0.4459007, 1.43996715], rtol=1e-7)
    np.testing.assert_allclose(tnp.random.rand(2), [0.08085637, 0.26826495], rtol=1e-7)
    np.testing.assert_allclose(tnp.random.uniform(0, 2, [2]), [1.26843989, 0.23564198], rtol=1e-7)
    np.testing.assert_array_equal(tnp.random.randint(0, 10, [3]), [6, 1, 6])
    np.testing.assert_array_equal(tnp.random.poisson(2.0, [3]), [2, 0, 3])


def test_random_numbers_have_numpys_shapes():
    tnp.random.seed(1)
    first = tnp.random.randn(2, 3)
    tnp.random.seed(1)
    np.testing.assert_array_equal(first, tnp.random.standard_normal((2, 3)))
    assert tnp.random.rand(2).dtype == tf.float64
    whole = tnp.random.randint(5, size=[100]).numpy()
    assert whole.min() >= 0 and whole.max() < 5
    bounded = tnp.random.uniform([0.0, 10.0], [1.0, 11.0]).numpy()
    assert 0 <= bounded[0] < 1 and 10 <= bounded[1] < 11
    assert tnp.random.poisson(3.0, [4]).shape == [4]


def test_empty_lists_and_names_of_arguments():
    tnp = tf.experimental.numpy
    assert tnp.sin([]).dtype == tf.float64
    assert tnp.real(val=[1 + 2j]).numpy() == [1]
    assert tnp.copy(a=[1]).numpy() == tnp.ravel(a=[[1]]).numpy() == [1]
    assert tnp.outer(a=[True, False], b=[True]).numpy().tolist() == [[True], [False]]


def test_limits_of_types():
    for dtype in (tf.float32, np.float32, "float32", tf.complex64):
        assert tnp.finfo(dtype).eps == np.finfo(np.float32).eps
    assert tnp.iinfo(tf.int16).max == tnp.iinfo(np.int16).max == 32767


def test_flipped_truth_values():
    assert tf.experimental.numpy.bitwise_not([True, False]).numpy().tolist() == [False, True]
    assert tf.experimental.numpy.bitwise_not([0, 5]).numpy().tolist() == [-1, -6]


def test_running_products_of_unsigned_integers():
    assert tf.experimental.numpy.cumprod(np.array([1, 2, 3], np.uint64)).dtype == tf.float64
    assert tf.experimental.numpy.cumprod(np.array([1, 2, 3], np.uint8)).dtype == tf.int64


def test_types_of_python_are_dtypes():
    tnp = tf.experimental.numpy
    for make in (tnp.zeros, tnp.ones, tnp.empty):
        assert make([2], dtype=int).dtype == tf.int64
        assert make([2], dtype=bool).dtype == tf.bool
        assert make([2]).dtype == tf.float64
    assert tnp.sum([1, 2], dtype=float).dtype == tf.float64
    assert tnp.cumsum([1, 2], dtype=float).dtype == tf.float64
    assert tnp.empty_like(tf.constant(["a"])).numpy().tolist() == [b""]


def test_reshape_in_the_order_of_fortran():
    a = np.arange(24.0).reshape(2, 3, 4)
    for shape in ((4, 6), (-1,), -1, (3, -1, 2)):
        np.testing.assert_array_equal(tnp.reshape(a, shape, order="F"), a.reshape(shape, order="F"))
    with pytest.raises(ValueError, match="'C' and 'F'"):
        tnp.reshape(a, (24,), order="Z")


def test_complex_numbers_are_close():
    np.testing.assert_array_equal(tnp.isclose([1 + 1j, 1j], [1.0, 1j + 1e-9]), [False, True])


def test_size_of_what_only_running_tells():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def count(x):
        return tf.experimental.numpy.size(x)

    assert count(np.ones([3, 2], np.float32)).numpy() == 6


def test_promoted_types_are_those_of_numpy():
    assert tf.experimental.numpy.promote_types(np.int8, tf.uint8) == np.dtype("int16")
    assert isinstance(tf.experimental.numpy.promote_types("int32", np.float32), np.dtype)
