"""A graph of TensorFlow 1 as the explanations see a tape: for gradients that `tf.gradients` found to be None."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import get_static_value

_MOST_NODES = 5000


class GraphTape:
    """The nodes of a graph as rows, with numbers for its values and variables."""

    _used_up = False
    _recording = False
    _watches_accessed_variables = True

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._variables: dict[int, int] = {}
        self._row_list, self._number_by_value = _core.graph_rows(graph, self._variables)

    def _rows(self) -> list[Any]:
        return list(self._row_list)

    def _records(self) -> list[Any]:
        return list(self._row_list)

    def _kept(self) -> list[Any]:
        return []

    def _events(self) -> list[Any]:
        return []

    def _leaves(self) -> dict[int, Any]:
        """Constants: dtype, number of elements, the first and the last eight bytes."""
        leaves: dict[int, Any] = {}
        for operation in getattr(self._graph, "get_operations", list)()[:_MOST_NODES]:
            index = self._index_of(operation.outputs[0]) if operation.outputs and not operation.inputs else None
            value = None if index is None else get_static_value(operation.outputs[0])
            if index is not None and isinstance(value, np.ndarray | np.generic):
                data = np.asarray(value).tobytes()
                ends = (int.from_bytes(part, "little") for part in (data[:8], data[-8:]))
                leaves[index] = ((operation.outputs[0].dtype.name, np.size(value), *ends), False)
        return leaves

    def _index_of(self, value: Any) -> int | None:
        if isinstance(value, _core.Variable):
            return self._variables.get(id(value))
        number = _core.value_number(value)
        return None if number is None or number >= len(self._number_by_value) else self._number_by_value[number]

    def _likeness(self, value: Any) -> Any:
        return None

    def _opened_at(self) -> tuple[Any, int]:
        return None, 0

    def _forgot(self, value: Any) -> str | None:
        return None

    def _elsewhere(self, value: Any) -> Any:
        return None

    def watched_variables(self) -> tuple[Any, ...]:
        return ()
