"""Nodes that use variables and tables. In a program a resource is the object itself, not a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_effect
from tapeflow._src.ops.lookup.initializers import TextFileInitializer
from tapeflow._src.ops.lookup.tables import DenseHashTable, MutableHashTable
from tapeflow._src.types.errors import FailedPreconditionError
from tapeflow._src.types.indexed_slices import IndexedSlices

_SCATTERS = {
    "ResourceScatterAdd": "scatter_add",
    "ResourceScatterSub": "scatter_sub",
    "ResourceScatterMul": "scatter_mul",
    "ResourceScatterDiv": "scatter_div",
    "ResourceScatterMax": "scatter_max",
    "ResourceScatterMin": "scatter_min",
    "ResourceScatterUpdate": "scatter_update",
}


@handles("VarHandleOp", "VariableV2", "Variable")
def _handle(step: Step, values: list[Any], context: Context) -> Any:
    name = step.attributes.get("shared_name") or step.name
    for key in (step.name, name):
        if key in context.resources:
            return [context.resources[key]]
    raise FailedPreconditionError.of(f"the variable '{name}' has no value")


@handles("ReadVariableOp")
def _read(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].read_value()]


@handles("AssignVariableOp")
def _assign(step: Step, values: list[Any], context: Context) -> Any:
    values[0].assign(values[1], read_value=False)
    return []


@handles("Assign")
def _assign_reference(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].assign(values[1])]


@handles("AssignAddVariableOp")
def _assign_add(step: Step, values: list[Any], context: Context) -> Any:
    values[0].assign_add(values[1], read_value=False)
    return []


@handles("AssignSubVariableOp")
def _assign_sub(step: Step, values: list[Any], context: Context) -> Any:
    values[0].assign_sub(values[1], read_value=False)
    return []


@handles("DisableCopyOnRead", "DestroyResourceOp", "ResourceCountUpTo")
def _no_effect(step: Step, values: list[Any], context: Context) -> Any:
    return []


@handles("VarIsInitializedOp")
def _is_initialized(step: Step, values: list[Any], context: Context) -> Any:
    return [convert_to_tensor(values[0].is_initialized())]


@handles("VariableShape")
def _shape(step: Step, values: list[Any], context: Context) -> Any:
    return [primitives.Shape(values[0].read_value(), step.attributes.get("out_type", "int32"))]


@handles("ResourceGather")
def _gather(step: Step, values: list[Any], context: Context) -> Any:
    return [primitives.GatherV2(values[0], values[1], 0, step.attributes.get("batch_dims", 0))]


@handles("ResourceGatherNd")
def _gather_nd(step: Step, values: list[Any], context: Context) -> Any:
    return [primitives.GatherNd(values[0].read_value(), values[1], 0)]


@handles(*_SCATTERS)
def _scatter(step: Step, values: list[Any], context: Context) -> Any:
    variable, indices, updates = values
    getattr(variable, _SCATTERS[step.op])(IndexedSlices(updates, indices))
    return []


@handles("ResourceScatterNdAdd", "ResourceScatterNdSub", "ResourceScatterNdUpdate")
def _scatter_nd(step: Step, values: list[Any], context: Context) -> Any:
    variable, indices, updates = values
    getattr(variable, f"scatter_nd_{step.op.partition('ScatterNd')[2].lower()}")(indices, updates)
    return []


# ---- tables


@handles("HashTableV2", "HashTable", "MutableHashTableV2", "MutableHashTable", "AnonymousHashTable",
         "AnonymousMutableHashTable")  # fmt: skip
def _table(step: Step, values: list[Any], context: Context) -> Any:
    return [_make_table(step, context, [])]


@handles("MutableHashTableOfTensorsV2", "MutableHashTableOfTensors", "AnonymousMutableHashTableOfTensors")
def _table_of_tensors(step: Step, values: list[Any], context: Context) -> Any:
    return [_make_table(step, context, _value_shape(step))]


@handles("MutableDenseHashTableV2", "MutableDenseHashTable", "AnonymousMutableDenseHashTable")
def _dense_table(step: Step, values: list[Any], context: Context) -> Any:
    return [_make_table(step, context, _value_shape(step), values[:2])]


def _value_shape(step: Step) -> list[int]:
    shape = step.attributes.get("value_shape")
    return [] if shape is None else shape.as_list()


def _make_table(step: Step, context: Context, shape: list[int], reserved: list[Any] | None = None) -> Any:
    """The table of a node; nodes with one shared name have one table. `reserved`: the keys that none may use."""
    name = step.attributes.get("shared_name") or step.attributes.get("_shared_name_index")
    key = f"table {name}" if name else f"table node {step.where} {step.name}"
    if key not in context.resources:
        value_dtype = step.attributes["value_dtype"]
        empty = convert_to_tensor("") if value_dtype.name == "string" else zeros(shape, value_dtype)
        kinds = (step.attributes["key_dtype"], value_dtype, empty)
        context.resources[key] = MutableHashTable(*kinds) if reserved is None else DenseHashTable(*kinds, *reserved)
    return context.resources[key]


@handles("LookupTableFindV2", "LookupTableFind")
def _find(step: Step, values: list[Any], context: Context) -> Any:
    table, keys, default = values
    changing = isinstance(table, MutableHashTable | DenseHashTable)
    return [table._look_up(keys, default) if changing else table.lookup(keys)]


@handles("LookupTableInsertV2", "LookupTableInsert", "InitializeTableV2", "InitializeTable")
def _insert(step: Step, values: list[Any], context: Context) -> Any:
    table, keys, rows = values
    table.insert(keys, rows)
    return []


@handles("LookupTableImportV2", "LookupTableImport")
def _import(step: Step, values: list[Any], context: Context) -> Any:
    table, keys, rows = values
    if hasattr(table, "replace"):
        table.replace(keys, rows)
    else:  # a static table that a program gave, still empty
        host_effect(lambda k, v: table.begin_with(zip(np.asarray(k).tolist(), np.asarray(v).tolist())), [keys, rows])
    return []


@handles("LookupTableRemoveV2")
def _remove(step: Step, values: list[Any], context: Context) -> Any:
    table, keys = values
    table.remove(keys)
    return []


@handles("LookupTableExportV2", "LookupTableExport")
def _export(step: Step, values: list[Any], context: Context) -> Any:
    return list(values[0].export())


@handles("LookupTableSizeV2", "LookupTableSize")
def _size(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].size()]


@handles("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
def _from_file(step: Step, values: list[Any], context: Context) -> Any:
    table, filename = values
    known = find_public("get_static_value")(filename) if _core.is_symbolic(filename) else filename
    if known is not None:  # also in a graph of TensorFlow 1: the path of an asset, a constant
        _fill(table, np.asarray(known).item(), step.attributes)
    else:
        host_effect(lambda name: _fill(table, name, step.attributes), [filename])
    return []


def _fill(table: Any, filename: Any, attributes: dict[str, Any]) -> None:
    size = attributes.get("vocab_size", -1)
    lines = TextFileInitializer(
        filename,
        table.key_dtype,
        attributes["key_index"],
        table.value_dtype,
        attributes["value_index"],
        None if size is None or size < 0 else size,
        attributes.get("delimiter", "\t"),
        value_index_offset=attributes.get("offset", 0),
    )
    table.begin_with(lines.pairs())
