"""`tape.explain` looks into called functions, branches and loops, whatever was asked first."""

import copy
import inspect
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf


def line_of(function, marker="# <- here"):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, text in enumerate(lines) if marker in text)


def rounds(x):
    return tf.round(x) * 2.0  # <- here


def stops(x):
    y = x * 3.0
    return tf.stop_gradient(y) + 1.0  # <- here


def casts(x):
    return tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0  # <- here


def leaves_for_numpy(x):
    return tf.numpy_function(lambda a: a * np.float32(2.0), [x], tf.float32) * 2.0  # <- here


def in_a_branch(x):
    if tf.reduce_sum(x) > 100.0:
        y = tf.floor(x)
    else:
        y = tf.floor(x)  # <- here
    return y


def in_a_loop(x):
    total = tf.zeros([])
    for _ in tf.range(3):
        total += tf.math.ceil(x)  # <- here
    return total


def nested(x):
    return tf.function(rounds)(x) + 1.0


CASES = [
    (rounds, "operation without gradient", rounds),
    (stops, "stop_gradient", stops),
    (casts, "operation without gradient", casts),
    (leaves_for_numpy, "operation without gradient", leaves_for_numpy),
    (nested, "operation without gradient", rounds),
]


@pytest.mark.parametrize("first", ["gradient", "explain"])
@pytest.mark.parametrize("body, cause, place", CASES, ids=lambda case: getattr(case, "__name__", None))
def test_break_inside_a_function(body, cause, place, first):
    function, x = tf.function(body), tf.Variable(2.6)
    with tf.GradientTape() as tape:
        y = function(x)
    if first == "gradient":
        assert tape.gradient(y, x) is None
    answer = tape.explain(y, x)
    assert (answer.cause, answer.file, answer.line) == (cause, __file__, line_of(place))
    if first == "explain":
        assert tape.gradient(y, x) is None


@pytest.mark.parametrize("body, operation", [(in_a_branch, "floor"), (in_a_loop, "ceil")])
def test_break_inside_control_flow(body, operation):
    """The gradient of a branch or a loop is zero where the gradient of what is inside would be None."""
    function, x = tf.function(body), tf.Variable(2.6)
    with tf.GradientTape() as tape:
        y = function(x)
    answer = tape.explain(y, x)
    assert (answer.operation, answer.file) == (operation, __file__)
    assert not tape.gradient(y, x)


def test_assignment_inside_a_function():
    x, state = tf.Variable(2.0), tf.Variable(0.0)

    @tf.function
    def function():
        state.assign(x * 2.0)  # <- here
        return state * 3.0

    with tf.GradientTape() as tape:
        y = function()
    if tape.gradient(y, x) is None:
        answer = tape.explain(y, x)
        assert (answer.cause, answer.line) == ("assign", line_of(test_assignment_inside_a_function))


@pytest.mark.parametrize("tape_inside", [False, True])
def test_assignment_to_a_variable_that_is_not_watched(tape_inside):
    x, state = tf.Variable(2.0), tf.Variable(0.0, trainable=False)
    answers = []

    def compute():
        state.assign(x * 2.0)  # <- here
        return state * 3.0

    @tf.function
    def function():
        if not tape_inside:
            return compute()
        with tf.GradientTape() as tape:
            y = compute()
        answers.append(tape.explain(y, x))
        return y

    with tf.GradientTape() as outer:
        y = function()
    answer = answers[0] if tape_inside else outer.explain(y, x)
    assert (answer.cause, answer.line) == ("assign", line_of(test_assignment_to_a_variable_that_is_not_watched))


def test_an_earlier_reading_does_not_depend_on_an_assignment():
    x, state, w = tf.Variable(2.0), tf.Variable(0.0, trainable=False), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = state * w
        state.assign(x * 2.0)
    assert tape.explain(y, x).cause == "no path"


def test_a_connected_function_is_connected():
    x = tf.Variable(2.0)

    @tf.function
    def function(v):
        return v * v + tf.stop_gradient(v)

    with tf.GradientTape() as tape:
        y = function(x)
    assert tape.explain(y, x).cause == "connected"


def test_tape_inside_the_function():
    x, answers = tf.Variable(2.0), []

    @tf.function
    def function():
        with tf.GradientTape() as tape:
            y = tf.floor(x) * 2.0  # <- here
        dy = tape.gradient(y, x)
        answers.append(tape.explain(y, x))
        return 0.0 if dy is None else dy

    function()
    assert (answers[0].operation, answers[0].line) == ("floor", line_of(test_tape_inside_the_function))


# ---------------------------------------------------------------------------------------------- which source


def test_copies_are_told():
    w = tf.Variable([1.0, 2.0])
    v = tf.Variable(w)  # <- here
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    assert tape.gradient(y, w) is None
    answer = tape.explain(y, w)
    assert (answer.cause, answer.line) == ("copied variable", line_of(test_copies_are_told))


def test_a_target_that_is_a_variable_itself():
    v, w, x = tf.Variable(2.0), tf.Variable(3.0), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        if x > 0:
            result = v  # <- here
        else:
            result = w * 2.0
    assert tape.gradient(result, v).numpy() == 1 and tape.explain(result, v).cause == "connected"
    assert tape.gradient(result, w) is None
    answer = tape.explain(result, w)
    assert (answer.cause, answer.line) == ("no path", line_of(test_a_target_that_is_a_variable_itself))
    assert "`result` is a variable itself" in str(answer)


def test_equal_numbers_are_not_one_constant():
    w, unused = tf.Variable(3.0), tf.constant(3.0)
    computed = tf.Variable(2.0) + 1.0
    with tf.GradientTape() as tape:
        y = w**2 + computed**2 + w * 3.0
    assert tape.gradient(y, unused) is None
    assert tape.explain(y, unused).cause == "not watched"


def test_deep_copies_are_told():
    w = tf.Variable([1.0, 2.0])
    v = copy.deepcopy(w)  # <- here
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * w)
    assert tape.gradient(y, v) is None
    answer = tape.explain(y, v)
    assert (answer.cause, answer.line) == ("copied variable", line_of(test_deep_copies_are_told))


def test_numbers_in_a_list_are_no_literals():
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.constant([w.numpy() * 2.0, 1.0]) * 3.0)  # <- here
    assert tape.gradient(y, w) is None
    answer = tape.explain(y, w)
    assert (answer.cause, answer.line) == ("numpy or numbers", line_of(test_numbers_in_a_list_are_no_literals))


def test_several_sources_and_structures():
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.floor(a) + b
    answers = tape.explain(y, {"a": a, "rest": [b, c]})
    assert answers["a"].operation == "floor"
    assert [x.cause for x in answers["rest"]] == ["connected", "variable not used"]
    assert "`c`" in answers["rest"][1].source and "made at" in answers["rest"][1].source
    assert "`b`" in answers["rest"][1].depends_on[0]


def test_strict_reports_all():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(strict=True) as tape:
        y = tf.floor(a) * tf.round(b)
    with pytest.raises(tf.autodiff.NoGradientError, match="2 gradients are None") as caught:
        tape.gradient(y, [a, b])
    assert [e.operation for e in caught.value.explanations] == ["floor", "round"]


def test_the_line_of_the_target_that_was_computed():
    w, unused = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = w * w  # <- here
    answer = tape.explain(loss, unused)
    if unused is None:
        loss = 3.0
    assert (answer.cause, answer.line) == ("variable not used", line_of(test_the_line_of_the_target_that_was_computed))


def test_lines_of_libraries_are_folded(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tapeflow as tf\ntf.install_as_tensorflow()\nimport keras\n"
        "x, w = tf.constant([[1., 2.]]), tf.Variable([[1., 2.]])\n"
        "with tf.GradientTape() as tape:\n    loss = keras.ops.mean(keras.ops.round(x * w))\n"
        "answer = tape.explain(loss, w)\nprint(answer.line, answer.file)\n"
        "g = tape.gradient(loss, w)\nw.assign_sub(0.1 * g)\n"
    )
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["6", str(program)]
    above, _, traceback = ended.stderr.partition("Traceback")
    assert "Tapeflow: a gradient is None" in above and "program.py:6" in above
    assert "NoneType" in traceback
