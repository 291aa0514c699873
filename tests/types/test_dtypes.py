"""`tf.DType` and `tf.as_dtype` give what TensorFlow 2.21 gives."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.types.dtypes import dtype_by_enum

ENUMS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17,
    "complex128": 18, "float16": 19, "resource": 20, "variant": 21, "uint32": 22, "uint64": 23,
}  # fmt: skip


@pytest.mark.parametrize("name", ENUMS)
def test_each_type_exists_once_under_all_its_names(name):
    dtype = getattr(tf, name)
    assert dtype is getattr(tf.dtypes, name) is tf.as_dtype(name) is tf.as_dtype(ENUMS[name]) is tf.DType(ENUMS[name])
    assert dtype is dtype_by_enum[ENUMS[name]]
    assert (dtype.name, dtype.as_datatype_enum, int(dtype), hash(dtype)) == (name, *[ENUMS[name]] * 3)
    assert repr(dtype) == f"tf.{name}"
    assert str(dtype) == f"<dtype: '{name}'>"
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype


def test_aliases():
    assert tf.half is tf.float16 is tf.dtypes.half
    assert tf.double is tf.float64 is tf.dtypes.double
    assert tf.experimental.float8_e5m2 is tf.dtypes.experimental.float8_e5m2
    assert not hasattr(tf, "int4")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("half", "float16"),
        ("double", "float64"),
        ("float", "float32"),
        (float, "float32"),
        (bool, "bool"),
        (object, "string"),
        (np.str_, "string"),
        (np.dtype("S3"), "string"),
        (np.dtype("U3"), "string"),
        (np.float32, "float32"),
        (np.dtype(">f4"), "float32"),
        (np.longlong, "int64"),
        (np.ulonglong, "uint64"),
        (np.intp, "int64"),
        (np.array([1.0]), "float64"),
        (np.float32(1), "float32"),
        (np.dtype([("qint8", np.int8)]), "qint8"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        (ml_dtypes.int4, "int4"),
        ("int4", "int4"),
        ("float32_ref", "float32_ref"),
        (101, "float32_ref"),
    ],
    ids=repr,
)
def test_as_dtype(value, name):
    assert tf.as_dtype(value).name == name


@pytest.mark.parametrize(
    "value",
    ["float99", None, int, complex, str, bytes, "<f4", "f", "int", "str", "", 0, 1000, [1], list, b"float32",
     np.longdouble, np.datetime64, np.dtype([("a", "i4")]), np.void],
    ids=repr,
)  # fmt: skip
def test_as_dtype_refuses(value):
    with pytest.raises(TypeError) as error:
        tf.as_dtype(value)
    assert str(error.value) == f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType."


def test_equality():
    assert tf.float32 == np.float32 == tf.float32
    assert tf.float32 == "float32" != tf.float64
    assert np.dtype("float32") == tf.float32 == np.dtype("float32")
    assert tf.float32.__eq__(float)
    assert not tf.float64.__eq__(float)
    assert tf.float32 != "no such type"
    assert tf.float32 != object()
    assert (tf.float32 == None) is False  # noqa: E711
    assert tf.float32 == 1 != tf.int32
    assert tf.as_dtype("float32_ref") != tf.float32


def test_kinds():
    names = {name: {n for n in ENUMS if getattr(getattr(tf, n), f"is_{name}")} for name in (
        "floating", "integer", "unsigned", "complex", "bool", "quantized", "numeric", "numpy_compatible")}  # fmt: skip
    quantized = {"qint8", "quint8", "qint16", "quint16", "qint32"}
    assert names["floating"] == {"float16", "bfloat16", "float32", "float64"}
    assert names["unsigned"] == {"uint8", "uint16", "uint32", "uint64"}
    assert names["integer"] == names["unsigned"] | {"int8", "int16", "int32", "int64"}
    assert names["complex"] == {"complex64", "complex128"}
    assert names["bool"] == {"bool"}
    assert names["quantized"] == quantized
    assert names["numeric"] == names["floating"] | names["integer"] | names["complex"] | quantized
    assert names["numpy_compatible"] == ENUMS.keys() - {"resource", "variant"}
    assert quantized == {dtype.name for dtype in tf.dtypes.QUANTIZED_DTYPES}
    assert not tf.as_dtype("int4").is_numeric
    assert tf.as_dtype("uint4").is_unsigned


def test_numpy_types_and_sizes():
    for name in ENUMS.keys() - {"resource", "variant", "string"}:
        dtype = getattr(tf, name)
        assert dtype.size == np.dtype(dtype.as_numpy_dtype).itemsize
        assert tf.as_dtype(dtype.as_numpy_dtype) is dtype
    assert tf.string.as_numpy_dtype is object
    assert tf.string.size == tf.variant.size == 0
    with pytest.raises(KeyError, match="20"):
        _ = tf.resource.as_numpy_dtype


def test_real_and_base_types():
    assert tf.complex64.real_dtype is tf.float32
    assert tf.complex128.real_dtype is tf.float64
    assert tf.int32.real_dtype is tf.int32
    reference = tf.as_dtype("float32_ref")
    assert (reference.base_dtype, tf.float32.base_dtype) == (tf.float32, tf.float32)
    assert tf.float32.is_compatible_with(reference)
    assert tf.float32._as_ref is reference


def test_extremes():
    assert (tf.int32.min, tf.int32.max, type(tf.int32.max)) == (-(2**31), 2**31 - 1, int)
    assert tf.uint64.max == 2**64 - 1
    assert tf.float32.max == np.finfo(np.float32).max
    assert type(tf.float32.max) is np.float32
    assert type(tf.bfloat16.min) is ml_dtypes.bfloat16
    assert float(tf.as_dtype("float8_e4m3fn").max) == 448
    assert tf.as_dtype("int4").min == -8
    assert (tf.float32.limits, tf.int8.limits, tf.bool.limits) == ((0, 1), (0, 127), (0, True))


def test_extremes_that_do_not_exist():
    with pytest.raises(TypeError, match=r"Cannot find minimum value of <dtype: 'string'> with type <dtype: 'string'>."):
        _ = tf.string.min
    with pytest.raises(TypeError, match="Cannot find maximum value of <dtype: 'qint8'> with quantized type"):
        _ = tf.qint8.max
    with pytest.raises(TypeError, match=r"Cannot find maximum value of <dtype: 'variant'>\."):
        _ = tf.variant.max
    with pytest.raises(ValueError, match=r"<dtype: 'float16'> does not have defined limits."):
        _ = tf.float16.limits
    with pytest.raises(AttributeError, match="'DType' object has no attribute 'foo'"):
        _ = tf.float32.foo


def test_wrong_number():
    with pytest.raises(TypeError, match="999 does not correspond to a valid tensorflow::DataType"):
        tf.DType(999)


def test_types_of_traces():
    assert tf.float32.is_subtype_of(tf.float32)
    assert not tf.float32.is_subtype_of(tf.float64)
    assert tf.float32.most_specific_common_supertype([tf.float32]) is tf.float32
    assert tf.float32.most_specific_common_supertype([tf.int32]) is None
