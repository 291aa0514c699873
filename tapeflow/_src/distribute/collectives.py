"""Collectives as operations: eager and in graphs, with derivatives. `communicator.py` says what moves the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.distribute.communicator import Communicator
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call

Tensors = list[Any]


def all_reduce(group: Communicator, tensors: Sequence[Any], bytes_per_pack: int = 0) -> Tensors:
    """The sums of tensors over all processes. They are linear, so both derivatives are the same collective."""
    tensors = [convert_to_tensor(tensor) for tensor in tensors]
    if group.size == 1:
        return tensors

    def reduce(values: Sequence[Any]) -> Tensors:
        return all_reduce(group, values, bytes_per_pack)

    def of_one_dtype(part: Tensors) -> Tensors:
        return linear(lambda *values: _sum(group, list(values), bytes_per_pack), part, reduce, reduce)

    return _by_dtype(tensors, of_one_dtype)


def _sum(group: Communicator, tensors: Tensors, bytes_per_pack: int) -> Tensors:
    def run(*values: Any) -> Tensors:
        arrays = [np.asarray(value) for value in values]
        return [convert_to_tensor(a) for a in group.all_reduce(arrays, bytes_per_pack, "all_reduce")]

    return host_call(run, tensors, [(t.dtype, t.shape) for t in tensors], effect=True)


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


def _gather(group: Communicator, tensor: Any) -> tuple[Any, Any, Any]:
    """The joined tensor, and where the rows of this process begin and how many they are."""

    def run(value: Any) -> Tensors:
        parts = group.all_gather(np.asarray(value), "all_gather")
        sizes = [len(part) for part in parts]
        begin = sum(sizes[: group.rank])
        joined = np.concatenate(parts)
        return [convert_to_tensor(x) for x in (joined, np.int64(begin), np.int64(sizes[group.rank]))]

    shape = [None, *tensor.shape[1:]] if tensor.shape.rank is not None else None
    joined, begin, own = host_call(run, [tensor], [(tensor.dtype, shape), ("int64", []), ("int64", [])], effect=True)
    return joined, begin, own


def _rows(dy: Any, begin: Any, count: Any) -> Any:
    rows = primitives.Range(begin, primitives.AddV2(begin, count), primitives.Cast(1, "int64"))
    return primitives.GatherV2(dy, rows, 0)


def broadcast(group: Communicator, tensor: Any) -> Any:
    """The tensor of the first process."""
    tensor = convert_to_tensor(tensor)
    if group.size == 1:
        return tensor

    def run(value: Any) -> Tensors:
        return [convert_to_tensor(group.broadcast(np.asarray(value), "broadcast"))]

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
