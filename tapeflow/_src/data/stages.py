"""The stages of a dataset as a message: Keras 2 looks into it for a stage that shuffles."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import messages


def graph_of_stages(dataset: Any) -> Any:
    """A `GraphDef` with one node for each stage; functions and parameters are not in it."""
    stages: dict[int, Any] = {}
    remaining = [dataset]
    while remaining:
        stage = remaining.pop()
        if id(stage) not in stages:
            stages[id(stage)] = stage
            remaining += stage._inputs()
    operations = [stage._pipe.name.lstrip("_") for stage in stages.values()]
    name_by_id = dict(zip(stages, (f"{operation}_{i}" for i, operation in enumerate(operations))))
    graph = messages.GraphDef()
    for (key, stage), operation in zip(stages.items(), operations):
        graph.node.add(name=name_by_id[key], op=operation, input=[name_by_id[id(one)] for one in stage._inputs()])
    return graph
