"""Arguments as the specifications of `input_signature` want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec


def cast_to_spec(value: Any, spec: Any) -> Any:
    """The value, as tensors of the given dtypes and shapes; a TypeError if it cannot be that.

    >>> cast_to_spec([1, 2], TensorSpec([None], "float32"))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    if isinstance(spec, Mapping):
        return _cast_mapping(value, spec)
    if isinstance(spec, list | tuple):
        return _cast_sequence(value, spec)
    if isinstance(spec, TensorSpec):
        return _cast_tensor(value, spec)
    if isinstance(spec, TypeSpec):
        if not spec.is_compatible_with(value):
            raise TypeError(f"Can not cast {value!r} to {spec}")
        return value
    if value is not spec and value != spec:
        raise TypeError(f"Can not cast {value!r} to Literal[{spec!r}]")
    return value


def _cast_tensor(value: Any, spec: TensorSpec) -> Any:
    if isinstance(value, TensorSpec):
        own = value
        tensor: Any = value
    elif isinstance(value, _core.Tensor):
        tensor = value
        own = TensorSpec(value.shape, value.dtype)
    else:
        if value is None:
            raise TypeError(
                "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor."
            )
        tensor = convert_to_tensor(value, dtype=spec.dtype)
        own = TensorSpec(tensor.shape, tensor.dtype)
    if own.dtype != spec.dtype or not _fits(own.shape, spec.shape):
        raise TypeError(f"Can not cast {own!r} to {spec!r}")
    return tensor


def _fits(shape: Any, wanted: Any) -> bool:
    """Whether values of the shape may be given; what is unknown about a symbolic tensor shows when the graph runs."""
    return bool(shape.is_compatible_with(wanted))


def _cast_mapping(value: Any, spec: Mapping[Any, Any]) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"Can not cast {value!r} to a Dict type.")
    if value.keys() != spec.keys():
        wanted = ", ".join(f"[{k!r}, {v!r}]" for k, v in spec.items())
        raise TypeError(f"{value!r} has different keys with the TraceType Dict[{wanted}].")
    return {key: cast_to_spec(value[key], part) for key, part in spec.items()}


def _cast_sequence(value: Any, spec: Any) -> Any:
    kind = "List" if isinstance(spec, list) else "Tuple"
    if hasattr(spec, "_fields") and type(value) is not type(spec):
        raise TypeError(f"Cannot cast {value!r} to type {type(spec)}.")
    if not isinstance(value, list if isinstance(spec, list) else tuple):
        raise TypeError(f"Can not cast {value!r} to {kind.lower()} type.")
    if len(value) != len(spec):
        raise TypeError(f"Can not cast {value!r} to {kind}[{', '.join(map(repr, spec))}]: the lengths differ.")
    parts = [cast_to_spec(one, part) for one, part in zip(value, spec)]
    return type(spec)(*parts) if hasattr(spec, "_fields") else type(spec)(parts)
