"""Staging areas: order, keys, parts, limits and errors."""

import threading

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf
from tapeflow._src.compat.v1.queues.staging_areas import MapStagingArea, StagingArea


@pytest.fixture
def session():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        yield session


def test_tuples_come_in_order(session):
    x = tf.placeholder(tf.float32, [])
    area = StagingArea([tf.float32, tf.float32], shapes=[[], []], names=["x", "y"])
    put, got, peek, size = area.put({"x": x, "y": x * 2.0}), area.get(), area.peek(1), area.size()
    assert area.name == "StagingArea" and put.name == "StagingArea_put" and size.name == "StagingArea_size:0"
    for value in (1.0, 2.0, 3.0):
        session.run(put, {x: value})
    assert session.run(peek) == {"x": 2.0, "y": 4.0} and session.run(size) == 3
    assert [session.run(got)["y"] for _ in range(2)] == [2.0, 4.0]
    session.run(area.clear())
    assert session.run(size) == 0


@pytest.mark.parametrize("limits", [{"capacity": 2}, {"memory_limit": 8}])
@pytest.mark.parametrize("kind", [StagingArea, MapStagingArea])
def test_a_full_area_lets_who_puts_wait(session, kind, limits):
    area = kind([tf.float32], shapes=[[]], **limits)
    key = tf.placeholder(tf.int64, [])
    value = [tf.cast(key, tf.float32)]
    put = area.put(value) if kind is StagingArea else area.put(key, value, [0])
    got, size, done = area.get(), area.size(), []

    def fill():
        for i in range(4):
            session.run(put, {key: i})
            done.append(i)

    thread = threading.Thread(target=fill)
    thread.start()
    while len(done) < 2:
        thread.join(0.01)
    thread.join(0.1)
    assert len(done) == 2 and session.run(size) == 2
    for _ in range(4):
        session.run(got)
    thread.join(20)
    assert session.run(size) == 0 and done == [0, 1, 2, 3]


def test_a_tuple_above_the_limit_never_fits(session):
    area = StagingArea([tf.float32], memory_limit=2)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"combined size of '4' bytes .* memory limit of '2'"):
        session.run(area.put([tf.constant(1.0)]))


def test_keys_get_their_components_one_by_one(session):
    area = MapStagingArea([tf.float32] * 3, names=["x", "v", "f"])
    key = tf.placeholder(tf.int64, [])
    ends, middle = area.put(key, {"x": tf.constant(1.0), "f": tf.constant(2.0)}), area.put(key, {"v": tf.constant(3.0)})
    sizes = [area.size(), area.incomplete_size()]
    session.run(ends, {key: 4})
    session.run(ends, {key: 5})
    session.run(middle, {key: 5})
    assert session.run(sizes) == [1, 1]
    assert session.run(area.peek(key, ["v"]), {key: 5}) == {"v": 3.0}
    found = area.get(key, ["x", "f"])
    assert session.run(found, {key: 5}) == (5, {"x": 1.0, "f": 2.0}) and session.run(sizes) == [1, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index '0' for key '5' has already been removed"):
        session.run(found, {key: 5})
    assert session.run(area.get(indices=["v"])) == (5, {"v": 3.0}) and session.run(sizes) == [0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index '0' for key '4' was already initialized"):
        session.run(ends, {key: 4})
    session.run(area.clear())
    assert session.run(sizes) == [0, 0]


def test_the_smallest_key_of_an_ordered_map_comes_first(session):
    area = MapStagingArea([tf.int64], shapes=[[]], ordered=True)
    key = tf.placeholder(tf.int64, [])
    put, got = area.put(key, [key], [0]), area.get()
    for i in (3, 1, 2, 1):
        session.run(put, {key: i})
    assert [session.run(got)[0] for _ in range(3)] == [1, 2, 3]


def test_wrong_arguments_are_refused(session):
    area, named = MapStagingArea([tf.float32]), StagingArea([tf.float32], names=["a"])
    key, one = tf.constant(1, tf.int64), tf.constant(1.0)
    for call, error, text in (
        (lambda: area.put(key, [one]), ValueError, "Indices must be supplied"),
        (lambda: area.put(key, [one], [0, 1]), ValueError, "Number of indices 2 doesn't match number of values 1"),
        (lambda: area.put(key, {"a": one}), ValueError, "must have names to enqueue a dictionary"),
        (lambda: area.put(key, [tf.constant(1)], [0]), ValueError, "Datatypes do not match"),
        (lambda: area.peek(key, []), ValueError, "Empty indices"),
        (lambda: area.peek(key, 3), TypeError, "Invalid indices type"),
        (lambda: area.peek(key, [0, "a"]), TypeError, "Mixed types"),
        (lambda: area.peek(key, ["a"]), ValueError, "was not created with names"),
        (lambda: named.put([one]), ValueError, "must enqueue a dictionary"),
        (lambda: named.put({"b": one}), ValueError, "do not match names of staging area"),
        (lambda: StagingArea([tf.float32], names=["a", "b"]), ValueError, "names must be the same length"),
        (lambda: StagingArea([tf.float32], shapes=[[], []]), ValueError, "shapes must be the same length"),
        (lambda: StagingArea([tf.float32], shared_name=3), ValueError, "shared_name must be a string"),
    ):
        with pytest.raises(error, match=text):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError, match="key must be an int64 scalar"):
        session.run(area.peek(tf.constant([1], tf.int64)))


def test_an_area_outside_of_graphs():
    area = StagingArea([tf.float32])
    area.put([tf.constant(np.float32(2.0))])
    assert int(area.size()) == 1 and float(area.get()[0]) == 2.0
