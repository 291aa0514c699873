"""Calls of traced functions with values of several replicas: calls like earlier ones go straight to the graph."""

import pytest

import tapeflow as tf
from tapeflow._src.function.function import Function


@pytest.fixture
def pair():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distributed(pair, make):
    return pair.experimental_distribute_values_from_function(lambda context: make(context.replica_id_in_sync_group))


def parts(value):
    return [part.numpy().tolist() for part in value.values]


@pytest.fixture
def calls(monkeypatch):
    """The calls that were decided in Python."""
    found = []
    decide = Function._call

    def count(self, *args, **kwargs):
        found.append(self)
        return decide(self, *args, **kwargs)

    monkeypatch.setattr(Function, "_call", count)
    return found


def test_a_call_like_an_earlier_one_does_not_pass_python(pair, calls):
    @tf.function
    def step(batch, scale):
        return pair.run(lambda x, y: (x["a"] + y) * scale, args=batch)

    for number in (1.0, 2.0):
        x = distributed(pair, lambda replica, number=number: tf.constant([number + replica]))
        assert parts(step(({"a": x}, x), 2.0)) == [[4.0 * number], [4.0 * (number + 1)]]
    assert len(calls) == 1
    longer = distributed(pair, lambda replica: tf.ones([1 + replica]))
    assert parts(step(({"a": longer}, longer), 2.0)) == [[4.0], [4.0, 4.0]]
    integers = distributed(pair, lambda replica: tf.constant([replica]))
    assert parts(step(({"a": integers}, integers), 2)) == [[0], [4]]
    assert len(calls) == 3
    assert step.experimental_get_tracing_count() == 3


def test_values_of_another_number_of_replicas_are_another_call(pair, calls):
    step = tf.function(lambda x: [part + 1.0 for part in x.values])
    three = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    for strategy in (pair, three, pair):
        assert len(step(distributed(strategy, lambda replica: tf.constant(1.0)))) == strategy.num_replicas_in_sync
    assert len(calls) == 2


def test_replicas_of_a_traced_function_do_not_pass_python(pair, calls, tmp_path):
    module = tf.Module()
    module.step = tf.function(lambda x: x + 1.0)
    for number in (1.0, 2.0):
        x = distributed(pair, lambda replica, number=number: tf.constant([number + replica]))
        assert parts(pair.run(module.step, args=(x,))) == [[number + 1], [number + 2]]
    assert len(calls) == 1
    tf.saved_model.save(module, str(tmp_path))
    assert tf.saved_model.load(str(tmp_path)).step(tf.constant([1.0])).numpy().tolist() == [2.0]
