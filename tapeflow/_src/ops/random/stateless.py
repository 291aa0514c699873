"""Random numbers that are functions of a seed: `tf.random.stateless_*`, and seeds made of seeds."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, bfloat16, float16, float32, float64, int32, int64, uint32, uint64
from tapeflow._src.types.errors import InvalidArgumentError

PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3


@public(
    "random.Algorithm",
    "random.experimental.Algorithm",
    "compat.v1.random.Algorithm",
    "compat.v1.random.experimental.Algorithm",
)
class Algorithm(enum.Enum):
    """The algorithms that make random bits; a CPU has Philox.

    >>> tf.random.Algorithm.PHILOX.value
    1
    """

    PHILOX = PHILOX
    THREEFRY = THREEFRY
    AUTO_SELECT = AUTO_SELECT


def algorithm_number(alg: Any) -> int:
    """The number of an algorithm given by number, name or member of `Algorithm`."""
    if isinstance(alg, str):
        name = alg.strip().lower().replace("-", "").replace("_", "")
        known = {"philox": PHILOX, "threefry": THREEFRY, "autoselect": AUTO_SELECT}.get(name)
        if known is None:
            raise ValueError(unsupported_algorithm(alg, "philox", "threefry", "auto_select"))
        return known
    if isinstance(alg, Algorithm):
        return int(alg.value)
    if isinstance(alg, int) or _core.is_tensor(alg):
        return int(alg)
    raise TypeError(f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int.")


def unsupported_algorithm(alg: Any, philox: Any = PHILOX, threefry: Any = THREEFRY, auto: Any = AUTO_SELECT) -> str:
    """The message for an algorithm that does not exist."""
    return (
        f"Argument `alg` got unsupported value {alg}. Supported values are {philox} for the Philox algorithm, "
        f"{threefry} for the ThreeFry algorithm, and {auto} for auto-selection."
    )


def key_counter_of(seed: Any, alg: Any = AUTO_SELECT) -> tuple[Any, Any, int]:
    """The key, the counter and the algorithm that a seed of two integers stands for."""
    number = AUTO_SELECT if alg is None else algorithm_number(alg)
    if number == THREEFRY:
        raise InvalidArgumentError.of("Unsupported algorithm id: 2. ThreeFry has no kernel on a CPU; use alg='philox'.")
    if number not in (PHILOX, AUTO_SELECT):
        raise ValueError(unsupported_algorithm(alg))
    seed = convert_to_tensor(seed)
    if seed.dtype not in (int32, int64):
        seed = cast(seed, int64) if seed.dtype.is_integer else seed
    key, counter = primitives.StatelessRandomGetKeyCounter(seed)
    return key, counter, number


def scaled_normal(standard: Any, mean: Any, stddev: Any) -> Any:
    """Standard normal numbers with another mean and deviation."""
    if not (isinstance(stddev, int | float) and stddev == 1):
        standard = standard * convert_to_tensor(stddev, dtype=standard.dtype)
    if not (isinstance(mean, int | float) and mean == 0):
        standard = standard + convert_to_tensor(mean, dtype=standard.dtype)
    return standard


def ranged_uniform(unit: Any, minval: Any, maxval: Any) -> Any:
    """Numbers of [0, 1) moved to [minval, maxval)."""
    if isinstance(minval, int | float) and minval == 0:
        if isinstance(maxval, int | float) and maxval == 1:
            return unit
        return unit * convert_to_tensor(maxval, dtype=unit.dtype)
    low = convert_to_tensor(minval, dtype=unit.dtype)
    return unit * (convert_to_tensor(maxval, dtype=unit.dtype) - low) + low


_UNIFORM_DTYPES = (float16, bfloat16, float32, float64, int32, int64, uint32, uint64)


@public("random.stateless_uniform", "compat.v1.random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Any:
    """Uniform numbers in [minval, maxval) that depend on `seed` alone; integers of all values with both bounds None.

    Args:
        shape: The shape.
        seed: Two integers; equal seeds give equal numbers.
        minval: The lower bound, included.
        maxval: The upper bound, excluded; 1 if None.
        dtype: A floating or integer dtype.
        name: A name for the operation in graphs.
        alg: The generator: 'philox', 'threefry' or 'auto_select'.

    Returns:
        A tensor of shape `shape`.

    Gradient:
        By `minval` and `maxval` for floating dtypes.

    >>> tf.random.stateless_uniform([2], seed=[1, 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.8440604 , 0.19204533], dtype=float32)>
    """
    dtype = as_dtype(dtype)
    if dtype not in _UNIFORM_DTYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_DTYPES}.")
    if dtype.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer `dtype` argument {dtype}, argument `minval` and `maxval` must be both None or not None. "
                f"Got `minval`={minval} and `maxval`={maxval}."
            )
        if minval is not None and dtype in (uint32, uint64):
            raise ValueError(
                f"Argument `dtype` got invalid value {dtype} when argument `minval` is not None. Please don't use "
                "unsigned integers in this case."
            )
    elif maxval is None:
        maxval = 1
    key, counter, number = key_counter_of(seed, alg)
    return uniform_of(shape_argument(shape), key, counter, number, minval, maxval, dtype)


def uniform_of(dims: list[int], key: Any, counter: Any, alg: int, minval: Any, maxval: Any, dtype: Any) -> Any:
    """Uniform numbers of a key and a counter."""
    if not dtype.is_integer:
        return ranged_uniform(primitives.StatelessRandomUniformV2(dims, key, counter, alg, dtype), minval, maxval)
    if minval is None:
        return primitives.StatelessRandomUniformFullIntV2(dims, key, counter, alg, dtype)
    low, high = convert_to_tensor(minval, dtype=dtype), convert_to_tensor(maxval, dtype=dtype)
    return primitives.StatelessRandomUniformIntV2(dims, key, counter, alg, low, high)


def _stateless_normals(primitive: Any, doc: str, *paths: str) -> Callable[..., Any]:
    """Numbers that a primitive draws with mean 0 and deviation 1."""

    @public_as(doc, *paths)
    def function(
        shape: Any,
        seed: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = float32,
        name: str | None = None,
        alg: Any = "auto_select",
    ) -> Any:
        key, counter, number = key_counter_of(seed, alg)
        standard = primitive(shape_argument(shape), key, counter, number, as_dtype(dtype))
        return scaled_normal(standard, mean, stddev)

    return function


stateless_normal = _stateless_normals(
    primitives.StatelessRandomNormalV2,
    """Normal numbers that depend on `seed` alone.

    Args:
        shape: The shape.
        seed: Two integers; equal seeds give equal numbers.
        mean: The mean, which broadcasts to `shape`.
        stddev: The standard deviation, which broadcasts to `shape`.
        dtype: A floating dtype.
        name: A name for the operation in graphs.
        alg: The generator: 'philox', 'threefry' or 'auto_select'.

    Returns:
        A tensor of shape `shape`.

    Gradient:
        By `mean` and `stddev`.

    >>> tf.random.stateless_normal([2], seed=[1, 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5441101 , 0.20738031], dtype=float32)>
    """,
    "random.stateless_normal",
    "compat.v1.random.stateless_normal",
)
stateless_truncated_normal = _stateless_normals(
    primitives.StatelessTruncatedNormalV2,
    """Normal numbers within two deviations of the mean, that depend on `seed` alone.

    >>> tf.random.stateless_truncated_normal([2], seed=[1, 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5441101 , 0.20738031], dtype=float32)>
    """,
    "random.stateless_truncated_normal",
    "compat.v1.random.stateless_truncated_normal",
)


def gamma_of(dims: list[int], key: Any, counter: Any, alpha: Any, beta: Any) -> Tensor:
    """Gamma numbers of a key and a counter; never 0, whose logarithm is infinite."""
    smallest = np.finfo(alpha.dtype.as_numpy_dtype).tiny
    sample = primitives.StatelessRandomGammaV3(dims, key, counter, PHILOX, alpha)
    return primitives.Maximum(convert_to_tensor(smallest, dtype=alpha.dtype), sample / beta)


def gamma_parameters(alpha: Any, beta: Any, dtype: Any) -> tuple[Any, Any]:
    """`alpha` in the shape it has together with `beta`, and `beta`."""
    alpha = convert_to_tensor(alpha, dtype=dtype)
    beta = convert_to_tensor(1 if beta is None else beta, dtype=dtype)
    if not (alpha.shape.is_fully_defined() and beta.shape.is_fully_defined()):
        return primitives.AddV2(alpha, primitives.BroadcastTo(cast(0, beta.dtype), primitives.Shape(beta))), beta
    return primitives.BroadcastTo(alpha, list(np.broadcast_shapes(tuple(alpha.shape), tuple(beta.shape)))), beta


@public("random.stateless_gamma", "compat.v1.random.stateless_gamma")
def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """Gamma numbers that depend on `seed` alone; `shape` ends with the shape of `alpha`. Differentiable by both.

    >>> tf.random.stateless_gamma([3], seed=[1, 2], alpha=1.).shape
    TensorShape([3])
    """
    alpha, beta = gamma_parameters(alpha, beta, as_dtype(dtype))
    key, counter, _ = key_counter_of(seed)
    return gamma_of(shape_argument(shape), key, counter, alpha, beta)


@public("random.stateless_poisson", "compat.v1.random.stateless_poisson")
def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = int32, name: str | None = None) -> Tensor:
    """Poisson counts that depend on `seed` alone; `shape` ends with the shape of `lam`.

    >>> tf.random.stateless_poisson([3], seed=[1, 2], lam=0.)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 0, 0], dtype=int32)>
    """
    key, counter, _ = key_counter_of(seed)
    lam = convert_to_tensor(lam)
    return primitives.PhiloxPoisson(shape_argument(shape), key, counter, PHILOX, as_dtype(dtype), lam)


@public("random.stateless_binomial", "compat.v1.random.stateless_binomial")
def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Counts of successes in `counts` trials of probability `probs`, that depend on `seed` alone.

    >>> tf.random.stateless_binomial([3], seed=[1, 2], counts=5., probs=0.)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 0, 0], dtype=int32)>
    """
    probs = convert_to_tensor(probs, dtype_hint=float32)
    counts = convert_to_tensor(counts, dtype_hint=probs.dtype)
    key, counter, _ = key_counter_of(seed)
    return primitives.PhiloxBinomial(shape_argument(shape), key, counter, PHILOX, as_dtype(output_dtype), counts, probs)


def categorical_dtype(dtype: Any) -> Any:
    """The dtype of drawn classes."""
    dtype = as_dtype(dtype) if dtype else int64
    if dtype not in (int32, int64):
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {(int32, int64)}.")
    return dtype


@public("random.stateless_categorical", "compat.v1.random.stateless_categorical")
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """Classes drawn from each row of unnormalised log-probabilities, that depend on `seed` alone.

    >>> tf.random.stateless_categorical([[0., -1e9]], 3, seed=[1, 2])
    <tf.Tensor: shape=(1, 3), dtype=int64, numpy=array([[0, 0, 0]])>
    """
    dtype = categorical_dtype(dtype)
    key, counter, _ = key_counter_of(seed)
    return primitives.PhiloxMultinomial(convert_to_tensor(logits), int(num_samples), key, counter, dtype)


@public(
    "random.split",
    "random.experimental.stateless_split",
    "compat.v1.random.split",
    "compat.v1.random.experimental.stateless_split",
)
def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Any:
    """`num` new seeds made of one, as rows.

    >>> tf.random.split([1, 2], 2).shape
    TensorShape([2, 2])
    """
    seed = convert_to_tensor(seed)
    return stateless_uniform([num, 2], seed, None, None, seed.dtype, alg=alg)


@public(
    "random.fold_in",
    "random.experimental.stateless_fold_in",
    "compat.v1.random.fold_in",
    "compat.v1.random.experimental.stateless_fold_in",
)
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new seed made of a seed and a number, such as a step or a replica.

    >>> tf.random.fold_in([1, 2], 5).shape
    TensorShape([2])
    """
    data = convert_to_tensor(data)
    return primitives.Pack([stateless_uniform([], seed, None, None, data.dtype, alg=alg), data])


@public(
    "random.stateless_parameterized_truncated_normal",
    "compat.v1.random.stateless_parameterized_truncated_normal",
)
def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normal numbers between bounds, that depend on `seed` alone; `shape` ends with the shape of the parameters.

    >>> tf.random.stateless_parameterized_truncated_normal([3], [1, 2], minvals=0.).shape
    TensorShape([3])
    """
    key, counter, _ = key_counter_of(seed)
    return primitives.PhiloxBoundedNormal(shape_argument(shape), key, counter, PHILOX, means, stddevs, minvals, maxvals)


@public("random.experimental.stateless_shuffle", "compat.v1.random.experimental.stateless_shuffle")
def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Tensor:
    """The rows of `value` in an order that depends on `seed` alone.

    >>> tf.random.experimental.stateless_shuffle([7, 7], seed=[1, 2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([7, 7], dtype=int32)>
    """
    key, counter, _ = key_counter_of(seed, alg)
    return primitives.PhiloxShuffle(convert_to_tensor(value), key, counter)


@public("random.experimental.index_shuffle", "compat.v1.random.experimental.index_shuffle")
def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """Where `index` goes in a permutation of 0 to `max_index` that depends on `seed` alone and is never stored.

    >>> tf.sort(tf.random.experimental.index_shuffle(tf.range(4), [1, 2], 3))
    <tf.Tensor: shape=(4,), dtype=int32, numpy=array([0, 1, 2, 3], dtype=int32)>
    """
    seed = convert_to_tensor(seed)
    paddings = [1, 0] + [0, 0] * (seed.shape.rank - 1)
    seed = primitives.PadV2(seed, paddings, convert_to_tensor(498247692, dtype=seed.dtype))
    index = convert_to_tensor(index)
    highest = convert_to_tensor(max_index, dtype_hint=index.dtype)
    if not _core.is_symbolic(highest) and (highest.numpy() < 0).any():
        raise InvalidArgumentError.of(f"index_shuffle: max_index must be >= 0 but was {highest.numpy().min()}")
    return primitives.RandomIndexShuffle(index, seed, highest, 4)
