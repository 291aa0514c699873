"""Fractional pools: windows of two neighbouring sizes in random order."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public_as
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.types.errors import InvalidArgumentError

FractionalMaxPool = namedtuple("FractionalMaxPool", ["output", "row_pooling_sequence", "col_pooling_sequence"])
FractionalAvgPool = namedtuple("FractionalAvgPool", ["output", "row_pooling_sequence", "col_pooling_sequence"])


# ---- fractional pools: windows of two neighbouring sizes in random order


def _pooling_sequence(length: int, ratio: float, pseudo_random: bool, random: np.random.Generator) -> np.ndarray:
    """The borders of about `length / ratio` windows of two neighbouring sizes, in random order."""
    count = math.floor(length / ratio)
    small = length // count
    if pseudo_random:
        alpha = length / count
        most = (small + 1) / alpha if alpha != small else 1.0
        start = random.uniform() * min(most, 1.0 / max(alpha - small, 1e-12), 1.0)
        borders: np.ndarray = np.floor(alpha * (np.arange(count + 1) + start)).astype(np.int64)
        borders -= borders[0]
        borders[-1] = length
        return borders
    sizes = np.full(count, small)
    sizes[: length - small * count] += 1
    random.shuffle(sizes)
    return np.concatenate([[0], np.cumsum(sizes)])


def _fractional(who: str, x: Any, ratio: Any, pseudo_random: bool, seed: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    x = convert_to_tensor(x)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"{who}: tensor_in must be 4-dimensional; got {x.shape.as_list()}")
    numbers = [float(r) for r in np.atleast_1d(np.asarray(ratio))]
    if len(numbers) == 1:
        numbers = [1.0, numbers[0], numbers[0], 1.0]
    elif len(numbers) == 2:
        numbers = [1.0, *numbers, 1.0]
    if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1:
        raise ValueError(f"pooling_ratio should be of length 1, 2 or 4 with 1 for batch and depth; got {ratio}")
    if min(numbers) < 1:
        raise ValueError(f"pooling_ratio cannot be smaller than 1, got: {ratio}; pooling_ratio should be >= 1.0")
    for axis in (1, 2):
        if x.shape[axis] < numbers[axis]:
            raise InvalidArgumentError.of(
                f"{who}: Pooling ratio is higher than input dimension size for dimension {axis}. Input dim size: "
                f"{x.shape[axis]} pooling ratio: {numbers[axis]}",
            )
    random = np.random.default_rng(abs(int(seed)) if seed else None)
    rows = _pooling_sequence(x.shape[1], numbers[1], pseudo_random, random)
    columns = _pooling_sequence(x.shape[2], numbers[2], pseudo_random, random)
    return x, rows, columns


def _window_cells(borders: np.ndarray, overlapping: bool) -> tuple[np.ndarray, np.ndarray]:
    """The cells that each window covers, the last one repeated up to the widest, and which are not repeats."""
    ends = borders[1:] + (1 if overlapping else 0)
    ends[-1] = borders[-1]
    widest = int((ends - borders[:-1]).max())
    cells = borders[:-1, None] + np.arange(widest)[None, :]
    real = cells < ends[:, None]
    return np.minimum(cells, ends[:, None] - 1), real


def _fractional_cells(x: Any, rows: np.ndarray, columns: np.ndarray, overlapping: bool) -> tuple[Any, np.ndarray]:
    """The cells (N, out height, out width, C, cells of a window), and which are not repeats."""
    row_cells, row_real = _window_cells(rows, overlapping)
    column_cells, column_real = _window_cells(columns, overlapping)
    cells = gather(gather(x, row_cells.reshape(-1), axis=1), column_cells.reshape(-1), axis=2)
    (height, tall), (width, wide) = row_cells.shape, column_cells.shape
    batch, depth = x.shape[0], x.shape[3]
    cells = primitives.Transpose(
        primitives.Reshape(cells, [batch, height, tall, width, wide, depth]), [0, 1, 3, 5, 2, 4]
    )
    real = row_real[:, None, :, None] & column_real[None, :, None, :]
    return primitives.Reshape(cells, [batch, height, width, depth, tall * wide]), real.reshape(
        height, width, 1, tall * wide
    )


def pooled(x: Any, rows: Any, columns: Any, overlapping: bool, largest: bool) -> Any:
    """The largest value, or the mean, of windows with these borders."""
    who, found = "fractional pooling", []
    for what, given, axis in (("Row", rows, 1), ("Column", columns, 2)):
        borders = np.asarray(given, np.int64)
        if borders.ndim != 1 or borders.size < 2:
            raise InvalidArgumentError.of(f"{who}: {what} sequence must have at least 2 elements; got {borders.size}")
        if borders.min() < 0:
            raise InvalidArgumentError.of(f"{who}: {what} sequence tensor values must not be negative; got {borders}")
        if (np.diff(borders) <= 0).any() or borders[-1] > x.shape[axis]:
            raise InvalidArgumentError.of(
                f"{who}: {what} sequence must ascend up to at most {x.shape[axis]}; got {borders}"
            )
        found.append(borders)
    return (_largest if largest else _mean)(*_fractional_cells(x, found[0], found[1], overlapping))


def _largest(cells: Any, real: np.ndarray) -> Tensor:
    best = primitives.ExpandDims(primitives.ArgMax(cells, -1), -1)
    return primitives.Squeeze(primitives.GatherV2(cells, best, 4, 4), [4])


def _mean(cells: Any, real: np.ndarray) -> Tensor:
    weights = real / real.sum(axis=-1, keepdims=True)
    return primitives.Sum(cells * cast(weights, cells.dtype), [-1], False)


def _fractional_pool(reduce: Callable[[Any, np.ndarray], Any], result: Any, doc: str, path: str) -> Callable[..., Any]:
    """A pool that reduces the cells of each window, of which those that are repeats are marked."""

    @public_as(doc, path)
    def function(
        value: Any,
        pooling_ratio: Any,
        pseudo_random: bool = False,
        overlapping: bool = False,
        seed: int = 0,
        name: str | None = None,
    ) -> Any:
        x, rows, columns = _fractional(path, value, pooling_ratio, pseudo_random, seed)
        output = reduce(*_fractional_cells(x, rows, columns, overlapping))
        return result(output, convert_to_tensor(rows), convert_to_tensor(columns))

    return function


fractional_max_pool = _fractional_pool(
    _largest,
    FractionalMaxPool,
    """The largest value in windows whose sizes are random, so that the size falls by about `pooling_ratio`.

    >>> tf.nn.fractional_max_pool(tf.ones([1, 6, 6, 1]), 1.5, seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """,
    "nn.fractional_max_pool",
)
fractional_avg_pool = _fractional_pool(
    _mean,
    FractionalAvgPool,
    """The mean of windows whose sizes are random, so that the size falls by about `pooling_ratio`.

    >>> tf.nn.fractional_avg_pool(tf.ones([1, 6, 6, 1]), 1.5, seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """,
    "nn.fractional_avg_pool",
)
