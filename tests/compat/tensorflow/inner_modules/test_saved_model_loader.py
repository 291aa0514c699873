"""The inner reader and writer of SavedModels of TensorFlow 1."""

import importlib

import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def inner(path):
    return importlib.import_module(f"tensorflow.python.saved_model.{path}")


@pytest.fixture
def folder(tmp_path):
    """A model whose initialisation makes w seven, and whose step of training adds to v."""
    place = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        v, w = v1.Variable(5.0, name="v"), v1.Variable(11.0, name="w")
        signature = v1.saved_model.predict_signature_def({"v": v}, {"sum": tf.add(v, w, name="sum")})
        first = tf.group(v1.assign(w, 7.0), name="first")
        step = tf.group(v1.assign_add(v, 1.0), name="step")
        session.run(v1.global_variables_initializer())
        builder = inner("builder_impl")._SavedModelBuilder(place)
        builder.add_meta_graph_and_variables(session, ["a"], {"s": signature}, init_op=first, train_op=step)
        builder.save()
    return place


@pytest.mark.parametrize("scope", [None, "below"])
def test_the_steps_of_loading(folder, scope):
    loader = inner("loader_impl").SavedModelLoader(folder)
    name = f"{scope}/sum:0" if scope else "sum:0"
    graph = tf.Graph()
    saver, _ = loader.load_graph(graph, ["a"], import_scope=scope)
    with v1.Session(graph=graph) as session:
        loader.restore_variables(session, saver)
        assert session.run(name) == 16.0
        loader.run_init_ops(session, ["a"], import_scope=scope)
        assert session.run(name) == 12.0
        with graph.as_default():
            session.run(inner("loader_impl").get_train_op(loader.get_meta_graph_def_from_tags(["a"]), scope))
        assert session.run(name) == 13.0


def test_all_at_once(folder):
    loader = inner("loader_impl").SavedModelLoader(folder)
    with v1.Session(graph=tf.Graph()) as session:
        assert "s" in loader.load(session, ["a"]).signature_def
        assert session.run("sum:0") == 12.0


def test_what_is_not_there(folder):
    loader = inner("loader_impl").SavedModelLoader(folder)
    with pytest.raises(RuntimeError, match="could not be found in SavedModel"):
        loader.get_meta_graph_def_from_tags(["b"])
    graph = tf.Graph()
    loader.load_graph(graph, ["a"], import_scope="below")
    with v1.Session(graph=graph) as session:
        with pytest.raises(tf.errors.NotFoundError, match="not in the graph"):
            loader.run_init_ops(session, ["a"])
        with pytest.raises(ValueError, match="a saver is required"):
            loader.restore_variables(session, None)
