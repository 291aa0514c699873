"""`run_metadata`: the times of the operations, the cost model, the graph; and the trace made of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.v1.sessions.timeline import Timeline

v1 = tf.compat.v1
FULL = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)


def _traced():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2], "x")
        y = tf.reduce_sum(tf.sin(x, name="wave"), name="total")
        metadata = v1.RunMetadata()
        value = session.run(y, {x: [1.0, 2.0]}, options=FULL, run_metadata=metadata)
    assert value == pytest.approx(np.sin([1.0, 2.0]).sum())
    return metadata


def test_step_stats_name_every_operation_once():
    (device,) = _traced().step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    names = [node.node_name for node in device.node_stats]
    assert names.index("wave") < names.index("total")
    assert len(names) == len(set(names))
    wave = device.node_stats[names.index("wave")]
    assert wave.timeline_label == "wave = Sin(x:0)"
    assert wave.all_start_micros > 0
    assert [dim.size for dim in wave.output[0].tensor_description.shape.dim] == [2]
    assert wave.memory[0].total_bytes == 8


def test_without_a_trace_level_nothing_is_reported():
    with tf.Graph().as_default(), v1.Session() as session:
        metadata = v1.RunMetadata()
        session.run(tf.constant(1.0), run_metadata=metadata)
        assert not metadata.HasField("step_stats")
        session.run(tf.constant(1.0), options=FULL)


def test_partition_graphs_and_cost_model():
    config = v1.ConfigProto(graph_options=v1.GraphOptions(build_cost_model=2))
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        y = tf.sin(tf.constant(1.0, name="one"), name="wave")
        reported = []
        for _ in range(4):
            metadata = v1.RunMetadata()
            session.run(y, options=v1.RunOptions(output_partition_graphs=True), run_metadata=metadata)
            assert [node.name for node in metadata.partition_graphs[0].node] == ["one", "wave"]
            reported.append([node.name for node in metadata.cost_graph.node])
        assert reported == [[], ["one", "wave"], [], ["one", "wave"]]


def test_callables_take_options_if_they_are_made_to():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        metadata = v1.RunMetadata()
        run = session.make_callable(2.0 * x, [x], accept_options=True)
        assert run(3.0, options=FULL, run_metadata=metadata) == 6.0
        assert len(metadata.step_stats.dev_stats) == 1
        with pytest.raises(TypeError, match="accept_options"):
            session.make_callable(2.0 * x, [x])(3.0, options=FULL)


def test_timeline_shows_operations_and_what_flows_between_them():
    timeline = Timeline(_traced().step_stats)
    events = json.loads(timeline.generate_chrome_trace_format(show_memory=True))["traceEvents"]
    assert {"M", "X", "s", "t", "C"} == {event["ph"] for event in events}
    (wave,) = [event for event in events if event["ph"] == "X" and event["args"]["name"] == "wave"]
    assert wave["args"]["op"] == "Sin"
    without = json.loads(timeline.generate_chrome_trace_format(show_dataflow=False))["traceEvents"]
    assert {event["ph"] for event in without} == {"M", "X"}
    most = timeline.analyze_step_stats().allocator_maximums["cpu"]
    assert most.num_bytes >= 12
    assert "wave" in most.tensors


def test_a_session_without_a_report_needs_no_messages():
    program = """
import sys
import tapeflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32)
    assert session.run(x * 2.0, {x: 3.0}) == 6.0
print("google.protobuf" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr
