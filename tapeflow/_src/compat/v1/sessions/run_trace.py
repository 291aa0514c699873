"""What `Session.run` reports in a `RunMetadata`: when each operation ran, how much it gave, and the graph that ran."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.sessions.stepwise import Event
from tapeflow._src.io.protos import messages
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.device_spec import DeviceSpec


def is_traced(options: Any) -> bool:
    """Whether a run has to report the times of its operations."""
    return options is not None and options.trace_level != 0


class RunTrace:
    """The operations of one run, in the order in which they ran."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Takes in an operation that ran."""
        self._events.append(event)

    def write_step_stats(self, run_metadata: Any) -> None:
        """Sets the times of the operations, by device."""
        run_metadata.ClearField("step_stats")
        stats_by_device: dict[str, Any] = {}
        events: list[Event | None] = [*self._events] or [None]
        for event in events:
            device = _device_of(event)
            if device not in stats_by_device:
                stats_by_device[device] = run_metadata.step_stats.dev_stats.add()
                stats_by_device[device].device = device
            if event is not None:
                stats_by_device[device].node_stats.append(_node_stats(event))

    def write_cost_graph(self, run_metadata: Any) -> None:
        """Sets the operations with the time that each took and the bytes that it gave."""
        run_metadata.ClearField("cost_graph")
        number_by_name = {event[0].name: number for number, event in enumerate(self._events)}
        for number, (operation, begin, end, values) in enumerate(self._events):
            node = run_metadata.cost_graph.node.add()
            node.name, node.id, node.device = operation.name, number, _device_of((operation, begin, end, values))
            node.compute_time = node.compute_cost = (end - begin) // 1000
            for tensor in operation.inputs:
                source, _, port = tensor.name.rpartition(":")
                if source in number_by_name:
                    node.input_info.add(preceding_node=number_by_name[source], preceding_port=int(port))
            for value in values:
                node.output_info.add(
                    size=_byte_count(value), shape=value.shape.as_proto(), dtype=value.dtype.as_datatype_enum
                )


def _device_of(event: Event | None) -> str:
    whole = DeviceSpec.from_string(device_name(0))
    named = event[0].device if event is not None else ""
    return whole.make_merged_spec(DeviceSpec.from_string(named)).to_string()


def _node_stats(event: Event) -> Any:
    operation, begin, end, values = event
    took = end - begin
    stats = messages.NodeExecStats(
        node_name=operation.name,
        timeline_label=f"{operation.name} = {operation.type}({', '.join(x.name for x in operation.inputs)})",
        all_start_micros=begin // 1000,
        all_start_nanos=begin,
        scheduled_micros=begin // 1000,
        scheduled_nanos=begin,
        op_end_rel_micros=max(took // 1000, 1),
        op_end_rel_nanos=took,
        all_end_rel_micros=max(took // 1000, 1),
        all_end_rel_nanos=took,
    )
    total = sum(map(_byte_count, values))
    if total:
        stats.memory.add(allocator_name="cpu", total_bytes=total, peak_bytes=total)
    for slot, value in enumerate(values):
        output = stats.output.add(slot=slot)
        description = output.tensor_description
        description.dtype = value.dtype.as_datatype_enum
        description.shape.CopyFrom(value.shape.as_proto())
        size = _byte_count(value)
        description.allocation_description.requested_bytes = size
        description.allocation_description.allocated_bytes = size
        description.allocation_description.allocator_name = "cpu"
    return stats


def _byte_count(value: Any) -> int:
    return int(value.shape.num_elements() or 0) * int(value.dtype.size or 0)
