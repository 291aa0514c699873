"""Sample inputs for every primitive, and what tests must know of it: where it is smooth, which inputs have no gradient.

The families unary, binary and reduction get their inputs from their domain; every other primitive has a row. A row is
a list of builders; a builder takes a `Maker` and returns the arguments of one call. Arrays of floats among them are
what gradients are asked for; a float that is a constant is given as a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name
from tapeflow._src.types.dtypes import dtype_by_enum
from tests.ops.sample_makers import AROUND_ZERO, POSITIVE, Builder, Call, Domain, Maker, call
from tests.ops.sample_rows import builders_by_name

# ---------------------------------------------------------------------------------------------------------- families

domain_by_unary: dict[str, Domain] = {
    "Acos": [(-0.9, 0.9)],
    "Acosh": [(1.2, 4)],
    "Asin": [(-0.9, 0.9)],
    "Atanh": [(-0.9, 0.9)],
    "BesselK0": POSITIVE,
    "BesselK0e": POSITIVE,
    "BesselK1": POSITIVE,
    "BesselK1e": POSITIVE,
    "BesselY0": POSITIVE,
    "BesselY1": POSITIVE,
    "Digamma": POSITIVE,
    "Erfinv": [(-0.9, 0.9)],
    "Expint": POSITIVE,
    "Lgamma": POSITIVE,
    "Log": POSITIVE,
    "Log1p": [(-0.8, 3)],
    "Ndtri": [(0.15, 0.85)],
    "Relu6": [(-2, -0.2), (0.2, 5.8), (6.2, 8)],
    "Rsqrt": POSITIVE,
    "Spence": [(0.1, 0.9), (1.1, 3)],
    "Sqrt": POSITIVE,
    "Tan": [(-1.2, 1.2)],
}

_orders: Domain = [(1, 1), (2, 2), (3, 3)]
_interlaced: tuple[Domain, Domain] = ([(-2, -1), (0.2, 1)], [(-0.8, -0.2), (1.2, 2)])  # never equal
domain_by_binary: dict[str, tuple[Domain, Domain]] = {
    "FloorMod": ([(5.2, 5.8), (-5.8, -5.2)], [(2, 2.5)]),  # the quotient does not cross an integer
    "Igamma": ([(0.5, 4)], [(0.5, 5)]),
    "IgammaGradA": ([(0.5, 4)], [(0.5, 5)]),
    "IgammaGradAA": ([(0.5, 4)], [(0.5, 5)]),
    "Igammac": ([(0.5, 4)], [(0.5, 5)]),
    "LeftShift": (POSITIVE, POSITIVE),
    "Maximum": _interlaced,
    "Minimum": _interlaced,
    "Polygamma": (_orders, [(0.5, 4)]),
    "Pow": (POSITIVE, POSITIVE),
    "Relu6Grad": (AROUND_ZERO, domain_by_unary["Relu6"]),
    "RightShift": (POSITIVE, POSITIVE),
    "TruncateMod": ([(5.2, 5.8), (-5.8, -5.2)], [(2, 2.5)]),
    "Xlog1py": (AROUND_ZERO, [(-0.8, 3)]),
    "Xlogy": (AROUND_ZERO, POSITIVE),
    "Zeta": ([(1.5, 4)], [(0.5, 3)]),
}


def unary_domain(name: str) -> Domain:
    return domain_by_unary.get(name, AROUND_ZERO)


def binary_domain(name: str) -> tuple[Domain, Domain]:
    return domain_by_binary.get(name, (AROUND_ZERO, AROUND_ZERO))


def _unary(name: str) -> list[Builder]:
    return [lambda m: call(m(*m.shape(), within=unary_domain(name)))]


def _binary(name: str) -> list[Builder]:
    left, right = binary_domain(name)

    def build(m: Maker) -> Call:
        first, second = m.shape_pair()
        return call(m(*first, within=left), m(*second, within=right))

    return [build]


def _reduction(name: str) -> list[Builder]:
    def build(m: Maker) -> Call:
        shape = m.shape()
        axes = [None, *range(-len(shape), len(shape)), *([[0, -1]] if len(shape) > 1 else [])]
        return call(m.distinct(*shape), m.choose(axes), m.choose((False, True)))

    return [build]


# -------------------------------------------------------------------------------------------------------------- rows


FAMILIES = {"unary": _unary, "binary": _binary, "reduction": _reduction}


def builders(name: str) -> list[Builder]:
    """The builders of a primitive's sample calls, by its family or from its row."""
    if name in builders_by_name:
        return builders_by_name[name]
    family = FAMILIES.get(facts_by_name[name]["family"])
    if family is None:
        raise LookupError(
            f"The primitive {name} has no sample inputs. Add a row to builders_by_name in tests/ops/samples.py: "
            f'"{name}": [lambda m: call(m(2, 3), ...)], where m(2, 3) makes an array that a gradient is asked for.'
        )
    return family(name)


# ------------------------------------------------------------------------------------------------------ dtypes

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
STORED = {d.name for d in dtype_by_enum.values() if d.is_quantized or d.name.startswith("float8")}  # not computed with
first_argument_decides = {"MatrixPseudoInverse"}  # a tolerance is real, whatever the matrix is

# Primitives that look at the dtype themselves, for TensorFlow's own message.
dtypes_by_name = {"All": ["bool"], "Any": ["bool"], "Complex": ["float32", "float64"]}
dtypes_by_name["MatMul"] = [*FLOATS, *COMPLEXES, "int32", "int64"]


def dtypes_of(name: str) -> list[str]:
    """The dtypes a sample of the primitive can be made in: those that all its tensor arguments allow, indices aside."""
    if name in dtypes_by_name:
        return dtypes_by_name[name]
    allowed = [[dtype for dtype in dtypes if dtype not in STORED] for dtypes in facts_by_name[name]["dtypes"]]
    data = [dtypes for dtypes in allowed if set(dtypes) - {"int32", "int64", "uint64", "bool"}] or allowed[:1]
    if name in first_argument_decides:
        return data[0]
    return [dtype for dtype in data[0] if all(dtype in dtypes for dtypes in data)]


def gradient_dtypes_of(name: str) -> list[str]:
    """float64 and complex128, as far as the primitive takes them."""
    return [dtype for dtype in ("float64", "complex128") if dtype in dtypes_of(name)]


# ------------------------------------------------------------------------------ what the gradient tests must know

# Inputs, counted among the float arrays, whose gradient is None although the value depends on them, as in TensorFlow.
undifferentiated_inputs = {
    "Betainc": {0, 1},
    "MatrixDiagPartV3": {1},
    "MatrixDiagV3": {1},
    "MatrixPseudoInverse": {1},
    "PadV2": {1},
    "Polygamma": {0},
    "Resample": {1},
    "ResampleTransposed": {1},
    "StraightThrough": {1},
    "Zeta": {0},
}

# Primitives whose rule is no derivative, on purpose. The other laws (linear, forward = reverse) hold.
rule_is_no_derivative = {
    ("Sign", "complex128"): "TensorFlow's gradient of a complex sign is 0",
    ("StraightThrough", None): "the value of y with the gradient of x",
    ("StatelessRandomGammaV3", None): "the gradient of the distribution, not of the rejection sampler",
}


def rule_is_derivative(name: str, dtype: str) -> bool:
    return (name, None) not in rule_is_no_derivative and (name, dtype) not in rule_is_no_derivative


# Primitives that are differentiated once only.
first_order_only = {
    "IgammaGradA": "Igamma has two derivatives by a",
    "IgammaGradAA": "Igamma has two derivatives by a",
    "StatelessRandomGammaV3": "RandomGammaGrad has no gradient, as in TensorFlow",
}


def _hermitian(x: Any) -> tuple[Any, ...]:
    transposed = tf.transpose(x, [*range(len(x.shape) - 2), -1, -2])
    return ((x + (primitives.Conj(transposed) if x.dtype.is_complex else transposed)) / 2,)


# What happens to the float inputs before the primitive, which sees one triangle only.
before_by_name: dict[str, Callable[..., tuple[Any, ...]]] = {"Cholesky": _hermitian, "SelfAdjointEigV2": _hermitian}


def _size(x: Any) -> Any:
    return tf.math.real(x * tf.math.conj(x))


# What happens to the results: factors are unique up to signs and phases, eigenvalues up to their order.
after_by_name: dict[str, Callable[..., list[Any]]] = {
    "Eig": lambda e: [tf.reduce_sum(e**k, -1) for k in (1, 2, 3)],
    "Qr": lambda q, r: [_size(q), _size(r)],
    "SelfAdjointEigV2": lambda e, v: [e, _size(v)],
    "Svd": lambda s, *uv: [s, *map(_size, uv)],
}
