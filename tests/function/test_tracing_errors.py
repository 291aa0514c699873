"""Errors while a function is traced: the traceback has the program's frames and one of Tapeflow's."""

import traceback

import pytest

import tapeflow as tf


def wrong(x):
    return tf.matmul(x, tf.ones([3, 4]))


@pytest.mark.parametrize("filtered", [True, False])
def test_frames_of_an_error_while_tracing(filtered):
    function = tf.function(lambda x: wrong(x) * 2.0)
    if not filtered:
        tf.debugging.disable_traceback_filtering()
    try:
        with pytest.raises(ValueError, match="inner dimensions") as caught:
            function(tf.ones([2, 5]))
    finally:
        tf.debugging.enable_traceback_filtering()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    own = [file for file in files if file != __file__]
    assert files[0] == files[-1] == __file__ and len(files) - len(own) == 3
    assert len(own) == 1 if filtered else len(own) > 1
