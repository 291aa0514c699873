"""`concrete.inference_fn`: a traced graph as a plain function of tensors, without structures and without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor


class AtomicFunction:
    """The graph of a concrete function, called with tensors; captured tensors are given after the arguments."""

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete

    graph = property(lambda self: self._concrete.graph, doc="The graph that it runs.")
    name = property(lambda self: self._concrete.name, doc="The name of the function in a graph.")
    function_type = property(lambda self: self._concrete.function_type, doc="What it takes and what it gives.")

    def call_flat(self, *args: Any) -> list[Any]:
        """The flat list of results for the flat list of inputs, captures included."""
        inputs = self.graph.inputs
        given = [convert_to_tensor(x) for x in args]
        if len(given) == len(inputs) - len(self.graph.captures):
            given += self.graph.captures
        if len(given) != len(inputs):
            raise ValueError(
                f"Signature specifies {len(inputs)} arguments, got: {len(given)}. Expected inputs: {inputs}. Received "
                f"inputs: {list(args)}. Function Type: {self.function_type!r}"
            )
        with _core.StopRecording(True):
            found: list[Any] = self.graph.call(given)
        return found

    def call_preflattened(self, args: Sequence[Any]) -> Any:
        """The result in its structure, for the flat list of inputs."""
        return self._concrete.pack(self.call_flat(*args))

    def call_with_captures(self, args: Sequence[Any], kwargs: dict[str, Any], captures: Sequence[Any]) -> Any:
        """The result for arguments as the function takes them, with other values for the captured tensors."""
        tensors = self._concrete._by_structure(tuple(args), dict(kwargs))
        return self.call_preflattened([*tensors, *captures])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for arguments as the function takes them."""
        return self.call_preflattened(self._concrete._by_structure(args, kwargs))

    def __repr__(self) -> str:
        return f"<AtomicFunction> {self.name.decode()}{self._concrete._signature_text()}"

    __str__ = __repr__
