"""Event files: what is in them, when they are written, and what functions and conditions change about that."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import read_records
from tapeflow._src.io.tensorboard.summary import _buckets


@pytest.fixture
def writer(tmp_path):
    return tf.summary.create_file_writer(str(tmp_path))


def events(folder):
    (path,) = folder.glob("events.out.tfevents.*.v2")
    first, *rest = [messages.Event.FromString(record) for record in read_records(path)]
    assert first.file_version == "brain.Event:2"
    return rest


def test_bytes_of_an_event(writer, tmp_path):
    with writer.as_default():
        assert tf.summary.write("w", tf.constant([1, 2]), step=9).numpy()
    (event,) = events(tmp_path)
    assert event.wall_time > 1e9
    event.ClearField("wall_time")
    assert event.SerializeToString() == (
        b'\x10\t*\x19\n\x17\n\x01wB\x12\x08\x03\x12\x04\x12\x02\x08\x02"\x08\x01\0\0\0\x02\0\0\0'
    )


def test_the_file_is_there_as_soon_as_its_writer(writer, tmp_path):
    assert events(tmp_path) == []


def test_scalars(writer, tmp_path):
    with writer.as_default(step=7):
        tf.summary.scalar("loss", 1.5)
        with tf.name_scope("inner"):
            tf.summary.scalar("loss", tf.constant(2), step=8, description="how bad")
    one, two = events(tmp_path)
    assert [(e.step, e.summary.value[0].tag) for e in (one, two)] == [(7, "loss"), (8, "inner/loss")]
    value = two.summary.value[0]
    assert tf.make_ndarray(value.tensor) == np.float32(2)
    assert value.metadata.plugin_data.plugin_name == "scalars"
    assert value.metadata.summary_description == "how bad"
    assert value.metadata.data_class == 1


def test_other_kinds(writer, tmp_path):
    with writer.as_default(), tf.summary.record_if(True):
        tf.summary.text("t", ["a", "b"], step=1)
        tf.summary.histogram("h", [1.0, 2.0, 2.0, 5.0], step=1, buckets=2)
        tf.summary.image("i", np.full([4, 2, 3, 1], 255, np.uint8), step=1, max_outputs=2)
        tf.summary.audio("a", np.zeros([1, 4, 1], np.float32), 8000, step=1)
    found = {e.summary.value[0].tag: tf.make_ndarray(e.summary.value[0].tensor) for e in events(tmp_path)}
    assert found["t"].tolist() == [b"a", b"b"]
    assert found["h"].tolist() == [[1.0, 3.0, 3.0], [3.0, 5.0, 1.0]]
    width, height, *images = found["i"].tolist()
    assert (width, height, len(images)) == (b"3", b"2", 2)
    assert tf.io.decode_png(images[0]).numpy().min() == 255
    assert tf.audio.decode_wav(found["a"][0]).audio.shape == [4, 1]


def test_buckets():
    assert _buckets(np.array([2.0, 2.0]), 3).tolist() == [[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [2.0, 2.0, 2.0]]
    assert _buckets(np.zeros([0]), 2).tolist() == [[0.0] * 3] * 2


def test_nobody_writes():
    assert not tf.summary.scalar("x", 1.0, step=1).numpy()
    assert not tf.summary.should_record_summaries().numpy()
    with tf.summary.create_noop_writer().as_default():
        assert not tf.summary.scalar("x", 1.0, step=1).numpy()


def test_steps(writer, tmp_path):
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            tf.summary.scalar("x", 1.0)
        step = tf.Variable(3, dtype=tf.int64)
        tf.summary.experimental.set_step(step)
        tf.summary.scalar("x", 1.0)
        step.assign_add(1)
        tf.summary.scalar("x", 1.0)
        tf.summary.experimental.set_step(None)
    assert [e.step for e in events(tmp_path)] == [3, 4]


def test_conditions(writer, tmp_path):
    with writer.as_default(step=1):
        for condition in (False, lambda: tf.constant(False)):
            with tf.summary.record_if(condition):
                assert not tf.summary.scalar("x", 1.0).numpy()
        with tf.summary.record_if(lambda: True):
            assert tf.summary.scalar("y", 1.0).numpy()
    assert len(events(tmp_path)) == 1


def test_in_a_function(writer, tmp_path):
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(x):
        with writer.as_default():
            tf.summary.scalar("loss", x * 2.0, step=step)
            tf.summary.histogram("h", [x, x + 1.0], step=step, buckets=1)
        step.assign_add(1)

    for number in (1.0, 2.0, 3.0):
        train(tf.constant(number))
    writer.flush()
    scalars = [e for e in events(tmp_path) if e.summary.value[0].tag == "loss"]
    assert [e.step for e in scalars] == [0, 1, 2]
    assert [float(tf.make_ndarray(e.summary.value[0].tensor)) for e in scalars] == [2.0, 4.0, 6.0]


def test_closed(writer):
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
        pass
    with pytest.raises(ValueError, match="`logdir` cannot be None"):
        tf.summary.create_file_writer(None)


def test_graphs_of_functions(tmp_path):
    with pytest.raises(ValueError, match="Must enable trace before export"):
        tf.summary.trace_export("trace", step=0)
    tf.summary.trace_on(graph=True)
    tf.function(lambda x: tf.sin(x) + 1.0)(tf.constant(1.0))
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.trace_export("my_trace", step=3)
        assert tf.summary.graph(tf.function(lambda x: x * 2.0).get_concrete_function(tf.constant(1.0)).graph)
    (path,) = tmp_path.iterdir()
    events = [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(path))]
    (value,) = next(e for e in events if e.step == 3).summary.value
    assert value.tag == "my_trace" and value.metadata.plugin_data.plugin_name == "graph_run_metadata_graph"
    assert b"Sin" in value.tensor.string_val[0]
    assert any(b"Mul" in event.graph_def for event in events)
