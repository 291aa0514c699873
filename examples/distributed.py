"""Trains one model on several processes, with a loop of its own.

    tapeflow run --workers 2 examples/distributed.py

Started alone, it has one replica and gives the same losses. Each worker reads its part of every batch; gradients are
summed over the workers before the optimizer applies them.
"""

import numpy as np
import tensorflow as tf

GLOBAL_BATCH = 64


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rows = np.random.default_rng(0)
    x = rows.normal(size=[1024, 16]).astype("float32")
    y = np.tanh(x @ rows.normal(size=[16, 1])).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024, seed=1).batch(GLOBAL_BATCH)
    batches = strategy.experimental_distribute_dataset(dataset)

    with strategy.scope():
        tf.random.set_seed(1)
        w1 = tf.Variable(tf.random.normal([16, 32], stddev=0.3))
        w2 = tf.Variable(tf.random.normal([32, 1], stddev=0.3))

    def step(features, labels):
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum((tf.tanh(features @ w1) @ w2 - labels) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, [w1, w2])
        return loss, tf.distribute.get_replica_context().all_reduce("SUM", gradients)

    @tf.function
    def train(batch):
        loss, gradients = strategy.run(step, args=batch)
        for variable, gradient in zip((w1, w2), strategy.experimental_local_results(gradients)[0]):
            variable.assign_sub(0.1 * gradient)
        return strategy.reduce("SUM", loss, axis=None)

    for epoch in range(5):
        losses = [float(train(batch)) for batch in batches]
        if strategy.cluster_resolver.task_id == 0:
            print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}, {strategy.num_replicas_in_sync} replicas")


if __name__ == "__main__":
    main()
