"""Keras behaves under a doctor as it does without: signatures, configurations and attributes stay."""

import inspect

import pytest

import tapeflow as tf


@pytest.fixture
def keras():
    tf.install_as_tensorflow()
    return tf.keras


@pytest.fixture
def scale(keras):
    """A class of layers without a constructor, so that Keras reads the signature of the base class."""

    class Scale(keras.layers.Layer):
        def call(self, x):
            return 2.0 * x

    return Scale


def test_signatures_and_configurations_stay(keras, scale):
    layer = keras.layers.Layer
    before = inspect.signature(layer.__init__), layer.__init__, layer.__call__, layer.trainable
    with tf.debugging.Doctor():
        assert inspect.signature(layer.__init__) == before[0]
        assert scale(name="twice").get_config()["name"] == "twice"
        dense = keras.layers.Dense(2, trainable=False)
        assert not dense.trainable
    assert (layer.__init__, layer.__call__, layer.trainable) == before[1:]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Keras's own variables and NumPy
def test_weights_are_saved_and_loaded(keras, scale, tmp_path):
    path = str(tmp_path / "a.weights.h5")
    with tf.debugging.Doctor():
        model = keras.Sequential([keras.Input((2,)), scale(), keras.layers.Dense(1)])
        model.save_weights(path)
        model.load_weights(path)


def test_the_line_of_the_layer_is_named(keras):
    with tf.debugging.Doctor() as doctor:
        dead = keras.layers.Dense(4, activation="relu", bias_initializer=keras.initializers.Constant(-100.0))
        line = inspect.currentframe().f_lineno - 1
        head = keras.layers.Dense(1)
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(head(dead(tf.ones([8, 3]))) ** 2)
            variables = dead.trainable_variables + head.trainable_variables
            for v, g in zip(variables, tape.gradient(loss, variables)):
                v.assign_sub(0.01 * g)
    finding = next(f for f in doctor.findings if f.kind == "dead-units")
    assert finding.line == line
