"""Checkpoints that are damaged or that somebody has made up: typed errors, and nothing outside of the folder."""

import os
import struct

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import masked
from tapeflow._src.train.checkpoint import tensor_bundle
from tapeflow._src.train.checkpoint.sorted_table import read_table, unpack_snappy
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, write_bundle

DATA = ".data-00000-of-00001"


@pytest.fixture
def prefix(tmp_path):
    path = str(tmp_path / "c")
    write_bundle(path, {"words": np.array([b"Hello", b"World"], object), "numbers": np.arange(4.0)})
    return path


def rewritten(path, offset, byte):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(byte)


def with_entry(prefix, name, change):
    """Writes the index again, with one entry changed and all checksums right."""
    with open(f"{prefix}.index", "rb") as file:
        entries = read_table(file.read(), prefix)
    kind = messages.BundleEntryProto if name else messages.BundleHeaderProto
    entry = kind.FromString(entries[name])
    change(entry)
    entries[name] = entry.SerializeToString()
    with open(f"{prefix}.index", "wb") as file:
        file.write(tensor_bundle.table_bytes(entries))


def test_strings_have_checksums(prefix):
    with open(prefix + DATA, "rb") as file:
        place = file.read().index(b"Hello")
    rewritten(prefix + DATA, place, b"J")
    with pytest.raises(tf.errors.DataLossError, match="Checksum does not match: words"):
        Bundle(prefix).value("words")


def test_lengths_of_strings_that_do_not_fit(prefix):
    bundle = Bundle(prefix)
    offset = bundle._entry("words").offset
    for byte in (b"\xff", b"\x00", b"\x06"):
        rewritten(prefix + DATA, offset, byte)
        with pytest.raises(tf.errors.DataLossError):
            Bundle(prefix).value("words")


@pytest.mark.parametrize(
    "change",
    [
        lambda e: setattr(e, "dtype", 99),
        lambda e: setattr(e, "dtype", 20),
        lambda e: setattr(e, "shard_id", 7),
        lambda e: setattr(e, "shard_id", -1),
        lambda e: setattr(e, "offset", 1 << 40),
        lambda e: setattr(e, "offset", -8),
        lambda e: setattr(e, "size", 1 << 60),
        lambda e: setattr(e, "size", -1),
        lambda e: setattr(e.shape.dim[0], "size", 1 << 62),
        lambda e: setattr(e.shape.dim[0], "size", -4),
    ],
)
@pytest.mark.parametrize("name", ["words", "numbers"])
def test_entries_that_are_wrong(prefix, name, change):
    with_entry(prefix, name.encode(), change)
    with pytest.raises(tf.errors.DataLossError):
        Bundle(prefix).value(name)


@pytest.mark.parametrize("shards", [2**31 - 1, -1])
def test_numbers_of_shards_that_are_wrong(prefix, shards):
    with_entry(prefix, b"", lambda header: setattr(header, "num_shards", shards))
    with pytest.raises(tf.errors.DataLossError, match="shards"):
        Bundle(prefix)


def test_mutated_files_give_typed_errors(prefix):
    random = np.random.default_rng(0)
    for path in (f"{prefix}.index", prefix + DATA):
        with open(path, "rb") as file:
            content = file.read()
        for _ in range(300):
            changed = bytearray(content)
            for _ in range(random.integers(1, 4)):
                changed[random.integers(len(changed))] = random.integers(256)
            changed = changed[: random.integers(len(changed))] if random.random() < 0.2 else changed
            with open(path, "wb") as file:
                file.write(changed)
            try:
                bundle = Bundle(prefix)
                for name in bundle.names:
                    bundle.value(name)
            except tf.errors.OpError:
                pass
        with open(path, "wb") as file:
            file.write(content)


def snappy(data):
    """Bytes as Snappy writes them: a literal, and a copy of its last four bytes."""
    head = bytes([len(data) + 4])
    return head + bytes([(len(data) - 1) << 2]) + data + bytes([(4 - 4) << 2 | 1, 4])


def test_compressed_blocks_are_read(tmp_path):
    entries = {b"a": b"12345678"}
    plain = tensor_bundle.table_bytes(entries)
    assert read_table(plain, "x") == entries
    block = tensor_bundle._block(entries)[:-5]
    assert unpack_snappy(snappy(b"abcdefgh"), "x") == b"abcdefghefgh"
    packed = bytes([len(block), (len(block) - 1) << 2]) + block + b"\x01"
    packed += masked(_core.crc32c(packed))
    handle = tensor_bundle.encode_varint(0) + tensor_bundle.encode_varint(len(packed) - 5)
    listing = tensor_bundle._block({b"a": handle})
    footer = b"\x00\x00" + tensor_bundle.encode_varint(len(packed)) + tensor_bundle.encode_varint(len(listing) - 5)
    table = packed + listing + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    assert read_table(table, "x") == entries
    for broken in (b"\x05\x00", b"\xff\xff\xff\xff\x0f\x00a", b"\x04\x01\x09", b"\x02\xf0"):
        with pytest.raises(tf.errors.DataLossError):
            unpack_snappy(broken, "x")


def test_a_manager_deletes_nothing_outside_of_its_folder(tmp_path):
    outside = tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "other"))
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "../other"\nall_model_checkpoint_paths: "../other"\n'
        f'all_model_checkpoint_paths: "{outside}"\n'
    )
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(2.0)), folder, max_to_keep=1)
    for _ in range(3):
        manager.save()
    assert os.path.exists(f"{outside}.index") and os.path.exists(outside + DATA)
    assert len(manager.checkpoints) == 1


def test_writing_follows_no_link(tmp_path):
    target = tmp_path / "secret"
    target.write_text("untouched")
    for name in ("c.index.tmp", f"c.index.tmp{os.getpid()}", f"c{DATA}.tmp{os.getpid()}"):
        os.symlink(target, tmp_path / name)
    tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "c"))
    assert target.read_text() == "untouched"


def test_a_scalar_string_comes_back(tmp_path):
    word = tf.Variable("first")
    checkpoint = tf.train.Checkpoint(word=word)
    path = checkpoint.save(str(tmp_path / "c"))
    word.assign("second")
    checkpoint.restore(path).assert_consumed()
    assert word.numpy() == b"first"
    assert tf.train.load_checkpoint(path).get_tensor("word/.ATTRIBUTES/VARIABLE_VALUE") == b"first"


def test_a_state_file_that_is_no_state(tmp_path):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "a"\nall_model_checkpoint_timestamps: soon\n')
    assert tf.train.get_checkpoint_state(tmp_path) is None


def test_a_view_matches_objects(tmp_path):
    saved = tf.Module()
    saved.a, saved.b = tf.Variable(1.0), tf.Module()
    saved.b.c = tf.Variable(2.0)
    view = tf.train.CheckpointView(tf.train.Checkpoint(saved).write(str(tmp_path / "c")))
    children = view.children(0)
    assert set(children) == {"a", "b"} and view.descendants()[0] == 0 and len(view.descendants()) == 4
    other = tf.Module()
    other.a, other.d = tf.Variable(1.0), tf.Variable(3.0)
    matched, only_there, only_here = view.diff(other)
    assert matched == {0: other, children["a"]: other.a} == view.match(other)
    assert sorted(only_there) == sorted({*view.descendants()} - {*matched}) and only_here == [other.d]
    with pytest.raises(ValueError, match="Expected a Trackable"):
        view.match(3)
