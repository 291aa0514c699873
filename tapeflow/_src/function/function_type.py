"""What a concrete function takes, gives and captures, as TensorFlow describes it: `concrete.function_type`."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from tapeflow._src.function.signature import spec_text


class Parameter(inspect.Parameter):
    """One argument: its name, its kind, and the specification that it fits."""

    def __init__(self, name: str, kind: str, type_constraint: Any) -> None:
        super().__init__(name, getattr(inspect.Parameter, kind))
        self.type_constraint = type_constraint
        self.optional = False

    def __str__(self) -> str:
        return f"{self.name}: {spec_text(self.type_constraint)}"


class FunctionType:
    """The arguments by name, the specifications of captured tensors by their `id`, and that of the result."""

    def __init__(self, parameters: Iterable[Parameter], captures: dict[int, Any], output: Any) -> None:
        self.parameters = OrderedDict((parameter.name, parameter) for parameter in parameters)
        self.captures, self.output = captures, output

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self.parameters.values()))}) -> {spec_text(self.output)}"
