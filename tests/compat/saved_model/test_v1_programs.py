"""Programs of TensorFlow 1 that TensorFlow 2.21 wrote: loops and conditions, functions that were frozen, training."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages

v1 = tf.compat.v1
FILE = Path(__file__).parent / "tensorflow_files" / "v1_programs.zip"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("v1_programs")
    with zipfile.ZipFile(FILE) as file:
        file.extractall(folder)
    with np.load(folder / "expected.npz") as arrays:
        return folder, dict(arrays)


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def definition(folder):
    return v1.GraphDef.FromString((folder / "conditions.pb").read_bytes())


@pytest.mark.parametrize("n", [0, 2, 5])
def test_a_condition_after_a_loop_over_a_list_of_a_length_that_is_fed(files, n):
    folder, expected = files
    with tf.Graph().as_default() as graph, v1.Session() as session:
        tf.import_graph_def(definition(folder), name="")
        y, rows = session.run(["y:0", "rows:0"], {"x:0": expected["x"], "n:0": n})
        close(y, expected[f"y{n}"])
        close(rows, expected[f"rows{n}"])
        close(session.run("y:0", {"x:0": expected["x"]}), expected["default"])
        assert graph.get_operation_by_name("n").type == "PlaceholderWithDefault"


def test_a_frozen_function_with_nodes_of_loops(files):
    folder, expected = files
    model = tf.saved_model.load(folder / "frozen")
    for found in (model.f(tf.constant(expected["x"])), model.f(x=tf.constant(expected["x"]))):
        close(found[0], expected["frozen_a"])
        close(found[1], expected["frozen_b"])
    by_name = model.signatures["serving_default"](tf.constant(expected["x"]))
    close(by_name["output_0"], expected["frozen_a"])
    x = tf.constant(expected["x"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(model.f(x)[0])
    assert tape.gradient(y, x).shape == [2, 3]


def test_training_goes_on_with_a_partitioned_variable(files, tmp_path):
    folder, expected = files
    checkpoint = str(folder / "meta" / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(f"{checkpoint}.meta")
        saver.restore(session, checkpoint)
        parts = session.run(v1.trainable_variables())
        assert [part.shape for part in parts] == [(1, 2)] * 3
        path = saver.save(session, str(tmp_path / "model"))
        (train,) = v1.get_collection("train")
        losses = [session.run(["loss:0", train], {"x:0": expected["x"]})[0] for _ in range(3)]
        close(losses, expected["losses"])
    assert dict(tf.train.list_variables(path))["net/w"] == [3, 2]
    np.testing.assert_array_equal(tf.train.load_checkpoint(path).get_tensor("net/w"), np.concatenate(parts))


def test_a_session_loads_the_graphs_nodes_that_no_signature_names(files, tmp_path):
    """Also where the graph has loops."""
    folder, expected = files
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(definition(folder), name="")
        v1.Variable(1.0, name="v")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(tmp_path / "model")
        builder.add_meta_graph_and_variables(session, ["train"], {})
        builder.save()
    model = messages.SavedModel.FromString((tmp_path / "model" / "saved_model.pb").read_bytes())
    model.meta_graphs[0].graph_def.CopyFrom(definition(folder))  # as TensorFlow writes it
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    with tf.Graph().as_default(), v1.Session() as session:
        meta_graph = v1.saved_model.load(session, ["train"], str(tmp_path / "model"))
        close(session.run("y:0", {"x:0": expected["x"]}), expected["default"])
    assert set(meta_graph.collection_def) == {"trainable_variables", "variables"}


def test_sparse_inputs_and_tables_of_a_graph(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
        table = tf.lookup.StaticHashTable(pairs, -1)
        numbers = tf.lookup.StaticVocabularyTable(pairs, 2)
        words = v1.placeholder(tf.string, [None], name="words")
        found = {"n": table.lookup(words), "m": numbers.lookup(words)}
        sparse = v1.sparse_placeholder(tf.float32, [None, 3], name="sparse")
        w = v1.get_variable("w", initializer=np.ones([3, 2], np.float32))
        product = v1.sparse_tensor_dense_matmul(sparse, w)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        signatures = {
            "words": v1.saved_model.predict_signature_def({"words": words}, found),
            "sparse": v1.saved_model.predict_signature_def({"x": sparse}, {"y": product}),
        }
        builder = v1.saved_model.Builder(tmp_path / "model")
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=v1.tables_initializer())
        builder.save()
    model = messages.SavedModel.FromString((tmp_path / "model" / "saved_model.pb").read_bytes())
    (graph,) = model.meta_graphs
    filled = [node.input[0] for node in graph.graph_def.node if node.op == "LookupTableImportV2"]
    assert sorted(filled) == sorted(node.name for node in graph.graph_def.node if node.op == "HashTableV2")
    assert set(graph.signature_def) == {"words", "sparse"}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        meta_graph = v1.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        signature = meta_graph.signature_def["words"]
        fetched = {name: info.name for name, info in signature.outputs.items()}
        assert session.run(fetched, {"words:0": ["b", "q"]})["n"].tolist() == [1, -1]
        signature = meta_graph.signature_def["sparse"]
        x = v1.saved_model.get_tensor_from_tensor_info(signature.inputs["x"], graph)
        value = v1.SparseTensorValue([[0, 1]], [3.0], [2, 3])
        y = session.run(signature.outputs["y"].name, {x: value})
        np.testing.assert_array_equal(y, [[3.0, 3.0], [0.0, 0.0]])


def test_a_model_as_the_server_of_tensorflow_shows_it(tmp_path):
    """Examples of unknown rank, a variable that the checkpoint lacks, and a signature with a wrong dtype."""
    info = v1.saved_model.build_tensor_info
    with tf.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, name="tf_example")
        defaults = [tf.constant([], tf.float32)]
        *_, (x,) = tf.raw_ops.ParseExample(
            serialized=examples, names=[], sparse_keys=[], dense_keys=["x"], dense_defaults=defaults, sparse_types=[],
            dense_shapes=[[1]],
        )  # fmt: skip
        half = v1.get_variable("half", initializer=np.float32(0.5))
        path = v1.Variable("before", name="filename_tensor", trainable=False)
        y = tf.add(x * half, 2.0, name="y")
        session.run(v1.global_variables_initializer())
        wrong = info(examples)
        wrong.dtype = tf.float32.as_datatype_enum
        signatures = {
            "serving_default": v1.saved_model.build_signature_def({"inputs": wrong}, {"y": info(y)}, "predict"),
            "path": v1.saved_model.build_signature_def({}, {"path": info(path.read_value())}, "predict"),
        }
        builder = v1.saved_model.Builder(tmp_path / "model")
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, main_op=v1.assign(path, "after").op, saver=v1.train.Saver([half])
        )
        builder.save()
    model = tf.saved_model.load(tmp_path / "model")
    feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[3.0]))}
    data = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    serve = model.signatures["serving_default"]
    assert serve.structured_input_signature[1]["inputs"].dtype == tf.string
    np.testing.assert_array_equal(serve(tf.constant([data, data]))["y"], [[3.5], [3.5]])
    assert sorted(v.name for v in model.variables) == ["filename_tensor:0", "half:0"]
    assert model.signatures["path"]()["path"].numpy() == b"after"


def test_examples_of_unknown_rank():
    features = {"n": [1, 2], "x": [3.0]}
    made = tf.train.Example()
    made.features.feature["n"].int64_list.value.extend(features["n"])
    made.features.feature["x"].float_list.value.extend(features["x"])
    data = made.SerializeToString()

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)])
    def parse(serialized):
        (indices,), (values,), _, (dense,), *_ = tf.raw_ops.ParseExampleV2(
            serialized=serialized, names=[], sparse_keys=["n"], dense_keys=["x"], ragged_keys=[], num_sparse=1,
            dense_defaults=[tf.constant([], tf.float32)], sparse_types=[tf.int64], ragged_value_types=[],
            ragged_split_types=[], dense_shapes=[[]],
        )  # fmt: skip
        assert dense.shape.rank is None
        return indices, values, dense

    for serialized, place in ((data, [[0], [1]]), ([data], [[0, 0], [0, 1]])):
        indices, n, x = parse(tf.constant(serialized))
        assert indices.numpy().tolist() == place and n.numpy().tolist() == [1, 2]
        assert x.numpy().tolist() == (3.0 if serialized is data else [3.0])
