"""Distributions against TensorFlow's numbers, the moments of samples, and gradients through them."""

import json
from pathlib import Path

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf
from tests.compat.v1.distributions.distribution_cases import CASES, measured

VALUES = json.loads((Path(__file__).parent / "distribution_values.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_tensorflows(case):
    found, expected = measured(tf, case), VALUES[case]
    assert set(expected) <= set(found)
    for key, theirs in expected.items():
        if key in ("shapes", "names"):
            assert found[key] == theirs, key
        else:
            np.testing.assert_allclose(
                np.asarray(found[key], float), np.asarray(theirs, float), rtol=1e-4, atol=1e-6, err_msg=key
            )


@pytest.mark.parametrize("case", [case for case in CASES if "mean" in VALUES[case]])
def test_samples_have_the_moments(case):
    kind, arguments, *_ = CASES[case]
    with tapeflow.Graph().as_default(), tf.Session() as session:
        distribution = getattr(tf.distributions, kind)(**arguments)
        drawn = session.run(tf.cast(distribution.sample(20000, seed=3), tf.float64))
        mean, deviation = session.run([distribution.mean(), distribution.stddev()])
    wanted = np.isfinite(deviation)
    error = np.abs(drawn.mean(0) - mean)[wanted] / deviation[wanted]
    assert (error < 0.04).all(), error


def test_classes_are_drawn_as_often_as_they_should():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        drawn = session.run(tf.distributions.Categorical(probs=[[0.2, 0.8], [0.5, 0.5]]).sample([100, 100], seed=1))
    np.testing.assert_allclose(drawn.mean((0, 1)), [0.8, 0.5], atol=0.02)


def test_gradients_flow_through_samples():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        loc, scale = tf.constant([1.0, 2.0]), tf.constant(0.5)
        sample = tf.distributions.Normal(loc, scale).sample(seed=1)
        dloc, dscale = tf.gradients(sample, [loc, scale])
        noise, found = session.run([tf.reduce_sum((sample - loc) / scale), [dloc, dscale]])
    assert found[0].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(found[1], noise, rtol=1e-5)


def test_distributions_work_eagerly():
    assert float(tf.distributions.Normal(0.0, 1.0).entropy()) == pytest.approx(1.4189385)
    assert "batch_shape=(2,)" in repr(tf.distributions.Normal([0.0, 1.0], 1.0))
    assert tf.distributions.Normal(0.0, 1.0).copy(scale=2.0).scale.numpy() == 2.0


def test_errors_are_tensorflows():
    with pytest.raises(ValueError, match="Must pass probs or logits, but not both"):
        tf.distributions.Bernoulli()
    with pytest.raises(NotImplementedError, match=r"No KL\(distribution_a \|\| distribution_b\) registered"):
        tf.distributions.kl_divergence(tf.distributions.Normal(0.0, 1.0), tf.distributions.Exponential(1.0))
    with pytest.raises(NotImplementedError, match="mean is not implemented: Categorical"):
        tf.distributions.Categorical(probs=[0.5, 0.5]).mean()


def test_modes_of_a_batch():
    found = tf.distributions.Dirichlet([[2.0, 3.0, 4.0], [2.0, 2.0, 2.0]]).mode().numpy()
    np.testing.assert_allclose(found, [[1 / 6, 2 / 6, 3 / 6], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


def _checked(name, *args, **kwargs):
    return getattr(tf.compat.v1.distributions, name)(*args, **kwargs, validate_args=True)


INVALID = {
    "Normal": (lambda: _checked("Normal", [0.0], [-1.0]).mean() + _checked("Normal", 0.0, -1.0).variance(), "x > 0"),
    "Laplace": (lambda: _checked("Laplace", [0.0], [-1.0]).variance(), "x > 0"),
    "Uniform": (lambda: _checked("Uniform", [3.0], [1.0]).low, "low >= high"),
    "Gamma": (lambda: _checked("Gamma", [1.0], [-1.0]).mean(), "x > 0"),
    "Gamma value": (lambda: _checked("Gamma", [1.0], [1.0]).log_prob([-1.0]), "x > 0"),
    "Exponential": (lambda: _checked("Exponential", [-1.0]).mean(), "x > 0"),
    "Beta": (lambda: _checked("Beta", [1.0], [-1.0]).mean(), "must be positive"),
    "Beta value": (lambda: _checked("Beta", [1.0], [1.0]).prob([1.5]), "less than `1`"),
    "StudentT": (lambda: _checked("StudentT", [-1.0], 0.0, 1.0).mean(), "x > 0"),
    "Dirichlet": (lambda: _checked("Dirichlet", [-1.0, 1.0]).mean(), "must be positive"),
    "Dirichlet value": (lambda: _checked("Dirichlet", [1.0, 1.0]).prob([0.5, 0.1]), "must sum to `1`"),
    "Bernoulli": (lambda: _checked("Bernoulli", probs=[1.5]).probs, "greater than 1"),
    "Bernoulli value": (lambda: _checked("Bernoulli", probs=[0.5]).prob([2]), "cannot exceed 1"),
    "Categorical": (lambda: _checked("Categorical", probs=[0.5, 0.1]).probs, "sum to 1"),
    "Categorical value": (lambda: _checked("Categorical", probs=[0.5, 0.5]).prob([0.5]), "fractional"),
    "Multinomial": (lambda: _checked("Multinomial", 2.5, probs=[0.5, 0.5]).mean(), "fractional"),
    "Multinomial value": (lambda: _checked("Multinomial", 4.0, probs=[0.5, 0.5]).prob([1.0, 1.0]), "total_count"),
    "DirichletMultinomial value": (lambda: _checked("DirichletMultinomial", 4.0, [1.0, 1.0]).prob([-1.0, 5.0]), "neg"),
}


@pytest.mark.parametrize("name", INVALID)
def test_arguments_are_validated(name):
    call, message = INVALID[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, pytest.raises(tf.errors.OpError, match=message):
        session.run(call())


def test_statistics_that_are_undefined():
    d = tf.compat.v1.distributions
    np.testing.assert_allclose(d.Beta([2.0, 0.5], [3.0, 3.0]).mode(), [1 / 3, np.nan], rtol=1e-6)
    np.testing.assert_array_equal(d.Dirichlet([[2.0, 2.0], [1.0, 2.0]]).mode(), [[0.5, 0.5], [np.nan, np.nan]])
    for make, message in (
        (lambda: d.Beta(0.5, 3.0, allow_nan_stats=False).mode(), "Mode undefined for concentration1"),
        (lambda: d.Gamma(0.5, 3.0, allow_nan_stats=False).mode(), "mode not defined"),
        (lambda: d.Dirichlet([1.0, 2.0], allow_nan_stats=False).mode(), "Mode undefined"),
        (lambda: d.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).mean(), "mean not defined"),
        (lambda: d.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).variance(), "variance not defined"),
        (lambda: d.kl_divergence(d.Normal(np.nan, 1.0), d.Normal(0.0, 1.0), allow_nan_stats=False), "NaN"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            make()


def test_covariances():
    d = tf.compat.v1.distributions
    p, a = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0])
    shares = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(d.Multinomial(4.0, probs=p.astype("float32")).covariance(), 4 * shares, rtol=1e-6)
    mean = np.diag(a / 6) - np.outer(a, a) / 36
    np.testing.assert_allclose(d.Dirichlet(a).covariance(), mean / 7)
    np.testing.assert_allclose(d.DirichletMultinomial(4.0, a).covariance(), mean * 4 * 10 / 7)
    with pytest.raises(NotImplementedError, match="covariance is not implemented: Normal"):
        d.Normal(0.0, 1.0).covariance()


def test_tails_far_from_the_middle():
    from scipy import stats

    x = np.array([-40.0, -9.0, 0.5, 9.0, 40.0])
    for ours, theirs in (
        (tf.distributions.Normal(np.float64(1), np.float64(2)), stats.norm(1, 2)),
        (tf.distributions.Laplace(np.float64(1), np.float64(0.5)), stats.laplace(1, 0.5)),
        (tf.distributions.Exponential(np.float64(3)), stats.expon(scale=1 / 3)),
    ):
        at = np.abs(x) if isinstance(ours, tf.distributions.Exponential) else x
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(ours.log_survival_function(at), theirs.logsf(at), rtol=1e-4)
            np.testing.assert_allclose(ours.log_cdf(at), theirs.logcdf(at), rtol=1e-4)
            np.testing.assert_allclose(ours.survival_function(at), theirs.sf(at), rtol=1e-10)
            np.testing.assert_allclose(ours.cdf(at), theirs.cdf(at), rtol=1e-10)
