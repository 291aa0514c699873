"""The enumerations have TensorFlow's members."""

import pytest

import tapeflow as tf


def test_unconnected_gradients():
    assert tf.UnconnectedGradients("zero") is tf.UnconnectedGradients.ZERO
    assert tf.UnconnectedGradients.NONE.value == "none"
    with pytest.raises(ValueError, match="'foo' is not a valid UnconnectedGradients"):
        tf.UnconnectedGradients("foo")


def test_synchronization():
    assert [str(member) for member in tf.VariableSynchronization] == [
        f"VariableSynchronization.{name}" for name in ("AUTO", "NONE", "ON_WRITE", "ON_READ")
    ]
    assert tf.compat.v1.VariableSynchronization is tf.VariableSynchronization


def test_aggregation():
    first, second = tf.compat.v1.VariableAggregation, tf.VariableAggregation
    assert [member.value for member in second] == [0, 1, 2, 3]
    assert repr(second.SUM) == "<VariableAggregationV2.SUM: 1>"
    assert repr(first.SUM) == "<VariableAggregation.SUM: 1>"
    assert first.SUM == second.SUM != second.MEAN
    assert hash(first.SUM) == hash(second.SUM)
    assert second.SUM != 1


def test_aggregation_method():
    method = tf.AggregationMethod
    assert (method.DEFAULT, method.ADD_N, method.EXPERIMENTAL_TREE, method.EXPERIMENTAL_ACCUMULATE_N) == (0, 0, 1, 2)
