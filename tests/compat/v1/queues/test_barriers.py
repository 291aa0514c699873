"""Barriers: keys whose components come one by one, their order, closing, and their errors."""

import threading

import pytest

import tapeflow
import tapeflow.compat.v1 as tf
from tapeflow._src.compat.v1.queues.barriers import Barrier


@pytest.fixture
def session():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        yield session


def test_complete_tuples_come_in_the_order_of_their_keys_first_component(session):
    barrier = Barrier((tf.string, tf.int32), shapes=((), ()), name="B")
    session.run(barrier.insert_many(0, ["k1", "k2"], ["a", "b"]))
    session.run(barrier.insert_many(1, ["k1"], [1]))
    session.run(barrier.insert_many(0, ["k3"], ["c"]))
    session.run(barrier.insert_many(1, ["k3"], [3]))
    assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [2, 1]
    session.run(barrier.insert_many(1, ["k2"], [2]))
    taken = barrier.take_many(2)
    assert taken.indices.name == "B_BarrierTakeMany:0" and taken.values[1].shape == [2]
    places, keys, values = session.run(taken)
    assert places.tolist() == [-(2**63)] * 2 and sorted(keys) == [b"k1", b"k2"]
    assert dict(zip(keys, values[1])) == {b"k1": 1, b"k2": 2} and dict(zip(keys, values[0]))[b"k2"] == b"b"
    last = session.run(barrier.take_many(1))
    assert last.indices.tolist() == [-(2**63) + 1] and last.keys.tolist() == [b"k3"]
    nothing = session.run(barrier.take_many(0))
    assert nothing.keys.shape == (0,) and nothing.values[1].shape == (0,)


def test_a_closed_barrier_takes_components_of_known_keys(session):
    barrier = Barrier((tf.float32, tf.float32), shapes=((), ()), name="B")
    session.run(barrier.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0]))
    session.run(barrier.insert_many(1, ["a"], [10.0]))
    session.run(barrier.close())
    few = session.run(barrier.take_many(3, allow_small_batch=True))
    assert few.keys.tolist() == [b"a"]
    with pytest.raises(tf.errors.CancelledError, match="is closed, but attempted to insert a brand new key: d"):
        session.run(barrier.insert_many(0, ["d"], [4.0]))
    rest = barrier.take_many(3, allow_small_batch=True)
    assert rest.keys.shape.as_list() == [None]
    session.run(barrier.insert_many(1, ["b", "c"], [20.0, 30.0]))
    with pytest.raises(tf.errors.OutOfRangeError, match=r"insufficient elements \(requested 4, total size 2\)"):
        session.run(barrier.take_many(4))
    assert session.run(rest).values[1].tolist() == [20.0, 30.0]


def test_a_cancelled_barrier_takes_nothing(session):
    barrier = Barrier((tf.float32, tf.float32), shapes=((), ()), name="B")
    session.run(barrier.insert_many(0, ["a"], [1.0]))
    session.run(barrier.close(cancel_pending_enqueues=True))
    for keys, values in ((["a"], [1.0]), ([], [])):
        with pytest.raises(tf.errors.CancelledError, match="Barrier '_0_B' is closed"):
            session.run(barrier.insert_many(1, keys, values))
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed"):
        session.run(barrier.take_many(1))


def test_a_taker_waits_until_tuples_are_complete(session):
    barrier = Barrier(tf.float32, shapes=())
    taken, insert = barrier.take_many(2), [barrier.insert_many(0, [key], [1.0]) for key in "ab"]
    found = []
    thread = threading.Thread(target=lambda: found.append(session.run(taken)))
    thread.start()
    for part in insert:
        session.run(part)
    thread.join(20)
    assert found[0].keys.tolist() == [b"a", b"b"]


def test_wrong_insertions_are_refused(session):
    barrier = Barrier((tf.float32, tf.float32), name="B")
    session.run(barrier.insert_many(0, ["a"], [1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Key a already has a value for component 0"):
        session.run(barrier.insert_many(0, ["a"], [1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tensors with no elements are not supported"):
        session.run(barrier.insert_many(0, ["b"], [[]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="one row for each key"):
        session.run(barrier.insert_many(0, ["b", "c"], [1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="below 2; got 2"):
        barrier.insert_many(2, ["b"], [1.0])
    with pytest.raises(ValueError, match=r"Empty tensors are not supported, but received shape '\(0,\)' at index 1"):
        Barrier((tf.float32, tf.float32), shapes=((1,), (0,)))


def test_barriers_of_one_shared_name_are_one(session):
    first, second = (Barrier(tf.float32, shapes=(), shared_name="s", name=name) for name in "ab")
    session.run(first.insert_many(0, ["k"], [5.0]))
    assert session.run(second.take_many(1)).values[0].tolist() == [5.0]


def test_a_barrier_outside_of_graphs():
    barrier = Barrier(tf.float32, shapes=())
    barrier.insert_many(0, ["k"], [5.0])
    assert int(barrier.ready_size()) == 1 and barrier.take_many(1).values[0].numpy().tolist() == [5.0]
