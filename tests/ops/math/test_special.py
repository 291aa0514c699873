"""Special functions against SciPy and finite differences, at the edges of their domains too."""

import numpy as np
import pytest
import scipy.special as sp

import tapeflow as tf

m, s = tf.math, tf.math.special
inf, nan = np.inf, np.nan
rng = np.random.default_rng(0)

# name: function, SciPy's, points, relative tolerance in float64
UNARY = {
    "lgamma": (m.lgamma, sp.gammaln, np.r_[rng.uniform(-5, 30, 50), 1e-10, 1e10], 1e-13),
    "digamma": (m.digamma, sp.digamma, np.r_[rng.uniform(-5, 30, 50), 1.4616321, 1e-8, 1e12], 1e-11),
    "erfinv": (m.erfinv, sp.erfinv, np.r_[rng.uniform(-1, 1, 50), 1 - 1e-14, 1e-300], 1e-13),
    "erfcinv": (m.erfcinv, sp.erfcinv, np.r_[rng.uniform(0, 2, 50), 1e-300, 1e-20], 1e-13),
    "ndtri": (m.ndtri, sp.ndtri, np.r_[rng.uniform(0, 1, 50), 1e-300], 1e-12),
    "bessel_i0": (m.bessel_i0, sp.i0, rng.uniform(-40, 40, 60), 1e-13),
    "bessel_i0e": (m.bessel_i0e, sp.i0e, np.r_[rng.uniform(-40, 40, 60), 1e8], 1e-13),
    "bessel_i1": (m.bessel_i1, sp.i1, rng.uniform(-40, 40, 60), 1e-13),
    "bessel_i1e": (m.bessel_i1e, sp.i1e, np.r_[rng.uniform(-40, 40, 60), 1e8], 1e-13),
    "bessel_j0": (s.bessel_j0, sp.j0, rng.uniform(-30, 30, 60), 1e-11),
    "bessel_j1": (s.bessel_j1, sp.j1, rng.uniform(-30, 30, 60), 1e-11),
    "bessel_k0": (s.bessel_k0, sp.k0, rng.uniform(0.001, 30, 60), 1e-13),
    "bessel_k0e": (s.bessel_k0e, sp.k0e, rng.uniform(0.001, 300, 60), 1e-13),
    "bessel_k1": (s.bessel_k1, sp.k1, rng.uniform(0.001, 30, 60), 1e-13),
    "bessel_k1e": (s.bessel_k1e, sp.k1e, rng.uniform(0.001, 300, 60), 1e-13),
    "bessel_y0": (s.bessel_y0, sp.y0, rng.uniform(0.001, 30, 60), 1e-11),
    "bessel_y1": (s.bessel_y1, sp.y1, rng.uniform(0.001, 30, 60), 1e-11),
    "dawsn": (s.dawsn, sp.dawsn, rng.uniform(-20, 20, 80), 1e-13),
    "expint": (s.expint, sp.expi, np.r_[rng.uniform(-30, 60, 80), 0.3725, 0.3726, 700], 1e-12),
    "fresnel_sin": (s.fresnel_sin, lambda x: sp.fresnel(x)[0], rng.uniform(-8, 8, 80), 1e-12),
    "fresnel_cos": (s.fresnel_cos, lambda x: sp.fresnel(x)[1], rng.uniform(-8, 8, 80), 1e-12),
    "spence": (s.spence, sp.spence, np.r_[rng.uniform(0, 5, 60), 1e-9, 1e9, 1 + 1e-9], 1e-13),
}


@pytest.mark.parametrize("name", UNARY)
def test_values(name):
    function, reference, x, tolerance = UNARY[name]
    expected = reference(x)
    np.testing.assert_allclose(function(tf.constant(x)).numpy(), expected, rtol=tolerance, atol=1e-300)
    narrow = x.astype(np.float32)
    got = function(tf.constant(narrow))
    assert got.dtype == tf.float32
    with np.errstate(over="ignore"):
        np.testing.assert_array_max_ulp(got.numpy(), reference(narrow.astype(np.float64)).astype(np.float32), 1)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_small_floats_round_once(name, dtype):
    function = UNARY[name][0]
    x = tf.cast(tf.constant([0.25, 0.75]), dtype)
    expected = tf.cast(function(tf.cast(x, tf.float64)), dtype)
    if name != "erfcinv":  # a composition
        np.testing.assert_array_equal(tf.cast(function(x), tf.float32).numpy(), tf.cast(expected, tf.float32).numpy())


def gradients(function, x, order):
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        first = tape.gradient(y, x)
    return first.numpy() if order == 1 else outer.gradient(first, x).numpy()


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_both_orders_and_forward_mode(name):
    function = UNARY[name][0]
    x, h = np.array([0.3, 0.45, 0.8]), 1e-5
    first = gradients(function, x, 1)
    second = gradients(function, x, 2)
    numeric = (function(tf.constant(x + h)) - function(tf.constant(x - h))).numpy() / (2 * h)
    numeric_second = (gradients(function, x + h, 1) - gradients(function, x - h, 1)) / (2 * h)
    np.testing.assert_allclose(first, numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(second, numeric_second, rtol=1e-6, atol=1e-8)
    primal = tf.constant(x)
    with tf.autodiff.ForwardAccumulator(primal, tf.constant([1.0, 2.0, -1.0], tf.float64)) as accumulator:
        y = function(primal)
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), first * [1, 2, -1], rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (m.lgamma, [0, -1, inf, -inf, nan], [inf, inf, inf, inf, nan]),
        (m.digamma, [0, -1, inf, -inf, nan], [nan, nan, inf, nan, nan]),
        (m.erfinv, [-1, 1, 1.5, nan], [-inf, inf, nan, nan]),
        (m.erfcinv, [0, 2, -1, nan], [inf, -inf, nan, nan]),
        (m.ndtri, [0, 1, 2, -0.1], [-inf, inf, nan, nan]),
        (m.bessel_i0, [0, inf, -inf, nan], [1, inf, inf, nan]),
        (m.bessel_i1, [0, inf, -inf, nan], [0, inf, -inf, nan]),
        (m.bessel_i0e, [0, inf, nan], [1, 0, nan]),
        (s.bessel_k0, [0, -1, inf, nan], [inf, nan, 0, nan]),
        (s.bessel_k1e, [0, -1, inf, nan], [inf, nan, 0, nan]),
        (s.bessel_y0, [0, -1, inf, nan], [-inf, nan, 0, nan]),
        (s.dawsn, [0, inf, -inf, nan], [0, 0, 0, nan]),
        (s.expint, [0, inf, -inf, nan], [-inf, inf, 0, nan]),
        (s.fresnel_sin, [0, inf, -inf, nan], [0, 0.5, -0.5, nan]),
        (s.spence, [0, 1, -1, inf, nan], [np.pi**2 / 6, 0, nan, -inf, nan]),
    ],
)
def test_edges(function, x, expected):
    for dtype in (tf.float32, tf.float64):
        np.testing.assert_allclose(function(tf.constant(x, dtype)).numpy(), expected, rtol=1e-6)


def test_slopes_where_the_formula_divides_by_zero():
    zero = [0.0]
    assert gradients(m.bessel_i1, zero, 1) == 0.5
    assert gradients(m.bessel_i1, zero, 2) == 0
    assert gradients(m.bessel_i1e, zero, 1) == 0.5
    assert gradients(s.bessel_j1, zero, 1) == 0.5
    assert gradients(s.bessel_j1, zero, 2) == 0
    assert gradients(s.spence, [1.0], 1) == -1
    assert gradients(s.spence, [1.0], 2) == 0.5


GAMMA_POINTS = [
    (0.01, 0.02),
    (0.5, 0.3),
    (2.0, 5.0),
    (3.0, 0.1),
    (30.0, 25.0),
    (30.0, 45.0),
    (2e4, 2.01e4),
    (5e6, 4.999e6),
]


@pytest.mark.parametrize(("a", "x"), GAMMA_POINTS)
def test_incomplete_gamma(a, x):
    def value(a, x):
        return m.igamma(tf.constant(a, tf.float64), tf.constant(x, tf.float64)).numpy()

    assert value(a, x) == pytest.approx(sp.gammainc(a, x), rel=1e-12)
    upper = m.igammac(tf.constant(a, tf.float64), tf.constant(x, tf.float64)).numpy()
    assert upper == pytest.approx(sp.gammaincc(a, x), rel=1e-12)
    alpha, at = tf.constant(a, tf.float64), tf.constant(x, tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([alpha, at])
        with tf.GradientTape() as tape:
            tape.watch([alpha, at])
            y = m.igamma(alpha, at)
        by_alpha, by_x = tape.gradient(y, [alpha, at])
    h = 1e-3 * min(a, np.sqrt(a))
    assert by_alpha.numpy() == pytest.approx((value(a + h, x) - value(a - h, x)) / (2 * h), rel=1e-4, abs=1e-12)
    bend = (value(a + h, x) - 2 * value(a, x) + value(a - h, x)) / h**2
    if a < 100:
        assert outer.gradient(by_alpha, alpha).numpy() == pytest.approx(bend, rel=1e-3, abs=1e-7)
    mixed = outer.gradient(by_x, alpha).numpy()
    assert outer.gradient(by_alpha, at).numpy() == pytest.approx(mixed, rel=1e-9, abs=1e-15)


def test_incomplete_gamma_domain():
    a, x = tf.constant([1.0, 0.0, -1.0, 1.0, 2.0]), tf.constant([0.0, 1.0, 1.0, inf, -1.0])
    np.testing.assert_array_equal(m.igamma(a, x).numpy(), [0, nan, nan, 1, nan])
    np.testing.assert_array_equal(m.igammac(a, x).numpy(), [1, nan, nan, 0, nan])


@pytest.mark.parametrize("s_", [1.1, 2.0, 3.5, 20.0])
def test_zeta(s_):
    q = np.array([0.01, 0.5, 1.0, 7.3, 100.0, 1e9])
    np.testing.assert_allclose(m.zeta(tf.constant(s_, tf.float64), tf.constant(q)).numpy(), sp.zeta(s_, q), rtol=1e-13)


def test_polygamma_on_both_sides_of_zero():
    x = np.array([0.3, 2.5, 40.0])
    for n in (0, 1, 2, 5):
        got = m.polygamma(tf.constant(float(n), tf.float64), tf.constant(x)).numpy()
        np.testing.assert_allclose(got, sp.polygamma(n, x), rtol=1e-13)
    # trigamma(-x) = trigamma(x) + 1/x^2 ... by reflection: psi1(1 - x) + psi1(x) = pi^2 / sin(pi x)^2
    x = np.array([-0.3, -2.5, -1000000.25])
    one = tf.constant(1.0, tf.float64)
    total = m.polygamma(one, tf.constant(x)) + m.polygamma(one, tf.constant(1 - x))
    np.testing.assert_allclose(total.numpy(), (np.pi / np.sin(np.pi * x)) ** 2, rtol=1e-8)
    assert np.isnan(m.polygamma(0.5, 1.0).numpy())


def test_betainc_values_shapes_and_gradients():
    a, b, x = rng.uniform(0.1, 20, (3, 40))
    x = x / 20
    got = m.betainc(tf.constant(a), tf.constant(b), tf.constant(x)).numpy()
    np.testing.assert_allclose(got, sp.betainc(a, b, x), rtol=1e-11)
    assert m.betainc(2000.0, 3000.0, 0.41).numpy() == pytest.approx(sp.betainc(2000, 3000, np.float32(0.41)), rel=1e-6)
    assert m.betainc(1.0, 2.0, tf.ones([2, 3]) * 0.5).shape == [2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shapes of a and x are inconsistent"):
        m.betainc(tf.ones([2]), 1.0, tf.ones([3]))
    np.testing.assert_array_equal(m.betainc(1.0, [1.0, 0.0, 2.0], [1.5, 0.5, 0.0]).numpy(), [nan, nan, 0])
    inputs = [tf.constant(2.0), tf.constant(3.0), tf.constant([0.0, 0.25, 1.0])]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = m.betainc(*inputs)
    by_a, by_b, by_x = tape.gradient(y, inputs)
    assert by_a is None and by_b is None
    np.testing.assert_allclose(by_x.numpy(), [0, 12 * 0.25 * 0.75**2, 0], rtol=1e-5)


def test_lbeta():
    assert m.lbeta([1.0, 2.0, 3.0]).numpy() == pytest.approx(np.log(2 / 120), rel=1e-6)
    np.testing.assert_array_equal(m.lbeta(tf.zeros([2, 0])).numpy(), [-inf, -inf])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension"):
        m.lbeta(2.0)


def test_gradients_that_do_not_exist_are_none():
    for function in (m.zeta, m.polygamma):
        a, x = tf.constant([2.0]), tf.constant([3.0])
        with tf.GradientTape() as tape:
            tape.watch([a, x])
            y = function(a, x)
        by_a, by_x = tape.gradient(y, [a, x])
        assert by_a is None and by_x is not None


@pytest.mark.parametrize(("function", "exact"), [(m.lgamma, sp.gammaln), (m.digamma, sp.digamma)])
def test_gamma_of_many_floats_is_rounded_once(function, exact):
    random = np.random.default_rng(2)
    near = [root + random.normal(0, 1e-2, 300) for root in (1, 2, 1.4616321)]
    x = np.r_[np.exp(random.uniform(-60, 60, 700)), random.uniform(-9, 12, 700), *near].astype(np.float32)
    value = exact(x.astype(np.float64))
    error = np.abs(function(x).numpy() - value) / np.spacing(np.abs(value).astype(np.float32))
    assert error.max() < 0.51
    np.testing.assert_array_equal(function(x[:1]), function(x)[:1])


def test_gamma_of_floats_at_the_edges():
    x = np.array([0, inf, nan, 1, 2, 3e38], np.float32)
    np.testing.assert_array_equal(m.lgamma(x), np.array([inf, inf, nan, 0, 0, inf], np.float32))
    np.testing.assert_allclose(m.digamma(x)[1:], np.float32([inf, nan, -0.57721566, 0.42278434, 88.596848]), rtol=1e-6)


def test_inverse_error_functions_close_the_circle_in_their_tails():
    p = 2.0 ** -np.arange(2, 1074)
    got = m.ndtri(tf.constant(p)).numpy()
    np.testing.assert_allclose(got, sp.ndtri_exp(np.log(p)), rtol=1e-14)
    np.testing.assert_array_equal(m.ndtri(tf.constant(1 - p[:52])).numpy(), -got[:52])
    x = 1 - 2.0 ** -np.arange(1, 54)
    z = m.erfinv(tf.constant(np.r_[x, -x])).numpy()
    np.testing.assert_allclose(sp.erfc(z[:53]), 1 - x, rtol=1e-13)
    np.testing.assert_array_equal(z[53:], -z[:53])


def test_zeros_keep_their_sign_and_accuracy():
    for dtype in (np.float32, np.float64):
        assert np.signbit(m.erfinv(tf.constant([-0.0, 0.0], dtype)).numpy()).tolist() == [True, False]
        np.testing.assert_array_equal(m.ndtri(tf.constant([0.5], dtype)).numpy(), [0.0])
        np.testing.assert_array_equal(m.lgamma(tf.constant([1.0, 2.0], dtype)).numpy(), [0.0, 0.0])
    near = 2.0 ** -np.arange(3, 50)
    for root, slope in ((1.0, sp.digamma(1.0)), (2.0, sp.digamma(2.0))):
        got = m.lgamma(tf.constant(np.r_[root + near, root - near])).numpy()
        series = slope + sp.polygamma(1, root) * np.r_[near, -near] / 2
        np.testing.assert_allclose(got / np.r_[near, -near], series, rtol=0, atol=2 * near[0] ** 2)
        np.testing.assert_allclose(got[20:47] / near[20:], series[20:47], rtol=1e-12)
