"""Elements that threads compute ahead: their order, errors, end, and the end of the threads."""

import gc
import os
import sys
import threading
import time

import numpy as np
import pytest

import tapeflow as tf

PATIENCE = 30.0  # seconds; a test that waits so long has failed


def slow(count: int, log: list[int] | None = None):
    """Numbers that take long enough for a thread."""
    for i in range(count):
        time.sleep(0.001)
        if log is not None:
            log.append(i)
        yield np.int64(i)


def slow_dataset(count: int, log: list[int] | None = None) -> tf.data.Dataset:
    return tf.data.Dataset.from_generator(lambda: slow(count, log), output_signature=tf.TensorSpec([], tf.int64))


def data_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tapeflow-data"]


def wait_until(holds) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.005)
    return holds()


def sleeping(x):
    """`x` doubled by Python that waits, as for a file."""

    def double(value):
        time.sleep(0.002)
        return value * 2

    y = tf.numpy_function(double, [x], tf.int64)
    y.set_shape([])
    return y


def test_prefetch_computes_ahead():
    log: list[int] = []
    iterator = iter(slow_dataset(40, log).prefetch(5))
    taken = [int(next(iterator)) for _ in range(4)]
    assert taken == [0, 1, 2, 3]
    assert wait_until(lambda: len(log) >= 9), "nothing was computed ahead"
    time.sleep(0.02)
    assert len(log) == 9, "more than the buffer was computed ahead"
    assert [int(x) for x in iterator] == list(range(4, 40))


def test_quick_elements_need_no_thread():
    before = len(data_threads())
    iterator = iter(tf.data.Dataset.range(1000).batch(2).prefetch(tf.data.AUTOTUNE))
    for _ in range(50):
        next(iterator)
    assert len(data_threads()) == before


@pytest.mark.parametrize("calls", [2, tf.data.AUTOTUNE, 7])
def test_parallel_map_keeps_the_order(calls):
    dataset = tf.data.Dataset.range(40).map(sleeping, num_parallel_calls=calls)
    assert [int(x) for x in dataset] == [2 * i for i in range(40)]
    assert [int(x) for x in dataset] == [2 * i for i in range(40)]


def test_parallel_map_without_order_gives_each_element_once():
    dataset = tf.data.Dataset.range(60).map(sleeping, num_parallel_calls=4, deterministic=False)
    assert sorted(int(x) for x in dataset) == [2 * i for i in range(60)]


def test_parallel_map_runs_calls_together():
    both = threading.Barrier(2, timeout=PATIENCE)

    def meet(value):
        time.sleep(0.001)
        if value >= 10:  # threads have started by then
            both.wait()
        return value

    dataset = tf.data.Dataset.range(20).map(lambda x: tf.numpy_function(meet, [x], tf.int64), num_parallel_calls=2)
    assert [int(x) for x in dataset] == list(range(20))


def test_interleave_in_threads_keeps_the_order():
    def opened(i):
        return slow_dataset(6).map(lambda x: x + 100 * i)

    plain = tf.data.Dataset.range(4).interleave(opened, cycle_length=2, block_length=2)
    threaded = tf.data.Dataset.range(4).interleave(opened, cycle_length=2, block_length=2, num_parallel_calls=2)
    assert [int(x) for x in threaded] == [int(x) for x in plain]


def test_an_error_comes_in_its_place_and_others_after_it():
    def check(value):
        time.sleep(0.001)
        if value == 5:
            raise ValueError("five")
        return value

    dataset = tf.data.Dataset.range(9).map(lambda x: tf.numpy_function(check, [x], tf.int64), num_parallel_calls=3)
    for pipeline in (dataset, dataset.prefetch(2)):
        iterator, seen = iter(pipeline), []
        while True:
            try:
                seen.append(int(next(iterator)))
            except StopIteration:
                break
            except tf.errors.InvalidArgumentError:
                seen.append(-1)
        assert seen == [0, 1, 2, 3, 4, -1, 6, 7, 8]
        with pytest.raises(StopIteration):
            next(iterator)


def test_threads_end_with_their_iterator():
    assert wait_until(lambda: not data_threads())
    interval = sys.getswitchinterval()
    iterator = iter(slow_dataset(10**6).prefetch(3))
    for _ in range(4):
        next(iterator)
    assert data_threads()
    del iterator
    gc.collect()
    assert wait_until(lambda: not data_threads())
    assert sys.getswitchinterval() == interval


def test_random_numbers_in_a_parallel_map_are_the_same_in_every_run():
    def noisy(x):
        time.sleep(0)
        return (
            tf.random.stateless_uniform([], [1, 2]) + tf.random.uniform([], seed=7) + tf.cast(sleeping(x), tf.float32)
        )

    def numbers():
        tf.random.set_seed(3)
        return [float(x) for x in tf.data.Dataset.range(12).map(noisy, num_parallel_calls=4)]

    assert numbers() == numbers()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_is_told_to_make_its_own_iterator():
    iterator = iter(slow_dataset(100).prefetch(2))
    for _ in range(5):
        next(iterator)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
            os.write(write, b"an element")
        except tf.errors.FailedPreconditionError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert "make a new iterator in the child process" in pipe.read()
    os.waitpid(child, 0)
    assert int(next(iterator)) == 5


def test_a_loop_of_a_graph_reads_ahead():
    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for x in dataset:
            result += x
        return result

    assert int(total(slow_dataset(20).prefetch(4))) == sum(range(20))


@pytest.mark.parametrize("calls", [0, -2])
def test_num_parallel_calls_must_be_positive(calls):
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_parallel_calls"):
        tf.data.Dataset.range(3).map(lambda x: x, num_parallel_calls=calls)
