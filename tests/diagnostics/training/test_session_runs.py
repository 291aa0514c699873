"""Sessions of TensorFlow 1 under a doctor: the course of the loss, and values that watching does not change."""

import numpy as np

import tapeflow as tf

v1 = tf.compat.v1


def train(doctor=None):
    """Losses of a few steps with dropout, which draws random numbers in every run."""
    losses = []
    with tf.Graph().as_default():
        v1.set_random_seed(3)
        x = v1.placeholder(tf.float32, [None, 4])
        w = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(v1.nn.dropout(x, keep_prob=0.5), w) - x[:, :1]))
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        data = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(6):
                losses.append(session.run([step, loss], {x: data})[1])
    return losses


def test_the_course_of_the_loss_is_seen():
    with tf.debugging.Doctor() as doctor:
        losses = train()
    (course,) = doctor.report()["courses"]
    assert course["steps"] == 6
    assert course["first_loss"] == losses[0]
    assert course["last_loss"] == losses[-1]


def test_watching_does_not_change_the_values():
    with tf.debugging.Doctor():
        watched = train()
    assert watched == train()


def test_a_run_without_the_training_step_is_no_step():
    with tf.Graph().as_default(), tf.debugging.Doctor() as doctor:
        w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
        loss = tf.reduce_sum(tf.square(w))
        v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(loss)
    assert doctor.report()["courses"] == []


def test_runs_with_hooks_are_watched():
    """Hooks fetch by themselves: the structure of a run has hooks and names as its keys."""

    class Reads(v1.train.SessionRunHook):
        def before_run(self, run_context):
            return v1.train.SessionRunArgs(loss)

    with tf.Graph().as_default(), tf.debugging.Doctor() as doctor:
        w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
        loss = tf.reduce_sum(tf.square(w))
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with v1.train.MonitoredSession(hooks=[Reads()]) as session:
            for _ in range(4):
                session.run(step)
    assert doctor.verdict == "healthy"
