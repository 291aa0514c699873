"""Datasets of ragged and sparse tensors are saved as TensorFlow saves them: one record, a variant, for each."""

import glob
import os

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import variants_of


def records(folder):
    (path,) = glob.glob(f"{folder}/*/*.shard/*.snapshot")
    return [messages.TensorProto.FromString(r.numpy()) for r in tf.data.TFRecordDataset(path)]


def test_rows_are_variants(tmp_path):
    rows = tf.ragged.constant([[[1, 2], []], [[3]]])
    tf.data.Dataset.from_tensor_slices(rows).save(str(tmp_path))
    first = records(tmp_path)[0]
    assert (first.dtype, list(first.tensor_shape.dim)) == (21, [])
    ((splits, values),) = variants_of(first, "RaggedTensorVariant")
    assert (splits.numpy().tolist(), values.numpy().tolist()) == ([0, 2, 2], [1, 2])
    loaded = list(tf.data.Dataset.load(str(tmp_path)))
    assert [row.to_list() for row in loaded] == rows.to_list()


def test_sparse_tensors_are_three_variants(tmp_path):
    x = tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    tf.data.Dataset.from_tensors({"x": x, "n": 3}).save(str(tmp_path), compression="GZIP")
    (found,) = tf.data.Dataset.load(str(tmp_path), compression="GZIP")
    np.testing.assert_array_equal(tf.sparse.to_dense(found["x"]), [[1, 0], [0, 2]])
    assert int(found["n"]) == 3


def test_variants_of_another_kind_are_refused(tmp_path):
    tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])).save(str(tmp_path))
    (path,) = glob.glob(f"{tmp_path}/*/*.shard/*.snapshot")
    (message,) = records(tmp_path)
    with pytest.raises(ValueError, match="variants of the kind"):
        variants_of(message, "tensorflow::Tensor")
    message.tensor_content = message.tensor_content[:-1]
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(message.SerializeToString())
    with pytest.raises(tf.errors.DataLossError, match=r"\.snapshot"):
        list(tf.data.Dataset.load(str(tmp_path)))


def test_rows_without_a_dtype_are_refused():
    with pytest.raises(ValueError, match="dtype or flat_values_spec"):
        tf.RaggedTensorSpec([None, None], None)


def test_functions_choose_files_and_read_them(tmp_path):
    numbers, folder = tf.data.Dataset.range(6), str(tmp_path / "halves")
    numbers.save(folder, shard_func=lambda x: x // 3)
    assert [int(x) for x in tf.data.Dataset.load(folder)] == [0, 3, 1, 4, 2, 5]
    loaded = tf.data.experimental.load(folder, reader_func=lambda files: files.flat_map(lambda file: file))
    assert [int(x) for x in loaded] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="reader_func"):
        tf.data.Dataset.load(folder, reader_func=lambda files: 3)
    tf.data.experimental.save(numbers, str(tmp_path / "packed"), "GZIP", lambda x: x % 2)
    assert [int(x) for x in tf.data.experimental.load(str(tmp_path / "packed"), compression="GZIP")] == list(range(6))
    with pytest.raises(NotImplementedError, match="checkpoint_args"):
        numbers.save(folder, checkpoint_args={"step_counter": tf.Variable(0)})


def test_snapshots_with_functions(tmp_path):
    kept = tf.data.Dataset.range(4).snapshot(
        str(tmp_path / "kept"),
        shard_func=lambda x: x % 2,
        reader_func=lambda files: files.flat_map(lambda file: file),
    )
    for _ in range(2):
        assert [int(x) for x in kept] == [0, 2, 1, 3]


def test_in_a_graph_an_operation_saves(tmp_path):
    path = str(tmp_path / "saved")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        stop = tf.compat.v1.placeholder(tf.int64, [])
        operation = tf.data.Dataset.range(stop).save(path, shard_func=lambda x: x % 2)
        assert not os.path.exists(path)
        session.run(operation, {stop: 4})
    assert sorted(x for x in tf.data.Dataset.load(path).as_numpy_iterator()) == [0, 1, 2, 3]


def test_a_file_that_ends_too_early_is_named(tmp_path):
    tf.data.Dataset.range(3).save(str(tmp_path))
    (path,) = glob.glob(f"{tmp_path}/*/*.shard/*.snapshot")
    with open(path, "r+b") as file:
        file.truncate(5)
    with pytest.raises(tf.errors.DataLossError, match=r"truncated record at 0 in .*\.snapshot"):
        list(tf.data.Dataset.load(str(tmp_path)))
