"""What the tests of inner modules share."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.class_names import restore_class_names


@pytest.fixture(autouse=True)
def own_names():
    """The table lets the classes take TensorFlow's names; tests without Keras, which needs them, shall not see them."""
    had_own_names = not tf.Tensor.__module__.startswith("tensorflow")
    yield
    if had_own_names:
        restore_class_names()
