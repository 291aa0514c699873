"""Tensors in safetensors files. They are read and written where the optional package safetensors is."""

import sys

import numpy as np
import pytest

import tapeflow as tf


def test_tensors_of_all_dtypes_come_back(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "file"
    names = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    tensors = {name: tf.cast([[1, 0, 3]], name) for name in names}
    tf.experimental.save_safetensors(tensors | {"scalar": tf.Variable(2.5)}, path, {"format": "tf"})
    found = tf.experimental.load_safetensors(path)
    assert float(found.pop("scalar")) == 2.5
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        np.testing.assert_array_equal(found[name], tensor)


def test_variables_of_a_module(tmp_path):
    pytest.importorskip("safetensors")
    module, other = tf.Module(), tf.Module()
    module.w, module.b = tf.Variable([1.0, 2.0], name="w"), tf.Variable(3, name="b")
    other.w, other.b = tf.Variable([0.0, 0.0], name="w"), tf.Variable(0, name="b")
    tf.experimental.save_safetensors(module, tmp_path / "file")
    tf.experimental.load_safetensors(tmp_path / "file", other)
    assert other.w.numpy().tolist() == [1.0, 2.0] and int(other.b) == 3
    other.w = tf.Variable([0.0], name="w")
    with pytest.raises(ValueError, match="has the shape"):
        tf.experimental.load_safetensors(tmp_path / "file", other)
    with pytest.raises(ValueError, match="must have the same names"):
        tf.experimental.load_safetensors(tmp_path / "file", {"w": module.w})


def test_damaged_files_are_refused(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "file"
    tf.experimental.save_safetensors({"x": tf.range(10)}, path)
    data = path.read_bytes()
    for damaged in (b"", data[:20], data[:-3], b"\xff" * 8 + data[8:]):
        path.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="no safetensors file"):
            tf.experimental.load_safetensors(path)


def test_without_the_package_the_error_names_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install tapeflow\[safetensors\]"):
        tf.experimental.save_safetensors({}, tmp_path / "file")
