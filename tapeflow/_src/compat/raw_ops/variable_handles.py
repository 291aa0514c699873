"""Raw operations on the handles of variables, and the one that makes them. A variable is its own handle."""

from __future__ import annotations

import uuid
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.enums import VariableAggregationV2, VariableSynchronization
from tapeflow._src.types.errors import InvalidArgumentError, NotFoundError
from tapeflow._src.types.tensor_shape import as_shape
from tapeflow._src.variables import Variable, session_graph

ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # the shared name of what is shared with nobody

_variable_by_shared_name: dict[tuple[str, str], DeclaredVariable] = {}  # of eager programs


class DeclaredVariable(Variable):
    """A variable that has no value until one is assigned."""

    def __init__(self, dtype: Any, shape: Any, name: str, trainable: bool = False) -> None:
        self._made_at = _core.current_line()
        self._synchronization, self._aggregation = VariableSynchronization.AUTO, VariableAggregationV2.NONE
        self._constraint = self._copy_of = None
        graph = session_graph()
        if graph is not None:
            graph.declare_variable(self, as_dtype(dtype), as_shape(shape), name)
            return
        self._name = name
        self._declare(as_dtype(dtype), as_shape(shape), trainable, f"{name}:0")
        self._unique_id = f"{name}_{id(self)}"


def _made(
    dtype: Any, shape: Any, container: str, shared_name: str, debug_name: str, allowed_devices: Any
) -> DeclaredVariable:
    """The variable of a shared name, or a new one."""
    if session_graph() is not None:
        return DeclaredVariable(dtype, shape, shared_name or "VarHandleOp")
    if shared_name in ("", ANONYMOUS):
        return DeclaredVariable(dtype, shape, debug_name or f"variable_{uuid.uuid4().hex}")
    key = container, shared_name
    found = _variable_by_shared_name.get(key)
    if found is None:
        found = _variable_by_shared_name[key] = DeclaredVariable(dtype, shape, shared_name)
    elif found.dtype != as_dtype(dtype):
        raise InvalidArgumentError.of(
            f"VarHandleOp: the variable {shared_name!r} has dtype {found.dtype.name}; got {as_dtype(dtype).name}"
        )
    return found


def _destroy(resource: Any, ignore_lookup_error: bool) -> None:
    """Takes the name of a shared variable away; its memory is freed with the last reference to it."""
    variable = _variable(resource)
    keys = [key for key, held in _variable_by_shared_name.items() if held is variable]
    for key in keys:
        del _variable_by_shared_name[key]
    if not ignore_lookup_error and not keys and isinstance(variable, DeclaredVariable):
        raise NotFoundError.of(f"DestroyResourceOp: Resource {variable._name} does not exist.")


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
    ("DestroyResourceOp", "resource, ignore_lookup_error=True", _destroy),
    ("ReadVariableOp", "resource, dtype", _read),
    ("ResourceGather", "resource, indices, dtype, batch_dims=0, validate_indices=True", _gather),
    ("ResourceGatherNd", "resource, indices, dtype", _gather_nd),
    (
        "VarHandleOp",
        "dtype, shape, container='', shared_name='', debug_name='', allowed_devices=[]",
        _made,
    ),
    ("VarIsInitializedOp", "resource", _is_initialized),
    ("VariableShape", "input, out_type='int32'", _shape),
]
