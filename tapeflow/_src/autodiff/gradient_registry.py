"""Gradients by name: `tf.RegisterGradient`, `tf.no_gradient`, and which operations a block of code overrides.

A registered gradient is a function `(op, *dys) -> dx or list of dx`. As in TensorFlow, a block overrides gradients of a
graph: for `tf.gradients` inside it, and for a tape outside of the function that it is the graph of. A tape that records
the operations themselves, eagerly or inside the function, uses their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.autodiff.custom_gradient import trace_rule
from tapeflow._src.namespace import find_public, public
from tapeflow._src.primitives import facts_by_name

GradientFunction = Callable[..., Any]

_gradient_by_name: dict[str, GradientFunction | None] = {}


@public("RegisterGradient", "compat.v1.RegisterGradient")
class RegisterGradient:
    """Registers the decorated function `(op, *dys)` as the gradient of an operation type, or under a name of its own.

    >>> @tf.RegisterGradient("HalvedGradient")
    ... def halved(op, dy):
    ...     return 0.5 * dy
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: GradientFunction) -> GradientFunction:
        _register(self._op_type, f)
        return f


@public("no_gradient", "compat.v1.no_gradient", "compat.v1.NoGradient", "compat.v1.NotDifferentiable")
def no_gradient(op_type: str) -> None:
    """Says that an operation type has no gradient.

    >>> tf.no_gradient("AnOperationOfMine")
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _register(op_type, None)


def _register(name: str, function: GradientFunction | None) -> None:
    if name in _gradient_by_name or name in facts_by_name:
        owner = "an operation of the library" if name in facts_by_name else repr(_gradient_by_name[name])
        raise KeyError(f"Registering two gradient with name '{name}'! (Previous registration: {owner})")
    _gradient_by_name[name] = function


def registered_gradient(name: str) -> GradientFunction | None:
    """The function registered under `name`, None if it was registered to have none; LookupError if nobody did."""
    if name not in _gradient_by_name:
        raise LookupError(f"gradient registry has no entry for: {name}")
    return _gradient_by_name[name]


class NodeOverrides:
    """Which nodes of a graph take gradients that are registered under other names than their own."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._name_by_node: dict[int, str] = {}
        self._open: list[tuple[int, dict[str, str]]] = []  # the first node of each block, and what it asks for

    @contextmanager
    def block(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """A block in which nodes of the given types take the gradients registered under the given names."""
        if not isinstance(op_type_map, dict) or not all(
            isinstance(s, str) for pair in op_type_map.items() for s in pair
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        self._open.append((self._graph.node_count, dict(op_type_map)))
        try:
            yield
        finally:
            self._record()
            self._open.pop()

    def rules(self) -> dict[int, Callable[[list[Any]], list[Any]]]:
        """The rules that stand in place of the nodes' own, from the list of dy to that of dx."""
        self._record()
        return {node: self._rule(node, name) for node, name in self._name_by_node.items()}

    def install(self) -> None:
        """Whoever differentiates the graph as a whole uses the rules too."""
        for node, rule in self.rules().items():
            _, _, inputs, outputs, *_ = self._graph.node(node)
            _core.override_gradient(self._graph, node, rule, trace_rule(rule, outputs, inputs))

    def _operation(self, node: int) -> Any:
        return find_public("Operation")(self._graph, node)

    def _record(self) -> None:
        for first, name_by_type in reversed(self._open):
            for node in range(first, self._graph.node_count):
                if self._graph.node(node) is not None and self._operation(node).type in name_by_type:
                    self._name_by_node.setdefault(node, name_by_type[self._operation(node).type])

    def _rule(self, node: int, name: str) -> Callable[[list[Any]], list[Any]]:
        def rule(dys: list[Any]) -> list[Any]:
            operation = self._operation(node)
            try:
                function = registered_gradient(name)
            except LookupError as missing:
                raise LookupError(
                    f"No gradient defined for operation '{operation.name}' (op type: {operation.type}): {missing}"
                ) from None
            if function is None:
                return [None] * len(operation.inputs)
            found = function(operation, *dys)
            return list(found) if isinstance(found, list | tuple) else [found]

        return rule
