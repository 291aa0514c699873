"""How processes agree by messages of pairs of ranks, which carry small sums as well. Knows nothing of collectives."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

_MARKS = struct.Struct("<qq")  # the largest mark that was seen, and the largest negative of one
_PAYLOAD_OF_PAIR, _PAYLOAD = 1 << 14, 1 << 13  # bytes that travel with the marks, of two ranks and of more of them
_SPIN = 400  # tests of a message before the rank waits in a way that lets others run

Waiting = Callable[[float], None]
Wait = Callable[[list[Any], Waiting], None]


class Posted:
    """An agreement whose first message may be on its way."""

    def __init__(self, mark: int, waiting: Waiting) -> None:
        self.message: Any = np.frombuffer(bytearray(_MARKS.pack(mark, -mark)), np.uint8)
        self.waiting = waiting
        self.request: Any = None
        self.agreed: bool | None = None  # None until it is finished


class Agreement:
    """Marks of all ranks, and payloads of equal size, which are merged in about log2(n) rounds of pairs.

    Pairs at distance 1, 2, 4, ... exchange what they have merged so far (recursive doubling); ranks beyond the largest
    power of two give theirs to a partner first, and get the result from it in the end. Both partners merge the same two
    values, so all ranks get the same bits. Ranks agree if the largest mark is the smallest one. Messages of a pair
    arrive in the order in which they were sent, so agreements are finished in the order in which they were posted.
    """

    def __init__(self, mpi: Any, communicator: Any, wait: Wait) -> None:
        self._communicator, self._byte, self._wait = communicator, mpi.BYTE, wait
        self.payload_bytes = _PAYLOAD_OF_PAIR if communicator.size == 2 else _PAYLOAD
        size = _MARKS.size + self.payload_bytes
        memory = bytearray(size)
        self._mine: Any = np.frombuffer(memory, np.uint8)
        self._marks = memoryview(memory)[: _MARKS.size]
        steps = _steps(communicator.rank, communicator.size)
        self._inboxes: dict[int, Any] = {
            partner: np.zeros(size, np.uint8) for _, partner, receives in steps if receives
        }
        requests = {p: communicator.Recv_init([box, mpi.BYTE], source=p) for p, box in self._inboxes.items()}
        marks = {partner: memoryview(box)[: _MARKS.size] for partner, box in self._inboxes.items()}
        self._steps: list[Any] = [(*step, requests.get(step[1]), marks.get(step[1])) for step in steps]
        self._sends: dict[tuple[int, int], Any] = {}  # by partner and size
        self._posted: deque[Posted] = deque()
        self.payload = self._mine[_MARKS.size :]

    def payload_of(self, partner: int) -> np.ndarray:
        """Where the payload of a partner arrives."""
        payload: np.ndarray = self._inboxes[partner][_MARKS.size :]
        return payload

    @property
    def partners(self) -> list[int]:
        """The ranks from which this one receives."""
        return list(self._inboxes)

    def post(self, mark: int, waiting: Waiting) -> Posted:
        """Begins to agree on a mark: sends the first message, if it depends on no other."""
        posted = Posted(mark, waiting)
        sends, partner, *_ = self._steps[0]
        if sends:
            posted.request = self._communicator.Isend([posted.message, self._byte], dest=partner)
        self._posted.append(posted)
        return posted

    def finish(self, posted: Posted) -> bool:
        """Whether all ranks have posted the same mark."""
        while posted.agreed is None:
            first = self._posted[0]
            first.agreed = self._run(first.message, first.message.size, None, first.waiting, first.request)
            self._posted.popleft()
        return bool(posted.agreed)

    def agree(self, mark: int, size: int, merge: Callable[[int], Any] | None, waiting: Waiting) -> bool:
        """Whether all ranks have this mark. `merge(partner)` merges the payload of `size` bytes of a partner."""
        if self._posted:
            self.finish(self._posted[-1])
        _MARKS.pack_into(self._mine, 0, mark, -mark)
        return self._run(self._mine, _MARKS.size + size, merge, waiting, None)

    def _run(self, message: Any, size: int, merge: Callable[[int], Any] | None, waiting: Waiting, sent: Any) -> bool:
        marks = self._marks if message is self._mine else memoryview(message)[: _MARKS.size]
        agreed = True
        for sends, partner, receives, receive, theirs in self._steps:
            send = sent or (self._send(message, partner, size) if sends else None)
            sent = None
            if receives:
                receive.Start()
                self._finish(receive, waiting)
            if send is not None:
                self._finish(send, waiting)
            if not receives:
                continue
            if theirs != marks:
                agreed = False
                _MARKS.pack_into(message, 0, *map(max, _MARKS.unpack(marks), _MARKS.unpack(theirs)))
            elif receives == _TAKES:
                message[_MARKS.size : size] = self._inboxes[partner][_MARKS.size : size]
            elif merge is not None:
                merge(partner)
        if agreed:
            return True
        largest, negative = _MARKS.unpack(marks)
        return bool(largest == -negative)

    def _finish(self, request: Any, waiting: Waiting) -> None:
        test = request.Test
        if test():
            return
        for _ in range(_SPIN):
            if test():
                return
        self._wait([request], waiting)

    def _send(self, message: Any, partner: int, size: int) -> Any:
        if message is not self._mine:
            return self._communicator.Isend([message, self._byte], dest=partner)
        request = self._sends.get((partner, size))
        if request is None:
            request = self._communicator.Send_init([message[:size], self._byte], dest=partner)
            self._sends[partner, size] = request
        request.Start()
        return request


_ADDS, _TAKES = 1, 2  # what a rank does with what it receives


def _steps(rank: int, size: int) -> list[tuple[bool, int, int]]:
    """The steps of a rank: whether it sends, its partner, and what it does with what it receives, or 0."""
    power = 1 << (size.bit_length() - 1)
    if rank >= power:
        return [(True, rank - power, 0), (False, rank - power, _TAKES)]
    steps = [(True, rank ^ 1 << bit, _ADDS) for bit in range(power.bit_length() - 1)]
    if rank + power < size:
        steps = [(False, rank + power, _ADDS), *steps, (True, rank + power, 0)]
    return steps
