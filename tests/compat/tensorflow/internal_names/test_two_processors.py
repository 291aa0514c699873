"""Strategies that test suites name: what they need is set up when one is asked for."""

import pytest

import tapeflow as tf
from tapeflow._src import config


@pytest.fixture
def one_processor():
    config.reset_settings()
    yield
    config.reset_settings()


def test_two_processors_are_made_for_the_strategy_that_wants_them(one_processor):
    named = tf.__internal__.distribute.combinations.mirrored_strategy_with_two_cpus
    assert named.strategy.num_replicas_in_sync == 2
    assert len(tf.config.list_logical_devices("CPU")) == 2
