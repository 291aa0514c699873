"""Candidate samplers: classes drawn for sampled losses, and how often each class is expected among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.random.seeds import draw, memory
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError

_UNIFORM, _LOG_UNIFORM, _ALIAS, _SUMS = range(4)


class Candidates(NamedTuple):
    """The classes that were drawn, and how often the true ones and they are expected."""

    sampled_candidates: Any
    true_expected_count: Any
    sampled_expected_count: Any


def _classes(true_classes: Any, num_true: int) -> Any:
    classes = convert_to_tensor(true_classes, dtype_hint=int64)
    if classes.dtype != int64:
        raise InvalidArgumentError.of(f"true_classes must be of dtype int64; got {classes.dtype.name}")
    if classes.shape.rank != 2:
        raise InvalidArgumentError.of(f"true_classes must be a matrix; got shape {classes.shape}")
    if classes.shape[1] != num_true:
        message = f"true_classes must have num_true columns, expected: {classes.shape[1]} was: {num_true}"
        raise InvalidArgumentError.of(message)
    return classes


def _sample(
    operation: str,
    kind: int,
    classes: Any,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None,
    weights: np.ndarray | None = None,
) -> Candidates:
    attributes = (operation, classes.shape[1], num_sampled, bool(unique), range_max)
    key, counter = draw(attributes, seed, 512 * num_sampled)
    table = np.zeros([0], np.float32) if weights is None else weights.astype(np.float32)
    return Candidates(
        *primitives.PhiloxCandidates(
            classes, key, counter, convert_to_tensor(table), kind, num_sampled, bool(unique), range_max
        )
    )


def _draw_uniform(classes: Any, num_sampled: int, unique: bool, range_max: int, seed: int | None) -> Candidates:
    return _sample("UniformCandidateSampler", _UNIFORM, classes, num_sampled, unique, range_max, seed)


def _draw_log_uniform(classes: Any, num_sampled: int, unique: bool, range_max: int, seed: int | None) -> Candidates:
    return _sample("LogUniformCandidateSampler", _LOG_UNIFORM, classes, num_sampled, unique, range_max, seed)


def _draw_learned(classes: Any, num_sampled: int, unique: bool, range_max: int, seed: int | None) -> Candidates:
    attributes = ("LearnedUnigramCandidateSampler", classes.shape[1], num_sampled, bool(unique), range_max)
    counts = memory(attributes, seed, lambda: np.ones([range_max], np.float32))
    result = _sample(attributes[0], _SUMS, classes, num_sampled, unique, range_max, seed, counts)
    np.add.at(counts, classes.numpy().reshape(-1), 1)
    return result


def _sampler(draw_classes: Callable[..., Candidates], doc: str, *paths: str) -> Callable[..., Candidates]:
    @public_as(doc, *paths)
    def function(
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
        name: str | None = None,
    ) -> Candidates:
        classes = _classes(true_classes, num_true)
        if _core.is_symbolic(classes):
            inside = primitives.LogicalAnd(classes >= 0, classes < range_max)
            text = f"`true_candidate` out of range [0, {range_max})"
            classes = _core.required(classes, primitives.All(inside), text)
        elif (numbers := classes.numpy()).size and not 0 <= numbers.min() <= numbers.max() < range_max:
            raise InvalidArgumentError.of(
                f"`true_candidate` out of range [0, {range_max}), received {numbers.min()} to {numbers.max()}"
            )
        return draw_classes(classes, num_sampled, unique, range_max, seed)

    return function


uniform_candidate_sampler = _sampler(
    _draw_uniform,
    """Classes of 0 to `range_max` - 1, all equally likely; also the expected counts of the true and the drawn ones.

    >>> tf.random.uniform_candidate_sampler([[0]], 1, 2, False, 2)[1]
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """,
    "random.uniform_candidate_sampler",
    "compat.v1.random.uniform_candidate_sampler",
    "compat.v1.nn.uniform_candidate_sampler",
)
log_uniform_candidate_sampler = _sampler(
    _draw_log_uniform,
    """Classes with probability log(1 + 1 / (class + 1)) / log(1 + range_max), as frequencies of words fall.

    >>> tf.random.log_uniform_candidate_sampler([[0]], 1, 1, True, 1)[0]
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([0])>
    """,
    "random.log_uniform_candidate_sampler",
    "compat.v1.random.log_uniform_candidate_sampler",
    "compat.v1.nn.log_uniform_candidate_sampler",
)
learned_unigram_candidate_sampler = _sampler(
    _draw_learned,
    """Classes by how often they were true ones in the calls before, plus one.

    >>> tf.random.learned_unigram_candidate_sampler([[0]], 1, 2, False, 2)[1]
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """,
    "random.learned_unigram_candidate_sampler",
    "nn.learned_unigram_candidate_sampler",
    "compat.v1.random.learned_unigram_candidate_sampler",
    "compat.v1.nn.learned_unigram_candidate_sampler",
)


@public(
    "random.fixed_unigram_candidate_sampler", "nn.fixed_unigram_candidate_sampler",
    "compat.v1.random.fixed_unigram_candidate_sampler", "compat.v1.nn.fixed_unigram_candidate_sampler",
)  # fmt: skip
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes by the given weights, or by the last column of `vocab_file`, each to the power `distortion`.

    >>> tf.random.fixed_unigram_candidate_sampler([[1]], 1, 2, False, 2, unigrams=[0., 3.])[0]
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 1])>
    """
    classes = _classes(true_classes, num_true)
    if bool(vocab_file) == bool(len(unigrams)):
        message = "Must provide either vocab_file or unigrams, but not both."
        raise InvalidArgumentError.of(message)
    if vocab_file:
        with open(vocab_file) as file:
            lines = file.read().splitlines()
        unigrams = [float(line.rsplit(",", 1)[-1]) for line in lines]
    weights = np.power(np.asarray(unigrams, np.float32), float(np.float32(distortion)), dtype=np.float64)
    weights = np.concatenate([np.zeros(num_reserved_ids), weights])[shard::num_shards]
    return _sample("FixedUnigramCandidateSampler", _ALIAS, classes, num_sampled, unique, range_max, seed, weights)


@public(
    "random.all_candidate_sampler", "nn.all_candidate_sampler",
    "compat.v1.random.all_candidate_sampler", "compat.v1.nn.all_candidate_sampler",
)  # fmt: skip
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """All classes, each expected once: for tests of sampled losses.

    >>> tf.random.all_candidate_sampler([[0]], 1, 2, True)[0]
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>
    """
    classes = _classes(true_classes, num_true)
    sampled = convert_to_tensor(np.arange(num_sampled, dtype=np.int64))
    return Candidates(
        sampled,
        convert_to_tensor(np.ones(classes.shape.as_list(), np.float32)),
        convert_to_tensor(np.ones([num_sampled], np.float32)),
    )
