"""Checkpoint files of the first version: `raw_ops.Save` and `raw_ops.Restore`, and files of TensorFlow 2.21."""

import base64
import random
import zlib

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.protos import messages
from tapeflow._src.train.checkpoint.sorted_table import read_table
from tapeflow._src.train.checkpoint.tensor_bundle import slice_key, table_bytes
from tapeflow._src.train.checkpoint.tensor_slices import read_slices

raw = tf.raw_ops
VALUES = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b/c": np.array([1, 2], np.int64),
    "s": np.array([b"x", b"yy"], object),
    "z": np.float64(3.5),
    "t": np.array([True, False]),
    "u": np.array([-1, 7], np.int8),
}
# Written by TensorFlow 2.21: tf.raw_ops.Save(filename=..., tensor_names=list(VALUES), data=list(VALUES.values()))
RECORDED = (
    b"eNqFjrFKA0EQhuefO9y71XDeirJceSiCjWAj2HikSZ9GsBCiYCU2yYFJk23FzifQwsbK3iYv4BP4FrYpdHazl9bZ/Qf2+5mdn+he"
    b"3+ldjZHJDGcsSizqVJOcUifXxzcm9YbNaxZUaIwjUB2YRKA70EawEUCuMTNkuSaBIH1IIwLYzd3cHPjFYVlVHVkK5c6lNXJFTvTS"
    b"IC8lhwxBRopVKPm5SocMhjLjaG37cN5QfTz0eTqFKibR6/mcYeiSQVC2jcaez+uN3tnmb1dQSHdmBDJlSF/pk2yVbqvxHb7dXp2+"
    b"rR+Ln9cPQgL65DV7fF6+Lzj74oL+rYule9pvB99/ynE1jw=="
)


def recorded():
    return zlib.decompress(base64.b64decode(RECORDED))


def restored(path, name):
    return raw.Restore(file_pattern=str(path), tensor_name=name, dt=tf.constant(VALUES[name]).dtype)


@pytest.mark.parametrize("own", [False, True])
def test_values_come_back(own, tmp_path):
    path = tmp_path / "values"
    if own:
        raw.Save(filename=str(path), tensor_names=list(VALUES), data=[tf.constant(x) for x in VALUES.values()])
    else:
        path.write_bytes(recorded())
    for name, value in VALUES.items():
        found = restored(path, name)
        assert found.shape == np.shape(value)
        np.testing.assert_array_equal(found, value)


def test_a_saved_function_saves_and_restores(tmp_path):
    """As the functions of a model that is trained on a device."""
    module = tf.Module()
    module.w = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def save(path):
        raw.Save(filename=path, tensor_names=["w"], data=[module.w.read_value()])
        return path

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def restore(path):
        module.w.assign(raw.Restore(file_pattern=path, tensor_name="w", dt=tf.float32))
        return module.w.read_value()

    save(tf.constant(str(tmp_path / "w")))
    module.w.assign([0.0, 0.0])
    np.testing.assert_array_equal(restore(tf.constant(str(tmp_path / "w"))), [1.0, 2.0])


def test_what_cannot_be_read_or_written(tmp_path):
    path = tmp_path / "values"
    path.write_bytes(recorded())
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        restored(tmp_path / "missing", "a")
    with pytest.raises(tf.errors.NotFoundError, match='"other" not found'):
        raw.Restore(file_pattern=str(path), tensor_name="other", dt=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not equal original dtype"):
        raw.Restore(file_pattern=str(path), tensor_name="a", dt=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 tensor_names for 1 tensors"):
        raw.Save(filename=str(path), tensor_names=["a", "b"], data=[tf.constant(1.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="complex64 cannot be written"):
        raw.Save(filename=str(path), tensor_names=["a"], data=[tf.constant(1j, tf.complex64)])


def test_parts_of_a_tensor_are_joined(tmp_path):
    head = messages.SavedTensorSlices()
    tensor = head.meta.tensor.add(name="w", type=tf.float32.as_datatype_enum)
    for size in (4, 2):
        tensor.shape.dim.add(size=size)
    entries = {}
    for start in (0, 2):
        entry = messages.SavedTensorSlices()
        entry.data.name = "w"
        entry.data.slice.extent.add(start=start, length=2)
        entry.data.slice.extent.add()
        entry.data.data.float_val.extend(range(2 * start, 2 * start + 4))
        entries[slice_key("w", [(start, 2), (0, -1)])] = entry.SerializeToString()
    path = tmp_path / "parts"
    path.write_bytes(table_bytes({**entries, b"": head.SerializeToString()}))
    np.testing.assert_array_equal(read_slices(str(path))["w"], np.arange(8).reshape(4, 2))


def test_damaged_files_are_refused(tmp_path):
    """Where checksums do not tell: what the entries say is changed."""
    path, generator = tmp_path / "damaged", random.Random(0)
    path.write_bytes(recorded())
    entries, found = read_table(recorded(), "values"), []
    for _ in range(300):
        changed = {key: bytearray(value) for key, value in entries.items()}
        for _ in range(generator.randint(1, 4)):
            value = changed[generator.choice(list(changed))]
            value[generator.randrange(len(value))] = generator.randrange(256)
        path.write_bytes(table_bytes({key: bytes(value) for key, value in changed.items()}))
        try:
            found.append(read_slices(str(path)))
        except tf.errors.OpError:
            continue
    assert 0 < len(found) < 300
    path.write_bytes(recorded()[:-9])
    with pytest.raises(tf.errors.DataLossError):
        read_slices(str(path))
