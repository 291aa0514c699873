"""What Keras costs: a layer, a step of `fit`, a step with a tape, and a step as a `tf.function`.

tapeflow run benchmarks/keras_fit.py          on Tapeflow
.peers/bin/python benchmarks/keras_fit.py     on TensorFlow
"""

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

keras = tf.keras
X = np.random.rand(2048, 20).astype(np.float32)
Y = np.random.rand(2048, 1).astype(np.float32)


def microseconds(run: Callable[[], object], calls: int, repeats: int = 5) -> float:
    run()
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def perceptron() -> object:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((20,)),
            layers.Dense(32, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(1),
        ]
    )


def main() -> None:
    dense, x, y = keras.layers.Dense(32, activation="relu"), tf.constant(X[:32]), tf.constant(Y[:32])
    model = perceptron()
    model.compile("adam", "mse")
    start = time.perf_counter()
    model.fit(X, Y, verbose=0)
    first = (time.perf_counter() - start) * 1e6
    own, optimizer, loss = perceptron(), keras.optimizers.Adam(), keras.losses.MeanSquaredError()

    def step() -> object:
        with tf.GradientTape() as tape:
            value = loss(y, own(x, training=True))
        dx = tape.gradient(value, own.trainable_variables)
        optimizer.apply_gradients(zip(dx, own.trainable_variables))
        return value

    for what, cost in (
        ("one Dense layer, eager", microseconds(lambda: dense(x), 300)),
        ("the first epoch of fit (64 steps, tracing included)", first),
        ("a step of fit", microseconds(lambda: model.fit(X, Y, verbose=0), 1) / 64),
        ("a step with a tape, eager", microseconds(step, 30)),
        ("the same as a tf.function", microseconds(tf.function(step), 100)),
        ("predict, 2048 rows", microseconds(lambda: model.predict(X, verbose=0), 1)),
    ):
        print(f"{what:<55}{cost:>10.0f} us")


if __name__ == "__main__":
    main()
