"""`tape.explain`: the cause and the line of a None gradient."""

import inspect
import types

import pytest

import tapeflow as tf


def here():
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.parametrize(
    "function, operation",
    [
        (lambda x: tf.floor(x), "floor"),
        (lambda x: tf.round(x) * 2.0, "round"),
        (lambda x: x // 2.0, "floordiv"),
        (lambda x: tf.cast(x > 0.0, tf.float32), "greater"),
        (lambda x: tf.cast(tf.argmax(tf.stack([x, x])), tf.float32), "argmax"),
    ],
)
def test_operations_without_gradient(function, operation):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = function(x) * 1.0
    assert tape.gradient(y, x) is None
    answer = tape.explain(y, x)
    assert (answer.cause, answer.operation) == ("operation without gradient", operation)
    assert answer.file == __file__
    assert answer.line == function.__code__.co_firstlineno


def test_stop_gradient_and_its_line():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x) * 2.0
        line = here() - 1
    assert tape.gradient(y, x) is None
    answer = tape.explain(y, x)
    assert (answer.cause, answer.line) == ("stop_gradient", line)
    assert "stop_gradient" in str(answer) and f":{line}" in str(answer)


def test_sources_that_are_not_followed():
    constant, frozen, unused = tf.constant(1.0), tf.Variable(1.0, trainable=False), tf.Variable(1.0)
    number = tf.Variable(1)
    with tf.GradientTape(persistent=True) as tape:
        y = constant * frozen + tf.cast(number, tf.float32)
    assert tape.explain(y, constant).cause == "not watched"
    assert tape.explain(y, frozen).cause == "not trainable"
    assert tape.explain(y, unused).cause == "variable not used"
    assert tape.explain(y, number).cause == "source dtype"
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = unused * 2.0
    assert tape.explain(y, unused).cause == "variables not watched"


def test_targets_that_are_not_recorded():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * x
    y = x * x
    assert tape.explain(y, x).cause == "after the tape"
    assert tape.explain(tf.cast(z, tf.int32), x).cause == "target dtype"


def test_no_path_names_the_nearest_value():
    x, w = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        tf.sin(x)
        line = here() - 1
        y = w * 2.0
    answer = tape.explain(y, x)
    assert answer.cause == "no path"
    assert f"sin at {__file__}:{line}" in str(answer)


def test_a_gradient_that_exists():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.explain(y, x).cause == "connected"


def test_a_tape_that_gave_none_can_still_be_asked():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.floor(x)
    assert tape.gradient(y, x) is None
    assert tape.explain(y, x).operation == "floor"
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)
    with tape:
        z = x * x
    assert float(tape.gradient(z, x)) == 6.0
    assert tape.explain(z, x).cause == "tape used up"


def test_a_variable_behind_an_object():
    class Wrapper:
        def __init__(self, handle):
            self.handle = handle

    x = Wrapper(tf.Variable(3.0))
    with tf.GradientTape() as tape:
        y = tf.floor(x.handle)
    assert tape.gradient(y, x) is None
    assert tape.explain(y, x).operation == "floor"


def test_what_cannot_be_explained():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    for target, source in ((y, [x, 3.0]), (y, 3.0), ([], x)):
        with pytest.raises(TypeError, match="GradientTape"):
            tape.explain(target, source)


def test_several_targets():
    x, w = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        targets = [w * 2.0, tf.round(x)]
    assert tape.gradient(targets, x) is None
    assert tape.explain(targets, x).operation == "round"


def test_shapes_that_a_layer_reads_are_not_the_cause():
    bias, kernel, x = tf.Variable([0.0]), tf.Variable([[2.0]]), tf.constant([[3.0]])
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = (x @ kernel) ** 2.0 + tf.reshape(bias, bias.shape)
        slope = inner.gradient(u, x)
        line = here() - 1
        loss = tf.reduce_sum(slope**2.0)
    assert tape.gradient(loss, bias) is None
    answer = tape.explain(loss, bias)
    assert (answer.cause, answer.line) == ("constant derivative", line)


def test_a_weight_that_its_class_forgets():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.gain = tf.Variable(2.0)
            self.offset = tf.Variable(1.0)
            self.line = here() - 1

        def __call__(self, x):
            return x * self.gain

    scale = Scale()
    with tf.GradientTape() as tape:
        y = scale(3.0) ** 2
    assert tape.gradient(y, scale.offset) is None
    answer = tape.explain(y, scale.offset)
    assert (answer.cause, answer.line) == ("variable not used", scale.line)


def test_what_the_target_depends_on_has_its_keras_path():
    class Layer(tf.Module):
        """As Keras holds variables: by objects with a path, and the variable as their handle."""

        def __init__(self):
            super().__init__()
            self._held = [types.SimpleNamespace(path="net/dense/kernel", handle=tf.Variable(2.0, name="dense/kernel"))]

        variables = trainable_variables = property(lambda self: self._held)

    net, other = Layer(), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = net.variables[0].handle * 3.0
    (depends_on,) = tape.explain(y, other).depends_on
    assert "'net/dense/kernel'" in depends_on


def test_a_rule_that_gives_none_on_a_persistent_tape():
    @tf.custom_gradient
    def double(x):
        return x * 2.0, lambda dy: None

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = double(x)
    assert tape.gradient(y, x) is None
    assert tape.explain(y, x).cause == "operation without gradient"
    with tf.GradientTape() as tape:
        y = double(x)
    assert "its rule decides" in tape.explain(y, x).text


def test_a_number_that_equals_a_size_by_chance():
    x, v = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        _ = x.shape
        y = v * 3.0
    assert tape.explain(y, x).cause == "variable not used"
    with tf.GradientTape() as tape:
        size = x.shape[0]
        y = v * size
    assert tape.explain(y, x).cause == "index or shape"


def test_the_elements_rather_than_the_size():
    x = tf.Variable([0.2, 0.4])
    with tf.GradientTape() as tape:
        counts = tf.histogram_fixed_width(x * 2.0, [0.0, 1.0], nbins=2)
        line = here() - 1
        y = tf.reduce_sum(tf.cast(counts, tf.float32) / tf.cast(tf.size(x), tf.float32))
    assert tape.explain(y, x).line == line


def test_assignment_to_positions():
    x, state = tf.Variable([1.0]), tf.Variable([0.0, 0.0])
    with tf.GradientTape() as tape:
        state.scatter_nd_update([[1]], x)
        line = here() - 1
        y = tf.reduce_sum(state)
    answer = tape.explain(y, x)
    assert (answer.cause, answer.line) == ("assign", line)


def test_a_line_inside_a_vectorised_map():
    def quantise(x):
        return tf.math.rint(x * 4.0) / 4.0

    x = tf.Variable([0.2, 0.7])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.vectorized_map(quantise, x))
    answer = tape.explain(y, x)
    assert (answer.operation, answer.line) == ("rint", quantise.__code__.co_firstlineno + 1)


def test_what_leaves_is_the_variable_or_what_is_computed_from_it():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        first = tf.reduce_sum(tf.constant(w.numpy() * 2.0))
        second = tf.reduce_sum(tf.constant(tf.tanh(w).numpy() * 3.0))
    assert "`w` leaves as a NumPy array" in tape.explain(first, w).text
    assert "What is computed from `w` leaves as a NumPy array" in tape.explain(second, w).text
