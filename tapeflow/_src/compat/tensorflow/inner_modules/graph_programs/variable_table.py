"""What libraries that make kinds of variables of their own import, and how they write down values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.v1.variables.partitions import PartitionedVariable
from tapeflow._src.distribute.strategies import ParameterServerStrategy
from tapeflow._src.variables import Variable


class AggregatingVariable(Variable):
    """A class to ask about: a variable on a parameter server, of which no object can be made."""

    def __init__(self, strategy: Any, v: Any, aggregation: Any) -> None:
        ParameterServerStrategy()  # says that there is none


def numpy_text(tensor: Any, is_repr: bool = False) -> str:
    """The value of a tensor as NumPy prints it; of several lines, from a new line on."""
    if not tensor.dtype.is_numpy_compatible:
        return "<unprintable>"
    value = tensor.numpy()
    if is_repr and isinstance(value, np.generic):
        value = value.item()
    text = repr(value) if is_repr else str(value)
    return f"\n{text}" if "\n" in text else text


def slice_variable(var: Any, slice_spec: Any) -> Any:
    """A part of a variable, which also can be assigned to."""
    return Variable.__getitem__(var, slice_spec) if isinstance(var, Variable) else var.value()[slice_spec]


names_by_path: dict[str, dict[str, Any]] = {
    "python.distribute.ps_values": {"AggregatingVariable": AggregatingVariable},
    "python.framework.ops": {"numpy_text": numpy_text},
    "python.ops.tensor_getitem_override": {"_slice_helper_var": slice_variable},
    "python.ops.variables": {"PartitionedVariable": PartitionedVariable},
}
