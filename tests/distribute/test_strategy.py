"""`tf.distribute` with one replica: what TensorFlow's default strategy gives."""

import pytest

import tapeflow as tf


def test_default_strategy():
    strategy = tf.distribute.get_strategy()
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    assert strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda a, b=1: (a, b), args=(2,), kwargs={"b": 5}) == (2, 5)
    assert strategy.experimental_local_results(3) == (3,)
    assert float(strategy.reduce("SUM", tf.constant([1.0, 2.0]), axis=0)) == 3.0
    assert float(strategy.reduce("mean", tf.constant([1, 2]), axis=0)) == 1.5
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, [1.0, 2.0], axis=None) == [1.0, 2.0]
    with strategy.scope() as entered:
        assert entered is strategy and not tf.distribute.has_strategy()
        assert tf.distribute.get_replica_context() is not None
    with pytest.raises(RuntimeError, match="unsupported by default"):
        _ = strategy.extended.worker_devices


def test_replica_context():
    context = tf.distribute.get_replica_context()
    assert context.strategy is tf.distribute.get_strategy()
    assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (1, 0)
    x = tf.constant(3.0)
    assert context.all_reduce("SUM", x) is x
    assert context.merge_call(lambda strategy, a: (strategy is context.strategy, a), args=(3,)) == (True, 3)


def test_update():
    v = tf.Variable(1.0)
    extended = tf.distribute.get_strategy().extended
    assert float(extended.update(v, lambda v, x: v.assign_add(x), args=(2.0,))) == 3.0
    (result,) = extended.update(v, lambda v: v.assign(5.0), group=False)
    assert float(result) == 5.0


def test_chosen_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        assert tf.distribute.has_strategy() and tf.distribute.get_strategy() is strategy
        assert tf.distribute.get_replica_context() is None and tf.distribute.in_cross_replica_context()
        inside = strategy.run(
            lambda: (tf.distribute.get_replica_context().strategy, tf.distribute.in_cross_replica_context())
        )
        assert inside == (strategy, False)
    assert not tf.distribute.has_strategy()


def test_devices_that_are_not_there():
    with pytest.raises(ValueError, match="one device, the processor"):
        tf.distribute.OneDeviceStrategy("/gpu:0")
    with pytest.raises(ValueError, match="got 2 devices"):
        tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with pytest.raises(NotImplementedError, match="it needs TPUs"):
        tf.distribute.TPUStrategy()
