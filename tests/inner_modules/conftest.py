"""What the tests of inner modules share."""

import pytest

from tapeflow.tensorflow_places import leave_places


@pytest.fixture(autouse=True)
def own_names():
    """The table lets the classes take TensorFlow's names; other tests shall not see them."""
    yield
    leave_places()
