"""What a dataset depends on that lies outside of it: variables, random numbers of operations, functions of Python.

A checkpoint of an iterator keeps none of it, so the iterator could not go on as it would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from tapeflow._src import _core
from tapeflow._src.data.options import ExternalStatePolicy
from tapeflow._src.data.pipes.ordering import Configured
from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.data.pipes.sources import Generated
from tapeflow._src.data.pipes.traced import Traced
from tapeflow._src.ops.random.seeds import Stream
from tapeflow._src.types.errors import FailedPreconditionError


def check_external_state(root: Pipe, policy: ExternalStatePolicy | None = None) -> None:
    """FailedPreconditionError if a dataset has state outside of itself, or a warning, as the policy says.

    Without a policy, that of the dataset's options holds, or else FAIL.
    """
    if policy is None:
        options = (pipe.external_state_policy for pipe in root.stages() if isinstance(pipe, Configured))
        policy = next((found for found in options if found is not None), ExternalStatePolicy.FAIL)
    if policy is ExternalStatePolicy.IGNORE:
        return
    operation = next(_stateful_operations(root), None)
    if operation is None:
        return
    if policy is ExternalStatePolicy.FAIL:
        raise FailedPreconditionError.of(
            f"{operation} is stateful. A checkpoint of the iterator cannot keep this state: set "
            "options.experimental_external_state_policy to WARN or IGNORE, or save no iterator."
        )
    warnings.warn(f"{operation} is stateful: its state is not in the checkpoint of the iterator.", stacklevel=4)


def _stateful_operations(root: Pipe) -> Iterator[str]:
    """TensorFlow's names of the operations with a state that functions of a dataset use."""
    for pipe in root.stages():
        if isinstance(pipe, Generated):
            yield "PyFunc"
        for function in vars(pipe).values():
            if isinstance(function, Traced):
                yield from _operations_of(function)


def _operations_of(function: Traced) -> Iterator[str]:
    for variable in function.graph.variables_used:
        yield "RandomUniform" if isinstance(variable, Stream) else "ReadVariableOp"
    waiting = [_core.graph_data(function.graph)]
    while waiting:
        for _, _, params, *_ in waiting.pop()[2]:
            held = params[0][1] if params else None
            if isinstance(held, tuple) and (name := getattr(held[0] if held else None, "user_function", None)):
                yield name
            elif isinstance(held, list):
                waiting += filter(_is_graph_data, held)  # of branches and loops
    for leaf in function.leaves:
        if isinstance(pipe := getattr(leaf, "_pipe", None), Pipe):
            yield from _stateful_operations(pipe)


def _is_graph_data(value: Any) -> bool:
    """Whether a parameter of a node is a graph, as `graph_data` describes it."""
    return isinstance(value, tuple) and len(value) > 2 and isinstance(value[1], dict) and isinstance(value[2], list)
