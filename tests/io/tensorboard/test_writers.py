"""Writers of event files: when they write, in functions and in graphs of TensorFlow 1, and which one is the default."""

import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import read_records


def events(folder):
    """The events of all files in a folder, without the first of each file."""
    files = sorted(folder.glob("events.out.tfevents.*.v2"))
    records = [[messages.Event.FromString(record) for record in read_records(path)] for path in files]
    return [event for rest in records for event in rest[1:]]


def test_the_end_of_as_default_writes_when_the_function_runs(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def f(x):
        with writer.as_default():
            return tf.summary.write("tag", x, step=3)

    assert f(tf.constant(1.0)) and f(tf.constant(2.0))
    assert len(events(tmp_path)) == 2


def test_a_writer_made_in_a_function_has_a_file_at_once(tmp_path):
    made = []

    @tf.function
    def f():
        if not made:
            made.append(tf.summary.create_file_writer(str(tmp_path)))
        with made[0].as_default():
            tf.summary.write("tag", 1, step=0)

    f()
    f()
    assert len(list(tmp_path.iterdir())) == 1
    assert len(events(tmp_path)) == 2


def test_a_folder_that_is_not_known_is_refused(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def f(folder):
        tf.summary.create_file_writer(folder)

    with pytest.raises(ValueError, match="Invalid graph Tensor argument 'logdir="):
        f(str(tmp_path))


def test_a_graph_of_tensorflow_1_opens_writes_and_flushes_in_a_session(tmp_path):
    with tf.Graph().as_default():
        writer = tf.summary.create_file_writer(str(tmp_path))
        with writer.as_default(step=1):
            write = tf.summary.write("tag", 1.0)
        initialize, flush, close = writer.init(), writer.flush(), writer.close()
        with tf.compat.v1.Session() as session:
            assert not list(tmp_path.iterdir())
            session.run(initialize)
            session.run(write)
            session.run(write)
            session.run(flush)
            assert [event.step for event in events(tmp_path)] == [1, 1]
            session.run(close)
            session.run(writer.init())
    assert len(list(tmp_path.iterdir())) == 2


def test_as_default_without_a_step_leaves_the_step_that_was_set_inside(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    try:
        with writer.as_default(step=1):
            with writer.as_default():
                tf.summary.write("tag", 1.0)
                tf.summary.experimental.set_step(3)
            tf.summary.write("tag", 1.0)
        assert tf.summary.experimental.get_step() is None
    finally:
        tf.summary.experimental.set_step(None)
    assert [event.step for event in events(tmp_path)] == [1, 3]


def test_more_events_than_max_queue_are_written_at_once(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path), max_queue=1).as_default():
        tf.summary.write("tag", 1, step=0)
        assert not events(tmp_path)
        tf.summary.write("tag", 1, step=1)
        assert len(events(tmp_path)) == 2


def test_events_wait_no_longer_than_flush_millis(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path), max_queue=100, flush_millis=0).as_default():
        tf.summary.write("tag", 1, step=0)
        assert len(events(tmp_path)) == 1


def test_a_writer_of_nothing_leaves_the_one_outside(tmp_path):
    silent = tf.summary.create_noop_writer()
    with tf.summary.create_file_writer(str(tmp_path)).as_default(), silent.as_default():
        assert tf.summary.write("tag", 1, step=0)
    silent.set_as_default()
    assert not tf.summary.write("tag", 1, step=0)
    assert len(events(tmp_path)) == 1


def test_what_is_not_recorded_needs_no_step(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path)).as_default(), tf.summary.record_if(False):
        assert not tf.summary.write("tag", 42)
        assert not tf.function(lambda: tf.summary.write("tag", 42))()


def test_several_serialised_summaries_make_one_event(tmp_path):
    one, two = (messages.Summary(value=[messages.Summary.Value(simple_value=v)]) for v in (1.0, 2.0))
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.experimental.write_raw_pb([one.SerializeToString(), two.SerializeToString()], step=1)
        with pytest.raises(tf.errors.DataLossError, match="Bad tf"):
            tf.summary.experimental.write_raw_pb("notaproto", step=1)
    (event,) = events(tmp_path)
    assert [value.simple_value for value in event.summary.value] == [1.0, 2.0]


def test_metadata_is_a_message_its_bytes_or_a_tensor_of_them(tmp_path):
    metadata = messages.SummaryMetadata(plugin_data=messages.SummaryMetadata.PluginData(plugin_name="p"))
    content = metadata.SerializeToString()
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        for given in (metadata, content, tf.constant(content)):
            tf.summary.write("tag", 0, 0, metadata=given)
    assert [event.summary.value[0].metadata for event in events(tmp_path)] == [metadata] * 3


def test_scopes_nest_and_have_only_legal_characters():
    scope = tf.summary.experimental.summary_scope
    with scope("foo") as outer, scope("bar") as inner:
        assert (outer, inner) == (("foo", "foo/"), ("foo/bar", "foo/bar/"))
    with scope("f?o?o") as found:
        assert found == ("f?o?o", "foo/")
    with scope("???", "backup") as found:
        assert found == ("???", "backup/")


def test_no_graph_is_written_or_collected_in_a_graph(caplog):
    tf.function(tf.summary.trace_on)()
    assert "Cannot enable trace inside a tf.function." in caplog.text
    with tf.Graph().as_default():
        tf.summary.trace_export("g", step=0)
        assert "Can only export trace while executing eagerly." in caplog.text
        with pytest.raises(ValueError, match="cannot be invoked inside a graph context"):
            tf.summary.graph(tf.Graph())


def test_arguments_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Invalid argument to flush\(\)"):
        tf.summary.flush(writer=())
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(), pytest.raises(ValueError, match="graph_data"):
        tf.summary.graph("hello")
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"):
        writer.init()
