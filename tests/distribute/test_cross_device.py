"""`tf.distribute.CrossDeviceOps`: a program's own reduction of what replicas merge, and TensorFlow's."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.distribute.options import merged

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
DEVICES = ["CPU:0", "CPU:1"]


class Recorded(tf.distribute.ReductionToOneDevice):
    """Says which of its methods are called."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.calls = []

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        self.calls.append("reduce")
        return super().reduce_implementation(reduce_op, per_replica_value, destinations, options)

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        self.calls.append(f"batch of {len(value_destination_pairs)}")
        return super().batch_reduce_implementation(reduce_op, value_destination_pairs, options)

    def broadcast_implementation(self, tensor, destinations):
        self.calls.append("broadcast")
        return super().broadcast_implementation(tensor, destinations)

    def _gather_implementation(self, per_replica_value, destinations, axis, options):
        self.calls.append("gather")
        return super()._gather_implementation(per_replica_value, destinations, axis, options)


class Largest(tf.distribute.CrossDeviceOps):
    """Takes the maximum, whatever is asked for."""

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        return self.broadcast(tf.reduce_max(tf.stack(per_replica_value.values), 0), destinations)

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        return [self.reduce_implementation(reduce_op, *pair, options) for pair in value_destination_pairs]


def replica():
    return tf.distribute.get_replica_context()


def numbered(strategy, dtype=tf.float32):
    """[1] in the first replica and [2] in the second."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([context.replica_id_in_sync_group + 1], dtype)
    )


def both(value):
    return [part.numpy().tolist() for part in value.values]


@pytest.mark.parametrize("traced", [False, True])
def test_all_reduce_calls_batch_reduce_once_for_a_structure(traced):
    operations = Recorded()
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=operations)

    def step():
        return strategy.run(lambda x: replica().all_reduce("SUM", [x, {"a": 2 * x}]), (numbered(strategy),))

    first, second = (tf.function(step) if traced else step)()
    assert both(first) == [[3.0]] * 2 and both(second["a"]) == [[6.0]] * 2
    assert operations.calls == ["batch of 2", "reduce", "broadcast", "reduce", "broadcast"]


@pytest.mark.parametrize("operations", [Largest(), Recorded(accumulation_fn=lambda x: tf.reduce_max(tf.stack(x), 0))])
def test_the_programs_own_reduction_gives_the_values(operations):
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=operations)
    with strategy.scope():
        added = tf.Variable([0.0], aggregation=tf.VariableAggregation.SUM)
        other = tf.Variable([0.0])
    x = numbered(strategy)
    assert both(strategy.run(lambda x: replica().all_reduce("SUM", x), (x,))) == [[2.0]] * 2
    assert both(strategy.extended.reduce_to(SUM, x, x)) == [[2.0]] * 2
    assert [both(value) for value in strategy.extended.batch_reduce_to(SUM, [(x, added), (x, other)])] == [
        [[2.0]] * 2
    ] * 2
    strategy.run(lambda x: added.assign_add(x), (x,))
    assert both(added) == [[2.0]] * 2
    # To the host, and int32: the strategy's own sum, as in TensorFlow.
    assert strategy.reduce("SUM", x, axis=None).numpy() == [3.0]
    assert both(strategy.run(lambda x: replica().all_reduce("SUM", x), (numbered(strategy, tf.int32),))) == [[3]] * 2


def test_gradients_pass_the_programs_own_reduction():
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=Largest())

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = replica().all_reduce("SUM", x * x)
        return y, tape.gradient(y, x, output_gradients=x)

    y, dx = strategy.run(step, (numbered(strategy),))
    assert both(y) == [[4.0]] * 2
    assert both(dx) == [[4.0], [8.0]]  # the cotangents [1] and [2] are reduced to [2], times 2 x


def test_an_optimizer_of_keras_uses_it():
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=Largest())
    with strategy.scope():
        w = tf.Variable([5.0])
        optimizer = tf.keras.optimizers.SGD(1.0)
        optimizer.build([w])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * x)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    strategy.run(step, (numbered(strategy),))
    assert both(w) == [[3.0]] * 2


def test_gather_and_broadcast():
    operations = Recorded()
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=operations)
    with strategy.scope():
        first = tf.Variable([0.0], aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    x = numbered(strategy)
    assert strategy.gather(x, 0).numpy().tolist() == [1.0, 2.0]
    assert both(strategy.run(lambda x: replica().all_gather(x, 0), (x,))) == [[1.0, 2.0]] * 2
    assert operations.calls == ["gather", "broadcast"] * 2
    operations.calls.clear()
    assert both(strategy.extended.broadcast_to(tf.constant(3.0), first)) == [3.0] * 2
    strategy.run(lambda x: first.assign(x), (x,))
    assert both(first) == [[1.0]] * 2
    assert operations.calls == ["broadcast"] * 2


def test_integers_among_other_values():
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=Largest())
    pairs = [(numbered(strategy), numbered(strategy)), (numbered(strategy, tf.int32), numbered(strategy))]
    assert [both(value) for value in strategy.extended.batch_reduce_to(SUM, pairs)] == [[[2.0]] * 2, [[3]] * 2]
    mixed = strategy.run(lambda x, n: replica().all_reduce("SUM", [n, x]), (pairs[0][0], pairs[1][0]))
    assert [both(value) for value in mixed] == [[[3]] * 2, [[2.0]] * 2]


def test_a_class_that_implements_nothing_says_so():
    strategy = tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.CrossDeviceOps())
    x = numbered(strategy)
    with pytest.raises(NotImplementedError, match="batch_reduce_implementation method must be implemented"):
        strategy.run(lambda x: replica().all_reduce("SUM", x), (x,))
    with pytest.raises(NotImplementedError, match="_reduce method must be implemented"):
        strategy.extended.reduce_to(SUM, x, x)
    with pytest.raises(NotImplementedError, match="_gather method must be implemented"):
        strategy.gather(x, 0)


@pytest.mark.parametrize(
    "operations",
    [
        tf.distribute.ReductionToOneDevice(),
        tf.distribute.ReductionToOneDevice(reduce_to_device="CPU:1"),
        tf.distribute.NcclAllReduce(),
        tf.distribute.HierarchicalCopyAllReduce(num_packs=2),
    ],
)
def test_reductions_of_tensorflow(operations):
    strategy = tf.distribute.MirroredStrategy(DEVICES)
    with strategy.scope():
        v = tf.Variable(0.0)
    x = numbered(strategy)
    assert both(operations.reduce(SUM, x, x)) == [[3.0]] * 2
    assert both(operations.reduce(MEAN, x, v)) == [[1.5]] * 2
    assert operations.reduce(SUM, x, "CPU:0").numpy() == [3.0]
    mirrored, single = operations.batch_reduce(SUM, [(x, v), (x, "CPU:0")])
    assert both(mirrored) == [[3.0]] * 2 and single.numpy() == [3.0]
    assert operations.reduce(SUM, tf.constant([4.0]), "CPU:0").numpy() == [4.0]
    assert both(operations.broadcast(tf.constant(2.0), v)) == [2.0] * 2
    slices = strategy.run(lambda x: tf.IndexedSlices(x, tf.constant([0]), tf.constant([3])), (x,))
    total = operations.reduce(SUM, slices, slices)
    np.testing.assert_array_equal(tf.convert_to_tensor(total.values[1]), [3.0, 0.0, 0.0])


def test_arguments_are_checked():
    operations, x = tf.distribute.ReductionToOneDevice(), tf.constant(1.0)
    for destinations, text in ((None, "destinations must be one of"), ("", "can not be empty")):
        with pytest.raises(ValueError, match=text):
            operations.reduce(SUM, x, destinations)
    with pytest.raises(ValueError, match="should be a tuple"):
        operations.batch_reduce(SUM, [x, x])
    with pytest.raises(ValueError, match="`reduce_op` must be"):
        operations.reduce("sum", numbered(tf.distribute.MirroredStrategy(DEVICES)), "CPU:0")
    with pytest.raises(ValueError, match="NCCL all-reduce requires num_packs >= 0"):
        tf.distribute.NcclAllReduce(-1)
    with pytest.raises(ValueError, match="HierarchicalCopy requires num_packs >= 0"):
        tf.distribute.HierarchicalCopyAllReduce(-1)
    with pytest.raises(ValueError, match="cross_device_ops must be a"):
        tf.distribute.MirroredStrategy(DEVICES, cross_device_ops="nccl")
    assert not issubclass(tf.distribute.NcclAllReduce, tf.distribute.HierarchicalCopyAllReduce)


def test_options_of_a_call_leave_the_rest_to_the_strategy():
    options = tf.distribute.experimental.CommunicationOptions
    own = options(bytes_per_pack=1 << 20, timeout_seconds=5.0, wire_dtype=tf.bfloat16)
    found = merged(options(timeout_seconds=1.0), own)
    assert (found.bytes_per_pack, found.timeout_seconds, found.wire_dtype) == (1 << 20, 1.0, tf.bfloat16)
    assert merged(None, own) is own and merged(own, None) is own
