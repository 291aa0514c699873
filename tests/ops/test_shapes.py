"""How every primitive is called: shapes and dtypes of results, argument names, `name=`, raw_ops, and errors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name
from tests.ops import sample_makers, samples
from tests.ops.sample_makers import Call, Maker
from tests.ops.samples import builders, dtypes_of

BINARY = [name for name, facts in facts_by_name.items() if facts["family"] == "binary"]
REDUCTIONS = [name for name, facts in facts_by_name.items() if facts["family"] == "reduction"]
ALL_DTYPES = tuple(dtypes_of("Identity"))


def parameters(function: Any) -> list[str]:
    """The argument names of a primitive, `name` aside."""
    text = function.__text_signature__.strip("()")
    return [part.split("=")[0].strip() for part in text.split(",") if part.strip() != "*"][:-1]


def public_name(name: str) -> str:
    """The word that messages start with: the shortest public path, else the operation's own name."""
    return getattr(primitives, name).__name__


def values(result: Any) -> list[np.ndarray]:
    return [np.asarray(y) for y in tf.nest.flatten(result)]


def by_keyword(name: str, call: Call) -> dict[str, Any]:
    return dict(zip(parameters(getattr(primitives, name)), call.args)) | call.kwargs


def sample(name: str, dtype: str | None = None) -> Call:
    """The first sample, of the same shape for all dtypes."""
    return builders(name)[0](Maker(0, dtype or dtypes_of(name)[0], lambda options: options[-1]))


def assert_same(first: Any, second: Any, what: str) -> None:
    for a, b in zip(values(first), values(second), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=what)


# ---------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("name", facts_by_name)
def test_shape_does_not_depend_on_dtype(name):
    """One shape for all dtypes; the result's dtype is the operand's, its real or complex partner, or a fixed one."""
    dtypes, shapes, results = dtypes_of(name), set(), []
    if name in SHAPE_FOLLOWS_VALUES:
        dtypes = dtypes[:1]
    for dtype in dtypes:
        outputs = tf.nest.flatten(sample(name, dtype).run(name))
        shapes.add(tuple(tuple(y.shape) for y in outputs))
        results.append([y.dtype.name for y in outputs])
        for y in outputs:
            assert np.asarray(y).shape == tuple(y.shape)
            assert np.asarray(y).dtype == y.dtype.as_numpy_dtype
    assert len(shapes) == 1, f"{name}: {shapes}"
    for column in zip(*results):
        kept = [result in (dtype, PARTNER.get(dtype)) for result, dtype in zip(column, dtypes)]
        assert all(kept) or len(set(column)) == 1, f"{name}: {dict(zip(dtypes, column))}"


SHAPE_FOLLOWS_VALUES = {"Where", "DistinctElements", "DynamicPartition", "NonMaxSuppressionV5", "CTCBeamSearchDecoder"}
PARTNER = {"complex64": "float32", "complex128": "float64", "float32": "complex64", "float64": "complex128"}


@pytest.mark.parametrize("name", BINARY)
def test_binary_shapes_broadcast(name):
    m = Maker(0, dtypes_of(name)[0])
    left, right = samples.binary_domain(name)
    for first, second in [((2, 1), (3,)), ((), (2, 3)), ((4, 1, 3), (2, 1)), ((0, 1), (1, 3)), ((1,), (1,))]:
        y = getattr(primitives, name)(m(*first, within=left), m(*second, within=right))
        assert tuple(y.shape) == np.broadcast_shapes(first, second)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_drop_or_keep_axes(name):
    x = Maker(0, dtypes_of(name)[0])(2, 3, 4)
    for axis in (None, 0, -1, [0, 2], [-1, 0], [1], []):
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        as_tensor = axis if axis is None else tf.constant(axis, tf.int32)
        for keepdims in (False, True):
            expected = np.sum(np.ones(x.shape), numpy_axis, keepdims=keepdims).shape
            assert tuple(getattr(primitives, name)(x, axis=axis, keepdims=keepdims).shape) == expected
            assert tuple(getattr(primitives, name)(x, axis=as_tensor, keepdims=keepdims).shape) == expected


# --------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", facts_by_name)
def test_arguments_by_keyword_and_name(name):
    function, call = getattr(primitives, name), sample(name)
    expected = call.run(name)
    assert_same(function(**by_keyword(name, call)), expected, f"{name} by keyword")
    assert_same(function(*call.args, **call.kwargs, name="mine"), expected, f"{name} with name=")
    with pytest.raises(TypeError, match="nonsense"):
        function(*call.args, **call.kwargs, nonsense=1)


@pytest.mark.parametrize("name", [name for name in dir(tf.raw_ops) if name[0].isupper()])
def test_raw_ops_take_keywords_only(name):
    raw = getattr(tf.raw_ops, name)
    with pytest.raises(TypeError):
        raw(1.0)
    if name in facts_by_name and facts_by_name[name]["family"] in ("unary", "binary"):
        call = sample(name)
        # The raw operations of gradients refuse to broadcast, as TensorFlow's do.
        args = np.broadcast_arrays(*call.args) if name.endswith("Grad") else call.args
        keywords = dict(zip(inspect.signature(raw).parameters, args))
        assert_same(raw(**keywords), call.run(name), f"raw_ops.{name}")


@pytest.mark.parametrize("name", facts_by_name)
def test_missing_arguments_are_named(name):
    signature = getattr(primitives, name).__text_signature__
    first = parameters(getattr(primitives, name))[0]
    assert signature.endswith("name=None)")
    with pytest.raises(TypeError, match=first):
        getattr(primitives, name)()


@pytest.mark.parametrize("name", [n for n in facts_by_name if "float64" in dtypes_of(n)])
def test_lists_and_variables_are_converted(name):
    """What NumPy arrays are taken for, tensors and variables are taken for too."""
    call = sample(name, "float64")
    expected = call.run(name)
    for convert in (tf.constant, tf.Variable):
        args = [convert(a) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in call.args]
        assert_same(getattr(primitives, name)(*args, **call.kwargs), expected, f"{name} of {convert.__name__}")


# ------------------------------------------------------------------------------------------------------------ errors


def forbidden(name: str) -> tuple[int, str] | None:
    """A tensor argument, and a dtype that it refuses."""
    for i, dtypes in enumerate(facts_by_name[name]["dtypes"]):
        refused = [dtype for dtype in ALL_DTYPES if dtype not in dtypes]
        if refused:
            return i, refused[-1]
    return None


@pytest.mark.parametrize("name", [n for n in facts_by_name if forbidden(n)])
def test_a_wrong_dtype_is_an_error(name):
    call = sample(name)
    argument, dtype = forbidden(name)
    arrays = [i for i, a in enumerate(call.args) if isinstance(a, np.ndarray)]
    place = arrays[argument] if argument < len(arrays) else None
    if place is None:
        pytest.skip("the tensors of this primitive stand in a list or are given by keyword")
    args = list(call.args)
    args[place] = tf.zeros(np.shape(args[place]), getattr(tf, dtype)) if dtype != "string" else tf.constant("a")
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)) as raised:
        getattr(primitives, name)(*args, **call.kwargs)
    assert_names(name, raised, dtype)


def assert_names(name: str, raised: Any, *words: str) -> None:
    message = str(raised.value)
    assert isinstance(raised.value, tf.errors.InvalidArgumentError), f"{name}: {type(raised.value).__name__}: {message}"
    starts = (public_name(name), name, *paths_of(name))
    called = message.partition(": ")[0]  # what has no public path of its own is called by its function's
    assert called in starts or called.endswith(f".{public_name(name)}"), (
        f"the message must start with {starts}: {message}"
    )
    for word in words:
        assert word in message, f"the message must contain {word}: {message}"


def paths_of(name: str) -> list[str]:
    return [path for path, function in primitives.definitions if function is getattr(primitives, name)]


@pytest.mark.parametrize("name", BINARY)
def test_shapes_that_do_not_broadcast(name):
    m = Maker(0, dtypes_of(name)[0])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        getattr(primitives, name)(m(2, 3), m(4, 3))
    assert_names(name, raised, "Incompatible shapes: [2,3] vs. [4,3]")


@pytest.mark.parametrize("name", [n for n in BINARY if len(dtypes_of(n)) > 1])
def test_dtypes_that_differ(name):
    first, second = dtypes_of(name)[:2]
    x, y = (tf.constant(Maker(0, dtype)(3)) for dtype in (first, second))
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        getattr(primitives, name)(x, y)
    assert_names(name, raised, "cannot compute", "as input #1(zero-based) was expected to be a")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_axes_that_do_not_exist(name):
    x = Maker(0, dtypes_of(name)[0])(2, 3)
    for axis in (2, -3, [0, 0]):
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            getattr(primitives, name)(x, axis)
        assert_names(name, raised, "Invalid reduction")


PUBLIC_FUNCTIONS = {name for name, value in vars(tf).items() if callable(value)}
PUBLIC_FUNCTIONS |= {path for path, _ in primitives.definitions}

# Calls with shapes that cannot be, and what the message must say; the families have theirs above.
misshapen: dict[str, tuple[Call, str]] = {
    "BroadcastTo": (sample_makers.call(np.ones([2]), [3]), "Incompatible shapes: [2] vs. [3]"),
    "ConcatV2": (
        sample_makers.call([np.ones([2, 2]), np.ones([3, 3])], 0),
        "in both shapes must be equal",
    ),
    "Cumsum": (sample_makers.call(np.ones([2]), 1), "1"),
    "ExpandDims": (sample_makers.call(np.ones([2]), 3), "dim index 3"),
    "GatherNd": (sample_makers.call(np.ones([2]), np.array([[5]])), "indices[0] = [5]"),
    "GatherV2": (sample_makers.call(np.ones([2]), np.array([5])), "indices[0] = 5 is not in [0, 2)"),
    "MatMul": (
        sample_makers.call(np.ones([2, 3]), np.ones([2, 3])),
        "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]",
    ),
    "Pack": (sample_makers.call([np.ones([2]), np.ones([3])]), "Shapes of all inputs must match"),
    "PadV2": (sample_makers.call(np.ones([2]), [1, 1, 1, 1], np.ones([])), "rank of inputs"),
    "Reshape": (sample_makers.call(np.ones([4]), [3]), "Input to reshape is a tensor with 4 values"),
    "ReverseV2": (sample_makers.call(np.ones([2]), [1]), "1"),
    "RollAxis": (sample_makers.call(np.ones([2]), 1, 1), "1"),
    "ScatterNd": (sample_makers.call(np.array([[0]]), np.ones([2]), [3]), "updates"),
    "SelectV2": (
        sample_makers.call(np.array([True, False]), np.ones([3]), np.ones([3])),
        "must be broadcastable",
    ),
    "SplitV": (sample_makers.call(np.ones([3]), [1, 1]), "must either match input shape"),
    "Squeeze": (sample_makers.call(np.ones([2]), [0]), "Can not squeeze dim[0]"),
    "Tile": (sample_makers.call(np.ones([2]), [1, 1]), "multiples"),
    "Transpose": (sample_makers.call(np.ones([2, 2]), [0]), "size"),
    "UnsortedSegmentSum": (sample_makers.call(np.ones([2]), np.array([0, 5]), 3), "segment_ids"),
}


@pytest.mark.parametrize("name", misshapen)
def test_shapes_that_cannot_be(name):
    call, words = misshapen[name]
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        call.run(name)
    message = str(raised.value)
    assert words in message
    function = message.partition(":")[0]
    assert function in PUBLIC_FUNCTIONS or function == name, f"'{function}' is no public function: {message}"


@pytest.mark.parametrize("operation", ["-", "*", "/", "//", "%", "**", "<", ">="])
def test_python_values_that_cannot_take_the_dtype_beside_them(operation):
    compute = eval(f"lambda x, y: x {operation} y")
    for x, y in ((tf.constant([1, 2]), 2.5), (tf.constant([1.0]), "a"), (2.5, tf.constant([1]))):
        with pytest.raises(TypeError, match=r"Cannot convert (2.5|'a') to EagerTensor of dtype (int32|float)"):
            compute(x, y)
        with pytest.raises(TypeError, match=r"Expected (int32|float32), but got (2.5|'a') of type '(float|str)'"):
            tf.function(lambda x=x, y=y: compute(x, y))()


def test_sums_and_products_of_matrices_leave_the_complaint_to_the_operation():
    for compute in (lambda: tf.constant([[1]]) + 2.5, lambda: tf.constant([[1]]) @ [[2.5]]):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="was expected to be a int32 tensor but is a float tensor"
        ):
            compute()


def test_dtypes_that_differ_in_a_graph():
    x, y = tf.constant([1.0]), tf.constant([1])
    for function, words in (
        (lambda: x + y, "Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of argument 'x'"),
        (lambda: tf.where([True], x, y), "Input 'e' of 'SelectV2' Op has type int32 that does not match type float32"),
        (lambda: tf.concat([x, y], 0), "have types [float32, int32] that don't all match"),
        (
            lambda: tf.logical_not(x),
            "Input 'x' of 'LogicalNot' Op has type float32 that does not match expected type of",
        ),
        (lambda: tf.sqrt(y), "Value passed to parameter 'x' has DataType int32 not in list of allowed values"),
    ):
        with pytest.raises(TypeError) as raised:
            tf.function(function)()
        assert words in str(raised.value)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"ConcatV2 as input #1\(zero-based\) was expected to be a float"
    ):
        tf.concat([x, y], 0)


def test_what_is_wrong_while_tracing_is_an_invalid_argument_and_a_value_error():
    for kind in (ValueError, tf.errors.InvalidArgumentError):
        with pytest.raises(kind, match=r"Incompatible shapes: \[2\] vs. \[3\]"):
            tf.function(lambda: tf.zeros([2]) + tf.zeros([3]))()


def test_casts_of_text_and_wrong_permutations():
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float is not supported"):
        tf.cast("1.5", tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"1 is missing from \{0,0\}"):
        tf.transpose(tf.zeros([2, 2]), [0, 0])
    with pytest.raises(ValueError, match=r"Argument `axis` = 0 not in range \[0, 0\)"):
        tf.unstack(tf.constant(1.0))


def test_truth_of_an_empty_tensor():
    assert not tf.zeros([0])


def test_shapes_of_scalars_broadcast():
    scalar = tf.shape(tf.constant(1.0))
    assert tf.broadcast_dynamic_shape(scalar, scalar).numpy().tolist() == []
    assert tf.broadcast_dynamic_shape(scalar, [2, 3]).numpy().tolist() == [2, 3]
    assert tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([3])).numpy().tolist() == [2, 3]
