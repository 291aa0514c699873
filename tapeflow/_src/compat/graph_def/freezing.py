"""`convert_variables_to_constants_v2`: a concrete function whose variables have become constants."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def import (  # noqa: F401  register readers and writers
    control_flow,
    effects,
    graphs,
    reference_updates,
    resources,
    tensor_lists,
)
from tapeflow._src.compat.graph_def.exporter import FunctionWriter
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.tensor_spec import TensorSpec


class _Constant:
    """Stands for a variable that is only read."""

    is_graph_resource = True

    def __init__(self, value: Any) -> None:
        self._value = value

    def read_value(self) -> Any:
        """The value that the variable had."""
        return self._value


def convert_variables_to_constants_v2(
    func: ConcreteFunction, lower_control_flow: bool = True, aggressive_inlining: bool = False
) -> ConcreteFunction:
    """A function of the same tensors, one after the other, that gives the same list and has no variables."""
    graph = func.graph
    writer = FunctionWriter("convert_variables_to_constants_v2")
    held = writer.add(_core.graph_data(graph), "frozen", list(graph.input_names))
    library = FunctionLibrary(writer.library, "convert_variables_to_constants_v2")
    with running_at_once():
        values = [_Constant(convert_to_tensor(x.numpy())) if isinstance(x, _core.Variable) else x for x in held]
    captures = list(graph.captures)

    def run(*tensors: Any) -> list[Any]:
        return library.call("frozen", [*tensors, *captures, *values], {})

    names = graph.input_names
    specs = [TensorSpec(s.shape, s.dtype, names[i]) for i, s in enumerate(func.signature.tensor_specs)]
    return Function(run, "frozen", autograph=False).get_concrete_function(*specs)
