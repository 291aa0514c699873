"""Profiles: the blocks of a program in a file that TensorBoard reads."""

import gzip
import json

import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages


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


def test_blocks_are_written_for_the_profile_plugin(tmp_path):
    Trace = tf.profiler.experimental.Trace
    with tf.profiler.experimental.Profile(str(tmp_path)):
        for step in range(2):
            with Trace("train", step_num=step), Trace("inner"):
                pass
    (file,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    (plane,) = messages.XSpace.FromString(file.read_bytes()).planes
    (line,) = plane.lines
    names = [plane.event_metadata[event.metadata_id].name for event in line.events]
    assert plane.name == "/host:CPU" and names == ["inner", "train"] * 2
    (stat,) = line.events[3].stats
    assert plane.stat_metadata[stat.metadata_id].name == "step_num" and stat.str_value == "1"
    inner, outer = line.events[2:]
    assert 0 <= outer.offset_ps <= inner.offset_ps
    assert inner.offset_ps + inner.duration_ps <= outer.offset_ps + outer.duration_ps


def test_one_profile_at_a_time(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.profiler.experimental.start(str(tmp_path))
    tf.profiler.experimental.stop(save=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()
