"""`tf.errors` has TensorFlow's classes and codes."""

import pickle

import pytest

import tapeflow as tf

CODES = {
    "CancelledError": 1, "UnknownError": 2, "InvalidArgumentError": 3, "DeadlineExceededError": 4, "NotFoundError": 5,
    "AlreadyExistsError": 6, "PermissionDeniedError": 7, "ResourceExhaustedError": 8, "FailedPreconditionError": 9,
    "AbortedError": 10, "OutOfRangeError": 11, "UnimplementedError": 12, "InternalError": 13, "UnavailableError": 14,
    "DataLossError": 15, "UnauthenticatedError": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", CODES)
def test_classes(name):
    kind = getattr(tf.errors, name)
    error = kind(None, None, "what went wrong")
    constant = "".join(f"_{c}" if c.isupper() else c.upper() for c in name.removesuffix("Error")).lstrip("_")
    assert isinstance(error, tf.errors.OpError)
    assert kind.__name__ == name
    assert (error.error_code, getattr(tf.errors, constant)) == (CODES[name], CODES[name])
    assert (str(error), error.message, error.op, error.node_def) == ("what went wrong", "what went wrong", None, None)
    assert tf.compat.v1.errors.exception_type_from_error_code(CODES[name]) is kind
    assert tf.compat.v1.errors.error_code_from_exception_type(kind) == CODES[name]
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.error_code) == (kind, error.message, error.error_code)


def test_base_class():
    error = tf.errors.OpError(None, None, "m", 3)
    assert (error.error_code, pickle.loads(pickle.dumps(error)).error_code) == (3, 3)
    assert issubclass(tf.errors.OpError, Exception)
    assert tf.errors.OK == 0
    with pytest.raises(TypeError):
        tf.errors.InvalidArgumentError("m")


def test_keywords_and_payloads():
    error = tf.errors.NotFoundError(node_def=None, op=None, message="k")
    assert (error.message, error.experimental_payloads) == ("k", {})
    assert tf.errors.NotFoundError(None, None, "k", {"a": 1}).experimental_payloads == {"a": 1}


def test_operator_not_allowed():
    assert issubclass(tf.errors.OperatorNotAllowedInGraphError, TypeError)


def test_class_without_code():
    with pytest.warns(UserWarning, match="not a class of tf.errors"):
        assert tf.compat.v1.errors.error_code_from_exception_type(int) == tf.errors.UNKNOWN


def test_an_error_without_a_node():
    error = tf.errors.NotFoundError.of("no such file")
    assert type(error) is tf.errors.NotFoundError
    assert (error.message, error.node_def, error.op) == ("no such file", None, None)
