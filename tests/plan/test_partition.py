"""Graphs that have no plan as a whole: Python in between, shapes that depend on values or are known late."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core


def times_three(a):
    return 3.0 * a


def with_python(x, v, w):
    h = tf.tanh(x @ w) * v
    v.assign_add(1.0)
    h = tf.ensure_shape(tf.py_function(times_three, [h], tf.float32), [None, 2])
    w.assign(w * 0.5)
    return tf.reduce_sum(h * v) + tf.reduce_sum(w), h


def with_mask(x, v, w):
    h = tf.tanh(x @ w)
    kept = tf.boolean_mask(h, h[:, 0] > 0.0)
    v.assign(v + tf.reduce_sum(kept))
    return tf.reduce_sum(tf.nn.softmax(kept @ w) ** 2) * v + tf.reduce_mean(h), kept


def with_text(x, v, w):
    rows = tf.strings.to_number(tf.strings.as_string(tf.shape(x)[0]))
    h = tf.sigmoid(x @ w) * rows
    return tf.reduce_sum(h * h + v) * tf.reduce_mean(w), tf.strings.join(["rows ", tf.strings.as_string(rows)])


def with_state_in_a_branch(x, v, w):
    def grow():
        v.assign_add(2.0)
        return x @ w

    h = tf.cond(tf.reduce_sum(x) > 0.0, grow, lambda: x * v)
    return tf.reduce_sum(tf.tanh(h) * v * tf.exp(-h)), h


@pytest.mark.parametrize("program", [with_python, with_mask, with_text, with_state_in_a_branch])
@pytest.mark.parametrize("shape", [None, [None, 2]])
def test_parts_do_what_the_whole_does(program, shape):
    results = []
    for compiled in (False, True):
        v, w = tf.Variable(0.5), tf.Variable([[0.3, -0.4], [0.2, 0.9]])

        def step(x, v=v, w=w):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y, other = program(x, v, w)
            return y, other, tape.gradient(y, [x, v, w], unconnected_gradients="zero"), v + 0.0, w + 0.0

        run = tf.function(step, input_signature=shape and [tf.TensorSpec(shape)]) if compiled else step
        random = np.random.default_rng(1)
        for rows in (4, 4, 7, 4, 5, 7):
            results.append(run(tf.constant(random.normal(size=(rows, 2)), tf.float32)))
    half = len(results) // 2
    for eager, compiled in zip(results[:half], results[half:], strict=True):
        for a, b in zip(tf.nest.flatten(eager), tf.nest.flatten(compiled), strict=True):
            if a.dtype == tf.string:
                assert a.numpy() == b.numpy()
            else:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_shapes_that_keep_changing():
    f = tf.function(
        lambda x: tf.reduce_sum(tf.tanh(x) * tf.cast(tf.range(tf.size(x)), tf.float32)), reduce_retracing=True
    )
    for turn in range(3):
        for n in range(1, 40):
            x = np.linspace(-1, 1, n).astype(np.float32) * (turn + 1)
            np.testing.assert_allclose(f(tf.constant(x)), np.sum(np.tanh(x) * np.arange(n)), rtol=1e-4, atol=1e-5)
    assert f.experimental_get_tracing_count() <= 2


def test_a_composition_that_waits_for_shapes_is_traced_when_they_are_known():
    calls = []

    @_core.Composition
    def flipped(x):
        calls.append(_core.is_tracing())
        return tf.stack([x[i] for i in reversed(range(int(x.shape[0])))])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(flipped(x * 2.0)) * [[1.0, 2.0]])
        return y, tape.gradient(y, x)

    x = tf.constant([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    first = f(x)
    made = len(calls)
    for _ in range(3):
        y, dx = f(x)
        np.testing.assert_allclose(y, np.sum(np.tanh(2 * x.numpy()) * [1, 2]), rtol=1e-5)
        np.testing.assert_allclose(dx, 2 * (1 - np.tanh(2 * x.numpy()) ** 2) * [1, 2], rtol=1e-5)
    assert len(calls) == made
    np.testing.assert_array_equal(first[1], dx)
    np.testing.assert_allclose(f(x[:2])[0], np.sum(np.tanh(2 * x.numpy()[:2]) * [1, 2]), rtol=1e-5)


@pytest.mark.parametrize("drop", [
    lambda x: tf.nn.dropout(x, 0.5, seed=3),
    lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]),
    lambda x: tf.nn.dropout(x, 0.5, noise_shape=[None, 1, None], seed=1),
    lambda x: tf.nn.dropout(x, 0.5, noise_shape=[tf.shape(x)[0], 1, 4], seed=1),
])  # fmt: skip
def test_dropout_of_open_shapes(drop):
    sums = set()
    for shape in ([None, 3, 4], [None, None, 4], None, [2, 3, 4]):
        tf.random.set_seed(1)
        f = tf.function(drop, input_signature=[tf.TensorSpec(shape)])
        if shape:
            assert "Composition" not in [op.type for op in f.get_concrete_function().graph.get_operations()]
        sums.add(float(tf.reduce_sum(f(tf.ones([2, 3, 4])))))
    assert len(sums) == 1


def test_values_of_variables_are_results():
    v = tf.Variable(tf.zeros([100]))

    @tf.function
    def f():
        before = v.read_value()
        v.assign_add(tf.ones([100]))
        return before, tf.reshape(v.read_value(), [10, 10])

    @tf.function
    def g():
        return v.read_value()

    first, second = f(), f()
    last = g()
    v.assign_add(tf.ones([100]))
    v.scatter_nd_update([[0]], [7.0])
    assert [float(t[0]) for t in (first[0], second[0], last)] == [0.0, 1.0, 2.0]
    assert [float(t[1][0, 0]) for t in (first, second)] == [1.0, 2.0]
    assert float(g()[0]) == 7.0


def test_iterators_are_arguments():
    traces = []

    @tf.function
    def f(iterator):
        traces.append(1)
        return tf.reduce_sum(next(iterator))

    data = tf.data.Dataset.range(7).map(lambda i: tf.cast(i, tf.float32)).batch(2)
    for _ in range(3):
        iterator = iter(data)
        assert [float(f(iterator)) for _ in range(4)] == [1.0, 5.0, 9.0, 6.0]
        with pytest.raises(tf.errors.OutOfRangeError):
            f(iterator)
    assert len(traces) == 1


def test_what_is_read_outside_is_read_in_every_run(tmp_path):
    path, calls = tmp_path / "x", []
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)

    def counted(a):
        calls.append(1)
        return a * float(len(calls))

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(counted, [x], tf.float32)
        work = tf.reduce_sum(tf.sin(x) + tf.cos(x) * x + x * x)
        return tf.io.read_file(str(path)), table.size(), tf.timestamp(), y, tape.gradient(y, x), work

    seen = []
    for k in range(3):
        path.write_text(str(k))
        table.insert([k], [k])
        seen.append([np.array(t).tolist() for t in f(tf.ones([1]))])
    assert [row[:2] for row in seen] == [[b"0", 1], [b"1", 2], [b"2", 3]]
    assert seen[0][2] < seen[1][2] < seen[2][2]
    assert [row[3:5] for row in seen] == [[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]


def test_a_composition_around_one_that_needs_values():
    @_core.Composition
    def inner(x):
        y = tf.sin(x) + 1.0
        return y * float(np.sum(x.numpy()))

    @_core.Composition
    def outer(x):
        return inner(tf.stack([x[i] for i in reversed(range(int(x.shape[0])))])) * 2.0

    f = tf.function(lambda x: outer(x * 2.0) + 1.0, input_signature=[tf.TensorSpec([None])])
    x = np.float32([0.1, 0.2, 0.3])
    for _ in range(3):
        np.testing.assert_allclose(f(x), (np.sin(2 * x[::-1]) + 1) * np.sum(2 * x) * 2 + 1, rtol=1e-5)


def address(variable):
    return np.from_dlpack(variable.read_value()).__array_interface__["data"][0]


def test_rows_are_updated_in_place_after_a_graph_break():
    """The part behind the break reads the variable itself: a value handed over would be copied first."""
    table, weight = tf.Variable(tf.zeros([1000, 4])), tf.Variable(tf.ones([4, 1]))

    @tf.function
    def step(ids, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.gather(table, ids), weight) - y))
        slices, dw = tape.gradient(loss, [table, weight])
        rows, places = tf.unique(slices.indices)
        sums = tf.math.unsorted_segment_sum(slices.values, places, tf.size(rows))
        table.scatter_sub(tf.IndexedSlices(0.1 * sums, rows))
        weight.assign_sub(0.1 * dw)

    ids, y = tf.constant([3, 5, 3], tf.int64), tf.constant([[1.0], [2.0], [3.0]])
    assert "graph break" in step.experimental_get_compiler_ir(ids, y)(stage="after-specialise")
    step(ids, y)
    before = address(table)
    for _ in range(3):
        step(ids, y)
        assert address(table) == before
    expected, w = np.zeros([1000, 4]), np.ones([4, 1])
    for _ in range(4):
        error = 2 * (expected[[3, 5, 3]] @ w - y.numpy())
        g = error * w.T
        dw = expected[[3, 5, 3]].T @ error
        np.subtract.at(expected, [3, 5, 3], 0.1 * g)
        w = w - 0.1 * dw
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(weight, w, rtol=1e-5)


def from_python(v):
    tf.numpy_function(lambda: (v.assign(v + 1.0), np.float32(0))[1], [], tf.float32)


def from_a_branch(v):
    tf.cond(tf.reduce_sum(v) > -1.0, lambda: v.assign_add(tf.ones([3])), lambda: v.value())


def from_a_loop(v):
    tf.while_loop(lambda i: i < 2, lambda i: (i + int(v.assign_add([0.5] * 3) is not None),), [0])


@pytest.mark.parametrize("change", [from_python, from_a_branch, from_a_loop])
def test_a_value_read_before_a_break_stays_what_it_was(change):
    v, w = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([1.0, 1.0, 1.0])

    @tf.function
    def f(x):
        before, other = v.value(), w.value()
        y = tf.tanh(before * x) + tf.exp(-x) * other
        change(v)
        return tf.reduce_sum(y * before), before * x * other + tf.sin(x) * 2.0, v * x

    x = tf.constant([0.5, -0.2, 0.1])
    for _ in range(3):
        old = v.numpy()
        total, after, now = f(x)
        np.testing.assert_allclose(after, old * x + np.sin(x) * 2, rtol=1e-5)
        np.testing.assert_allclose(total, np.sum((np.tanh(old * x) + np.exp(-x.numpy())) * old), rtol=1e-5)
        np.testing.assert_allclose(now, (old + 1) * x, rtol=1e-5)
