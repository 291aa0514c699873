"""The processes that a launcher of MPI started: what MPI moves for them, and how they end together.

How they agree on what they call, and how they add tensors, depends on where they are: one_machine.py, or
several_machines.py.
"""

from __future__ import annotations

import abc
import atexit
import os
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from tapeflow._src.distribute.communicator import Collective
from tapeflow._src.namespace import PACKAGE_FOLDER
from tapeflow._src.types.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError

DEADLINE_VARIABLE = "TAPEFLOW_COLLECTIVE_TIMEOUT"
_DEFAULT_DEADLINE = 600.0
_SPIN = 0.01  # seconds of polling before a rank that waits for others begins to sleep
NAP = 0.0002
GRACE = 1.5  # seconds beyond the deadline, for the reports of ranks that came last
TEXT_BYTES = 512


def deadline_of_program() -> float:
    """For how many seconds a rank waits for others."""
    return float(os.environ.get(DEADLINE_VARIABLE, _DEFAULT_DEADLINE))


class MpiWorld(abc.ABC):
    """All processes of this program."""

    last_at_once = False

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        world = mpi.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        self._data = world.Dup()
        self.deadline = deadline_of_program()
        self._failed: str | None = None
        atexit.register(self.say_ended)
        sys.excepthook = self._end_all_processes

    # ---- collectives

    @abc.abstractmethod
    def start_all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> Any:
        """Starts to add tensors of one dtype."""

    @abc.abstractmethod
    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """The sums of tensors of one dtype."""

    @abc.abstractmethod
    def finish_all_reduce(self, started: Any) -> list[Any]:
        """Waits for the sums."""

    @abc.abstractmethod
    def say_ended(self) -> None:
        """Tells the others that this program is over, so that they do not wait for it."""

    @abc.abstractmethod
    def _agree(self, what: Collective) -> None:
        """Returns when all processes have called this collective; raises if they call different ones."""

    def _report(self, what: Collective, waited: float) -> str:
        """The text about data that did not arrive."""
        return (
            f"tf.distribute: {what}: all ranks came, but the data did not arrive in {waited:.0f} s. "
            f"The deadline is {self.deadline:g} s; {DEADLINE_VARIABLE} sets it."
        )

    def all_gather(self, array: np.ndarray, name: str) -> list[np.ndarray]:
        """The arrays of all ranks: their sizes first, then their elements."""
        own = np.ascontiguousarray(array)
        what = Collective.named(name, "", own.dtype.name, (own.shape[1:],))
        self._agree(what)
        sizes = np.empty(self.size, np.int64)
        here = np.array([own.shape[0]], np.int64)
        self._move(what, lambda: self._data.Iallgather(here, sizes))
        row = int(np.prod(own.shape[1:], dtype=np.int64)) * own.itemsize
        counts = [int(n) * row for n in sizes]
        received = np.empty(sum(counts), np.uint8)
        kind = self._mpi.BYTE
        sent = own.reshape(-1).view(np.uint8)
        self._move(what, lambda: self._data.Iallgatherv([sent, kind], [received, counts, kind]))
        ends = np.cumsum(counts)
        return [
            received[end - count : end].view(own.dtype).reshape(int(n), *own.shape[1:])
            for end, count, n in zip(ends, counts, sizes)
        ]

    def broadcast(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array of rank 0."""
        what = Collective.named(name, "", array.dtype.name, (array.shape,))
        self._agree(what)
        buffer = np.array(array, order="C")
        if buffer.size:
            data = buffer.reshape(-1).view(np.uint8)
            self._move(what, lambda: self._data.Ibcast([data, self._mpi.BYTE], root=0))
        return buffer

    def any(self, flag: bool, name: str) -> bool:
        """Whether the flag holds on some rank."""
        here, everywhere = np.array([flag], np.uint8), np.empty(1, np.uint8)
        what = Collective.named(name, "MAX", "bool", ((),))
        self._agree(what)
        self._move(what, lambda: self._data.Iallreduce(here, everywhere, op=self._mpi.MAX))
        return bool(everywhere[0])

    def barrier(self, name: str) -> None:
        """Returns when all ranks have called it."""
        self._agree(Collective.named(name, "", "", ()))

    # ---- waiting and failing

    def _move(self, what: Collective, post: Callable[[], Any]) -> None:
        """Moves data for ranks that have agreed."""
        request = post()
        self._poll([request], lambda waited: self._check_deadline(what, waited))

    def _poll(self, requests: list[Any], while_waiting: Callable[[float], None]) -> None:
        """Tests requests until they are done: testing is what moves the data."""
        done = self._mpi.Request.Testall
        if done(requests):
            return
        began = time.monotonic()
        while not done(requests):
            waited = time.monotonic() - began
            if waited > _SPIN:
                time.sleep(NAP)
                while_waiting(waited)
            else:
                os.sched_yield()

    def _check_deadline(self, what: Collective, waited: float) -> None:
        if waited > self.deadline + GRACE:
            raise self._deadline_error(self._report(what, waited))

    def _deadline_error(self, text: str) -> Exception:
        self._failed = text
        return DeadlineExceededError.of(text)

    def _disagreement_error(self, number: int, called: list[str]) -> Exception:
        lines = [f"  rank {rank}: {text}" for rank, text in enumerate(called)]
        self._failed = "\n".join(
            [
                f"tf.distribute: collective {number} differs between the workers; all must call the same "
                "collectives, with the same dtypes and shapes, in the same order:",
                *lines,
            ]
        )
        return InvalidArgumentError.of(self._failed)

    def _require_sound(self, name: str) -> None:
        if self._failed is not None:
            raise FailedPreconditionError.of(
                f"{name}: an earlier collective of this program failed, so no other can run. {self._failed}"
            )

    def _end_all_processes(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """Reports an uncaught exception and ends the other ranks, which would wait for this one."""
        sys.__excepthook__(kind, error, traceback)
        if self._failed is not None:
            time.sleep(GRACE)  # the other ranks report the same failure
        sys.stderr.write(f"tf.distribute: rank {self.rank} ends the program because of the error above.\n")
        sys.stdout.flush()
        sys.stderr.flush()
        self.abort(1)

    def abort(self, code: int) -> None:
        """Ends all processes."""
        self._mpi.COMM_WORLD.Abort(code)


def packed_text(text: str) -> np.ndarray:
    """A text as TEXT_BYTES bytes, the end of a longer one cut off."""
    return np.frombuffer(text.encode()[: TEXT_BYTES - 1].ljust(TEXT_BYTES, b"\0"), np.uint8)


def unpacked_text(text: np.ndarray) -> str:
    """The text that was packed."""
    return text.tobytes().partition(b"\0")[0].decode(errors="replace")


def user_line(frame: FrameType | None = None) -> str:
    """File and line of the innermost frame of the user's program, by default of the caller's."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        library = "site-packages" in name or "/lib/python" in name or name.startswith("<frozen")
        if not library and not name.startswith(PACKAGE_FOLDER):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"
