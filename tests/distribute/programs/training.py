"""Trains with Keras or with a loop of its own, and prints losses and weights; `one` has one replica."""

import sys

import numpy as np
import tensorflow as tf

kind, loop = sys.argv[1:3]
strategy = {
    "one": tf.distribute.get_strategy,
    "mirrored": lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
    "workers": tf.distribute.MultiWorkerMirroredStrategy,
}[kind]()
keras = tf.keras
resolver = strategy.cluster_resolver
rank = resolver.task_id if resolver else 0
keras.utils.set_random_seed(1 if kind == "one" else 1 + rank)  # initial weights are those of the first worker
rows = np.random.default_rng(0)
x = rows.normal(size=[70, 8]).astype("float32")
y = x.sum(1, keepdims=True).astype("float32")


def make_model():
    layers = keras.layers
    return keras.Sequential(
        [layers.Input([8]), layers.Dense(16, "tanh"), layers.BatchNormalization(synchronized=True), layers.Dense(1)]
    )


if loop == "fit":
    with strategy.scope():
        model = make_model()
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=20, epochs=2, shuffle=False, verbose=0).history
    print("losses", [round(v, 5) for v in history["loss"]], flush=True)
    print("mae", [round(v, 5) for v in history["mae"]], flush=True)
    print("evaluate", [round(v, 4) for v in model.evaluate(x, y, batch_size=20, verbose=0)], flush=True)
    print("predict", round(float(model.predict(x, batch_size=20, verbose=0).sum()), 3), flush=True)
else:
    with strategy.scope():
        model = make_model()
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
        seen = keras.metrics.Mean()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(20)
    distributed = strategy.experimental_distribute_dataset(dataset)

    def step(inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            errors = tf.reduce_mean((model(features, training=True) - labels) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=20)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        seen.update_state(errors)
        return loss

    @tf.function
    def epoch(batches):
        total = 0.0
        for batch in batches:
            total += strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(batch,)), axis=None)
        return total

    losses = [float(epoch(distributed)) for _ in range(2)]
    losses.append(sum(float(strategy.reduce("SUM", strategy.run(step, args=(b,)), axis=None)) for b in distributed))
    print("losses", [round(v, 4) for v in losses], flush=True)
print("weights", [round(float(np.abs(w).sum()), 3) for w in model.get_weights()], flush=True)
