"""Threads that end together."""

import threading

import pytest

import tapeflow as tf


def test_one_thread_stops_all():
    coordinator = tf.train.Coordinator()
    count = []

    def work():
        while not coordinator.should_stop():
            count.append(None)
            if len(count) > 10:
                coordinator.request_stop()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    coordinator.join(threads)
    assert coordinator.joined
    assert not any(thread.is_alive() for thread in threads)


def test_exceptions_are_raised_by_join():
    coordinator = tf.train.Coordinator()
    with coordinator.stop_on_exception():
        raise ValueError("broken")
    with pytest.raises(ValueError, match="broken"):
        coordinator.join([])
    clean = tf.train.Coordinator()
    clean.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    clean.join([])
    clean.clear_stop()
    assert not clean.should_stop()
