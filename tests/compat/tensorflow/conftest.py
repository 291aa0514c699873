"""What the tests of inner modules share."""

import pytest

from tapeflow._src.compat.tensorflow.class_names import restore_class_names


@pytest.fixture(autouse=True)
def own_names():
    """The table lets the classes take TensorFlow's names; other tests shall not see them."""
    yield
    restore_class_names()
