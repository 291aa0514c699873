"""Functions that optimizers, metrics and layers of Keras 2 use."""

import numpy as np
import pytest

import tapeflow as tf


def test_moving_average():
    v = tf.Variable([1.0, 2.0])
    tf.__internal__.train.assign_moving_average(v, [3.0, 2.0], 0.75, zero_debias=False)
    assert v.numpy().tolist() == [1.5, 2.0]


def test_weights_are_broadcast_by_rank():
    weights = tf.__internal__.ops.broadcast_weights([[1.0, 2.0]], np.zeros([3, 2], "float32"))
    assert weights.numpy().tolist() == [[1.0, 2.0]] * 3
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        tf.__internal__.ops.broadcast_weights([1.0, 2.0], np.zeros([3, 2], "float32"))


def test_functions_by_device_and_conversion():
    assert tf.__internal__.execute_fn_for_device({"gpu": lambda: "gpu"}, lambda: "default") == "default"

    def absolute(x):
        if x < 0.0:
            x = -x
        return x

    @tf.function(autograph=False)
    def call(x):
        context = tf.__internal__.autograph.control_status_ctx()
        return tf.__internal__.autograph.tf_convert(absolute, context)(x)

    assert call(tf.constant(-2.0)).numpy() == 2.0


def test_the_state_of_checkpoints_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tf.__internal__.train.update_checkpoint_state("", "model", ["model"], save_relative_paths=True)
    assert tf.train.get_checkpoint_state("").model_checkpoint_path == "model"
