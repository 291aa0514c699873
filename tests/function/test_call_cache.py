"""Calls that go straight to a graph: they find the same one that Python would have chosen."""

import gc
import weakref

import numpy as np
import pytest

import tapeflow as tf

X, Y = tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0])


def traced(function):
    """The function and a list that grows by the arguments of every trace."""
    traces = []

    @tf.function
    def noting(*args, **kwargs):
        traces.append((args, kwargs))
        return function(*args, **kwargs)

    return noting, traces


def test_flags_take_turns():
    call, traces = traced(lambda x, training=False: x * 2.0 if training else x)
    for _ in range(3):
        for flag in (True, False):
            np.testing.assert_array_equal(call(X, training=flag), X * 2.0 if flag else X)
            np.testing.assert_array_equal(call(X, flag), X * 2.0 if flag else X)
    assert len(traces) == 4


@pytest.mark.parametrize(
    "values", [(1, True, 1.0), (0.0, -0.0), ("a", b"a", "b"), (None, 0, False), (2**70, 2**70 + 1)]
)
def test_constants_that_are_nearly_equal(values):
    call, _ = traced(lambda x, value: (x, tf.constant(repr(value))))
    for _ in range(2):
        for value in values:
            assert call(X, value)[1].numpy().decode() == repr(value)


def test_structures():
    call, traces = traced(lambda a: a["y"] - a["x"][0] if isinstance(a, dict) else a[1] - a[0])
    for _ in range(2):
        np.testing.assert_array_equal(call({"x": [X], "y": Y}), Y - X)
        np.testing.assert_array_equal(call({"y": Y, "x": [X]}), Y - X)
        np.testing.assert_array_equal(call({"x": (X,), "y": Y}), Y - X)
        np.testing.assert_array_equal(call([X, Y]), Y - X)
        np.testing.assert_array_equal(call((X, Y)), Y - X)
    assert len(traces) == 4


def test_one_tensor_in_two_places():
    call, traces = traced(lambda x, y, *, z=None: y - x if z is None else y - x * z)
    np.testing.assert_array_equal(call(X, X), [0, 0])
    np.testing.assert_array_equal(call(X, Y), Y - X)
    np.testing.assert_array_equal(call(Y, X), X - Y)
    np.testing.assert_array_equal(call(X, X, z=X), X - X * X)
    for _ in range(2):
        np.testing.assert_array_equal(call(X, Y, z=X), Y - X * X)
        np.testing.assert_array_equal(call(Y, X, z=Y), X - Y * Y)
    assert len(traces) == 2


def test_names_in_any_order():
    call, traces = traced(lambda **given: given["y"] - given["x"])
    for _ in range(2):
        np.testing.assert_array_equal(call(x=X, y=Y), Y - X)
        np.testing.assert_array_equal(call(y=Y, x=X), Y - X)
    assert len(traces) == 1


def test_arrays():
    call, traces = traced(lambda x, y: x + y)
    for _ in range(2):
        np.testing.assert_array_equal(call(np.float32([1, 2]), X), [2, 4])
        np.testing.assert_array_equal(call(X, np.float32([1, 2])), [2, 4])
        np.testing.assert_array_equal(call(np.float64([1, 2]), np.ones(2)), [2, 3])
        np.testing.assert_array_equal(call(np.float32([1]), X), [2, 3])
    assert len(traces) == 3
    array = np.float32([1, 2])
    result = call(array, X)
    array[:] = 7
    np.testing.assert_array_equal(result, [2, 4])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        call(np.ones((1,) * 20, np.float32), X)


def test_results_of_many_kinds():
    @tf.function
    def call(x, rows):
        return {"rows": tf.IndexedSlices(x, rows), "none": None, "ragged": tf.RaggedTensor.from_row_lengths(x, [1, 1])}

    for scale in (1.0, 2.0, 3.0):
        found = call(X * scale, tf.constant([0, 3]))
        np.testing.assert_array_equal(found["rows"].values, X * scale)
        np.testing.assert_array_equal(found["rows"].indices, [0, 3])
        assert found["none"] is None and found["ragged"].to_list() == [[scale], [2 * scale]]


def test_arguments_are_let_go():
    call, _ = traced(lambda x, given: x + given["y"])
    x = tf.constant([1.0, 2.0])
    seen = weakref.ref(x)
    call(x, {"y": Y})
    call(X, {"y": Y})
    del x
    gc.collect()
    assert seen() is None


def test_gradients_pass():
    x = tf.Variable([1.0, 2.0])
    call, _ = traced(lambda a, scale: a * scale["by"])
    for by in (2.0, 3.0, 2.0, 3.0):
        with tf.GradientTape() as tape:
            y = call(x * 1.0, {"by": by})
        np.testing.assert_array_equal(tape.gradient(y, x), [by, by])


class Scale(tf.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by


def test_variables_and_other_objects():
    call, traces = traced(lambda x, variable, scale: x * variable * scale.by)
    variables, scales = [tf.Variable(2.0), tf.Variable(5.0)], [Scale(1.0), Scale(3.0)]
    for _ in range(2):
        for variable in variables:
            for scale in scales:
                np.testing.assert_array_equal(call(X, variable, scale), X * variable * scale.by)
    assert len(traces) == 4
    variables[0].assign(7.0)
    np.testing.assert_array_equal(call(X, variables[0], scales[0]), X * 7.0)


def test_none_is_not_an_object_that_is_gone():
    f = tf.function(lambda x, scale: x + (1.0 if scale is None else 2.0))
    x, scale = tf.constant(1.0), Scale(1.0)
    assert [f(x, scale).numpy() for _ in range(3)] == [3.0] * 3
    del scale
    assert f(x, None).numpy() == 2.0


def test_objects_are_let_go_and_not_mistaken():
    call = tf.function(lambda x, scale: x * scale.by)
    for number in range(20):
        scale = Scale(float(number))
        np.testing.assert_array_equal(call(X, scale), X * float(number))
        seen = weakref.ref(scale)
        del scale
        gc.collect()
        assert seen() is None
