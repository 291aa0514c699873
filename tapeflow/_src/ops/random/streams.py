"""Random numbers from the streams that `tf.random.set_seed` and the seeds of operations begin."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dynamic_dims, joined_shape, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.random.seeds import BLOCKS_PER_OUTPUT, draw
from tapeflow._src.ops.random.stateless import (
    PHILOX,
    categorical_dtype,
    gamma_of,
    gamma_parameters,
    scaled_normal,
    uniform_of,
)
from tapeflow._src.types.dtypes import as_dtype, bfloat16, float16, float32, float64, int32, int64

_UNIFORM_DTYPES = (float16, bfloat16, float32, float64, int32, int64)


def _draw_for(operation: Any, seed: int | None, dims: Any) -> tuple[Any, Any]:
    if type(dims) is not list and _core.is_tensor(dims):
        return draw(operation, seed, primitives.Prod(cast(dims, int64)) * BLOCKS_PER_OUTPUT)
    return draw(operation, seed, max(prod(dims), 0) * BLOCKS_PER_OUTPUT)


@public("random.uniform", "compat.v1.random.uniform", "compat.v1.random_uniform", node="random_uniform")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Uniform numbers in [minval, maxval); integers need `maxval`.

    Args:
        shape: The shape.
        minval: The lower bound, included.
        maxval: The upper bound, excluded; 1 if None. Integers need one.
        dtype: A floating dtype, int32 or int64.
        seed: A number that, with `tf.random.set_seed`, fixes the sequence.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `shape`.

    Gradient:
        By `minval` and `maxval` for floating dtypes.

    >>> tf.random.set_seed(1234)
    >>> tf.random.uniform([1])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.5380393], dtype=float32)>
    """
    dtype = as_dtype(dtype)
    if dtype is not float32 and dtype not in _UNIFORM_DTYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_DTYPES}.")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    dims = shape_argument(shape)
    operation = "RandomUniformInt" if dtype.is_integer else "RandomUniform"
    key, counter = _draw_for((operation, dtype.name), seed, dims)
    return uniform_of(dims, key, counter, PHILOX, minval, maxval, dtype)


def _normals(operation: str, primitive: Any, node: str | None, doc: str, *paths: str) -> Callable[..., Any]:
    """Numbers of the stream of an operation, which a primitive draws with mean 0 and deviation 1."""

    @public_as(doc, *paths, node=node)
    def function(
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = float32,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        dims, dtype = shape_argument(shape), as_dtype(dtype)
        key, counter = _draw_for((operation, dtype.name), seed, dims)
        return scaled_normal(primitive(dims, key, counter, PHILOX, dtype), mean, stddev)

    return function


normal = _normals(
    "RandomStandardNormal",
    primitives.StatelessRandomNormalV2,
    "random_normal",
    """Normal numbers of a mean and a deviation, which broadcast with `shape`.

    Args:
        shape: The shape.
        mean: The mean, which broadcasts to `shape`.
        stddev: The standard deviation, which broadcasts to `shape`.
        dtype: A floating dtype.
        seed: A number that, with `tf.random.set_seed`, fixes the sequence.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `shape`.

    Gradient:
        By `mean` and `stddev`: the numbers are `mean + stddev * noise`.

    >>> tf.random.normal([2, 3]).shape
    TensorShape([2, 3])
    """,
    "random.normal",
    "compat.v1.random.normal",
    "compat.v1.random_normal",
)
truncated_normal = _normals(
    "TruncatedNormal",
    primitives.StatelessTruncatedNormalV2,
    None,
    """Normal numbers, those further than two deviations from the mean drawn again.

    >>> tf.random.truncated_normal([2, 3]).shape
    TensorShape([2, 3])
    """,
    "random.truncated_normal",
    "compat.v1.random.truncated_normal",
    "compat.v1.truncated_normal",
)


@public("random.gamma", "compat.v1.random.gamma", "compat.v1.random_gamma")
def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Gamma numbers, `shape` of them for each element of `alpha` and `beta`; differentiable by both.

    >>> tf.random.gamma([5], [0.5, 2.]).shape
    TensorShape([5, 2])
    """
    alpha, beta = gamma_parameters(alpha, beta, as_dtype(dtype))
    dims = joined_shape(shape, alpha)
    key, counter = _draw_for(("RandomGamma", alpha.dtype.name), seed, dims)
    return gamma_of(dims, key, counter, alpha, beta)


@public("random.poisson")
def poisson(shape: Any, lam: Any, dtype: Any = float32, seed: int | None = None, name: str | None = None) -> Tensor:
    """Poisson counts, `shape` of them for each element of `lam`.

    >>> tf.random.poisson([5], [0.5, 2.]).shape
    TensorShape([5, 2])
    """
    lam, dtype = convert_to_tensor(lam), as_dtype(dtype)
    dims = joined_shape(shape, lam)
    key, counter = _draw_for(("RandomPoissonV2", lam.dtype.name, dtype.name), seed, dims)
    return primitives.PhiloxPoisson(dims, key, counter, PHILOX, dtype, lam)


@public("random.categorical", "compat.v1.random.categorical")
def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Classes drawn from each row of unnormalised log-probabilities: shape [rows, num_samples].

    >>> tf.random.categorical([[0., -1e9]], 3)
    <tf.Tensor: shape=(1, 3), dtype=int64, numpy=array([[0, 0, 0]])>
    """
    logits, dtype, num_samples = convert_to_tensor(logits), categorical_dtype(dtype), int(num_samples)
    rows = (dynamic_dims(logits) or [0])[0]
    rows = cast(rows, int64) if _core.is_tensor(rows) else rows
    words = 2 * rows * (max(num_samples + 3, 0) // 4 * 4)
    key, counter = draw(("Multinomial", logits.dtype.name, dtype.name), seed, words * BLOCKS_PER_OUTPUT)
    return primitives.PhiloxMultinomial(logits, num_samples, key, counter, dtype)


@public("random.shuffle", "compat.v1.random.shuffle", "compat.v1.random_shuffle")
def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in a random order.

    Args:
        value: The tensor, shuffled along its first dimension.
        seed: A number that, with `tf.random.set_seed`, fixes the order.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape and dtype of `value`.

    Gradient:
        `dy` at the places where the slices came from.

    >>> tf.sort(tf.random.shuffle([3, 1, 2]))
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    """
    value = convert_to_tensor(value)
    rows = dynamic_dims(value)[0] if value.shape.rank else 1
    rows = cast(rows, int64) if _core.is_tensor(rows) else rows
    key, counter = draw(("RandomShuffle", value.dtype.name), seed, (rows + 2) // 4)
    return primitives.PhiloxShuffle(value, key, counter)
