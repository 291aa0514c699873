"""Seeds and streams of the random operations: which Philox key and counter a call gets, as TensorFlow counts them.

A stream is the state of one generator: a 128-bit counter and a key. Operations with the same name, attributes and seeds
share a stream, and each call moves it on. In a function or a graph each operation has a stream of its own, and the
seed of one without is its number in the graph. `set_seed` begins all streams anew.
"""

from __future__ import annotations

import os
import random
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import SystemRandom
from threading import Lock
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.config import is_op_determinism_enabled
from tapeflow._src.namespace import public

_LIMIT = 2**31 - 1
DEFAULT_GLOBAL_SEED = 87654321
BLOCKS_PER_OUTPUT = 256  # how far one output moves a stream on, however few of the numbers it used


class Stream(_core.Variable):
    """The state of one generator in a cell that a traced function can keep."""

    def __init__(self, low: int, high: int, key: int) -> None:
        state = _core.convert_to_tensor([low, high, key], "int64", None, "random")
        self._set_up(state, state.shape, False, "random_stream:0")
        self.seeds = (0, 0)  # those of the operation of TensorFlow that gives the same numbers; zeros if there are none


class _Seeds:
    """The global seed, the generator of the seeds of operations that have none, and the open streams."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.copied = False  # whether a fork now is a copy that runs the same again
        # The streams of each traced function, where they begin, and whether they have seeds.
        self.streams_by_graph: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self.number_by_graph: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.begin(None)

    def begin(self, seed: int | None) -> None:
        for streams in list(self.streams_by_graph.values()):
            for stream, state, _ in streams:
                stream.assign(state)
        self.seed = seed
        self.operation_seeds = random.Random(seed)
        self.stream_by_operation: dict[Any, Stream] = {}
        self.memory_by_operation: dict[Any, Any] = {}


_seeds = _Seeds()


def _begin_in_child() -> None:
    """In the child of a fork, streams without a seed begin elsewhere than those of the parent and of other children."""
    _seeds.lock = Lock()  # another thread may have held it
    if _seeds.copied:
        return
    if _seeds.seed is None:
        _seeds.operation_seeds = random.Random()
    open_streams = [stream for (_, first, _), stream in _seeds.stream_by_operation.items() if first is None]
    for streams in list(_seeds.streams_by_graph.values()):
        open_streams += [stream for stream, _, seeded in streams if not seeded]
    for stream in open_streams:
        stream.assign(_new_stream(None, None).read_value())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def fork_copy() -> int:
    """As `os.fork`, but the child draws the numbers that the parent will draw."""
    snapshot()
    _seeds.copied = True
    try:
        return os.fork()
    finally:
        _seeds.copied = False


class Snapshot:
    """Where all streams stood at one moment, and what was begun since: enough to run the same operations again."""

    def __init__(self) -> None:
        self.operation_seeds = _seeds.operation_seeds.getstate()
        self.state_by_operation = {key: s.read_value() for key, s in _seeds.stream_by_operation.items()}


def snapshot() -> Snapshot:
    """The state of all streams; that of operations without seeds has begun."""
    with _seeds.lock:
        if _seeds.seed is None and (None, None, None) not in _seeds.stream_by_operation:
            _seeds.stream_by_operation[None, None, None] = _new_stream(None, None)
        return Snapshot()


@contextmanager
def replayed(moment: Snapshot) -> Iterator[None]:
    """Inside, random operations give the numbers they gave after `moment`; afterwards all goes on as if nothing was."""
    present = Snapshot()
    begun = dict(_seeds.stream_by_operation)
    _restore(moment)
    try:
        yield
    finally:
        _seeds.stream_by_operation = begun
        _restore(present)


def _restore(moment: Snapshot) -> None:
    _seeds.operation_seeds.setstate(moment.operation_seeds)
    streams = _seeds.stream_by_operation
    _seeds.stream_by_operation = {key: streams[key] for key in moment.state_by_operation if key in streams}
    for key, state in moment.state_by_operation.items():
        if key in streams:
            streams[key].assign(state)


@public("random.set_seed", "compat.v1.set_random_seed", "compat.v1.random.set_random_seed")
def set_seed(seed: int | None) -> None:
    """Sets the global seed: the random operations after it give the same numbers in every run.

    Args:
        seed: An integer, or None to take a new seed.

    Returns:
        None.

    >>> tf.random.set_seed(1234)
    >>> tf.random.uniform([1])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.5380393], dtype=float32)>
    """
    if seed is not None:
        seed = int(seed)
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        graph.seed = seed
        return
    _seeds.begin(seed)


@public("compat.v1.get_seed", "compat.v1.random.get_seed")
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of an operation: from the global seed and its own, or (None, None) if there is neither.

    >>> tf.random.set_seed(5)
    >>> tf.compat.v1.get_seed(7)
    (5, 7)
    """
    graph = _core.current_graph()
    global_seed = graph.seed if graph is not None and graph.graph_mode else _seeds.seed
    if global_seed is not None:
        if op_seed is None:
            op_seed = _seeds.operation_seeds.randint(0, _LIMIT) if graph is None else _next_number(graph)
        pair = (int(global_seed) % _LIMIT, int(op_seed) % _LIMIT)
    elif op_seed is not None:
        pair = (DEFAULT_GLOBAL_SEED, int(op_seed) % _LIMIT)
    else:
        if is_op_determinism_enabled():
            raise RuntimeError(
                "Random ops require a seed to be set when determinism is enabled. Please set a seed before running "
                "the op, e.g. by calling tf.random.set_seed(1)."
            )
        return None, None
    return (0, _LIMIT) if pair == (0, 0) else pair


def _next_number(graph: Any) -> int:
    """The number of the next operation without a seed in a graph."""
    number = _seeds.number_by_graph.get(graph, 0)
    _seeds.number_by_graph[graph] = number + 1
    return number


def _new_stream(first: int | None, second: int | None) -> Stream:
    if first is None or second is None:
        return Stream(0, SystemRandom().getrandbits(64) - 2**63, SystemRandom().getrandbits(64) - 2**63)
    made = Stream(0, second, first)
    made.seeds = (first, second)
    return made


def draw(operation: Any, seed: int | None, blocks: Any) -> tuple[Any, Any]:
    """The key and the counter for one call, whose stream moves on by `blocks`.

    `operation` names the operation and those of its attributes that give it a stream of its own.
    """
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        return _draw_in_graph(graph, seed, blocks)
    first, second = get_seed(seed)
    return draw_from(operation, first, second, blocks, kept=first is None or seed is not None)


def draw_unseeded(blocks: int) -> tuple[Any, Any]:
    """The key and the counter for a call that follows no seed, not even the global one."""
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        return _draw_in_session(graph, None, None, blocks)
    return draw_from(None, None, None, blocks)


def draw_from(operation: Any, first: int | None, second: int | None, blocks: int, kept: bool = True) -> tuple[Any, Any]:
    """The same with both seeds given; the stream goes on at the next call if it is `kept`."""
    graph = _core.current_graph()
    if graph is not None:
        return _draw_in_function(graph, first, second, blocks)
    with _seeds.lock:
        if first is None:
            operation = None
        stream = _seeds.stream_by_operation.get((operation, first, second))
        if stream is None:
            stream = _new_stream(first, second)
            if kept:
                _seeds.stream_by_operation[operation, first, second] = stream
        key, counter, state = primitives.PhiloxAdvance(stream.read_value(), blocks)
        stream.assign(state)
    return key, counter


def _draw_in_function(graph: Any, first: int | None, second: int | None, blocks: int) -> tuple[Any, Any]:
    _core.swap_stage(None)
    try:
        stream = _new_stream(first, second)
        _seeds.streams_by_graph.setdefault(graph, []).append((stream, stream.read_value(), first is not None))
        getattr(graph, "streams", []).append(stream)
    finally:
        _core.swap_stage(graph)
    key, counter, state = primitives.PhiloxAdvance(stream.read_value(), blocks)
    stream.assign(state)
    return key, counter


def seeded_streams(graph: Any) -> list[tuple[Stream, Any]]:
    """The streams of a function's operations that have seeds, with the states in which they begin."""
    return [(stream, state) for stream, state, seeded in _seeds.streams_by_graph.get(graph, ()) if seeded]


def _draw_in_graph(graph: Any, seed: int | None, blocks: int) -> tuple[Any, Any]:
    """The same in a graph of TensorFlow 1: an operation has a stream of its own, which begins anew in each session."""
    first, second = get_seed(seed)
    return _draw_in_session(graph, first, second, blocks)


def _draw_in_session(graph: Any, first: int | None, second: int | None, blocks: Any) -> tuple[Any, Any]:
    _core.swap_stage(None)
    try:
        stream = _new_stream(first, second)
        graph.first_value_by_stream.append((stream, stream.read_value()))
    finally:
        _core.swap_stage(graph)
    key, counter, state = primitives.PhiloxAdvance(stream.read_value(), blocks)
    with graph.control_dependencies([stream.assign(state)]):
        return primitives.Identity(key), primitives.Identity(counter)


def memory(operation: Any, seed: int | None, begin: Callable[[], Any]) -> Any:
    """The state that an operation with a stream of its own keeps between calls, as `begin()` makes it."""
    if _seeds.seed is not None and seed is None:
        return begin()
    return _seeds.memory_by_operation.setdefault((operation, seed), begin())


# ---- the seed of a key

_PHILOX_KEY = 0x02461E293EC8F720  # with which StatelessRandomGetKeyCounter mixes a seed
_MULTIPLIERS, _STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def seed_of(key: int, counter: int) -> list[int]:
    """The seed, two int64, of which `StatelessRandomGetKeyCounter` makes this key and upper half of a counter.

    A block of Philox is a permutation of 128 bits: its rounds are undone, last first.
    """
    words = [key & 0xFFFFFFFF, key >> 32, counter & 0xFFFFFFFF, counter >> 32]
    inverses = [pow(m, -1, 1 << 32) for m in _MULTIPLIERS]
    for i in reversed(range(_ROUNDS)):
        keys = [((_PHILOX_KEY >> (32 * j)) + i * _STEPS[j]) & 0xFFFFFFFF for j in range(2)]
        first, third = words[3] * inverses[0] & 0xFFFFFFFF, words[1] * inverses[1] & 0xFFFFFFFF
        high = [_MULTIPLIERS[0] * first >> 32, _MULTIPLIERS[1] * third >> 32]
        words = [first, words[0] ^ high[1] ^ keys[0], third, words[2] ^ high[0] ^ keys[1]]
    halves = [words[0] | words[1] << 32, words[2] | words[3] << 32]
    return [half - (1 << 64) if half >> 63 else half for half in halves]
