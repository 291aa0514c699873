"""Several steps over an iterator in one call, as TensorFlow 1's strategies run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.control_flow.branches import control_dependencies
from tapeflow._src.distribute.context import get_replica_context, get_strategy
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.types import nest


class MultiStepContext:
    """What the steps give to the caller: the outputs of the last one, and in a graph the operation that runs them."""

    def __init__(self, initial_loop_values: Any = None) -> None:
        self._last_step_outputs: dict[str, Any] = dict(initial_loop_values or {})
        self._non_tensor_outputs: dict[str, Any] = {}
        self.run_op: Any = None

    last_step_outputs = property(lambda self: self._last_step_outputs, doc="The outputs of the last step, by name.")
    non_tensor_outputs = property(lambda self: self._non_tensor_outputs, doc="Other outputs of the last step, by name.")

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Names an output, in a replica or outside of them; with `reduce_op`, that of all replicas as one."""

        def keep(strategy: Any, value: Any) -> None:
            self._last_step_outputs[name] = value if reduce_op is None else strategy.reduce(reduce_op, value, axis=None)

        _for_all_replicas(keep, output)

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Names an output that is no tensor; a tuple with one for each replica if it is called in replicas."""

        in_replica = get_replica_context() is not None

        def keep(strategy: Any, value: Any) -> None:
            self._non_tensor_outputs[name] = strategy.experimental_local_results(value) if in_replica else value

        _for_all_replicas(keep, output)


def _for_all_replicas(keep: Callable[[Any, Any], None], output: Any) -> None:
    replica = get_replica_context()
    if replica is None:
        keep(get_strategy(), output)
    else:
        replica.merge_call(keep, args=(output,))


def run_steps(strategy: Any, fn: Any, iterator: Any, iterations: Any, initial_loop_values: Any) -> MultiStepContext:
    """Calls `fn(context, element)` for so many elements, one after the other."""
    if not isinstance(iterations, int):
        raise TypeError(
            f"experimental_run_steps_on_iterator: `iterations` must be an int; got {type(iterations).__name__}"
        )
    context = MultiStepContext(initial_loop_values)
    before: list[Any] = []
    with strategy.scope():
        for _ in range(iterations):
            with control_dependencies(before):
                step = group(*nest.flatten(fn(context, iterator.get_next())))
            before = [] if step is None else [step]
    context.run_op = before[0] if before else None
    return context
