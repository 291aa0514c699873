"""`tf.compat.v1.distributions` of real numbers."""

from __future__ import annotations

import math
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    RegisterKL,
    covariance_of_shares,
    floats,
    require,
)
from tapeflow._src.compat.v1.distributions.special_functions import log_cdf_laplace, log_ndtr
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.passing import after

_CONCENTRATION = "Concentration parameter must be positive."


def _math(name: str, *args: Any, **kwargs: Any) -> Any:
    return find_public(f"math.{name}")(*args, **kwargs)


def _sum(x: Any) -> Any:
    return find_public("reduce_sum")(x, -1)


def _log_gamma(x: Any) -> Any:
    return _math("lgamma", x)


@public("compat.v1.distributions.Normal")
class Normal(Distribution):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> tf.compat.v1.distributions.Normal(0., 1.).log_prob(0.)
    <tf.Tensor: shape=(), dtype=float32, numpy=-0.9189385175704956>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ) -> None:
        arguments = dict(locals())
        self.loc, self.scale = floats(loc, scale)
        if validate_args:
            self.scale = require(self.scale, "assert_positive")
        self._set_up(arguments, [self.loc, self.scale])

    def _sample(self, size: Any, seed: int | None) -> Any:
        return self.loc + self.scale * find_public("random.normal")(size, dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Any) -> Tensor:
        return -0.5 * primitives.Square((x - self.loc) / self.scale) - (
            0.5 * math.log(2 * math.pi) + primitives.Log(self.scale)
        )

    def _cdf(self, x: Any) -> Any:
        return 0.5 * _math("erfc", (self.loc - x) / (self.scale * math.sqrt(2.0)))

    def _log_cdf(self, x: Any) -> Any:
        return log_ndtr((x - self.loc) / self.scale)

    def _survival(self, x: Any) -> Any:
        return 0.5 * _math("erfc", (x - self.loc) / (self.scale * math.sqrt(2.0)))

    def _log_survival(self, x: Any) -> Any:
        return log_ndtr((self.loc - x) / self.scale)

    def _quantile(self, p: Any) -> Any:
        return self.loc + self.scale * _math("ndtri", p)

    def _mean(self) -> Any:
        return self.loc

    _mode = _mean

    def _variance(self) -> Any:
        return primitives.Square(self.scale)

    def _entropy(self) -> Any:
        return 0.5 * math.log(2 * math.pi * math.e) + primitives.Log(self.scale)


@RegisterKL(Normal, Normal)
def _normals(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    ratio = primitives.Square(a.scale / b.scale)
    return primitives.Square((a.loc - b.loc) / b.scale) / 2.0 + 0.5 * (ratio - 1.0 - primitives.Log(ratio))


@public("compat.v1.distributions.Laplace")
class Laplace(Distribution):
    """The distribution with density exp(-|x - loc| / scale) / (2 scale).

    >>> tf.compat.v1.distributions.Laplace(0., 0.5).prob(0.)
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ) -> None:
        arguments = dict(locals())
        self.loc, self.scale = floats(loc, scale)
        if validate_args:
            self.scale = require(self.scale, "assert_positive")
        self._set_up(arguments, [self.loc, self.scale])

    def _sample(self, size: Any, seed: int | None) -> Any:
        u = find_public("random.uniform")(size, -1.0 + 1e-7, 1.0, self.dtype, seed)
        return self.loc - self.scale * primitives.Sign(u) * primitives.Log1p(-primitives.Abs(u))

    def _log_prob(self, x: Any) -> Tensor:
        return -primitives.Abs((x - self.loc) / self.scale) - math.log(2.0) - primitives.Log(self.scale)

    def _cdf(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        tail = 0.5 * primitives.Exp(-primitives.Abs(z))
        return primitives.SelectV2(z < 0, tail, 1.0 - tail)

    def _log_cdf(self, x: Any) -> Any:
        return log_cdf_laplace((x - self.loc) / self.scale)

    def _survival(self, x: Any) -> Any:
        return self._cdf(2.0 * self.loc - x)

    def _log_survival(self, x: Any) -> Any:
        return log_cdf_laplace((self.loc - x) / self.scale)

    def _mean(self) -> Any:
        return self.loc

    _mode = _mean

    def _variance(self) -> Any:
        return 2.0 * primitives.Square(self.scale)

    def _entropy(self) -> Any:
        return math.log(2.0) + 1.0 + primitives.Log(self.scale)


@public("compat.v1.distributions.Uniform")
class Uniform(Distribution):
    """Numbers from `low` up to `high`, all alike.

    >>> tf.compat.v1.distributions.Uniform(0., 4.).prob(1.)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.25>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, low: Any = 0.0, high: Any = 1.0, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.low, self.high = floats(low, high)
        if validate_args:
            self.low = require(self.low, "assert_less", self.high, message="uniform not defined when low >= high.")
        self._set_up(arguments, [self.low, self.high])

    def range(self, name: str = "range") -> Any:
        """high - low."""
        return self.high - self.low

    def _sample(self, size: Any, seed: int | None) -> Any:
        return self.low + self.range() * find_public("random.uniform")(size, dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Any) -> Any:
        return primitives.Log(self.prob(x))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density of a value."""
        x = self._value(value)
        outside = primitives.LogicalOr(primitives.Less(x, self.low), primitives.GreaterEqual(x, self.high))
        density = primitives.BroadcastTo(1.0 / self.range(), find_public("shape")(x + self.low + self.high))
        density = primitives.SelectV2(outside, find_public("zeros_like")(density), density)
        return primitives.SelectV2(_math("is_nan", x), x, density)

    def _cdf(self, x: Any) -> Any:
        return find_public("clip_by_value")((x - self.low) / self.range(), 0.0, 1.0)

    def _quantile(self, p: Any) -> Any:
        return self.low + self.range() * p

    def _mean(self) -> Any:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Any:
        return primitives.Square(self.range()) / 12.0

    def _entropy(self) -> Any:
        return primitives.Log(self.range())


@public("compat.v1.distributions.Gamma")
class Gamma(Distribution):
    """The gamma distribution with shape `concentration` and `rate`.

    >>> tf.compat.v1.distributions.Gamma(2., 4.).mean()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.concentration, self.rate = floats(concentration, rate)
        if validate_args:
            self.concentration = require(self.concentration, "assert_positive")
            self.rate = require(self.rate, "assert_positive")
        self._set_up(arguments, [self.concentration, self.rate])

    def _sample(self, size: Any, seed: int | None) -> Any:
        count = find_public("shape")(size)[0] - find_public("shape")(self.batch_shape_tensor())[0]
        shape = [self.concentration + find_public("zeros_like")(self.rate), self.rate]
        return find_public("random.gamma")(size[:count], shape[0], shape[1], self.dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        a, b = self.concentration, self.rate
        return _math("xlogy", a - 1.0, x) - b * x - (_log_gamma(a) - a * primitives.Log(b))

    def _cdf(self, x: Any) -> Any:
        return _math("igamma", self.concentration, self.rate * x)

    def _mean(self) -> Any:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self.concentration / primitives.Square(self.rate)

    def _mode(self) -> Any:
        mode = (self.concentration - 1.0) / self.rate
        return self._where_above(mode, self.concentration, 1.0, "mode not defined when any concentration <= 1")

    def _checked_value(self, x: Any) -> Any:
        return require(x, "assert_positive")

    def _entropy(self) -> Any:
        a = self.concentration
        return a - primitives.Log(self.rate) + _log_gamma(a) + (1.0 - a) * _math("digamma", a)


@RegisterKL(Gamma, Gamma)
def _gammas(a: Gamma, b: Gamma, name: str | None = None) -> Any:
    return (
        (a.concentration - b.concentration) * _math("digamma", a.concentration)
        + _log_gamma(b.concentration)
        - _log_gamma(a.concentration)
        + b.concentration * primitives.Log(a.rate)
        - b.concentration * primitives.Log(b.rate)
        + a.concentration * (b.rate / a.rate - 1.0)
    )


@public("compat.v1.distributions.Exponential")
class Exponential(Gamma):
    """The distribution with density rate * exp(-rate * x).

    >>> tf.compat.v1.distributions.Exponential(2.).mean()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        arguments = dict(locals())
        (self.rate,) = floats(rate)
        if validate_args:
            self.rate = require(self.rate, "assert_positive")
        self.concentration = find_public("ones_like")(self.rate)
        self._set_up(arguments, [self.concentration, self.rate])

    def _sample(self, size: Any, seed: int | None) -> Any:
        return -primitives.Log1p(-find_public("random.uniform")(size, dtype=self.dtype, seed=seed)) / self.rate

    def _cdf(self, x: Any) -> Any:
        return -primitives.Expm1(self._log_survival(x))

    def _log_cdf(self, x: Any) -> Any:
        tail = self._log_survival(x)  # below log(2) `expm1` is exact, above it `log1p`
        right = primitives.Log1p(-primitives.Exp(tail))
        return primitives.SelectV2(tail > -math.log(2.0), primitives.Log(-primitives.Expm1(tail)), right)

    def _survival(self, x: Any) -> Any:
        return primitives.Exp(self._log_survival(x))

    def _log_survival(self, x: Any) -> Any:
        return -self.rate * primitives.Maximum(x, 0)


@public("compat.v1.distributions.Beta")
class Beta(Distribution):
    """The beta distribution on [0, 1].

    >>> tf.compat.v1.distributions.Beta(1., 3.).mean()
    <tf.Tensor: shape=(), dtype=float32, numpy=0.25>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Beta",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.concentration1, self.concentration0 = floats(concentration1, concentration0)
        if validate_args:
            self.concentration1 = require(self.concentration1, "assert_positive", message=_CONCENTRATION)
            self.concentration0 = require(self.concentration0, "assert_positive", message=_CONCENTRATION)
        self.total_concentration = self.concentration1 + self.concentration0
        self._set_up(arguments, [self.concentration1, self.concentration0])

    def _sample(self, size: Any, seed: int | None) -> Any:
        ones = find_public("ones")(size, self.dtype)
        other = None if seed is None else seed + 1
        first = find_public("random.gamma")([], self.concentration1 * ones, dtype=self.dtype, seed=seed)
        second = find_public("random.gamma")([], self.concentration0 * ones, dtype=self.dtype, seed=other)
        return first / (first + second)

    def _log_normalization(self) -> Any:
        return _log_gamma(self.concentration1) + _log_gamma(self.concentration0) - _log_gamma(self.total_concentration)

    def _log_prob(self, x: Any) -> Any:
        parts = _math("xlogy", self.concentration1 - 1.0, x) + _math("xlog1py", self.concentration0 - 1.0, -x)
        return parts - self._log_normalization()

    def _cdf(self, x: Any) -> Any:
        return _math("betainc", self.concentration1, self.concentration0, x)

    def _mean(self) -> Any:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Any:
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        mode = self._where_above(mode, self.concentration1, 1.0, "Mode undefined for concentration1 <= 1.")
        return self._where_above(mode, self.concentration0, 1.0, "Mode undefined for concentration0 <= 1.")

    def _checked_value(self, x: Any) -> Any:
        x = require(x, "assert_positive", message="sample must be positive")
        return require(x, "assert_less", find_public("ones_like")(x), message="sample must be less than `1`.")

    def _entropy(self) -> Any:
        a, b, both = self.concentration1, self.concentration0, self.total_concentration
        digamma = find_public("math.digamma")
        return (
            self._log_normalization() - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (both - 2.0) * digamma(both)
        )


@RegisterKL(Beta, Beta)
def _betas(a: Beta, b: Beta, name: str | None = None) -> Any:
    digamma = find_public("math.digamma")
    return (
        b._log_normalization()
        - a._log_normalization()
        - digamma(a.concentration1) * (b.concentration1 - a.concentration1)
        - digamma(a.concentration0) * (b.concentration0 - a.concentration0)
        + digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
    )


@public("compat.v1.distributions.StudentT")
class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom.

    >>> tf.compat.v1.distributions.StudentT(3., 1., 2.).mean()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self, df: Any, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:  # fmt: skip
        arguments = dict(locals())
        self.df, self.loc, self.scale = floats(df, loc, scale)
        if validate_args:
            self.df = require(self.df, "assert_positive")
        self._set_up(arguments, [self.df, self.loc, self.scale])

    def _sample(self, size: Any, seed: int | None) -> Any:
        normal = find_public("random.normal")(size, dtype=self.dtype, seed=seed)
        other = None if seed is None else seed + 1
        ones = find_public("ones")(size, self.dtype)
        chi = find_public("random.gamma")([], 0.5 * self.df * ones, 0.5, dtype=self.dtype, seed=other)
        return self.loc + self.scale * normal / primitives.Sqrt(chi / self.df)

    def _log_normalization(self) -> Any:
        half = 0.5 * self.df
        return (
            primitives.Log(primitives.Abs(self.scale)) + 0.5 * primitives.Log(self.df) + 0.5 * math.log(math.pi)
            + _log_gamma(half) - _log_gamma(half + 0.5)
        )  # fmt: skip

    def _log_prob(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * primitives.Log1p(primitives.Square(z) / self.df) - self._log_normalization()

    def _cdf(self, x: Any) -> Any:
        z = (x - self.loc) / primitives.Abs(self.scale)
        tail = 0.5 * _math("betainc", 0.5 * self.df, 0.5 + 0.0 * self.df, self.df / (primitives.Square(z) + self.df))
        return primitives.SelectV2(z < 0.0, tail, 1.0 - tail)

    def _mean(self) -> Any:
        mean = self.loc + find_public("zeros_like")(self.df + self.scale)
        return self._where_above(mean, self.df, 1.0, "mean not defined for components of df <= 1")

    def _mode(self) -> Any:
        return self.loc

    def _variance(self) -> Any:
        wide = primitives.Square(self.scale) * self.df / (self.df - 2.0)
        blank = find_public("shape")(wide)
        limited = primitives.SelectV2(self.df > 2.0, wide, find_public("fill")(blank, math.inf))
        return self._where_above(limited, self.df, 1.0, "variance not defined for components of df <= 1")

    def _entropy(self) -> Any:
        half, digamma = 0.5 * self.df, find_public("math.digamma")
        digamma_term = (half + 0.5) * (digamma(half + 0.5) - digamma(half))
        beta = _log_gamma(half) + _log_gamma(half * 0.0 + 0.5) - _log_gamma(half + 0.5)
        return primitives.Log(primitives.Abs(self.scale)) + 0.5 * primitives.Log(self.df) + beta + digamma_term


@public("compat.v1.distributions.Dirichlet")
class Dirichlet(Distribution):
    """The Dirichlet distribution: positive numbers whose sum is 1.

    >>> tf.compat.v1.distributions.Dirichlet([1., 3.]).mean()
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.25, 0.75], dtype=float32)>
    """

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_rank = 1

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ) -> None:
        arguments = dict(locals())
        (self.concentration,) = floats(concentration)
        if validate_args:
            self.concentration = require(self.concentration, "assert_positive", message=_CONCENTRATION)
        self.total_concentration = _sum(self.concentration)
        self._set_up(arguments, [self.concentration])

    def _sample(self, size: Any, seed: int | None) -> Any:
        whole = find_public("concat")([size, self.event_shape_tensor()], 0)
        alpha = self.concentration * find_public("ones")(whole, self.dtype)
        drawn = find_public("random.gamma")([], alpha, dtype=self.dtype, seed=seed)
        return drawn / find_public("reduce_sum")(drawn, -1, keepdims=True)

    def _log_prob(self, x: Any) -> Any:
        return _sum(_math("xlogy", self.concentration - 1.0, x)) - _math("lbeta", self.concentration)

    def _mean(self) -> Any:
        return self.concentration / self.total_concentration[..., None]

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration[..., None])

    def _mode(self) -> Any:
        size = find_public("cast")(find_public("shape")(self.concentration)[-1], self.dtype)
        mode = (self.concentration - 1.0) / (self.total_concentration[..., None] - size)
        least = find_public("reduce_min")(self.concentration, -1, keepdims=True)
        return self._where_above(mode, least, 1.0, "Mode undefined when any concentration <= 1")

    def _covariance(self) -> Any:
        return covariance_of_shares(self._mean()) / (1.0 + self.total_concentration[..., None, None])

    def _checked_value(self, x: Any) -> Any:
        x = require(x, "assert_positive", message="samples must be positive")
        total = _sum(x)
        one = find_public("ones_like")(total)
        message = "sample last-dimension must sum to `1`."
        return after(find_public("compat.v1.debugging.assert_near")(total, one, message=message), x)

    def _entropy(self) -> Any:
        a, both, digamma = self.concentration, self.total_concentration, find_public("math.digamma")
        size = find_public("cast")(find_public("shape")(a)[-1], self.dtype)
        return _math("lbeta", a) + digamma(both) * (both - size) - _sum((a - 1.0) * digamma(a))


@RegisterKL(Dirichlet, Dirichlet)
def _dirichlets(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Any:
    digamma = find_public("math.digamma")
    digamma_term = digamma(a.concentration) - digamma(a.total_concentration)[..., None]
    change = _sum((a.concentration - b.concentration) * digamma_term)
    return change - _math("lbeta", a.concentration) + _math("lbeta", b.concentration)
