"""The stages of a dataset as a message: Keras 2 looks into it for a stage that shuffles."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.ops.arrays.conversion import constant


class Stages:
    """The members of datasets that describe their stages."""

    _pipe: Any

    def _inputs(self) -> list[Any]:
        """The datasets of which this one is made."""
        raise NotImplementedError

    def _as_serialized_graph(
        self,
        allow_stateful: bool | None = None,
        strip_device_assignment: bool | None = None,
        external_state_policy: Any = None,
    ) -> Any:
        """A serialized `GraphDef` with one node for each stage; functions and parameters are not in it."""
        stages: dict[int, Stages] = {}
        waiting: list[Stages] = [self]
        while waiting:
            dataset = waiting.pop()
            if id(dataset) not in stages:
                stages[id(dataset)] = dataset
                waiting += dataset._inputs()
        operations = [dataset._pipe.name.lstrip("_") for dataset in stages.values()]
        name_by_id = dict(zip(stages, (f"{operation}_{i}" for i, operation in enumerate(operations))))
        graph = messages.GraphDef()
        for (key, dataset), operation in zip(stages.items(), operations):
            inputs = [name_by_id[id(source)] for source in dataset._inputs()]
            graph.node.add(name=name_by_id[key], op=operation, input=inputs)
        return constant(graph.SerializeToString())
