"""Lists and structures that hold themselves are refused; they do not end the process."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize("convert", [tf.constant, tf.convert_to_tensor, tf.stack, tf.reduce_sum])
def test_a_list_that_holds_itself(convert):
    holds_itself: list = []
    holds_itself.append(holds_itself)
    with pytest.raises((ValueError, TypeError)):
        convert(holds_itself)
    with_tensor = [tf.constant(1.0), np.ones(2)]
    with_tensor.append(with_tensor)
    with pytest.raises((ValueError, TypeError)):
        convert(with_tensor)


def test_a_structure_that_holds_itself():
    holds_itself: list = []
    holds_itself.append(holds_itself)
    with tf.GradientTape() as tape, pytest.raises(RecursionError):
        tape.watch(holds_itself)
