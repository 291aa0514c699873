"""Keras under a strategy with two replicas in one process: equal to one replica with the same global batch."""

import numpy as np
import pytest

import tapeflow as tf

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


def train(keras, strategy, make_optimizer):
    layers, constant = keras.layers, keras.initializers.Constant
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input([4]),
                layers.Dense(3, kernel_initializer=constant(0.1)),
                layers.Dense(1, kernel_initializer=constant(0.2)),
            ]
        )
        model.compile(make_optimizer(keras.optimizers), "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return history["loss"], model.get_weights()


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizers: optimizers.LossScaleOptimizer(optimizers.SGD(0.01)),
        lambda optimizers: optimizers.SGD(0.01, gradient_accumulation_steps=2),
        lambda optimizers: optimizers.SGD(0.01, use_ema=True, ema_overwrite_frequency=2),
        lambda optimizers: optimizers.Adam(0.01, global_clipnorm=10.0),
        lambda optimizers: optimizers.Adafactor(0.01),
    ],
    ids=["loss scale", "accumulation", "average", "adam", "adafactor"],
)
def test_optimizers(keras, make):
    losses, weights = train(keras, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), make)
    expected_losses, expected_weights = train(keras, tf.distribute.get_strategy(), make)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for one, two in zip(weights, expected_weights):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("row", [0, 6])
def test_a_step_of_infinite_gradients_is_skipped_whichever_replica_has_them(keras, row):
    """Keras asks the first replica alone; the gradients of all are added after it."""
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1)])
        model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1024.0), "mse")
    x, before = X[:8].copy(), model.get_weights()
    x[row] = np.inf
    model.fit(x, Y[:8], batch_size=8, shuffle=False, verbose=0)
    assert float(model.optimizer.dynamic_scale.numpy()) == 512.0
    for one, two in zip(model.get_weights(), before):
        np.testing.assert_array_equal(one, two)


def test_batches_that_do_not_divide(keras):
    """Keras builds a model from the mean of the parts of the first batch, which must be equally large there."""

    def fit(strategy):
        with strategy.scope():
            model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1, kernel_initializer="ones")])
            model.compile(keras.optimizers.SGD(0.01), "mse", weighted_metrics=["mae"])
        model.fit(X[:7], Y[:7], batch_size=7, epochs=2, shuffle=False, verbose=0, validation_data=(X[:5], Y[:5]))
        return model.evaluate(X[:5], Y[:5] + 1.0, batch_size=5, verbose=0)[1], model.predict(X[:3], verbose=0)

    mean_error, predictions = fit(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]))
    expected_error, expected = fit(tf.distribute.get_strategy())
    np.testing.assert_allclose(mean_error, expected_error, rtol=0.05)
    np.testing.assert_allclose(predictions, expected, atol=0.05)
