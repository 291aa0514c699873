"""Checkpoints of objects whose variables belong to a TensorFlow 1 graph: a session holds the values."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def saved(folder):
    """A checkpoint of two variables with the values 3 and 4, written in a session."""
    with tf.Graph().as_default(), v1.Session() as session:
        checkpoint = v1.train.Checkpoint(
            a=v1.get_variable("a", initializer=3.0), b=v1.get_variable("b", initializer=4.0)
        )
        checkpoint.restore(None).initialize_or_restore(session)
        checkpoint.save(folder / "model", session=session)
        return checkpoint.save(folder / "model", session=session)


def test_saves_count_in_the_session(tmp_path):
    assert saved(tmp_path).endswith("model-2")
    assert tf.train.latest_checkpoint(tmp_path).endswith("model-2")


def test_values_come_when_the_status_says_so(tmp_path):
    path = saved(tmp_path)
    with tf.Graph().as_default(), v1.Session() as session:
        a, other = v1.get_variable("a", initializer=0.0), v1.get_variable("other", initializer=7.0)
        checkpoint = tf.train.Checkpoint(a=a, other=other)
        status = checkpoint.restore(path)
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(a)
        status.initialize_or_restore()
        assert session.run([a, other, checkpoint.save_counter]) == [3.0, 7.0, 2]
        checkpoint.b = v1.get_variable("b", initializer=0.0)
        status.run_restore_ops(session)
        assert session.run(checkpoint.b) == 4.0


def test_eager_programs_read_what_a_session_wrote(tmp_path):
    checkpoint = tf.train.Checkpoint(a=tf.Variable(0.0), b=tf.Variable(0.0))
    checkpoint.restore(saved(tmp_path)).assert_consumed()
    assert (checkpoint.a.numpy(), checkpoint.b.numpy(), checkpoint.save_counter.numpy()) == (3.0, 4.0, 2)


def test_a_manager_saves_in_the_default_session(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        checkpoint = tf.train.Checkpoint(a=v1.get_variable("a", initializer=3.0))
        checkpoint.restore(None).initialize_or_restore(session)
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
        assert [manager.save(), manager.save()][-1].endswith("ckpt-2")


def test_names_find_the_variables_of_a_graph(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=3.0)
        session.run(a.initializer)
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
        session.run(a.assign(0.0))
        status = tf.train.Checkpoint(a=a).restore(path)
        with pytest.raises(AssertionError, match="not restored"):
            status.assert_consumed()
        status.run_restore_ops()
        assert session.run(a) == 3.0
        status.assert_consumed()


def test_a_saver_reads_checkpoints_of_objects(tmp_path):
    path = saved(tmp_path)
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=0.0)
        v1.train.Saver().restore(session, path)
        assert session.run(a) == 3.0


def test_later_objects_are_restored_in_the_session(tmp_path):
    path = saved(tmp_path)
    with tf.Graph().as_default(), v1.Session() as session:
        module = tf.Module()
        status = tf.train.Checkpoint(module).read(path)
        tf.__internal__.tracking.streaming_restore(status, session)
        module.a = v1.get_variable("a", initializer=0.0)
        assert session.run(module.a) == 3.0
