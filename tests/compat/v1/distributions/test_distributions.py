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
