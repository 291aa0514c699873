"""SavedModels of TensorFlow 1: by `tf.saved_model.load`, and in a session."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1
FILE = Path(__file__).parent / "tensorflow_files" / "v1.zip"


@pytest.fixture
def model(tmp_path):
    with zipfile.ZipFile(FILE) as file:
        file.extractall(tmp_path)
    with np.load(tmp_path / "expected.npz") as arrays:
        return tmp_path, dict(arrays)


def test_signatures_are_functions_that_can_be_trained(model):
    folder, expected = model
    loaded = tf.saved_model.load(folder)
    with tf.GradientTape() as tape:
        y = loaded.signatures["serving_default"](x=tf.constant(expected["x"]))["y"]
    np.testing.assert_array_equal(y, expected["y"])
    assert [v.name for v in loaded.variables] == ["w:0", "b:0"]
    assert [v.name for v in loaded.trainable_variables] == ["w:0"]
    np.testing.assert_array_equal(tape.gradient(y, loaded.trainable_variables)[0], [[1.0], [2.0]])


def test_other_tensors_of_the_graph(model):
    folder, expected = model
    function = tf.saved_model.load(folder).prune("x:0", {"sum": "add:0"})
    np.testing.assert_array_equal(function(tf.constant(expected["x"]))["sum"], [[5.5], [-2.5]])


def test_in_a_session(model):
    folder, expected = model
    with tf.Graph().as_default(), v1.Session() as session:
        meta_graph = v1.saved_model.load(session, ["serve"], str(folder))
        signature = meta_graph.signature_def["serving_default"]
        found = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: expected["x"]})
        np.testing.assert_array_equal(found, expected["y"])
        assert sorted(v.name for v in v1.global_variables()) == ["b:0", "w:0"]
        assert [v.name for v in v1.trainable_variables()] == ["w:0"]
    with tf.Graph().as_default(), v1.Session() as session, pytest.raises(RuntimeError, match="could not be found"):
        v1.saved_model.load(session, ["train"], str(folder))


def run_in_session(folder, inputs):
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        feeds = {signature.inputs[name].name: value for name, value in inputs.items()}
        return session.run({name: info.name for name, info in signature.outputs.items()}, feeds)


@pytest.mark.parametrize("name", ["mlp", "recurrent"])
def test_models_of_tensorflow_2_in_a_session(name, tmp_path):
    """Their variables are kept under paths from object to object, and restored by a function."""
    with zipfile.ZipFile(FILE.with_name(f"{name}.zip")) as file:
        file.extractall(tmp_path)
    (folder,) = (path.parent for path in tmp_path.rglob("saved_model.pb"))
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    random, inputs = np.random.default_rng(0), {}
    for key, spec in signature.structured_input_signature[1].items():
        inputs[key] = random.normal(size=[2 if d is None else d for d in spec.shape]).astype(spec.dtype.as_numpy_dtype)
    expected = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    found = run_in_session(folder, inputs)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-6)


def test_own_models_in_a_session(tmp_path):
    module = tf.Module()
    module.a, module.b = tf.Variable([1.0]), tf.Variable([10.0])  # both are named "Variable"
    module.f = tf.function(lambda x: module.b * x + module.a, input_signature=[tf.TensorSpec([], name="x")])
    tf.saved_model.save(module, tmp_path)
    assert run_in_session(tmp_path, {"x": 2.0})["output_0"] == [21.0]


def test_variables_loaded_in_a_graph_belong_to_its_sessions(tmp_path):
    module = tf.Module()
    module.v = tf.Variable([1.0, 2.0])
    module.double = tf.function(lambda: 2.0 * module.v, input_signature=[])
    tf.saved_model.save(module, str(tmp_path))
    with tf.Graph().as_default():
        loaded = tf.saved_model.load(str(tmp_path))
        assert tf.compat.v1.global_variables() == [loaded.v]
        doubled, change = loaded.double(), loaded.v.assign_add([1.0, 1.0])
        for _ in range(2):
            with tf.compat.v1.Session() as session:
                with pytest.raises(tf.errors.FailedPreconditionError):
                    session.run(doubled)
                session.run(loaded.v.initializer)
                session.run(change)
                np.testing.assert_array_equal(session.run(doubled), [4.0, 6.0])


def test_tables_from_text_files_in_a_session(tmp_path):
    """The path of an asset is a constant of the graph."""
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    kinds = {"key_dtype": tf.string, "value_dtype": tf.int64}
    graph = v1.GraphDef()
    graph.node.add(name="path", op="Const").attr["dtype"].type = tf.string.as_datatype_enum
    graph.node[0].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(words)))
    table = graph.node.add(name="table", op="HashTableV2")
    fill = graph.node.add(name="fill", op="InitializeTableFromTextFileV2", input=["table", "path"])
    fill.attr["key_index"].i, fill.attr["value_index"].i, fill.attr["vocab_size"].i = -2, -1, -1
    fill.attr["delimiter"].s = b"\t"
    for key, kind in kinds.items():
        table.attr[key].type = kind.as_datatype_enum
    graph.node.add(name="size", op="LookupTableSizeV2", input=["table"])
    with tf.Graph().as_default(), v1.Session() as session:
        tf.graph_util.import_graph_def(graph, name="")
        assert session.run("size:0") == 2


def test_every_output_of_a_signature_by_its_name_in_a_session(tmp_path):
    four = tf.constant(4.0)

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32), tf.TensorSpec([], tf.float32, "by")])
    def two(rows, by=four):
        return {"a": rows, "b": by * 2.0}

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=two)
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(tmp_path)).signature_def["serving_default"]
        assert list(signature.defaults) == ["by"] and signature.defaults["by"].float_val[0] == 4.0
        parts = signature.outputs["a"].composite_tensor.components
        names = [*(part.name for part in parts), signature.outputs["b"].name]
        given = {"rows": [1.0, 2.0, 3.0], "rows_1": [0, 2, 3], "by": 5.0}
        found = session.run(names, {signature.inputs[name].name: value for name, value in given.items()})
    np.testing.assert_array_equal(found[0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found[1], [0, 2, 3])
    assert found[2] == 10.0


def test_variables_of_a_model_that_a_graph_loads_are_not_collected_for_training(tmp_path):
    model = tf.Module()
    model.v = tf.Variable(2.0)
    tf.saved_model.save(model, str(tmp_path))
    with tf.Graph().as_default() as graph:
        loaded = tf.saved_model.load(str(tmp_path))
        assert loaded.v.trainable
        assert [len(graph.get_collection(key)) for key in ("variables", "trainable_variables")] == [1, 0]


def test_the_graph_and_other_values_of_a_loaded_model(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [], name="x")
        w = v1.get_variable("w", initializer=2.0)
        y = tf.multiply(x, w, name="y")
        session.run(w.initializer)
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
        w.load(5.0, session)
        other = v1.train.Saver().save(session, str(tmp_path / "other"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    named = loaded.prune("x:0", "y:0")
    elements = loaded.graph.as_graph_element
    of_tensors = loaded.prune(elements("x:0"), {"y": elements("y:0")})
    assert named(tf.constant(3.0)).numpy() == of_tensors(tf.constant(3.0))["y"].numpy() == 6.0
    loaded.restore(other)
    assert loaded.variables[0].numpy() == 5.0
    assert named(tf.constant(3.0)).numpy() == loaded.signatures["serving_default"](x=3.0)["y"].numpy() == 15.0
