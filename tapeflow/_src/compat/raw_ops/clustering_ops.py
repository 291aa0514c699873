"""Raw operations that k-means is made of: nearest centers, and first centers that lie far apart."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.errors import InvalidArgumentError

NearestNeighbors = namedtuple("NearestNeighbors", ["nearest_center_indices", "nearest_center_distances"])

_ROWS_AT_ONCE = 1024


def _squared_distances(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The squared distance of each point from each center."""
    products = points @ centers.T
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(centers).sum(axis=1)[None, :]
    return np.asarray(np.maximum(lengths - 2.0 * products, 0.0))


def _matrix(who: str, what: str, tensor: Any) -> np.ndarray:
    array = np.asarray(tensor.numpy(), np.float32)
    if array.ndim != 2:
        raise InvalidArgumentError.of(f"{who}: {what} must be a matrix; got shape {list(array.shape)}")
    return array


def _nearest(points: Any, centers: Any, k: Any) -> NearestNeighbors:
    def run(points: Any, centers: Any, k: Any) -> list[Any]:
        x, y, count = (
            _matrix("NearestNeighbors", "points", points),
            _matrix("NearestNeighbors", "centers", centers),
            int(k),
        )
        if x.shape[1] != y.shape[1]:
            raise InvalidArgumentError.of(
                f"NearestNeighbors: points have {x.shape[1]} coordinates, centers {y.shape[1]}"
            )
        if count < 1:
            raise InvalidArgumentError.of(f"NearestNeighbors: k must be positive; got {count}")
        count = min(count, len(y))
        indices, distances = np.empty([len(x), count], np.int64), np.empty([len(x), count], np.float32)
        for start in range(0, len(x), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            found = _squared_distances(x[rows], y)
            indices[rows] = np.argsort(found, axis=1, kind="stable")[:, :count]
            distances[rows] = np.take_along_axis(found, indices[rows], 1)
        return [convert_to_tensor(indices), convert_to_tensor(distances)]

    points, centers = convert_to_tensor(points, "float32"), convert_to_tensor(centers, "float32")
    shape = [points.shape[0] if points.shape.rank == 2 else None, None]
    given = [points, centers, convert_to_tensor(k, "int64")]
    return NearestNeighbors(*host_call(run, given, [("int64", shape), ("float32", shape)]))


def _first_centers(points: Any, count: Any, seed: Any, retries: Any) -> Any:
    """Points that are drawn one after the other, each with the squared distance from the nearest as its weight."""
    who = "KmeansPlusPlusInitialization"

    def run(points: Any, count: Any, seed: Any, retries: Any) -> list[Any]:
        x, wanted, random = _matrix(who, "points", points), int(count), np.random.default_rng(abs(int(seed)))
        if not 0 < wanted <= len(x):
            raise InvalidArgumentError.of(f"{who}: num_to_sample must be in [1, {len(x)}]; got {wanted}")
        tries = 2 + int(math.log(wanted)) if int(retries) < 0 else 1 + int(retries)
        chosen = [int(random.integers(len(x)))]
        nearest = _squared_distances(x, x[chosen])[:, 0]
        while len(chosen) < wanted:
            total = nearest.sum(dtype=np.float64)
            weights = nearest / total if total > 0 else None
            candidates = random.choice(len(x), tries, p=None if weights is None else weights / weights.sum())
            lengths = np.minimum(nearest[:, None], _squared_distances(x, x[candidates]))
            best = int(lengths.sum(axis=0, dtype=np.float64).argmin())
            chosen.append(int(candidates[best]))
            nearest = lengths[:, best]
        return [convert_to_tensor(x[chosen])]

    points = convert_to_tensor(points, "float32")
    width = points.shape[1] if points.shape.rank == 2 else None
    given = [points, *(convert_to_tensor(n, "int64") for n in (count, seed, retries))]
    return host_call(run, given, [("float32", [None, width])])[0]


def _end_of_chain(distances: Any, seed: Any) -> Any:
    """The last point of a chain that goes on to points in proportion to their distances."""

    def run(distances: Any, seed: Any) -> list[Any]:
        lengths = np.asarray(distances.numpy(), np.float64).reshape(-1)
        if not lengths.size:
            raise InvalidArgumentError.of("KMC2ChainInitialization: distances must not be empty")
        chances, at = np.random.default_rng(abs(int(seed))).random(lengths.size), 0
        for i in range(1, lengths.size):
            if lengths[i] > chances[i] * lengths[at]:
                at = i
        return [convert_to_tensor(at, "int64")]

    return host_call(run, [convert_to_tensor(distances, "float32"), convert_to_tensor(seed, "int64")], [("int64", [])])[
        0
    ]


ROWS: list[tuple[str, str, Any]] = [
    ("KMC2ChainInitialization", "distances, seed", _end_of_chain),
    ("KmeansPlusPlusInitialization", "points, num_to_sample, seed, num_retries_per_sample", _first_centers),
    ("NearestNeighbors", "points, centers, k", _nearest),
]
