"""Monitored sessions: hooks, stopping, saving and restoring."""

import pytest

import tapeflow.compat.v1 as tf
from tapeflow import Graph
from tapeflow.errors import AbortedError, UnavailableError


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as graph:
        yield graph


def training():
    step = tf.train.get_or_create_global_step()
    weight = tf.get_variable("weight", initializer=1.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(weight**2, global_step=step)
    return train, weight, step


def run(train, **options):
    count = 0
    with tf.train.MonitoredTrainingSession(**options) as session:
        while not session.should_stop():
            session.run(train)
            count += 1
    return count


@pytest.mark.parametrize("stop", [{"num_steps": 3}, {"last_step": 3}])
def test_stops_at_a_step(stop):
    train, *_ = training()
    assert run(train, hooks=[tf.train.StopAtStepHook(**stop)]) == 3


def test_goes_on_from_a_folder(tmp_path):
    for last, expected in ((3, 3), (5, 2)):
        with Graph().as_default():
            train, *_ = training()
            stop = tf.train.StopAtStepHook(last_step=last)
            assert run(train, hooks=[stop], checkpoint_dir=str(tmp_path)) == expected
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-5")


def test_hooks_see_every_run(graph):
    told = []

    class Watch(tf.train.SessionRunHook):
        def begin(self):
            told.append("begin")

        def after_create_session(self, session, coord):
            told.append(graph.finalized)

        def before_run(self, run_context):
            told.append(run_context.original_args.fetches is weight)
            return tf.train.SessionRunArgs({"double": weight * 1.0 if not graph.finalized else doubled}, {place: 5.0})

        def after_run(self, run_context, run_values):
            told.append(run_values.results["double"])
            run_context.request_stop()

        def end(self, session):
            told.append("end")

    _, weight, _ = training()
    place = tf.placeholder(tf.float32, [])
    doubled = weight * 2.0 + place
    with tf.train.MonitoredSession(hooks=[Watch()]) as session:
        assert session.run(weight) == 1
        assert session.should_stop()
    assert told == ["begin", True, True, 7.0, "end"]


def test_nan_loss():
    loss = tf.constant(float("nan"))
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"):
        run(loss, hooks=[tf.train.NanTensorHook(loss)])


def test_stop_at_step_needs_one_number():
    with pytest.raises(ValueError, match="Exactly one of num_steps or last_step"):
        tf.train.StopAtStepHook()


def test_end_of_data_ends_the_session():
    training()
    with tf.train.SingularMonitoredSession():
        raise tf.errors.OutOfRangeError(None, None, "end of sequence")


def test_the_folder_has_the_graph_and_the_checkpoints_as_events(tmp_path):
    train, *_ = training()
    run(train, checkpoint_dir=str(tmp_path), hooks=[tf.train.StopAtStepHook(num_steps=2)])
    tf.summary.FileWriterCache.clear()
    assert 'name: "weight"' in (tmp_path / "graph.pbtxt").read_text()
    (path,) = tmp_path.glob("events*")
    events = list(tf.train.summary_iterator(path))
    assert any(event.graph_def for event in events)
    logs = [(event.step, event.session_log.status) for event in events if event.WhichOneof("what") == "session_log"]
    assert logs == [(0, tf.SessionLog.CHECKPOINT), (1, tf.SessionLog.START), (2, tf.SessionLog.CHECKPOINT)]


@pytest.mark.parametrize("kind", [AbortedError, UnavailableError])
def test_a_lost_worker_ends_the_session_not_the_training(kind):
    class LosesWorker(tf.train.SessionRunHook):
        created = runs = 0

        def after_create_session(self, session, coord):
            self.created += 1

        def after_run(self, run_context, run_values):
            self.runs += 1
            if self.runs == 2:
                raise kind(None, None, "lost")

    train, _, step = training()
    hook = LosesWorker()
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run(train)
        assert session.run(step) == 2  # the second run was made again, from the beginning
    assert hook.created == 2
    with pytest.raises(kind), tf.train.SingularMonitoredSession(hooks=[LosesWorker()]) as session:
        for _ in range(3):
            session.run(train)
