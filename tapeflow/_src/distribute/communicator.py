"""The processes of a program as one group: what a collective needs of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

# Set by the launchers of Open MPI, MPICH and its relatives, and `srun` for each process that they start. SLURM_NTASKS
# is no sign: a batch script has it as well.
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


Shapes = tuple[tuple[int, ...], ...]


class Collective(NamedTuple):
    """What a collective does. All processes must agree on it, except for what is said `about` it, such as a variable:
    names may differ."""

    kind: str
    reduce_op: str
    dtype: str
    shapes: Shapes
    about: str = ""

    @classmethod
    def named(cls, name: str, reduce_op: str, dtype: str, shapes: Shapes) -> Collective:
        """A collective by its name, "broadcast", or "broadcast of the initial value of v" with what it is about."""
        kind, _, about = name.partition(" of ")
        return cls(kind, reduce_op, dtype, shapes, about)

    @classmethod
    def sum_of(cls, name: str, tensors: Sequence[Any]) -> Collective:
        """The sums of tensors of one dtype."""
        return cls.named(name, "SUM", tensors[0].dtype.name, tuple(tuple(tensor.shape) for tensor in tensors))

    @property
    def agreed(self) -> tuple[Any, ...]:
        """What must be equal in all processes."""
        return self[:-1]

    def __str__(self) -> str:
        shown = [f"{self.dtype}{list(shape)}" for shape in self.shapes[:4]]
        more = f" and {len(self.shapes) - 4} more" if len(self.shapes) > 4 else ""
        about = f" of {self.about}," if self.about else ""
        what = f" of {', '.join(shown)}{more}" if shown else ""
        return f"{self.kind}{f'({self.reduce_op})' if self.reduce_op else ''}{about}{what}"


class Communicator(Protocol):
    """A group of processes. Every method that communicates is a collective: all processes call it in one order."""

    rank: int
    size: int
    last_at_once: bool  # whether `all_reduce` is faster than a start and a finish with nothing between them

    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """The sums of tensors of one dtype over all processes; float32 may travel as bfloat16."""

    def start_all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> Any:
        """Starts to add tensors of one dtype over all processes; float32 may travel as bfloat16."""

    def finish_all_reduce(self, started: Any) -> list[Any]:
        """Waits for the sums."""

    def all_gather(self, array: np.ndarray, name: str) -> list[np.ndarray]:
        """The arrays of all processes, which may differ in their first dimension."""

    def broadcast(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array of the first process."""

    def any(self, flag: bool, name: str) -> bool:
        """Whether the flag holds in some process."""

    def barrier(self, name: str) -> None:
        """Returns when all processes have called it."""


class OneProcess:
    """The group of a program that was started alone."""

    rank, size = 0, 1
    last_at_once = False

    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """The tensors."""
        return tensors

    def start_all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """The tensors are the sums."""
        return tensors

    def finish_all_reduce(self, started: list[Any]) -> list[Any]:
        """The tensors."""
        return started

    def all_gather(self, array: np.ndarray, name: str) -> list[np.ndarray]:
        """The array."""
        return [array]

    def broadcast(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array."""
        return array

    def any(self, flag: bool, name: str) -> bool:
        """The flag."""
        return flag

    def barrier(self, name: str) -> None:
        """Returns at once."""


class WithDeadline:
    """A group of several processes whose collectives have a deadline of their own."""

    def __init__(self, group: Any, seconds: float) -> None:
        self._group, self._seconds = group, seconds
        self.rank, self.size, self.last_at_once = group.rank, group.size, group.last_at_once

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._group, name)

        def call(*args: Any) -> Any:
            before = self._group.deadline
            self._group.deadline = self._seconds
            try:
                return method(*args)
            finally:
                self._group.deadline = before

        return call


def started_processes() -> int:
    """How many processes a launcher of MPI started, as far as the environment says so."""
    for variable in _SIZE_VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdecimal():
            return int(value)
    return 1
