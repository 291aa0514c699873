"""Meta graphs: a graph with its collections and variables goes into a file and comes back."""

import pytest

import tapeflow
from tapeflow._src.io.protos import messages

tf = tapeflow.compat.v1


def model():
    x = tf.placeholder(tapeflow.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=[[1.0, 2.0], [3.0, 4.0]])
    b = tf.get_variable("b", initializer=[1.0, 2.0], trainable=False)
    tf.add_to_collection("outputs", tapeflow.tanh(tapeflow.matmul(x, w) + b, name="y"))


@pytest.mark.parametrize("as_text", [False, True])
def test_a_graph_comes_back_with_its_variables(tmp_path, as_text):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        model()
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        expected = session.run("y:0", {"x:0": [[1.0, 0.1]]})
        tf.train.export_meta_graph(tmp_path / "graph", as_text=as_text)
    for file in (f"{path}.meta", str(tmp_path / "graph")):
        with tapeflow.Graph().as_default(), tf.Session() as session:
            tf.train.import_meta_graph(file).restore(session, path)
            assert [v.name for v in tf.trainable_variables()] == ["w:0"]
            assert [v.name for v in tf.global_variables()] == ["w:0", "b:0"]
            (y,) = tf.get_collection("outputs")
            assert session.run(y, {"x:0": [[1.0, 0.1]]}).tolist() == expected.tolist()


def test_the_message_has_what_tensorflow_needs_to_restore():
    with tapeflow.Graph().as_default():
        model()
        message = tf.train.export_meta_graph()
    names = {node.name for node in message.graph_def.node}
    assert message.saver_def.restore_op_name in names
    assert message.saver_def.filename_tensor_name.removesuffix(":0") in names
    saved = messages.VariableDef.FromString(message.collection_def["variables"].bytes_list.value[0])
    assert saved.variable_name == "w:0" and saved.initializer_name in names
    assert saved.snapshot_name.removesuffix(":0") in names


def test_what_is_no_meta_graph_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"\xff\xff no message")
    with pytest.raises(tapeflow.errors.DataLossError, match="no MetaGraphDef"):
        tf.train.import_meta_graph(tmp_path / "file")
    with pytest.raises(OSError, match="does not exist"):
        tf.train.import_meta_graph(tmp_path / "absent")


def test_a_graph_comes_into_another_one_with_other_inputs(tmp_path):
    with tapeflow.Graph().as_default(), tf.Session() as session, tapeflow.device("/device:CPU:0"):
        model()
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        expected = session.run("y:0", {"x:0": [[1.0, 0.1]]})
    graph = tapeflow.Graph()
    with graph.as_default():
        x = tapeflow.constant([[1.0, 0.1]])
    with tf.Session(graph=graph) as session:
        with graph.as_default(), tapeflow.name_scope("a"):
            saver = tf.train.import_meta_graph(f"{path}.meta", True, "b", graph=graph, input_map={"x:0": x})
        saver.restore(session, path)
        assert session.run("a/b/y:0").tolist() == expected.tolist()
        assert {op.device for op in graph.get_operations() if op.name.startswith("a/b/")} == {""}
        (y,) = graph.get_collection("outputs")
        assert y.name == "a/b/y:0"
    with tapeflow.Graph().as_default() as graph:
        tf.train.import_meta_graph(f"{path}.meta")
        assert graph.get_operation_by_name("y").device == "/device:CPU:0"
