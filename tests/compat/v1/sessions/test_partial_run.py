"""Runs in parts: each operation once, and errors for what was not announced."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_parts_share_what_ran_before():
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
        count = v1.get_variable("count", initializer=0.0, use_resource=True)
        session.run(count.initializer)
        with tf.control_dependencies([count.assign_add(1.0)]):
            drawn = a + tf.random.uniform([])
        scaled = drawn * b
        handle = session.partial_run_setup([drawn, scaled], [a, b])
        first = session.partial_run(handle, drawn, {a: 1.0})
        assert session.partial_run(handle, scaled, {b: 2.0}) == pytest.approx(2.0 * first)
        assert session.run(count) == 1.0


def test_what_was_not_announced_is_refused():
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
        doubled, tripled = 2.0 * a, 3.0 * a
        handle = session.partial_run_setup([doubled], [a])
        with pytest.raises(tf.errors.InvalidArgumentError, match="was not specified in partial_run_setup"):
            session.partial_run(handle, doubled, {a: 1.0, b: 1.0})
        handle = session.partial_run_setup([doubled], [a])
        with pytest.raises(tf.errors.InvalidArgumentError, match="was not specified in partial_run_setup"):
            session.partial_run(handle, tripled, {a: 1.0})
        handle = session.partial_run_setup([doubled, tripled], [a])
        session.partial_run(handle, doubled, {a: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been fed"):
            session.partial_run(handle, tripled, {a: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been fetched"):
            session.partial_run(handle, doubled)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least one target"):
            session.partial_run_setup([], [a])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Must run 'partial_run_setup'"):
            session.partial_run("other", doubled)
