"""Variables of strategies, of one replica too, and reductions to the devices of variables."""

import copy

import pytest

import tapeflow as tf

ON_READ = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.SUM}


@pytest.fixture
def pair():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def one_mirror():
    return tf.distribute.MirroredStrategy(["CPU:0"])


def number():
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


@pytest.mark.parametrize("make", [one_mirror, tf.distribute.MultiWorkerMirroredStrategy])
def test_variables_of_one_replica_are_distributed(make):
    strategy = make()
    with strategy.scope():
        mirrored, summed = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN), tf.Variable(2.0, **ON_READ)
    assert isinstance(mirrored, tf.distribute.DistributedValues)
    assert isinstance(summed, tf.distribute.DistributedValues)
    assert mirrored.synchronization == mirrored.values[0].synchronization == tf.VariableSynchronization.ON_WRITE
    assert summed.values[0].synchronization == tf.VariableSynchronization.ON_READ
    for variable in (mirrored, summed):
        assert variable.is_distributed_variable
        assert variable._policy is None
        assert [part.numpy() for part in variable._values] == [variable.numpy()]
        assert variable.distribute_strategy is strategy
        assert strategy.extended.variable_created_in_scope(variable)
    strategy.run(lambda: (mirrored.assign_add(number() + 1.0), summed.assign_add(3.0)))
    assert (mirrored.numpy(), summed.numpy()) == (2.0, 5.0)


def test_variables_of_one_device_are_plain_ones():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    before = tf.Variable(1.0)
    with strategy.scope():
        variable = tf.Variable(1.0)
    assert not isinstance(variable, tf.distribute.DistributedValues)
    assert strategy.extended.variable_created_in_scope(variable)
    assert not strategy.extended.variable_created_in_scope(before)
    assert tf.distribute.get_strategy().extended.variable_created_in_scope(before)
    assert not tf.distribute.get_strategy().extended.variable_created_in_scope(variable)


def test_a_copied_variable_belongs_to_the_strategy(pair):
    with pair.scope():
        variable = tf.Variable([1.0, 2.0])
    copied = copy.deepcopy(variable)
    variable.assign_add([1.0, 1.0])
    assert [part.numpy().tolist() for part in copied.values] == [[1.0, 2.0]] * 2


def test_variables_that_are_read_in_sync(pair):
    with pair.scope():
        trained, other = tf.Variable(1.0, trainable=True, **ON_READ), tf.Variable(1.0, name="v", **ON_READ)
    assert trained.trainable
    assert not other.trainable
    assert repr(other).startswith("SyncOnReadVariable:{\n  0: <tf.Variable 'v:0'")
    with tf.GradientTape() as tape:
        y = 3.0 * trained
    assert y.numpy() == 6.0
    assert tape.gradient(y, trained).numpy() == 3.0
    assert tf.nn.dropout(tf.ones([2]), rate=trained - 2.0).shape == [2]
    with pair.scope():
        rate = tf.Variable(0.25, synchronization=tf.VariableSynchronization.ON_READ)
    assert tf.function(lambda: pair.run(lambda: tf.nn.dropout(tf.ones([2]), rate)))().values[1].shape == [2]


def test_reductions_to_the_devices_of_a_value(pair):
    with pair.scope():
        variable = tf.Variable(1.0)
    extended, value = pair.extended, pair.run(number)
    for destinations in (variable, value):
        reduced = extended.reduce_to("SUM", value, destinations)
        assert isinstance(reduced, tf.types.experimental.distributed.Mirrored)
        assert [part.numpy() for part in reduced.values] == [1.0, 1.0]
    first, second = extended.batch_reduce_to("MEAN", [(value, variable), (value, "/cpu:0")])
    assert [part.numpy() for part in first.values] == [0.5, 0.5]
    assert second.numpy() == 0.5
    rows = pair.run(lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2])))
    assert [part.indices.numpy().tolist() for part in extended.reduce_to("SUM", rows, variable).values] == [[1, 1]] * 2
    assert extended.reduce_to("MEAN", variable, variable) is variable
    assert extended.reduce_to("MEAN", 2.0, variable) == 2.0
    with pytest.raises(ValueError, match="cannot be reduced with the given reduce op"):
        extended.reduce_to("SUM", tf.constant(2.0), variable)
    total = extended.reduce_to("SUM", value, variable)
    updated = extended.update(variable, lambda v, x: v.assign_add(x), args=(total,))
    assert [part.numpy() for part in updated.values] == [2.0, 2.0]


def test_a_reduction_to_one_device_is_a_tensor():
    strategy = one_mirror()
    with strategy.scope():
        variable = tf.Variable(1.0)
    assert strategy.extended.reduce_to("SUM", tf.constant(2.0), variable).numpy() == 2.0


def test_a_tensor_is_added_along_an_axis_in_each_replica(pair):
    assert pair.reduce("SUM", tf.constant([3.0, 4.0]), axis=0).numpy() == 14.0
    assert pair.reduce("MEAN", tf.constant([3.0, 4.0]), axis=0).numpy() == 3.5


def test_variables_are_kept_with_others(pair):
    with pair.scope():
        variable = tf.Variable(1.0)
        with pair.colocate_vars_with(variable):
            assert len(tf.Variable(2.0).values) == 2


def test_assignments_in_replicas_return_a_value_for_each(pair):
    with pair.scope():
        own, merged = tf.Variable(0.0), tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    assert [float(copy) for copy in own.values] == [0.0, 0.0]

    def assign(variable):
        return pair.run(lambda: variable.assign_add(number() + 1.0))

    for call in (assign, tf.function(assign), tf.function(assign)):
        for variable in (own, merged):
            results = pair.experimental_local_results(call(variable))
            assert [float(result) for result in results] == [float(copy) for copy in variable.values]
    assert [float(copy) for copy in own.values] == [3.0, 6.0]
    assert pair.run(lambda: own) is own
    assert pair.run(lambda: own.values[tf.distribute.get_replica_context().replica_id_in_sync_group]) is own
