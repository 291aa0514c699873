"""Saved models: objects with their functions come back."""

import numpy as np
import pytest

import tapeflow as tf


class Adder(tf.Module):
    """A module with functions."""

    def __init__(self):
        super().__init__()
        self.total, self.parts = tf.Variable(1.0), [tf.Variable([1.0, 2.0], trainable=False)]
        self.same = self.total

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        return x * self.total + tf.reduce_sum(self.parts[0])

    @tf.function
    def add(self, x):
        self.total.assign_add(x)
        return {"total": self.total.read_value()}


def test_an_object_comes_back(tmp_path):
    adder = Adder()
    adder.add(tf.constant(4.0))
    tf.saved_model.save(adder, tmp_path / "m", signatures={"call": adder.__call__, "add": adder.add})
    assert tf.saved_model.contains_saved_model(tmp_path / "m")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded(tf.constant([1.0, 2.0])), [8.0, 13.0])
    assert float(loaded.add(tf.constant(1.0))["total"]) == 6.0
    assert loaded.same is loaded.total and len(loaded.variables) == 2 and len(loaded.trainable_variables) == 1
    assert adder.total == 5.0
    assert sorted(loaded.signatures) == ["add", "call"]
    np.testing.assert_array_equal(loaded.signatures["call"](tf.constant([1.0]))["output_0"], [9.0])
    with tf.GradientTape() as tape:
        y = loaded(tf.constant([3.0]))
    assert tape.gradient(y, loaded.total) == 3.0


def test_a_restored_object_can_be_saved(tmp_path):
    adder = Adder()
    path = tf.train.Checkpoint(adder=adder).save(tmp_path / "c")
    tf.train.Checkpoint(adder=adder).restore(path)
    tf.saved_model.save(adder, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    loaded.more = tf.Variable(1.0)
    assert loaded.total == 1.0


def test_the_variables_are_a_checkpoint(tmp_path):
    adder = Adder()
    tf.saved_model.save(adder, tmp_path, signatures=adder.__call__.get_concrete_function())
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "variables" / "variables"))]
    assert names[1:] == [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("parts/0", "total")]
    assert list(tf.saved_model.load(tmp_path).signatures) == ["serving_default"]


def test_what_cannot_be_saved_or_loaded(tmp_path):
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path)
    module = tf.Module()
    module.f = tf.function(lambda x: x)
    with pytest.raises(ValueError, match="define them at the top level of a module"):
        tf.saved_model.save(module, tmp_path)
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load(tmp_path / "none")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(OSError, match="whose graphs Tapeflow does not read"):
        tf.saved_model.load(tmp_path)
