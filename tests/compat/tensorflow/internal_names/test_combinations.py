"""Tests for all combinations of arguments."""

import unittest

from absl.testing import parameterized

import tapeflow as tf

combinations = tf.__internal__.test.combinations


def test_combine_and_times():
    product = combinations.times(combinations.combine(b=[1, 2]), combinations.combine(a=[3, 4]))
    assert [dict(one) for one in product] == [{"b": b, "a": a} for b in (1, 2) for a in (3, 4)]


def test_generate_runs_every_mode():
    seen = []

    class Case(parameterized.TestCase):
        @combinations.generate(combinations.combine(mode=["graph", "eager"], x=[1, 2]))
        def test_mode(self, x):
            seen.append((x, tf.executing_eagerly()))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful() and sorted(seen) == [(1, False), (1, True), (2, False), (2, True)]
    assert "test_mode_test_mode_graph_x_1" in dir(Case)
