"""Sorting, the k largest, search and distinct elements against NumPy; ties, NaN, gradients."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf

rng = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint16"])
@pytest.mark.parametrize("size", [0, 1, 7, 700])
def test_sort_is_numpys(dtype, size):
    x = (rng.normal(size=(3, size)) * 50).astype(np.int64).astype(dtype)
    np.testing.assert_array_equal(tf.sort(x), np.sort(x))
    np.testing.assert_array_equal(tf.argsort(x), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(tf.sort(x, direction="DESCENDING"), np.sort(x)[:, ::-1])


def test_nan_comes_last_and_zeros_are_equal():
    x = [3.0, np.nan, -1.0]
    np.testing.assert_array_equal(tf.sort(x), [-1.0, 3.0, np.nan])
    np.testing.assert_array_equal(tf.sort(x, direction="DESCENDING"), [3.0, -1.0, np.nan])
    np.testing.assert_array_equal(tf.argsort([0.0, -0.0]), [0, 1])


def test_top_k_takes_the_first_of_equals():
    values, indices = tf.math.top_k([3.0, 3.0, 1.0, 3.0], 2)
    np.testing.assert_array_equal(values, [3.0, 3.0])
    np.testing.assert_array_equal(indices, [0, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least k columns"):
        tf.math.top_k([1.0], 2)


def test_gradient_of_sort_goes_back_to_the_places():
    x = tf.constant([[3.0, 1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sort(x) * [[1.0, 10.0, 100.0]]
    np.testing.assert_array_equal(tape.gradient(y, x), [[100.0, 1.0, 10.0]])


def test_searchsorted_is_numpys():
    lines = np.sort(rng.normal(size=20)).astype(np.float32)
    values = np.concatenate([lines[::3], rng.normal(size=9).astype(np.float32)])
    for side in ("left", "right"):
        np.testing.assert_array_equal(tf.searchsorted(lines, values, side=side), np.searchsorted(lines, values, side))


def test_unique_keeps_the_order_and_tells_nan_apart():
    y, index, count = tf.unique_with_counts([5.0, np.nan, 5.0, np.nan, -0.0, 0.0])
    np.testing.assert_array_equal(y, [5.0, np.nan, np.nan, -0.0])
    np.testing.assert_array_equal(index, [0, 1, 0, 2, 3, 3])
    np.testing.assert_array_equal(count, [2, 1, 1, 2])
    assert tf.unique(["b", "a", "b"]).y.numpy().tolist() == [b"b", b"a"]


def test_nth_element_shares_its_gradient_among_equals():
    x = tf.constant([1.0, 2.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.raw_ops.NthElement(input=x, n=1)
    assert float(y) == 2.0
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("size", [1, 47, 48, 100, 8191, 8192])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8"])
def test_orders_of_all_lengths(size, dtype):
    """Each length has its method; all of them are stable."""
    x = np.random.default_rng(size).integers(-100, 100, size).astype(dtype)
    np.testing.assert_array_equal(tf.argsort(x), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(tf.sort(x), np.sort(x))
    k = max(1, size // 3)
    best = tf.math.top_k(x, k)
    expected = np.argsort(-x.astype("float64"), kind="stable")[:k]
    np.testing.assert_array_equal(best.indices, expected)
    np.testing.assert_array_equal(best.values, x[expected])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_top_k_among_nothing_but_nan(dtype):
    np.testing.assert_array_equal(tf.math.top_k(np.full(1000, np.nan, dtype), 3).indices, [0, 1, 2])


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 100, 1000])
def test_search_in_lines_of_any_length(dtype, length):
    lines = np.sort(rng.integers(0, 50, (3, length)), 1).astype(dtype)
    for count in (1, 7, 8, 9, 300):
        values = rng.integers(0, 60, (3, count)).astype(dtype)
        for side in ("left", "right"):
            want = np.stack([np.searchsorted(line, row, side) for line, row in zip(lines, values)])
            np.testing.assert_array_equal(tf.searchsorted(lines, values, side), want)
            np.testing.assert_array_equal(tf.searchsorted(lines, values, side, tf.int64), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_many_distinct_elements(dtype):
    for size, kinds in ((1, 1), (9, 3), (20_000, 15_000), (20_000, 7)):
        x = rng.integers(0, kinds, size).astype(dtype)
        y, index, count = tf.unique_with_counts(x)
        want, first, number, how_many = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)
        np.testing.assert_array_equal(y, want[order])
        np.testing.assert_array_equal(count, how_many[order])
        np.testing.assert_array_equal(np.argsort(order)[number], index)
    x = np.array([np.nan, 1, np.nan, 1, 2])
    np.testing.assert_array_equal(tf.unique(x).idx, [0, 1, 2, 1, 3])


def check_every_size() -> None:
    """Lines of many sizes: random, with few values, in order, with NaN, both zeros and the extremes of the type."""
    generator = np.random.default_rng(3)
    for dtype in ("float32", "float64", "int32", "int64", "uint32", "uint64", "int8", "float16"):
        for size in [*range(1, 18), 31, 33, 63, 65, 100, 127, 129, 255, 257, 300, 1000, 5000]:
            rows = 37 if size < 20 else 3
            special = [0, 1]
            if dtype.startswith("float"):
                special += [np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan]
            else:
                special += [np.iinfo(dtype).min, np.iinfo(dtype).max]
            wide = generator.normal(size=(rows, size)) * 1e3
            bits = generator.integers(-(2**62), 2**62, (rows, size)) >> generator.integers(0, 60, (rows, size))
            for x in (
                wide.astype(np.int64).astype(dtype) if dtype == "int8" else np.abs(wide).astype(dtype),
                bits.astype(dtype),
                np.sort(wide)[:, ::-1].astype(np.int64).astype(dtype),
                generator.integers(0, 3, (rows, size)).astype(dtype),
                generator.choice(np.array(special, dtype), (rows, size)),
                np.where(
                    generator.random((rows, size)) < 0.1, generator.choice(np.array(special, dtype), size), bits
                ).astype(dtype),
            ):
                for direction in ("ASCENDING", "DESCENDING"):
                    key = x.astype(np.longdouble) if direction == "ASCENDING" else -x.astype(np.longdouble)
                    order = np.argsort(key, kind="stable")
                    expected = np.take_along_axis(x, order, -1)
                    where = f"{dtype} {size} {direction}"
                    np.testing.assert_array_equal(tf.argsort(x, direction=direction), order, where)
                    found = tf.sort(x, direction=direction).numpy()
                    assert found.tobytes() == expected.tobytes(), where
            few = max(1, size // 3)
            values, places = tf.math.top_k(x, few)
            np.testing.assert_array_equal(places, order[:, :few])
            assert values.numpy().tobytes() == np.ascontiguousarray(expected[:, :few]).tobytes()


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "baseline"])
def test_every_size_with_every_instruction_set(instructions):
    program = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_sorting as t; t.check_every_size()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"TAPEFLOW_ISA": instructions})


def test_sort_in_a_function_and_its_second_order():
    x = tf.constant([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])
    weights = tf.constant([[1.0, 10.0, 100.0]])

    @tf.function
    def of_sorted(x):
        return tf.reduce_sum(tf.sort(x, direction="DESCENDING") ** 3 * weights)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = of_sorted(x)
        dx = tape.gradient(y, x)
    np.testing.assert_allclose(dx, [[27.0, 300.0, 120.0], [0.0, 300.0, 75.0]])
    np.testing.assert_allclose(outer.gradient(dx, x), [[18.0, 600.0, 120.0], [0.0, -600.0, 30.0]])
