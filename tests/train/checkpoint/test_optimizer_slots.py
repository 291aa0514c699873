"""What optimizers of Keras 2 keep for variables, in checkpoints and saved models."""

import numpy as np
import pytest

import tapeflow as tf


class Momentum(tf.__internal__.tracking.Trackable):
    """An optimizer with the methods that Keras 2 gives its own."""

    def __init__(self):
        self.kept = {}
        self.awaited = []

    def get_slot_names(self):
        return ["momentum"]

    def get_slot(self, variable, name):
        return self.kept[id(variable)]

    def add_slot(self, var, slot_name, initializer=None):
        value = tf.zeros(var.shape) if initializer is None else initializer(shape=var.shape, dtype=var.dtype)
        made = self.kept[id(var)] = tf.Variable(value, trainable=False)
        for position in self.awaited:
            position.restore(made)
        return made

    def _create_or_restore_slot_variable(self, slot_variable_position, slot_name, variable):
        assert slot_variable_position.is_simple_variable()
        assert slot_variable_position.value_shape() == variable.shape
        if self.waits:
            self.awaited.append(slot_variable_position)
            return None
        first = tf.__internal__.tracking.CheckpointInitialValueCallable(slot_variable_position)
        return self.add_slot(variable, slot_name, first)

    waits = False


def model():
    made = tf.Module()
    made.optimizer, made.v = Momentum(), tf.Variable([0.0, 0.0])
    return made


@pytest.mark.parametrize("waits", [False, True])
def test_slots_are_saved_and_restored(tmp_path, waits):
    first = model()
    first.optimizer.add_slot(first.v, "momentum").assign([1.0, 2.0])
    path = tf.train.Checkpoint(first).write(tmp_path / "model")
    assert tf.train.load_checkpoint(path).has_tensor("v/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE")
    second = model()
    second.optimizer.waits = waits
    tf.train.Checkpoint(second).read(path)
    if waits:
        second.optimizer.add_slot(second.v, "momentum")
    np.testing.assert_array_equal(second.optimizer.kept[id(second.v)], [1.0, 2.0])


def test_slots_are_in_saved_models(tmp_path):
    first = model()
    first.optimizer.add_slot(first.v, "momentum").assign([1.0, 2.0])
    tf.saved_model.save(first, tmp_path)
    second = model()
    tf.train.Checkpoint(second).read(tmp_path / "variables" / "variables")
    np.testing.assert_array_equal(second.optimizer.kept[id(second.v)], [1.0, 2.0])
    assert tf.saved_model.load(tmp_path).v.shape == [2]


def test_what_is_added_to_a_list_later_is_restored(tmp_path):
    class Holder(tf.__internal__.tracking.AutoTrackable):
        def __init__(self):
            self.kept = []

    first = Holder()
    first.kept.append(tf.Variable(3.0))
    path = tf.train.Checkpoint(first).write(tmp_path / "model")
    second = Holder()
    tf.train.Checkpoint(second).read(path)
    second.kept.append(tf.Variable(0.0))
    assert second.kept[0].numpy() == 3.0
