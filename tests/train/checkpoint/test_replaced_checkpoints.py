"""Checkpoints that another process replaces or deletes while they are read: what is read is one of them, whole."""

import copy
import os
import pickle

import pytest

import tapeflow as tf
from tapeflow._src.train.checkpoint import manager, state, tensor_bundle

KEYS = ["a/.ATTRIBUTES/VARIABLE_VALUE", "b/.ATTRIBUTES/VARIABLE_VALUE"]


def write(prefix, a, b=None):
    """Values of two sizes, so that those of the later lie elsewhere in the file."""
    return tf.train.Checkpoint(a=tf.Variable([a] * int(a)), b=tf.Variable(b or a)).write(str(prefix))


def values(reader):
    return [reader.get_tensor(key).tolist() for key in KEYS]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_checkpoint_that_is_replaced_between_its_index_and_its_data(tmp_path, monkeypatch, times):
    def replaced_after_the_index(content, path):
        monkeypatch.undo()
        for number in range(times):
            write(tmp_path / "model", 2.0 + number)
        return tensor_bundle.read_table(content, path)

    path = write(tmp_path / "model", 1.0)
    monkeypatch.setattr(tensor_bundle, "read_table", replaced_after_the_index)
    assert values(tf.train.load_checkpoint(path)) == [[1.0 + times] * (1 + times), 1.0 + times]


@pytest.mark.parametrize("times", [1, 2])
def test_a_reader_keeps_the_checkpoint_that_it_opened(tmp_path, times):
    path = write(tmp_path / "model", 1.0)
    reader = tf.train.load_checkpoint(path)
    for number in range(times):
        write(tmp_path / "model", 2.0 + number)
    assert values(reader) == [[1.0], 1.0]
    tensor_bundle.delete_bundle(path)
    assert values(reader) == [[1.0], 1.0]


def test_what_is_restored_later_is_of_the_same_checkpoint(tmp_path):
    path = write(tmp_path / "model", 1.0)
    module = tf.Module()
    module.a = tf.Variable([0.0])
    tf.train.Checkpoint(module).restore(path)
    write(path, 2.0)
    module.b = tf.Variable(0.0)
    assert [module.a.numpy(), module.b.numpy()] == [[1.0], 1.0]


def test_files_are_closed_when_everything_is_restored(tmp_path):
    path = write(tmp_path / "model", 1.0)
    kept = []
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        kept.append(tf.train.Checkpoint(a=tf.Variable([0.0]), b=tf.Variable(0.0)))
        kept[-1].read(path).assert_consumed()
    assert len(os.listdir("/dev/fd")) <= before  # fewer, if those of an earlier test are closed by now


def test_a_copy_of_a_reader_opens_the_files_itself(tmp_path):
    reader = tf.train.load_checkpoint(write(tmp_path / "model", 1.0))
    for other in (copy.deepcopy(reader), pickle.loads(pickle.dumps(reader))):
        assert values(other) == [[1.0], 1.0]


def managed(folder, **kwargs):
    v = tf.Variable(0.0)
    return v, tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(folder), 1, **kwargs)


def test_a_folder_has_a_last_checkpoint_while_old_ones_are_deleted(tmp_path, monkeypatch):
    found = []

    def seen(path):
        found.append(tf.train.latest_checkpoint(str(tmp_path)))
        tensor_bundle.delete_bundle(path)

    _, writer = managed(tmp_path)
    writer.save()
    monkeypatch.setattr(manager, "delete_bundle", seen)
    assert [writer.save(), writer.save()] == found
    assert tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths == found[-1:]


def test_a_v1_saver_names_the_new_checkpoint_before_it_deletes_an_old_one(tmp_path, monkeypatch):
    from tapeflow._src.compat.v1.train import saver as saver_module

    found = []

    def seen(path):
        found.append(tf.train.latest_checkpoint(str(tmp_path)))
        tensor_bundle.delete_bundle(path)

    monkeypatch.setattr(saver_module, "delete_bundle", seen)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.get_variable("v", initializer=1.0)
        session.run(v.initializer)
        saver = tf.compat.v1.train.Saver(max_to_keep=1)
        paths = [saver.save(session, str(tmp_path / "model"), step) for step in range(3)]
    assert found == paths[1:]


def test_a_newer_checkpoint_is_read_if_the_last_one_was_deleted_meanwhile(tmp_path, monkeypatch):
    v, writer = managed(tmp_path)
    v.assign(1.0)
    first = writer.save()

    def deleted_after_the_state(path):
        monkeypatch.undo()
        assert path == first
        v.assign(2.0)
        writer.save()
        return True

    monkeypatch.setattr(state, "bundle_exists", deleted_after_the_state)
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE") == 2.0


def test_a_manager_restores_the_last_checkpoint_of_another_one(tmp_path):
    v, writer = managed(tmp_path)
    v.assign(1.0)
    writer.save()
    w, reader = managed(tmp_path)
    v.assign(2.0)
    path = writer.save()
    assert reader.restore_or_initialize() == path == reader.latest_checkpoint
    assert w.numpy() == 2.0
    tensor_bundle.delete_bundle(path)
    with pytest.raises(tf.errors.NotFoundError):
        reader.restore_or_initialize()
