"""Strategies that test suites name: what they need is set up when one is asked for."""

import tapeflow as tf


def test_two_processors_are_made_for_the_strategy_that_wants_them():
    (processor,) = tf.config.list_physical_devices("CPU")
    before = tf.config.get_logical_device_configuration(processor)
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()])
    try:
        named = tf.__internal__.distribute.combinations.mirrored_strategy_with_two_cpus
        assert named.strategy.num_replicas_in_sync == 2
    finally:
        if before:
            tf.config.set_logical_device_configuration(processor, before)
