"""Hooks that log, feed, write and compute at the end."""

import glob
import logging

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
