"""`tf.experimental.save_safetensors` and `load_safetensors`: tensors by name in a file that holds nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, UnimplementedError

_DTYPE_BY_CODE = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


def _package() -> Any:
    try:
        import safetensors
    except ImportError:
        raise UnimplementedError.of(
            "safetensors files need the package safetensors: pip install tapeflow[safetensors]"
        ) from None
    return safetensors


def _named(obj: Any) -> dict[str, Any]:
    """Variables by name: of a mapping its keys, of a Keras model the paths, of a module those of its attributes."""
    if isinstance(obj, Mapping):
        return dict(obj)
    weights = getattr(obj, "weights", None)
    if weights is not None and all(hasattr(w, "path") for w in weights):
        named = {w.path: w for w in weights}
    else:
        variables = getattr(obj, "variables", None)
        if variables is None:
            raise TypeError(f"safetensors: give a mapping, a tf.Module or a Keras model; got {type(obj).__name__}")
        variables = list(variables)
        named = {v.name.removesuffix(":0"): v for v in variables}
        if len(named) != len(variables):
            raise ValueError("safetensors: two variables have one name; give a mapping of names to variables")
    return named


@public("experimental.save_safetensors")
def save_safetensors(obj: Any, path: Any, metadata: dict[str, str] | None = None) -> None:
    """Writes tensors and variables by name; it needs the package safetensors.

    Args:
        obj: A mapping of names to tensors, variables or arrays, a `tf.Module`, or a Keras model.
        path: The file.
        metadata: Texts by name, for those who read the file.

    >>> tf.experimental.save_safetensors
    <function save_safetensors at ...>
    """
    _package()
    from safetensors.numpy import save

    arrays = {}
    for name, value in _named(obj).items():
        tensor = convert_to_tensor(value if _core.is_tensor(value) else getattr(value, "value", value))
        if tensor.dtype.name not in _DTYPE_BY_CODE.values():
            raise TypeError(
                f"experimental.save_safetensors: {name!r} has the dtype {tensor.dtype.name}, which cannot be written"
            )
        arrays[name] = np.ascontiguousarray(tensor.numpy())
        arrays[name] = arrays[name].reshape(tensor.shape.as_list())  # a scalar stays one
    write_atomically(os.fspath(path), save(arrays, metadata))


@public("experimental.load_safetensors")
def load_safetensors(path: Any, obj: Any = None) -> dict[str, Any]:
    """The tensors of a file by name; it needs the package safetensors.

    Args:
        path: The file.
        obj: A mapping of names to variables, a `tf.Module` or a Keras model, whose variables get the values. Names and
            shapes must be those of the file.

    Returns:
        The tensors by name.

    >>> tf.experimental.load_safetensors
    <function load_safetensors at ...>
    """
    package = _package()
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    try:
        parts = package.deserialize(data)
    except Exception as error:
        raise DataLossError.of(f"{os.fspath(path)}: no safetensors file: {error}") from None
    found = {}
    for name, part in parts:
        if part["dtype"] not in _DTYPE_BY_CODE:
            raise UnimplementedError.of(f"{os.fspath(path)}: {name!r} has the dtype {part['dtype']}")
        dtype = as_dtype(_DTYPE_BY_CODE[part["dtype"]])
        array = np.frombuffer(bytes(part["data"]), dtype.as_numpy_dtype).reshape(part["shape"])
        found[name] = convert_to_tensor(array, dtype)
    if obj is not None:
        _assign(_named(obj), found, os.fspath(path))
    return found


def _assign(variables: dict[str, Any], found: dict[str, Any], path: str) -> None:
    missing, unknown = sorted(set(variables) - set(found)), sorted(set(found) - set(variables))
    if missing or unknown:
        raise ValueError(
            f"experimental.load_safetensors: {path} and the object must have the same names; missing in the file: "
            f"{missing[:5]}, unknown to the object: {unknown[:5]}"
        )
    for name, variable in variables.items():
        if tuple(variable.shape) != tuple(found[name].shape):
            raise ValueError(
                f"experimental.load_safetensors: {name!r} has the shape {tuple(found[name].shape)} in {path}, and "
                f"{tuple(variable.shape)} in the object"
            )
    for name, variable in variables.items():
        variable.assign(found[name])
