"""Input pipelines of queues: producers, readers, batches and the threads that run them."""

import os

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def tables(tmp_path):
    """Two files of a header and five lines."""
    paths = [str(tmp_path / f"{i}.csv") for i in range(2)]
    for i, path in enumerate(paths):
        with open(path, "w") as file:
            file.write("a,b\n" + "".join(f"{10 * i + k},{k}\n" for k in range(5)))
    return paths


def drained(*fetches):
    """The values of all runs until the end, for each of several fetches."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = []
        for fetch in fetches:
            found.append([])
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    found[-1].append(session.run(fetch))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
        assert not any(thread.is_alive() for thread in threads)
    return found


def test_lines_of_files_in_batches(tables):
    files = tf.train.string_input_producer(tables, num_epochs=2, shuffle=False)
    key, line = tf.TextLineReader(skip_header_lines=1).read(files)
    a, b = tf.decode_csv(line, [[0], [0]])
    batches = tf.train.batch([a, b], 3, allow_smaller_final_batch=True)
    assert (files.name, key.name, batches[0].name) == ("input_producer", "ReaderReadV2:0", "batch:0")
    assert [v.name for v in tf.local_variables()] == ["input_producer/limit_epochs/epochs:0"]
    names = [t.name for t in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == ["input_producer/fraction_of_32_full:0", "batch/fraction_of_32_full:0"]
    (found,) = drained(batches)
    values = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14] * 2
    assert np.concatenate([batch[0] for batch in found]).tolist() == values
    assert [len(batch[0]) for batch in found] == [3] * 6 + [2]


def test_keys_tell_the_place(tables, tmp_path):
    path = str(tmp_path / "x.bin")
    with open(path, "wb") as file:
        file.write(b"H" + bytes(range(8)) + b"F")
    files = [
        tf.train.string_input_producer(names, num_epochs=1, shuffle=False) for names in (tables[:1], [path], tables)
    ]
    lines = tf.TextLineReader().read(files[0])
    numbers = tf.FixedLengthRecordReader(4, header_bytes=1, footer_bytes=1).read(files[1])
    whole = tf.WholeFileReader().read(files[2])
    found = drained(lines, [numbers[0], tf.decode_raw(numbers[1], tf.uint8)], whole)
    assert [os.path.basename(key) for key, _ in found[0]] == [b"0.csv:%d" % n for n in range(1, 7)]
    assert found[0][1][1] == b"0,0"
    assert [(os.path.basename(key), value.tolist()) for key, value in found[1]] == [
        (b"x.bin:0", [0, 1, 2, 3]),
        (b"x.bin:1", [4, 5, 6, 7]),
    ]
    assert [(os.path.basename(key), len(text)) for key, text in found[2]] == [(b"0.csv", 24), (b"1.csv", 29)]


def test_examples_shuffled_by_several_threads(tmp_path):
    path = str(tmp_path / "x.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for k in range(8):
            number = tf.train.Feature(int64_list=tf.train.Int64List(value=[k]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"k": number})).SerializeToString())
    files = tf.train.string_input_producer([path], num_epochs=1)
    _, example = tf.TFRecordReader().read(files)
    parsed = tf.parse_single_example(example, {"k": tf.FixedLenFeature([], tf.int64)})
    batches = tf.train.shuffle_batch(parsed, 4, capacity=20, min_after_dequeue=2, num_threads=2)
    assert batches["k"].shape.as_list() == [4]
    (found,) = drained(batches)
    assert sorted(k for batch in found for k in batch["k"].tolist()) == list(range(8))


def test_rows_numbers_and_lists():
    x, y = tf.train.slice_input_producer([[1.0, 2.0, 3.0], [[1], [2], [3]]], num_epochs=1, shuffle=False)
    pairs = tf.train.batch({"x": x, "y": y}, 2, allow_smaller_final_batch=True)
    numbers = tf.train.range_input_producer(4, num_epochs=1, seed=1).dequeue()
    several = [tf.train.range_input_producer(3, num_epochs=1).dequeue() + shift for shift in (0, 10)]
    joined = tf.train.batch_join([[n] for n in several], 2)
    many = tf.train.batch(tf.train.limit_epochs(tf.constant([5, 6, 7, 8]), 1), 2, enqueue_many=True)
    odd = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    kept = tf.train.maybe_batch([odd], tf.equal(odd % 2, 1), 1)
    found = drained(pairs, numbers, joined, many, kept)
    assert [{key: value.tolist() for key, value in batch.items()} for batch in found[0]] == [
        {"x": [1.0, 2.0], "y": [[1], [2]]},
        {"x": [3.0], "y": [[3]]},
    ]
    assert sorted(found[1]) == [0, 1, 2, 3]
    assert sorted(n for batch in found[2] for n in batch.tolist()) == [0, 1, 2, 10, 11, 12]
    assert [batch.tolist() for batch in found[3]] == [[5, 6], [7, 8]]
    assert [batch.tolist() for batch in found[4]] == [[1], [3], [5]]


def test_padded_batches():
    length = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    rows = tf.train.batch([tf.ones([length])], 4, dynamic_pad=True)
    assert rows.shape.as_list() == [4, None]
    (found,) = drained(rows)
    assert found[0].tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_an_error_in_a_thread_is_told_at_the_join(tables):
    _, line = tf.TextLineReader().read(tf.train.string_input_producer(tables, num_epochs=1))
    numbers = tf.train.batch([tf.decode_csv(line, [[0], [0]])[0]], 1)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(coord=coordinator)
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
            session.run(numbers)
        with pytest.raises(tf.errors.InvalidArgumentError):
            coordinator.join(threads)


def test_training_from_queues():
    inputs = np.random.RandomState(0).randn(100, 3).astype("f")
    x, y = tf.train.slice_input_producer([inputs, inputs @ np.array([1.0, 2.0, 3.0], "f")])
    x, y = tf.train.shuffle_batch([x, y], 16, capacity=64, min_after_dequeue=16, num_threads=3)
    w = tf.Variable(tf.zeros([3]))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean((tf.reduce_sum(x * w, 1) - y) ** 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        for _ in range(120):
            session.run(train)
        coordinator.request_stop()
        coordinator.join(threads)
        np.testing.assert_allclose(session.run(w), [1, 2, 3], atol=1e-3)


def test_errors_are_tensorflows():
    with pytest.raises(ValueError, match="string_input_producer requires a non-null input tensor"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="capacity 10 must be bigger than min_after_dequeue 10"):
        tf.train.shuffle_batch([tf.constant(1)], 2, capacity=10, min_after_dequeue=10)
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        tf.train.batch([tf.placeholder(tf.float32)], 2)
    with pytest.raises(ValueError, match=r"Expected at least one tensor in batch\(\)"):
        tf.train.batch([], 2)
    with pytest.raises(ValueError, match="No default session is registered"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match=r"sess must be a `tf\.Session` object"):
        tf.train.start_queue_runners("session")
    with pytest.raises(ValueError, match="num_epochs must be > 0 not 0"):
        tf.train.limit_epochs(tf.constant(1), 0)
    with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
        tf.train.QueueRunner(tf.FIFOQueue(1, tf.int32), [])
