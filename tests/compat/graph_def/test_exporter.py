"""Every primitive is written as an operation of TensorFlow and read back, or is in a list of those that cannot be."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core, primitives
from tapeflow._src.compat.graph_def.exporter import FunctionWriter
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.compat.saved_model import saved_model  # noqa: F401  all rules
from tests.ops.sample_makers import Maker
from tests.ops.samples import builders, dtypes_of

# What has no operation of TensorFlow's, and no composition of them yet; most are second derivatives and samplers.
NOT_WRITTEN = {
    "CTCLossCurvature", "IgammaGradAA", "PhiloxBinomial", "PhiloxBoundedNormal", "PhiloxCandidates",
    "PhiloxMultinomial", "PhiloxPoisson", "Resample", "ResampleTransposed",
}  # fmt: skip
NOT_READ = {"TridiagonalSolve", "NonMaxSuppressionV5"}


def traced(name, call, known):
    """The concrete function of one call, and its inputs."""
    arrays = [i for i, a in enumerate(call.args) if isinstance(a, np.ndarray)]
    lists = [i for i, a in enumerate(call.args) if isinstance(a, list) and any(isinstance(x, np.ndarray) for x in a)]

    def run(*tensors):
        rest, args = iter(tensors), list(call.args)
        for i in arrays:
            args[i] = next(rest)
        for i in lists:
            args[i] = [next(rest) for _ in args[i]]
        return [tf.identity(y) for y in tf.nest.flatten(getattr(primitives, name)(*args, **call.kwargs))]

    inputs = [tf.constant(x) for x in [call.args[i] for i in arrays] + [x for i in lists for x in call.args[i]]]
    specs = [tf.TensorSpec(x.shape if known else [None] * x.shape.rank, x.dtype) for x in inputs]
    return tf.function(run, autograph=False).get_concrete_function(*specs), inputs


@pytest.mark.parametrize("name", primitives.facts_by_name)
def test_primitives_are_written_and_read_back(name):
    dtypes = dtypes_of(name)
    dtype = "float32" if "float32" in dtypes else dtypes[0]
    call = builders(name)[0](Maker(0, dtype))
    concrete, inputs = traced(name, call, True)
    writer = FunctionWriter("test")
    if name in NOT_WRITTEN:
        with pytest.raises(tf.errors.UnimplementedError, match="cannot be written"):
            writer.add(_core.graph_data(concrete.graph), "f")
        return
    writer.add(_core.graph_data(concrete.graph), "f")
    nodes = [node for function in writer.library.function for node in function.node_def]
    for node in nodes:
        assert set(find_op_def(node.op).attributes) <= set(node.attr), f"{node.op} lacks attributes"
    if name in NOT_READ:
        return
    found = FunctionLibrary(writer.library, "test").call("f", [*inputs, *concrete.graph.captures], {})
    for y, expected in zip(found, concrete(*inputs), strict=True):
        assert y.dtype == expected.dtype
        if y.dtype == tf.string:
            np.testing.assert_array_equal(y, expected)
        else:
            y, expected = (np.asarray(tf.cast(t, tf.complex128)) for t in (y, expected))
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


# Gradients of these wait for shapes and have no formula with computed ones yet.
NO_DYNAMIC_GRADIENT = {
    "CTCLossCurvature", "CTCLossDense", "DepthwiseConvBackpropFilter", "DepthwiseConvBackpropInput",
    "IsotonicRegression", "IgammaGradA", "IgammaGradAA", "LinearRecurrence", "Lu", "MatrixSolve", "MaxPoolGradGrad",
    "MaxPoolGradGradWithArgmax", "MaxPoolGradWithArgmax", "MaxPoolWithArgmax", "NormalizeGrad", "Qr", "RandomGammaGrad",
    "Resample", "ResampleTransposed", "StridedSliceGrad", "Svd", "TridiagonalSolve", "Unpack",
}  # fmt: skip


def gradients_of(primitive, call, arrays):
    """A function of the arrays among the arguments: the gradients of the floating results by the floating inputs."""

    def gradients(*tensors):
        sources = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            args = list(call.args)
            for i, tensor in zip(arrays, tensors):
                args[i] = tensor
            ys = tf.nest.flatten(primitive(*args, **call.kwargs))
            ys = [y * tf.stop_gradient(tf.sin(y + 1)) for y in ys if y.dtype.is_floating]
        found = tape.gradient(ys, sources, unconnected_gradients="zero")
        return [tf.convert_to_tensor(dx) for dx in found]

    return gradients


@pytest.mark.parametrize(
    "name", [n for n in primitives.facts_by_name if "float32" in dtypes_of(n) and n not in NOT_WRITTEN | NOT_READ]
)
def test_gradients_of_unknown_shapes_are_written_and_read_back(name):
    for build in builders(name):
        call = build(Maker(0, "float32"))
        arrays = [i for i, a in enumerate(call.args) if isinstance(a, np.ndarray)]
        inputs = [tf.constant(call.args[i]) for i in arrays]
        if not any(x.dtype.is_floating for x in inputs):
            continue

        gradients = gradients_of(getattr(primitives, name), call, arrays)
        try:
            specs = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in inputs]
            concrete = tf.function(gradients, autograph=False).get_concrete_function(*specs)
        except (LookupError, ValueError, TypeError, tf.errors.OpError):
            assert name in NO_DYNAMIC_GRADIENT
            continue
        writer = FunctionWriter("test")
        try:
            writer.add(_core.graph_data(concrete.graph), "f")
        except tf.errors.UnimplementedError:
            assert name in NO_DYNAMIC_GRADIENT
            continue
        found = FunctionLibrary(writer.library, "test").call("f", [*inputs, *concrete.graph.captures], {})
        for dx, expected in zip(found, gradients(*inputs), strict=True):
            # The exponential of large matrices is written in double precision, which ours is not.
            atol = 1e-3 * np.abs(expected).max() if name == "MatrixExponential" else 1e-5
            np.testing.assert_allclose(dx, expected, rtol=1e-4, atol=atol)


SHAPE_IS_NEEDED = {"NormalizeGrad", "StridedSliceGrad"}


@pytest.mark.parametrize("name", [n for n in primitives.facts_by_name if n not in NOT_WRITTEN | SHAPE_IS_NEEDED])
def test_primitives_of_unknown_shapes_are_written(name):
    dtypes = dtypes_of(name)
    call = builders(name)[0](Maker(0, "float32" if "float32" in dtypes else dtypes[0]))
    try:
        concrete, _ = traced(name, call, False)
    except (ValueError, TypeError, tf.errors.OpError):
        pytest.skip("needs a known shape while tracing")
    FunctionWriter("test").add(_core.graph_data(concrete.graph), "f")


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt", "sqrt", "reduce_prod", "asinh"])
@pytest.mark.parametrize("size", [None, 3])
def test_complex_gradients_are_written_and_read_back(name, size):
    x = tf.constant([1 + 2j, 0.5 - 1j, 2j], tf.complex64)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(tf.math, name)(x)
            total = tf.reduce_sum(tf.math.real(y) + 3 * tf.math.imag(y))
        return [tape.gradient(total, x)]

    concrete = tf.function(gradient).get_concrete_function(tf.TensorSpec([size], tf.complex64))
    writer = FunctionWriter("test")
    writer.add(_core.graph_data(concrete.graph), "f")
    (found,) = FunctionLibrary(writer.library, "test").call("f", [x, *concrete.graph.captures], {})
    np.testing.assert_allclose(found, gradient(x)[0], rtol=1e-5)


@pytest.mark.parametrize("axes", [[0, 2], [-1, 0], [0, 1, 2]])
def test_gradients_of_products_over_several_axes(axes):
    x = tf.constant(np.random.default_rng(2).normal(size=(2, 3, 4)).astype(np.float32))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(tf.reduce_prod(x, axes)))
        return [tape.gradient(y, x)]

    concrete = tf.function(gradient).get_concrete_function(tf.TensorSpec([None, None, None]))
    writer = FunctionWriter("test")
    writer.add(_core.graph_data(concrete.graph), "f")
    (found,) = FunctionLibrary(writer.library, "test").call("f", [x, *concrete.graph.captures], {})
    np.testing.assert_allclose(found, gradient(x)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["assign", "assign_add", "insert", "branch"])
def test_what_is_read_before_a_change_is_read_first(change):
    v, table = tf.Variable(1.0), tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
    key = tf.constant(1, tf.int64)

    @tf.function(autograph=False)
    def run(x):
        before = table.lookup(key) if change == "insert" else v * 2.0
        if change == "insert":
            table.insert(key, x)
        elif change == "branch":
            tf.cond(x > 0.0, lambda: v.assign(x), lambda: v.assign(-x))
        else:
            getattr(v, change)(x)
        return before

    writer = FunctionWriter("test")
    writer.add(_core.graph_data(run.get_concrete_function(tf.TensorSpec([])).graph), "f")
    nodes = next(f for f in writer.library.function if f.signature.name == "f").node_def
    read = next(i for i, node in enumerate(nodes) if node.op in ("ReadVariableOp", "LookupTableFindV2"))
    changes = ("AssignVariableOp", "AssignAddVariableOp", "LookupTableInsertV2", "If")
    changing = next(node for node in nodes[read:] if node.op in changes)
    assert f"^{nodes[read].name}" in changing.input
