"""What raw operations that count numbers refuse."""

import pytest

import tapeflow as tf

PLACES = [[0, 0], [0, 1], [1, 2]]


def of_elements(**changed):
    given = {"indices": PLACES, "values": [1, 1, 3], "dense_shape": [2, 3], "weights": [1.0, 2.0, 4.0]}
    return tf.raw_ops.SparseCountSparseOutput(**{**given, "binary_output": False, **changed})


def of_rows(**changed):
    given = {"splits": [0, 2, 3], "values": [1, 1, 3], "weights": [1.0, 2.0, 4.0], "binary_output": False}
    return tf.raw_ops.RaggedCountSparseOutput(**{**given, **changed})


def dense(**changed):
    return tf.raw_ops.DenseBincount(**{"input": [1, 1, 3], "size": 4, "weights": tf.zeros([0]), **changed})


def test_counts_with_weights():
    for found in (of_elements(), of_rows()):
        assert found.output_indices.numpy().tolist() == [[0, 1], [1, 3]]
        assert found.output_values.numpy().tolist() == [3.0, 4.0]
    assert dense().numpy().tolist() == [0, 2, 0, 1]
    assert dense(input=[[1, 1], [0, 3]]).numpy().tolist() == [[0, 2, 0, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: of_elements(indices=[[[0], [0]], [[0], [1]], [[1], [2]]]), "must be a 2-dimensional tensor"),
        (lambda: of_elements(values=[1, 1]), "Number of values must match first dimension of indices"),
        (lambda: of_elements(weights=[1.0]), "Weights and values must have the same shape"),
        (lambda: of_elements(values=[1, -1, 3]), "Input values must all be non-negative"),
        (lambda: of_elements(indices=[[0, 0], [0, 1], [-1, 2]]), "out of bounds"),
        (lambda: of_rows(splits=[]), "at least 2 elements for the splits"),
        (lambda: of_rows(splits=[1, 3]), "Splits must start with 0"),
        (lambda: of_rows(splits=[0, 2]), "Splits must end with the number of values"),
        (lambda: of_rows(weights=[1.0]), "Weights and values must have the same shape"),
        (lambda: dense(input=[[[1]]]), "at most rank 2"),
        (lambda: dense(input=[[1, -1]]), "must be non-negative"),
        (lambda: dense(size=[1, 1]), "Shape must be rank 0 but is rank 1"),
        (lambda: dense(size=-1), "size must be non-negative"),
        (lambda: tf.raw_ops.Bincount(arr=[1], size=[1], weights=[]), "Shape must be rank 0 but is rank 1"),
        (
            lambda: tf.raw_ops.SparseBincount(indices=[[-2]], values=[1], dense_shape=[4], size=3, weights=[]),
            "out of bounds",
        ),
        (lambda: tf.raw_ops.RaggedBincount(splits=[], values=[1], size=3, weights=[]), "Splits must be non-empty"),
    ],
)
def test_arguments_that_are_refused(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()
