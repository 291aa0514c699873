"""Where the operations of a graph are to run: the blocks of `Graph.device`, names or functions, and what they mean.

A graph runs in this process whatever its devices are called; the names are part of the graph and of its message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.operation import Operation, operation_of
from tapeflow._src.config import device as process_device
from tapeflow._src.namespace import public
from tapeflow._src.types.device_spec import DeviceSpec

Block = DeviceSpec | Callable[[Any], Any] | None


class DevicesOfGraph(_core.Graph):
    """The device blocks of a graph. A node belongs to those that were open when it was made."""

    _names_devices = True

    def _begin_devices(self) -> None:
        self._device_blocks: tuple[Block, ...] = ()  # those open now, outermost first
        self._device_marks: list[tuple[int, tuple[Block, ...]]] = [(0, ())]  # from which node on which were open
        self._device_by_node: list[str] = []

    @lasting_context
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Names the device of the operations inside: inner names count more, None forgets the outer ones."""
        block: Block = device_name_or_function
        if isinstance(block, str) or (block is not None and not callable(block)):
            block = block if isinstance(block, DeviceSpec) else DeviceSpec.from_string(getattr(block, "name", block))
        with self._inside(*self._device_blocks, block):
            yield

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations inside are to run where `op` does, whatever the blocks around say; of None, anywhere."""
        place = None if op is None else DeviceSpec.from_string(op.device)
        blocks = self._device_blocks if op is None else (None, place)
        with self._inside(*blocks):
            yield

    @contextmanager
    def _inside(self, *blocks: Block) -> Iterator[None]:
        before = self._device_blocks
        self._open_blocks(blocks)
        try:
            yield
        finally:
            self._open_blocks(before)

    def _open_blocks(self, blocks: tuple[Block, ...]) -> None:
        self._device_blocks = blocks
        if self._device_marks[-1][0] == self.node_count:
            self._device_marks.pop()
        self._device_marks.append((self.node_count, blocks))

    def _device_of_node(self, number: int) -> str:
        """The name of the device of a node. Functions of blocks see the nodes in the order of their making, once."""
        for i in range(len(self._device_by_node), number + 1):
            self._device_by_node.append("")
            if self.node(i) is not None:
                mark = bisect_right(self._device_marks, i, key=lambda mark: mark[0]) - 1
                self._apply_blocks(operation_of(self, i), self._device_marks[mark][1])
        return self._device_by_node[number]

    def _set_device_of_node(self, number: int, device: str) -> None:
        """Names the device of a node anew."""
        self._device_of_node(number)
        self._device_by_node[number] = device

    def _apply_device_functions(self, op: Operation) -> None:
        """Lets the open blocks name the device of an operation."""
        self._apply_blocks(op, self._device_blocks)

    @staticmethod
    def _apply_blocks(operation: Operation, blocks: tuple[Block, ...]) -> None:
        for block in reversed(blocks):
            if block is None:
                break
            if isinstance(block, DeviceSpec):
                merged = block.make_merged_spec(DeviceSpec.from_string(operation.device)).to_string()
            else:
                chosen = block(operation)
                merged = chosen.to_string() if hasattr(chosen, "to_string") else chosen or ""
            operation._set_device(merged)


def merge_device(spec: Any) -> Callable[[Any], str]:
    """A function for `tf.device` that adds what `spec` names to what inner blocks name."""
    known = spec if isinstance(spec, DeviceSpec) else DeviceSpec.from_string(spec or "")
    return lambda node: known.make_merged_spec(DeviceSpec.from_string(node.device or "")).to_string()


@public("compat.v1.device")
def device_v1(device_name_or_function: Any) -> Any:
    """A context that names the device of its operations; in a graph, a function may name it for each of them.

    >>> with tf.Graph().as_default(), tf.compat.v1.device("/job:worker"), tf.compat.v1.device("/cpu:0"):
    ...     tf.constant(1.).op.device
    '/job:worker/device:CPU:0'
    """
    graph = _core.current_graph()
    if getattr(graph, "_names_devices", False):
        return graph.device(device_name_or_function)
    if callable(device_name_or_function):
        raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
    return process_device(device_name_or_function)
