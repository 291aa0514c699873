"""Raw operations that draw random numbers: from two seeds, from a seed of two integers, or from a key and a counter."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from math import prod
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.constants import joined_shape, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn import candidates
from tapeflow._src.ops.random.seeds import BLOCKS_PER_OUTPUT, draw_from
from tapeflow._src.ops.random.stateless import PHILOX, key_counter_of
from tapeflow._src.types.dtypes import as_dtype, int32, int64

StatelessRandomGetKeyCounter = namedtuple("StatelessRandomGetKeyCounter", ["key", "counter"])
StatelessRandomGetKeyCounterAlg = namedtuple("StatelessRandomGetKeyCounterAlg", ["key", "counter", "alg"])
CandidateSampler = namedtuple(
    "CandidateSampler", ["sampled_candidates", "true_expected_count", "sampled_expected_count"]
)
ComputeAccidentalHits = namedtuple("ComputeAccidentalHits", ["indices", "ids", "weights"])


def _stream(operation: Any, seed: int, seed2: int, blocks: int) -> tuple[Any, Any]:
    """The key and counter of an operation with these seeds; with none of them, of an accidental stream."""
    first, second = (None, None) if seed == seed2 == 0 else (seed, seed2)
    return draw_from(operation, first, second, blocks)


def _drawn(name: str, primitive: Callable[..., Any]) -> Callable[..., Any]:
    def run(shape: Any, dtype: Any, seed: int, seed2: int) -> Any:
        dims, dtype = shape_argument(shape), as_dtype(dtype)
        key, counter = _stream((name, dtype.name), seed, seed2, max(prod(dims), 0) * BLOCKS_PER_OUTPUT)
        return primitive(dims, key, counter, PHILOX, dtype)

    return run


def _uniform_int(shape: Any, minval: Any, maxval: Any, seed: int, seed2: int) -> Any:
    dims, low = shape_argument(shape), convert_to_tensor(minval)
    blocks = max(prod(dims), 0) * BLOCKS_PER_OUTPUT
    key, counter = _stream(("RandomUniformInt", low.dtype.name), seed, seed2, blocks)
    return primitives.StatelessRandomUniformIntV2(dims, key, counter, PHILOX, low, convert_to_tensor(maxval, low.dtype))


def _gamma(shape: Any, alpha: Any, seed: int, seed2: int) -> Any:
    alpha = convert_to_tensor(alpha)
    dims = joined_shape(shape, alpha)
    key, counter = _stream(("RandomGamma", alpha.dtype.name), seed, seed2, prod(dims) * BLOCKS_PER_OUTPUT)
    return primitives.StatelessRandomGammaV3(dims, key, counter, PHILOX, alpha)


def _poisson(shape: Any, rate: Any, seed: int, seed2: int, dtype: Any) -> Any:
    rate, dtype = convert_to_tensor(rate), as_dtype(dtype)
    dims = joined_shape(shape, rate)
    name = ("RandomPoissonV2", rate.dtype.name, dtype.name)
    key, counter = _stream(name, seed, seed2, prod(dims) * BLOCKS_PER_OUTPUT)
    return primitives.PhiloxPoisson(dims, key, counter, PHILOX, dtype, rate)


def _for_each_row(parameter: Any, dims: list[int]) -> Any:
    """A parameter that is a scalar, or a vector with one number for each row of the result."""
    x = convert_to_tensor(parameter)
    if x.shape.rank != 1 or len(dims) < 2:
        return x
    return primitives.BroadcastTo(primitives.Reshape(x, [-1] + [1] * (len(dims) - 1)), dims)


def _bounded_normal(shape: Any, means: Any, stdevs: Any, minvals: Any, maxvals: Any, seed: int, seed2: int) -> Any:
    dims, means = shape_argument(shape), convert_to_tensor(means)
    name = ("ParameterizedTruncatedNormal", means.dtype.name)
    parameters = [_for_each_row(x, dims) for x in (means, stdevs, minvals, maxvals)]
    key, counter = _stream(name, seed, seed2, max(prod(dims), 0) * BLOCKS_PER_OUTPUT)
    return primitives.PhiloxBoundedNormal(dims, key, counter, PHILOX, *parameters)


def _shuffle(value: Any, seed: int, seed2: int) -> Any:
    value = convert_to_tensor(value)
    rows = value.shape[0] if value.shape.rank else 1
    key, counter = _stream(("RandomShuffle", value.dtype.name), seed, seed2, (rows + 2) // 4)
    return primitives.PhiloxShuffle(value, key, counter)


def _from_seed(primitive: Callable[..., Any]) -> Callable[..., Any]:
    def run(shape: Any, seed: Any, dtype: Any) -> Any:
        key, counter, _ = key_counter_of(seed)
        return primitive(shape_argument(shape), key, counter, PHILOX, as_dtype(dtype))

    return run


def _uniform_int_from_seed(shape: Any, seed: Any, minval: Any, maxval: Any) -> Any:
    key, counter, _ = key_counter_of(seed)
    low = convert_to_tensor(minval)
    high = convert_to_tensor(maxval, low.dtype)
    return primitives.StatelessRandomUniformIntV2(shape_argument(shape), key, counter, PHILOX, low, high)


def _gamma_from_seed(shape: Any, seed: Any, alpha: Any) -> Any:
    key, counter, _ = key_counter_of(seed)
    return primitives.StatelessRandomGammaV3(shape_argument(shape), key, counter, PHILOX, convert_to_tensor(alpha))


def _from_key(primitive: Callable[..., Any]) -> Callable[..., Any]:
    def run(shape: Any, key: Any, counter: Any, alg: Any, *rest: Any) -> Any:
        return primitive(shape_argument(shape), key, counter, int(alg), *rest)

    return run


def _key_counter_alg(seed: Any) -> StatelessRandomGetKeyCounterAlg:
    key, counter, _ = key_counter_of(seed)
    return StatelessRandomGetKeyCounterAlg(key, counter, convert_to_tensor(PHILOX, int32))


def _own_seed(seed: int, seed2: int) -> int | None:
    """The seed of the public function that serves a raw operation with these."""
    return (seed2 or seed) or None


def _sampler(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(true_classes: Any, num_true: int, num_sampled: int, unique: bool, *rest: Any) -> CandidateSampler:
        *options, seed, seed2 = rest
        classes = cast(true_classes, int64)
        return CandidateSampler(*function(classes, num_true, num_sampled, unique, *options, _own_seed(seed, seed2)))

    return run


def _adapt_drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(logits: Any, count: Any, seed: int, seed2: int, dtype: Any) -> Any:
        return function(logits, count, dtype, _own_seed(seed, seed2))

    return run


def _adapt_hits(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(true_classes: Any, sampled: Any, num_true: int, seed: int, seed2: int) -> ComputeAccidentalHits:
        return ComputeAccidentalHits(*function(true_classes, sampled, num_true, _own_seed(seed, seed2)))

    return run


ROWS: list[tuple[str, str, Any]] = [
    (
        "AllCandidateSampler",
        "true_classes, num_true, num_sampled, unique, seed=0, seed2=0",
        _sampler(candidates.all_candidate_sampler),
    ),
    (
        "ComputeAccidentalHits",
        "true_classes, sampled_candidates, num_true, seed=0, seed2=0",
        ("nn.compute_accidental_hits", _adapt_hits),
    ),
    (
        "FixedUnigramCandidateSampler",
        "true_classes, num_true, num_sampled, unique, range_max, vocab_file='', distortion=1, num_reserved_ids=0, "
        "num_shards=1, shard=0, unigrams=[], seed=0, seed2=0",
        _sampler(candidates.fixed_unigram_candidate_sampler),
    ),
    (
        "LearnedUnigramCandidateSampler",
        "true_classes, num_true, num_sampled, unique, range_max, seed=0, seed2=0",
        _sampler(candidates.learned_unigram_candidate_sampler),
    ),
    (
        "LogUniformCandidateSampler",
        "true_classes, num_true, num_sampled, unique, range_max, seed=0, seed2=0",
        _sampler(candidates.log_uniform_candidate_sampler),
    ),
    (
        "ThreadUnsafeUnigramCandidateSampler",
        "true_classes, num_true, num_sampled, unique, range_max, seed=0, seed2=0",
        _sampler(candidates.learned_unigram_candidate_sampler),
    ),
    (
        "UniformCandidateSampler",
        "true_classes, num_true, num_sampled, unique, range_max, seed=0, seed2=0",
        _sampler(candidates.uniform_candidate_sampler),
    ),
    ("ParameterizedTruncatedNormal", "shape, means, stdevs, minvals, maxvals, seed=0, seed2=0", _bounded_normal),
    ("RandomGamma", "shape, alpha, seed=0, seed2=0", _gamma),
    ("RandomGammaGrad", "alpha, sample", primitives.RandomGammaGrad),
    ("RandomIndexShuffle", "index, seed, max_index, rounds=4", "random_index_shuffle"),
    (
        "RandomPoisson",
        "shape, rate, seed=0, seed2=0",
        lambda shape, rate, seed, seed2: _poisson(shape, rate, seed, seed2, convert_to_tensor(rate).dtype),
    ),
    ("RandomPoissonV2", "shape, rate, seed=0, seed2=0, dtype='int64'", _poisson),
    ("RandomShuffle", "value, seed=0, seed2=0", _shuffle),
    (
        "RandomStandardNormal",
        "shape, dtype, seed=0, seed2=0",
        _drawn("RandomStandardNormal", primitives.StatelessRandomNormalV2),
    ),
    ("RandomUniform", "shape, dtype, seed=0, seed2=0", _drawn("RandomUniform", primitives.StatelessRandomUniformV2)),
    ("RandomUniformInt", "shape, minval, maxval, seed=0, seed2=0", _uniform_int),
    (
        "TruncatedNormal",
        "shape, dtype, seed=0, seed2=0",
        _drawn("TruncatedNormal", primitives.StatelessTruncatedNormalV2),
    ),
    (
        "StatelessParameterizedTruncatedNormal",
        "shape, seed, means, stddevs, minvals, maxvals",
        "random.stateless_parameterized_truncated_normal",
    ),
    ("StatelessRandomBinomial", "shape, seed, counts, probs, dtype='int64'", "random.stateless_binomial"),
    ("StatelessMultinomial", "logits, num_samples, seed, output_dtype='int64'", "random.stateless_categorical"),
    ("Multinomial", "logits, num_samples, seed=0, seed2=0, output_dtype='int64'", ("random.categorical", _adapt_drawn)),
    ("StatelessRandomGammaV2", "shape, seed, alpha", _gamma_from_seed),
    ("StatelessRandomGammaV3", "shape, key, counter, alg, alpha", _from_key(primitives.StatelessRandomGammaV3)),
    ("StatelessRandomGetAlg", "", lambda: convert_to_tensor(PHILOX, int32)),
    ("StatelessRandomGetKeyCounter", "seed", lambda seed: StatelessRandomGetKeyCounter(*key_counter_of(seed)[:2])),
    ("StatelessRandomGetKeyCounterAlg", "seed", _key_counter_alg),
    ("StatelessRandomNormal", "shape, seed, dtype='float32'", _from_seed(primitives.StatelessRandomNormalV2)),
    (
        "StatelessRandomNormalV2",
        "shape, key, counter, alg, dtype='float32'",
        _from_key(primitives.StatelessRandomNormalV2),
    ),
    ("StatelessRandomPoisson", "shape, seed, lam, dtype", "random.stateless_poisson"),
    ("StatelessRandomUniform", "shape, seed, dtype='float32'", _from_seed(primitives.StatelessRandomUniformV2)),
    (
        "StatelessRandomUniformFullInt",
        "shape, seed, dtype='uint64'",
        _from_seed(primitives.StatelessRandomUniformFullIntV2),
    ),
    (
        "StatelessRandomUniformFullIntV2",
        "shape, key, counter, alg, dtype='uint64'",
        _from_key(primitives.StatelessRandomUniformFullIntV2),
    ),
    ("StatelessRandomUniformInt", "shape, seed, minval, maxval", _uniform_int_from_seed),
    (
        "StatelessRandomUniformIntV2",
        "shape, key, counter, alg, minval, maxval",
        _from_key(primitives.StatelessRandomUniformIntV2),
    ),
    (
        "StatelessRandomUniformV2",
        "shape, key, counter, alg, dtype='float32'",
        _from_key(primitives.StatelessRandomUniformV2),
    ),
    (
        "StatelessShuffle",
        "value, key, counter, alg",
        lambda value, key, counter, alg: primitives.PhiloxShuffle(value, key, counter),
    ),
    ("StatelessTruncatedNormal", "shape, seed, dtype='float32'", _from_seed(primitives.StatelessTruncatedNormalV2)),
    (
        "StatelessTruncatedNormalV2",
        "shape, key, counter, alg, dtype='float32'",
        _from_key(primitives.StatelessTruncatedNormalV2),
    ),
]
