"""What programs see when a trace goes wrong: classes and words as in TensorFlow."""

import logging

import pytest

import tapeflow as tf

X = tf.ones([2, 3])

REFUSED = {
    "add": (lambda x: x + tf.ones([4, 4]), "Dimensions must be equal, but are 2 and 4"),
    "matmul": (lambda x: x @ tf.ones([5, 2]), "Dimensions must be equal, but are 3 and 5"),
    "reshape": (lambda x: tf.reshape(x, [7]), "6 values, but the requested shape has 7"),
    "concat": (lambda x: tf.concat([x, tf.ones([2, 2])], 0), "in both shapes must be equal"),
    "axis": (lambda x: tf.cumsum(x, axis=4), r"range \[-2, 2\)"),
    "index": (lambda x: x[7], "slice index 7 of dimension 0 out of bounds"),
}


@pytest.mark.parametrize("program, words", REFUSED.values(), ids=REFUSED.keys())
def test_refused_while_tracing(program, words):
    """TensorFlow raises a ValueError where the shapes tell, an InvalidArgumentError where it finds out later."""
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        with pytest.raises(kind, match=words):
            tf.function(program)(X)


def test_a_program_can_catch_what_is_refused():
    @tf.function
    def function(x):
        try:
            return x @ x
        except ValueError:
            return x

    assert function(X).shape == [2, 3]


@pytest.mark.parametrize("program", [lambda x: x + tf.constant(1), lambda x: x @ tf.ones([3, 2], tf.float64)])
def test_other_dtypes_while_tracing(program):
    with pytest.raises(TypeError, match=r"Op has type (int32|float64) that does not match type float32 of argument"):
        tf.function(program)(X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="was expected to be a float tensor"):
        program(X)


@pytest.mark.parametrize("method", [False, True])
def test_quick_calls_count_for_the_retracing_warning(caplog, method):
    class Holder:
        @tf.function
        def function(self, x):
            return x + 1

    function = Holder().function if method else tf.function(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, logger="tensorflow"):
        for size in range(1, 8):
            for _ in range(10):
                function(tf.ones([size]))
    assert "triggered tf.function retracing" not in caplog.text
