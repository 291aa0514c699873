"""Profiles: the blocks of a program in a file that TensorBoard reads."""

import gzip
import json

import pytest

import tapeflow as tf


def test_blocks_are_written(tmp_path):
    Profile, Trace = tf.profiler.experimental.Profile, tf.profiler.experimental.Trace
    with Profile(str(tmp_path)), Trace("outer", step_num=3), Trace("inner") as inner:
        inner.set_metadata(size=2)
    (file,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    blocks = {event["name"]: event for event in events if event["ph"] == "X"}
    assert blocks["outer"]["args"] == {"step_num": "3"} and blocks["inner"]["args"] == {"size": "2"}
    assert blocks["outer"]["ts"] <= blocks["inner"]["ts"]
    assert blocks["inner"]["dur"] <= blocks["outer"]["dur"]


def test_one_profile_at_a_time(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.profiler.experimental.start(str(tmp_path))
    tf.profiler.experimental.stop(save=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()
