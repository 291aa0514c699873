"""Inner transformations and sources of `tf.data`, and the small functions beside them."""

import importlib

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def inner(path):
    return importlib.import_module(f"tensorflow.python.data.{path}")


def rows(dataset):
    return [x.tolist() for x in dataset.as_numpy_iterator()]


def test_legacy_rebatch_fills_the_first_parts():
    rebatch = inner("experimental.ops.distribute")._LegacyRebatchDataset
    assert rows(rebatch(tf.data.Dataset.range(5).batch(4), 3)) == [[0, 1], [2, 3], [], [4], [], []]
    halves = rebatch(tf.data.Dataset.range(8).batch(4, drop_remainder=True), num_replicas=2)
    assert halves.element_spec.shape == [2] and rows(halves) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="rank >= 1"):
        rebatch(tf.data.Dataset.range(4), 2)


def test_legacy_rebatch_keeps_structures_and_composite_tensors():
    rebatch = inner("experimental.ops.distribute")._LegacyRebatchDataset
    ragged = tf.ragged.constant([[1], [2, 3], [], [4]])
    sparse = tf.sparse.from_dense([[1, 0], [0, 2], [3, 0], [0, 0]])
    element = {"r": ragged, "s": sparse, "none": None}
    found = list(rebatch(tf.data.Dataset.from_tensors(element), 2))
    assert [part["r"].to_list() for part in found] == [[[1], [2, 3]], [[], [4]]]
    dense = [tf.sparse.to_dense(part["s"]).numpy().tolist() for part in found]
    assert dense == [[[1, 0], [0, 2]], [[3, 0], [0, 0]]] and found[0]["none"] is None


def test_sizes_of_workers_make_global_batches():
    sizes = inner("experimental.ops.distribute").batch_sizes_for_worker
    of_workers = [sizes(7, 3, 2, worker).numpy() for worker in range(3)]
    assert all(found.sum() == 7 and found.max() - found.min() == 1 for found in of_workers)
    for step in range(3):
        assert sum(found[2 * step : 2 * step + 2].sum() for found in of_workers) == 7
    assert tf.get_static_value(sizes(4, 2, 2, 1)).tolist() == [1, 1, 1, 1]


def test_batch_size_of_elements_with_none():
    dataset = tf.data.Dataset.range(4).map(lambda x: (x, None)).batch(4, drop_remainder=True)
    assert inner("experimental.ops.distribute").compute_batch_size(dataset).numpy() == 4


def test_matching_files_are_looked_up_by_iteration(tmp_path):
    listed = inner("experimental.ops.matching_files").MatchingFilesDataset(
        [str(tmp_path / "*.a"), str(tmp_path / "?.b")]
    )
    assert listed.element_spec == tf.TensorSpec([], tf.string)
    with pytest.raises(tf.errors.NotFoundError, match="No files matched"):
        next(iter(listed))
    for name in ("x.a", "y.b", "z.c"):
        (tmp_path / name).touch()
    assert sorted(listed.as_numpy_iterator()) == [str(tmp_path / name).encode() for name in ("x.a", "y.b")]


def test_record_batches_are_endless_or_counted(tmp_path):
    make = inner("experimental.ops.readers").make_tf_record_dataset
    for name in "ab":
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            for i in range(3):
                writer.write(f"{name}{i}".encode())
    every = {f"{name}{i}".encode() for name in "ab" for i in range(3)}
    endless = make(str(tmp_path / "*"), 4)
    assert endless.element_spec.shape == [4]
    assert len(list(endless.take(5))) == 5
    once = make(str(tmp_path / "*"), 4, num_epochs=1, prefetch_buffer_size=0, shuffle_seed=1)
    assert [len(batch) for batch in once] == [4, 2] and set(np.concatenate(rows_of(once))) == every
    parsed = make(str(tmp_path / "a"), 3, tf.strings.length, num_epochs=1, shuffle=False)
    assert rows(parsed) == [[2, 2, 2]]


def rows_of(dataset):
    return list(dataset.as_numpy_iterator())


def test_arguments_as_tensors():
    convert = inner("util.convert")
    assert convert.optional_param_to_tensor("n", None).numpy() == 0
    assert convert.optional_param_to_tensor("n", "v", "d", tf.string).numpy() == b"v"
    for shape in ([3, None], tf.TensorShape([3, None]), (3, -1), tf.constant([3, -1], tf.int64)):
        assert convert.partial_shape_to_tensor(shape).numpy().tolist() == [3, -1]
    assert convert.partial_shape_to_tensor([]).dtype == tf.int64
    with pytest.raises(ValueError, match="must be a 1-D tensor"):
        convert.partial_shape_to_tensor(tf.constant([[1]], tf.int64))
    with pytest.raises(TypeError, match="the element type was float32"):
        convert.partial_shape_to_tensor(tf.constant([1.0]))


def test_sparse_parts_of_elements():
    sparse = inner("util.sparse")
    x = tf.sparse.from_dense([[1, 0], [0, 2]])
    element = {"a": x, "b": tf.constant(3)}
    classes = sparse.get_classes(element)
    assert classes == {"a": tf.SparseTensor, "b": tf.Tensor} and sparse.any_sparse(classes)
    assert not sparse.any_sparse((tf.Tensor, tf.Tensor))
    assert sparse.as_dense_types({"a": tf.int32, "b": tf.int32}, classes) == {"a": tf.variant, "b": tf.int32}
    shapes = sparse.as_dense_shapes({"a": tf.TensorShape([2, 2]), "b": tf.TensorShape([])}, classes)
    assert shapes["a"].rank is None and shapes["b"].rank == 0
    types = {"a": tf.int32, "b": tf.int32}
    shapes = {"a": tf.TensorShape([2, 2]), "b": tf.TensorShape([])}
    for write in (sparse.serialize_sparse_tensors, sparse.serialize_many_sparse_tensors):
        back = sparse.deserialize_sparse_tensors(write(element), types, shapes, classes)
        assert tf.sparse.to_dense(back["a"]).numpy().tolist() == [[1, 0], [0, 2]] and back["b"].numpy() == 3


def test_seeds_are_never_both_zero():
    get_seed = inner("util.random_seed").get_seed
    tf.random.set_seed(0)
    assert [int(seed) for seed in get_seed(0)] == [0, 2**31 - 1]
    assert [int(seed) for seed in get_seed(tf.constant(4, tf.int64))] == [0, 4]
