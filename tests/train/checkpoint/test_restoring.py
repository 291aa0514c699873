"""Restoring where objects refer to each other, come late, lack places, or are restored several times."""

import pytest

import tapeflow as tf


class Holder(tf.Module):
    pass


def saved_pair(folder):
    first, second = tf.train.Checkpoint(), tf.train.Checkpoint()
    first.second, second.first = second, first
    first.v, second.v = tf.Variable([3.0, 1.0]), tf.Variable([1.0, 2.0, 3.0])
    return first.save(str(folder / "c"))


def test_objects_that_refer_to_each_other(tmp_path):
    first, second = tf.train.Checkpoint(), Holder()
    status = first.restore(saved_pair(tmp_path))
    first.second = second
    second.first = first
    with pytest.raises(AssertionError, match="Unresolved"):
        status.assert_consumed()
    first.v, second.v = tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0, 0.0])
    status.assert_consumed()
    assert first.v.numpy().tolist() == [3, 1] and second.v.numpy().tolist() == [1, 2, 3]
    first.v.assign([7.0, 7.0])
    first.restore(saved_pair(tmp_path)).assert_consumed()
    assert first.v.numpy().tolist() == [3, 1]


def test_the_last_restoration_decides(tmp_path):
    root = tf.train.Checkpoint(part=Holder())
    root.part.v = tf.Variable(12.0)
    first_path = root.save(str(tmp_path / "first"))
    root.part.v.assign(13.0)
    second_path = root.save(str(tmp_path / "second"))
    for order in (0, 1):
        first, second = tf.train.Checkpoint(), tf.train.Checkpoint()
        for which in (order, 1 - order):
            (first, second)[which].restore((first_path, second_path)[which])
        part = Holder()
        part.v = tf.Variable(0.0)
        first.part = part
        assert float(part.v) == 12
        second.part = part
        assert float(part.v) == (12 if order else 13)


def test_a_value_without_a_place_is_named(tmp_path):
    path = tf.train.Checkpoint(v1=tf.Variable(2.0), v2=tf.Variable(3.0)).save(str(tmp_path / "c"))
    status = tf.train.Checkpoint(v1=Holder(), v2=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match=r"Unused attributes.*\(root\)\.v1"):
        status.assert_consumed()


def test_the_folder_of_a_saved_model_is_a_checkpoint(tmp_path):
    model = Holder()
    model.v = tf.Variable([1.0, 2.0])
    tf.saved_model.save(model, str(tmp_path / "m"))
    other = Holder()
    other.v = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(other).restore(str(tmp_path / "m")).expect_partial()
    assert other.v.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("convert", [str, tf.constant])
def test_a_function_writes_when_it_runs(convert, tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))

    @tf.function
    def write():
        checkpoint.v.assign_add(1.0)
        path = checkpoint.write(convert(str(tmp_path / "c")))
        checkpoint.v.assign_add(1.0)
        return path

    other = tf.train.Checkpoint(v=tf.Variable(0.0))
    for expected in (2.0, 4.0):
        path = write()
        assert path.dtype == tf.string
        other.read(path.numpy().decode()).assert_consumed()
        assert float(other.v) == expected
    with pytest.raises(NotImplementedError, match="modifies saving metadata"):
        tf.function(lambda: checkpoint.save(str(tmp_path / "c")))()


def test_a_manager_counts_steps_of_a_graph(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        step = tf.compat.v1.Variable(0, dtype=tf.int64)
        session.run(step.initializer)
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(step=step), str(tmp_path), 3, step_counter=step, checkpoint_interval=2
        )
        made = []
        for _ in range(5):
            made.append(manager.save() is not None)
            session.run(step.assign_add(1))
        assert made == [True, False, True, False, True]


def test_the_file_of_a_folder_must_name_a_checkpoint(tmp_path):
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(ValueError, match="Invalid checkpoint state"):
        tf.train.get_checkpoint_state(str(tmp_path))


def test_paths_of_a_relative_folder_are_relative_to_it():
    state = tf.compat.v1.train.generate_checkpoint_state_proto("train", "train/model-0", ["train/model-1"])
    assert state.model_checkpoint_path == "model-0" and state.all_model_checkpoint_paths == ["model-1", "model-0"]


def test_a_saver_does_not_write_over_the_file_of_the_folder(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.Variable(0.0)
        session.run(v.initializer)
        saver = tf.compat.v1.train.Saver()
        with pytest.raises(ValueError, match="collides with"):
            saver.save(session, str(tmp_path / "checkpoint"))
        assert saver.save(session, str(tmp_path / "checkpoint"), global_step=1)


def test_a_sharded_saver_has_other_names(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.Variable(0.0)
        session.run(v.initializer)
        saver = tf.compat.v1.train.Saver(sharded=True)
        saver.restore(session, saver.save(session, str(tmp_path / "checkpoint")))


def test_a_subclass_of_checkpoint_need_not_call_init(tmp_path):
    class Kept(tf.train.Checkpoint):
        def __init__(self, value):
            self.numbers = [1.0]
            self.numbers.append(tf.Variable(value))
            self.named = {"a": tf.Variable(value)}

    path = Kept(2.0).save(str(tmp_path / "kept"))
    other = Kept(0.0)
    other.restore(path).assert_consumed()
    assert other.numbers[1].numpy() == 2.0 and other.named["a"].numpy() == 2.0
    tf.saved_model.save(other, str(tmp_path / "model"))
    assert tf.saved_model.load(str(tmp_path / "model")).named["a"].numpy() == 2.0
