"""The state of a loop that is small, and comes as a view of a larger tensor."""

import numpy as np
import pytest

import tapeflow as tf

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("view", [np.s_[0], np.s_[1, :2], np.s_[2, 0], np.s_[:, 1], np.s_[:]])
def test_every_iteration_sees_the_state_of_the_one_before(view):
    loop = tf.function(
        lambda x: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0 + 1.0), [0, x], maximum_iterations=9)[
            1
        ]
    )
    np.testing.assert_allclose(loop(tf.constant(X)[view]), X[view] * 8.0 + 7.0)
