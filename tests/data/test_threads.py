"""Iterators that several threads share, and chains of transformations that are too long for the interpreter."""

from threading import Thread

import pytest

import tapeflow as tf


def test_threads_share_an_iterator():
    iterator = iter(tf.data.Dataset.range(2000).map(lambda x: x + 1).shuffle(50).batch(2))
    found, errors = [], []

    def take():
        try:
            for batch in iterator:
                found.extend(batch.numpy().tolist())
        except Exception as error:  # it is shown below
            errors.append(error)

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and sorted(found) == list(range(1, 2001))


def test_long_chains():
    dataset = tf.data.Dataset.range(3)
    for _ in range(1200):
        dataset = dataset.skip(0).map(lambda x: x + 1)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="get_next: the dataset has too many transformations"):
        next(iter(dataset))
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"Dataset\.cardinality"):
        dataset.cardinality()
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"Dataset\.__len__"):
        len(dataset)
