"""Loops that a program writes itself, with the same result on logical processors and on processes."""

import sys

import numpy as np
import tensorflow as tf

if sys.argv[1] == "mirrored":
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
else:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
rows = np.random.default_rng(0)
x = rows.normal(size=[50, 6]).astype("float32")
y = x.sum(1, keepdims=True)


def show(name, *values):
    print(name, [np.round(np.asarray(value, "float64"), 3).tolist() for value in values], flush=True)


def batches(size):
    return strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(size))


def total(values):
    return strategy.reduce("SUM", values, axis=None)


with strategy.scope():
    w, b = tf.Variable(tf.fill([6, 1], 0.1)), tf.Variable(0.0)
    table = tf.Variable(tf.ones([10, 2]))
    mean = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    first = tf.Variable(1.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    seen = tf.Variable(
        0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
    )


def step(features, labels):
    """A step with gradients that the program reduces, in a batch that does not divide."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((features @ w + b - labels) ** 2) / 15.0
    dw, db = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, [w, b]))
    w.assign_sub(0.05 * dw)
    b.assign_sub(0.05 * db)
    seen.assign_add(tf.cast(tf.shape(features)[0], tf.float32))
    return loss


show("eager", *[total(strategy.run(step, args=batch)) for batch in batches(15)])
compiled = tf.function(step)
show("function", *[total(strategy.run(compiled, args=batch)) for batch in batches(15)], w, b, seen.read_value())


def sparse(tokens):
    """A sparse gradient."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tokens) ** 2)
    gradient = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, table))
    assert isinstance(gradient, tf.IndexedSlices)
    table.assign_sub(0.01 * tf.convert_to_tensor(gradient))
    return loss


tokens = strategy.experimental_distribute_dataset(tf.data.Dataset.range(21).map(lambda n: n % 10).batch(6))
show("sparse", *[total(strategy.run(sparse, args=(part,))) for part in tokens], table)


def assignments():
    """Assignments that the variables merge."""
    number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
    mean.assign_add(number + 1.0)
    first.assign(number + 5.0)


strategy.run(assignments)
strategy.run(tf.function(assignments))
show("variables", mean, first)


def merged():
    """One function for all replicas, which updates a variable with their sum."""

    def merge(strategy, value):
        everything = strategy.extended.reduce_to("SUM", value, destinations=mean)
        strategy.extended.update(mean, lambda variable, change: variable.assign_add(change), args=(everything,))
        return everything

    context = tf.distribute.get_replica_context()
    return context.merge_call(merge, args=(tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0,))


show("merged", strategy.experimental_local_results(strategy.run(merged))[0], mean)
iterator = iter(batches(20))
sizes = []
while (batch := iterator.get_next_as_optional()).has_value():
    sizes.append(total(strategy.run(lambda features, _: tf.shape(features)[0], args=batch.get_value())))
show("sizes", *sizes)
