"""`tf.random.Generator`: a stream of random numbers in an object, with its state in a variable."""

from __future__ import annotations

from math import prod
from random import SystemRandom
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.config import is_op_determinism_enabled
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.random.seeds import BLOCKS_PER_OUTPUT
from tapeflow._src.ops.random.stateless import (
    AUTO_SELECT,
    PHILOX,
    THREEFRY,
    algorithm_number,
    scaled_normal,
    uniform_of,
    unsupported_algorithm,
)
from tapeflow._src.types.dtypes import as_dtype, float32, int32, int64, uint64
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import Variable

_STATE_SIZE = {PHILOX: 3, THREEFRY: 2, AUTO_SELECT: 3}


def _state_size(alg: int) -> int:
    if alg not in _STATE_SIZE:
        raise ValueError(unsupported_algorithm(alg))
    return _STATE_SIZE[alg]


def _signed(value: Any) -> Any:
    """Integers of 64 bits without sign, read as with one."""
    if isinstance(value, list | tuple):
        return [_signed(v) for v in value]
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def _as_state(value: Any) -> Any:
    if isinstance(value, list | tuple) and any(_core.is_tensor(v) for v in value):
        return primitives.Pack([cast(convert_to_tensor(_signed(v)), int64) for v in value])
    return cast(convert_to_tensor(_signed(value), dtype_hint=int64), int64)


@public(
    "random.create_rng_state",
    "random.experimental.create_rng_state",
    "compat.v1.random.create_rng_state",
    "compat.v1.random.experimental.create_rng_state",
)
def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """The state that a seed (an integer of any size, or a vector of them) stands for: counter, then key.

    >>> tf.random.create_rng_state(1, "philox")
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([1, 0, 0])>
    """
    size = _state_size(algorithm_number(alg))
    if isinstance(seed, int):
        seed = [(seed >> (64 * i)) & (2**64 - 1) for i in range(size)]
    state = primitives.Reshape(_as_state(seed), [-1])[:size]
    missing = size - state.shape[0]
    return primitives.PadV2(state, [missing, 0], convert_to_tensor(0, dtype=int64)) if missing else state


@public(
    "random.Generator",
    "random.experimental.Generator",
    "compat.v1.random.Generator",
    "compat.v1.random.experimental.Generator",
)
class Generator(Trackable):
    """A stream of random numbers whose state is a variable; each call moves it on.

    >>> g = tf.random.Generator.from_seed(1234)
    >>> g.normal([2]).shape
    TensorShape([2])
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if alg is not None or state is not None:
                raise AssertionError("Generator: give `copy_from`, or `state` and `alg`, not both.")
            if not isinstance(copy_from, Generator):
                raise TypeError(f"Generator: `copy_from` must be a Generator; got {type(copy_from).__name__}")
            self._alg = copy_from.algorithm
            self._state = self._make_variable(copy_from.state.read_value())
            return
        if alg is None or state is None:
            raise AssertionError("Generator: `state` and `alg` must be given when `copy_from` is not.")
        self._alg = algorithm_number(alg)
        if not isinstance(state, Variable):
            state = _as_state(state)
        state.shape.assert_is_compatible_with([_state_size(self._alg)])
        self._state = state if isinstance(state, Variable) else self._make_variable(state)

    @staticmethod
    def _make_variable(state: Any) -> Variable:
        return Variable(state, dtype=int64, trainable=False, name="StateVar")

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        return {"_state_var": self.state}

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """A generator that continues at `state`."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator that begins at a seed."""
        alg = algorithm_number(PHILOX if alg is None else alg)
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that begins where no other does, by the operating system's random numbers."""
        if is_op_determinism_enabled():
            raise RuntimeError('"from_non_deterministic_state" cannot be called when determinism is enabled.')
        alg = algorithm_number(PHILOX if alg is None else alg)
        return cls(state=[SystemRandom().getrandbits(64) - 2**63 for _ in range(_state_size(alg))], alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator with the given key and counter."""
        alg = algorithm_number(alg)
        return cls(state=cls._joined(key, counter, alg), alg=alg)

    @staticmethod
    def _joined(key: Any, counter: Any, alg: int) -> Any:
        counter, key = _as_state(counter), _as_state(key)
        counter.shape.assert_is_compatible_with([_state_size(alg) - 1])
        key.shape.assert_is_compatible_with([])
        return primitives.ConcatV2([counter, primitives.Reshape(key, [1])], 0)

    def reset(self, state: Any) -> None:
        """Continues at `state`."""
        state = _as_state(state)
        state.shape.assert_is_compatible_with([_state_size(self._alg)])
        self._state.assign(state)

    def reset_from_seed(self, seed: Any) -> None:
        """Begins at a seed again."""
        self._state.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Continues with the given key and counter."""
        self._state.assign(self._joined(key, counter, self._alg))

    @property
    def state(self) -> Variable:
        """The variable that holds counter and key."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm, 1 for Philox."""
        return self._alg

    @property
    def _state_var(self) -> Any:  # where TensorFlow keeps it, and where a loaded SavedModel sets it
        return self._state

    @_state_var.setter
    def _state_var(self, state: Any) -> None:
        self._state = state

    @property
    def key(self) -> Any:
        """The key of the stream."""
        return self._state[-1]

    def skip(self, delta: Any) -> Any:
        """Moves on as if `delta` numbers had been drawn; gives the state before."""
        before = self._state.read_value()
        self._advance(delta)
        return before

    def _advance(self, outputs: Any) -> tuple[Any, Any]:
        if self._alg == THREEFRY:
            message = "Generator: Non-XLA devices don't support the ThreeFry algorithm; use alg='philox'."
            raise UnimplementedError.of(message)
        blocks = cast(convert_to_tensor(outputs), int64) * BLOCKS_PER_OUTPUT
        key, counter, state = primitives.PhiloxAdvance(self._state.read_value(), blocks)
        self._state.assign(state)
        replica = getattr(self._state, "_replica_number", None)
        if replica is not None:  # each replica of a strategy has a stream of its own
            place = convert_to_tensor([replica, 0], uint64)
            key = primitives.StatelessRandomUniformFullIntV2([1], key, place, self._alg, uint64)
        return key, counter

    def _draw(self, shape: Any) -> tuple[Any, Any, Any]:
        dims = shape_argument(shape)
        count = primitives.Prod(cast(dims, int64), [0]) if _core.is_tensor(dims) else prod(dims)
        key, counter = self._advance(count)
        return dims, key, counter

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Any:
        """Normal numbers."""
        dims, key, counter = self._draw(shape)
        standard = primitives.StatelessRandomNormalV2(dims, key, counter, self._alg, as_dtype(dtype))
        return scaled_normal(standard, mean, stddev)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Any:
        """Normal numbers within two deviations of the mean."""
        dims, key, counter = self._draw(shape)
        standard = primitives.StatelessTruncatedNormalV2(dims, key, counter, self._alg, as_dtype(dtype))
        return scaled_normal(standard, mean, stddev)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None
    ) -> Any:
        """Uniform numbers in [minval, maxval); integers of all values with both bounds None."""
        dtype = as_dtype(dtype)
        if dtype.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError(
                    f"For integer dtype {dtype}, minval and maxval must be both `None` or both non-`None`; got "
                    f"minval={minval} and maxval={maxval}"
                )
        elif maxval is None:
            maxval = 1
        dims, key, counter = self._draw(shape)
        return uniform_of(dims, key, counter, self._alg, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: str | None = None) -> Any:
        """Integers of all values that the dtype has."""
        dims, key, counter = self._draw(shape)
        return primitives.StatelessRandomUniformFullIntV2(dims, key, counter, self._alg, as_dtype(dtype))

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = int32, name: str | None = None) -> Any:
        """Counts of successes in `counts` trials of probability `probs`."""
        counts, probs = convert_to_tensor(counts), convert_to_tensor(probs)
        dims = dims_of(shape)
        batches = prod(np.broadcast_shapes(tuple(counts.shape), tuple(probs.shape)))
        key, counter = self._advance(batches * 200 * (prod(dims) // max(batches, 1) + 3) // 4)
        return primitives.PhiloxBinomial(dims, key, counter, self._alg, as_dtype(dtype), counts, probs)

    def make_seeds(self, count: int = 1) -> Any:
        """Seeds for the stateless operations, one per column."""
        keys = self.uniform_full_int([count], int64)
        return primitives.Pack([keys, keys - keys])

    def split(self, count: int = 1) -> list[Generator]:
        """`count` new generators with streams of their own."""
        keys = primitives.Unpack(self.uniform_full_int([count], int64))
        return [Generator(state=[0] * (_state_size(self._alg) - 1) + [key], alg=self._alg) for key in keys]


class _GlobalGenerator:
    value: Generator | None = None


@public(
    "random.get_global_generator",
    "random.experimental.get_global_generator",
    "compat.v1.random.get_global_generator",
    "compat.v1.random.experimental.get_global_generator",
)
def get_global_generator() -> Generator:
    """The generator that the program shares, made at the first call.

    >>> tf.random.get_global_generator().normal([2]).shape
    TensorShape([2])
    """
    if _GlobalGenerator.value is None:
        if is_op_determinism_enabled():
            raise RuntimeError(
                '"get_global_generator" cannot be called if determinism is enabled, unless "set_global_generator" has '
                'already been called. Please call "set_global_generator" first.'
            )
        _GlobalGenerator.value = Generator.from_non_deterministic_state()
    return _GlobalGenerator.value


@public(
    "random.set_global_generator",
    "random.experimental.set_global_generator",
    "compat.v1.random.set_global_generator",
    "compat.v1.random.experimental.set_global_generator",
)
def set_global_generator(generator: Generator) -> None:
    """Replaces the generator that the program shares.

    >>> tf.random.set_global_generator(tf.random.Generator.from_seed(1))
    """
    _GlobalGenerator.value = generator
