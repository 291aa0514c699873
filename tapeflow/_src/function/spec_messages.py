"""Nested structures of specifications and Python values as `StructuredValue` messages, and back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.control_flow.tensor_array import TensorArraySpec
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import array_of, shape_message, shape_of, tensor_message, tensor_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.extension.extension_type import ExtensionTypeSpec
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensorSpec
from tapeflow._src.types import nest, spec_names
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.indexed_slices import IndexedSlicesSpec
from tapeflow._src.types.sparse_tensor import SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import BoundedTensorSpec, TensorSpec, TypeSpec, VariableSpec

_NUMBER_BY_SPEC: dict[type, int] = {
    SparseTensorSpec: 1,
    IndexedSlicesSpec: 2,
    RaggedTensorSpec: 3,
    TensorArraySpec: 4,
    VariableSpec: 9,
}
_REGISTERED = 12  # specs of a library, by the name under which it registered them
_EXTENSION_TYPE = 13  # specs of extension types, by the same names
_SPEC_BY_NUMBER = {number: kind for kind, number in _NUMBER_BY_SPEC.items()}


def register_spec(kind: type, number: int) -> None:
    """Says which number files give to specs of a class that later layers define."""
    _NUMBER_BY_SPEC[kind] = number
    _SPEC_BY_NUMBER[number] = kind


class NotEncodableError(TypeError):
    """A structure holds something that no file can keep."""


def encode(value: Any) -> Any:
    """A structure as a message; NotEncodableError if it holds something that cannot be written."""
    result = messages.StructuredValue()
    _encode(value, result)
    return result


def _encode(value: Any, into: Any) -> None:
    if value is None:
        into.none_value.SetInParent()
    elif isinstance(value, bool | np.bool_):
        into.bool_value = bool(value)
    elif isinstance(value, int | np.integer):
        into.int64_value = int(value)
    elif isinstance(value, float | np.floating):
        into.float64_value = float(value)
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, TensorShape):
        into.tensor_shape_value.CopyFrom(shape_message(value))
    elif isinstance(value, DType):
        into.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, TypeSpec):
        _encode_spec(value, into)
    elif isinstance(value, Mapping):
        into.dict_value.SetInParent()
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotEncodableError(f"keys of a dictionary must be strings; got {key!r}")
            _encode(item, into.dict_value.fields[key])
    elif hasattr(value, "_fields"):
        into.named_tuple_value.name = type(value).__name__
        for key in value._fields:
            _encode(getattr(value, key), into.named_tuple_value.values.add(key=key).value)
    elif isinstance(value, list | tuple):
        field = into.list_value if isinstance(value, list) else into.tuple_value
        field.SetInParent()
        for item in value:
            _encode(item, field.values.add())
    elif isinstance(value, _core.Tensor):
        into.tensor_value.CopyFrom(tensor_message(value))
    elif isinstance(value, np.ndarray):
        into.numpy_value.CopyFrom(tensor_message(convert_to_tensor(value)))
    else:
        raise NotEncodableError(f"{type(value).__name__} cannot be written into a SavedModel: {value!r}")


def _encode_spec(spec: Any, into: Any) -> None:
    if isinstance(spec, BoundedTensorSpec):
        field = into.bounded_tensor_spec_value
        field.minimum.CopyFrom(tensor_message(convert_to_tensor(spec.minimum, spec.dtype)))
        field.maximum.CopyFrom(tensor_message(convert_to_tensor(spec.maximum, spec.dtype)))
    elif isinstance(spec, TensorSpec):
        field = into.tensor_spec_value
    else:
        number, name = _NUMBER_BY_SPEC.get(type(spec)), type(spec).__name__
        if number is None:
            if type(spec) not in spec_names.name_by_class:
                raise NotEncodableError(f"{name} cannot be written into a SavedModel")
            number = _EXTENSION_TYPE if isinstance(spec, ExtensionTypeSpec) else _REGISTERED
            name = spec_names.get_name(type(spec))
        field = into.type_spec_value
        field.type_spec_class, field.type_spec_class_name = number, name
        field.num_flat_components = len(nest.flatten(spec, expand_composites=True))
        _encode(spec._serialize(), field.type_state)
        return
    field.name = spec.name or ""
    field.shape.CopyFrom(shape_message(spec.shape))
    field.dtype = spec.dtype.as_datatype_enum


def decode(message: Any) -> Any:
    """The structure that a message holds."""
    kind = message.WhichOneof("kind")
    if kind is None or kind == "none_value":
        return None
    value = getattr(message, kind)
    match kind:
        case "tensor_shape_value":
            return shape_of(value)
        case "tensor_dtype_value":
            return as_dtype(value)
        case "tensor_spec_value":
            return TensorSpec(shape_of(value.shape), as_dtype(value.dtype), value.name or None)
        case "bounded_tensor_spec_value":
            bounds = array_of(value.minimum), array_of(value.maximum)
            return BoundedTensorSpec(shape_of(value.shape), as_dtype(value.dtype), *bounds, value.name or None)
        case "type_spec_value":
            return _decode_spec(value)
        case "list_value":
            return [decode(item) for item in value.values]
        case "tuple_value":
            return tuple(decode(item) for item in value.values)
        case "dict_value":
            return {key: decode(item) for key, item in sorted(value.fields.items())}
        case "named_tuple_value":
            pairs = {pair.key: decode(pair.value) for pair in value.values}
            if not all(key.isidentifier() for key in (value.name, *pairs)):
                raise ValueError(f"{value.name!r} is no name of a named tuple")
            return namedtuple(value.name, list(pairs))(**pairs)
        case "tensor_value":
            return tensor_of(value)
        case "numpy_value":
            return array_of(value)
    return value


def _decode_spec(message: Any) -> Any:
    if message.type_spec_class in (_REGISTERED, _EXTENSION_TYPE):
        registered: Any = spec_names.lookup(message.type_spec_class_name)
        return registered._deserialize(decode(message.type_state))
    kind = _SPEC_BY_NUMBER.get(message.type_spec_class)
    if kind is None:
        raise ValueError(f"values of type '{message.type_spec_class_name}' cannot be read from a SavedModel")
    return kind(*decode(message.type_state))
