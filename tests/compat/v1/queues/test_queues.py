"""Queues: order, waiting, closing, what each session has, and their errors."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf
from tapeflow._src import _core
from tapeflow._src.compat.v1.queues.queues import PerSession


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def in_thread(run):
    """Runs a function in a thread; what it gave or raised is in the list once the thread has ended."""
    found = []

    def work():
        try:
            found.append(run())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, found


def test_elements_come_in_order_and_a_closed_queue_has_an_end():
    queue = tf.FIFOQueue(3, [tf.float32, tf.int32], shapes=[[], [2]], name="q")
    one, more = queue.enqueue([1.0, [1, 2]]), queue.enqueue_many([[2.0, 3.0], [[3, 4], [5, 6]]])
    taken, rows, rest = queue.dequeue(), queue.dequeue_many(2), queue.dequeue_up_to(2)
    assert [t.name for t in (taken[0], rows[0], rest[0])] == ["q_Dequeue:0", "q_DequeueMany:0", "q_DequeueUpTo:0"]
    assert (one.name, more.name) == ("q_enqueue", "q_EnqueueMany")
    assert rows[1].shape.as_list() == [2, 2] and rest[1].shape.as_list() == [None, 2]
    with tf.Session() as session:
        session.run([one, more])
        assert session.run(queue.size()) == 3
        assert session.run(taken)[1].tolist() == [1, 2]
        assert [part.tolist() for part in session.run(rows)] == [[2.0, 3.0], [[3, 4], [5, 6]]]
        session.run(one)
        assert not session.run(queue.is_closed())
        session.run(queue.close())
        assert session.run(queue.is_closed())
        assert session.run(rest)[0].tolist() == [1.0]
        with pytest.raises(
            tf.errors.OutOfRangeError, match=r"FIFOQueue '_0_q' is closed and has insufficient elements"
        ):
            session.run(taken)
        with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 2, current size 0"):
            session.run(rows)
        with pytest.raises(tf.errors.CancelledError, match="FIFOQueue '_0_q' is closed"):
            session.run(one)


def test_too_few_elements_of_a_closed_queue_stay_there():
    queue = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    with tf.Session() as session:
        session.run(queue.enqueue_many([[1, 2]]))
        session.run(queue.close())
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue_many(3))
        assert session.run(queue.dequeue_many(2)).tolist() == [1, 2]


def test_names_and_shapes_are_checked():
    queue = tf.FIFOQueue(3, ["float", "int32"], names=["a", "b"], shapes=[[], [2]])
    assert sorted(queue.dequeue()) == ["a", "b"]
    with pytest.raises(ValueError, match="You must enqueue a dictionary"):
        queue.enqueue([1.0, [2, 3]])
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(2,\) are incompatible"):
        queue.enqueue({"a": 1.0, "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="Queue must have names"):
        tf.FIFOQueue(3, tf.float32).enqueue({"a": 1.0})
    with pytest.raises(ValueError, match="must have the same length as dtypes"):
        tf.FIFOQueue(3, [tf.float32, tf.float32], shapes=[[]])


def test_random_order_leaves_some_until_the_end():
    queue = tf.RandomShuffleQueue(20, 4, tf.int32, shapes=[[]], seed=1)
    taken = queue.dequeue()
    with tf.Session() as session:
        session.run(queue.enqueue_many([list(range(12))]))
        first = [int(session.run(taken)) for _ in range(8)]
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(taken, options=tf.RunOptions(timeout_in_ms=20))
        session.run(queue.close())
        rest = session.run(queue.dequeue_many(4)).tolist()
    assert sorted(first + rest) == list(range(12)) and first != sorted(first)


def test_padding_and_priority():
    padded = tf.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None], [None]])
    sorted_queue = tf.PriorityQueue(5, [tf.string], [[]])
    with tf.Session() as session:
        for length in (1, 3):
            session.run(padded.enqueue([[7] * length, ["x"] * length]))
        numbers, texts = session.run(padded.dequeue_many(2))
        assert numbers.tolist() == [[7, 0, 0], [7, 7, 7]] and texts.tolist() == [[b"x", b"", b""], [b"x"] * 3]
        session.run(sorted_queue.enqueue_many([[3, 1, 2], ["c", "a", "b"]]))
        assert [session.run(sorted_queue.dequeue())[1] for _ in range(3)] == [b"a", b"b", b"c"]


def test_each_session_has_its_own_elements():
    queue = tf.FIFOQueue(3, tf.int32)
    put, size = queue.enqueue(1), queue.size()
    with tf.Session() as a, tf.Session() as b:
        a.run(put)
        assert (a.run(size), b.run(size)) == (1, 0)


def test_a_taker_waits_for_elements():
    queue = tf.FIFOQueue(3, tf.int32, shapes=[[]])
    put, taken = queue.enqueue_many([[1, 2]]), queue.dequeue_many(4)
    with tf.Session() as session:
        thread, found = in_thread(lambda: session.run(taken))
        session.run(put)
        time.sleep(0.02)
        assert thread.is_alive()
        session.run(put)
        thread.join(10)
        assert found[0].tolist() == [1, 2, 1, 2]


def test_those_who_wait_are_sent_away():
    queue = tf.FIFOQueue(1, tf.int32)
    put, taken, cancel = queue.enqueue(1), queue.dequeue(), queue.close(cancel_pending_enqueues=True)
    with tf.Session() as session:
        session.run(put)
        thread, found = in_thread(lambda: session.run(put))
        time.sleep(0.05)
        session.run(cancel)
        thread.join(10)
        assert isinstance(found[0], tf.errors.CancelledError) and "Enqueue operation was cancelled" in str(found[0])
        assert session.run(taken) == 1
    session = tf.Session()
    thread, found = in_thread(lambda: session.run(taken))
    time.sleep(0.05)
    session.close()
    thread.join(10)
    assert isinstance(found[0], tf.errors.CancelledError) and "Dequeue operation was cancelled" in str(found[0])


def test_a_session_can_have_a_time_limit():
    taken = tf.FIFOQueue(1, tf.int32).dequeue()
    session = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20))
    with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out waiting for notification"):
        session.run(taken)


def test_a_lone_thread_does_not_wait_for_ever():
    program = """
import tapeflow.compat.v1 as tf
tf.disable_v2_behavior()
name = tf.train.string_input_producer(["a"]).dequeue()
try:
    tf.Session().run(name)
except tf.errors.DeadlineExceededError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "start_queue_runners" in done.stdout, done.stderr


def test_queues_work_eagerly():
    stage = _core.swap_stage(None)
    try:
        queue = tapeflow.queue.FIFOQueue(2, tapeflow.int32, shapes=[[]])
        queue.enqueue(3)
        queue.enqueue(4)
        assert int(queue.size()) == 2
        assert queue.dequeue_many(2).numpy().tolist() == [3, 4]
    finally:
        _core.swap_stage(stage)


def test_tensors_that_are_taken_flow_on():
    queue = tf.FIFOQueue(2, tf.float32, shapes=[[2]])
    w = tf.Variable([1.0, 2.0])
    loss = tf.reduce_sum(queue.dequeue() * w)
    (dw,) = tf.gradients(loss, w)
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(queue.enqueue([[3.0, 4.0]]))
        value, gradient = session.run([loss, dw])
    assert value == 11.0
    np.testing.assert_array_equal(gradient, [3.0, 4.0])


def test_threads_that_come_first_together_share_the_elements():
    made = []

    def make():
        time.sleep(0.01)
        made.append(0)
        return made

    per_session = PerSession(make)
    threads = [threading.Thread(target=per_session.now) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_queues_of_one_shared_name_are_one_queue_in_a_session():
    with tf.Graph().as_default():
        first, second = (tf.queue.FIFOQueue(2, tf.float32, shared_name="both", name=name) for name in "ab")
        apart = tf.queue.FIFOQueue(2, tf.float32, shared_name="other")
        put, sizes, taken = first.enqueue(3.0), [first.size(), second.size(), apart.size()], second.dequeue()
        with tf.compat.v1.Session() as session:
            session.run(put)
            assert session.run(sizes) == [1, 1, 0]
            assert session.run(taken) == 3.0
            assert session.run(sizes) == [0, 0, 0]
            session.run(put)
        with tf.compat.v1.Session() as session:
            assert session.run(sizes) == [0, 0, 0]


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("capacity", lambda: tf.queue.FIFOQueue(3, tf.float32, shared_name="q")),
        ("component types", lambda: tf.queue.FIFOQueue(2, tf.int32, shared_name="q")),
        ("component shapes", lambda: tf.queue.FIFOQueue(2, tf.float32, [[1]], shared_name="q")),
        ("kind", lambda: tf.queue.RandomShuffleQueue(2, 0, tf.float32, shared_name="q")),
    ],
)
def test_queues_of_one_shared_name_must_be_alike(what, other):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        queue, different = tf.queue.FIFOQueue(2, tf.float32, shared_name="q"), other()
        session.run(queue.size())
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=f"Shared queue 'q' has {what} .* but requested {what}"
        ):
            session.run(different.size())


def test_batches_come_from_the_queue_of_their_shared_name():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        batch = tf.compat.v1.train.batch([tf.constant(1)], 2, shared_name="rows")
        queue = tf.queue.FIFOQueue(32, tf.int32, [[]], shared_name="rows")
        session.run(queue.enqueue_many([[5, 6]]))
        assert session.run(batch).tolist() == [5, 6]
