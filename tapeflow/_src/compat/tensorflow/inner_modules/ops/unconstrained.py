"""Distributions of TensorFlow 1 whose parameters may be any number: a function makes positive ones of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.distributions.distribution import Distribution
from tapeflow._src.namespace import find_public

_softplus = find_public("nn.softplus")


def _whole_size(x: Any) -> Any:
    return find_public("floor")(find_public("abs")(x))


def _unconstrained(parent: str, name: str, **function_by_parameter: Callable[[Any], Any]) -> type[Distribution]:
    """The class of a distribution whose parameters go through functions first."""
    base: type[Distribution] = find_public(f"compat.v1.distributions.{parent}")
    signature = inspect.signature(base)

    def __init__(self: Distribution, *args: Any, **kwargs: Any) -> None:  # noqa: N807  of the class below
        given = signature.bind(*args, **{"name": name, **kwargs})
        given.apply_defaults()
        arguments = dict(given.arguments)
        changed = {key: function(arguments[key]) for key, function in function_by_parameter.items()}
        base.__init__(self, **{**arguments, **changed})
        self._parameters = arguments

    doc = f"`{parent}` with {', '.join(function_by_parameter)} of any sign."
    return type(name, (base,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


names_by_path: dict[str, dict[str, Any]] = {
    f"python.ops.distributions.{module}": {name: _unconstrained(parent, name, **functions)}
    for module, parent, name, functions in (
        (
            "beta",
            "Beta",
            "BetaWithSoftplusConcentration",
            dict.fromkeys(["concentration1", "concentration0"], _softplus),
        ),
        ("exponential", "Exponential", "ExponentialWithSoftplusRate", {"rate": _softplus}),
        ("gamma", "Gamma", "GammaWithSoftplusConcentrationRate", {"concentration": _softplus, "rate": _softplus}),
        ("laplace", "Laplace", "LaplaceWithSoftplusScale", {"scale": _softplus}),
        ("normal", "Normal", "NormalWithSoftplusScale", {"scale": _softplus}),
        ("student_t", "StudentT", "StudentTWithAbsDfSoftplusScale", {"df": _whole_size, "scale": _softplus}),
    )
}
