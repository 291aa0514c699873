"""Processes of several machines: they agree and add tensors by messages of MPI."""

from __future__ import annotations

import atexit
import ctypes
import math
import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import primitives
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
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_ANNOUNCE_AFTER = 1.0  # seconds: a rank that waits longer says so to the others, and reads what they say
_HEAR_OTHERS = 1.0  # seconds for which a rank that ends listens to others that do
_WAITS, _ENDED = 0, 1  # tags of reports


class Started(NamedTuple):
    """A collective that was posted; it holds what MPI reads and writes."""

    what: Collective
    number: int
    agreement: Any
    marks: tuple[np.ndarray, np.ndarray]
    message: Any = None


class SeveralMachines(MpiWorld):
    """All processes of the program, wherever they are.

    Three communicators keep messages apart: one for data, one for the agreement, one for reports of failures. The
    agreement is a maximum over two numbers, which is posted together with the data, so that it costs little, and which
    has the same size whatever the ranks disagree about.
    """

    last_at_once = True

    def __init__(self, mpi: Any) -> None:
        super().__init__(mpi)
        self._agreement, self._reports = mpi.COMM_WORLD.Dup(), mpi.COMM_WORLD.Dup()
        self._number = 0  # of the collectives so far
        self._checksums: dict[Collective, int] = {}
        self._times: dict[Collective, int] = {}
        self._last_of_ended: dict[int, int] = {}  # by rank: the last collective of a program that is over
        atexit.register(self._say_ended)

    def send_to_others(self, text: str, tag: int) -> list[Any]:
        """Starts to send a report; gives what must be kept until it has arrived."""
        packed = packed_text(text)
        others = [rank for rank in range(self.size) if rank != self.rank]
        return [packed, *(self._reports.Isend(packed, dest=rank, tag=tag) for rank in others)]

    def reports(self) -> Iterator[tuple[int, int, str]]:
        """What others have sent: rank, number of a collective, text. The ranks that have ended are kept."""
        status = self._mpi.Status()
        while self._reports.Iprobe(status=status):
            source, tag = status.Get_source(), status.Get_tag()
            text = np.empty(TEXT_BYTES, np.uint8)
            self._reports.Recv(text, source=source, tag=tag)
            number, _, shown = unpacked_text(text).partition("|")
            if tag == _ENDED:
                self._last_of_ended[source] = int(number)
            else:
                yield source, int(number), shown

    def _say_ended(self) -> None:
        """Tells the others that this program is over: they need not wait for the deadline of a further collective.
        Those that end at the same time are heard, as some MPIs complain of messages that nobody reads."""
        if self._failed is not None:
            return
        self._farewell = self.send_to_others(str(self._number), _ENDED)
        limit = time.monotonic() + _HEAR_OTHERS
        while len(self._last_of_ended) < self.size - 1 and time.monotonic() < limit:
            for _ in self.reports():
                pass
            time.sleep(NAP)

    # ---- collectives

    def start_all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> Started:
        """Posts the message; it moves on whenever this process looks after its messages."""
        started = self._post(Collective.sum_of(name, tensors))
        narrow = bfloat16 and tensors[0].dtype.name == "float32"
        message: Any = NarrowMessage(self, tensors) if narrow else SumMessage(self, tensors)
        return started._replace(message=message)

    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """Adds what nothing is computed beside: MPI's blocking all-reduce is faster than the one that can wait."""
        if bfloat16 and tensors[0].dtype.name == "float32":
            return self.finish_all_reduce(self.start_all_reduce(tensors, name, bfloat16))
        what = Collective.sum_of(name, tensors)
        self._agree(what)
        return SumMessage(self, tensors, at_once=True).finish(what)

    def finish_all_reduce(self, started: Started) -> list[Any]:
        """Waits for the agreement, and then for the sums."""
        self._finish(started)
        sums: list[Any] = started.message.finish(started.what)
        return sums

    def _agree(self, what: Collective) -> None:
        self._finish(self._post(what))

    # ---- agreement and deadlines

    def _post(self, what: Collective) -> Started:
        self._require_sound(what.kind)
        self._number += 1
        self._times[what] = self._times.get(what, 0) + 1
        checksum = self._checksums.get(what)
        if checksum is None:
            checksum = self._checksums[what] = zlib.crc32(repr(what.agreed).encode())
        mark = (self._number & 0x3FFFFFFF) << 32 | checksum
        mine, largest = np.array([mark, -mark], np.int64), np.empty(2, np.int64)
        agreement = self._agreement.Iallreduce(mine, largest, op=self._mpi.MAX)
        return Started(what, self._number, agreement, (mine, largest))

    def _finish(self, started: Started) -> None:
        waiting = _Waiting(self, started)
        self._poll([started.agreement], waiting.go_on)
        largest = started.marks[1]
        if largest[0] != -largest[1]:
            raise self._disagreement(started)

    def _disagreement(self, started: Started) -> Exception:
        """The error for ranks that called different collectives; all of them come here."""
        mine = packed_text(f"{started.what} at {user_line()}")
        texts = np.empty((self.size, TEXT_BYTES), np.uint8)
        request = self._reports.Iallgather(mine, texts)
        limit = time.monotonic() + 10.0
        while not request.Test() and time.monotonic() < limit:
            time.sleep(NAP)
        return self._disagreement_error(started.number, [unpacked_text(text) for text in texts])


class _Waiting:
    """A rank that waits for others: it says so to them, and collects who else waits."""

    def __init__(self, group: SeveralMachines, started: Started) -> None:
        self._group, self._what, self._number = group, started.what, started.number
        self._sent: list[Any] = []
        self._came: dict[int, str] = {}

    def go_on(self, waited: float) -> None:
        """Called again and again while the rank waits."""
        group = self._group
        if waited > _ANNOUNCE_AFTER:
            self._announce_and_listen()
        ended = [rank for rank, last in group._last_of_ended.items() if last < self._number]
        if ended or waited > group.deadline + GRACE:
            raise group._deadline_error(self._text(waited, sorted(ended)))

    def _announce_and_listen(self) -> None:
        """Sends what this rank waits for, once, and takes in what others sent."""
        group = self._group
        if not self._sent:
            shown = f"{self._what} at {user_line()}"
            self._sent = group.send_to_others(f"{self._number}|{shown}", _WAITS)
            self._came[group.rank] = shown
        for source, number, shown in group.reports():
            if number == self._number:
                self._came[source] = shown

    def _text(self, waited: float, ended: list[int]) -> str:
        """The sentence about a collective that some ranks did not reach."""
        group = self._group
        missing = [rank for rank in range(group.size) if rank not in self._came]
        lines = [f"  rank {rank} waits in {text}" for rank, text in sorted(self._came.items())]
        lines += [f"  rank {rank} has ended its program" for rank in ended]
        if ended:
            who = f"ranks {ended} have ended their program"
        else:
            who = f"ranks {missing} did not come" if missing else "all ranks came, but the data did not arrive"
        return "\n".join(
            [
                f"tf.distribute: collective {self._number}, {self._what}, in its step {group._times[self._what]}, did "
                f"not finish in {waited:.0f} s: {who}.",
                *lines,
                f"The deadline is {group.deadline:g} s; {DEADLINE_VARIABLE} sets it.",
            ]
        )


class SumMessage:
    """Tensors of one dtype that travel together; MPI adds them in place."""

    def __init__(self, world: SeveralMachines, tensors: list[Any], at_once: bool = False) -> None:
        self._world = world
        self._dtype, self._shapes = tensors[0].dtype, [tuple(tensor.shape) for tensor in tensors]
        packed = _packed(tensors)
        if self._dtype.size == 2 and self._dtype.is_floating:  # summed in float32
            packed = primitives.Cast(packed, "float32")
        array, shared = _memory_of(packed)
        mpi = world._mpi
        operation = mpi.LOR if array.dtype == np.dtype(bool) else mpi.SUM
        self._array, self._packed = array, packed if shared else None
        self._requests = [] if at_once else [world._data.Iallreduce(mpi.IN_PLACE, array, op=operation)]
        if at_once:
            world._data.Allreduce(mpi.IN_PLACE, array, op=operation)

    def finish(self, what: Collective) -> list[Any]:
        """Waits for the sums; they are views of the packed memory."""
        self._world._poll(self._requests, lambda waited: self._world._check_deadline(what, waited))
        flat = convert_to_tensor(self._array) if self._packed is None else self._packed
        return _unpacked(primitives.Cast(flat, self._dtype), self._shapes)


class NarrowMessage:
    """Tensors of float32 that travel as bfloat16: each rank adds its share in float32, in the order of the ranks, and
    all of them collect the shares."""

    def __init__(self, world: SeveralMachines, tensors: list[Any]) -> None:
        self._world, self._shapes = world, [tuple(tensor.shape) for tensor in tensors]
        bits = np.asarray(primitives.Cast(_packed(tensors), "bfloat16")).view(np.uint16)
        self._size, self._share = bits.size, -(-bits.size // world.size)
        self._sent = np.zeros((world.size, self._share), np.uint16)
        self._sent.reshape(-1)[: bits.size] = bits
        self._received = np.empty_like(self._sent)
        self._request = world._data.Ialltoall(self._sent, self._received)

    def finish(self, what: Collective) -> list[Any]:
        """Waits for this rank's share, adds it, and collects those of the others."""
        world = self._world
        world._poll([self._request], lambda waited: world._check_deadline(what, waited))
        total = np.zeros(self._share, np.float32)
        for part in self._received:
            total += (part.astype(np.uint32) << 16).view(np.float32)
        share = np.asarray(primitives.Cast(convert_to_tensor(total), "bfloat16")).view(np.uint16)
        world._move(what, lambda: world._data.Iallgather(np.ascontiguousarray(share), self._sent))
        flat = (self._sent.reshape(-1)[: self._size].astype(np.uint32) << 16).view(np.float32)
        return _unpacked(convert_to_tensor(flat), self._shapes)


def _packed(tensors: list[Any]) -> Any:
    return primitives.ConcatV2([primitives.Reshape(tensor, [-1]) for tensor in tensors], 0)


def _unpacked(flat: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    if len(shapes) == 1:
        return [primitives.Reshape(flat, list(shapes[0]))]
    sums, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        sums.append(primitives.Reshape(flat[at : at + size], list(shape)))
        at += size
    return sums


def _memory_of(tensor: Any) -> tuple[np.ndarray, bool]:
    """The elements of a tensor that nobody else has seen, to be overwritten, and whether they are its own memory."""
    array = tensor.__array__()
    if type(array.base).__name__ != "PyCapsule":  # few elements lie in the tensor object itself: this is a copy
        return np.array(array), False
    bytes_of = (ctypes.c_ubyte * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(memoryview(bytes_of).cast("B"), array.dtype), True
