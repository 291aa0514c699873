"""The functions of a graph: found by name, made into programs when they are first called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tapeflow._src.compat.graph_def import program
from tapeflow._src.compat.graph_def.frames import function_without_frames, has_frames
from tapeflow._src.compat.graph_def.program import Program


class FunctionLibrary:
    """The `FunctionDef`s of one graph. `where` names the model in errors."""

    def __init__(self, library: Any, where: str) -> None:
        self.where = where
        self._function_by_name = {f.signature.name: f for f in library.function}
        for function in library.function:
            if has_frames(function.node_def):  # as in a function whose variables became constants
                self._replace_frames(function)
        self._program_by_name: dict[str, Program] = {}
        self._gradient_by_type = {g.registered_op_type: g.gradient_func for g in library.registered_gradients}
        # What computes a custom gradient, by its type: `rule(dys, captured)` gives a gradient or None for each input.
        # `captured` are the values of the tensors ("node:0") of the same function that the rule reads.
        self.rule_by_type: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {}
        self.captured_by_type: dict[str, list[str]] = {}
        self.depth = 0

    @functools.cached_property
    def lists_grow(self) -> bool:
        """Whether a node writes behind the end of a list."""
        nodes = (node for function in self._function_by_name.values() for node in function.node_def)
        return any(node.op == "TensorListSetItem" and node.attr["resize_if_index_out_of_bounds"].b for node in nodes)

    def _replace_frames(self, function: Any) -> None:
        where = self._place(function.signature.name)
        names = [arg.name for arg in function.signature.input_arg]
        places = Program(function.node_def, names, [], [], self, where).place_of
        for made in function_without_frames(function, places):
            self._function_by_name[made.signature.name] = made

    def find(self, name: str) -> Any:
        """The message of a function, or None."""
        return self._function_by_name.get(name)

    def program(self, name: str) -> Program:
        """A function as a program."""
        found = self._program_by_name.get(name)
        if found is None:
            function = self.find(name)
            if function is None:
                raise ValueError(f"{self.where}: there is no function '{name}'")
            inputs = [arg.name for arg in function.signature.input_arg]
            outputs = [function.ret[arg.name] for arg in function.signature.output_arg]
            found = Program(function.node_def, inputs, outputs, function.control_ret.values(), self, self._place(name))
            self._program_by_name[name] = found
        return found

    def _place(self, name: str) -> str:
        return f"{self.where}: function '{name}'"

    def call(self, name: str, values: list[Any], resources: dict[str, Any]) -> list[Any]:
        """What a function gives for these inputs."""
        called = self.program(name)
        if len(values) != len(called.inputs):
            raise ValueError(f"{self._place(name)} takes {len(called.inputs)} inputs; got {len(values)}")
        self.depth += 1
        try:
            if self.depth > 200:
                raise ValueError(f"{self._place(name)} calls itself, or functions are nested too deeply")
            return called.results(dict(zip(called.inputs, values)), resources)
        except RecursionError:  # a level may take many calls of Python
            raise ValueError(f"{self._place(name)} calls itself, or functions are nested too deeply") from None
        finally:
            self.depth -= 1

    def gradient_function(self, op_type: str) -> str | None:
        """The function that computes a custom gradient."""
        return self._gradient_by_type.get(op_type)

    def check(self, roots: Iterable[str]) -> None:
        """Raises if a node of these functions, or of those that they call, has an operation that Tapeflow lacks."""
        waiting, seen = list(roots), set()
        while waiting:
            name = waiting.pop()
            function = self.find(name)
            if function is None or name in seen:
                continue
            seen.add(name)
            check_nodes(function.node_def, self, self._place(name))
            for node in function.node_def:
                waiting += called_functions(node)


def check_nodes(nodes: Iterable[Any], library: FunctionLibrary, where: str) -> None:
    """Raises if a node has an operation that Tapeflow lacks."""
    for node in nodes:
        if not program.is_known(node.op) and library.find(node.op) is None:
            raise program.missing_operation(node.op, node.name, where)


def called_functions(node: Any) -> list[str]:
    """The names of the functions that a node calls."""
    names = [node.op]
    for attribute in node.attr.values():
        kind = attribute.WhichOneof("value")
        if kind == "func":
            names.append(attribute.func.name)
        elif kind == "list":
            names += [func.name for func in attribute.list.func]
    return names
