"""Raw operations on the handles of variables. A variable is its own handle."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError


def _variable(resource: Any) -> Any:
    if not isinstance(resource, _core.Variable):
        raise InvalidArgumentError.of(f"resource must be the handle of a variable; got {resource!r}")
    return resource


def _read(resource: Any, dtype: Any) -> Any:
    """The value of a variable."""
    value = _variable(resource).read_value()
    if as_dtype(dtype) != value.dtype:
        raise InvalidArgumentError.of(
            f"Trying to read variable with wrong dtype. Expected {as_dtype(dtype).name} got {value.dtype.name}"
        )
    return value


def _value_for(variable: Any, value: Any) -> Any:
    value = find_public("convert_to_tensor")(value)
    if value.dtype != variable.dtype:
        raise InvalidArgumentError.of(
            f"Trying to assign variable with wrong dtype. Expected {variable.dtype.name} got {value.dtype.name}"
        )
    return value


def _update(method: str) -> Any:
    """An assignment. Like TensorFlow's operation, it gives nothing while it runs at once."""

    def update(resource: Any, value: Any) -> Any:
        variable = _variable(resource)
        updated = getattr(variable, method)(_value_for(variable, value), read_value=False)
        return updated if _core.is_tracing() else None

    return update


def _shape(input: Any, out_type: Any) -> Any:
    return find_public("shape")(_variable(input), out_type=as_dtype(out_type))


def _is_initialized(resource: Any) -> Any:
    known = _variable(resource).is_initialized()
    return find_public("convert_to_tensor")(known)


def _gather(resource: Any, indices: Any, dtype: Any, batch_dims: int, validate_indices: bool) -> Any:
    variable = _variable(resource)
    _check(variable, dtype)
    return find_public("gather")(variable, indices, batch_dims=batch_dims, axis=batch_dims)


def _gather_nd(resource: Any, indices: Any, dtype: Any) -> Any:
    variable = _variable(resource)
    _check(variable, dtype)
    return find_public("gather_nd")(variable, indices)


def _check(variable: Any, dtype: Any) -> None:
    if as_dtype(dtype) != variable.dtype:
        raise InvalidArgumentError.of(
            f"Trying to gather from a variable with wrong dtype. Expected {as_dtype(dtype).name} got "
            f"{variable.dtype.name}"
        )


ROWS: list[tuple[str, str, Any]] = [
    ("AssignAddVariableOp", "resource, value", _update("assign_add")),
    ("AssignSubVariableOp", "resource, value", _update("assign_sub")),
    ("AssignVariableOp", "resource, value", _update("assign")),
    ("ReadVariableOp", "resource, dtype", _read),
    ("ResourceGather", "resource, indices, dtype, batch_dims=0, validate_indices=True", _gather),
    ("ResourceGatherNd", "resource, indices, dtype", _gather_nd),
    ("VarIsInitializedOp", "resource", _is_initialized),
    ("VariableShape", "input, out_type='int32'", _shape),
]
