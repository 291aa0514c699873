"""How monitored sessions and supervisors get their values, what their threads do, and how they end."""

import os

import pytest

import tapeflow
import tapeflow.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def counter():
    """A variable of the graph, the global step, and an operation that adds one to both."""
    v, step = tf.get_variable("v", initializer=1.0), tf.train.get_or_create_global_step()
    return v, step, tf.group(v.assign_add(1.0), step.assign_add(1))


def test_a_scaffold_initialises_in_its_own_way(graph):
    v, fed = tf.get_variable("v", initializer=1.0), tf.placeholder(tf.float32, [])
    w, local = tf.get_variable("w", initializer=0.0), tf.get_local_variable("l", initializer=3.0)
    seen = []
    scaffold = tf.train.Scaffold(
        init_op=tf.group(v.initializer, w.assign(fed)),
        init_feed_dict={fed: 5.0},
        init_fn=lambda scaffold, session: seen.append((scaffold, session.run(w))),
    )
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
        assert session.run([v, w, local]) == [1.0, 5.0, 3.0]
        assert graph.finalized
    assert seen == [(scaffold, 5.0)] and not graph.finalized and scaffold.saver is not None
    again = tf.train.Scaffold(copy_from_scaffold=scaffold)
    assert again.init_op is scaffold.init_op and again.ready_op is scaffold.ready_op


def test_what_is_not_initialised_is_told():
    tf.get_variable("v", initializer=1.0)
    creator = tf.train.ChiefSessionCreator(tf.train.Scaffold(init_op=tf.no_op()))
    with pytest.raises(RuntimeError, match=r"did not make model ready for local_init.*Variables not initialized: v"):
        tf.train.MonitoredSession(creator)


def test_session_manager(tmp_path):
    v = tf.get_variable("v", initializer=1.0)
    start, missing, saver = tf.global_variables_initializer(), tf.report_uninitialized_variables(), tf.train.Saver()
    session = tf.train.SessionManager().prepare_session("", init_op=start)
    session.run(v.assign(4.0))
    manager = tf.train.SessionManager(ready_op=missing)
    assert not manager.recover_session("", saver, str(tmp_path))[1]
    saver.save(session, str(tmp_path / "model"), global_step=3)
    recovered, done = manager.recover_session("", saver, str(tmp_path))
    assert done and recovered.run(v) == 4.0 and saver.last_checkpoints == [str(tmp_path / "model-3")]
    with pytest.raises(RuntimeError, match=r"did not make model ready\.  Init op: NoOp"):
        manager.prepare_session("", init_op=tf.no_op())
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager.prepare_session("")


def test_listeners_see_each_checkpoint(tmp_path):
    _, _, both = counter()
    seen = []

    class Listener(tf.train.CheckpointSaverListener):
        def before_save(self, session, step):
            seen.append(("before", step))

        def after_save(self, session, step):
            seen.append(("after", step))
            return step >= 4

        def end(self, session, step):
            seen.append(("end", step))

    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[Listener()])
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        while not session.should_stop():
            session.run(both)
    steps = [(when, step) for step in (0, 2, 4) for when in ("before", "after")]
    assert seen == [*steps, ("end", 4)]


def test_training_session_writes_summaries_and_speed(tmp_path):
    _, _, both = counter()
    tf.summary.scalar("x", 1.0)
    stop = tf.train.StopAtStepHook(last_step=5)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[stop], save_checkpoint_secs=None, save_summaries_steps=2,
        log_step_count_steps=2,
    ) as session:  # fmt: skip
        while not session.should_stop():
            session.run(both)
    names = os.listdir(tmp_path)
    assert not any(name.endswith(".index") for name in names)
    (events,) = (str(tmp_path / name) for name in names if "tfevents" in name)
    found = [(event.step, value.tag) for event in tf.train.summary_iterator(events) for value in event.summary.value]
    assert sorted(found) == [(1, "x"), (3, "global_step/sec"), (3, "x"), (5, "global_step/sec"), (5, "x")]


def test_a_monitored_session_fills_queues():
    number = tf.train.range_input_producer(3, num_epochs=2, shuffle=False).dequeue()
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(int(session.run(number)))
    assert found == [0, 1, 2, 0, 1, 2]


def test_hooks_do_not_end_after_an_error():
    v, ended = tf.get_variable("v", initializer=1.0), []

    class Hook(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            assert isinstance(coord, tf.train.Coordinator)

        def end(self, session):
            ended.append(session.run(v))

    with pytest.raises(ValueError, match="broken"), tf.train.MonitoredSession(hooks=[Hook()]) as session:
        raise ValueError("broken")
    assert ended == []
    session = tf.train.MonitoredSession(hooks=[Hook()])
    session.close()
    assert ended == [1.0] and session.should_stop()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(v)


def test_a_supervisor_saves_and_restores(tmp_path, graph):
    v, step, both = counter()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=1000)
    assert graph.finalized and supervisor.save_path == str(tmp_path / "model.ckpt")
    with supervisor.managed_session() as session:
        for _ in range(3):
            assert not supervisor.should_stop()
            session.run(both)
        supervisor.saver.save(session, supervisor.save_path, global_step=step)
    assert supervisor.should_stop()
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-3")
    with tapeflow.Graph().as_default():
        v, step, _ = counter()
        with tf.train.Supervisor(logdir=str(tmp_path)).managed_session() as session:
            assert session.run([v, step]) == [4.0, 3]


def test_a_supervisor_raises_errors_and_ends_quietly():
    v = tf.get_variable("v", initializer=1.0)
    change = v.assign(7.0)
    supervisor = tf.train.Supervisor(init_fn=lambda session: session.run(change), summary_op=None)
    with supervisor.managed_session() as session:
        assert session.run(v) == 7.0
    with pytest.raises(ValueError, match="inside"), supervisor.managed_session():
        raise ValueError("inside")
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "end")


def test_loops_of_threads():
    calls = []

    class Loop(tf.train.LooperThread):
        def start_loop(self):
            calls.append("start")

        def run_loop(self):
            calls.append("run")
            coordinator.request_stop()

        def stop_loop(self):
            calls.append("stop")

    coordinator = tf.train.Coordinator()
    thread = Loop(coordinator, 0.01)
    thread.start()
    coordinator.join([thread])
    assert calls == ["start", "run", "stop"]


def test_a_graph_that_was_finalized_before_stays_so(graph):
    v = tf.get_variable("v", initializer=1.0)
    tf.train.Scaffold().finalize()
    assert graph.finalized
    with tf.train.MonitoredSession() as session:
        assert session.run(v) == 1.0
    assert graph.finalized
