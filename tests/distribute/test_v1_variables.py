"""Variables of TensorFlow 1 and of Keras 2 in the scope of a strategy with two replicas."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_v1_variables_are_mirrored(strategy):
    with strategy.scope():
        v = tf.compat.v1.Variable([1.0, 2.0])
    assert strategy.extended.variable_created_in_scope(v)
    assert len(strategy.experimental_local_results(v)) == 2
    assert not strategy.extended.variable_created_in_scope(tf.compat.v1.Variable(1.0))


def test_numbers_that_replicas_add_have_the_dtype_of_the_variable(strategy):
    with strategy.scope():
        v = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    strategy.run(lambda: v.assign_add(1))
    assert v.numpy() == 1


def test_experimental_run_takes_the_elements_of_an_iterator(strategy):
    assert [int(x) for x in strategy.experimental_local_results(strategy.experimental_run(lambda: tf.constant(3)))] == [
        3,
        3,
    ]

    class Elements:
        def get_next(self):
            return tf.constant(5)

    found = strategy.experimental_run(lambda x: x + 1, Elements())
    assert [int(x) for x in strategy.experimental_local_results(found)] == [6, 6]


def test_an_object_that_stands_for_a_variable_is_updated_in_all_replicas(strategy):
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])

    class Stand(type(v)):
        """As Keras 2 casts variables: a subclass without a value of its own."""

        def __init__(self, variable):
            self._variable = variable

        def __getattr__(self, name):
            return getattr(self._variable, name)

    stand = Stand(v)
    assert strategy.extended.variable_created_in_scope(stand)
    with strategy.scope():
        strategy.extended.update(stand, lambda copy, x: copy.assign_add(x), args=([1.0, 1.0],))
    for copy in strategy.experimental_local_results(v):
        np.testing.assert_array_equal(copy, [2.0, 3.0])
