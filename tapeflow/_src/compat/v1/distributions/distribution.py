"""What the distributions of `tf.compat.v1.distributions` share: shapes, samples, what follows from the density, KL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.graph.eager_switch import name_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.passing import after
from tapeflow._src.types.tensor_shape import TensorShape


@public("compat.v1.distributions.ReparameterizationType")
class ReparameterizationType:
    """Whether gradients flow from samples to the parameters of a distribution.

    >>> tf.compat.v1.distributions.FULLY_REPARAMETERIZED
    <Reparameterization Type: FULLY_REPARAMETERIZED>
    """

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")
public("compat.v1.distributions.FULLY_REPARAMETERIZED")(FULLY_REPARAMETERIZED)
public("compat.v1.distributions.NOT_REPARAMETERIZED")(NOT_REPARAMETERIZED)


def floats(*values: Any) -> list[Any]:
    """Parameters as tensors of one floating dtype."""
    tensors = [x for x in values if find_public("is_tensor")(x)]
    dtype = tensors[0].dtype if tensors else None
    found = [convert_to_tensor(x, dtype) for x in values]
    return found if found[0].dtype.is_floating else [find_public("cast")(x, "float32") for x in found]


def covariance_of_shares(shares: Any) -> Any:
    """diag(p) - p p^T: the covariance of one draw of a class with these probabilities."""
    products = primitives.Mul(primitives.ExpandDims(shares, -1), primitives.ExpandDims(shares, -2))
    return find_public("linalg.diag")(shares) - products


def require(x: Any, assertion: str, *others: Any, message: str = "") -> Any:
    """`x`, once an assertion of `tf.compat.v1.debugging` holds for it."""
    return after(find_public(f"compat.v1.debugging.{assertion}")(x, *others, message=message), x)


def require_integers(x: Any, what: str) -> Any:
    """`x`, once its elements are not negative and have no fraction."""
    x = require(x, "assert_non_negative", message=f"{what} must be non-negative.")
    return require(x, "assert_equal", primitives.Floor(x), message=f"{what} cannot contain fractional components.")


@public("compat.v1.distributions.Distribution")
class Distribution:
    """A distribution: samples, densities and moments. Subclasses give the formulas.

    >>> issubclass(tf.compat.v1.distributions.Normal, tf.compat.v1.distributions.Distribution)
    True
    """

    reparameterization_type = NOT_REPARAMETERIZED
    _event_rank = 0

    def _set_up(self, parameters: dict[str, Any], tensors: list[Any], dtype: Any = None) -> None:
        """Keeps the arguments of the constructor; all `tensors` broadcast to the shape of a batch."""
        self._parameters = {key: value for key, value in parameters.items() if key not in ("self", "__class__")}
        self._tensors = tensors
        self._dtype = dtype or tensors[0].dtype
        name = self._parameters.get("name") or type(self).__name__
        self._name = name if name.endswith("/") else f"{name}/"

    @contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        """Operations inside are named by the distribution and the method."""
        with name_scope(self._name), name_scope(name):
            yield

    name = property(lambda self: self._name, doc="The name that was given.")
    dtype = property(lambda self: self._dtype, doc="The dtype of samples.")
    parameters = property(lambda self: dict(self._parameters), doc="The arguments of the constructor.")
    allow_nan_stats = property(lambda self: self._parameters.get("allow_nan_stats", True))
    validate_args = property(lambda self: self._parameters.get("validate_args", False))

    def copy(self, **override_parameters_kwargs: Any) -> Distribution:
        """The same distribution but for some arguments."""
        return type(self)(**{**self._parameters, **override_parameters_kwargs})

    def __repr__(self) -> str:
        return (
            f"<tf.distributions.{type(self).__name__} '{self._name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={self.dtype.name}>"
        )

    # ---- shapes

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the parameters: so many distributions in one."""
        shape = TensorShape([])
        for tensor in self._tensors:
            known = tensor.shape[: tensor.shape.rank - self._event_rank] if self._event_rank else tensor.shape
            shape = find_public("broadcast_static_shape")(shape, known)
        return shape

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one draw of one distribution."""
        return self._tensors[0].shape[-self._event_rank :] if self._event_rank else TensorShape([])

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The same as `batch_shape`, as a tensor."""
        shape = convert_to_tensor([], "int32")
        for tensor in self._tensors:
            own = find_public("shape")(tensor)
            own = own[: tensor.shape.rank - self._event_rank] if self._event_rank else own
            shape = find_public("broadcast_dynamic_shape")(shape, own)
        return shape

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """The same as `event_shape`, as a tensor."""
        if not self._event_rank:
            return convert_to_tensor([], "int32")
        return find_public("shape")(self._tensors[0])[-self._event_rank :]

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        """Whether a draw is a number."""
        return convert_to_tensor(self.event_shape.rank == 0)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        """Whether there is one distribution."""
        return convert_to_tensor(self.batch_shape.rank == 0)

    # ---- samples and densities

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Draws: `sample_shape` of them for each distribution."""
        with self._scope(name):
            shape = primitives.Reshape(convert_to_tensor(sample_shape, "int32"), [-1])
            size = find_public("concat")([shape, self.batch_shape_tensor()], 0)
            drawn = self._sample(size, seed)
            known = find_public("get_static_value")(shape)
            if known is not None:
                drawn.set_shape(TensorShape(list(known)).concatenate(self.batch_shape).concatenate(self.event_shape))
            return drawn

    def _value(self, value: Any) -> Any:
        x = find_public("cast")(convert_to_tensor(value), self._tensors[0].dtype)
        return self._checked_value(x) if self.validate_args else x

    def _checked_value(self, x: Any) -> Any:
        """A value, once it is one that can be drawn; every number is, unless a subclass says otherwise."""
        return x

    def _where_above(self, value: Any, parameter: Any, bound: float, message: str) -> Any:
        """A statistic that is defined where `parameter > bound`; elsewhere NaN, or an error if NaN is not allowed."""
        if not self.allow_nan_stats:
            limit = find_public("cast")(bound, self._tensors[0].dtype)
            return after(find_public("compat.v1.debugging.assert_less")(limit, parameter, message=message), value)
        blank = find_public("fill")(find_public("shape")(value), find_public("cast")(math.nan, value.dtype))
        return primitives.SelectV2(parameter > bound, value, blank)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density, or of the probability, of a value."""
        with self._scope(name):
            return self._log_prob(self._value(value))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density, or the probability, of a value."""
        with self._scope(name):
            return primitives.Exp(self._log_prob(self._value(value)))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of values up to this one."""
        with self._scope(name):
            return self._cdf(self._value(value))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of `cdf`."""
        with self._scope(name):
            return self._log_cdf(self._value(value))

    def _log_cdf(self, x: Any) -> Any:
        return primitives.Log(self._cdf(x))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of greater values."""
        with self._scope(name):
            return self._survival(self._value(value))

    def _survival(self, x: Any) -> Any:
        return 1.0 - self._cdf(x)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of `survival_function`."""
        with self._scope(name):
            return self._log_survival(self._value(value))

    def _log_survival(self, x: Any) -> Any:
        return primitives.Log(self._survival(x))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The value up to which a probability lies."""
        return self._quantile(find_public("cast")(convert_to_tensor(value), self._tensors[0].dtype))

    # ---- moments

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        return self._everywhere(self._mean())

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        return self._everywhere(self._variance())

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        return primitives.Sqrt(self.variance())

    def covariance(self, name: str = "covariance") -> Any:
        """The covariance of the elements of a draw that is a vector."""
        return self._covariance()

    def mode(self, name: str = "mode") -> Any:
        """The most probable value."""
        return self._everywhere(self._mode())

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy, in nats."""
        with self._scope(name):
            return self._everywhere(self._entropy()) if not self._event_rank else self._entropy()

    def _everywhere(self, x: Any) -> Any:
        """The number for each distribution of the batch."""
        if self._event_rank or x.shape == self.batch_shape:
            return x
        return primitives.BroadcastTo(x, self.batch_shape_tensor())

    def _missing(self, what: str) -> Any:
        raise NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    def _sample(self, size: Any, seed: int | None) -> Any:
        return self._missing("sample")

    def _log_prob(self, x: Any) -> Any:
        return self._missing("log_prob")

    def _cdf(self, x: Any) -> Any:
        return self._missing("cdf")

    def _quantile(self, p: Any) -> Any:
        return self._missing("quantile")

    def _mean(self) -> Any:
        return self._missing("mean")

    def _variance(self) -> Any:
        return self._missing("variance")

    def _covariance(self) -> Any:
        return self._missing("covariance")

    def _mode(self) -> Any:
        return self._missing("mode")

    def _entropy(self) -> Any:
        return self._missing("entropy")

    # ---- two distributions

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """What it costs to take `other` for this one, in nats."""
        return kl_divergence(self, other, name=name)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """The mean of -log_prob of `other` under this one."""
        return self.entropy() + self.kl_divergence(other)


divergence_by_classes: dict[tuple[type, type], Callable[..., Any]] = {}


@public("compat.v1.distributions.RegisterKL")
class RegisterKL:
    """Gives the formula of `kl_divergence` for two classes of distributions.

    >>> class Own(tf.compat.v1.distributions.Distribution): pass
    >>> @tf.compat.v1.distributions.RegisterKL(Own, Own)
    ... def divergence(a, b, name=None):
    ...     return 0.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the function."""
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in divergence_by_classes:
            a, b = self._key
            raise ValueError(f"KL({a.__name__} || {b.__name__}) has already been registered")
        divergence_by_classes[self._key] = kl_fn
        return kl_fn


@public("compat.v1.distributions.kl_divergence")
def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """What it costs to take the second distribution for the first, in nats.

    >>> normal = tf.compat.v1.distributions.Normal
    >>> tf.compat.v1.distributions.kl_divergence(normal(0., 1.), normal(1., 1.))
    <tf.Tensor: shape=(), dtype=float32, numpy=0.5>
    """
    for a in type(distribution_a).__mro__:
        for b in type(distribution_b).__mro__:
            if (a, b) in divergence_by_classes:
                found = divergence_by_classes[a, b](distribution_a, distribution_b, name=name)
                if allow_nan_stats:
                    return found
                message = f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values"
                some = find_public("math.is_nan")(found)
                none = find_public("zeros_like")(some)
                return after(find_public("compat.v1.debugging.assert_equal")(some, none, message=message), found)
    raise NotImplementedError(
        f"No KL(distribution_a || distribution_b) registered for distribution_a type {type(distribution_a).__name__} "
        f"and distribution_b type {type(distribution_b).__name__}"
    )
