"""The parts of partitioned variables: checkpoints hold the whole value under one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src.io.protos import messages


class Part(NamedTuple):
    """Which part of a value a variable is: the name and shape of the whole, and where the part lies."""

    whole: str
    shape: tuple[int, ...]
    place: tuple[slice, ...]


def parts_of(meta_graph: Any) -> dict[str, Part]:
    """The parts that variables of a `MetaGraphDef` are, by the names of these."""
    found: dict[str, Part] = {}
    saved = meta_graph.collection_def.get("variables")
    for data in saved.bytes_list.value if saved is not None else ():
        variable = messages.VariableDef.FromString(data)
        info = variable.save_slice_info_def
        if info.full_name:
            place = tuple(slice(start, start + size) for start, size in zip(info.var_offset, info.var_shape))
            found[variable.variable_name.removesuffix(":0")] = Part(info.full_name, tuple(info.full_shape), place)
    return found


def joined(value_by_name: Mapping[str, Any], part_by_name: Mapping[str, Part]) -> dict[str, Any]:
    """The values with the parts put together; parts of a value that is not there as a whole stay alone."""
    found: dict[str, Any] = {}
    count_by_whole: dict[str, int] = {}
    for name, value in value_by_name.items():
        if (part := part_by_name.get(name)) is not None:
            count_by_whole[part.whole] = count_by_whole.get(part.whole, 0) + np.asarray(value).size
    for name, value in value_by_name.items():
        part = part_by_name.get(name)
        if part is None or count_by_whole[part.whole] != int(np.prod(part.shape)):
            found[name] = value
            continue
        array = np.asarray(value)
        found.setdefault(part.whole, np.zeros(part.shape, array.dtype))[part.place] = array
    return found
