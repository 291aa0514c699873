"""Nodes that change reference variables of TensorFlow 1: as those on resources, and they give the variable."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.compat.graph_def.program import Context, Step, handler_by_op, handles
from tapeflow._src.compat.raw_ops.operation import find_raw_operation
from tapeflow._src.compat.raw_ops.variable_updates import ROWS
from tapeflow._src.ops.arrays.conversion import convert_to_tensor


@handles("AssignAdd")
def _assign_add(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].assign_add(values[1])]


@handles("AssignSub")
def _assign_sub(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].assign_sub(values[1])]


@handles("IsVariableInitialized")
def _is_initialized(step: Step, values: list[Any], context: Context) -> Any:
    return [convert_to_tensor(True)]


_REFERENCE_BY_RESOURCE = {name: name.removeprefix("Resource") for name, _, _ in ROWS}


@handles(*(name for name in _REFERENCE_BY_RESOURCE.values() if find_op_def(name) is not None))
def _update(step: Step, values: list[Any], context: Context) -> Any:
    """The operation on the resource takes the same arguments, under its own names."""
    name = f"Resource{step.op}"
    definition, operation = find_op_def(name), find_raw_operation(name)
    assert definition is not None
    accepted = {key for key, _ in operation._parameters}
    flags = {key: value for key, value in step.attributes.items() if key in accepted and key in definition.attributes}
    names = [argument.python_name for argument in definition.inputs]
    operation(**dict(zip(names, values)), **flags)
    return [values[0]]


@handles("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "ScatterNdMax", "ScatterNdMin")
def _scatter_nd(step: Step, values: list[Any], context: Context) -> Any:
    handler_by_op[f"Resource{step.op}"](step, values, context)
    return [values[0]]
