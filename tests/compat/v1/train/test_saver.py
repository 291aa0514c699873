"""Savers: round trips, how many checkpoints stay, and files that do not fit."""

import pytest

import tapeflow
from tapeflow.compat import v1 as tf


def test_a_new_session_goes_on_where_the_old_one_ended(tmp_path):
    with tapeflow.Graph().as_default():
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        step = tf.train.get_or_create_global_step()
        update = tf.group(v.assign_add([1.0, 1.0]), step.assign_add(1))
        saver = tf.train.Saver(max_to_keep=2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(update)
                path = saver.save(session, str(tmp_path / "model"), global_step=step)
        assert path == str(tmp_path / "model-4") == tf.train.latest_checkpoint(str(tmp_path))
        assert [p[-1] for p in saver.last_checkpoints] == ["3", "4"]
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "checkpoint",
            *(f"model-{i}.{end}" for i in (3, 4) for end in ("data-00000-of-00001", "index", "meta")),
        ]
        state = tf.train.get_checkpoint_state(str(tmp_path))
        assert state.all_model_checkpoint_paths == saver.last_checkpoints
        with tf.Session() as session:
            saver.restore(session, path)
            assert session.run(v).tolist() == [5.0, 6.0] and session.run(step) == 4
    assert tf.train.list_variables(path) == [("global_step", []), ("v", [2])]
    assert tf.train.load_variable(str(tmp_path), "v").tolist() == [5.0, 6.0]


def test_files_that_do_not_fit(tmp_path):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        path = tf.train.Saver({"other": v}).save(session, str(tmp_path / "m"))
        with pytest.raises(tf.errors.NotFoundError, match=r"Key v not found in checkpoint"):
            tf.train.Saver([v]).restore(session, path)
        with pytest.raises(ValueError, match=r"The passed save_path is not a valid checkpoint"):
            tf.train.Saver().restore(session, str(tmp_path / "none"))
        (tmp_path / "broken.index").write_bytes(b"not an archive")
        with pytest.raises(ValueError, match=r"not a valid checkpoint"):
            tf.train.Saver().restore(session, str(tmp_path / "broken"))
        u = tf.get_variable("u", initializer=[1.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[1\] rhs shape= \[2\]"):
            tf.train.Saver({"other": u}).restore(session, path)
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            tf.train.Saver([v]).save(session, str(tmp_path / "broken.index" / "m"))
        assert tf.train.Saver([v]).save(session, str(tmp_path / "new" / "m")) == str(tmp_path / "new" / "m")
    with tapeflow.Graph().as_default(), pytest.raises(ValueError, match=r"No variables to save"):
        tf.train.Saver()


def test_errors_of_files_are_tensorflows(tmp_path):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, name="w")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver([v]).save(session, str(tmp_path / "m"))
        with pytest.raises(tf.errors.NotFoundError, match=r"Restoring from checkpoint failed.*\n\n.*Key w not found"):
            tf.train.Saver([w]).restore(session, path)
        with pytest.raises(tf.errors.InvalidArgumentError, match="mismatch between the current graph and the graph"):
            tf.train.Saver({"v": w}).restore(session, path)
        with pytest.raises(ValueError, match="At least two variables have the same name: v"):
            tf.train.Saver([v, v])
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist, can't save"):
            tf.train.Saver([v]).save(session, str(tmp_path / "no" / "such" / "m"))
        with pytest.raises(TypeError, match="'sess' must be a Session"):
            tf.train.Saver([v]).save(None, path)


def test_savers_that_are_built_late_are_empty_or_keep_everything(tmp_path):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        empty = tf.train.Saver(allow_empty=True)
        assert empty.save(session, str(tmp_path / "none")) is None
        empty.restore(session, str(tmp_path / "none"))
        v = tf.Variable(1.0, name="v")
        session.run(v.initializer)
        with pytest.raises(ValueError, match="build cannot be deferred"):
            tf.train.Saver([v], defer_build=True)
        late = tf.train.Saver(defer_build=True)
        with pytest.raises(RuntimeError, match=r"build.* should be called before save"):
            late.save(session, str(tmp_path / "late"))
        late.build()
        path = late.save(session, str(tmp_path / "late"))
        assert tf.train.NewCheckpointReader(path).debug_string() == b"v (DT_FLOAT) []\n"
        for count in (None, 0):
            saver = tf.train.Saver(max_to_keep=count)
            paths = [saver.save(session, str(tmp_path / "all"), step) for step in range(7)]
            assert saver.last_checkpoints == [] and all(map(tf.train.checkpoint_exists, paths))
            assert tf.train.latest_checkpoint(str(tmp_path)) == paths[-1]
    with tapeflow.Graph().as_default(), tf.Session() as session:
        saver = tf.train.Saver([tf.Variable(1, name="v")])
        with pytest.raises(tapeflow.errors.InvalidArgumentError, match="int32 does not equal original dtype float32"):
            saver.restore(session, path)
