"""First values that come from checkpoints, lists of checkpoints, and graphs in files."""

import pytest

import tapeflow
import tapeflow.compat.v1 as tf


@pytest.fixture
def saved(tmp_path):
    """A checkpoint with `bert/a` and `bert/b`."""
    with tapeflow.Graph().as_default(), tf.Session() as session, tf.variable_scope("bert"):
        tf.get_variable("a", initializer=[1.0, 2.0])
        tf.get_variable("b", initializer=3.0)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "m"), global_step=7)


def test_initializers_give_the_values_of_a_checkpoint(saved, tmp_path):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("model"):
            a, b = tf.get_variable("a", [2]), tf.get_variable("b", [])
        c, d, e = (tf.get_variable(name, [2]) for name in "cde")
        tf.train.init_from_checkpoint(saved, {"bert/": "model/"})
        tf.train.init_from_checkpoint(str(tmp_path), {"bert/a": c})
        tf.train.init_from_checkpoint(saved, [("bert/a", "d")])
        session.run(tf.global_variables_initializer())
        assert [value.tolist() for value in session.run([a, b, c, d])] == [[1.0, 2.0], 3.0, [1.0, 2.0], [1.0, 2.0]]
        assert session.run(e).tolist() != [1.0, 2.0]
        with pytest.raises(ValueError, match="doesn't match with shape of tensor bert/a"):
            tf.train.init_from_checkpoint(saved, {"bert/a": b})
        with pytest.raises(ValueError, match="Tensor zz is not found in"):
            tf.train.init_from_checkpoint(saved, {"zz": c})
        with pytest.raises(ValueError, match="should map to scope only"):
            tf.train.init_from_checkpoint(saved, {"bert/": "nothing"})


def test_the_list_of_checkpoints(saved, tmp_path):
    other = str(tmp_path / "other")
    tf.train.update_checkpoint_state(tmp_path, other, [saved])
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == other and state.all_model_checkpoint_paths == [saved, other]
    assert tf.train.get_checkpoint_mtimes([saved])[0] > 0
    tf.train.remove_checkpoint(saved)
    assert not tf.train.checkpoint_exists(saved)


@pytest.mark.parametrize("as_text", [True, False])
def test_graphs_are_written(tmp_path, as_text):
    with tapeflow.Graph().as_default() as graph, tf.Session() as session:
        tf.constant(1.0, name="first")
        path = tf.train.write_graph(session.graph_def, str(tmp_path), "graph.pb", as_text)
        assert graph.num_operations == 1 and graph.get_name_scope() == ""
    with open(path, "rb") as file:
        contents = file.read()
    if as_text:
        assert b'name: "first"' in contents
    else:
        assert [node.name for node in tf.GraphDef.FromString(contents).node] == ["first"]
