"""Raw operations beside those that primitives are: results as recorded from TensorFlow, gradients, signatures."""

import json
import pickle

import numpy as np
import pytest

import tapeflow as tf
from tests.compat.raw_ops.raw_calls import CALLS, VALUES, plain

RECORDED = json.loads(VALUES.read_text())


def compare(found, expected, path=""):
    if "items" in expected:
        assert found.get("fields") == expected["fields"], path
        assert len(found["items"]) == len(expected["items"]), path
        for number, (x, y) in enumerate(zip(found["items"], expected["items"])):
            compare(x, y, f"{path}[{number}]")
        return
    assert (found["dtype"], found["shape"]) == (expected["dtype"], expected["shape"]), path
    if expected["dtype"] == "string":
        assert found["values"] == expected["values"], path
    else:
        np.testing.assert_allclose(found["values"], expected["values"], rtol=2e-5, atol=2e-6, err_msg=path)


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[name for name, _ in CALLS])
def test_result_is_tensorflows(number):
    name, arguments = CALLS[number]
    tf.random.set_seed(None)
    compare(plain(getattr(tf.raw_ops, name)(**arguments)), RECORDED[number], name)


def test_every_name_is_tensorflows():
    """With TensorFlow's argument names, as far as it has the operation."""
    for name, arguments in CALLS:
        operation = getattr(tf.raw_ops, name)
        assert pickle.loads(pickle.dumps(operation)) is operation
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            operation(**arguments, nonsense=1)


GRADIENTS = [
    ("Conv2D", {"input": (1, 4, 4, 2), "filter": (2, 2, 2, 3)}, {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    (
        "Conv2DBackpropInput",
        {"filter": (2, 2, 2, 3), "out_backprop": (1, 4, 4, 3)},
        {"input_sizes": [1, 4, 4, 2], "strides": [1] * 4, "padding": "SAME"},
    ),
    (
        "FusedBatchNormGradV3",
        {"y_backprop": (1, 3, 3, 2), "x": (1, 3, 3, 2), "scale": (2,)},
        {"reserve_space_1": np.zeros(2), "reserve_space_2": np.ones(2), "reserve_space_3": np.zeros(0)},
    ),
    (
        "MaxPoolGrad",
        {"grad": (1, 2, 2, 1)},
        {
            "orig_input": np.arange(16.0).reshape(1, 4, 4, 1),
            "orig_output": np.zeros((1, 2, 2, 1)),
            "ksize": [1, 2, 2, 1],
            "strides": [1, 2, 2, 1],
            "padding": "SAME",
        },
    ),
    ("ResizeBilinearGrad", {"grads": (1, 3, 3, 1)}, {"original_image": np.zeros((1, 5, 4, 1))}),
    ("LRN", {"input": (1, 2, 2, 3)}, {}),
    (
        "LSTMBlockCell",
        {"x": (2, 3), "cs_prev": (2, 2), "w": (5, 8)},
        {"h_prev": np.ones((2, 2)), "wci": np.zeros(2), "wcf": np.zeros(2), "wco": np.zeros(2), "b": np.zeros(8)},
    ),
    ("RaggedFillEmptyRows", {"values": (2,)}, {"value_rowids": [0, 2], "nrows": 4, "default_value": -1.0}),
    ("StridedSliceGrad", {"dy": (2, 2)}, {"shape": [4, 3], "begin": [1, 0], "end": [3, 3], "strides": [1, 2]}),
]


@pytest.mark.parametrize(("name", "shapes", "rest"), GRADIENTS, ids=[g[0] for g in GRADIENTS])
def test_gradients_are_the_numeric_ones(name, shapes, rest):
    random = np.random.default_rng(1)
    operation, sources = getattr(tf.raw_ops, name), [tf.constant(random.normal(size=s)) for s in shapes.values()]

    def run(*values):
        found = operation(**dict(zip(shapes, values)), **rest)
        outputs = [
            y for y in (found if isinstance(found, tuple) else [found]) if y.dtype == tf.float64 and y.shape.rank
        ]
        return tf.add_n([tf.reduce_sum(tf.sin(y)) for y in outputs])

    analytic, numeric = tf.test.compute_gradient(run, sources)
    for a, n in zip(analytic, numeric):
        np.testing.assert_allclose(a, n, rtol=1e-4, atol=1e-5)


def test_in_a_graph():
    @tf.function
    def run(x, filters):
        y = tf.raw_ops.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
        return tf.raw_ops.MaxPoolWithArgmax(input=y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME").output

    assert run(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1])).shape == [1, 2, 2, 1]


def test_ragged_gather():
    found = tf.raw_ops.RaggedGather(
        params_nested_splits=[[0, 2, 3]], params_dense_values=[1.0, 2.0, 3.0], indices=[1, 0], OUTPUT_RAGGED_RANK=1
    )
    assert [splits.numpy().tolist() for splits in found.output_nested_splits] == [[0, 1, 3]]
    assert found.output_dense_values.numpy().tolist() == [3.0, 1.0, 2.0]


PAIRS = ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"]
PAIRS += ["EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"]


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_of_elementwise_functions_do_not_broadcast(name):
    operation = getattr(tf.raw_ops, name)
    first, second = [p for p in operation.__signature__.parameters if p not in ("alpha", "name")]
    assert operation(**{first: [0.5, 2.0], second: [0.5, 2.0]}).shape == [2]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name}.*must have the same size and shape"):
        operation(**{first: [0.5, 2.0], second: 1.0})


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("traced", [False, True])
def test_gradient_of_mirrored_padding(mode, traced):
    x = np.arange(12.0).reshape(3, 4)
    paddings = [[1, 2], [2, 1]]
    dy = np.random.default_rng(3).normal(size=(6, 7))

    def run(dy):
        return tf.raw_ops.MirrorPadGrad(input=dy, paddings=paddings, mode=mode)

    with tf.GradientTape() as tape:
        source = tf.constant(x)
        tape.watch(source)
        y = tf.pad(source, paddings, mode)
    found = (tf.function(run) if traced else run)(tf.constant(dy))
    np.testing.assert_allclose(found, tape.gradient(y, source, tf.constant(dy)))
    assert np.abs(found.numpy()).min() > 0


def test_singular_values_of_complex_matrices_are_complex():
    x = tf.complex([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]])
    s, u, v = tf.raw_ops.Svd(input=x)
    assert s.dtype == u.dtype == v.dtype == tf.complex64
    np.testing.assert_allclose(u @ tf.linalg.diag(s) @ tf.linalg.adjoint(v), x, rtol=1e-5)
    s, u, v = tf.raw_ops.Svd(input=tf.cast(x, tf.complex128), compute_uv=False)
    assert s.dtype == u.dtype == v.dtype == tf.complex128 and u.shape == []


def test_cross_entropy_gives_the_losses_and_their_gradients():
    x = tf.constant([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    labels = tf.constant([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss, backprop = tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=labels)
    np.testing.assert_allclose(loss, [0.407606, 1.551445], rtol=1e-5)
    np.testing.assert_allclose(backprop, tf.nn.softmax(x) - labels, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(loss, x), backprop, rtol=1e-5)
    one_row = tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=labels[:1])
    np.testing.assert_allclose(one_row.loss, [0.407606, 1.551445], rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be broadcastable"):
        tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=[[1.0, 0.0]])


def row_of(values):
    places = [[0, i] for i in range(len(values))]
    return places, values, [1, len(values)]


def test_hashed_crosses():
    """The numbers are TensorFlow's."""
    (a, x, n) = (row_of(values) for values in (["a", "b"], ["x"], [3, -4]))
    five = [np.array([[5]], np.int64)]

    def crossed(first, second, buckets, strong, salt, dense=()):
        indices, values, shapes = zip(*([first] if second is None else [first, second]))
        found = tf.raw_ops.SparseCrossHashed(
            indices=[np.array(i, np.int64) for i in indices],
            values=[tf.constant(v, None if isinstance(v[0], str) else tf.int64) for v in values],
            shapes=[np.array(s, np.int64) for s in shapes],
            dense_inputs=list(dense),
            num_buckets=buckets,
            strong_hash=strong,
            salt=salt,
        )
        return found.output_values.numpy().tolist()

    assert crossed(a, x, 0, False, [137, 173]) == [598440913169127831, 4641000509844720313]
    assert crossed(a, x, 0, True, [137, 173]) == [385819649226098610, 5450380642045686839]
    assert crossed(n, x, 0, False, [137, 173]) == [708911551544077108, 2775893281385267915]
    assert crossed(n, None, 100, False, [1, 2], five) == [70, 94]
    assert crossed(a, None, 100, False, [1, 2], five) == [9, 60]
    with pytest.raises(tf.errors.InvalidArgumentError, match="strong_hash is for texts"):
        crossed(n, None, 100, True, [1, 2], five)


@pytest.mark.parametrize("overlapping", [False, True])
def test_gradients_of_fractional_pools(overlapping):
    x = np.random.default_rng(3).normal(size=(2, 7, 6, 3)).astype(np.float32)
    borders = {"row_pooling_sequence": [0, 2, 3, 5, 7], "col_pooling_sequence": [0, 1, 3, 4, 6]}

    def windows(cells):
        for i, j in np.ndindex(4, 4):
            rows, columns = borders.values()
            more = 1 if overlapping else 0
            yield i, j, cells[:, rows[i] : rows[i + 1] + more, columns[j] : columns[j + 1] + more]

    largest, dy = np.zeros((2, 4, 4, 3), np.float32), np.random.default_rng(4).normal(size=(2, 4, 4, 3))
    dy = dy.astype(np.float32)
    wanted_mean = np.zeros_like(x)
    for i, j, part in windows(x):
        largest[:, i, j] = part.max((1, 2))
    for i, j, part in windows(wanted_mean):
        part += dy[:, i, None, j, None] / (part.shape[1] * part.shape[2])
    wanted_largest = np.zeros_like(x)
    for (i, j, part), (_, _, cells) in zip(windows(wanted_largest), windows(x)):
        part += (cells == cells.max((1, 2), keepdims=True)) * dy[:, i, None, j, None]
    found = tf.raw_ops.FractionalMaxPoolGrad(
        orig_input=x, orig_output=largest, out_backprop=dy, overlapping=overlapping, **borders
    )
    np.testing.assert_allclose(found, wanted_largest, atol=1e-5)
    found = tf.raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=x.shape, out_backprop=dy, overlapping=overlapping, **borders
    )
    np.testing.assert_allclose(found, wanted_mean, atol=1e-5)


def test_fractional_pools_refuse_wrong_borders():
    given = {"orig_input_tensor_shape": [1, 6, 6, 1], "out_backprop": np.ones([1, 1, 1, 1], np.float32)}
    for rows, what in [([-1, 2], "must not be negative"), ([4, 2], "must ascend"), ([], "at least 2 elements")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"Row sequence.*{what}"):
            tf.raw_ops.FractionalAvgPoolGrad(row_pooling_sequence=rows, col_pooling_sequence=[0, 2], **given)
    with pytest.raises(tf.errors.InvalidArgumentError, match="orig_output is not what"):
        tf.raw_ops.FractionalMaxPoolGrad(
            orig_input=np.zeros([1, 6, 6, 1], np.float32), orig_output=given["out_backprop"],
            out_backprop=given["out_backprop"], row_pooling_sequence=[0, 2], col_pooling_sequence=[0, 2],
        )  # fmt: skip
