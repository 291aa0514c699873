"""Collectives over MPI: each one is checked for agreement, has a deadline, and says who is missing."""

from __future__ import annotations

import os
import sys
import time
import zlib
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src.distribute.communicator import Collective, Shapes
from tapeflow._src.namespace import PACKAGE_FOLDER
from tapeflow._src.types.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError

_DEADLINE_VARIABLE = "TAPEFLOW_COLLECTIVE_TIMEOUT"
_DEFAULT_DEADLINE = 600.0
_ANNOUNCE_AFTER = 1.0  # seconds: a rank that waits longer says so to the others
_GRACE = 1.5  # seconds beyond the deadline, for the announcements of ranks that came last
_SPIN = 0.01  # seconds of polling before a rank that waits for others begins to sleep
_NAP = 0.0002
_TEXT_BYTES = 512


class Started(NamedTuple):
    """A collective that was posted; it holds what MPI reads and writes."""

    what: Collective
    number: int
    agreement: Any
    marks: tuple[np.ndarray, np.ndarray]
    data: list[Any]


class MpiWorld:
    """The processes that a launcher of MPI started.

    Three communicators keep messages apart: one for data, one for the agreement, one for reports of failures. The
    agreement is a maximum over two numbers, which is posted together with the data, so that it costs little, and which
    has the same size whatever the ranks disagree about.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        world = mpi.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        self._data, self._agreement, self._reports = world.Dup(), world.Dup(), world.Dup()
        self._number = 0  # of the collectives so far
        self._checksums: dict[Collective, int] = {}
        self.deadline = float(os.environ.get(_DEADLINE_VARIABLE, _DEFAULT_DEADLINE))
        self._failed: str | None = None
        if self.size > 1:
            sys.excepthook = self._end_all_processes

    # ---- collectives

    def start_all_reduce(self, array: np.ndarray, shapes: Shapes, name: str) -> Started:
        """Posts the message; it moves on whenever this process looks after its messages."""
        operation = self._mpi.LOR if array.dtype == np.dtype(bool) else self._mpi.SUM
        what = Collective.named(name, "SUM", array.dtype.name, shapes)
        return self._post(what, lambda: [self._data.Iallreduce(self._mpi.IN_PLACE, array, op=operation)])

    def all_gather(self, array: np.ndarray, name: str) -> list[np.ndarray]:
        """The arrays of all ranks: their sizes first, then their elements."""
        own = np.ascontiguousarray(array)
        what = Collective.named(name, "", own.dtype.name, (own.shape[1:],))
        sizes = np.empty(self.size, np.int64)
        here = np.array([own.shape[0]], np.int64)
        self._run(what, lambda: [self._data.Iallgather(here, sizes)])
        row = int(np.prod(own.shape[1:], dtype=np.int64)) * own.itemsize
        counts = [int(n) * row for n in sizes]
        received = np.empty(sum(counts), np.uint8)
        kind = self._mpi.BYTE
        self._run(
            what, lambda: [self._data.Iallgatherv([own.reshape(-1).view(np.uint8), kind], [received, counts, kind])]
        )
        ends = np.cumsum(counts)
        return [
            received[end - count : end].view(own.dtype).reshape(int(n), *own.shape[1:])
            for end, count, n in zip(ends, counts, sizes)
        ]

    def broadcast(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array of rank 0."""
        what = Collective.named(name, "", array.dtype.name, (array.shape,))
        buffer = np.array(array, order="C")
        if buffer.size:
            data = buffer.reshape(-1).view(np.uint8)
            self._run(what, lambda: [self._data.Ibcast([data, self._mpi.BYTE], root=0)])
        return buffer

    def any(self, flag: bool, name: str) -> bool:
        """Whether the flag holds on some rank."""
        here, everywhere = np.array([flag], np.uint8), np.empty(1, np.uint8)
        what = Collective.named(name, "MAX", "bool", ((),))
        self._run(what, lambda: [self._data.Iallreduce(here, everywhere, op=self._mpi.MAX)])
        return bool(everywhere[0])

    def barrier(self, name: str) -> None:
        """Returns when all ranks have called it."""
        self._run(Collective.named(name, "", "", ()), list)

    # ---- agreement and deadlines

    def _run(self, what: Collective, post: Any) -> None:
        """A collective from its beginning to its end."""
        self.finish(self._post(what, post))

    def _post(self, what: Collective, post: Any) -> Started:
        """Posts the messages of a collective, and beside them the agreement."""
        if self._failed is not None:
            raise FailedPreconditionError.of(
                f"{what}: an earlier collective of this program failed, so no other can run. {self._failed}"
            )
        self._number += 1
        checksum = self._checksums.get(what)
        if checksum is None:
            checksum = self._checksums[what] = zlib.crc32(repr(what.agreed).encode())
        mark = (self._number & 0x3FFFFFFF) << 32 | checksum
        mine, largest = np.array([mark, -mark], np.int64), np.empty(2, np.int64)
        agreement = self._agreement.Iallreduce(mine, largest, op=self._mpi.MAX)
        return Started(what, self._number, agreement, (mine, largest), post())

    def finish(self, started: Started) -> None:
        """Waits for the agreement, and then for the data."""
        self._wait([started.agreement], started, all_came=False)
        largest = started.marks[1]
        if largest[0] != -largest[1]:
            self._fail_disagreement(started)
        self._wait(started.data, started, all_came=True)

    def _wait(self, requests: list[Any], started: Started, all_came: bool) -> None:
        """Polls until the requests are done. A rank that waits for others sleeps between polls; one that moves data
        polls without sleeping, as polling is what moves it."""
        done = self._mpi.Request.Testall
        if done(requests):
            return
        began = time.monotonic()
        waiting = _Waiting(self, started)
        while not done(requests):
            waited = time.monotonic() - began
            if waited > _SPIN and not all_came:
                time.sleep(_NAP)
            else:
                os.sched_yield()
            if waited > _ANNOUNCE_AFTER:
                waiting.announce_and_listen()
            if waited > self.deadline + _GRACE:
                self._failed = waiting.report(waited)
                raise DeadlineExceededError.of(self._failed)

    def _fail_disagreement(self, started: Started) -> None:
        """Raises the error for ranks that called different collectives; all of them come here."""
        mine = np.frombuffer(_text(f"{started.what} at {_user_line()}"), np.uint8)
        texts = np.empty((self.size, _TEXT_BYTES), np.uint8)
        request = self._reports.Iallgather(mine, texts)
        limit = time.monotonic() + 10.0
        while not request.Test() and time.monotonic() < limit:
            time.sleep(_NAP)
        lines = [f"  rank {rank}: {_shown(texts[rank])}" for rank in range(self.size)]
        self._failed = "\n".join(
            [
                f"tf.distribute: collective {started.number} differs between the workers; all must call the same "
                "collectives, with the same dtypes and shapes, in the same order:",
                *lines,
            ]
        )
        raise InvalidArgumentError.of(self._failed)

    def _end_all_processes(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """Reports an uncaught exception and ends the other ranks, which would wait for this one."""
        sys.__excepthook__(kind, error, traceback)
        if self._failed is not None:
            time.sleep(_GRACE)  # the other ranks report the same failure
        sys.stderr.write(f"tf.distribute: rank {self.rank} ends the program because of the error above.\n")
        sys.stdout.flush()
        sys.stderr.flush()
        self.abort(1)

    def abort(self, code: int) -> None:
        """Ends all processes."""
        self._mpi.COMM_WORLD.Abort(code)


class _Waiting:
    """A rank that waits for others: it says so to them, and collects who else waits."""

    def __init__(self, group: MpiWorld, started: Started) -> None:
        self._group, self._what, self._number = group, started.what, started.number
        self._sent: list[Any] = []
        self._came: dict[int, str] = {}
        self._texts: list[np.ndarray] = []

    def announce_and_listen(self) -> None:
        """Sends what this rank waits for, once, and takes in what others sent."""
        group = self._group
        if not self._sent:
            text = np.frombuffer(_text(f"{self._number}|{self._what} at {_user_line()}"), np.uint8)
            self._texts.append(text)
            others = [rank for rank in range(group.size) if rank != group.rank]
            self._sent = [group._reports.Isend(text, dest=rank) for rank in others]
            self._came[group.rank] = _shown(text).partition("|")[2]
        status = group._mpi.Status()
        while group._reports.Iprobe(status=status):
            text = np.empty(_TEXT_BYTES, np.uint8)
            group._reports.Recv(text, source=status.Get_source())
            number, _, shown = _shown(text).partition("|")
            if int(number) == self._number:
                self._came[status.Get_source()] = shown

    def report(self, waited: float) -> str:
        """The sentence about a collective that some ranks did not reach."""
        group = self._group
        missing = [rank for rank in range(group.size) if rank not in self._came]
        lines = [f"  rank {rank} waits in {text}" for rank, text in sorted(self._came.items())]
        who = f"ranks {missing} did not come" if missing else "all ranks came, but the data did not arrive"
        return "\n".join(
            [
                f"tf.distribute: collective {self._number}, {self._what}, did not finish in {waited:.0f} s: {who}.",
                *lines,
                f"The deadline is {group.deadline:g} s; {_DEADLINE_VARIABLE} sets it.",
            ]
        )


def _text(text: str) -> bytes:
    return text.encode()[: _TEXT_BYTES - 1].ljust(_TEXT_BYTES, b"\0")


def _shown(text: np.ndarray) -> str:
    return text.tobytes().rstrip(b"\0").decode(errors="replace")


def _user_line() -> str:
    """File and line of the innermost frame of the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE_FOLDER) and "site-packages" not in name and not name.startswith("<frozen"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"
