"""Datasets of files: lines, records, comma-separated values."""

import gzip
import sqlite3
import zlib
from pathlib import Path

import pytest

import tapeflow as tf

Dataset = tf.data.Dataset


def rows(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\n\nfour")
    (tmp_path / "b.txt").write_bytes(b"x\n")
    (tmp_path / "people.csv").write_text('name,age,score\n"ann, b",31,1.5\nbob,,2\n')
    return tmp_path


def test_lines(folder):
    lines = [b"one", b"two", b"", b"four"]
    assert rows(tf.data.TextLineDataset("a.txt")) == lines
    assert rows(tf.data.TextLineDataset(["a.txt", "b.txt"])) == [*lines, b"x"]
    assert rows(tf.data.TextLineDataset(Dataset.list_files("*.txt", shuffle=False))) == [*lines, b"x"]
    assert rows(Dataset.list_files("*.txt", shuffle=False).flat_map(tf.data.TextLineDataset)) == [*lines, b"x"]
    with pytest.raises(tf.errors.NotFoundError, match=r"none\.txt; No such file or directory"):
        rows(tf.data.TextLineDataset("none.txt"))
    with pytest.raises(TypeError, match=r"must contain `tf\.string` elements"):
        tf.data.TextLineDataset(3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        Dataset.list_files("*.nothing")


def test_packed_lines(folder):
    (folder / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (folder / "a.z").write_bytes(zlib.compress(b"one\ntwo\n"))
    assert (
        rows(tf.data.TextLineDataset("a.gz", "GZIP"))
        == rows(tf.data.TextLineDataset("a.z", "ZLIB"))
        == [b"one", b"two"]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported compression_type"):
        tf.data.TextLineDataset("a.gz", "LZ4")


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_records(folder, compression):
    tf.data.experimental.TFRecordWriter("r", compression).write(Dataset.from_tensor_slices(["a", "bb", ""]))
    assert rows(tf.data.TFRecordDataset("r", compression)) == [b"a", b"bb", b""]


def test_damaged_records(folder):
    tf.data.experimental.TFRecordWriter("r").write(Dataset.from_tensors("a"))
    content = (folder / "r").read_bytes()
    assert content.hex() == "01000000000000000175de4161786ee428"  # as TensorFlow writes it
    other = content[:12] + b"b" + content[13:]
    for damaged, message in ((content[:-1], "truncated record at 0"), (other, "corrupted record")):
        (folder / "r").write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match=message):
            rows(tf.data.TFRecordDataset("r"))


def test_records_of_fixed_length(folder):
    (folder / "f").write_bytes(b"HHabcdefT")
    dataset = tf.data.FixedLengthRecordDataset("f", 3, header_bytes=2, footer_bytes=1)
    assert rows(dataset) == [b"abc", b"def"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="which is not an exact multiple of the record length"):
        rows(tf.data.FixedLengthRecordDataset("f", 4))


def test_comma_separated_values(folder):
    dataset = tf.data.experimental.CsvDataset("people.csv", [tf.string, 0, tf.float32], header=True)
    assert rows(dataset) == [(b"ann, b", 31, 1.5), (b"bob", 0, 2.0)]
    chosen = tf.data.experimental.CsvDataset("people.csv", [tf.float32], header=True, select_cols=[2])
    assert rows(chosen) == [(1.5,), (2.0,)]
    others = tf.data.experimental.CsvDataset("people.csv", [tf.string], header=True, exclude_cols=[1, 2])
    assert rows(others) == [(b"ann, b",), (b"bob",)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 1 is required but missing"):
        rows(tf.data.experimental.CsvDataset("people.csv", [tf.string, tf.int32, tf.float32], header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expect 2 fields but have more in record"):
        rows(tf.data.experimental.CsvDataset("people.csv", [tf.string, tf.int32], header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 0 in record is not a valid int32: ann, b"):
        rows(tf.data.experimental.CsvDataset("people.csv", [0, 0, 0.0], header=True))


def test_batches_of_columns(folder):
    make = tf.data.experimental.make_csv_dataset
    ((features, label),) = make("people.csv", 2, label_name="age", num_epochs=1, shuffle=False)
    assert list(features) == ["name", "score"]
    assert label.dtype == tf.int32 and label.numpy().tolist() == [31, 0]
    assert features["score"].dtype == tf.float32
    batches = make("people.csv", 2, select_columns=["score"], shuffle_seed=1).take(3)
    assert sorted({x for batch in batches for x in batch["score"].numpy().tolist()}) == [1.5, 2.0]
    assert batches.element_spec == {"score": tf.TensorSpec([2], tf.float32)}
    with pytest.raises(ValueError, match="must be one of the columns"):
        make("people.csv", 2, label_name="nothing")
    with_defaults = make("people.csv", 2, column_defaults=["", 7.0, 0.0], num_epochs=1, shuffle=False)
    assert next(iter(with_defaults))["age"].numpy().tolist() == [31.0, 7.0]


def test_snapshots_are_tensorflows(tmp_path):
    """The files that TensorFlow 2.21 writes for two elements, byte by byte, but for the number of the run."""
    path = tmp_path / "d"
    tf.data.Dataset.from_tensor_slices({"a": [[1.0, 2.0], [3.0, 4.0]], "s": ["x", "yy"]}).save(str(path))
    (shard,) = path.glob("*/00000000.shard/00000000.snapshot")
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(shard))]
    assert records[0] == b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    recorded = [b'\x08\x07\x12\x00"\x02\x01x', b'\x08\x07\x12\x00"\x03\x02yy']
    shard.write_bytes(b"")
    with tf.io.TFRecordWriter(str(shard)) as writer:
        for numbers, text in zip(records[::2], recorded):
            writer.write(numbers)
            writer.write(text)
    found = [(x["a"].numpy().tolist(), x["s"].numpy()) for x in tf.data.Dataset.load(str(path))]
    assert found == [([1.0, 2.0], b"x"), ([3.0, 4.0], b"yy")]


def test_saved_datasets_of_version_0_1_are_refused(tmp_path):
    (tmp_path / "elements.npz").write_bytes(b"anything")
    with pytest.raises(ValueError, match="a pickle that may run any code"):
        tf.data.Dataset.load(str(tmp_path))


def test_damaged_snapshots_are_named(tmp_path):
    tf.data.Dataset.range(3).save(str(tmp_path))
    (shard,) = tmp_path.glob("*/*.shard/*.snapshot")
    content = shard.read_bytes()
    shard.write_bytes(content[:-3])
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.Dataset.load(str(tmp_path)))
    shard.write_bytes(content)
    metadata = (tmp_path / "snapshot.metadata").read_bytes()
    (tmp_path / "snapshot.metadata").write_bytes(b"\x12\x08../../ab")
    with pytest.raises(tf.errors.DataLossError, match="no number of a run"):
        tf.data.Dataset.load(str(tmp_path))
    (tmp_path / "snapshot.metadata").write_bytes(metadata)
    (tmp_path / "dataset_spec.pb").write_bytes(b"\xff\xff")
    with pytest.raises(tf.errors.DataLossError, match=r"dataset_spec\.pb"):
        tf.data.Dataset.load(str(tmp_path))


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_snapshots(tmp_path, compression):
    tf.data.Dataset.range(3).save(str(tmp_path), compression=compression)
    assert [int(x) for x in tf.data.Dataset.load(str(tmp_path), compression=compression)] == [0, 1, 2]


def test_no_files():
    made = (tf.data.TextLineDataset([]), tf.data.TFRecordDataset(()), tf.data.FixedLengthRecordDataset([], 4))
    assert all(list(dataset) == [] for dataset in made)


def test_datasets_of_files_take_options(tmp_path):
    path = str(tmp_path / "lines.txt")
    (tmp_path / "lines.txt").write_text("a\nb\n")
    with tf.io.TFRecordWriter(str(tmp_path / "r")) as writer:
        writer.write(b"a")
    options = tf.data.Options()
    options.deterministic = False
    for dataset, first in (
        (tf.data.TextLineDataset(path), b"a"),
        (tf.data.FixedLengthRecordDataset(path, 2), b"a\n"),
        (tf.data.TFRecordDataset(str(tmp_path / "r")), b"a"),
        (tf.data.experimental.CsvDataset(path, [""]), (b"a",)),
    ):
        with_options = dataset.with_options(options)
        assert with_options.options().deterministic is False
        assert next(with_options.as_numpy_iterator()) == first


def test_buckets_of_an_endless_dataset_are_endless():
    def buckets(dataset):
        return int(dataset.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2], [1, 1]).cardinality())

    one = tf.data.Dataset.from_tensors([1])
    assert buckets(one.repeat()) == tf.data.INFINITE_CARDINALITY
    assert buckets(one) == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compressed_files_are_named(compression, tmp_path):
    path = str(tmp_path / "packed.tfrecord")
    with tf.io.TFRecordWriter(path, compression) as writer:
        for number in range(50):
            writer.write(bytes([number]) * number)
    content = Path(path).read_bytes()
    for damaged in (content[:-9], content[:20] + b"\xff" * 8 + content[28:], b"no packed file"):
        Path(path).write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match=r"packed\.tfrecord"):
            list(tf.data.TFRecordDataset(path, compression_type=compression))
        if damaged != content[:-9]:  # the end of a stream is not checked where records are read one by one
            with pytest.raises(tf.errors.DataLossError, match=r"packed\.tfrecord"):
                list(tf.compat.v1.io.tf_record_iterator(path, compression))


def _csv(tmp_path, text, *types, **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tf.data.experimental.CsvDataset(str(path), list(types), **options)


def test_records_of_csv_files_are_strict(tmp_path):
    rows = _csv(tmp_path, 'a,"b ""c"", d"\r\ne,"f\ng"\rh,i', tf.string, tf.string).as_numpy_iterator()
    assert list(rows) == [(b"a", b'b "c", d'), (b"e", b"f\ng"), (b"h", b"i")]
    for text, message in [
        ('a"b,c\n', "Unquoted fields cannot have quotes inside"),
        ('"a"b,c\n', "escaped by another quote"),
        ('"a,c\n', "without closing quoted field"),
        ("\n", "Expect 2 fields but have 1"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            list(_csv(tmp_path, text, tf.string, tf.string))
    with pytest.raises(tf.errors.InvalidArgumentError, match="header"):
        list(_csv(tmp_path, "", tf.string, header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size should be positive"):
        _csv(tmp_path, "a", tf.string, buffer_size=-1)
    assert list(_csv(tmp_path, "1\n\n2\n", [0]).as_numpy_iterator()) == [(1,), (0,), (2,)]
    assert list(_csv(tmp_path, b"\x82,b\n", tf.string, tf.string).as_numpy_iterator()) == [(b"\x82", b"b")]


def test_records_after_a_faulty_one_are_read(tmp_path):
    rows = _csv(tmp_path, 'a,b\nc"d,e\nf,g\n', tf.string, tf.string).ignore_errors()
    assert list(rows.as_numpy_iterator()) == [(b"a", b"b"), (b"f", b"g")]


def test_defaults_of_a_graph_are_constants(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rows = _csv(tmp_path, ",2\n", tf.constant([7]), tf.constant([], tf.int32))
        element = tf.compat.v1.data.make_one_shot_iterator(rows).get_next()
        assert session.run(element) == (7, 2)


def test_a_query_that_is_read_does_not_lock_its_file(tmp_path):
    path = str(tmp_path / "table.sqlite")
    connection = sqlite3.connect(path, timeout=0.1)
    connection.execute("create table numbers (n integer)")
    connection.execute("insert into numbers values (1), (2), (3)")
    connection.commit()
    rows = iter(tf.data.experimental.SqlDataset("sqlite", path, "select n from numbers", (tf.int32,)))
    assert next(rows)[0] == 1
    connection.execute("drop table numbers")
    connection.commit()
    assert next(rows)[0] == 2
