"""Functions of the iteration number."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules.loops import for_loop, pfor


def test_so_many_iterations_at_once():
    for count in (None, 2, 3, 10):
        total, twice = pfor(lambda i: (i + 1, {"twice": [2 * i]}), 7, parallel_iterations=count)
        assert total.numpy().tolist() == [1, 2, 3, 4, 5, 6, 7]
        assert twice["twice"][0].numpy().tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_numbers_of_iterations_that_make_no_sense():
    with pytest.raises(ValueError, match=r"must be None or a positive integer\. Received: 0"):
        pfor(lambda i: i, 8, parallel_iterations=0)
    with pytest.raises(ValueError, match="Use `for_loop` instead"):
        pfor(lambda i: i, 8, parallel_iterations=1)
    with pytest.raises(TypeError, match="must be a positive integer"):
        for_loop(lambda i: i, tf.int32, 8, parallel_iterations=0)


def test_results_have_the_structure_of_the_dtypes():
    found = for_loop(lambda i: (i, {"a": 2.0 * tf.cast(i, tf.float32)}), [tf.int32, [tf.float32]], 3)
    assert isinstance(found, list) and isinstance(found[1], list)
    assert found[0].numpy().tolist() == [0, 1, 2]
    assert found[1][0].numpy().tolist() == [0.0, 2.0, 4.0]
