"""Processes of one machine: they agree and add tensors in memory that MPI lets all of them see."""

from __future__ import annotations

import sys
import threading
import time
import zlib
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.distribute.communicator import Collective
from tapeflow._src.distribute.mpi import (
    DEADLINE_VARIABLE,
    GRACE,
    NAP,
    TEXT_BYTES,
    MpiWorld,
    packed_text,
    unpacked_text,
    user_line,
)

_TEXTS = 4096  # bytes at the start of a segment for what a rank says of itself
_CONTROL = 16384  # bytes for counters and marks, at least those of _core.SharedWindow
_ALL_BYTES = 32 << 20  # of the slots of all ranks together: containers often have 64 MB of shared memory
_LEAST_BYTES, _MOST_BYTES = 1 << 20, 2 << 20  # of one rank: what is written stays in a cache until it is read
_SLICE = 0.2  # seconds for which a rank waits without a look at signals and deadlines
_SAY_AFTER = 0.5  # seconds after which a rank that waits writes down where
_WATCH_EVERY = 0.5

_ALL_REDUCE = zlib.crc32(repr("all_reduce").encode())


class Started(NamedTuple):
    """A collective that was announced."""

    number: int
    name: str
    tensors: list[Any]
    what: Collective | None = None

    def __str__(self) -> str:
        return str(self.what or Collective.sum_of(self.name, self.tensors))


class OneMachine(MpiWorld):
    """All processes of the program, which are on this machine."""

    def __init__(self, mpi: Any) -> None:
        super().__init__(mpi)
        slots = min(_MOST_BYTES, max(_LEAST_BYTES, _ALL_BYTES // self.size))
        size = _TEXTS + _CONTROL + slots
        self._memory = mpi.Win.Allocate_shared(size, 1, comm=mpi.COMM_WORLD)
        segments = [np.frombuffer(self._memory.Shared_query(rank)[0], np.uint8) for rank in range(self.size)]
        segments[self.rank][: _TEXTS + _CONTROL] = 0
        mpi.COMM_WORLD.Barrier()
        self._board = _Board([segment[:_TEXTS] for segment in segments], self.rank)
        addresses = [segment.ctypes.data + _TEXTS for segment in segments]
        self._window = _core.SharedWindow(addresses, self.rank, size - _TEXTS)
        self._checksums: dict[str, int] = {}
        threading.Thread(target=self._watch, name="tf.distribute", daemon=True).start()

    # ---- collectives

    def start_all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> Started:
        """Copies the tensors to where the others see them, as far as there is room."""
        if self._failed is not None:
            self._require_sound(name)
        checksum = self._checksums.get(name)
        if checksum is None:
            checksum = self._checksums[name] = _checksum(name.partition(" of ")[0])
        return Started(self._window.start(checksum, tensors, bfloat16), name, tensors)

    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """Copies and adds piece by piece."""
        return self.finish_all_reduce(self.start_all_reduce(tensors, name, bfloat16))

    def finish_all_reduce(self, started: Started) -> list[Any]:
        """Adds what all have copied."""
        sums = self._window.finish(started.number, _SLICE)
        return sums if sums else self._finish_slowly(started, sums)

    def sum_at_once(self, value: Any) -> Any:
        """The sum of one tensor in an eager program that records nothing; None for everything else."""
        if self._failed is not None:
            self._require_sound("all_reduce")
        total = self._window.sum(_ALL_REDUCE, value, _SLICE)
        if total.__class__ is not int:
            return total
        return self.finish_all_reduce(Started(total, "all_reduce", [value]))[0]

    def _agree(self, what: Collective) -> None:
        self._require_sound(what.kind)
        started = Started(self._window.start(_checksum(what.agreed), [], False), what.kind, [], what)
        found = self._window.finish(started.number, _SLICE)
        if found is None or found is False:
            self._finish_slowly(started, found)

    def say_ended(self) -> None:
        """Tells the others that this program is over, so that they do not wait for it."""
        self._board.say_ended()

    # ---- waiting and failing

    def _finish_slowly(self, started: Started, found: Any) -> list[Any]:
        began, said = time.monotonic() - _SLICE, False
        while True:
            if found is False:
                raise self._disagreement(started)
            if found is not None:
                return list(found)
            waited = time.monotonic() - began
            if waited > _SAY_AFTER and not said:
                self._board.say_waits(started)
                said = True
            ended = [rank for rank in self._missing(started.number) if self._board.has_ended(rank)]
            if ended or waited > self.deadline:
                raise self._late(started, waited, ended)
            found = self._window.finish(started.number, min(_SLICE, self.deadline))

    def _missing(self, number: int) -> list[int]:
        return [rank for rank, last in enumerate(self._window.announced()) if last < number]

    def _late(self, started: Started, waited: float, ended: list[int]) -> Exception:
        missing = self._missing(started.number)
        runs = self._window.times(started.number)
        board = self._board
        board.say_waits(started)
        time.sleep(2 * NAP)
        lines = [
            f"  rank {rank} {board.absence(rank)}"
            if rank in missing
            else f"  rank {rank} waits in {board.wait_of(rank)}"
            for rank in range(self.size)
        ]
        if ended:
            who = f"ranks {ended} have ended their program"
        elif missing:
            who = f"ranks {missing} did not come"
        else:
            who = "all ranks came, but the data did not arrive"
        text = "\n".join(
            [
                f"tf.distribute: collective {started.number}, {started}, in its step {runs}, did not finish in "
                f"{waited:.0f} s: {who}.",
                *lines,
                f"The deadline is {self.deadline:g} s; {DEADLINE_VARIABLE} sets it.",
            ]
        )
        board.say_failed(text)
        return self._deadline_error(text)

    def _disagreement(self, started: Started) -> Exception:
        """The error for ranks that called different collectives; all of them come here."""
        board, number = self._board, started.number
        board.say_waits(started)
        limit = time.monotonic() + 10.0
        while time.monotonic() < limit and any(board.number_of(rank) != number for rank in range(self.size)):
            time.sleep(NAP)
        found = [board.wait_of(rank) for rank in range(self.size)]
        error = self._disagreement_error(number, found)
        board.say_failed(str(self._failed))
        return error

    def _watch(self) -> None:
        """Runs in a thread: writes down where the program is, and shows a failure that others have reported."""
        main = threading.main_thread().ident
        shown = False
        while True:
            time.sleep(_WATCH_EVERY)
            frame = sys._current_frames().get(main or 0)
            if frame is not None:
                self._board.say_line(user_line(frame))
            text = self._board.failure_of_others()
            if text and self._failed is None and not shown:
                shown = True
                time.sleep(GRACE / 2)  # perhaps this rank comes to the same end
                if self._failed is None:
                    sys.stderr.write(f"tf.distribute: rank {self.rank} was waited for:\n{text}\n")
                    sys.stderr.flush()


class _Board:
    """What each rank says of itself, in memory that all see: where it waits, where it is, and how it failed."""

    _WAIT, _LINE, _FAILURE, _ENDED = 0, TEXT_BYTES, 2 * TEXT_BYTES, _TEXTS - 1

    def __init__(self, segments: list[np.ndarray], rank: int) -> None:
        self._segments, self._mine, self._rank = segments, segments[rank], rank

    def say_waits(self, started: Started) -> None:
        """Writes down which collective this rank waits in."""
        self._mine[self._WAIT : self._LINE] = packed_text(f"{started.number}|{started} at {user_line()}")

    def say_line(self, line: str) -> None:
        """Writes down where the program is."""
        self._mine[self._LINE : self._FAILURE] = packed_text(line)

    def say_failed(self, text: str) -> None:
        """Writes down why this rank ends."""
        room = self._ENDED - self._FAILURE
        cut = text.encode()[: room - 1].ljust(room, b"\0")
        self._mine[self._FAILURE : self._ENDED] = np.frombuffer(cut, np.uint8)

    def say_ended(self) -> None:
        """Writes down that the program of this rank is over."""
        self._mine[self._ENDED] = 1

    def has_ended(self, rank: int) -> bool:
        """Whether the program of a rank is over."""
        return bool(self._segments[rank][self._ENDED])

    def _wait(self, rank: int) -> tuple[str, str]:
        number, _, text = unpacked_text(self._segments[rank][self._WAIT : self._LINE]).partition("|")
        return number, text

    def number_of(self, rank: int) -> int:
        """The collective in which a rank said that it waits."""
        return int(self._wait(rank)[0] or 0)

    def wait_of(self, rank: int) -> str:
        """The collective in which a rank waits, and its line."""
        return self._wait(rank)[1] or f"it at {self._line(rank)}"

    def _line(self, rank: int) -> str:
        return unpacked_text(self._segments[rank][self._LINE : self._FAILURE]) or "an unknown line"

    def absence(self, rank: int) -> str:
        """Where a rank is that did not come."""
        return "has ended its program" if self.has_ended(rank) else f"did not come; it is at {self._line(rank)}"

    def failure_of_others(self) -> str:
        """Why another rank failed; empty if none did."""
        for rank, segment in enumerate(self._segments):
            if rank != self._rank and segment[self._FAILURE]:
                return unpacked_text(segment[self._FAILURE : self._ENDED])
        return ""


def _checksum(agreed: Any) -> int:
    return zlib.crc32(repr(agreed).encode())
