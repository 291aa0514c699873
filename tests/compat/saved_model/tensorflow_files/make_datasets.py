"""Writes `datasets.zip` with TensorFlow 2.21: functions that make datasets and read them.

.peers/bin/python tests/compat/saved_model/tensorflow_files/make_datasets.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from make import zipped

Dataset = tf.data.Dataset
ROWS = [tf.TensorSpec([None, 2])]


def total(dataset):
    return dataset.reduce(0.0, lambda state, x: state * 0.5 + tf.reduce_sum(x))


class Datasets(tf.Module):
    """One function for each stage."""

    def __init__(self) -> None:
        super().__init__()
        self.v = tf.Variable(2.0)

    @tf.function(input_signature=ROWS)
    def single(self, x):
        return Dataset.from_tensor_slices(x).map(lambda row: row * self.v).batch(10).get_single_element()

    @tf.function(input_signature=ROWS)
    def padded(self, x):
        grown = Dataset.from_tensor_slices(x).map(lambda row: tf.fill([tf.cast(row[0], tf.int32)], row[1]))
        return grown.padded_batch(10, padding_values=-1.0).get_single_element()

    @tf.function(input_signature=ROWS)
    def windows(self, x):
        found = Dataset.from_tensor_slices(x).window(2, 1, drop_remainder=True)
        return total(found.flat_map(lambda window: window.batch(2)))

    @tf.function(input_signature=ROWS)
    def interleaved(self, x):
        return total(Dataset.from_tensor_slices(x).interleave(Dataset.from_tensor_slices, cycle_length=2))

    @tf.function(input_signature=ROWS)
    def unbatched(self, x):
        return total(Dataset.from_tensor_slices(x).batch(2).unbatch().shard(2, 1))

    @tf.function(input_signature=ROWS)
    def unique(self, x):
        return Dataset.from_tensor_slices(tf.cast(x[:, 0], tf.int64)).unique().batch(10).get_single_element()

    @tf.function(input_signature=ROWS)
    def count(self, x):
        return Dataset.from_tensor_slices(x).batch(2).cardinality()


def main() -> None:
    module = Datasets()
    x = np.array([[1.0, 5.0], [3.0, 6.0], [1.0, 7.0]], np.float32)
    names = ["single", "padded", "windows", "interleaved", "unbatched", "unique", "count"]
    expected = {name: np.asarray(getattr(module, name)(x)) for name in names}
    with tempfile.TemporaryDirectory() as name:
        tf.saved_model.save(module, name)
        zipped(Path(name), "datasets", {"x": x, **expected})


if __name__ == "__main__":
    main()
