"""Collectives as operations: eager and in graphs, with derivatives. `communicator.py` says what moves the data."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.distribute.communicator import Communicator
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.errors import InvalidArgumentError

Tensors = list[Any]


def all_reduce(
    group: Communicator,
    tensors: Sequence[Any],
    bytes_per_pack: int = 0,
    name: str = "all_reduce",
    bfloat16: bool = False,
) -> Tensors:
    """The sums over all processes. They are linear: both derivatives are the same collective. Errors show the name.

    With `bfloat16`, float32 travels as bfloat16; it is added in float32.
    """
    tensors = [convert_to_tensor(tensor) for tensor in tensors]
    if group.size == 1:
        return tensors
    require_numbers("all_reduce", tensors)

    def reduce(values: Sequence[Any]) -> Tensors:
        return all_reduce(group, values, bytes_per_pack, name, bfloat16)

    def of_one_dtype(part: Tensors) -> Tensors:
        return linear(lambda *values: _sum(group, list(values), bytes_per_pack, name, bfloat16), part, reduce, reduce)

    return _by_dtype(tensors, of_one_dtype)


def _sum(group: Communicator, tensors: Tensors, bytes_per_pack: int, name: str, bfloat16: bool) -> Tensors:
    """The sums, in messages of several tensors each. In a graph a message is started where the last of its tensors is
    computed, and waited for here, so that it travels while the rest of a backward pass is computed."""
    graph = _core.current_graph()
    order = list(range(len(tensors)))
    if graph is not None:
        order.sort(key=lambda place: (_core.place_of(tensors[place]) or (None, 0, -1))[2])
    buckets = [[tensors[place] for place in places] for places in _buckets(tensors, order, bytes_per_pack)]
    if graph is None:
        return [total for bucket in buckets for total in group.all_reduce(bucket, name, bfloat16)]
    at_once = buckets.pop() if group.last_at_once else []  # nothing is computed beside the last message
    handles = []
    for bucket in buckets:
        message = _Message(group, bucket, name, bfloat16)
        handles += host_call(message.start, message.tensors, [("int64", [])], effect=True)
        if not graph.graph_mode:
            _core.hoist_last(graph)

    def finish(*values: Any) -> Tensors:
        started, rest = values[: len(handles)], list(values[len(handles) :])
        last = group.all_reduce(rest, name, bfloat16) if rest else []
        found = [tensor for number in started for tensor in _Message.finish(int(number))] + last
        sums: Tensors = [None] * len(order)
        for place, tensor in zip(order, found):
            sums[place] = tensor
        return sums

    return host_call(finish, [*handles, *at_once], [(t.dtype, t.shape) for t in tensors], effect=True)


def _buckets(tensors: Tensors, order: list[int], bytes_per_pack: int) -> list[list[int]]:
    """The places of the tensors of each message: as many as fit, in order. Tensors of unknown size share one."""
    buckets: list[list[int]] = []
    room = 0
    for place in order:
        shape = tensors[place].shape
        size = (shape.num_elements() or 0) * tensors[place].dtype.size if shape.is_fully_defined() else 0
        if not buckets or size > room:
            buckets.append([])
            room = bytes_per_pack or sys.maxsize
        buckets[-1].append(place)
        room -= size
    return buckets


class _Message:
    """Tensors of one dtype that travel together. What was started is found by its number."""

    _numbers = itertools.count()
    _started: ClassVar[dict[int, tuple[Communicator, Any]]] = {}

    def __init__(self, group: Communicator, tensors: Tensors, name: str, bfloat16: bool) -> None:
        self._group, self.tensors, self._name, self._bfloat16 = group, tensors, name, bfloat16

    def start(self, *values: Any) -> Tensors:
        """Starts to add the values; gives a number for `finish`."""
        number = next(self._numbers)
        self._started[number] = self._group, self._group.start_all_reduce(list(values), self._name, self._bfloat16)
        return [convert_to_tensor(number, "int64")]

    @classmethod
    def finish(cls, number: int) -> Tensors:
        """Waits for the sums."""
        group, started = cls._started.pop(number)
        return group.finish_all_reduce(started)


def all_gather(group: Communicator, tensor: Any) -> Any:
    """The tensors of all processes, joined along the first dimension, in which they may differ."""
    tensor = convert_to_tensor(tensor)
    if group.size == 1:
        return tensor
    rows: list[Any] = []

    def gather(value: Any) -> Tensors:
        joined, begin, count = _gather(group, value)
        rows[:] = begin, count
        return [joined]

    def backward(dys: Sequence[Any]) -> Tensors:
        (dy,) = all_reduce(group, dys)
        return [_rows(dy, *rows)]

    def forward(tangents: Sequence[Any]) -> Tensors:
        return [all_gather(group, tangents[0])]

    return linear(gather, [tensor], backward, forward)[0]


def require_numbers(who: str, tensors: Sequence[Any], bools: bool = True) -> None:
    """Sums are of numbers or of bools (whether one of them holds), means of numbers."""
    for tensor in tensors:
        dtype = tensor.dtype
        if not (dtype.is_floating or dtype.is_integer or dtype.is_complex or (bools and dtype.is_bool)):
            kinds = "numbers or bools" if bools else "numbers for a mean"
            text = f"{who}: values of several replicas must be {kinds}; got dtype {dtype.name}"
            raise TypeError(text) if _core.is_tracing() else InvalidArgumentError.of(text)


def _gather(group: Communicator, tensor: Any) -> tuple[Any, Any, Any]:
    """The joined tensor, and where the rows of this process begin and how many they are."""

    def run(value: Any) -> Tensors:
        parts = _arrays(group, np.asarray(value), "all_gather")
        sizes = [len(part) for part in parts]
        begin = sum(sizes[: group.rank])
        joined = np.concatenate(parts)
        places = [convert_to_tensor(np.int64(number)) for number in (begin, sizes[group.rank])]
        return [convert_to_tensor(joined, tensor.dtype), *places]

    shape = [None, *tensor.shape[1:]] if tensor.shape.rank is not None else None
    joined, begin, own = host_call(run, [tensor], [(tensor.dtype, shape), ("int64", []), ("int64", [])], effect=True)
    return joined, begin, own


def _arrays(group: Communicator, array: np.ndarray, name: str) -> list[np.ndarray]:
    """The arrays of all processes. Of strings, the lengths travel first, then their bytes."""
    if array.dtype != object:
        return group.all_gather(array, name)
    texts = array.ravel().tolist()
    lengths = group.all_gather(np.array([len(text) for text in texts], np.int64).reshape(array.shape), name)
    contents = group.all_gather(np.frombuffer(b"".join(texts), np.uint8), name)
    return [_texts(content.tobytes(), sizes) for content, sizes in zip(contents, lengths)]


def _texts(content: bytes, lengths: np.ndarray) -> np.ndarray:
    """Strings of these lengths, which lie one after the other."""
    ends = np.cumsum(lengths).tolist()
    texts = np.empty(len(ends), object)
    texts[:] = [content[end - length : end] for end, length in zip(ends, lengths.ravel().tolist())]
    return texts.reshape(lengths.shape)


def _rows(dy: Any, begin: Any, count: Any) -> Any:
    rows = primitives.Range(begin, primitives.AddV2(begin, count), primitives.Cast(1, "int64"))
    return primitives.GatherV2(dy, rows, 0)


def broadcast(group: Communicator, tensor: Any, name: str = "broadcast") -> Any:
    """The tensor of the first process."""
    tensor = convert_to_tensor(tensor)
    if group.size == 1:
        return tensor

    def run(value: Any) -> Tensors:
        array = np.asarray(value)
        if array.dtype == object:
            return [convert_to_tensor(_arrays(group, array.ravel(), name)[0].reshape(array.shape), "string")]
        return [convert_to_tensor(group.broadcast(array, name))]

    return host_call(run, [tensor], [(tensor.dtype, tensor.shape)], effect=True)[0]


def _by_dtype(tensors: Tensors, run: Callable[[Tensors], Tensors]) -> Tensors:
    """`run` for the tensors of each dtype, in the order in which the dtypes come."""
    results: Tensors = [None] * len(tensors)
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        places = [place for place, tensor in enumerate(tensors) if tensor.dtype == dtype]
        for place, result in zip(places, run([tensors[place] for place in places])):
            results[place] = result
    return results


def linear(
    function: Callable[..., Tensors],
    tensors: Tensors,
    transposed: Callable[[Sequence[Any]], Tensors],
    tangent: Callable[[Sequence[Any]], Tensors],
) -> Tensors:
    """`function(*tensors)`, a linear function, with the functions that its cotangents and tangents go through."""
    if not (tensors[0].dtype.is_floating or tensors[0].dtype.is_complex):
        return function(*tensors)
    if not _core.is_recording() and _core.current_graph() is None:
        return function(*tensors)

    def with_rule(*values: Any) -> tuple[Tensors, Callable[..., Tensors]]:
        return function(*values), lambda *dys: transposed(dys)

    def forward_rule(inputs: Sequence[Any], tangents: Sequence[Any]) -> Tensors:
        return tangent([zeros_like(x) if t is None else t for t, x in zip(tangents, inputs)])

    operation = custom_gradient(with_rule)
    operation.def_jvp(forward_rule)
    return list(operation(*tensors))
