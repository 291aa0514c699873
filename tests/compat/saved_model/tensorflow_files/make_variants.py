"""Writes `variants.zip` with TensorFlow 2.21: loops over the rows of ragged and sparse tensors, and their words.

.peers/bin/python tests/compat/saved_model/tensorflow_files/make_variants.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from make import zipped

ROWS = tf.RaggedTensorSpec([None, None], tf.float32, ragged_rank=1)
BLOCKS = tf.RaggedTensorSpec([None, None, None], tf.float32, ragged_rank=2)


class Variants(tf.Module):
    """Functions whose loops keep a variant for each row."""

    @tf.function(input_signature=[ROWS])
    def sums(self, x):
        return tf.map_fn(lambda row: tf.reduce_sum(row * row), x, fn_output_signature=tf.float32)

    @tf.function(input_signature=[ROWS])
    def doubled(self, x):
        return tf.map_fn(lambda row: row * 2.0, x, fn_output_signature=tf.RaggedTensorSpec([None], tf.float32, 0))

    @tf.function(input_signature=[BLOCKS])
    def sines(self, x):
        return tf.map_fn(tf.sin, x, fn_output_signature=tf.RaggedTensorSpec([None, None], tf.float32, 1))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def ranges(self, x):
        return tf.map_fn(tf.range, x, fn_output_signature=tf.RaggedTensorSpec([None], tf.int32, 0))

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
    def sparse(self, x):
        return tf.map_fn(tf.sparse.reduce_sum, x, fn_output_signature=tf.float32)

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string, ragged_rank=1)])
    def words(self, x):
        return tf.strings.reduce_join(x, -1, separator="-")

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])
    def slope(self, x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda _: True, lambda y: [tf.sin(y) * x], [x], maximum_iterations=n)[0]
        return tape.gradient(y, x)


def main() -> None:
    module = Variants()
    rows = tf.ragged.constant([[1.0, 2.0], [3.0], [], [4.0, 5.0, 6.0]])
    blocks = tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0, 5.0, 6.0]]])
    sines = module.sines(blocks)
    expected = {
        "sums": module.sums(rows),
        "doubled": module.doubled(rows).flat_values,
        "doubled_splits": module.doubled(rows).row_splits,
        "sines": sines.flat_values,
        "sines_outer": sines.nested_row_splits[0],
        "sines_inner": sines.nested_row_splits[1],
        "ranges": module.ranges([2, 0, 3]).to_tensor(-1),
        "sparse": module.sparse(tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])),
        "words": module.words(tf.ragged.constant([["a", "b"], [], ["c"]])).numpy().astype("S"),
        "slope": module.slope(rows.flat_values, 3),
    }
    with tempfile.TemporaryDirectory() as name:
        tf.saved_model.save(module, name)
        zipped(Path(name), "variants", {key: np.asarray(value) for key, value in expected.items()})


if __name__ == "__main__":
    main()
