"""`timeline.Timeline`: the times of a run (`RunMetadata.step_stats`) in the format of Chrome's trace viewer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_LABEL = re.compile(r"(?P<name>.*?) = (?P<kind>[^(]*)\((?P<inputs>.*)\)")


class AllocationMaximum(NamedTuple):
    """The most bytes that an allocator held, when, and the tensors that it held then."""

    timestamp: int
    num_bytes: int
    tensors: set[str]


class StepStatsAnalysis(NamedTuple):
    """A run as events of a trace, and the most memory that it used, by allocator."""

    chrome_trace: Any
    allocator_maximums: dict[str, AllocationMaximum]


class ChromeTrace:
    """Events in the format of Chrome's trace viewer."""

    def __init__(self) -> None:
        self._metadata: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def name_process(self, pid: int, name: str) -> None:
        """Says what a row of the trace shows."""
        self._metadata.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})

    def add(self, phase: str, name: str, pid: int, tid: int, timestamp: int, **members: Any) -> None:
        """Adds an event at a time in microseconds."""
        event = {"ph": phase, "cat": members.pop("cat", "Op"), "name": name, "pid": pid, "tid": tid, "ts": timestamp}
        self._events.append(event | members)

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON."""
        trace = {"traceEvents": [*self._metadata, *self._events]}
        return json.dumps(trace, indent=4, separators=(",", ": ")) if pretty else json.dumps(trace)


class Timeline:
    """The times of the operations of a run, as `tf.compat.v1.RunMetadata` has them."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats, self._graph = step_stats, graph

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The run as a trace, and the memory that it used."""
        trace = ChromeTrace()
        source_by_name: dict[str, tuple[int, int, int]] = {}
        arrows: list[tuple[str, int, int, int]] = []
        for pid, (device, stats) in enumerate(self._devices()):
            trace.name_process(pid, f"{device} Compute")
            for tid, node in _lanes(stats):
                name, kind, inputs = _parts(node)
                begin, took = _span(node, op_time)
                arguments = {"name": name, "op": kind} | {f"input{i}": text for i, text in enumerate(inputs)}
                trace.add("X", kind, pid, tid, begin, dur=took, args=arguments)
                source_by_name[name] = (pid, tid, begin + took)
                arrows += [(text.lstrip("^").partition(":")[0], pid, tid, begin) for text in inputs]
        if show_dataflow:
            for number, (name, pid, tid, moment) in enumerate(a for a in arrows if a[0] in source_by_name):
                source = source_by_name[name]
                trace.add("s", name, *source, cat="DataFlow", id=number)
                trace.add("t", name, pid, tid, moment, cat="DataFlow", id=number)
        maximums = self._count_memory(trace if show_memory else None)
        return StepStatsAnalysis(trace, maximums)

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The run as JSON that chrome://tracing shows."""
        analysis = self.analyze_step_stats(show_dataflow, show_memory, op_time)
        text: str = analysis.chrome_trace.format_to_string(pretty=True)
        return text

    def _devices(self) -> Iterator[tuple[str, list[Any]]]:
        for device in self._step_stats.dev_stats:
            yield device.device, sorted(device.node_stats, key=lambda node: node.all_start_micros)

    def _count_memory(self, trace: ChromeTrace | None) -> dict[str, AllocationMaximum]:
        """The bytes that each allocator gave out during the run; outputs live until its end."""
        pid = len(self._step_stats.dev_stats)
        held: dict[str, tuple[int, set[str]]] = {}
        maximums: dict[str, AllocationMaximum] = {}
        nodes = [node for _, stats in self._devices() for node in stats]
        for node in sorted(nodes, key=lambda node: node.all_start_micros):
            for memory in node.memory:
                total, tensors = held.get(memory.allocator_name, (0, set()))
                held[memory.allocator_name] = total, tensors = total + memory.total_bytes, tensors | {node.node_name}
                maximums[memory.allocator_name] = AllocationMaximum(node.all_start_micros, total, tensors)
                if trace is not None:
                    counts = {memory.allocator_name: total}
                    trace.add("C", memory.allocator_name, pid, 0, node.all_start_micros, cat="Memory", args=counts)
        if trace is not None and held:
            trace.name_process(pid, "Allocators")
        return maximums


def _lanes(stats: list[Any]) -> Iterator[tuple[int, Any]]:
    """Each operation with a lane in which no other runs at that time."""
    free_from: list[int] = []
    for node in stats:
        begin, took = _span(node, "schedule")
        lane = next((i for i, moment in enumerate(free_from) if moment <= begin), len(free_from))
        if lane == len(free_from):
            free_from.append(0)
        free_from[lane] = begin + took
        yield lane, node


def _span(node: Any, op_time: str) -> tuple[int, int]:
    """When an operation began and how long it took: with the time to schedule it, or of its kernel alone."""
    if op_time == "schedule":
        return node.all_start_micros, node.all_end_rel_micros or node.op_end_rel_micros
    return node.all_start_micros + node.op_start_rel_micros, node.op_end_rel_micros - node.op_start_rel_micros


def _parts(node: Any) -> tuple[str, str, list[str]]:
    """The name, type and inputs of an operation, from its label."""
    if node.node_name == "RecvTensor":  # the label of a transfer tells what goes where
        return "RecvTensor", "RecvTensor", []
    found = _LABEL.match(node.timeline_label)
    if found is None:
        return node.node_name, node.node_name, []
    inputs = [text for text in found["inputs"].split(", ") if text]
    return found["name"], found["kind"], inputs
