"""Errors of elements, of settings and of what a dataset cannot give."""

import numpy as np
import pytest

import tapeflow as tf


def test_settings_have_types():
    options = tf.data.Options()
    for owner, name, value in (
        (options, "deterministic", 3),
        (options, "dataset_name", 1),
        (options, "experimental_external_state_policy", "warn"),
        (options, "threading", None),
        (options.threading, "private_threadpool_size", 2.5),
        (options.autotune, "enabled", "yes"),
        (options.experimental_optimization, "map_fusion", 1),
        (options.experimental_distribute, "auto_shard_policy", 2),
    ):
        with pytest.raises(TypeError, match=f'Property "{name}" must be of type'):
            setattr(owner, name, value)
    options.threading = tf.data.ThreadingOptions()
    options.deterministic = False
    assert options.deterministic is False


def test_arrays_of_elements_cannot_be_changed():
    array = next(tf.data.Dataset.from_tensors([1, 2, 3]).cache().as_numpy_iterator())
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_datasets_and_optionals_are_no_arrays():
    inner = tf.data.Dataset.range(3)
    for element in (inner, (1, inner), tf.experimental.Optional.from_value(1)):
        with pytest.raises(TypeError, match="not supported for datasets that produce values of type"):
            tf.data.Dataset.from_tensors(element).as_numpy_iterator()


def test_len_in_a_graph():
    @tf.function(autograph=False)
    def count():
        with pytest.raises(TypeError, match="only supports `len` in eager mode"):
            len(tf.data.Dataset.range(3))
        return tf.data.Dataset.range(3).cardinality()

    assert int(count()) == 3


def test_rows_of_sparse_batches_fit():
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible with the row shape"):
        next(iter(tf.data.Dataset.from_tensors([[1]]).sparse_batch(4, [12])))
    with pytest.raises(tf.errors.DataLossError, match="larger than the row shape"):
        next(iter(tf.data.Dataset.from_tensors(np.arange(13)).sparse_batch(4, [12])))


def test_records_behind_a_damaged_file(tmp_path):
    names = [str(tmp_path / f"r{i}") for i in range(3)]
    for name in names:
        with tf.io.TFRecordWriter(name) as writer:
            writer.write(b"a")
            writer.write(b"b")
        with open(name, "ab") as file:
            file.write(b"damaged")
    assert list(tf.data.TFRecordDataset(names).ignore_errors().as_numpy_iterator()) == [b"a", b"b"] * 3


def test_only_the_source_ends_a_scan():
    def stop(state, x):
        def end(_):
            raise StopIteration

        return state, tf.numpy_function(end, [x], tf.int64)

    with pytest.raises(tf.errors.InvalidArgumentError, match="OutOfRangeError"):
        next(iter(tf.data.Dataset.range(3).scan(0, stop)))


def test_padded_shapes_that_a_graph_knows():
    with tf.Graph().as_default():
        batches = tf.data.Dataset.from_tensors(tf.compat.v1.placeholder(tf.string)).padded_batch(
            2, tf.constant([37], tf.int64)
        )
        assert batches.element_spec.shape.as_list() == [None, 37]
        with pytest.raises(ValueError, match=r"padded shape \(1,\) is not compatible"):
            tf.data.Dataset.range(3).padded_batch(2, tf.constant([1], tf.int64))


def test_file_names_of_a_dataset():
    with pytest.raises(TypeError, match=r"Got a dataset of `tf\.int32` elements"):
        tf.data.TextLineDataset(tf.data.Dataset.from_tensors(0))
    with pytest.raises(TypeError, match=r"of shape \[\] \(i\.e\. scalars\)"):
        tf.data.TextLineDataset(tf.data.Dataset.from_tensors(["a", "b"]))


def test_cardinalities_that_cannot_be_padded():
    pad = tf.data.experimental.pad_to_cardinality(3)
    one = tf.data.Dataset.from_tensors({"a": 1})
    for dataset, count in ((one.repeat(), -1), (one.filter(lambda _: True), -2)):
        with pytest.raises(ValueError, match=f"must have a known cardinalty, but has cardinality {count}"):
            dataset.apply(pad)


def test_datasets_to_be_mixed_are_alike():
    with pytest.raises(TypeError, match="must have compatible"):
        tf.data.Dataset.sample_from_datasets([tf.data.Dataset.range(2), tf.data.Dataset.from_tensors("a")])


def test_what_chooses_must_be_a_dataset():
    with pytest.raises(TypeError, match=r"`choice_dataset` should be a `tf.data.Dataset`"):
        tf.data.Dataset.choose_from_datasets([tf.data.Dataset.range(3)], choice_dataset=None)
