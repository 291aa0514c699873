"""The buckets of TensorFlow's `DenseHashTable`, as its checkpoints keep them: each key is where its hash leads."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.ops.strings.hashing import murmur64

_FEWEST = 8
_WORD = (1 << 64) - 1


def in_buckets(
    keys: np.ndarray, values: np.ndarray, empty_key: Any, default: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Keys as rows of a matrix, and values, both at the places of their keys; `empty_key` is at the others."""
    count = _FEWEST
    while count < 2 * len(keys):
        count *= 2
    width = np.size(np.asarray(empty_key, keys.dtype))
    key_rows, value_rows = np.empty([count, width], keys.dtype), np.empty([count, default.size], values.dtype)
    key_rows[:], value_rows[:] = np.reshape(np.asarray(empty_key, keys.dtype), [-1]), default.reshape([-1])
    taken: set[int] = set()
    for key, value in zip(keys.reshape([-1, width]), values):
        place, step = _hash(key.tolist()) % count, 0
        while place in taken:
            step += 1
            place = (place + step) % count
        taken.add(place)
        key_rows[place], value_rows[place] = key, np.reshape(value, [-1])
    return key_rows, value_rows


def _hash(key: list[Any]) -> int:
    """TensorFlow's hash of a key: numbers stand for themselves, strings for Murmur's hash; several are combined."""
    numbers = [murmur64(part) if isinstance(part, bytes) else int(part) & _WORD for part in key]
    if len(numbers) == 1:
        return numbers[0]
    result = 0
    for number in numbers:
        result ^= (number + 0x9E3779B97F4A7800 + (result << 10) + (result >> 4)) & _WORD
    return result
