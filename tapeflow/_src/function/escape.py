"""Errors of traced programs: a tensor carried out of its function, and arguments that an operation refuses."""

from __future__ import annotations

import linecache
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.types.errors import InvalidArgumentError, InvalidArgumentWhileTracingError


def _describe(tensor: Any) -> str:
    """The tensor, and in the lines after it the function and the line that made it."""
    graph, _, node = _core.place_of(tensor) or (None, 0, 0)
    if graph is None:
        return f"{tensor!r}\nIt was made while a function was traced that does not exist any more."
    name = getattr(graph, "name", "graph")
    if node < 0:
        return f"{tensor!r}\nIt is an argument of the function '{name}', and has a value only while that runs."
    _, _, _, _, code, instruction = graph.node(node)
    file, line = source_line(code, instruction)
    if not line:
        return f"{tensor!r}\nIt was made in the function '{name}'."
    text = linecache.getline(file, line).strip()
    return (
        f'{tensor!r}\n{tensor!r} was defined here:\n    File "{file}", line {line}, in {name}\n      {text}\n'
        f"The tensor cannot be accessed from here, because it was defined in FuncGraph(name={name}), which is out of "
        "scope. Return it from the function, or store it in a tf.Variable."
    )


class InaccessibleTensorError(TypeError, ValueError):
    """A tensor of another function, or of a branch or loop that is over, was used while a function was traced."""


def refused_while_tracing(error: Exception) -> Exception:
    """The error as programs that trace expect it: one that is a ValueError, too, for arguments that do not fit."""
    if type(error) is TypeError and " is out of scope and cannot be used here." in str(error):
        return InaccessibleTensorError(str(error))
    if type(error) is not InvalidArgumentError:
        return error
    return InvalidArgumentWhileTracingError(error.node_def, error.op, error.message)


_core.register_objects(
    {"describe_escaped": _describe, "InvalidArgumentWhileTracingError": InvalidArgumentWhileTracingError}
)
