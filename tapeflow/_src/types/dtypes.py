"""`tf.DType`, its one instance per element type, and `tf.as_dtype`; casting belongs to the operations."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tapeflow._src.namespace import public

_ml_dtypes: Any = ml_dtypes  # `finfo` and `iinfo` have no annotations
_REFERENCE = 100  # enum of `float32_ref` minus enum of `float32`


@public("DType", "dtypes.DType")
class DType:
    """The type of a tensor's elements; each exists once, so `is` and `==` agree between two of them.

    >>> tf.DType(1)
    tf.float32
    """

    __slots__ = (
        "__weakref__",
        "_is_ref_dtype",
        "as_datatype_enum",
        "as_numpy_dtype",
        "base_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numeric",
        "is_numpy_compatible",
        "is_quantized",
        "is_unsigned",
        "limits",
        "max",
        "min",
        "name",
        "real_dtype",
        "size",
    )

    # Plain attributes, because Keras reads them on nearly every operation.
    name: str
    as_datatype_enum: int
    as_numpy_dtype: Any
    _is_ref_dtype: bool
    size: int
    is_bool: bool
    is_complex: bool
    is_floating: bool
    is_integer: bool
    is_numeric: bool
    is_numpy_compatible: bool
    is_quantized: bool
    is_unsigned: bool
    base_dtype: DType
    real_dtype: DType
    limits: tuple[int, Any]
    max: Any
    min: Any

    def __new__(cls, type_enum: int) -> DType:
        dtype = _find(int(type_enum))
        if dtype is None:
            raise TypeError(f"{type_enum} does not correspond to a valid tensorflow::DataType")
        return dtype

    def __getattr__(self, name: str) -> Any:
        """Answers a slot that is still empty: computes `min`, `max` and `limits` at first use, or raises."""
        if name in ("min", "max"):
            value = self._extreme(name)
        elif name == "limits":
            value = self._find_limits()
        elif name == "as_numpy_dtype":
            raise KeyError(self.as_datatype_enum)
        else:
            raise AttributeError(f"'DType' object has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def _extreme(self, which: str) -> Any:
        if self.is_floating:
            return self.as_numpy_dtype(getattr(_ml_dtypes.finfo(self.as_numpy_dtype), which))
        if self.is_integer:
            return int(getattr(_ml_dtypes.iinfo(self.as_numpy_dtype), which))
        message = f"Cannot find {which}imum value of {self}"
        if self.is_quantized:
            message += f" with quantized type {self.base_dtype}"
        elif self.is_numpy_compatible:
            message += f" with type {self.base_dtype}"
        raise TypeError(f"{message}.")

    def _find_limits(self) -> tuple[int, Any]:
        """The range of values that images of this type use, from 0."""
        if self.base_dtype.name in ("float32", "float64"):
            return 0, 1
        if self.is_bool:
            return 0, True
        if self.is_integer and self.is_numeric:
            return 0, self.max
        if not self.is_numpy_compatible:
            raise KeyError(self.as_datatype_enum)
        raise ValueError(f"{self} does not have defined limits.")

    @property
    def _type_enum(self) -> int:
        return self.as_datatype_enum

    @property
    def _as_ref(self) -> DType:
        return self if self._is_ref_dtype else DType(self.as_datatype_enum + _REFERENCE)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a value of type `other` can stand where this type is asked for.

        >>> tf.float32.is_compatible_with("float32")
        True
        """
        other = as_dtype(other)
        return self is other or (self.base_dtype is other.base_dtype and other._is_ref_dtype)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether the two types are equal: element types have no other subtypes."""
        return self is other

    def most_specific_common_supertype(self, types: Any) -> DType | None:
        """This type if all of `types` are equal to it, else None."""
        return self if all(self is other for other in types) else None

    def placeholder_value(self, placeholder_context: Any) -> None:
        """None: no value stands for an element type while a function is traced."""
        return

    def cast(self, value: Any, cast_context: Any) -> Any:
        """`value` itself, which must be None."""
        assert value is None, f"Can not cast {value!r} to type {self!r}"
        return value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if other is None:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


dtype_by_enum: dict[int, DType] = {}
_dtype_by_key: dict[Any, DType] = {}


def _make(name: str, enum: int, numpy_type: Any, kind: str, size: int, base: DType | None = None) -> DType:
    dtype = object.__new__(DType)
    dtype.name = name
    dtype.as_datatype_enum = enum
    if numpy_type is not None:
        dtype.as_numpy_dtype = numpy_type
    dtype.size = size
    dtype.is_bool = kind == "bool"
    dtype.is_complex = kind == "complex"
    dtype.is_floating = kind in ("float", "small float")
    dtype.is_integer = kind in ("int", "uint", "small int", "small uint")
    dtype.is_numeric = kind in ("float", "int", "uint", "complex", "quantized")
    dtype.is_numpy_compatible = numpy_type is not None
    dtype.is_quantized = kind == "quantized"
    dtype.is_unsigned = kind in ("uint", "small uint")
    dtype._is_ref_dtype = base is not None
    dtype.base_dtype = base or dtype
    dtype.real_dtype = dtype
    if dtype.is_complex:
        dtype.real_dtype = dtype_by_enum[1 if size == 8 else 2]
    _dtype_by_key[name] = _dtype_by_key[enum] = dtype
    return dtype


def _find(key: Any) -> DType | None:
    """The type of that name or number; a reference type (`float32_ref`) is made when it is first asked for."""
    dtype = _dtype_by_key.get(key)
    if dtype is not None:
        return dtype
    if isinstance(key, str) and key.endswith("_ref"):
        base = _dtype_by_key.get(key.removesuffix("_ref"))
    elif isinstance(key, int):
        base = dtype_by_enum.get(key - _REFERENCE)
    else:
        return None
    if base is None:
        return None
    enum, kind = base.as_datatype_enum, _kind_by_enum[base.as_datatype_enum]
    numpy_type = base.as_numpy_dtype if base.is_numpy_compatible else None
    return _make(f"{base.name}_ref", enum + _REFERENCE, numpy_type, kind, base.size, base)


def _quantized(name: str, numpy_type: Any) -> np.dtype:
    """NumPy's view of a quantized type: a structure with one field, so that no arithmetic applies to it."""
    return np.dtype([(name, numpy_type)])


# The numbers are those of TensorFlow's DataType, which files and the C++ core use as well.
_TABLE: tuple[tuple[str, int, Any, str, int], ...] = (
    ("float32", 1, np.float32, "float", 4),
    ("float64", 2, np.float64, "float", 8),
    ("int32", 3, np.int32, "int", 4),
    ("uint8", 4, np.uint8, "uint", 1),
    ("int16", 5, np.int16, "int", 2),
    ("int8", 6, np.int8, "int", 1),
    ("string", 7, object, "string", 0),
    ("complex64", 8, np.complex64, "complex", 8),
    ("int64", 9, np.int64, "int", 8),
    ("bool", 10, np.bool_, "bool", 1),
    ("qint8", 11, _quantized("qint8", np.int8), "quantized", 1),
    ("quint8", 12, _quantized("quint8", np.uint8), "quantized", 1),
    ("qint32", 13, _quantized("qint32", np.int32), "quantized", 4),
    ("bfloat16", 14, ml_dtypes.bfloat16, "float", 2),
    ("qint16", 15, _quantized("qint16", np.int16), "quantized", 2),
    ("quint16", 16, _quantized("quint16", np.uint16), "quantized", 2),
    ("uint16", 17, np.uint16, "uint", 2),
    ("complex128", 18, np.complex128, "complex", 16),
    ("float16", 19, np.float16, "float", 2),
    ("resource", 20, None, "opaque", 0),
    ("variant", 21, None, "opaque", 0),
    ("uint32", 22, np.uint32, "uint", 4),
    ("uint64", 23, np.uint64, "uint", 8),
    ("float8_e5m2", 24, ml_dtypes.float8_e5m2, "small float", 1),
    ("float8_e4m3fn", 25, ml_dtypes.float8_e4m3fn, "small float", 1),
    ("float8_e4m3fnuz", 26, ml_dtypes.float8_e4m3fnuz, "small float", 1),
    ("float8_e4m3b11fnuz", 27, ml_dtypes.float8_e4m3b11fnuz, "small float", 1),
    ("float8_e5m2fnuz", 28, ml_dtypes.float8_e5m2fnuz, "small float", 1),
    ("int4", 29, ml_dtypes.int4, "small int", 1),
    ("uint4", 30, ml_dtypes.uint4, "small uint", 1),
    ("int2", 31, ml_dtypes.int2, "small int", 1),
    ("uint2", 32, ml_dtypes.uint2, "small uint", 1),
    ("float4_e2m1fn", 33, ml_dtypes.float4_e2m1fn, "small float", 1),
)
_kind_by_enum = {enum: kind for _, enum, _, kind, _ in _TABLE}

for _name, _enum, _numpy_type, _kind, _size in _TABLE:
    dtype_by_enum[_enum] = _dtype = _make(_name, _enum, _numpy_type, _kind, _size)
    if _numpy_type is not None:
        _dtype_by_key[_numpy_type] = _dtype
    if _name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2")):
        public(f"dtypes.experimental.{_name}", f"experimental.{_name}")(_dtype)
    else:
        public(_name, f"dtypes.{_name}")(_dtype)

float32, float64, float16 = dtype_by_enum[1], dtype_by_enum[2], dtype_by_enum[19]
bfloat16 = dtype_by_enum[14]
int8, int16, int32, int64 = dtype_by_enum[6], dtype_by_enum[5], dtype_by_enum[3], dtype_by_enum[9]
uint8, uint16, uint32, uint64 = dtype_by_enum[4], dtype_by_enum[17], dtype_by_enum[22], dtype_by_enum[23]
complex64, complex128 = dtype_by_enum[8], dtype_by_enum[18]
bool_, string = dtype_by_enum[10], dtype_by_enum[7]
resource, variant = dtype_by_enum[20], dtype_by_enum[21]

half = public("half", "dtypes.half")(float16)
double = public("double", "dtypes.double")(float64)
QUANTIZED_DTYPES = public("dtypes.QUANTIZED_DTYPES")(
    frozenset(dtype for dtype in dtype_by_enum.values() if dtype.is_quantized)
)

_dtype_by_key.update(
    {
        "half": float16,
        "double": float64,
        "float": float32,
        float: float32,
        bool: bool_,
        np.str_: string,
        np.bytes_: string,
        np.object_: string,
    }
)


@public("as_dtype", "dtypes.as_dtype")
def as_dtype(type_value: Any) -> DType:
    """The `tf.DType` that a name, a NumPy type, an array or a TensorFlow enum number stands for.

    >>> tf.as_dtype("float64")
    tf.float64
    >>> tf.as_dtype(np.arange(2, dtype=np.int8))
    tf.int8
    """
    if isinstance(type_value, DType):
        return type_value
    try:
        dtype = _find(type_value)
    except TypeError:  # not hashable
        dtype = None
    if dtype is None:
        dtype = _find_by_numpy(type_value)
    if dtype is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return dtype


def _find_by_numpy(value: Any) -> DType | None:
    """The type of a NumPy dtype of any byte order, of a NumPy scalar type under another name, or of an array."""
    if not isinstance(value, np.dtype):
        if isinstance(value, type):
            if not issubclass(value, np.generic):
                return None
            value = np.dtype(value)
        else:
            value = getattr(value, "dtype", None)
            if not isinstance(value, np.dtype):
                return None
    if value.names:
        return _dtype_by_key.get(value)
    dtype = _dtype_by_key.get(value.type)
    if dtype is None and value.kind in "iu":  # C's long long is a second type of 8 bytes
        dtype = _dtype_by_key.get(f"{'u' if value.kind == 'u' else ''}int{8 * value.itemsize}")
    return dtype
