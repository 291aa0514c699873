"""Keras's callbacks that write files, in a folder that all workers share; a run that ends early goes on."""

import os
import sys

import numpy as np
import tensorflow as tf

folder = sys.argv[1]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
keras = tf.keras
x = np.random.default_rng(0).normal(size=[32, 4]).astype("float32")
y = x.sum(1, keepdims=True)


class EndEarly(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise InterruptedError


def fit(*callbacks):
    keras.utils.set_random_seed(rank)
    with strategy.scope():
        model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1, kernel_initializer="ones")])
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05, momentum=0.9))
        model.compile(optimizer, "mse")
    written = keras.callbacks.ModelCheckpoint(os.path.join(folder, "model.keras"))
    model.fit(x, y, batch_size=8, epochs=4, shuffle=False, verbose=0, callbacks=[written, *callbacks])
    return model


backup = keras.callbacks.BackupAndRestore(os.path.join(folder, "backup"))
expected = fit().get_weights()
try:
    fit(backup, EndEarly())
except InterruptedError:
    print("ended early", flush=True)
continued = fit(keras.callbacks.BackupAndRestore(os.path.join(folder, "backup"))).get_weights()
print("equal", all(np.array_equal(a, b) for a, b in zip(expected, continued)), flush=True)
loaded = keras.models.load_model(os.path.join(folder, "model.keras")).get_weights()
print("loaded", all(np.array_equal(a, b) for a, b in zip(expected, loaded)), sorted(os.listdir(folder)), flush=True)

with strategy.scope():
    variable = keras.Variable(1.0)
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=2.0)
    scaled.build([variable])
infinite_on_one = tf.constant(float("inf") if rank == 1 else 1.0)
strategy.run(tf.function(lambda: scaled.apply([infinite_on_one])))
print("scale", float(scaled.dynamic_scale), "value", float(variable), flush=True)
