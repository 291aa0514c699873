"""Keras on Tapeflow: every test begins with fresh names, seed 7 and float32."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture
def keras():
    """The module `tf.keras`."""
    tf.install_as_tensorflow()
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(7)
    yield tf.keras
    tf.keras.mixed_precision.set_global_policy("float32")


@pytest.fixture
def rows():
    """64 rows of 8 numbers and a class, 0 or 1, for each."""
    x = np.cos(np.arange(64 * 8, dtype=np.float32)).reshape(64, 8)
    return x, (x.sum(1) > 0).astype(np.float32)


@pytest.fixture
def perceptron(keras):
    """Makes a small network for `rows`."""

    def make(activation="sigmoid"):
        layers = keras.layers
        return keras.Sequential(
            [keras.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(1, activation=activation)]
        )

    return make
