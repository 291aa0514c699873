"""Processes of several machines: they agree and add tensors by messages of MPI."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.distribute.agreement import Agreement, Posted
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
_WATCH_EVERY = 0.5
_WAITS, _ENDED, _FAILED = 0, 1, 2  # tags of reports


class Kind:
    """Collectives that are equal for the agreement: what they are, how often this rank has called them, and how their
    payload is added, if it is small enough to travel with the agreement."""

    def __init__(self, what: Collective, dtype: np.dtype | None, agreement: Agreement) -> None:
        self.what, self.times = what, 0
        self.checksum = zlib.crc32(repr(what.agreed).encode())
        self.bytes = sum(map(math.prod, what.shapes)) * dtype.itemsize if dtype is not None else 0
        self.small = dtype is not None and self.bytes <= agreement.payload_bytes
        if dtype is None or not self.small:
            return
        shape = what.shapes[0] if len(what.shapes) == 1 else [-1]
        self.payload = agreement.payload[: self.bytes].view(dtype).reshape(shape)
        found = {rank: agreement.payload_of(rank)[: self.bytes] for rank in agreement.partners}
        self._parts = {rank: part.view(dtype).reshape(shape) for rank, part in found.items()}
        self._add: Any = np.logical_or if dtype.kind == "b" else np.add

    def merge(self, partner: int) -> None:
        """Adds the payload of a partner to that of this rank."""
        self._add(self.payload, self._parts[partner], self.payload)


class Started(NamedTuple):
    """A collective that was posted; it holds what MPI reads and writes."""

    kind: Kind
    number: int
    posted: Posted
    message: Any


class SeveralMachines(MpiWorld):
    """All processes of the program, wherever they are.

    Three communicators keep messages apart: one for data, one for the agreement, one for reports of failures. No data
    are used before all ranks have agreed. Small sums travel with the agreement, in the same messages.
    """

    last_at_once = True

    def __init__(self, mpi: Any) -> None:
        super().__init__(mpi)
        self._agreement = Agreement(mpi, mpi.COMM_WORLD.Dup(), self._poll)
        self._reports = mpi.COMM_WORLD.Dup()
        self._number = 0  # of the collectives so far
        self._kinds: dict[Any, Kind] = {}  # by a collective, or by the array of a sum
        self._failure_of_others = ""  # what others report who have waited too long
        self._last_of_ended: dict[int, int] = {}  # by rank: the last collective of a program that is over
        self._current: Any = None  # the kind of the last collective that others are waited for
        self._waiting: _Waiting | None = None  # what is known of it, once it takes long
        self._scratch = np.empty(0, np.uint8)  # where tensors are packed
        self._blocked: tuple[Kind, int, float] | None = None  # kind, number and time of a call that cannot be ended
        threading.Thread(target=self._watch, name="tf.distribute", daemon=True).start()

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
            elif tag == _FAILED:
                self._failure_of_others = shown
            else:
                yield source, int(number), shown

    def say_ended(self) -> None:
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
        kind = self._kind(Collective.sum_of(name, tensors))
        mark, number = self._begin(kind), self._number
        posted = self._agreement.post(mark, _Waiting(self, kind, number))
        narrow = bfloat16 and tensors[0].dtype.name == "float32"
        message: Any = NarrowMessage(self, tensors) if narrow else SumMessage(self, tensors)
        return Started(kind, number, posted, message)

    def finish_all_reduce(self, started: Started) -> list[Any]:
        """Waits for the agreement, and then for the sums."""
        if not self._agreement.finish(started.posted):
            raise self._disagreement(started.kind, started.number)
        sums: list[Any] = started.message.finish(started.kind.what)
        return sums

    def all_reduce(self, tensors: list[Any], name: str, bfloat16: bool) -> list[Any]:
        """Adds what nothing is computed beside: MPI's blocking all-reduce is faster than the one that can wait."""
        if bfloat16 and tensors[0].dtype.name == "float32":
            return self.finish_all_reduce(self.start_all_reduce(tensors, name, bfloat16))
        what, dtype = Collective.sum_of(name, tensors), tensors[0].dtype
        shapes = what.shapes
        arrays = [_array(tensor) for tensor in tensors]
        total = self._sum(self._kind(what), arrays[0] if len(arrays) == 1 else self._packed(arrays))
        return _unpacked(primitives.Cast(total, dtype), shapes)

    def sum_at_once(self, value: Any) -> Any:
        """The sum of one tensor in an eager program that records nothing; None for everything else."""
        if not _core.is_tensor(value) or _core.current_graph() is not None or _core.is_recording():
            return None
        array = value.__array__()
        key = array.dtype, array.shape
        kind = self._kinds.get(key)
        if kind is None:
            if array.dtype.kind not in "iufcb" or array.dtype == np.float16:
                return None
            kind = self._kinds[key] = self._kind(Collective.sum_of("all_reduce", [value]), array.dtype)
        return self._sum(kind, array)

    def any(self, flag: bool, name: str) -> bool:
        """Whether the flag holds on some rank."""
        kind = self._kind(Collective.named(name, "MAX", "bool", ((),)), np.dtype(bool))
        return bool(self._sum(kind, np.array(flag)))

    def _sum(self, kind: Kind, array: np.ndarray) -> Any:
        """The sum of an array over all ranks."""
        if kind.small:
            kind.payload[...] = array
            self._agree_on(kind, kind.bytes, kind.merge)
            return convert_to_tensor(kind.payload)
        self._agree_on(kind, 0, None)
        array = np.ascontiguousarray(array)
        total = _core.uninitialized(array.dtype, array.size)
        operation = self._mpi.LOR if array.dtype.kind == "b" else self._mpi.SUM
        self._blocked = kind, self._number, time.monotonic()
        self._data.Allreduce(array, _memory_of(total)[0], op=operation)
        self._blocked = None
        return total if array.ndim == 1 else primitives.Reshape(total, array.shape)

    def _packed(self, arrays: list[np.ndarray]) -> np.ndarray:
        """The elements of several arrays, in memory that is used again."""
        size = sum(array.nbytes for array in arrays)
        if self._scratch.size < size:
            self._scratch = np.empty(size, np.uint8)
        packed = self._scratch[:size].view(arrays[0].dtype)
        at = 0
        for array in arrays:
            np.copyto(packed[at : at + array.size].reshape(array.shape), array)
            at += array.size
        return packed

    # ---- agreement and deadlines

    def _kind(self, what: Collective, dtype: np.dtype | None = None) -> Kind:
        kind = self._kinds.get(what)
        if kind is None:
            if dtype is None and what.reduce_op == "SUM":
                dtype = _dtype_of_sum(what.dtype)
            kind = self._kinds[what] = Kind(what, dtype, self._agreement)
        return kind

    def _begin(self, kind: Kind) -> int:
        """The mark of a collective that begins: its number and what it does."""
        if self._failed is not None:
            self._require_sound(kind.what.kind)
        self._number += 1
        kind.times += 1
        self._waiting = None
        return (self._number & 0x3FFFFFFF) << 32 | kind.checksum

    def _agree(self, what: Collective) -> None:
        self._agree_on(self._kind(what), 0, None)

    def _agree_on(self, kind: Kind, size: int, merge: Callable[[int], Any] | None) -> None:
        mark = self._begin(kind)
        self._current = kind
        if not self._agreement.agree(mark, size, merge, self._wait_for_current):
            raise self._disagreement(kind, self._number)

    def _wait_for_current(self, waited: float) -> None:
        """Called again and again while this rank waits for others to agree on what it called last."""
        if self._waiting is None:
            self._waiting = _Waiting(self, self._current, self._number)
        self._waiting(waited)

    def _disagreement(self, kind: Kind, called: int) -> Exception:
        """The error for ranks that called different collectives; all of them come here."""
        mine = packed_text(f"{kind.what} at {user_line()}")
        texts = np.empty((self.size, TEXT_BYTES), np.uint8)
        request = self._reports.Iallgather(mine, texts)
        limit = time.monotonic() + 10.0
        while not request.Test() and time.monotonic() < limit:
            time.sleep(NAP)
        return self._disagreement_error(called, [unpacked_text(text) for text in texts])

    def _watch(self) -> None:
        """Runs in a thread: ends a program that waits in MPI itself, beyond the deadline, for data of other ranks."""
        while True:
            time.sleep(_WATCH_EVERY)
            blocked = self._blocked
            if blocked is None:
                continue
            kind, number, began = blocked
            waited = time.monotonic() - began
            if waited > self.deadline + GRACE:
                line = user_line(sys._current_frames().get(threading.main_thread().ident or 0))
                text = (
                    f"tf.distribute: collective {number}, {kind.what}, in its step {kind.times}, did not finish in "
                    f"{waited:.0f} s: all ranks came, but the data did not arrive.\n"
                    f"  rank {self.rank} waits in it at {line}\n"
                    f"The deadline is {self.deadline:g} s; {DEADLINE_VARIABLE} sets it.\n"
                    f"tf.distribute: rank {self.rank} ends the program because of the error above.\n"
                )
                sys.stderr.write(text)
                sys.stderr.flush()
                os._exit(1)  # the launcher ends the others: this thread cannot raise an error in the one that waits


class _Waiting:
    """A rank that waits for others: it says so to them, and collects who else waits."""

    def __init__(self, group: SeveralMachines, kind: Kind, number: int) -> None:
        self._group, self._kind, self._number = group, kind, number
        self._sent: list[Any] = []
        self._came: dict[int, str] = {}

    def __call__(self, waited: float) -> None:
        """Called again and again while the rank waits."""
        group = self._group
        if waited > _ANNOUNCE_AFTER:
            self._announce_and_listen()
        ended = [rank for rank, last in group._last_of_ended.items() if last < self._number]
        if group._failure_of_others:
            raise group._deadline_error(group._failure_of_others)
        if ended or waited > group.deadline + GRACE:
            text = self._text(waited, sorted(ended))
            self._sent += group.send_to_others(f"{self._number}|{text}", _FAILED)
            raise group._deadline_error(text)

    def _announce_and_listen(self) -> None:
        """Sends what this rank waits for, once, and takes in what others sent."""
        group = self._group
        if not self._sent:
            shown = f"{self._kind.what} at {user_line()}"
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
                f"tf.distribute: collective {self._number}, {self._kind.what}, in its step {self._kind.times}, did "
                f"not finish in {waited:.0f} s: {who}.",
                *lines,
                f"The deadline is {group.deadline:g} s; {DEADLINE_VARIABLE} sets it.",
            ]
        )


class SumMessage:
    """Tensors of one dtype that travel together, while something else is computed; MPI adds them in place."""

    def __init__(self, world: SeveralMachines, tensors: list[Any]) -> None:
        self._world = world
        self._dtype, self._shapes = tensors[0].dtype, [tuple(tensor.shape) for tensor in tensors]
        packed = _packed(tensors)
        if self._dtype.size == 2 and self._dtype.is_floating:  # summed in float32
            packed = primitives.Cast(packed, "float32")
        array, shared = _memory_of(packed)
        mpi = world._mpi
        operation = mpi.LOR if array.dtype == np.dtype(bool) else mpi.SUM
        self._array, self._packed = array, packed if shared else None
        self._request = world._data.Iallreduce(mpi.IN_PLACE, array, op=operation)

    def finish(self, what: Collective) -> list[Any]:
        """Waits for the sums; they are views of the packed memory."""
        self._world._poll([self._request], lambda waited: self._world._check_deadline(what, waited))
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


def _array(tensor: Any) -> np.ndarray:
    """The elements of a tensor; those of two bytes, which are added in float32, as float32."""
    if tensor.dtype.size == 2 and tensor.dtype.is_floating:
        tensor = primitives.Cast(tensor, "float32")
    array: np.ndarray = tensor.__array__()
    return array


def _dtype_of_sum(name: str) -> np.dtype:
    return np.dtype(np.float32 if name in ("float16", "bfloat16") else name)


def _unpacked(flat: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
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
