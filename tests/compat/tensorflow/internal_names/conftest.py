"""Inner modules are imported under TensorFlow's names in these tests."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.alias import withdraw


@pytest.fixture(autouse=True)
def as_tensorflow():
    """`import tensorflow` means Tapeflow for a test."""
    tf.install_as_tensorflow()
    yield
    withdraw()
