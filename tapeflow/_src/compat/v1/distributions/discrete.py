"""`tf.compat.v1.distributions` of events and of their counts."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.distributions.distribution import (
    Distribution,
    RegisterKL,
    covariance_of_shares,
    floats,
    require,
    require_integers,
)
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import after
from tapeflow._src.types.dtypes import as_dtype, int32
from tapeflow._src.types.tensor_shape import TensorShape


def _checked_probs(probs: Any, several: bool) -> Any:
    probs = require(probs, "assert_non_negative", message="probs has components less than 0.")
    if not several:
        ones = find_public("ones_like")(probs)
        return require(probs, "assert_less_equal", ones, message="probs has components greater than 1.")
    total = _sum(probs)
    ones = find_public("ones_like")(total)
    return after(find_public("compat.v1.debugging.assert_near")(total, ones, message="probs does not sum to 1."), probs)


def logits_and_probs(logits: Any, probs: Any, validate_args: bool, several: bool) -> tuple[Any, Any]:
    """Both forms of the parameter, of which one is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Must pass probs or logits, but not both.")
    if logits is not None:
        (logits,) = floats(logits)
        return logits, find_public("nn.softmax")(logits) if several else primitives.Sigmoid(logits)
    (probs,) = floats(probs)
    if validate_args:
        probs = _checked_probs(probs, several)
    return primitives.Log(probs) if several else primitives.Log(probs) - primitives.Log1p(-probs), probs


def _sum(x: Any) -> Any:
    return find_public("reduce_sum")(x, -1)


@public("compat.v1.distributions.Bernoulli")
class Bernoulli(Distribution):
    """1 with probability `probs`, else 0.

    >>> tf.compat.v1.distributions.Bernoulli(probs=0.25).prob(1)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.25>
    """

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Bernoulli",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.logits, self.probs = logits_and_probs(logits, probs, validate_args, False)
        self._set_up(arguments, [self.logits], as_dtype(dtype))

    def _sample(self, size: Any, seed: int | None) -> Any:
        uniform = find_public("random.uniform")(size, dtype=self.probs.dtype, seed=seed)
        return cast(primitives.Less(uniform, self.probs), self.dtype)

    def _checked_value(self, x: Any) -> Any:
        x = require_integers(x, "Elements")
        return require(x, "assert_less_equal", find_public("ones_like")(x), message="Elements cannot exceed 1.")

    def _log_prob(self, x: Any) -> Any:
        shape = find_public("shape")(x + self.logits)
        x, logits = primitives.BroadcastTo(x, shape), primitives.BroadcastTo(self.logits, shape)
        return -find_public("nn.sigmoid_cross_entropy_with_logits")(labels=x, logits=logits)

    def _mean(self) -> Any:
        return self.probs

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Any:
        return cast(primitives.Greater(self.probs, 0.5), self.dtype)

    def _entropy(self) -> Any:
        softplus = find_public("math.softplus")
        return -self.logits * (primitives.Sigmoid(self.logits) - 1.0) + softplus(-self.logits)


@RegisterKL(Bernoulli, Bernoulli)
def _bernoullis(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Any:
    softplus = find_public("math.softplus")
    ones = softplus(-b.logits) - softplus(-a.logits)
    zeros = softplus(b.logits) - softplus(a.logits)
    return primitives.Sigmoid(a.logits) * ones + primitives.Sigmoid(-a.logits) * zeros


@public("compat.v1.distributions.Categorical")
class Categorical(Distribution):
    """One of several classes; the last dimension of the parameter has a number for each.

    >>> tf.compat.v1.distributions.Categorical(probs=[0.25, 0.75]).prob(1)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.75>
    """

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Categorical",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.logits, self.probs = logits_and_probs(logits, probs, validate_args, True)
        self._set_up(arguments, [self.logits], as_dtype(dtype))

    batch_shape = property(lambda self: self.logits.shape[:-1], doc="The shape of the parameters but for the classes.")
    event_size = property(lambda self: find_public("shape")(self.logits)[-1], doc="The number of classes.")

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The same as `batch_shape`, as a tensor."""
        return find_public("shape")(self.logits)[:-1]

    def _sample(self, size: Any, seed: int | None) -> Any:
        rank = self.logits.shape.rank
        rows = primitives.Reshape(self.logits, [-1, self.event_size])
        count = find_public("reduce_prod")(size[: find_public("shape")(size)[0] - (rank - 1)])
        drawn = find_public("random.categorical")(rows, count, dtype="int32", seed=seed)
        return cast(primitives.Reshape(primitives.Transpose(drawn, [1, 0]), size), self.dtype)

    def _value(self, value: Any) -> Any:
        x = convert_to_tensor(value)
        return cast(require_integers(cast(x, self.probs.dtype), "k") if self.validate_args else x, int32)

    def _log_prob(self, x: Any) -> Any:
        shape = find_public("broadcast_dynamic_shape")(find_public("shape")(x), self.batch_shape_tensor())
        x = primitives.BroadcastTo(x, shape)
        logits = primitives.BroadcastTo(self.logits, find_public("concat")([shape, [self.event_size]], 0))
        return -find_public("nn.sparse_softmax_cross_entropy_with_logits")(labels=x, logits=logits)

    def _cdf(self, x: Any) -> Any:
        classes = find_public("range")(self.event_size)
        below = cast(primitives.Less(classes, primitives.ExpandDims(x, -1)), self.probs.dtype)
        return _sum(below * self.probs)

    def _mode(self) -> Any:
        return cast(find_public("argmax")(self.logits, -1), self.dtype)

    def _entropy(self) -> Any:
        log_probs = find_public("nn.log_softmax")(self.logits)
        return -_sum(primitives.Exp(log_probs) * log_probs)


@RegisterKL(Categorical, Categorical)
def _categoricals(a: Categorical, b: Categorical, name: str | None = None) -> Any:
    log_a, log_b = find_public("nn.log_softmax")(a.logits), find_public("nn.log_softmax")(b.logits)
    return _sum(primitives.Exp(log_a) * (log_a - log_b))


class _Counts(Distribution):
    """How often each class comes in `total_count` draws."""

    _event_rank = 1
    total_count: Any

    def _log_ways(self, counts: Any) -> Any:
        """The logarithm of the number of orders in which these counts can come."""
        log_gamma = find_public("math.lgamma")
        return log_gamma(self.total_count + 1.0) - _sum(log_gamma(counts + 1.0))

    def _checked_value(self, x: Any) -> Any:
        x = require_integers(x, "counts")
        total = _sum(x)
        wanted = self.total_count + find_public("zeros_like")(total)
        message = "counts last-dimension must sum to `self.total_count`"
        return after(
            find_public("compat.v1.debugging.assert_equal")(
                wanted, total + find_public("zeros_like")(wanted), message=message
            ),
            x,
        )

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the parameters but for the classes."""
        shape: TensorShape = find_public("broadcast_static_shape")(self._tensors[0].shape[:-1], self.total_count.shape)
        return shape

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The same as `batch_shape`, as a tensor."""
        shape = find_public("shape")
        return find_public("broadcast_dynamic_shape")(shape(self._tensors[0])[:-1], shape(self.total_count))

    def _draw_counts(self, logits: Any, size: Any, seed: int | None) -> Any:
        """Counts of classes for each row of `logits`, whose shape is `size` and the classes."""
        most = cast(find_public("reduce_max")(self.total_count), int32)
        classes = find_public("shape")(logits)[-1]
        rows = primitives.Reshape(logits, [-1, classes])
        drawn = find_public("random.categorical")(rows, most, dtype="int32", seed=seed)
        wanted = primitives.Reshape(primitives.BroadcastTo(self.total_count, size), [-1, 1])
        counted = primitives.Less(cast(find_public("range")(most), self.dtype), wanted)
        hits = find_public("one_hot")(drawn, classes, dtype=self.dtype) * cast(counted, self.dtype)[..., None]
        whole = find_public("concat")([size, [classes]], 0)
        return primitives.Reshape(find_public("reduce_sum")(hits, 1), whole)


@public("compat.v1.distributions.Multinomial")
class Multinomial(_Counts):
    """How often each class comes in `total_count` draws of known probabilities.

    >>> tf.compat.v1.distributions.Multinomial(4., probs=[0.25, 0.75]).mean()
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 3.], dtype=float32)>
    """

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Multinomial",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.logits, self.probs = logits_and_probs(logits, probs, validate_args, True)
        self.total_count = cast(convert_to_tensor(total_count), self.logits.dtype)
        if validate_args:
            self.total_count = require_integers(self.total_count, "total_count")
        self._set_up(arguments, [self.logits])

    def _sample(self, size: Any, seed: int | None) -> Any:
        whole = find_public("concat")([size, self.event_shape_tensor()], 0)
        return self._draw_counts(primitives.BroadcastTo(self.logits, whole), size, seed)

    def _log_prob(self, counts: Any) -> Any:
        return _sum(counts * find_public("nn.log_softmax")(self.logits)) + self._log_ways(counts)

    def _mean(self) -> Any:
        return self.probs * self.total_count[..., None]

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self.probs)

    def _covariance(self) -> Any:
        return self.total_count[..., None, None] * covariance_of_shares(self.probs)


@public("compat.v1.distributions.DirichletMultinomial")
class DirichletMultinomial(_Counts):
    """How often each class comes in `total_count` draws whose probabilities are a draw of a Dirichlet distribution.

    >>> tf.compat.v1.distributions.DirichletMultinomial(4., [1., 3.]).mean()
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 3.], dtype=float32)>
    """

    def __init__(
        self, total_count: Any, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        (self.concentration,) = floats(concentration)
        self.total_count = cast(convert_to_tensor(total_count), self.concentration.dtype)
        if validate_args:
            self.concentration = require(
                self.concentration, "assert_positive", message="Concentration parameter must be positive."
            )
            self.total_count = require_integers(self.total_count, "total_count")
        self.total_concentration = _sum(self.concentration)
        self._set_up(arguments, [self.concentration])

    def _sample(self, size: Any, seed: int | None) -> Any:
        whole = find_public("concat")([size, self.event_shape_tensor()], 0)
        alpha = primitives.BroadcastTo(self.concentration, whole)
        drawn = find_public("random.gamma")([], alpha, dtype=self.dtype, seed=seed)
        return self._draw_counts(primitives.Log(drawn), size, None if seed is None else seed + 1)

    def _log_prob(self, counts: Any) -> Any:
        beta = find_public("math.lbeta")
        return beta(self.concentration + counts) - beta(self.concentration) + self._log_ways(counts)

    def _mean(self) -> Any:
        return self.total_count[..., None] * self.concentration / self.total_concentration[..., None]

    def _variance(self) -> Any:
        share = self.concentration / self.total_concentration[..., None]
        return self._spread()[..., None] * share * (1.0 - share)

    def _covariance(self) -> Any:
        shares = self.concentration / self.total_concentration[..., None]
        return self._spread()[..., None, None] * covariance_of_shares(shares)

    def _spread(self) -> Any:
        both, count = self.total_concentration, self.total_count
        return count * (count + both) / (1.0 + both)
