"""Datasets of datasets: errors in the middle, lengths of cycles and blocks, order."""

import time

import numpy as np
import pytest

import tapeflow as tf

VALUES = np.float32([1.0, np.nan, 2.0, np.nan, 3.0])


def outcomes(dataset):
    """The elements, with "error" for those that could not be made."""
    iterator, seen = iter(dataset), []
    while True:
        try:
            seen.append(next(iterator).numpy().tolist())
        except StopIteration:
            return seen
        except tf.errors.InvalidArgumentError:
            seen.append("error")


def checked(values=VALUES):
    return tf.data.Dataset.from_tensor_slices(values).map(lambda x: tf.debugging.check_numerics(x, "message"))


@pytest.mark.parametrize("calls", [None, 1, 3])
@pytest.mark.parametrize("cycle", [1, 2, 7])
def test_interleave_goes_on_after_an_error(cycle, calls):
    dataset = checked().interleave(tf.data.Dataset.from_tensors, cycle, 3, calls)
    assert outcomes(dataset) == [1.0, "error", 2.0, "error", 3.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.flat_map(tf.data.Dataset.from_tensors),
        lambda d: d.scan(0.0, lambda state, x: (state, x)),
        lambda d: d.repeat(1),
        lambda d: d.concatenate(tf.data.Dataset.range(0).map(lambda x: 1.0)),
        lambda d: d.enumerate().map(lambda i, x: x),
        lambda d: tf.data.Dataset.zip((d,)).map(lambda x: x),
        lambda d: d.filter(lambda x: True),
    ],
)
def test_a_stage_goes_on_after_an_error(change):
    assert outcomes(change(checked())) == [1.0, "error", 2.0, "error", 3.0]


def test_batches_go_on_after_an_error():
    assert outcomes(checked().batch(1)) == [[1.0], "error", [2.0], "error", [3.0]]


def test_numbers_count_elements_that_came():
    dataset = checked().enumerate().map(lambda i, x: i)
    assert outcomes(dataset) == [0, "error", 1, "error", 2]


@pytest.mark.parametrize("lengths", [{"cycle_length": 0}, {"cycle_length": 2**63 - 1}, {"block_length": 0}])
def test_lengths_are_checked(lengths):
    with pytest.raises(tf.errors.InvalidArgumentError, match=next(iter(lengths))):
        tf.data.Dataset.range(3).interleave(tf.data.Dataset.range, **lengths)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d.map(lambda x: 5 // x), "Iterator::Root::Map"),
        (lambda d: d.filter(lambda x: 5 // x > 0), "Iterator::Root::Filter"),
        (lambda d: d.flat_map(lambda x: tf.data.Dataset.range(5 // x)).batch(2), "Iterator::Root::Batch::FlatMap"),
        (lambda d: d.interleave(lambda x: tf.data.Dataset.range(5 // x)), "Iterator::Root::Interleave"),
    ],
)
def test_an_error_names_the_stage(change, path):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Error in user-defined function passed to .*{path}: "):
        list(change(tf.data.Dataset.range(3)))


@pytest.mark.parametrize("by_option", [False, True])
def test_without_determinism_a_slow_element_comes_later(by_option):
    def slow_first(x):
        if x == 0:
            time.sleep(0.3)
        return x

    dataset = tf.data.Dataset.range(20)
    dataset = dataset.map(
        lambda x: tf.numpy_function(slow_first, [x], tf.int64), 2, deterministic=None if by_option else False
    )
    options = tf.data.Options()
    options.deterministic = not by_option
    found = list(dataset.with_options(options).as_numpy_iterator())
    assert sorted(found) == list(range(20))
    assert found[0] != 0


def test_an_option_after_another_one_counts():
    first, second = tf.data.Options(), tf.data.Options()
    first.deterministic, second.deterministic = False, True
    calls = []

    def slow_first(x):
        calls.append(x)
        if x == 0:
            time.sleep(0.05)
        return x

    dataset = tf.data.Dataset.range(5).map(lambda x: tf.numpy_function(slow_first, [x], tf.int64), 2)
    dataset = dataset.with_options(first).with_options(second)
    assert list(dataset.as_numpy_iterator()) == list(range(5))


def test_the_function_of_map_may_not_end_the_elements():
    def end(x):
        raise StopIteration

    dataset = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(end, [x], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="OutOfRangeError"):
        list(dataset)
    v1 = tf.compat.v1.data.Dataset.range(3).map(lambda x: tf.numpy_function(end, [x], tf.int64))
    assert list(v1) == []


def test_prefetch_of_python_functions_runs_ahead():
    seen = []

    def note(x):
        seen.append(int(x))
        return x

    iterator = iter(tf.data.Dataset.range(100).map(lambda x: tf.numpy_function(note, [x], tf.int64)).prefetch(3))
    assert int(next(iterator)) == 0
    deadline = time.monotonic() + 10
    while len(seen) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert seen == [0, 1, 2, 3]


def test_custom_structures_are_elements():
    class Masked:
        def __init__(self, mask, value):
            self.mask, self.value = mask, value

        def __tf_flatten__(self):
            return (self.mask,), (self.value,)

        @classmethod
        def __tf_unflatten__(cls, metadata, components):
            return cls(metadata[0], components[0])

    dataset = tf.data.Dataset.range(3).map(lambda x: Masked(True, x)).map(lambda m: Masked(False, m.value + 1))
    assert isinstance(dataset.element_spec, Masked)
    assert [(m.mask, int(m.value)) for m in dataset] == [(False, 1), (False, 2), (False, 3)]


def _failing_at_three():
    def check(x):
        with tf.control_dependencies([tf.debugging.assert_none_equal(x, tf.constant(3, tf.int64))]):
            return tf.identity(x)

    return tf.data.Dataset.range(8).map(check)


@pytest.mark.parametrize("size", [2, 4, 20])
def test_a_shuffle_goes_on_after_an_error(size):
    elements = iter(_failing_at_three().shuffle(size, seed=1))
    seen, errors = [], 0
    while True:
        try:
            seen.append(int(next(elements)))
        except StopIteration:
            break
        except tf.errors.InvalidArgumentError:
            errors += 1
    assert errors == 1 and sorted(seen) == [0, 1, 2, 4, 5, 6, 7]


@pytest.mark.parametrize("deterministic", [None, True, False])
def test_batches_are_put_together_in_parallel(deterministic):
    dataset = tf.data.Dataset.range(10).map(lambda x: x * 2)
    batches = dataset.batch(3, num_parallel_calls=2, deterministic=deterministic)
    found = [batch.tolist() for batch in batches.as_numpy_iterator()]
    assert sorted(found) == [[0, 2, 4], [6, 8, 10], [12, 14, 16], [18]]
    assert deterministic is False or found == sorted(found)
    assert int(batches.cardinality()) == 4
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="num_parallel_calls"):
        dataset.batch(3, num_parallel_calls=0)
