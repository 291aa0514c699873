"""Which operations run on the flat values of ragged tensors, and that all others refuse them."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.ops.ragged import ragged_tensor
from tapeflow._src.ops.ragged.elementwise import is_elementwise
from tapeflow._src.types.elementwise_names import BINARY, UNARY

_ROWS = [[3.0, -1.5], [], [0.5, 2.0, 4.0]]
_ROWS_OF_VECTORS = tf.RaggedTensor.from_row_splits([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 3])
_OTHERS = {
    "Betainc", "Bitcast", "Cast", "CheckNumerics", "Complex", "ComplexAbs", "Identity", "Imag", "LeakyRelu",
    "LeakyReluGrad", "Real", "SelectV2", "StopGradient", "StraightThrough",
}  # fmt: skip
_OWN_RULES = {*ragged_tensor._operation_by_name, "GatherV2"}


def _find(path):
    found = tf
    for part in path.split("."):
        found = getattr(found, part)
    return found


def test_primitives_that_run_on_flat_values_are_those_of_the_elementwise_families():
    for name, function, raw, _, facts in primitives._rows:
        expected = facts["family"] in ("unary", "binary") or name in _OTHERS
        assert is_elementwise(function) == is_elementwise(raw) == expected, name


@pytest.mark.parametrize("name", sorted(primitives.facts_by_name))
def test_other_primitives_refuse_a_ragged_argument(name):
    function = getattr(primitives, name)
    kinds = primitives.facts_by_name[name]["kinds"]
    if is_elementwise(function) or function.__name__ in _OWN_RULES or "tensor" not in kinds[:1]:
        return
    x = tf.ragged.constant(_ROWS)
    with pytest.raises((TypeError, ValueError)):
        function(*[x if kind == "tensor" else 0 for kind in kinds])


@pytest.mark.parametrize("path", sorted({*UNARY} - {"nn.log_softmax", "math.nextafter"}))
def test_unary_functions_equal_those_of_the_flat_values(path):
    function = _find(path)
    more = {
        "cast": ("float64",), "clip_by_value": (0.0, 1.0), "debugging.check_numerics": ("message",),
        "dtypes.saturate_cast": ("int32",), "image.adjust_brightness": (0.5,),
        "image.convert_image_dtype": ("float64",), "image.stateless_random_brightness": (0.5, [1, 2]),
    }.get(path, ())  # fmt: skip
    values = {"bitwise.invert": [1, 2, 3], "math.logical_not": [True, False, True]}.get(path, [0.25, 0.5, 0.75])
    if path.startswith(("strings", "io")) or "random_brightness" in path:
        return  # of strings, or another result each time
    x = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])
    result = function(x, *more)
    assert isinstance(result, tf.RaggedTensor)
    np.testing.assert_array_equal(result.flat_values, function(x.flat_values, *more))
    np.testing.assert_array_equal(result.row_splits, x.row_splits)


@pytest.mark.parametrize("path", BINARY)
def test_binary_functions_equal_those_of_the_flat_values(path):
    function = _find(path)
    dtype = "int32" if path.startswith("bitwise") or "truncate" in path else "float32"
    dtype = "bool" if "logical" in path else dtype
    x = tf.RaggedTensor.from_row_splits(tf.cast([1, 2, 3], dtype), [0, 2, 2, 3])
    y = tf.RaggedTensor.from_row_splits(tf.cast([2, 1, 2], dtype), [0, 2, 2, 3])
    if path == "math.scalar_mul":
        assert function(2.0, x).to_list() == [[2.0, 4.0], [], [6.0]]
        return
    given = {"labels": x, "logits": y} if "logits" in path else {}
    result = function(**given) if given else function(x, y)
    flat = {key: value.flat_values for key, value in given.items()}
    expected = function(**flat) if flat else function(x.flat_values, y.flat_values)
    np.testing.assert_array_equal(result.flat_values, expected)
    np.testing.assert_array_equal(result.row_splits, x.row_splits)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.sort(x),
        lambda x: tf.argmax(x),
        lambda x: tf.transpose(x),
        lambda x: tf.pad(x, [[0, 0], [1, 1]]),
        lambda x: tf.norm(x),
        lambda x: tf.linalg.det(x),
        lambda x: tf.linalg.trace(x),
        lambda x: tf.linalg.band_part(x, 0, 0),
        lambda x: tf.nn.log_softmax(x),
        lambda x: tf.broadcast_to(x, [3, 3]),
        lambda x: tf.roll(x, 1, 0),
        lambda x: tf.unique(x),
        lambda x: tf.math.top_k(x),
        lambda x: tf.searchsorted(x, x),
        lambda x: tf.math.segment_sum(x, [0, 0, 1]),
        lambda x: tf.math.cumprod(x),
        lambda x: tf.image.flip_left_right(x),
        lambda x: tf.signal.fft(x),
        lambda x: tf.tensor_scatter_nd_update(x, [[0]], [1.0]),
        lambda x: tf.reduce_sum([x, x]),
        lambda x: tf.nn.l2_normalize(x),
    ],
)
def test_functions_of_rows_refuse_ragged_tensors(call):
    with pytest.raises((TypeError, ValueError)):
        call(tf.ragged.constant(_ROWS))


def test_dense_operand_must_fit_every_row():
    x = _ROWS_OF_VECTORS
    assert (x + tf.constant([1.0, 2.0])).to_list() == [[[2.0, 4.0]], [[4.0, 6.0], [6.0, 8.0]]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        x + tf.ones([3, 2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.ragged.constant(_ROWS) + [1.0, 2.0, 3.0, 4.0, 5.0]
    assert (tf.ragged.constant(_ROWS) + [[1.0], [2.0], [3.0]]).to_list() == [[4.0, -0.5], [], [3.5, 5.0, 7.0]]


@pytest.mark.parametrize("rows", [3, None])
def test_dense_operand_in_a_function(rows):
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None]), tf.TensorSpec([rows, None])])
    def total(x, y):
        return x + y

    x = tf.ragged.constant(_ROWS)
    assert total(x, [[1.0], [2.0], [3.0]]).to_list() == [[4.0, -0.5], [], [3.5, 5.0, 7.0]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        total(x, tf.ones([3, 3]))


def test_operands_of_other_ragged_ranks_are_refused():
    x = tf.ragged.constant([[[1.0], [2.0]], [[3.0]]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        x + tf.ragged.constant([[1.0, 2.0], [3.0]])


def test_assertions_compare_flat_values():
    x = tf.ragged.constant(_ROWS)
    tf.debugging.assert_equal(x, x)
    tf.debugging.assert_greater(x, -2.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_greater(x, 0.0)


def test_gradient_of_abs():
    values = tf.Variable([3.0, -1.5, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.abs(tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])))
    np.testing.assert_array_equal(tape.gradient(y, values), [1.0, -1.0, 1.0])


def test_gradient_of_a_product_with_a_dense_tensor_is_sparse():
    values = tf.constant([3.0, -1.5, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        y = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3]) * tf.constant([[1.0], [2.0], [3.0]])
    dx = tape.gradient(y.flat_values, values)
    assert isinstance(dx, tf.IndexedSlices)
    np.testing.assert_array_equal(tf.convert_to_tensor(dx), [1.0, 1.0, 3.0])


def test_where_with_a_dense_condition_or_dense_values():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert tf.where([[True], [False]], ragged, -ragged).to_list() == [[1.0, 2.0], [-3.0]]
    assert tf.where(ragged > 1.0, [[5.0], [6.0]], 0.0).to_list() == [[0.0, 5.0], [6.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a bool tensor"):
        tf.where(ragged, ragged, ragged)
