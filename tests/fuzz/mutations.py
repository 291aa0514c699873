"""Arguments that are nearly right: other dtypes, shapes around the shape rules, boundary values, wrong kinds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import tapeflow as tf

NUMBERS = [0, 1, -1, 2, 3, 5, -7, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63), 2**64, 0.5, 1e308, -0.0]
NUMBERS += [float("nan"), float("inf"), float("-inf"), 1j, True]
DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool"]
DTYPES += ["complex64", "complex128", "string"]
EDGES = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e-45, 3e38, -3e38]
STRINGS = ["", "SAME", "x", "\0", "float32", "NCHW", "i,j->", "a" * 1000, b"\xff\xfe"]


class _Stranger:
    """Something that is no value of any operation."""


def _wrong_kind(chance: random.Random) -> Any:
    makers = [
        lambda: None, lambda: chance.choice(STRINGS), lambda: _Stranger(), lambda: chance.choice(NUMBERS), list, dict,
        lambda: [[1.0], [2.0, 3.0]], lambda: tf.Variable([1.0, 2.0]), lambda: tf.ragged.constant([[1.0, 2.0], [3.0]]),
        lambda: tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]]), lambda: tf.TensorShape([None, 2]),
        lambda: tf.IndexedSlices(tf.ones([1, 2]), [0], [3, 2]), lambda: np.zeros((0, 3)), lambda: float, lambda: (1,),
        lambda: tf.constant(["a", "b"]), lambda: tf.TensorSpec([2]), lambda: lambda *_: None,
    ]  # fmt: skip
    return chance.choice(makers)()


def _array(value: Any) -> np.ndarray | None:
    try:
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except Exception:
        return None
    return array if array.dtype.kind in "fiubc" and array.ndim < 8 else None


def _other_shape(array: np.ndarray, chance: random.Random) -> np.ndarray:
    shape = list(array.shape)
    what = chance.randrange(6)
    if what == 0 and shape:
        shape[chance.randrange(len(shape))] = chance.choice([0, 1, 2, 3, 7])
    elif what == 1 and shape:
        del shape[chance.randrange(len(shape))]
    elif what == 2:
        shape.insert(chance.randrange(len(shape) + 1), chance.choice([0, 1, 2]))
    elif what == 3:
        shape = [chance.choice([0, 1, 2, 3]) for _ in range(chance.randrange(7))]
    elif what == 4:
        return np.asarray(array.T)
    else:
        return array[..., :1] if shape else array.reshape(1, 1)
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def _other_tensor(array: np.ndarray, chance: random.Random) -> Any:
    what = chance.randrange(5)
    if what == 0:
        return _other_shape(array, chance)
    if what == 1:
        dtype = chance.choice(DTYPES)
        if dtype == "string":
            return tf.constant(np.full(array.shape, b"1", object))
        return tf.cast(tf.constant(array), dtype)
    changed = np.array(array)
    if what == 2 and changed.size and changed.dtype.kind in "fc":
        changed.reshape(-1)[chance.randrange(changed.size)] = chance.choice(EDGES)
    elif what == 3 and changed.size and changed.dtype.kind in "iu":
        info = np.iinfo(changed.dtype)
        edges = [info.min, info.max, 0, max(info.min, -1), 1, 1000]
        changed.reshape(-1)[chance.randrange(changed.size)] = chance.choice(edges)
    else:
        return changed.tolist()
    return changed


def mutated(value: Any, chance: random.Random) -> Any:
    """Another value in place of one: mostly of the same kind."""
    if chance.random() < 0.2:
        return _wrong_kind(chance)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | complex):
        near = [value + 1, value - 1, -value, np.asarray(value)]
        return chance.choice([*near, *NUMBERS])
    if isinstance(value, str | bytes):
        return chance.choice([*STRINGS, value * 2, value[:-1]])
    if isinstance(value, tf.DType):
        return chance.choice(DTYPES)
    if isinstance(value, list | tuple) and value and chance.random() < 0.6:
        items = list(value)
        place = chance.randrange(len(items))
        what = chance.randrange(4)
        if what == 0:
            del items[place]
        elif what == 1:
            items.insert(place, mutated(items[place], chance))
        else:
            items[place] = mutated(items[place], chance)
        return type(value)(items) if type(value) in (list, tuple) else items
    array = _array(value)
    if array is None or (array.ndim == 0 and not hasattr(value, "dtype")):
        return _wrong_kind(chance)
    try:
        return _other_tensor(array, chance)
    except tf.errors.OpError:  # no cast of these elements to the other dtype
        return array


def mutated_call(args: list[Any], kwargs: dict[str, Any], chance: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with one to three changes."""
    args, kwargs = list(args), dict(kwargs)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = [*range(len(args)), *kwargs]
        if not places or chance.random() < 0.05:
            args = args[:-1] if args and chance.random() < 0.5 else [*args, chance.choice(NUMBERS)]
            continue
        place = chance.choice(places)
        if isinstance(place, int):
            args[place] = mutated(args[place], chance)
        else:
            kwargs[place] = mutated(kwargs[place], chance)
    return args, kwargs
