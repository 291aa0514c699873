"""Errors while a function is traced: the traceback has the program's frames and one of Tapeflow's."""

import traceback

import pytest

import tapeflow as tf


def wrong(x):
    return tf.matmul(x, tf.ones([3, 4]))


@pytest.mark.parametrize("filtered", [True, False])
def test_frames_of_an_error_while_tracing(filtered):
    function = tf.function(lambda x: wrong(x) * 2.0)
    if not filtered:
        tf.debugging.disable_traceback_filtering()
    try:
        with pytest.raises(ValueError, match="inner dimensions") as caught:
            function(tf.ones([2, 5]))
    finally:
        tf.debugging.enable_traceback_filtering()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    own = [file for file in files if file != __file__]
    assert files[0] == files[-1] == __file__ and len(files) - len(own) == 3
    assert len(own) == 1 if filtered else len(own) > 1


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        (lambda: tf.debugging.Assert(False, ["bad", [1, 2, 3, 4]]), r"assertion failed: \[bad\] \[1 2 3...\]"),
        (lambda: tf.debugging.assert_near([1.0], [2.0]), "assertion failed"),
        (lambda: tf.gather(tf.constant([1.0, 2.0]), 5), "not in"),
        (lambda: tf.constant(1) // tf.constant(0), "division by zero"),
        (lambda: tf.linalg.inv(tf.zeros([2, 2])), "not invertible"),
        (lambda: tf.debugging.check_numerics(tf.constant(float("nan")), "found"), "found"),
    ],
)
def test_constants_that_an_operation_refuses_fail_when_they_run(branch, message):
    @tf.function
    def function(x):
        if x > 0.0:
            y = x
        else:
            refused = branch()
            y = -x if refused is None else -x + tf.reduce_sum(tf.cast(refused, tf.float32))
        return y

    assert function(tf.constant(1.0)) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(tf.constant(-1.0))


@pytest.mark.parametrize("refused", [lambda: tf.gather(tf.constant([1.0]), 5), lambda: tf.linalg.inv(tf.zeros([2, 2]))])
def test_refused_constants_raise_the_error_of_a_run(refused):
    function = tf.function(refused)
    concrete = function.get_concrete_function()
    with pytest.raises(tf.errors.InvalidArgumentError):
        concrete()


def test_shapes_of_constants_that_do_not_fit_fail_while_tracing():
    with pytest.raises(ValueError, match="inner dimensions"):
        tf.function(lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))).get_concrete_function()


def test_sizes_that_cannot_be_counted_fail_while_tracing():
    huge = 2**63 - 1

    @tf.function
    def function(x):
        return tf.reduce_sum(tf.zeros([huge, 3]) + x)

    with pytest.raises(tf.errors.InvalidArgumentError, match="too many elements"):
        function(tf.ones([3]))


def test_functions_that_are_nested_too_deeply_are_named():
    """An error of an operation, and still Python's own."""
    function = tf.identity
    for _ in range(400):
        function = tf.function(lambda x, inner=function: inner(x) + 1.0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"tf\.function .* nested too deeply"):
        function(tf.constant(1.0))
    with pytest.raises(RecursionError):
        function(tf.constant([1.0]))


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (tf.signal.fft, [1.0]),
        (tf.strings.length, [1]),
        (lambda x: tf.one_hot(x, 3), [1.0]),
        (tf.math.invert_permutation, [0.0]),
        (lambda x: tf.strings.substr("text", x, 1), 0.0),
    ],
)
def test_dtypes_that_are_not_allowed_are_type_errors_while_tracing(function, given):
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the list of allowed values"):
        function(tf.constant(given))
    with pytest.raises(TypeError, match=r"has DataType .* not in list of allowed values"):
        tf.function(function)(tf.constant(given))
