"""Every primitive against NumPy or SciPy, in every dtype and layout; special values, integers, rounding."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name
from tests.ops import sample_makers, samples
from tests.ops.counterparts import adjoint_of, others, without_counterpart
from tests.ops.elementwise_counterparts import Array, binary, reduction, unary
from tests.ops.sample_makers import Maker

# ------------------------------------------------------------------------------------------------------- comparing

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON |= {"complex64": EPSILON["float32"], "complex128": EPSILON["float64"]}
HALVES = ("float16", "bfloat16")
WIDER = {"float64": np.longdouble, "complex64": np.complex128, "complex128": np.clongdouble}
WIDER |= dict.fromkeys(("float16", "bfloat16", "float32"), np.float64)
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38, "float32": 3.4028235e38, "float64": 1.797e308}
LARGEST |= {"complex64": LARGEST["float32"], "complex128": LARGEST["float64"]}

# Units in the last place that an elementwise result may be away from the true value, where it is not 4.
ulps_by_name = {"Erf": 2, "Erfc": 4, "GeluErf": 8, "GeluTanh": 16, "Dawsn": 128, "Polygamma": 512}
ulps_by_name |= dict.fromkeys(["Zeta", "Igamma", "Igammac"], 1024)
COMPLEX_ULPS = 16

# A difference of close numbers is as exact as these numbers are.
cancelling = {name for name in facts_by_name if name.endswith("Grad")} | {"GeluTanh", "GeluErf", "SigmoidCrossEntropy"}
cancelling |= {"BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "Digamma", "Expint", "Lgamma", "Ndtri"}  # near a root


def ulps_of(name: str) -> float:
    return ulps_by_name.get(name, getattr(counterpart_by_name[name], "ulps", 4))


def widened(value: Any) -> Any:
    """Float arrays in the wider type that the counterparts compute in; everything else as it is."""
    if isinstance(value, list):
        return [widened(v) for v in value]
    if tf.is_tensor(value):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.name in WIDER:
        return value.astype(WIDER[value.dtype.name])
    return value


def assert_near(got: Array, expected: Any, ulps: float, what: str, scale: Any = 0) -> None:
    """Equal but for rounding: `ulps` units of the dtype, or, for the half types, one rounding of a float32 result."""
    __tracebackhide__ = True
    expected = np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if got.dtype.kind not in "fcV" and got.dtype.name not in HALVES:
        wrong = got != expected
    else:
        wide = got.astype(WIDER[got.dtype.name])
        size = np.maximum(np.where(np.isfinite(np.abs(expected)), np.abs(expected), 1), scale)
        unit = EPSILON[got.dtype.name]
        tiny = 2.0**-24 if got.dtype.name == "float16" else 1e-37 if got.dtype.itemsize <= 4 else 1e-300
        allowed = (unit * 0.5 + 8 * ulps * EPSILON["float32"]) if got.dtype.name in HALVES else ulps * unit
        with np.errstate(all="ignore"):
            near = np.abs(wide - expected) <= allowed * size + tiny
        overflow = np.abs(expected) >= LARGEST.get(got.dtype.name, np.inf) * (1 - unit)
        same = (wide == expected) | (np.isnan(wide) & np.isnan(expected)) | (overflow & ~np.isfinite(wide))
        wrong = ~(near | same)
    if wrong.any():
        i = tuple(map(int, np.argwhere(wrong)[0]))
        pytest.fail(f"{what} at {i}: got {got[i]!r}, expected {expected[i]!r} ({wrong.sum()} wrong)", pytrace=False)


def scale_of(name: str, operands: list[Array]) -> Any:
    return sum(np.abs(widened(x)) for x in operands) if name in cancelling else 0


def evaluate(name: str, *args: Any, **kwargs: Any) -> list[Array]:
    return [np.asarray(y) for y in tf.nest.flatten(getattr(primitives, name)(*args, **kwargs))]


# -------------------------------------------------------------------------------------------------- every primitive

counterpart_by_name = unary | binary | reduction | others
ELEMENTWISE = [n for n in facts_by_name if n in unary or n in binary]


@pytest.mark.parametrize("name", facts_by_name)
def test_every_primitive_has_a_counterpart_or_a_reason(name):
    known = (name in counterpart_by_name) + (name in without_counterpart)
    assert known == 1, (
        f"The primitive {name} must be compared with NumPy or SciPy: add it to a dict of counterparts in "
        f"tests/ops/counterparts.py, or to without_counterpart with the reason."
    )


def domains_of(name: str) -> list[sample_makers.Domain]:
    return list(samples.binary_domain(name)) if name in binary else [samples.unary_domain(name)]


PAIRS = [((), (7,)), ((7,), ()), ((3, 1), (1, 5)), ((2, 3, 5), (3, 1)), ((5,), (2, 3, 5)), ((0, 3), (1, 1))]


def layouts(name: str, dtype: str) -> Iterator[tuple[str, list[Array]]]:
    """Operands in all the forms that a kernel may treat apart."""
    m, domains = Maker(0, dtype), domains_of(name)
    for shape in [(), (0,), (2, 0, 3), (1,), (3,), (7,), (17,), (33,), (5, 13)]:
        yield f"shape {shape}", [m(*shape, within=domain) for domain in domains]
    yield "strided", [m(6, 10, within=domain)[::2, ::-3].T for domain in domains]
    if len(domains) == 2:
        for pair in PAIRS:
            yield f"broadcast {pair}", [m(*shape, within=domain) for shape, domain in zip(pair, domains)]
    if dtype in ("float32", "float64", "int32"):
        yield "large", [m(140_001, within=domain) for domain in domains]
        if len(domains) == 2:
            yield "large broadcast", [m(401, 1, within=domains[0]), m(403, within=domains[1])]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    for dtype in samples.dtypes_of(name):
        if dtype == "string":
            continue
        ulps = max(ulps_of(name), COMPLEX_ULPS if dtype in samples.COMPLEXES else 0)
        for layout, operands in layouts(name, dtype):
            with np.errstate(all="ignore"):
                expected = counterpart_by_name[name](*map(widened, operands))
            (got,) = evaluate(name, *operands)
            assert_near(got, expected, ulps, f"{name} {dtype} {layout}", scale_of(name, operands))


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if n in unary and n not in samples.domain_by_unary])
def test_elementwise_over_many_magnitudes(name):
    """From 1e-6 to 1e4: reductions of the argument, cancellation near zero, overflow; SciPy is exact up to 5 or so."""
    largest = 5 if hasattr(unary[name], "ulps") else 1e4
    for dtype in ("float32", "float64"):
        if dtype in samples.dtypes_of(name):
            sizes = np.geomspace(1e-6, largest, 2001)
            x = np.concatenate([-sizes, sizes]).astype(dtype)
            with np.errstate(all="ignore"):
                expected = counterpart_by_name[name](widened(x))
            (got,) = evaluate(name, x)
            assert_near(got, expected, ulps_of(name), f"{name} {dtype}", scale_of(name, [x]))


REST = [n for n in facts_by_name if n in reduction or n in others]


@pytest.mark.parametrize("name", REST)
def test_others(name):
    for dtype in samples.dtypes_of(name):
        for seed in range(8):
            for builder in samples.builders(name):
                call = builder(Maker(seed, dtype))
                if np.asarray(tf.nest.flatten(list(call.args))[0]).dtype.kind in "OS":
                    continue
                compare(name, dtype, call)


def compare(name: str, dtype: str, call: sample_makers.Call) -> None:
    args, kwargs = [widened(a) for a in call.args], {k: widened(v) for k, v in call.kwargs.items()}
    if name in others and name not in KEEPS_PRECISION:  # SciPy and LAPACK know no wider type
        args = [narrowed(a) for a in args]
    with np.errstate(all="ignore"):
        expected = counterpart_by_name[name](*args, **kwargs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    for got, wanted in zip(evaluate(name, *call.args, **call.kwargs), expected):
        wanted = np.asarray(wanted)
        what = f"{name} {dtype} {[a.shape if isinstance(a, np.ndarray) else a for a in call.args]} {call.kwargs}"
        if got.dtype.kind == "c":
            wanted = wanted + 0j
        if got.dtype.kind in "fcV" or got.dtype.name in HALVES:
            # Sums: the error is measured against the largest number that takes part.
            parts = [wanted, *(a for a in tf.nest.flatten([args, list(kwargs.values())]) if is_float(a))]
            largest = max(float(np.max(np.abs(a), initial=0, where=np.isfinite(a))) for a in parts)
            assert got.shape == wanted.shape, f"{what}: shape {got.shape}, expected {wanted.shape}"
            unit = EPSILON[got.dtype.name]
            room = tolerance_by_name.get(name, 16) * (EPSILON["float32"] if got.dtype.name in HALVES else unit)
            room += unit / 2 if got.dtype.name in HALVES else 0
            np.testing.assert_allclose(got.astype(wanted.dtype), wanted, 0, room * (largest + 1e-30), err_msg=what)
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=what)


def is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def narrowed(value: Any) -> Any:
    if isinstance(value, list):
        return [narrowed(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.char in "gG":
        return value.astype(np.float64 if value.dtype.char == "g" else np.complex128)
    return value


# Counterparts that are plain NumPy, so that float64 is compared with a wider result.
KEEPS_PRECISION = {"AddN", "MatMul", "Cumsum", "Cumprod", "Conv", "AvgPool", "SoftmaxGrad"}
# In units of the dtype's epsilon, relative to the largest element.
tolerance_by_name = {"MatrixLogarithm": 1024, "Betainc": 512} | dict.fromkeys(
    ["Eig", "MatrixExponential", "MatrixInverse", "MatrixPseudoInverse", "MatrixSolve", "MatrixSquareRoot"], 256
)


# --------------------------------------------------------------------------------------- large enough for threads

large_by_name: dict[str, Callable[[Maker], sample_makers.Call]] = {
    "BroadcastTo": lambda m: sample_makers.call(m(257, 1, 3), [257, 301, 3]),
    "ConcatV2": lambda m: sample_makers.call([m(301, 203), m(301, 77)], 1),
    "Conv": lambda m: sample_makers.call(m(3, 29, 31, 17), m(3, 3, 17, 19), [1, 1], "SAME", [], [1, 1]),
    "Cumsum": lambda m: sample_makers.call(m(201, 503), 1),
    "Cumprod": lambda m: sample_makers.call(m(203, 501, within=[(0.9, 1.1)]), 1),
    "EuclideanNorm": lambda m: sample_makers.call(m(30_011, 7), 0, False),
    "GatherV2": lambda m: sample_makers.call(m(503, 67), m.index(503, 2001)),
    "LogSoftmax": lambda m: sample_makers.call(m(301, 401)),
    "MatMul": lambda m: sample_makers.call(m(301, 257), m(257, 283)),
    "Max": lambda m: sample_makers.call(m(301, 503), 1, False),
    "MaxPool": lambda m: sample_makers.call(m.distinct(4, 63, 65, 17), [3, 3], [2, 2], "SAME", [], [1, 1]),
    "Mean": lambda m: sample_makers.call(m(301, 503), 0, True),
    "Moments": lambda m: sample_makers.call(m(30_011, 7), [0]),
    "Normalize": lambda m: sample_makers.call(
        m(301, 503), m(301, 1), m(301, 1, within=[(0.5, 3)]), m(503), m(503), 0.1
    ),
    "NormalizeGrad": lambda m: sample_makers.call(
        m(301, 503), m(301, 1), m(301, 1, within=[(0.5, 3)]), m(503), m(301, 503), 0.1
    ),
    "Pack": lambda m: sample_makers.call([m(301, 203), m(301, 203)], -1),
    "Prod": lambda m: sample_makers.call(m(301, 17, 29), [0, 2], False),
    "ReverseV2": lambda m: sample_makers.call(m(301, 503), [0, 1]),
    "RollAxis": lambda m: sample_makers.call(m(301, 503), m.choose((1, -200)), m.choose((0, 1))),
    "SelectV2": lambda m: sample_makers.call(m.flags(301, 503), m(301, 503), m(503)),
    "Softmax": lambda m: sample_makers.call(m(301, 401)),
    "Sum": lambda m: sample_makers.call(*m.choose(((m(151_003), None, False), (m(30_011, 5), [0], False)))),
    "Transpose": lambda m: sample_makers.call(m(61, 53, 47), [2, 0, 1]),
}


@pytest.mark.parametrize("name", large_by_name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large(name, dtype):
    tolerance = tolerance_by_name.get(name, 16)
    tolerance_by_name[name] = 256
    try:
        compare(name, dtype, large_by_name[name](Maker(0, dtype)))
    finally:
        tolerance_by_name[name] = tolerance


# ---------------------------------------------------------------------------------- NaN, infinities and signed zeros

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
any_zero = {"Maximum", "Minimum", "FloorMod", "Softsign"}  # which of two zeros is not said
elsewhere = {n for n in ELEMENTWISE if hasattr(counterpart_by_name[n], "ulps")}  # limits and poles are conventions
elsewhere |= {"GeluErf", "GeluErfGrad", "GeluTanh", "GeluTanhGrad", "EluGrad", "SeluGrad"}  # no limit at infinity
WITH_SPECIAL = [n for n in ELEMENTWISE if "float64" in samples.dtypes_of(n) and n not in elsewhere]


@pytest.mark.parametrize("name", WITH_SPECIAL)
def test_special_values(name):
    operands = [SPECIAL] if name in unary else [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
    for dtype in ("float32", "float64"):
        values = [a.astype(dtype) for a in operands]
        with np.errstate(all="ignore"):
            expected = np.asarray(counterpart_by_name[name](*values))
        (got,) = evaluate(name, *values)
        if got.dtype.kind == "b":
            np.testing.assert_array_equal(got, expected, err_msg=name)
            continue
        what = f"{name} {dtype} of {list(zip(*(v.tolist() for v in values)))}"
        np.testing.assert_allclose(got, expected.astype(dtype), rtol=1e-5, err_msg=what)
        if name not in any_zero:
            zero = (got == 0) & (expected == 0)
            np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(expected)[zero], f"sign of zero: {what}")


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Prod", "Mean"])
@pytest.mark.parametrize("place", [0, 3, 70])
def test_reductions_keep_nan(name, place):
    for dtype in samples.FLOATS:
        x = np.ones(71).astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
        x[place] = np.nan
        assert np.isnan(evaluate(name, x)[0].astype(float)), f"{name} {dtype}"


# ---------------------------------------------------------------------------------------------------------- integers

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    edges = np.array([low, low + 1, 0, 1, high - 1, high], dtype)
    a, b = (t.ravel() for t in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        for name in ("AddV2", "Sub", "Mul", "SquaredDifference", "Maximum", "Minimum"):
            np.testing.assert_array_equal(evaluate(name, a, b)[0], binary[name](a, b), name)
        for name in ("Neg", "Square", "Abs", "Sign"):
            np.testing.assert_array_equal(evaluate(name, edges)[0], unary[name](edges).astype(dtype), name)
        a, b = a[b != 0], b[b != 0]
        for name in ("FloorDiv", "FloorMod", "TruncateMod"):
            np.testing.assert_array_equal(evaluate(name, a, b)[0], binary[name](a, b), name)
        for name in ("Sum", "Prod"):
            np.testing.assert_array_equal(evaluate(name, edges)[0], reduction[name](edges), name)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
def test_division_by_zero_is_an_error(name, dtype):
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        evaluate(name, np.array([1], dtype), np.array([0], dtype))


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if not dtype.endswith("64")])
def test_a_mean_of_integers_does_not_overflow(dtype):
    high = np.iinfo(dtype).max
    np.testing.assert_array_equal(evaluate("Mean", np.array([high, high, high - 3], dtype))[0], high - 1)


# ------------------------------------------------------------------------------------------------ one by one


def test_next_after():
    x = np.array([1.0, -1.0, 0.0, 5.0, np.inf, np.nan], np.float32)
    for direction in (10.0, -10.0, 5.0):
        other = np.full_like(x, direction)
        np.testing.assert_array_equal(evaluate("NextAfter", x, other)[0], np.nextafter(x, other))


@pytest.mark.parametrize("source", samples.dtypes_of("Cast"))
def test_casts(source):
    m = Maker(1, source)
    x = m(41)
    for target in samples.dtypes_of("Cast"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if source in samples.FLOATS + samples.COMPLEXES and target.startswith("uint"):
                x = np.abs(x).astype(x.dtype)
            expected = x.astype(ml_dtypes.bfloat16 if target == "bfloat16" else target)
        got = np.asarray(primitives.Cast(x, getattr(tf, target)))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected, f"{source} to {target}")


@pytest.mark.parametrize("dtype", HALVES)
def test_floats_are_rounded_to_nearest_even(dtype):
    """Half types from float32: all ties, overflow and subnormals as ml_dtypes and NumPy round them."""
    target = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    bits = np.concatenate([bits, bits & 0xFFFFF000 | 0x1000, bits & 0xFFFF0000 | 0x8000])
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    got = np.asarray(primitives.Cast(x, getattr(tf, dtype)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(got.view(np.uint16)[number], expected.view(np.uint16)[number])


def _multiplied(lu: Array) -> Array:
    return (np.tril(lu, -1) + np.eye(lu.shape[-1])) @ np.triu(lu)


# Factors, multiplied out again: the factors themselves are unique up to signs.
product_by_name: dict[str, Callable[..., Array]] = {
    "Lu": lambda x, lu, p: _multiplied(lu) - np.take_along_axis(x, p[..., None], -2),
    "Qr": lambda x, q, r: q @ r - x,
    "SelfAdjointEigV2": lambda x, e, v: (v * e[..., None, :]) @ adjoint_of(v) - x,
    "Svd": lambda x, s, u, v: (u * s[..., None, :]) @ adjoint_of(v) - x,
}


@pytest.mark.parametrize("name", [name for name in product_by_name if name in facts_by_name] or [None])
def test_factors(name):
    if name is None:
        return
    for dtype in ("float32", "float64", "complex64", "complex128"):
        call = samples.builders(name)[0](Maker(0, dtype))
        error = product_by_name[name](call.args[0], *evaluate(name, *call.args, **call.kwargs))
        assert np.abs(error).max() < 100 * EPSILON[dtype], f"{name} {dtype}"
