"""`tf.get_logger` is the logger that programs know as TensorFlow's."""

import logging
import subprocess
import sys

import tapeflow as tf
from tapeflow._src.types.logging import warn


def test_logger():
    assert tf.get_logger() is logging.getLogger("tensorflow") is tf.get_logger()


def test_warning(caplog):
    caplog.set_level(logging.WARNING, "tensorflow")
    warn("a value of %d", 5)
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("tensorflow", "WARNING", "a value of 5")
    ]


def test_output_of_a_fresh_process():
    program = "import tapeflow as tf; tf.get_logger().warning('careful'); tf.get_logger().info('hidden')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "WARNING:tensorflow:careful\n")
