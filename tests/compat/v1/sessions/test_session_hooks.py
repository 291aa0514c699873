"""Hooks that log, feed, write and compute at the end."""

import glob
import json
import logging
import os

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_hooks_of_a_training(tmp_path, caplog):
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [], name="x")
        v = v1.Variable(2.0)
        loss = tf.identity(v * v + x, name="loss")
        v1.summary.scalar("loss", loss)
        step = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        final = v1.train.FinalOpsHook(v)
        hooks = [
            v1.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=2, formatter=lambda found: f"L{len(found)}"),
            v1.train.FeedFnHook(lambda: {x: 1.0}),
            v1.train.SummarySaverHook(save_steps=2, output_dir=str(tmp_path)),
            final,
            v1.train.StopAtStepHook(last_step=4),
        ]
        with (
            caplog.at_level(logging.INFO, logger="tensorflow"),
            v1.train.MonitoredTrainingSession(hooks=hooks, save_summaries_steps=None) as session,
        ):
            while not session.should_stop():
                session.run(train)
    assert [record.message for record in caplog.records].count("L1") == 2
    assert final.final_ops_values < 1.0
    (path,) = glob.glob(f"{tmp_path}/*")
    events = [v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)]
    assert len([event for event in events if event.summary.value]) == 2


def _counting_graph():
    step = v1.train.get_or_create_global_step()
    return v1.assign_add(step, 1)


def test_hooks_set_options_and_may_not_feed_the_same():
    class Tracing(v1.train.SessionRunHook):
        def before_run(self, run_context):
            return v1.train.SessionRunArgs(None, options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE))

        def after_run(self, run_context, run_values):
            self.names = [node.node_name for node in run_values.run_metadata.step_stats.dev_stats[0].node_stats]

    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [], name="x")
        y = tf.sin(x, name="wave")
        tracing = Tracing()
        with v1.train.SingularMonitoredSession([tracing]) as session:
            session.run(y, {x: 1.0})
            assert tracing.names == ["wave"]
        feeding = v1.train.FeedFnHook(lambda: {x: 1.0})
        with v1.train.SingularMonitoredSession([feeding]) as session, pytest.raises(RuntimeError, match="and user"):
            session.run(y, {x: 2.0})
        twice = [feeding, v1.train.FeedFnHook(lambda: {x: 1.0})]
        with v1.train.SingularMonitoredSession(twice) as session, pytest.raises(RuntimeError, match="two hooks"):
            session.run(y)


def test_a_step_function_stops_the_loop():
    with tf.Graph().as_default():
        train = _counting_graph()
        with v1.train.MonitoredSession() as session:
            session.run_step_fn(lambda step_context: step_context.run_with_hooks(train))
            with pytest.raises(ValueError, match="`step_fn` may either have one `step_context` argument"):
                session.run_step_fn(lambda context: None)
            session.run_step_fn(lambda step_context: step_context.request_stop())
            raise AssertionError("request_stop leaves the block")
        with pytest.raises(RuntimeError, match="closed Session"):
            session.run(train)


def test_checkpoints_are_written_at_the_steps_that_are_due(tmp_path):
    saved = []

    class Listener(v1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            saved.append(global_step_value)

    with tf.Graph().as_default():
        train = _counting_graph()
        hook = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[Listener()])
        with v1.train.SingularMonitoredSession([hook]) as session:
            for _ in range(5):
                session.run(train)
    assert saved == [0, 2, 4, 5]
    with pytest.raises(ValueError, match="Either every_secs or every_steps"):
        v1.train.CheckpointSaverHook(str(tmp_path))


def test_profiles_are_written_for_the_trace_viewer(tmp_path):
    with tf.Graph().as_default():
        train = _counting_graph()
        hook = v1.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
        with v1.train.SingularMonitoredSession([hook]) as session:
            for _ in range(5):
                session.run(train)
    names = sorted(os.path.basename(path) for path in glob.glob(f"{tmp_path}/timeline*"))
    assert names == ["timeline-2.json", "timeline-4.json"]
    events = json.loads((tmp_path / names[0]).read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)


def test_a_step_that_stands_still_is_reported(caplog):
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        hook = v1.train.StepCounterHook(every_n_steps=1)
        with v1.train.SingularMonitoredSession([hook]) as session, caplog.at_level(logging.WARNING, "tensorflow"):
            session.run("global_step:0")
            session.run("global_step:0")
    assert "has not been increased" in caplog.text
