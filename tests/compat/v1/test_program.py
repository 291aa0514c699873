"""Flags and logging of TensorFlow 1's programs."""

import logging

import tapeflow.compat.v1 as tf


def test_flags_of_a_command_line():
    tf.flags.DEFINE_integer("test_program_steps", 3, "how many")
    flags = tf.flags.FLAGS
    assert flags(["program", "--test_program_steps=5", "file"]) == ["program", "file"]
    assert flags.is_parsed() and flags.test_program_steps == 5 and flags["test_program_steps"].value == 5
    assert "test_program_steps" in list(flags) and flags.flag_values_dict()["test_program_steps"] == 5
    flags.test_program_steps = 6
    assert flags.test_program_steps == 6 and flags["test_program_steps"].default == 3


def test_messages_of_one_line_can_be_few(caplog):
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        for i in range(5):
            tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, i)
            tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, i)
    finally:
        tf.logging.set_verbosity(level)
        logger.removeHandler(caplog.handler)
    found = [record.getMessage() for record in caplog.records]
    assert sorted(set(found)) == ["every 0", "every 2", "every 4", "first 0", "first 1"]
