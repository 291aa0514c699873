"""How this process and its logical processors are named: as worker of a cluster, or else as the local host."""

from __future__ import annotations

from collections.abc import Sequence

# The job and number of the processes that work together, this one first.
_processes: list[tuple[str, int]] = [("localhost", 0)]


def this_process() -> tuple[str, int]:
    """The job of this process, and its number there."""
    return _processes[0]


def name_processes(this: tuple[str, int], others: Sequence[tuple[str, int]]) -> None:
    """Says which processes of which jobs work together from now on."""
    _processes[:] = [this, *(process for process in others if process != this)]


def device_name(number: int) -> str:
    """The whole name of a logical processor of this process."""
    return _named(*_processes[0], number)


def device_names(count: int) -> list[str]:
    """The names of all logical processors, `count` in each process: short ones where this process is alone."""
    if len(_processes) == 1:
        return [f"/device:CPU:{number}" for number in range(count)]
    return [_named(job, task, number) for job, task in _processes for number in range(count)]


def _named(job: str, task: int, number: int) -> str:
    return f"/job:{job}/replica:0/task:{task}/device:CPU:{number}"
