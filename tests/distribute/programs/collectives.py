"""Prints what collectives give: all dtypes, structures, sparse gradients, gradients and forward mode through them."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
replica = tf.distribute.get_replica_context
rank, size = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync


def show(name, value):
    print(name, np.asarray(value).tolist(), flush=True)


for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "complex64", "bool"):
    x = tf.cast([rank, 1], dtype)
    total = strategy.run(lambda x=x: tf.distribute.get_replica_context().all_reduce("SUM", x))
    assert total.dtype == x.dtype
    show(dtype, tf.cast(total, "complex64" if dtype == "complex64" else "float32").numpy().real)

show("mean", strategy.reduce("MEAN", tf.constant(float(rank)), axis=None))
show("mean of rows", strategy.reduce("MEAN", tf.range(rank + 1, dtype=tf.float32), axis=0))
show("gather", strategy.gather(tf.fill([rank + 1, 2], rank), axis=0))
show("gather columns", strategy.gather(tf.fill([2, rank + 1], rank), axis=1))


@tf.function
def structures(x):
    context = tf.distribute.get_replica_context()
    slices = tf.IndexedSlices(tf.fill([1, 2], x), tf.constant([rank]), tf.constant([4, 2]))
    reduced = context.all_reduce("SUM", {"a": [x, 2.0 * x], "s": slices})
    return reduced["a"], tf.convert_to_tensor(reduced["s"]), context.all_gather(tf.fill([rank + 1], x), axis=0)


pair, dense, gathered = strategy.run(structures, args=(tf.constant(rank + 1.0),))
show("structure", pair)
show("sparse", dense)
show("all_gather", gathered)

x = tf.Variable(rank + 1.0)


def through(x):
    context = tf.distribute.get_replica_context()
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as tape:
            total = context.all_reduce("SUM", x * x)
            y = total * total
        dy = tape.gradient(y, x)
    with tf.GradientTape() as tape:
        rows = context.all_gather(tf.reshape(x, [1]) * 3.0, axis=0)
        loss = tf.reduce_sum(rows * rows)
    return dy, outer.gradient(dy, x), tape.gradient(loss, x)


def tangent(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        z = tf.distribute.get_replica_context().all_reduce("SUM", x * x)
    return accumulator.jvp(z)


for name, run in (("eager", through), ("function", tf.function(through))):
    for what, value in zip(("gradient", "second", "gather gradient"), strategy.run(run, args=(x,))):
        show(f"{name} {what}", value)
show("tangent", strategy.run(tangent, args=(x,)))
show("function tangent", strategy.run(tf.function(tangent), args=(tf.constant(rank + 1.0),)))
square = tf.function(lambda x: replica().all_reduce("SUM", x * x))


def gradient_around(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = square(x)
    return tape.gradient(total, x)


show("gradient around", strategy.run(gradient_around, args=(x.read_value(),)))
with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as around:
    reduced = strategy.run(square, args=(x.read_value(),))
show("tangent around", around.jvp(reduced))

words = strategy.run(lambda: replica().all_gather(tf.constant([["", "\u00fcber"], ["a\0b", "c"]])[: rank + 1], axis=0))
show("strings", words)
with strategy.scope():
    name = tf.Variable(
        ["first", "x"] if rank == 0 else ["other", "longer"], aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
    )
show("initial strings", name)
strategy.run(tf.function(lambda: name.assign(tf.strings.as_string([rank + 7, rank]))))
show("assigned strings", name)
