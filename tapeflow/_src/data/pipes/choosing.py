"""Elements chosen among several datasets, or among their likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe
from tapeflow._src.data.pipes.structure import Leaves, common_spec
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec


class Directed(Pipe):
    """Elements of the pipes that another pipe names by number."""

    name = "_DirectedInterleaveDataset"

    def __init__(self, selector: Pipe, pipes: list[Pipe], stops: bool) -> None:
        spec = pipes[0].spec
        for pipe in pipes[1:]:
            spec = common_spec(spec, pipe.spec, "choose_from_datasets")
        super().__init__(spec, selector, *pipes)
        self._stops = stops

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        selector, *pipes = self.inputs
        open_ones: list[Iterator[Leaves] | None] = [pipe.begin(iteration) for pipe in pipes]
        for (choice,) in selector.begin(iteration):
            number = int(choice)
            if not 0 <= number < len(open_ones):
                raise InvalidArgumentError.of(
                    f"Selector index out of range: {number} >= {len(open_ones)}",
                )
            one = open_ones[number]
            element = None if one is None else next(one, None)
            if element is not None:
                yield element
                continue
            open_ones[number] = None
            if self._stops or all(x is None for x in open_ones):
                return

    def count(self) -> int:
        if all(pipe.count() == INFINITE for pipe in self.inputs):
            return INFINITE
        return UNKNOWN


class Unique(Pipe):
    """Each element once."""

    name = "_UniqueDataset"

    def __init__(self, before: Pipe) -> None:
        super().__init__(before.spec, before)
        allowed = ("int32", "int64", "string")
        for spec in self.specs:
            if not isinstance(spec, TensorSpec) or spec.dtype.name not in allowed:
                raise TypeError(
                    "`tf.data.Dataset.unique` does not support type "
                    f"{getattr(spec, 'dtype', spec)!r} -- only `tf.int32`, `tf.int64`, and `tf.string` are supported."
                )

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        seen: set[Any] = set()
        for element in self.inputs[0].begin(iteration):
            key = tuple([(tuple(leaf.shape), _content(leaf)) for leaf in element])
            if key not in seen:
                seen.add(key)
                yield element


def _content(leaf: Any) -> Any:
    array = leaf.numpy()
    if isinstance(array, bytes):
        return array
    return tuple(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes()
