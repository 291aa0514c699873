"""SavedModels of TensorFlow 1's graphs, as `Builder` and `simple_save` write them."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages

v1 = tf.compat.v1


def written(folder, asset):
    """A model for serving, and the same graph for training."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", initializer=np.full([2, 1], 3.0, np.float32))
        y = tf.matmul(x, w, name="y")
        session.run(w.initializer)
        builder = v1.saved_model.Builder(folder)
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        assert v1.saved_model.is_valid_signature(signature)
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["train"])
        builder.add_meta_graph_and_variables(
            session,
            [v1.saved_model.tag_constants.SERVING],
            {v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            assets_collection=[tf.constant(str(asset))],
            main_op=v1.tables_initializer(),
        )
        builder.add_meta_graph(["train"])
        with pytest.raises(AssertionError, match="already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        return builder.save()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")
    path = written(tmp_path / "model", tmp_path / "words.txt")
    assert path.decode().endswith("saved_model.pb")
    return tmp_path / "model"


def test_objects_come_of_the_signature(folder):
    assert v1.saved_model.contains_saved_model(str(folder))
    model = tf.saved_model.load(folder, tags=["serve"])
    np.testing.assert_array_equal(model.signatures["serving_default"](x=tf.ones([1, 2]))["y"], [[6.0]])
    assert (folder / "assets" / "words.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize("tag", ["serve", "train"])
def test_sessions_load_each_graph(folder, tag):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, [tag], str(folder))
        np.testing.assert_array_equal(session.run("y:0", {"x:0": np.ones([1, 2])}), [[6.0]])


def test_a_folder_with_files_is_refused(folder):
    with pytest.raises(AssertionError, match="isn't empty"):
        v1.saved_model.Builder(folder)


def test_a_saver_exports_its_own_variables(tmp_path):
    with tf.Graph().as_default():
        a, _ = v1.get_variable("a", [2]), v1.get_variable("b", [3])
        saver = v1.train.Saver([a])
        meta = saver.export_meta_graph(str(tmp_path / "graph.meta"), clear_devices=True)
    restored = next(node for node in meta.graph_def.node if node.op == "RestoreV2")
    assert len(restored.attr["dtypes"].list.type) == 1
    assert (tmp_path / "graph.meta").read_bytes() == meta.SerializeToString(deterministic=True)


def test_signatures_of_other_kinds():
    with tf.Graph().as_default():
        examples, scores = v1.placeholder(tf.string, [None]), v1.placeholder(tf.float32, [None, 2])
        for made in (
            v1.saved_model.classification_signature_def(examples, None, scores),
            v1.saved_model.regression_signature_def(examples, scores),
        ):
            assert v1.saved_model.is_valid_signature(made)
        with pytest.raises(ValueError, match="must be of type string"):
            v1.saved_model.regression_signature_def(scores, scores)


def test_outputs_of_loops_keep_their_names(tmp_path):
    """A signature names tensors as the graph in the file does."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [3], "x")
        factor = v1.placeholder_with_default(2.0, [], "factor")
        _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + x), (tf.constant(0), x))
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y, "z": y * factor})
    content = (tmp_path / "m" / "saved_model.pb").read_bytes()
    (meta,) = messages.SavedModel.FromString(content).meta_graphs
    node_by_name = {node.name: node for node in meta.graph_def.node}
    name, _, place = meta.signature_def["serving_default"].outputs["y"].name.partition(":")
    assert node_by_name[name].attr["T"].list.type[int(place)] == tf.float32.as_datatype_enum
    assert node_by_name["factor"].attr["dtype"].type == tf.float32.as_datatype_enum
    loaded = tf.saved_model.load(tmp_path / "m").signatures["serving_default"]
    found = loaded(x=tf.ones([3]))
    assert found["y"].numpy().tolist() == [4.0] * 3 and found["z"].numpy().tolist() == [8.0] * 3


def test_tables_are_filled_by_their_initializers(tmp_path):
    """Written graphs fill their tables when the initializer runs, as TensorFlow's loader does."""
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.string, [None], name="x")
        name = tf.constant(str(tmp_path / "words.txt"))
        lines = tf.lookup.TextFileInitializer(name, tf.string, line, tf.int64, number)
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [7, 8])
        table = v1.lookup.StaticHashTable(pairs, -1)
        vocabulary = v1.lookup.StaticVocabularyTable(lines, 2)
        assert v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS) == [table.initializer, vocabulary.initializer]
        main, found = v1.tables_initializer(), {"y": table.lookup(x), "z": vocabulary.lookup(x)}
        session.run(main)
        builder = v1.saved_model.Builder(tmp_path / "model")
        signatures = {"serving_default": v1.saved_model.predict_signature_def({"x": x}, found)}
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=main)
        builder.save()
        node_by_name = {node.name: node for node in graph.as_graph_def().node}
    waits = [text.removeprefix("^") for text in node_by_name[main.name].input]
    filling = [text for name in waits for text in node_by_name[name].input if text.startswith("^")]
    assert [node_by_name[text[1:]].op for text in filling] == ["LookupTableImportV2"] * 2
    found = tf.saved_model.load(tmp_path / "model").signatures["serving_default"](x=tf.constant(["b", "c", "a"]))
    np.testing.assert_array_equal(found["y"], [8, -1, 7])
    np.testing.assert_array_equal(found["z"], [1, 2, 0])


def test_a_name_that_a_session_feeds_fills_no_table():
    with tf.Graph().as_default(), pytest.raises(tf.errors.UnimplementedError, match="must be constant in a graph"):
        tf.lookup.TextFileInitializer(v1.placeholder(tf.string, []), tf.string, -2, tf.int64, -1)


def test_a_loaded_graph_knows_which_variables_have_values():
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=np.ones(2, np.float32))
        tf.identity(w.is_initialized(), name="ready")
        definition = v1.train.export_meta_graph()
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(definition)
        assert not session.run("ready:0")
        session.run(v1.global_variables_initializer())
        assert session.run("ready:0")


def test_signatures_with_sparse_tensors(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.sparse_placeholder(tf.float32, [None, 2])
        total = tf.sparse.sparse_dense_matmul(x, np.ones([2, 2], np.float32))
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"total": total, "twice": x * 2.0})
    signature = tf.saved_model.load(tmp_path / "m").signatures["serving_default"]
    given = tf.sparse.from_dense([[1.0, 0.0], [0.0, 3.0]])
    found = signature(x_indices=given.indices, x_values=given.values, x_dense_shape=given.dense_shape)
    np.testing.assert_array_equal(found["total"], [[1, 1], [3, 3]])
    assert isinstance(found["twice"], tf.SparseTensor)
    np.testing.assert_array_equal(tf.sparse.to_dense(found["twice"]), [[2, 0], [0, 6]])


def test_tables_of_constants_in_a_graph_are_saved_and_saved_again(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, [None])
        pairs = v1.lookup.KeyValueTensorInitializer(v1.constant(["a", "b"]), v1.constant([1, 2], tf.int64))
        y = v1.lookup.StaticHashTable(pairs, -1).lookup(x)
        session.run(v1.tables_initializer())
        builder = v1.saved_model.Builder(str(tmp_path / "m"))
        signature = {"serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": y})}
        builder.add_meta_graph_and_variables(session, ["serve"], signature, main_op=v1.tables_initializer())
        builder.save()
    loaded = tf.saved_model.load(tmp_path / "m")
    tf.saved_model.save(loaded, tmp_path / "again", dict(loaded.signatures))
    for folder in ("m", "again"):
        found = tf.saved_model.load(tmp_path / folder).signatures["serving_default"](x=tf.constant(["b", "z"]))
        assert found["y"].numpy().tolist() == [2, -1]


def test_assets_of_one_name(tmp_path):
    """Files with the same contents are kept once, others get a number."""
    contents = {"a": "one", "b": "two", "c": "one"}
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for key, text in contents.items():
            (tmp_path / key).mkdir()
            (tmp_path / key / "words.txt").write_text(text)
            path = tf.constant(str(tmp_path / key / "words.txt"), name=key)
            tf.compat.v1.add_to_collection("asset_filepaths", path)
        builder = tf.compat.v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session, ["a"], assets_collection=tf.compat.v1.get_collection("asset_filepaths")
        )
        builder.save()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["a"], folder)
    names = {entry.tensor_info.name: entry.filename for entry in meta.asset_file_def}
    assert names == {"a:0": "words.txt", "b:0": "words.txt_1", "c:0": "words.txt"}
    assert (tmp_path / "model" / "assets" / "words.txt_1").read_text() == "two"


def test_signatures_that_are_refused(tmp_path):
    info = tf.compat.v1.saved_model.build_tensor_info
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = info(tf.constant(1.0, name="x"))
        signature = tf.compat.v1.saved_model.build_signature_def({"x": x}, {"x": x})
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "model"))
        with pytest.raises(KeyError, match="reserved"):
            builder.add_meta_graph_and_variables(session, ["a"], {"__saved_model_train_op": signature})
        signature.inputs["x"].dtype = 0
        with pytest.raises(AssertionError, match="dtype"):
            builder.add_meta_graph_and_variables(session, ["a"], {"s": signature})
