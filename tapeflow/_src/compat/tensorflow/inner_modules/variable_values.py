"""Structures in which each variable is replaced by its value."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_spec import CompositeTensor


def convert_variables_to_tensors(values: Any) -> Any:
    """The same structure with the values of its variables; a composite tensor converts itself."""

    def convert(value: Any) -> Any:
        if isinstance(value, _core.Variable):
            return convert_to_tensor(value)
        if isinstance(value, CompositeTensor) and hasattr(value, "_convert_variables_to_tensors"):
            return value._convert_variables_to_tensors()
        return value

    return nest.map_structure(convert, values)
