"""SavedModels that TensorFlow 2.21 wrote: the same numbers, gradients and second derivatives, and training."""

import zipfile
from inspect import FullArgSpec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.saved_model.functions import parameters_of
from tapeflow._src.function.spec_messages import encode
from tapeflow._src.io.protos import messages

FILES = Path(__file__).parent / "tensorflow_files"


def unpacked(name, folder):
    """The folder of a recorded model, and the values that TensorFlow gave."""
    with zipfile.ZipFile(FILES / f"{name}.zip") as file:
        file.extractall(folder)
    with np.load(folder / "expected.npz") as arrays:
        return folder, dict(arrays)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder, expected = unpacked("parts", tmp_path_factory.mktemp("parts"))
    return tf.saved_model.load(folder), expected


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


CALLS = {
    "loop": lambda m, x: m.loop(x, tf.constant(3)),
    "branch": lambda m, x: m.branch(x),
    "case": lambda m, x: m.case(tf.constant(2), x),
    "lists": lambda m, x: m.lists(x),
    "nested": lambda m, x: m.nested(x),
    "custom": lambda m, x: m.custom(x),
    "gradient": lambda m, x: m.gradient(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_give_tensorflows_values_and_derivatives(parts, name):
    module, expected = parts
    x = tf.constant(expected["x"])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = CALLS[name](module, x)
            total = tf.reduce_sum(y)
        dx, dv = tape.gradient(total, [x, module.v], unconnected_gradients="zero")
        first = tf.reduce_sum(dx)
    close(y, expected[name])
    close(dx, expected[f"{name}_dx"])
    close(dv, expected[f"{name}_dv"])
    close(outer.gradient(first, x, unconnected_gradients="zero"), expected[f"{name}_dxx"])


def test_a_loaded_function_can_be_called_in_another_function(parts):
    module, expected = parts
    x = tf.constant(expected["x"])

    @tf.function
    def twice(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(module.loop(x, tf.constant(3)))
        return tape.gradient(y, x)

    close(twice(x), expected["loop_dx"])


def test_tables_assets_and_effects(parts):
    module, _ = parts
    table, vocabulary, changing = module.look(tf.constant(["a", "y", "k"]))
    assert table.numpy().tolist() == [1, -1, -1]
    assert vocabulary.numpy().tolist()[1] == 1
    assert changing.numpy().tolist() == [0.0, 0.0, 5.0]
    assert module.read() == b"x\ny\nz\n"
    before = int(module.step)
    assert module.bump() is None
    assert int(module.step) == before + 1
    assert module.rows(tf.ragged.constant([[1.0, 2.0], [3.0]])).numpy().tolist() == [3.0, 3.0]
    assert module.captured(tf.zeros([2])).numpy().tolist() == [10.0, 20.0]
    assert module.mapped(tf.ones([3, 2])).numpy().tolist() == [3.0, 3.0, 3.0]


def test_objects_come_back_as_tensorflow_gives_them(parts):
    module, expected = parts
    assert [v.shape.as_list() for v in module.trainable_variables] == [[2], [], []]
    assert not module.step.trainable
    assert float(module.parts[0]) == 3.0 and float(module.parts[1]["a"]) == 4.0
    assert sorted(module.signatures) == ["gradient", "serving_default"]
    signature = module.signatures["serving_default"]
    assert signature(keys=tf.constant(["b"]))["output_0"].numpy().tolist() == [2]
    assert signature.structured_outputs.keys() == {"output_0", "output_1", "output_2"}
    x = tf.constant(expected["x"])
    close(module.signatures["gradient"](x=x)["output_0"], expected["gradient"])
    close(module.frozen(x, tf.constant(3)), expected["loop"])
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = module.absent


def test_a_call_finds_its_trace_or_is_refused(parts):
    module, _ = parts
    x = tf.constant([1.0, 2.0])
    both = {"a": x, "b": -x}
    assert module.structured(both)["y"].numpy().tolist() == [2.0, 4.0]
    assert module.structured(both, False)["y"].numpy().tolist() == [-1.0, -2.0]
    found = module.structured(both, scale=3.0)
    assert found["z"][1][0].numpy().tolist() == [4.0, 7.0]
    assert module.structured({"a": tf.Variable([1.0, 2.0]), "b": np.zeros(2, np.float32)})["y"].numpy().tolist() == [
        2.0,
        4.0,
    ]
    assert len(module.structured.concrete_functions) == 3
    with pytest.raises(
        ValueError, match="Could not find matching concrete function to call loaded from the SavedModel"
    ):
        module.structured(both, scale=4.0)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        module.branch(tf.constant([1, 2]))


@pytest.mark.parametrize("name", ["mlp", "cnn", "recurrent", "transformer", "text"])
def test_keras_models_give_tensorflows_outputs_and_gradients(name, tmp_path):
    folder, expected = unpacked(name, tmp_path)
    model = tf.saved_model.load(folder)
    x = tf.constant(expected["x"])
    with tf.GradientTape() as tape:
        y = model.serve(x)
        loss = tf.reduce_sum(y * y)
    close(y, expected["y"])
    gradients = tape.gradient(loss, list(model.trainable_variables))
    assert len(gradients) == sum(key.startswith("gradient") for key in expected)
    for number, gradient in enumerate(gradients):
        close(tf.convert_to_tensor(gradient), expected[f"gradient_{number}"])


def test_a_loaded_model_can_be_trained(tmp_path):
    folder, expected = unpacked("mlp", tmp_path)
    model = tf.saved_model.load(folder)
    x, labels = tf.constant(expected["x"]), tf.constant([0, 1, 2])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = -tf.reduce_sum(tf.math.log(tf.gather(model.serve(x), labels, batch_dims=1)))
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, list(model.trainable_variables))):
            variable.assign_sub(0.1 * gradient)
        return loss

    losses = [float(step()) for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]


def rewritten(folder, change):
    """Changes the message of a model."""
    path = folder / "saved_model.pb"
    message = messages.SavedModel.FromString(path.read_bytes())
    change(message.meta_graphs[0])
    path.write_bytes(message.SerializeToString())


def test_an_operation_that_is_missing_is_named_before_anything_runs(tmp_path):
    folder, _ = unpacked("mlp", tmp_path)

    def change(graph):
        functions = {f.signature.name: f for f in graph.graph_def.library.function}
        function = next(f for name, f in functions.items() if name.startswith("__inference___call__"))
        node = next(node for node in function.node_def if node.op == "Relu")
        node.op = "FancyRelu"

    rewritten(folder, change)
    with pytest.raises(tf.errors.UnimplementedError, match=r"node '.*[Rr]elu.*': Op type not registered 'FancyRelu'"):
        tf.saved_model.load(folder)


def test_assets_outside_of_the_folder_are_refused(tmp_path):
    folder, _ = unpacked("parts", tmp_path)

    def change(graph):
        graph.asset_file_def[0].filename = "../../secret"

    rewritten(folder, change)
    with pytest.raises(tf.errors.DataLossError, match="outside of the model's folder"):
        tf.saved_model.load(folder)


def test_tags_choose_a_graph(tmp_path):
    folder, _ = unpacked("mlp", tmp_path)
    assert tf.saved_model.load(folder, tags="serve").serve is not None
    with pytest.raises(RuntimeError, match="MetaGraphDef associated with tags 'train' could not be found"):
        tf.saved_model.load(folder, tags=["train"])
    assert tf.saved_model.contains_saved_model(folder)


def test_a_damaged_file_is_named(tmp_path):
    folder, _ = unpacked("mlp", tmp_path)
    path = folder / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(tf.errors.DataLossError, match=r"saved_model\.pb: no SavedModel"):
        tf.saved_model.load(folder)
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load(tmp_path / "absent")


@pytest.mark.parametrize(("file", "functions"), [("kinds", 10), ("inner", 4)])
@pytest.mark.parametrize("again", [False, True])
def test_operations_of_many_kinds_give_tensorflows_values(file, functions, again, tmp_path):
    folder, expected = unpacked(file, tmp_path)
    module = tf.saved_model.load(folder)
    if again:  # what was read is written
        if file == "inner":  # datasets and examples of sequences run Python
            del module.dataset, module.sequence
            expected = {key: value for key, value in expected.items() if key.startswith("of_")}
            functions = 2
        tf.saved_model.save(module, tmp_path / "again", signatures={})
        module = tf.saved_model.load(tmp_path / "again")
    names = sorted({key.partition("_y")[0] for key in expected if "_y" in key})
    assert len(names) == functions
    for name in names:
        count = sum(key.startswith(f"{name}_x") for key in expected)
        given = [expected[f"{name}_x{i}"] for i in range(count)]
        tensors = [tf.constant(x.tolist() if x.dtype.kind in "SU" else x) for x in given]
        with tf.GradientTape() as tape:
            tape.watch([x for x in tensors if x.dtype.is_floating])
            y = getattr(module, name)(*tensors)
        for number, found in enumerate(tf.nest.flatten(y, expand_composites=True)):
            wanted = expected[f"{name}_y{number}"]
            if found.dtype == tf.string:
                assert found.numpy().tolist() == wanted.astype("S").tolist(), name
            else:
                close(found, wanted)
        if f"{name}_dx" in expected:
            close(tape.gradient(y, tensors[0]), expected[f"{name}_dx"])


def test_loops_and_conditions_of_tensorflow_1(tmp_path):
    folder, expected = unpacked("frames", tmp_path)
    model = tf.saved_model.load(folder)
    x = tf.constant(expected["x"])
    for key in ("nested", "chosen", "rows"):
        with tf.GradientTape() as tape:
            y = model.signatures["serving_default"](x=x)[key]
            total = tf.reduce_sum(y)
        close(y, expected[f"y_{key}"])
        (dw,) = tape.gradient(total, model.trainable_variables, unconnected_gradients="zero")
        close(dw, expected[f"dw_{key}"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        names = {key: info.name for key, info in signature.outputs.items()}
        found = session.run(names, {signature.inputs["x"].name: expected["x"]})
    for key, y in found.items():
        close(y, expected[f"y_{key}"])


def test_partitioned_variables_are_joined(tmp_path):
    folder, expected = unpacked("partitioned", tmp_path)
    model = tf.saved_model.load(folder)
    close(model.signatures["serving_default"](x=tf.constant(expected["x"]))["y"], expected["y"])
    assert len(model.variables) == 5
    close(tf.train.load_checkpoint(str(folder / "variables" / "variables")).get_tensor("rows"), expected["rows"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        y = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: expected["x"]})
    close(y, expected["y"])


def test_loops_over_the_rows_of_ragged_and_sparse_tensors(tmp_path):
    folder, expected = unpacked("variants", tmp_path)
    module = tf.saved_model.load(folder)
    rows = tf.ragged.constant([[1.0, 2.0], [3.0], [], [4.0, 5.0, 6.0]])
    flat = rows.flat_values
    with tf.GradientTape() as tape:
        tape.watch(flat)
        sums = module.sums(rows.with_flat_values(flat))
    close(sums, expected["sums"])
    close(tape.gradient(sums, flat), 2 * flat)
    doubled = module.doubled(rows)
    close(doubled.flat_values, expected["doubled"])
    np.testing.assert_array_equal(doubled.row_splits, expected["doubled_splits"])
    sines = module.sines(tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0, 5.0, 6.0]]]))
    close(sines.flat_values, expected["sines"])
    for splits, name in zip(sines.nested_row_splits, ("sines_outer", "sines_inner")):
        np.testing.assert_array_equal(splits, expected[name])
    np.testing.assert_array_equal(module.ranges([2, 0, 3]).to_tensor(-1), expected["ranges"])
    sparse = tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    close(module.sparse(sparse), expected["sparse"])
    close(module.slope(flat, 3), expected["slope"])
    words = module.words(tf.ragged.constant([["a", "b"], [], ["c"]]))
    assert words.numpy().tolist() == expected["words"].tolist()


def test_a_signature_says_what_it_gives(tmp_path):
    folder, _ = unpacked("mlp", tmp_path)
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    (spec,) = signature.structured_outputs.values()
    assert isinstance(spec, tf.TensorSpec) and spec.name in signature.structured_outputs


def test_a_model_in_text_that_lists_its_operations(tmp_path):
    folder, _ = unpacked("mlp", tmp_path)
    model = messages.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    model.meta_graphs[0].meta_info_def.stripped_op_list.op.add(name="MatMul", summary="a product")
    model.meta_graphs[0].graph_def.debug_info.files.append("model.py")
    (folder / "saved_model.pbtxt").write_text(str(model))
    (folder / "saved_model.pb").unlink()
    assert "serving_default" in tf.saved_model.load(folder).signatures


@pytest.mark.parametrize("name", ["single", "padded", "windows", "interleaved", "unbatched", "unique", "count"])
def test_functions_that_make_datasets(name, tmp_path):
    folder, expected = unpacked("datasets", tmp_path)
    found = getattr(tf.saved_model.load(folder), name)(tf.constant(expected["x"]))
    np.testing.assert_allclose(found, expected[name], rtol=1e-6)


def test_errors_in_signatures_name_the_model(tmp_path):
    model = tf.Module()
    model.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(model, tmp_path)
    path = tmp_path / "saved_model.pb"
    path.write_bytes(path.read_bytes().replace(b"FullArgSpec", b"F\0llArgSpec"))
    with pytest.raises(ValueError, match=f"SavedModel {tmp_path}: "):
        tf.saved_model.load(tmp_path)


def test_arguments_whose_names_python_cannot_have():
    full = FullArgSpec(["x", "0_discount"], None, None, None, [], None, {})
    assert parameters_of(SimpleNamespace(fullargspec=encode(full))) is None
    full = FullArgSpec(["x", "y"], None, None, (2.0,), [], None, {})
    assert str(parameters_of(SimpleNamespace(fullargspec=encode(full)))) == "(x, y=2.0)"
