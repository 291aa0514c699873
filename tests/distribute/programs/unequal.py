"""Batches of different numbers and sizes on the workers end without a wait."""

import os
import sys

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id


def datasets(context):
    return tf.data.Dataset.range(2 + 3 * context.input_pipeline_id).map(lambda x: tf.cast(x, tf.float32)).batch(2)


def rows_here(dataset):
    parts = [
        strategy.experimental_local_results(batch)[0] for batch in strategy.experimental_distribute_dataset(dataset)
    ]
    return tf.concat(parts, axis=0)


def total(batches):
    sums = []
    for batch in batches:
        sums.append(float(strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)))
    return sums


print(total(strategy.distribute_datasets_from_function(datasets)), flush=True)
whole = tf.data.Dataset.range(7).map(lambda x: tf.cast(x, tf.float32)).batch(3)
print(total(strategy.experimental_distribute_dataset(whole)), flush=True)
shuffled = tf.data.Dataset.range(100).shuffle(100).batch(10)  # without a seed: the first worker's order holds
everything = strategy.gather(rows_here(shuffled), axis=0).numpy()
print(sorted(everything.tolist()) == list(range(100)), flush=True)

folder = sys.argv[1]
if rank == 0:
    for number in range(3):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{number}.tfrecord")) as file:
            for place in range(2 + number):
                file.write(str(10 * number + place).encode())
strategy.reduce("SUM", tf.constant(0.0), axis=None)  # the files are there
names = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"))
numbers = names.interleave(tf.data.TFRecordDataset).map(lambda text: tf.strings.to_number(text, tf.int32)).batch(4)
for policy in ("FILE", "AUTO", "DATA", "OFF"):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(tf.data.experimental.AutoShardPolicy, policy)
    print(
        policy, sorted(strategy.gather(rows_here(numbers.with_options(options)), axis=0).numpy().tolist()), flush=True
    )
