"""Random arrays for sample inputs, by domain and dtype; and calls of primitives with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tapeflow._src import primitives

Interval = tuple[float, float]
Domain = Sequence[Interval]

# Both sides of zero, but not zero itself, where many functions have a corner or a pole.
AROUND_ZERO: Domain = [(-2, -0.2), (0.2, 2)]
POSITIVE: Domain = [(0.2, 3)]


class Call(NamedTuple):
    """One call of a primitive: arrays of floats among the arguments are what a gradient may be asked for."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, name: str) -> Any:
        return getattr(primitives, name)(*self.args, **self.kwargs)


Builder = Callable[["Maker"], Call]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


class Maker:
    """Makes arrays of a dtype from a seed. `choose` picks one of several options: by chance or as hypothesis likes."""

    def __init__(self, seed: int, dtype: Any, choose: Callable[[Sequence[Any]], Any] | None = None):
        self.random = np.random.default_rng(seed)
        self.dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else "S" if dtype == "string" else np.dtype(dtype)
        self.choose = choose or (lambda options: options[self.random.integers(len(options))])

    @property
    def kind(self) -> str:
        return np.dtype(self.dtype).kind

    def __call__(self, *shape: int, within: Domain = AROUND_ZERO) -> np.ndarray:
        """An array of the dtype, with values from the domain; complex values lie above it, off all branch cuts."""
        if self.kind == "S":
            return self.random.choice(np.array([b"", b"a", b"tape", b"flow"], object), shape)
        if self.kind == "b":
            return self.random.random(shape) < 0.5
        low, high = np.array(within, float).T
        part = self.random.integers(len(low), size=shape)
        values = self.random.uniform(low[part], high[part])
        if self.kind in "iu":
            sign = np.sign(values) if self.kind == "i" else 1
            return np.asarray(sign * self.random.integers(1, 7, shape)).astype(self.dtype)
        if self.kind == "c":
            values = values + 1j * self.random.uniform(0.2, 1.0, shape)
        return np.asarray(values).astype(self.dtype)

    def distinct(self, *shape: int) -> np.ndarray:
        """Values of which no two are close: for extrema and sorting."""
        count = int(np.prod(shape))
        values = (self.random.permutation(count) - count // 2 + self.random.uniform(0.2, 0.8, count)).reshape(shape)
        if self.kind in "fV":
            return np.asarray(values * 0.5).astype(self.dtype)
        if self.kind in "iu":
            return np.asarray(np.floor(values) + (count // 2 if self.kind == "u" else 0)).astype(self.dtype)
        return self(*shape)

    def index(self, limit: int, *shape: int) -> np.ndarray:
        return self.random.integers(0, limit, shape)

    def places(self, limit: int, count: int) -> np.ndarray:
        """`count` different positions below `limit`, as a column."""
        return self.random.permutation(limit)[:count, None]

    def flags(self, *shape: int) -> np.ndarray:
        return self.random.random(shape) < 0.5

    def size(self, *options: int) -> int:
        return self.choose(options or (1, 2, 3))

    def shape(self) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.size(1, 2, 0, 3)))

    def shape_pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast: a dimension may be 1 in one of them, and one may lack leading dimensions."""
        first, second = [], []
        for dim in self.shape():
            narrow = self.choose(("neither", "first", "second"))
            first.append(1 if narrow == "first" else dim)
            second.append(1 if narrow == "second" else dim)
        missing = self.choose(range(len(first) + 1))
        shorter = self.choose(("second", "first"))
        return tuple(first[missing if shorter == "first" else 0 :]), tuple(
            second[missing if shorter == "second" else 0 :]
        )

    def regular(self, *shape: int) -> np.ndarray:
        """Square matrices far from singular, with eigenvalues well apart and off the negative axis."""
        n = shape[-1]
        return (self(*shape) * np.asarray(0.2, self.dtype) + np.diag(np.arange(2, n + 2))).astype(self.dtype)

    def hermitian(self, *shape: int) -> np.ndarray:
        half = self.regular(*shape)
        return half + np.conj(np.swapaxes(half, -1, -2))

    def triangular(self, *shape: int) -> np.ndarray:
        return np.tril(self.regular(*shape))
