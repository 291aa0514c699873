"""TensorFlow 1's iterators of strategies: `make_dataset_iterator`, `make_input_fn_iterator`; and datasets of arrays."""

import numpy as np
import pytest

import tapeflow as tf


def two_replicas():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def parts(value):
    return [part.numpy().tolist() for part in value.values]


def test_an_iterator_of_an_eager_program_begins_again():
    strategy = two_replicas()
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
    assert isinstance(iterator, tf.distribute.DistributedIterator)
    assert parts(iterator.get_next()) == [[0, 1], [2, 3]]
    assert iterator.initialize() is None
    assert parts(iterator.get_next()) == [[0, 1], [2, 3]]
    assert parts(strategy.experimental_run(lambda x: x + 1, iterator)) == [[5, 6], [7, 8]]
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    assert iterator.output_types == tf.int64
    assert iterator.output_shapes.as_list() == [None]
    assert iterator.output_classes is tf.Tensor


def test_an_iterator_of_a_graph_begins_when_a_session_says_so():
    strategy = two_replicas()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, strategy.scope():
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
        doubled = strategy.experimental_local_results(strategy.experimental_run(lambda x: x * 2, iterator))
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(doubled)
        for begin in (iterator.initialize(), iterator.initializer):
            session.run(begin)
            assert [part.tolist() for part in session.run(doubled)] == [[0, 2], [4, 6]]
        assert iterator.output_types == tf.int64


def test_an_iterator_over_what_a_function_makes():
    strategy = two_replicas()
    seen = []

    def input_fn(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return tf.data.Dataset.range(4).batch(context.get_per_replica_batch_size(2))

    iterator = strategy.make_input_fn_iterator(input_fn)
    assert seen == [(1, 0, 2)]
    assert parts(iterator.get_next()) == [[0], [1]]
    with pytest.raises(ValueError, match="Input replication mode not supported"):
        strategy.make_input_fn_iterator(input_fn, tf.distribute.InputReplicationMode.PER_REPLICA)


def test_the_default_strategy_has_iterators():
    strategy = tf.distribute.get_strategy()
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(4).batch(2))
    assert iterator.get_next().numpy().tolist() == [0, 1]
    assert strategy.experimental_run(lambda x: x + 1, iterator).numpy().tolist() == [3, 4]


def test_arrays_as_a_dataset():
    strategy = two_replicas()
    rows = (np.arange(6.0).reshape(3, 2), [np.ones(2), np.zeros(2), np.ones(2)])
    for owner in (strategy, strategy.extended):
        dataset = owner.experimental_make_numpy_dataset(rows)
        assert [spec.shape.as_list() for spec in dataset.element_spec] == [[2], [2]]
        assert [second.numpy().tolist() for _, second in dataset] == [[1, 1], [0, 0], [1, 1]]


def test_names_of_older_programs():
    strategy = two_replicas()
    values = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    assert [int(value) for value in strategy.unwrap(values)] == [0, 1]
    assert strategy.group(values) is None
    devices = strategy.extended.worker_devices
    assert strategy.extended.worker_devices_by_replica == tuple((device,) for device in devices)
    assert strategy.extended.non_slot_devices([]) == devices
    with pytest.raises(TypeError, match=r"Strategy.run: `fn` must be callable"):
        strategy.run(3)


def test_several_steps_over_an_iterator():
    strategy = two_replicas()
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4))

    def step(context, x):
        def replica(x):
            sum_of_rows = tf.reduce_sum(x)
            total.assign_add(sum_of_rows)
            context.set_last_step_output("mean", sum_of_rows, reduce_op="MEAN")
            context.set_last_step_output("each", sum_of_rows)
            context.set_non_tensor_output("name", "step")

        strategy.extended.call_for_each_replica(replica, args=(x,))
        context.set_last_step_output("outside", total.read_value())

    context = strategy.extended.experimental_run_steps_on_iterator(step, iterator, 2, {"unset": tf.constant(7.0)})
    assert total.numpy() == 28.0 and context.run_op is None
    outputs = context.last_step_outputs
    assert outputs["mean"].numpy() == 11.0 and [part.numpy() for part in outputs["each"].values] == [9.0, 13.0]
    assert outputs["outside"].numpy() == 28.0 and outputs["unset"].numpy() == 7.0
    assert context.non_tensor_outputs == {"name": ("step",)}
    with pytest.raises(TypeError, match="`iterations` must be an int"):
        strategy.extended.experimental_run_steps_on_iterator(step, iterator, 2.0)


def test_several_steps_in_a_session():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, strategy.scope():
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(1, 7).batch(1))
        product = tf.compat.v1.get_variable("product", [], tf.int64, tf.compat.v1.ones_initializer())

        def step(context, x):
            return product.assign(product * 2 + x[0])  # the order of the steps shows

        context = strategy.extended.experimental_run_steps_on_iterator(step, iterator, iterations=3)
        session.run([iterator.initialize(), product.initializer])
        session.run(context.run_op)
        assert session.run(product) == ((1 * 2 + 1) * 2 + 2) * 2 + 3
