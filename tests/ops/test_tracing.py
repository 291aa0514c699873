"""Operations while tracing, with known and unknown dimensions and with unknown rank: a graph gives what eager gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.function.trace import FuncGraph, building
from tapeflow._src.primitives import facts_by_name
from tests.ops import sample_makers
from tests.ops.sample_makers import Maker
from tests.ops.samples import builders, dtypes_of

KNOWN, OPEN, RANKLESS = "known", "open", "rankless"

# Primitives whose results are new random numbers at each run: only shape and dtype are compared.
random_names = {name for name in facts_by_name if name.startswith("Random") or name in ("Multinomial",)}

# What cannot be traced without knowing more, and why.
needs_dimensions = {
    "Unpack": "the number of results is a dimension",
}


def static_shape(x: np.ndarray, how: str) -> tf.TensorShape:
    if how == RANKLESS:
        return tf.TensorShape(None)
    return tf.TensorShape(x.shape if how == KNOWN else [None] * x.ndim)


class Traced:
    """A call of a primitive whose arrays are inputs of a graph; everything else is known while tracing."""

    def __init__(self, name: str, call: sample_makers.Call):
        self.name = name
        self.structure = [list(call.args), call.kwargs]
        self.leaves = tf.nest.flatten(self.structure)
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, np.ndarray)]
        self.arrays = [self.leaves[i] for i in self.places]

    def outputs(self, tensors: list[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        args, kwargs = tf.nest.pack_sequence_as(self.structure, leaves)
        return tf.nest.flatten(getattr(primitives, self.name)(*args, **kwargs))

    def with_gradients(self, tensors: list[Any]) -> tuple[list[Any], list[Any]]:
        sources = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = self.outputs(tensors)
            targets = [y * y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        gradients = (
            tape.gradient(targets, sources) if facts_by_name[self.name]["gradient"] != "missing" and targets else []
        )
        return outputs, [None if dx is None else tf.convert_to_tensor(dx) for dx in gradients]

    def tangents(self, tensors: list[Any]) -> list[Any]:
        sources = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        with tf.autodiff.ForwardAccumulator(sources, [tf.ones_like(x) for x in sources]) as accumulator:
            outputs = self.outputs(tensors)
        flowing = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        return [accumulator.jvp(y, tf.UnconnectedGradients.ZERO) for y in flowing]

    def run_graph(self, how: str) -> tuple[list[Any], list[Any], list[Any]]:
        """Outputs, gradients, and the static shapes of the outputs."""
        values = [tf.convert_to_tensor(array) for array in self.arrays]
        graph = FuncGraph()
        with building(graph):
            inputs = [graph.add_input(t.dtype, static_shape(a, how)) for t, a in zip(values, self.arrays)]
            outputs, gradients = self.with_gradients(inputs)
            graph.set_outputs([*outputs, *(dx for dx in gradients if dx is not None)])
        results = iter(graph.call(values))
        found = [next(results) for _ in outputs]
        return found, [None if dx is None else next(results) for dx in gradients], [y.shape for y in outputs]


def sample_dtype(name: str) -> str:
    dtypes = dtypes_of(name)
    return next((d for d in ("float32", "float64") if d in dtypes), dtypes[0])


def same(expected: list[Any], found: list[Any], random: bool) -> None:
    assert len(expected) == len(found)
    for a, b in zip(expected, found):
        assert (a is None) <= (b is None or not np.any(np.asarray(b))), "a gradient is None in eager mode only"
        if a is None:
            continue
        assert b is not None, "a gradient is None in the graph only"
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if not random and a.dtype != tf.string:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", [KNOWN, OPEN, RANKLESS])
@pytest.mark.parametrize("name", facts_by_name)
def test_a_graph_gives_what_eager_gives(name, how):
    for build in builders(name):
        traced = Traced(name, build(Maker(0, sample_dtype(name))))
        if not traced.arrays or (how != KNOWN and name in needs_dimensions):
            continue
        expected, gradients = traced.with_gradients([tf.convert_to_tensor(array) for array in traced.arrays])
        found, found_gradients, shapes = traced.run_graph(how)
        same(expected, found, name in random_names)
        same(gradients, found_gradients, name in random_names)
        for shape, y in zip(shapes, expected):
            assert shape.is_compatible_with(y.shape), f"the static shape {shape} is wrong: {y.shape}"


@pytest.mark.parametrize("how", [KNOWN, OPEN])
@pytest.mark.parametrize("name", [n for n, facts in facts_by_name.items() if facts["gradient"] == "rule"])
def test_forward_mode_in_a_graph(name, how):
    if how == OPEN and name in needs_dimensions:
        return
    traced = Traced(name, builders(name)[0](Maker(0, sample_dtype(name))))
    values = [tf.convert_to_tensor(array) for array in traced.arrays]
    expected = traced.tangents(values)
    graph = FuncGraph()
    with building(graph):
        inputs = [graph.add_input(t.dtype, static_shape(a, how)) for t, a in zip(values, traced.arrays)]
        graph.set_outputs(traced.tangents(inputs))
    same(expected, graph.call(values), name in random_names)


# ------------------------------------------------------------------------------------------- shapes and sizes


def traced(function: Any, *inputs: tuple[Any, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What a function gives in eager mode and in a graph, whose inputs have the given shapes, and the static shapes."""
    values = [tf.convert_to_tensor(array) for array, _ in inputs]
    expected = tf.nest.flatten(function(*values))
    graph = FuncGraph()
    with building(graph):
        symbolic = [graph.add_input(v.dtype, tf.TensorShape(shape)) for v, (_, shape) in zip(values, inputs)]
        outputs = tf.nest.flatten(function(*symbolic))
        graph.set_outputs(outputs)
    static = [None if y.shape.rank is None else y.shape.as_list() for y in outputs]
    return expected, graph.call(values), static


X = np.arange(12, dtype=np.float32).reshape(3, 4)
IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 2)).astype(np.float32)
N = np.int32(3)
FILTER = np.ones((3, 3, 2, 5), np.float32)

# Calls, the shapes of their inputs while tracing, and the static shapes of their results: what TensorFlow 2.21 infers
# (except that of a padding with one unknown number it infers nothing).
static_shapes: dict[str, tuple[Any, list[tuple[Any, Any]], list[Any]]] = {
    "shape": (tf.shape, [(X, [None, 4])], [[2]]),
    "size": (tf.size, [(X, [None, 4])], [[]]),
    "rank": (tf.rank, [(X, None)], [[]]),
    "zeros_like": (tf.zeros_like, [(X, [None, 4])], [[None, 4]]),
    "fill": (lambda x: tf.fill(tf.shape(x), 2.0), [(X, [None, 4])], [[None, 4]]),
    "zeros": (lambda x: tf.zeros([tf.shape(x)[0], 5]), [(X, [None, 4])], [[None, 5]]),
    "eye": (lambda n: tf.eye(n, 5, batch_shape=[2]), [(N, [])], [[2, None, 5]]),
    "range": (tf.range, [(N, [])], [[None]]),
    "linspace": (lambda n: tf.linspace(0.0, 1.0, n), [(N, [])], [[None]]),
    "one_hot": (lambda n: tf.one_hot([0, 2], n), [(N, [])], [[2, None]]),
    "sequence_mask": (tf.sequence_mask, [(np.array([1, 3]), [None])], [[None, None]]),
    "reshape": (lambda x: tf.reshape(x, [tf.shape(x)[0], 2, -1]), [(X, [None, None])], [[None, 2, None]]),
    "reshape of concat": (
        lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [2, 2]], 0)),
        [(X, [None, 4])],
        [[None, 2, 2]],
    ),
    "broadcast_to": (lambda x: tf.broadcast_to(x, [2, tf.shape(x)[0], 4]), [(X, [None, 4])], [[2, None, 4]]),
    "tile": (lambda x, n: tf.tile(x, [n, 2]), [(X, [3, 4]), (N, [])], [[None, 8]]),
    "pad": (lambda x, n: tf.pad(x, [[0, n], [1, 1]]), [(X, [3, 4]), (N, [])], [[None, 6]]),
    "slice": (lambda x, n: tf.slice(x, [0, n - 2], [2, -1]), [(X, [None, 4]), (N, [])], [[2, None]]),
    "strided_slice": (lambda x, n: tf.strided_slice(x, [0, 0], [n, 4], [1, 2]), [(X, [3, 4]), (N, [])], [[None, 2]]),
    "split": (lambda x: tf.split(x, 2, axis=1), [(X, [None, None])], [[None, None]] * 2),
    "split by sizes": (lambda x: tf.split(x, [1, -1], axis=0), [(X, [None, 4])], [[1, 4], [None, 4]]),
    "repeat": (lambda x, n: tf.repeat(x, n, axis=1), [(X, [None, 4]), (N, [])], [[None, None]]),
    "concat": (lambda x: tf.concat([x, x], 1), [(X, [None, 4])], [[None, 8]]),
    "stack": (lambda x: tf.stack([x, x], 1), [(X, [None, 4])], [[None, 2, 4]]),
    "transpose": (tf.transpose, [(X, [None, 4])], [[4, None]]),
    "matmul": (lambda x: tf.matmul(x, tf.ones([4, 5])), [(X, [None, None])], [[None, 5]]),
    "einsum": (lambda x: tf.einsum("ij,jk->ik", x, tf.ones([4, 2])), [(X, [None, 4])], [[None, 2]]),
    "reduce_mean": (lambda x: tf.reduce_mean(x, 1), [(X, [None, 4])], [[None]]),
    "reduce over a symbolic axis": (lambda x, n: tf.reduce_sum(x, n - 2), [(X, [None, 4]), (N, [])], [None]),
    "conv2d": (lambda x: tf.nn.conv2d(x, FILTER, 1, "SAME"), [(IMAGES, [None, 8, 8, 2])], [[None, 8, 8, 5]]),
    "conv2d, open": (lambda x: tf.nn.conv2d(x, FILTER, 2, "VALID"), [(IMAGES, None)], [[None, None, None, 5]]),
    "conv2d_transpose": (
        lambda x: tf.nn.conv2d_transpose(x, np.ones((3, 3, 5, 2), np.float32), [tf.shape(x)[0], 16, 16, 5], 2),
        [(IMAGES, [None, 8, 8, 2])],
        [[None, 16, 16, 5]],
    ),
    "max_pool2d": (lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), [(IMAGES, [None, 8, None, 2])], [[None, 4, None, 2]]),
    "avg_pool2d": (lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), [(IMAGES, [None, 8, 8, 2])], [[None, 4, 4, 2]]),
    "gather": (lambda i: tf.gather(tf.constant(X), i), [(np.array([1, 2]), [None])], [[None, 4]]),
    "where": (lambda x: tf.where(x > 2), [(X, [None, 4])], [[None, 2]]),
    "unique": (lambda x: tf.unique(x)[0], [(np.array([1, 2, 1]), [3])], [[None]]),
    "boolean_mask": (lambda x: x[x > 3], [(X, [None, 4])], [[None]]),
    "dynamic_partition": (lambda x: tf.dynamic_partition(x, [0, 1, 0], 2), [(X, [3, 4])], [[None, 4]] * 2),
    "ensure_shape": (lambda x: tf.ensure_shape(x, [None, 4]), [(X, None)], [[None, 4]]),
    "first row": (lambda x: x[0], [(X, [None, 4])], [[4]]),
    "columns": (lambda x: x[:, 1:3], [(X, [None, 4])], [[None, 2]]),
    "backwards": (lambda x: x[..., tf.newaxis, ::-1], [(X, [None, 4])], [[None, 1, 4]]),
    "symbolic index": (lambda x, n: x[n - 1, :n], [(X, [3, 4]), (N, [])], [[None]]),
    "symbolic step": (lambda x, n: x[1:, ::n], [(X, [3, 4]), (N, [])], [[2, None]]),
    "convert_to_tensor of rows": (
        lambda x: tf.convert_to_tensor([[1.0, 2.0, 3.0, 4.0], x]),
        [(X[0], [None])],
        [[2, 4]],
    ),
    "clip_by_value": (
        lambda x: tf.clip_by_value(x, [[1.0], [2.0], [3.0]], 9.0),
        [(X, [None, None])],
        [[3, None]],
    ),
    "softmax_cross_entropy": (
        lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x),
        [(X, [3, None]), (X, [None, 4])],
        [[3]],
    ),
    "sparse_softmax_cross_entropy": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2, 0], x),
        [(X, [None, None])],
        [[3]],
    ),
    "ctc_loss": (
        lambda x: tf.nn.ctc_loss([[1], [1]], x, [1, 1], [2, 2], blank_index=0),
        [(X.reshape(2, 2, 3), [None, None, None])],
        [[2]],
    ),
    "histogram_fixed_width": (
        lambda x: tf.histogram_fixed_width(x, x[0, :2], nbins=5),
        [(X, [None, None])],
        [[5]],
    ),
    "histogram_fixed_width_bins": (
        lambda x: tf.histogram_fixed_width_bins(x, x[0, :2], nbins=5),
        [(X, [3, None])],
        [[3, None]],
    ),
    "space_to_batch": (
        lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]),
        [(IMAGES, [None, 8, 8, None])],
        [[None, 4, 5, None]],
    ),
    "batch_to_space": (
        lambda x: tf.batch_to_space(x, [2, 1], [[0, 1], [0, 0]]),
        [(IMAGES, [None, 8, 8, 2])],
        [[None, 15, 8, 2]],
    ),
    "image.ssim": (
        lambda x: tf.image.ssim(x, x + 1.0, 1.0, filter_size=3),
        [(IMAGES, [None] * 4)],
        [[None]],
    ),
    "image.crop_and_resize": (
        lambda x, n: tf.image.crop_and_resize(x, X[:2] / 12, [0, 1], [n, 3]),
        [(IMAGES, [None, None, None, 2]), (N, [])],
        [[2, None, 3, 2]],
    ),
    "image.extract_glimpse": (
        lambda x: tf.image.extract_glimpse(x, [3, 2], [[0.0, 0.5], [0.5, 0.0]], noise="zero"),
        [(IMAGES, [None, None, None, 2])],
        [[2, 3, 2, 2]],
    ),
    "nn.dilation2d": (
        lambda x: tf.nn.dilation2d(x, np.ones((2, 2, 2), np.float32), [1] * 4, "SAME", "NHWC", [1] * 4),
        [(IMAGES, [None] * 4)],
        [[None, None, None, 2]],
    ),
    "nn.erosion2d": (
        lambda x: tf.nn.erosion2d(x, np.ones((2, 2, 2), np.float32), [1] * 4, "SAME", "NHWC", [1] * 4),
        [(IMAGES, [None] * 4)],
        [[None, None, None, 2]],
    ),
    "random.normal": (lambda x: 0 * tf.random.normal([tf.shape(x)[0], 2]), [(X, [None, 4])], [[None, 2]]),
    "random.stateless_uniform": (
        lambda x: tf.random.stateless_uniform(tf.shape(x), [1, 2]),
        [(X, [None, 4])],
        [[None, 4]],
    ),
}


@pytest.mark.parametrize("name", static_shapes)
def test_static_shapes_are_those_of_tensorflow(name):
    function, inputs, wanted = static_shapes[name]
    expected, found, static = traced(function, *inputs)
    assert static == wanted
    same(expected, found, random=False)


@pytest.mark.parametrize("name", static_shapes)
def test_gradients_where_dimensions_are_unknown(name):
    function, inputs, _ = static_shapes[name]
    if name.startswith("random"):
        return

    def gradient(*tensors: Any) -> list[Any]:
        sources = [t for t in tensors if t.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            targets = [y * y for y in tf.nest.flatten(function(*tensors)) if y.dtype.is_floating]
        found = tape.gradient(targets, sources, unconnected_gradients="zero") if sources and targets else []
        return [tf.convert_to_tensor(dx) for dx in found]

    expected, found, _ = traced(gradient, *inputs)
    same(expected, found, random=False)


def test_second_order_where_dimensions_are_unknown():
    def hessian_times_one(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.matmul(x, x, transpose_b=True) ** 3 * x[:1, :3])
            dx = inner.gradient(y, x)
        return outer.gradient(dx, x)

    expected, found, _ = traced(hessian_times_one, (X, [None, None]))
    same(expected, found, random=False)


def test_rows_of_an_embedding_stay_rows():
    table = tf.Variable(X)

    @tf.function
    def gradient(indices: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, indices) ** 2)
        return tape.gradient(y, table)

    graph = gradient.get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    found = graph(tf.constant([[1, 2, 1]]))
    assert isinstance(found, tf.IndexedSlices)
    np.testing.assert_allclose(tf.convert_to_tensor(found), 2 * X * np.array([[0], [2], [1]]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tf.zeros(x.shape), "Cannot convert a partially known TensorShape"),
        (lambda x: tf.unstack(x), "Cannot infer argument `num` from shape"),
        (lambda x: tf.ensure_shape(x, [None, 5]), "is not compatible with expected shape"),
        (lambda x: x[0, 0, 0], "Index out of range using input dim 2"),
        (lambda x: tf.concat([x, tf.ones([2, 5])], 0), "in both shapes must be equal"),
        (lambda x: tf.split(x, [1, 2], axis=1), "split axis 1"),
    ],
)
def test_errors_while_tracing(call, words):
    graph = FuncGraph()
    with building(graph), pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=words):
        call(graph.add_input(tf.float32, tf.TensorShape([None, 4])))


def test_errors_when_the_graph_runs():
    graph = FuncGraph()
    with building(graph):
        x, n = graph.add_input(tf.float32, tf.TensorShape(None)), graph.add_input(tf.int32, tf.TensorShape([]))
        graph.set_outputs([tf.ensure_shape(x, [None, 4])[n]])
    np.testing.assert_array_equal(graph.call([tf.constant(X), tf.constant(1)])[0], X[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 3 of dimension 0 out of bounds"):
        graph.call([tf.constant(X), tf.constant(3)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not compatible with expected shape"):
        graph.call([tf.constant(X.T), tf.constant(0)])


def test_what_is_known_while_tracing():
    graph = FuncGraph()
    with building(graph):
        x = graph.add_input(tf.float32, tf.TensorShape([None, 4]))
        assert not tf.executing_eagerly()
        assert tf.is_symbolic_tensor(x)
        assert tf.get_static_value(x) is None
        assert tf.get_static_value(tf.shape(x)) is None
        assert tf.get_static_value(tf.shape(x), partial=True).tolist() == [None, 4]
        assert tf.get_static_value(tf.shape(x)[1] * 2 + 1) == 9
        assert tf.zeros([tf.shape(x)[1] // 2, tf.shape(x)[0]]).shape.as_list() == [2, None]
        assert tf.range(tf.shape(x)[1]).shape.as_list() == [4]
    assert tf.executing_eagerly()


def test_an_indexed_slices_of_symbolic_shape_is_densified():
    def dense(values: Any, rows: Any) -> Any:
        return tf.convert_to_tensor(tf.IndexedSlices(values, tf.constant([2, 0, 2]), tf.stack([rows, 4])))

    expected, found, static = traced(dense, (X, [3, 4]), (N, []))
    same(expected, found, random=False)
    assert static == [[None, 4]]


def test_what_is_no_tensor_is_known():
    assert tf.get_static_value(3) == 3 and tf.get_static_value([]) == [] and tf.get_static_value(None) is None
    assert tf.get_static_value(tf.TensorShape([2])) == tf.TensorShape([2])
    assert tf.get_static_value(tf.Variable(1.0)) is None


def test_broadcast_of_the_shapes_of_scalars():
    empty = tf.constant([], tf.int32)
    assert tf.broadcast_dynamic_shape(empty, empty).numpy().tolist() == []
    assert tf.broadcast_dynamic_shape(empty, [2]).numpy().tolist() == [2]
