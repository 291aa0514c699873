"""Summaries of TensorFlow 1, and the files they are written to."""

import glob

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def run(make):
    """The values of the summary that `make()` gives in a graph."""
    with tf.Graph().as_default(), v1.Session() as session:
        return v1.Summary.FromString(session.run(make())).value


def events(folder):
    """The events of the one file in a folder."""
    (path,) = glob.glob(f"{folder}/*")
    return [v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)]


def test_values():
    (value,) = run(lambda: v1.summary.scalar("a b", 0.5, family="f"))
    assert (value.tag, value.simple_value) == ("f/f/a_b", 0.5)
    (value,) = run(lambda: v1.summary.histogram("h", [-1.0, 0.0, 2.0, 2.0]))
    assert (value.histo.min, value.histo.max, value.histo.num, value.histo.sum) == (-1.0, 2.0, 4.0, 3.0)
    assert [n for n in value.histo.bucket if n] == [1.0, 1.0, 2.0]
    images = run(lambda: v1.summary.image("i", tf.ones([2, 3, 4, 1])))
    assert [p.tag for p in images] == ["i/image/0", "i/image/1"]
    assert (images[0].image.height, images[0].image.width) == (3, 4)
    image = tf.io.decode_png(images[0].image.encoded_image_string)
    assert image.numpy().min() == 255
    (value,) = run(lambda: v1.summary.text("t", tf.constant("hello")))
    assert value.metadata.plugin_data.plugin_name == "text"
    with pytest.raises(Exception, match="Nan in summary histogram"):
        run(lambda: v1.summary.histogram("h", [np.nan]))


def test_names_are_unique_and_merged():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32)
        assert v1.summary.merge_all() is None
        first = v1.summary.scalar("loss", x)
        v1.summary.scalar("loss", x * 2.0)
        v1.summary.scalar("other", x, collections=["mine"])
        assert first.name == "loss:0"
        merged = v1.summary.merge_all()
        assert merged.name == "Merge/MergeSummary:0"
        values = v1.Summary.FromString(session.run(merged, {x: 3.0})).value
        assert [(v.tag, v.simple_value) for v in values] == [("loss", 3.0), ("loss_1", 6.0)]
        assert len(v1.get_collection("mine")) == 1


def test_files(tmp_path):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        summary = v1.summary.scalar("loss", 0.25)
        with v1.summary.FileWriter(tmp_path, graph) as writer:
            writer.add_summary(session.run(summary), 7)
            writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="reward", simple_value=2.0)]), 8)
            assert writer.get_logdir() == str(tmp_path)
    found = events(tmp_path)
    assert found[0].file_version == "brain.Event:2"
    assert v1.GraphDef.FromString(found[1].graph_def).node[-1].name == "loss"
    meta_graph = v1.MetaGraphDef.FromString(found[2].meta_graph_def)
    assert meta_graph.graph_def == v1.GraphDef.FromString(found[1].graph_def)
    written = [(e.step, e.summary.value[0].tag, e.summary.value[0].simple_value) for e in found[3:]]
    assert written == [(7, "loss", 0.25), (8, "reward", 2.0)]


def test_a_gradient_of_rows_can_be_summarised():
    with tf.Graph().as_default(), v1.Session() as session:
        table = v1.get_variable("table", [3, 2])
        (rows,) = tf.gradients(tf.gather(table, [1, 1]), table)
        summary = v1.Summary.FromString(session.run(v1.summary.histogram("rows", rows)))
        assert summary.value[0].histo.sum == 4.0


def test_summaries_are_operations_of_a_graph():
    """They are written under TensorFlow's names, and graphs that hold them can be read."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2], "x")
        v1.summary.scalar("s", tf.reduce_sum(x))
        v1.summary.histogram("h", x)
        v1.summary.audio("a", tf.reshape(x, [1, 2, 1]), 8000)
        v1.summary.text("t", tf.constant("hello"))
        v1.summary.merge_all()
        definition = graph.as_graph_def()
    ops = {node.op for node in definition.node}
    assert {"ScalarSummary", "HistogramSummary", "AudioSummaryV2", "TensorSummaryV2", "MergeSummary"} <= ops
    with tf.Graph().as_default(), v1.Session() as session:
        (merged,) = tf.import_graph_def(definition, return_elements=["Merge/MergeSummary:0"], name="")
        values = v1.Summary.FromString(session.run(merged, {"x:0": [1.0, 2.0]})).value
    assert [value.tag for value in values] == ["s", "h", "a/audio/0", "t"]
    assert values[0].simple_value == 3.0 and values[2].audio.length_frames == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a"):
        run(lambda: v1.summary.merge([tf.raw_ops.ScalarSummary(tags="a", values=x) for x in (1.0, 2.0)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not the same shape"):
        tf.raw_ops.ScalarSummary(tags="a", values=[1.0, 2.0])


def test_graphs_of_runs_and_sessions_are_events(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="one")
    with v1.summary.FileWriter(tmp_path) as writer:
        writer.add_graph(graph.as_graph_def(), 1)
        writer.add_meta_graph(v1.MetaGraphDef(graph_def=graph.as_graph_def()), 2)
        writer.add_session_log(v1.SessionLog(status=v1.SessionLog.START), 3)
        writer.add_run_metadata(v1.RunMetadata(), "run", 4)
        with pytest.raises(ValueError, match="tag was already used"):
            writer.add_run_metadata(v1.RunMetadata(), "run")
        with pytest.raises(TypeError, match="meta_graph_def must be type MetaGraphDef"):
            writer.add_meta_graph(graph.as_graph_def())
        with pytest.raises(ValueError, match="only graph, or graph_def"):
            writer.add_graph(graph, graph_def=graph.as_graph_def())
    found = [(event.step, event.WhichOneof("what")) for event in events(tmp_path)[1:]]
    assert found == [(1, "graph_def"), (2, "meta_graph_def"), (3, "session_log"), (4, "tagged_run_metadata")]
