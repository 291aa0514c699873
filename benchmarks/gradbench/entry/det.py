"""A determinant by expansion by minors, and its gradient.

The expansion by the first row needs minors of the rows below, for sets of columns that many expansions share. All
minors of the last r rows are computed together from those of the last r - 1, each once.
"""

import functools
import itertools

import numpy as np

import tapeflow as tf


def prepare(values):
    return (tf.constant(np.reshape(values["A"], (values["ell"], values["ell"])), tf.float64),)


@functools.cache
def expansion(size: int, rows: int):
    """For each set of `rows` columns: the columns, the index of each set without one of them, the signs."""
    smaller = {columns: i for i, columns in enumerate(itertools.combinations(range(size), rows - 1))}
    sets = list(itertools.combinations(range(size), rows))
    minors = [[smaller[columns[:i] + columns[i + 1 :]] for i in range(rows)] for columns in sets]
    return np.array(sets), np.array(minors), (-1.0) ** np.arange(rows)


@tf.function
def primal(a):
    size = a.shape[0]
    minors = a[-1]
    for rows in range(2, size + 1):
        columns, others, signs = expansion(size, rows)
        minors = tf.reduce_sum(signs * tf.gather(a[size - rows], columns) * tf.gather(minors, others), 1)
    return minors[0]


@tf.function
def gradient(a):
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = primal(a)
    return tf.reshape(tape.gradient(y, a), [-1])
