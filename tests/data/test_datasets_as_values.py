"""Datasets and tensor arrays as values: elements of datasets, results of branches, of loops and of functions."""

import gc

import numpy as np
import pytest

import tapeflow as tf

Dataset = tf.data.Dataset


def numbers(dataset):
    return [int(x) for x in dataset]


def test_a_batch_of_datasets_has_rows():
    batches = Dataset.range(4).window(2).batch(2)
    assert batches.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64), [None])
    (batch,) = batches
    assert batch.shape == [2] and numbers(batch[1]) == [2, 3] and "shape=(2,)" in repr(batch)
    assert numbers(batches.unbatch().flat_map(lambda window: window)) == [0, 1, 2, 3]
    assert numbers(batches.rebatch(1).unbatch().flat_map(lambda window: window)) == [0, 1, 2, 3]


def test_rows_of_a_list_of_datasets():
    datasets = Dataset.from_tensor_slices([Dataset.range(2), Dataset.range(5, 7)])
    assert datasets.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert numbers(datasets.flat_map(lambda dataset: dataset)) == [0, 1, 5, 6]


def test_datasets_with_different_elements_are_no_batch():
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        Dataset.from_tensor_slices([Dataset.range(2), Dataset.from_tensors("a")])


def test_optionals_are_no_batch():
    optionals = Dataset.from_tensors(tf.experimental.Optional.from_value(1))
    with pytest.raises(TypeError, match="batch: elements of type Optional"):
        optionals.batch(2)
    with pytest.raises(TypeError, match="unbatch: elements of type Optional"):
        optionals.unbatch()


def test_a_branch_gives_a_dataset():
    def choose(x):
        return tf.cond(x % 2 == 0, lambda: Dataset.range(1), lambda: Dataset.range(x, x + 1))

    def choose_by_statement(x):
        if x % 2 == 0:
            chosen = Dataset.range(1)
        else:
            chosen = Dataset.range(x, x + 1)
        return chosen

    for function in (choose, choose_by_statement):
        dataset = Dataset.range(1000).flat_map(function)
        gc.collect()  # the graph keeps the datasets of its branches
        assert sum(numbers(dataset)) == sum(range(1, 1000, 2))


def test_a_loop_carries_a_dataset():
    @tf.function
    def total(skips):
        dataset = Dataset.range(10)
        for _ in tf.range(skips):
            dataset = dataset.skip(1)
        return dataset.reduce(np.int64(0), lambda a, b: a + b)

    assert [int(total(tf.constant(n))) for n in (0, 3)] == [45, 42]


def test_a_branch_gives_an_iterator_and_an_optional():
    @tf.function
    def first(high):
        if high:
            iterator = iter(Dataset.range(5, 8))
        else:
            iterator = iter(Dataset.range(3))
        return next(iterator)

    @tf.function
    def chosen(high):
        optional = tf.experimental.Optional.from_value(1)
        if high:
            optional = tf.experimental.Optional.from_value(2)
        return optional.get_value()

    assert [int(first(tf.constant(b))) for b in (False, True)] == [0, 5]
    assert [int(chosen(tf.constant(b))) for b in (False, True)] == [1, 2]


def test_a_function_gives_a_dataset():
    @tf.function
    def twice():
        return Dataset.range(3).map(lambda x: 2 * x)

    gc.collect()
    assert numbers(twice()) == numbers(twice()) == [0, 2, 4]


def test_elements_are_tensor_arrays():
    def write(x):
        return tf.TensorArray(tf.int64, 2, element_shape=()).write(0, x).write(1, x + 1)

    arrays = Dataset.range(3).map(write)
    assert isinstance(arrays.element_spec, tf.TensorArraySpec)
    assert [array.stack().numpy().tolist() for array in arrays] == [[0, 1], [1, 2], [2, 3]]
    assert [x.numpy().tolist() for x in arrays.map(lambda array: array.stack())] == [[0, 1], [1, 2], [2, 3]]
    (array,) = Dataset.from_tensors(tf.TensorArray(tf.int32, 2).unstack([3, 4]))
    assert array.stack().numpy().tolist() == [3, 4]


def test_a_scan_and_a_reduction_carry_a_tensor_array():
    empty = tf.TensorArray(tf.int64, 3, element_shape=(), clear_after_read=False)
    written = Dataset.range(3).reduce(empty, lambda array, x: array.write(tf.cast(x, tf.int32), x * x))
    assert written.stack().numpy().tolist() == [0, 1, 4]
    growing = tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=())
    sizes = Dataset.range(3).scan(growing, lambda a, x: (a.write(tf.cast(x, tf.int32), x), a.size()))
    assert numbers(sizes) == [0, 1, 2]


def test_a_tensor_array_of_a_graph_is_an_element():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        array = tf.TensorArray(tf.int32, 2, element_shape=()).unstack([3, 4])
        dataset = Dataset.from_tensors(array).map(lambda a: a.stack())
        found = session.run(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next())
    assert found.tolist() == [3, 4]
