"""Names of inner modules about functions, dictionaries, structures, dtypes and specs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules.language import functions
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.extension.extension_fields import ImmutableDict
from tapeflow._src.types import nest_paths, tensor_spec


def flatten_dict_items(dictionary: Any) -> dict[Any, Any]:
    """A dictionary with one entry for each leaf of its keys, which must have the structures of their values."""
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    return nest_paths.flatten_dict_items(dictionary)


def sanitize_spec_name(name: str) -> str:
    """A name for a placeholder: what no name of a node may have becomes an underscore."""
    if not name:
        return "unknown"
    clean = re.sub(r"[^a-zA-Z0-9]", "_", name.lower() if name else name)
    return clean if clean[0].isalpha() else f"tensor_{clean}"


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A value as a tensor; a composite tensor as it is."""
    if isinstance(value, tensor_spec.CompositeTensor):
        wanted = None if dtype is None else find_public("as_dtype")(dtype)
        own = getattr(value, "dtype", wanted)
        if wanted is not None and not wanted.is_compatible_with(own):
            raise RuntimeError(
                f"Tensor conversion dtype mismatch. Requested dtype is {wanted.name}, Tensor has dtype {own}: {value!r}"
            )
        return value
    return _core.convert_to_tensor(value, dtype, None, "convert_to_tensor_or_composite")


def shape_equals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a message holds a tensor of a shape."""
    if not hasattr(tensor_proto, "tensor_shape"):
        raise TypeError("`tensor_proto` must be a tensor_pb2.TensorProto object")
    if hasattr(shape, "dim"):
        shape = [dim.size for dim in shape.dim]
    if not isinstance(shape, list | tuple):
        raise TypeError("`shape` must be a list or tuple")
    return [dim.size for dim in tensor_proto.tensor_shape.dim] == list(shape)


_VALUE_DTYPES = {
    find_public("as_dtype")(name)
    for name in ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "string"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["qint8", "qint16", "qint32", "quint8", "quint16"]
    + ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"]
}

names_by_path: dict[str, dict[str, Any]] = {
    "python.framework.dtypes": {"TF_VALUE_DTYPES": _VALUE_DTYPES},
    "python.framework.immutable_dict": {"ImmutableDict": ImmutableDict},
    "python.framework.ops": {"convert_to_tensor_or_composite": convert_to_tensor_or_composite},
    "python.framework.tensor": {
        "BoundedTensorSpec": tensor_spec.BoundedTensorSpec,
        "DenseSpec": tensor_spec.DenseSpec,
        "TensorSpec": tensor_spec.TensorSpec,
        "sanitize_spec_name": sanitize_spec_name,
    },
    "python.framework.tensor_util": {"ShapeEquals": shape_equals},
    "python.util.function_utils": {
        name: getattr(functions, name) for name in ("fn_args", "get_func_code", "get_func_name", "has_kwargs")
    },
    "python.util.nest": {
        "SHALLOW_TREE_HAS_INVALID_KEYS": "The shallow_tree's keys are not a subset of the input_tree's keys. The "
        "shallow_tree has the following keys that are not in the input_tree: {}.",
        "STRUCTURES_HAVE_MISMATCHING_LENGTHS": "The two structures don't have the same sequence length. Input "
        "structure has length {input_length}, while shallow structure has length {shallow_length}.",
        "STRUCTURES_HAVE_MISMATCHING_TYPES": "The two structures don't have the same sequence type. Input structure "
        "has type {input_type}, while shallow structure has type {shallow_type}.",
        "flatten_dict_items": flatten_dict_items,
    },
}
