"""What programs choose when they save and load a SavedModel."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.saved_model.meta_graphs import read_meta_graph


class Scale(tf.Module):
    """A module with one variable and one function."""

    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0, name="factor")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        tf.debugging.assert_greater(x, 0.0)
        return tf.debugging.check_numerics(x * self.factor, "finite")


@pytest.mark.parametrize("as_what", ["function", "concrete", "list"])
def test_functions_have_other_names(tmp_path, as_what):
    model = Scale()
    traced = model.__call__.get_concrete_function()
    given = {"function": model.__call__, "concrete": traced, "list": [traced]}[as_what]
    tf.saved_model.save(model, tmp_path, options=tf.saved_model.SaveOptions(function_aliases={"scaled": given}))
    assert not hasattr(tf.saved_model.load(tmp_path), "function_aliases")
    options = tf.saved_model.LoadOptions(experimental_load_function_aliases=True)
    loaded = tf.saved_model.load(tmp_path, options=options)
    np.testing.assert_array_equal(loaded.function_aliases["scaled"](tf.constant([2.0])), [6.0])
    tf.saved_model.save(  # what was loaded can be given again
        loaded, tmp_path / "again", options=tf.saved_model.SaveOptions(function_aliases={"b": loaded.__call__})
    )
    again = tf.saved_model.load(tmp_path / "again", options=options)
    np.testing.assert_array_equal(again.function_aliases["b"](tf.constant([2.0])), [6.0])


def test_aliases_of_what_is_no_function(tmp_path):
    options = tf.saved_model.SaveOptions(function_aliases={"a": len})
    with pytest.raises(TypeError, match=r"should be created by tf\.function, or concrete functions"):
        tf.saved_model.save(Scale(), tmp_path / "m", options=options)
    assert not (tmp_path / "m").exists()


def test_an_attribute_of_the_name_of_the_aliases_is_not_lost(tmp_path):
    model = Scale()
    model.function_aliases = tf.Variable(1.0)
    tf.saved_model.save(model, tmp_path)
    with pytest.raises(ValueError, match="already has an attribute with name 'function_aliases'"):
        tf.saved_model.load(tmp_path, options=tf.saved_model.LoadOptions(experimental_load_function_aliases=True))


def test_tags_savers_and_devices(tmp_path):
    plain, chosen = tmp_path / "plain", tmp_path / "chosen"
    tf.saved_model.save(Scale(), plain)
    options = tf.saved_model.SaveOptions(
        extra_tags=["mine"], experimental_skip_saver=True, experimental_variable_policy="Save_Variable_Devices"
    )
    tf.saved_model.save(Scale(), chosen, options=options)
    meta, other = read_meta_graph(str(plain), None), read_meta_graph(str(chosen), ["serve", "mine"])
    assert list(other.meta_info_def.tags) == ["serve", "mine"]
    assert meta.HasField("saver_def") and not other.HasField("saver_def")

    def devices(graph):
        return {node.variable.device for node in graph.object_graph_def.nodes if node.HasField("variable")}

    assert devices(meta) == {""} and devices(other) == {tf.Variable(1.0).device}
    assert float(tf.saved_model.load(chosen).factor) == 3.0


def test_checks_are_stripped(tmp_path):
    tf.saved_model.save(Scale(), tmp_path, options=tf.saved_model.SaveOptions(experimental_debug_stripper=True))
    library = read_meta_graph(str(tmp_path), None).graph_def.library
    assert not {"Assert", "CheckNumerics"} & {node.op for f in library.function for node in f.node_def}
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path)(tf.constant([-1.0])), [-3.0])


def test_variables_without_values(tmp_path):
    tf.saved_model.save(Scale(), tmp_path)
    loaded = tf.saved_model.load(tmp_path, options=tf.saved_model.LoadOptions(experimental_skip_checkpoint=True))
    assert loaded.factor.trainable and loaded.factor.name == "factor:0" and not loaded.factor.is_initialized()
    with pytest.raises(tf.errors.FailedPreconditionError):
        loaded(tf.constant([1.0]))
    loaded.factor.assign(5.0)
    np.testing.assert_array_equal(loaded(tf.constant([1.0])), [5.0])


def test_a_value_that_is_missing(tmp_path):
    tf.saved_model.save(Scale(), tmp_path)
    tf.train.Checkpoint(other=tf.Variable(1.0)).write(str(tmp_path / "variables" / "variables"))
    with pytest.raises(tf.errors.DataLossError, match="the variable 'factor' has no value"):
        tf.saved_model.load(tmp_path)
    loaded = tf.saved_model.load(tmp_path, options=tf.saved_model.LoadOptions(allow_partial_checkpoint=True))
    assert not loaded.factor.is_initialized()


@pytest.mark.parametrize(
    ("chosen", "kind", "message"),
    [
        ({"experimental_variable_policy": "none at all"}, ValueError, "Received invalid VariablePolicy value"),
        ({"experimental_variable_policy": "expand_distributed_variables"}, NotImplementedError, "saved as one"),
        ({"experimental_image_format": True}, ValueError, "disabled in OSS"),
        ({"experimental_sharding_callback": object()}, ValueError, "a checkpoint is one file"),
    ],
)
def test_options_that_are_refused(chosen, kind, message):
    with pytest.raises(kind, match=message):
        tf.saved_model.SaveOptions(**chosen)
