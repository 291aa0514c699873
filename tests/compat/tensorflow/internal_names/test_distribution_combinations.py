"""Tests that run for each strategy of this machine."""

import unittest

from absl.testing import parameterized

import tapeflow as tf

strategies = tf.__internal__.distribute.combinations
combine = tf.__internal__.test.combinations.combine


def test_each_strategy_is_made_and_others_are_skipped():
    seen = set()

    class Case(parameterized.TestCase, tf.test.TestCase):
        @strategies.generate(
            combine(
                distribution=[
                    strategies.one_device_strategy,
                    strategies.mirrored_strategy_with_one_cpu,
                    strategies.mirrored_strategy_with_two_gpus,
                    strategies.tpu_strategy,
                    strategies.multi_worker_mirrored_2x1_cpu,
                    strategies.parameter_server_strategy_1worker_2ps_cpu,
                ],
                mode=["eager"],
            )
        )
        def test_it(self, distribution):
            with distribution.scope():
                assert tf.distribute.get_strategy() is distribution
            seen.add(type(distribution).__name__)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful(), result
    assert seen == {"OneDeviceStrategy", "MirroredStrategy"}
    reasons = sorted(reason for _, reason in result.skipped if reason != "Not a test.")
    assert len(reasons) == 4
    for reason, word in zip(reasons, ["GPUs", "workers", "TPU", "parameter servers"]):
        assert word in reason


def test_names_are_those_of_tensorflow():
    assert repr(strategies.mirrored_strategy_with_gpu_and_cpu) == "MirroredCPUAndGPU"
    assert strategies.in_main_process()
