"""What signatures of `tf.experimental.dispatch_for_api` match, and which functions are refused."""

import typing

import numpy as np
import pytest

import tapeflow as tf


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


X = Masked([1, -2], [True, False])


@pytest.fixture
def dispatch():
    registered = []

    def register(api, *signatures):
        def decorate(function):
            registered.append(function)
            return tf.experimental.dispatch_for_api(api, *signatures)(function)

        return decorate

    yield register
    for function in registered:
        tf.experimental.unregister_dispatch_for(function)


def test_what_can_become_a_tensor(dispatch):
    kind = typing.Union[Masked, tf.types.experimental.TensorLike]  # noqa: UP007

    @dispatch(tf.add)
    def add(x: kind, y: kind, name=None):
        return "added"

    for y in ([1, 2], np.array([1, 2]), tf.constant([1, 2]), tf.Variable([1, 2]), 3, X):
        assert tf.add(X, y) == tf.add(y, X) == "added"
    assert int(tf.add(1, 2)) == 3


def test_arguments_that_are_left_out(dispatch):
    optional = typing.Optional[Masked]  # noqa: UP045
    dispatch(tf.where, {"condition": Masked, "x": optional, "y": optional})(
        lambda condition, x=None, y=None, name=None: "where"
    )
    assert tf.where(X) == tf.where(X, X, X) == "where"


def test_iterators_are_lists(dispatch):
    dispatch(tf.add_n, {"inputs": typing.List[Masked]})(lambda inputs: len(inputs))  # noqa: UP006
    assert tf.add_n(X for _ in range(3)) == tf.add_n([X, X, X]) == 3
    assert int(tf.add_n(iter([tf.constant(1), tf.constant(2)]))) == 3


def test_a_name_by_position(dispatch):
    dispatch(tf.multiply, {"x": Masked, "y": Masked})(lambda x, y: "product")
    assert tf.multiply(X, X, "name") == tf.multiply(X, X, name="name") == tf.multiply(X, X) == "product"


@pytest.mark.parametrize(
    ("signature", "error", "message"),
    [
        ({"x": typing.Tuple[Masked]}, ValueError, "Type annotation .* is not currently supported by dispatch"),  # noqa: UP006
        ({"x": typing.Callable}, ValueError, "Type annotation .* is not currently supported by dispatch"),
        ({"x": "Masked"}, ValueError, "Type annotation .* is not currently supported by dispatch"),
        ([Masked], TypeError, "signatures must be dictionaries"),
        ({None: Masked}, TypeError, "signatures must be dictionaries"),
        ({"z": Masked}, ValueError, "unknown parameter 'z'"),
    ],
)
def test_signatures_that_say_nothing(signature, error, message):
    with pytest.raises(error, match=message):
        tf.experimental.dispatch_for_api(tf.add, signature)(lambda x, y, name=None: None)


def test_two_functions_for_one_call():
    one = tf.experimental.dispatch_for_api(tf.subtract, {"x": Masked, "y": Masked})(lambda x, y, name=None: "one")
    two = tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)(lambda api, x, y: "two")
    try:
        assert tf.maximum(X, X) == "two"
        with pytest.raises(ValueError, match="Multiple dispatch targets"):
            tf.subtract(X, X)
        tf.experimental.unregister_dispatch_for(one)
        assert tf.subtract(X, X) == "two"
    finally:
        tf.experimental.unregister_dispatch_for(two)


def test_signatures_are_shown_without_annotations():
    with pytest.raises(ValueError, match=r"signature \(a, b\) does not match API's signature \(x, y, name=None\)"):
        tf.experimental.dispatch_for_api(tf.add, {"x": Masked})(lambda a, b: None)


def test_objects_of_other_specifications_are_unequal_at_once():
    assert (Masked([1], [True]) == X) is False and (Masked([1], [True]) != X) is True
    assert bool(Masked([1, -2], [True, False]) == X)
