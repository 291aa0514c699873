"""Python functions inside a computation: the errors they raise."""

import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (NotImplementedError, tf.errors.UnimplementedError),
        (MemoryError, tf.errors.ResourceExhaustedError),
        (ZeroDivisionError, tf.errors.UnknownError),
        (FileNotFoundError, tf.errors.UnknownError),
    ],
)
def test_errors_of_the_function_are_tensorflows_and_their_own(cause, error):
    def fail(x):
        raise cause("oh no")

    calls = [
        lambda: tf.py_function(fail, [1.0], tf.float32),
        tf.function(lambda: tf.py_function(fail, [1.0], tf.float32)),
        tf.function(lambda: tf.numpy_function(fail, [1.0], tf.float32)),
        lambda: list(tf.data.Dataset.range(1).map(lambda x: tf.py_function(fail, [x], tf.float32))),
    ]
    for call in calls:
        with pytest.raises(error, match=f"{cause.__name__}: oh no") as caught:
            call()
        assert cause in (StopIteration, FileNotFoundError) or isinstance(caught.value, cause)
    with pytest.raises(cause, match="oh no"):
        tf.numpy_function(fail, [1.0], tf.float32)
