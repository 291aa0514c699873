"""Inner names that libraries on TensorFlow import: larq, tf-slim, DeepCTR, zfit, TensorFlow Ranking."""

import sys
from types import ModuleType

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table

v1 = tf.compat.v1


def inner(path):
    return table.find(f"python.{path}")


class Halved(tf.Variable):
    """A variable that stands for half of another, as larq's quantized variables stand for their signs."""

    def __init__(self, variable):
        self.latent = variable

    def value(self):
        return self.latent.value() / 2.0

    def __getattr__(self, name):
        return getattr(self.latent, name)

    def __tf_tensor__(self, dtype=None, name=None):
        return self.latent._dense_var_to_tensor(dtype=dtype, name=name) / 2.0


Halved._OverloadAllOperators()


def test_operators_of_a_variable_that_wraps_another():
    inner_variable = tf.Variable([2.0, 4.0])
    halved = Halved(inner_variable)
    assert (halved + 1.0).numpy().tolist() == [2.0, 3.0]
    assert (1.0 - halved).numpy().tolist() == [0.0, -1.0]
    assert (-halved).numpy().tolist() == [-1.0, -2.0]
    assert halved[1].numpy() == 2.0
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(halved * halved)
    assert tape.gradient(y, inner_variable).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Incompatible type conversion requested to type int32"):
        inner_variable._dense_var_to_tensor(dtype=tf.int32)


def test_variables_of_parameter_servers_cannot_be_made():
    kind = inner("distribute.ps_values").AggregatingVariable
    assert not isinstance(tf.Variable(1.0), kind)
    with pytest.raises(NotImplementedError, match="parameter servers"):
        kind(tf.distribute.get_strategy(), tf.Variable(1.0), tf.VariableAggregation.SUM)
    with pytest.raises(NotImplementedError, match="parameter servers"):
        inner("training.sync_replicas_optimizer").SyncReplicasOptimizer(None, 1)


def test_values_as_text():
    text = inner("framework.ops").numpy_text
    assert text(tf.constant(1.5), is_repr=True) == "1.5"
    assert text(tf.constant([1, 2])) == "[1 2]"
    assert text(tf.constant([[1], [2]])) == "\n[[1]\n [2]]"


def test_a_slice_of_a_variable():
    v = tf.Variable([1.0, 2.0, 3.0])
    part = inner("ops.tensor_getitem_override")._slice_helper_var(v, slice(1, None))
    assert part.numpy().tolist() == [2.0, 3.0]
    part.assign([5.0, 6.0])
    assert v.numpy().tolist() == [1.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("padding", "output", "source", "transposed"), [("same", 4, 7, 14), ("valid", 3, 9, 15), ("full", 5, 5, 11)]
)
def test_lengths_of_convolutions(padding, output, source, transposed):
    sizes = inner("layers.utils")
    assert sizes.conv_output_length(7, 3, padding, 2) == output
    assert sizes.conv_input_length(4, 3, padding, 2) == source
    assert sizes.deconv_output_length(7, 3, padding, 2) == transposed
    assert sizes.conv_output_length(None, 3, padding, 2) is None
    with pytest.raises(ValueError, match="padding must be"):
        sizes.conv_output_length(7, 3, "none", 2)


def test_conditions_that_are_known():
    known = inner("framework.smart_cond").smart_constant_value
    assert known(True) is True and known(0) is False and known(tf.constant(True)) is True

    @tf.function
    def trace(flag):
        assert known(flag) is None and inner("layers.utils").constant_value(flag) is None
        return flag

    trace(tf.constant(True))
    assert inner("layers.utils").smart_cond(False, lambda: 1, lambda: 2) == 2


def test_sizes_one_behind_the_other():
    concat = inner("ops.rnn_cell_impl")._concat
    assert concat(2, [3, 4]).numpy().tolist() == [2, 3, 4]
    assert concat(tf.constant(2), tf.TensorShape([3])).numpy().tolist() == [2, 3]
    assert concat(None, 3, static=True) is None
    assert concat([None], 3, static=True) == [None, 3]
    with pytest.raises(ValueError, match="prefix or suffix of None"):
        concat([None], 3)
    with pytest.raises(ValueError, match="prefix tensor must be either a scalar or vector"):
        concat(tf.constant([[1]]), 3)


def test_all_names_of_a_module():
    assert "RNNCell" in inner("ops.rnn_cell").__all__
    assert not [name for name in inner("ops.rnn_cell_impl").__all__ if name.startswith("_")]


def test_names_that_texts_mention(monkeypatch):
    module = ModuleType("documented", "Text.\n\n@@first\n@@absent\n")
    module.first = module.second = 1
    monkeypatch.setitem(sys.modules, "documented", module)
    assert inner("util.all_util").make_all("documented") == ["first"]


def test_layers_of_renamed_variables():
    def rename(getter, name, *args, **options):
        return getter(name.replace("kernel", "weights"), *args, **options)

    with tf.Graph().as_default(), v1.variable_scope("net", custom_getter=rename):
        layer = inner("layers.convolutional").Convolution2D(4, 3, padding="same")
        layer(tf.ones([1, 5, 5, 2]))
        assert layer.kernel.name == "net/conv2d/weights:0"
        assert layer.use_bias is True and layer.filters == 4 and layer.padding == "same"
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            layer.nothing  # noqa: B018


def test_the_transpose_of_a_convolution_of_volumes():
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 2, 2)
    with tf.Graph().as_default(), v1.Session() as session:
        layer = inner("layers.convolutional").Conv3DTranspose(3, 2, strides=2, use_bias=False)
        y = layer(tf.constant(x))
        session.run(v1.global_variables_initializer())
        kernel, value = session.run([layer.kernel, y])
    expected = np.einsum("c,ijkfc->ijkf", x[0, 1, 1, 0], kernel)
    np.testing.assert_allclose(value[0, 2:, 2:, :2], expected, rtol=1e-5, atol=1e-5)  # terms may cancel


def test_metrics_of_libraries():
    impl = inner("ops.metrics_impl")
    with tf.Graph().as_default(), v1.Session() as session:
        labels, predictions = tf.constant([0, 1, 1, 0]), tf.constant([0.1, 0.7, 0.4, 0.6])
        values, updates = impl._confusion_matrix_at_thresholds(labels, predictions, [0.3, 0.5], includes=("tp", "fp"))
        total = impl.metric_variable([], tf.float32, name="total")
        assert total in v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
        read = impl._aggregate_variable(total, ["read"])
        session.run(v1.local_variables_initializer())
        session.run(updates)
        assert session.run(values["tp"]).tolist() == [2.0, 1.0]
        assert session.run(values["fp"]).tolist() == [1.0, 1.0]
        assert session.run(v1.get_collection("read")) == [0.0] and session.run(read) == 0.0
        with pytest.raises(ValueError, match="Invalid key: xy"):
            impl._confusion_matrix_at_thresholds(labels, predictions, [0.5], includes=("xy",))


def test_a_checkpoint_is_evaluated(tmp_path):
    evaluation = inner("training.evaluation")
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=3.0)
        session.run(v.assign(5.0))
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=3.0)
        runs = v1.get_variable("runs", initializer=0.0, collections=[v1.GraphKeys.LOCAL_VARIABLES])
        values = evaluation._evaluate_once(
            path, eval_ops=runs.assign_add(v), final_ops=[runs, evaluation._get_or_create_eval_step()],
            hooks=[evaluation._StopAfterNEvalsHook(3)],
        )  # fmt: skip
    assert [float(value) for value in values] == [15.0, 3.0]


def test_initializers_by_their_short_names():
    module = inner("ops.init_ops_v2")
    assert module.glorot_uniform is module.GlorotUniform
    assert module.orthogonal is module.Orthogonal


def test_saved_models_are_loaded_by_their_first_name():
    assert v1.saved_model.load_v2 is tf.saved_model.load
