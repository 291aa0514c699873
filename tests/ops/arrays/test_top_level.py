"""Small public names: tf.conv and its kin, Sobol points, scripts, DLPack, conversion functions, versions."""

import sys

import numpy as np
import pytest

import tapeflow as tf


def test_one_hot_takes_numbers_as_the_dtype_that_is_asked_for():
    hot = tf.one_hot([0, 1], 2, on_value=0.0, off_value=1, dtype=tf.float64)
    assert (hot.dtype, hot.numpy().tolist()) == (tf.float64, [[0, 1], [1, 0]])
    hot = tf.one_hot([1], 2, on_value=3, dtype=tf.uint8)
    assert (hot.dtype, hot.numpy().tolist()) == (tf.uint8, [[0, 3]])
    for given in ({"on_value": tf.constant(1.0)}, {"off_value": tf.constant(1.0)}, {"on_value": 0.5}):
        with pytest.raises(TypeError, match="does not match dtype parameter"):
            tf.one_hot([0], 2, dtype=tf.int32, **given)


class TestConvolutions:
    def test_conv_with_batches(self):
        x, filters = (
            tf.random.stateless_normal([2, 3, 4, 4, 1], [1, 2]),
            tf.random.stateless_normal([2, 2, 1, 2], [3, 4]),
        )
        y = tf.conv(x, filters, [1, 1, 1, 1], "SAME", batch_dims=2)
        np.testing.assert_allclose(y[1], tf.nn.conv2d(x[1], filters, 1, "SAME"), rtol=1e-5)

    def test_three_dimensions_and_refusals(self):
        x, filters = tf.ones([1, 3, 3, 3, 1]), tf.ones([2, 2, 2, 1, 1])
        assert tf.conv(x, filters, [1] * 5, "VALID").shape == [1, 2, 2, 2, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="strides field must specify 5 dimensions"):
            tf.conv(x, filters, [1, 1], "VALID")
        with pytest.raises(tf.errors.InvalidArgumentError, match="2 or 3 spatial dimensions but got 1"):
            tf.conv(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), [1, 1, 1], "VALID")

    @pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
    def test_gradients_are_those_of_a_tape(self, padding):
        x, filters = tf.random.stateless_normal([1, 5, 5, 2], [1, 2]), tf.random.stateless_normal([3, 3, 2, 3], [3, 4])
        explicit = [0, 0, 1, 2, 1, 0, 0, 0] if padding == "EXPLICIT" else []
        pads = [[0, 0], [1, 2], [1, 0], [0, 0]] if padding == "EXPLICIT" else padding
        with tf.GradientTape() as tape:
            tape.watch([x, filters])
            y = tf.nn.conv2d(x, filters, 2, pads)
        dx, df = tape.gradient(y, [x, filters])
        dy, rest = tf.ones_like(y), {"strides": [1, 2, 2, 1], "padding": padding, "explicit_paddings": explicit}
        np.testing.assert_allclose(tf.conv2d_backprop_input_v2(x, filters, dy, **rest), dx, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tf.conv2d_backprop_filter_v2(x, filters, dy, **rest), df, rtol=1e-5, atol=1e-6)


class TestRaggedRows:
    def test_values_and_gradient(self):
        values, default = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(-1.0)
        with tf.GradientTape() as tape:
            found = tf.ragged_fill_empty_rows([0, 0, 2], values, 4, default)
            y = tf.reduce_sum(found.output_values * [1.0, 2.0, 3.0, 4.0, 5.0])
        assert found.output_value_rowids.numpy().tolist() == [0, 0, 1, 2, 3]
        assert found.output_values.numpy().tolist() == [1.0, 2.0, -1.0, 3.0, -1.0]
        assert found.empty_row_indicator.numpy().tolist() == [False, True, False, True]
        assert found.reverse_index_map.numpy().tolist() == [0, 1, 3]
        by_tape = [g.numpy().tolist() for g in tape.gradient(y, [values, default])]
        by_rule = tf.ragged_fill_empty_rows_grad(found.reverse_index_map, tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]))
        assert by_tape == [g.numpy().tolist() for g in by_rule] == [[1.0, 2.0, 4.0], 8.0]


class TestSobol:
    def test_points_are_tensorflows(self):
        pytest.importorskip("scipy")
        expected = [
            [0.5, 0.5, 0.5],
            [0.75, 0.25, 0.25],
            [0.25, 0.75, 0.75],
            [0.375, 0.375, 0.625],
            [0.875, 0.875, 0.125],
        ]
        assert tf.math.sobol_sample(3, 5).numpy().tolist() == expected
        skipped = [[0.71972656, 0.5966797, 0.01855469, 0.17675781, 0.78027344]]
        np.testing.assert_allclose(tf.math.sobol_sample(5, 1, skip=1000), skipped, rtol=1e-6)
        assert tf.math.sobol_sample(2, 3, dtype=tf.float64).dtype == tf.float64

    def test_refusals(self, monkeypatch):
        for dim, what in ((0, "at least one"), (30000, "at most 21200")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=what):
                tf.math.sobol_sample(dim, 1)
        monkeypatch.setitem(sys.modules, "scipy.stats", None)
        with pytest.raises(tf.errors.UnimplementedError, match="pip install scipy"):
            tf.math.sobol_sample(1, 1)


def test_scripts_are_icus():
    points = [0x61, 0x430, 0x3042, 0x20, 0x4E00, 0x5D0, 0x378, 0x10FFFF + 1, -1]
    assert tf.strings.unicode_script(points).numpy().tolist() == [25, 8, 20, 0, 17, 19, 103, -1, -1]
    assert tf.function(tf.strings.unicode_script)(tf.constant([0x61])).numpy().tolist() == [25]


def test_dlpack():
    x = tf.constant([[1, 2], [3, 4]])
    assert tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x)).numpy().tolist() == [[1, 2], [3, 4]]
    assert np.from_dlpack(x).tolist() == [[1, 2], [3, 4]]


class TestConversionFunctions:
    def test_order_and_operators(self):
        class Length:
            def __init__(self, number):
                self.number = number

        calls = []

        def late(value, dtype=None, name=None, as_ref=False):
            calls.append("late")
            return tf.constant(value.number, dtype)

        def early(value, dtype=None, name=None, as_ref=False):
            calls.append("early")
            return NotImplemented

        tf.register_tensor_conversion_function(Length, late)
        tf.register_tensor_conversion_function(Length, early, priority=1)
        assert float(tf.exp(Length(0.0))) == 1.0
        assert calls == ["early", "late"]
        assert float(tf.constant(1.0) + Length(2.0)) == float(Length(2.0) + tf.constant(1.0)) == 3.0
        assert tf.convert_to_tensor(Length(2), tf.float64).dtype == tf.float64

    def test_refusals(self):
        with pytest.raises(TypeError, match="Python numeric types"):
            tf.register_tensor_conversion_function(int, lambda *_: None)
        with pytest.raises(TypeError, match="must be callable"):
            tf.register_tensor_conversion_function(TestSobol, 3)
        with pytest.raises(TypeError, match="a type or a tuple of types"):
            tf.register_tensor_conversion_function("x", len)


def test_versions():
    assert tf.__version__ == tf.version.VERSION
    assert tf.version.VERSION.startswith("2.")
    assert tuple(map(int, tf.version.VERSION.split(".")[:2])) >= (2, 0)
    assert isinstance(tf.version.GRAPH_DEF_VERSION, int)
    assert tf.__git_version__ == tf.version.GIT_VERSION
    assert not tf.compat.forward_compatible(2100, 1, 1)


def test_annotations():
    names = tf.types.experimental
    f = tf.function(lambda x: x)
    concrete = f.get_concrete_function(tf.TensorSpec([]))
    assert isinstance(f, names.GenericFunction)
    assert isinstance(concrete, names.ConcreteFunction)
    assert isinstance(concrete, names.Callable)
    assert not isinstance(concrete, names.PolymorphicFunction)
    assert not isinstance(len, names.Callable)
    assert names.GenericFunction is names.PolymorphicFunction

    def annotated(x: names.TensorLike) -> tf.Tensor:
        return tf.convert_to_tensor(x)

    assert annotated(1).dtype == tf.int32


def test_a_constant_of_a_variable_has_no_gradient():
    w, x = tf.Variable([1.0, 2.0]), tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        of_variable, of_tensor = tf.constant(w) * 2.0, tf.constant(x) * 2.0
        of_shape = tf.constant(x, shape=[2, 1]) * 2.0
    assert tape.gradient(of_variable, w) is None and tape.gradient(of_shape, x) is None
    assert tape.gradient(of_tensor, x).numpy().tolist() == [2.0, 2.0]
