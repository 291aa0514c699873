"""How savers keep variables that are parts of a larger one: as one value, under the name of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src.compat.v1.variables.partitions import PartitionedVariable
from tapeflow._src.io.protos import messages
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, PartsOfWhole
from tapeflow._src.types.errors import InvalidArgumentError


class Part(NamedTuple):
    """Which part of a value a variable is: the name of the whole, and where the part lies."""

    whole: str
    place: tuple[slice, ...]


def parts_of(meta_graph: Any) -> dict[str, Part]:
    """The parts that variables of a `MetaGraphDef` are, by the names of these."""
    found: dict[str, Part] = {}
    saved = meta_graph.collection_def.get("variables")
    for data in saved.bytes_list.value if saved is not None else ():
        variable = messages.VariableDef.FromString(data)
        info = variable.save_slice_info_def
        if info.full_name:
            found[variable.variable_name.removesuffix(":0")] = Part(info.full_name, _place(info))
    return found


def _place(info: Any) -> tuple[slice, ...]:
    return tuple(slice(start, start + size) for start, size in zip(info.var_offset, info.var_shape))


class SavedParts:
    """Which of the variables that a saver keeps, by name, are parts of which wholes."""

    def __init__(self) -> None:
        self.variable_by_name: dict[str, Any] = {}
        self._whole_by_name: dict[str, str] = {}

    def add_all(self, given: Any) -> None:
        """Takes variables with names, in parts or not, or a list of them."""
        if isinstance(given, Mapping):
            for name, variable in given.items():
                if isinstance(variable, PartitionedVariable | list | tuple):
                    self._add_parts(name, list(variable))
                else:
                    self._add(name, variable)
            return
        for variable in (part for v in given for part in (v if isinstance(v, PartitionedVariable) else [v])):
            name = variable.name.partition(":")[0]
            self._add(name, variable)
            if info := getattr(variable, "_save_slice_info", None):
                self._whole_by_name[name] = info.full_name

    def _add(self, name: str, variable: Any) -> None:
        if name in self.variable_by_name:
            raise ValueError(f"At least two variables have the same name: {name}")
        self.variable_by_name[name] = variable

    def _add_parts(self, whole: str, parts: Sequence[Any]) -> None:
        names = {part._save_slice_info and part._save_slice_info.full_name for part in parts}
        if len(names) != 1 or None in names:
            raise ValueError(
                f"Slices must all be from the same tensor: {whole} holds parts of {sorted(map(str, names))}"
            )
        for number, part in enumerate(parts):
            name = f"{whole}/part_{number}"
            self._add(name, part)
            self._whole_by_name[name] = whole

    def place(self, name: str) -> tuple[str, str]:
        """Under which name a variable is saved, and which part of that value it is."""
        whole = self._whole_by_name.get(name)
        return (name, "") if whole is None else (whole, self.variable_by_name[name]._save_slice_info.spec)

    def joined(self, values: Sequence[Any]) -> dict[str, Any]:
        """What is written, by name: the values, parts of a whole together; those of a whole that lacks some, alone."""
        elements: dict[str, int] = {}
        for name, of in self._whole_by_name.items():
            size = math.prod(self.variable_by_name[name]._save_slice_info.var_shape)
            elements[of] = elements.get(of, 0) + size
        written: dict[str, Any] = {}
        for (name, variable), value in zip(self.variable_by_name.items(), values):
            info, whole = getattr(variable, "_save_slice_info", None), self._whole_by_name.get(name)
            if info is None or whole is None or elements[whole] != math.prod(info.full_shape):
                written[name] = value
                continue
            written.setdefault(whole, PartsOfWhole(info.full_shape)).add(info.var_offset, value)
        return written

    def read(self, bundle: Bundle, key_by_name: Mapping[str, str], name: str) -> Any:
        """The value of a variable in a file."""
        whole = self._whole_by_name.get(name)
        if whole is None or (whole not in bundle and name in bundle):
            return bundle.value(key_by_name.get(name, name))
        info = self.variable_by_name[name]._save_slice_info
        value = np.asarray(bundle.value(whole))
        if list(value.shape) != list(info.full_shape):
            raise InvalidArgumentError.of(
                f"Shape in shape_and_slice spec {list(info.full_shape)} does not match the shape stored in checkpoint: "
                f"{list(value.shape)}, for variable {whole}"
            )
        return value[_place(info)]
