"""Files, records and serialised tensors: as TensorFlow writes and reads them, with its errors."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core
from tapeflow._src.io.records import masked, read_records


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestFiles:
    def test_read_and_write(self):
        tf.io.write_file("a/b.bin", b"\0\xff")
        assert tf.io.read_file(tf.constant("a/b.bin")).numpy() == b"\0\xff"

    def test_missing_file(self):
        with pytest.raises(tf.errors.NotFoundError, match="nothing; No such file or directory"):
            tf.io.read_file("nothing")

    def test_in_a_graph_files_are_read_when_it_runs(self):
        @tf.function
        def read(name):
            return tf.io.read_file(name), tf.io.read_file("fixed")

        tf.io.write_file("fixed", "1")
        assert [x.numpy() for x in read("fixed")] == [b"1", b"1"]
        tf.io.write_file("fixed", "2")
        assert [x.numpy() for x in read(tf.constant("fixed"))] == [b"2", b"2"]

    def test_in_a_graph_files_are_written_when_it_runs(self):
        @tf.function
        def write(name):
            tf.io.write_file(name, "x")

        write(tf.constant("one"))
        write(tf.constant("two"))
        assert tf.io.matching_files(["o*", "t*"]).numpy().tolist() == [b"one", b"two"]

    def test_decode_compressed(self):
        assert tf.io.decode_compressed([gzip.compress(b"abc")], "GZIP").numpy().tolist() == [b"abc"]
        assert tf.io.decode_compressed(zlib.compress(b""), "ZLIB").numpy() == b""
        with pytest.raises(tf.errors.InvalidArgumentError, match="supported compressions"):
            tf.io.decode_compressed([b""], "BZIP")
        with pytest.raises(tf.errors.DataLossError):
            tf.io.decode_compressed([b"q"], "ZLIB")


class TestGFile:
    def test_text(self):
        with tf.io.gfile.GFile("a", "w") as file:
            file.write("hällo\nx\n")
        with tf.io.gfile.GFile("a", "a") as file:
            file.write("more")
        with tf.io.gfile.GFile("a") as file:
            assert (file.size(), file.readline(), file.tell(), file.read(2), file.readlines()) == (
                13, "hällo\n", 7, "x\n", ["more"],
            )  # fmt: skip
            file.seek(0)
            assert list(file) == ["hällo\n", "x\n", "more"]
            with pytest.raises(tf.errors.PermissionDeniedError):
                file.write("x")

    def test_a_read_ends_with_a_whole_character(self):
        tf.io.write_file("a", "äö".encode())
        assert tf.io.gfile.GFile("a").read(1) == "ä"

    def test_bytes(self):
        with tf.io.gfile.GFile("a", "wb") as file:
            file.write(b"\xff")
        assert tf.io.gfile.GFile("a", "rb").read() == b"\xff"

    def test_missing(self):
        with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
            tf.io.gfile.GFile("nothing").read()
        with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
            tf.io.gfile.listdir("nothing")
        with pytest.raises(tf.errors.NotFoundError):
            tf.io.gfile.remove("nothing")
        with pytest.raises(tf.errors.NotFoundError):
            tf.io.gfile.rmtree("nothing")

    def test_the_folder_of_a_name_without_one(self):
        tf.io.gfile.makedirs("")
        tf.io.gfile.mkdir("")

    def test_a_file_where_a_folder_belongs(self, tmp_path):
        (tmp_path / "file").write_text("x")
        for name in ("file", "file/below"):
            with pytest.raises(tf.errors.FailedPreconditionError, match="not a directory"):
                tf.io.gfile.makedirs(str(tmp_path / name))

    def test_a_mode_that_there_is_not(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not 'r' or 'w'"):
            tf.io.gfile.GFile("file", "x")

    def test_folders(self):
        tf.io.gfile.makedirs("a/b")
        tf.io.gfile.makedirs("a/b")
        tf.io.gfile.mkdir("a")
        with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
            tf.io.gfile.remove("a")
        assert tf.io.gfile.stat("a").is_directory
        assert list(tf.io.gfile.walk("a")) == [("a", ["b"], []), ("a/b", [], [])]
        tf.io.gfile.rmtree("a")
        assert not tf.io.gfile.exists("a")

    def test_copy_and_rename_do_not_overwrite_unasked(self):
        tf.io.write_file("a", "1")
        tf.io.write_file("b", "2")
        for change in (tf.io.gfile.copy, tf.io.gfile.rename):
            with pytest.raises(tf.errors.AlreadyExistsError, match="file already exists"):
                change("a", "b")
        tf.io.gfile.copy("a", "b", overwrite=True)
        assert tf.io.read_file("b").numpy() == b"1"


class TestRecords:
    def test_checksum(self):
        assert _core.crc32c(b"123456789") == 0xE3069283
        assert _core.crc32c(b"") == 0
        assert _core.crc32c(bytes(32)) == 0x8A9136AA
        assert _core.crc32c(b"6789", _core.crc32c(b"12345")) == 0xE3069283

    def test_bytes_of_a_file(self):
        with tf.io.TFRecordWriter("r") as writer:
            writer.write(b"hi")
        assert Path("r").read_bytes() == b"\x02\0\0\0\0\0\0\0x'\x0b4hi\x13\xd6\x08V"

    @pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
    def test_round_trip(self, kind):
        records = [b"", b"a", bytes(range(256)) * 50]
        with tf.io.TFRecordWriter("r", kind) as writer:
            for record in records:
                writer.write(record)
            writer.flush()
        assert list(read_records("r", kind)) == records

    def test_damage_is_noticed(self):
        with tf.io.TFRecordWriter("r") as writer:
            writer.write(b"hello")
        data = Path("r").read_bytes()
        for broken, what in (
            (data[:-1], "truncated"),
            (data[:-5] + b"X" + data[-4:], "corrupted"),
            (data[:5], "trunc"),
        ):
            Path("broken").write_bytes(broken)
            with pytest.raises(tf.errors.DataLossError, match=what):
                list(read_records("broken"))

    def test_closed_writer(self):
        writer = tf.io.TFRecordWriter("r")
        writer.close()
        with pytest.raises(tf.errors.FailedPreconditionError):
            writer.write(b"")

    def test_unknown_compression(self):
        with pytest.raises(ValueError, match="compression_type"):
            tf.io.TFRecordOptions("BZIP")


class TestSerializedTensors:
    def test_bytes_of_tensors(self):
        assert tf.io.serialize_tensor([[1, 2], [3, 4]]).numpy() == (
            b'\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02"\x10\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0'
        )
        assert tf.io.serialize_tensor(["a", "bc"]).numpy() == b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc"
        assert tf.io.serialize_tensor(tf.constant(3, tf.int8)).numpy() == b'\x08\x06\x12\0"\x01\x03'

    @pytest.mark.parametrize(
        "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "bool", "complex64"]
    )
    def test_round_trip(self, dtype):
        x = tf.cast([[0, 1], [2, 3]], dtype)
        y = tf.io.parse_tensor(tf.io.serialize_tensor(x), dtype)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(x.numpy(), y.numpy())

    def test_empty_and_strings(self):
        assert tf.io.parse_tensor(tf.io.serialize_tensor(tf.zeros([0, 3])), tf.float32).shape == [0, 3]
        assert tf.io.parse_tensor(tf.io.serialize_tensor([""]), tf.string).numpy().tolist() == [b""]

    def test_lists_of_numbers_are_read_too(self):
        """As other programs write them: one value stands for all that follow."""
        head = b"\x08\x01\x12\x04\x12\x02\x08\x03"
        assert tf.io.parse_tensor(head + b"*\x04\0\0\x80?", tf.float32).numpy().tolist() == [1.0, 1.0, 1.0]

    def test_refusals(self):
        text = tf.io.serialize_tensor([1])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Type mismatch between parsed tensor \(int32\)"):
            tf.io.parse_tensor(text, tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse `serialized` as TensorProto"):
            tf.io.parse_tensor(b"zz", tf.float32)

    def test_in_a_graph(self):
        @tf.function
        def both_ways(x):
            return tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32)

        assert both_ways(tf.constant([1.0])).numpy().tolist() == [1.0]

    def test_sparse(self):
        x = tf.sparse.from_dense([[1, 0], [0, 2]])
        rows = tf.io.serialize_many_sparse(x)
        assert rows.numpy()[1, 1] == b'\x08\x03\x12\x04\x12\x02\x08\x01"\x04\x02\0\0\0'
        y = tf.io.deserialize_many_sparse(rows, tf.int32)
        np.testing.assert_array_equal(tf.sparse.to_dense(y).numpy(), [[1, 0], [0, 2]])


class TestCsv:
    def test_columns(self):
        one, two, three = tf.io.decode_csv(["1,2.5,a", '3,,"b,c"'], [[0], [1.5], ["x"]])
        assert one.numpy().tolist() == [1, 3]
        assert two.numpy().tolist() == [2.5, 1.5]
        assert three.numpy().tolist() == [b"a", b"b,c"]

    def test_quotes(self):
        assert tf.io.decode_csv(['"x""y"'], [[""]])[0].numpy().tolist() == [b'x"y']
        for line, what in (
            ('a"b', "Unquoted fields cannot have"),
            ('"a', "Quoted field has to end"),
            ('"a"b', "Quoted"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=what):
                tf.io.decode_csv([line], [[""]])
        assert tf.io.decode_csv(['a"b'], [[""]], use_quote_delim=False)[0].numpy().tolist() == [b'a"b']

    def test_options(self):
        assert [x.numpy() for x in tf.io.decode_csv("1;2", [[0], [0]], field_delim=";")] == [1, 2]
        assert tf.io.decode_csv(["1,NA"], [[0], [7]], na_value="NA")[1].numpy() == [7]
        assert [x.numpy()[0] for x in tf.io.decode_csv(["1,2,3"], [[0], [0]], select_cols=[0, 2])] == [1, 3]

    def test_refusals(self):
        for lines, defaults, what in (
            (["1,2"], [[0]], "Expect 1 fields but have 2 in record 0"),
            (["1", "a"], [[0]], "Field 0 in record 1 is not a valid int32: a"),
            ([""], [tf.constant([], tf.float32)], "Field 0 is required but missing in record 0!"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=what):
                tf.io.decode_csv(lines, defaults)

    def test_in_a_graph(self):
        @tf.function
        def columns(line):
            return tf.io.decode_csv(line, [[0.0], [""]])

        number, text = columns(tf.constant("2.5,a"))
        assert (float(number), text.numpy()) == (2.5, b"a")


@pytest.mark.parametrize(("number", "kind"), [("NONE", ""), ("ZLIB", "ZLIB"), ("GZIP", "GZIP")])
def test_compression_by_the_numbers_of_tensorflow_1(tmp_path, number, kind):
    compression = getattr(tf.compat.v1.python_io.TFRecordCompressionType, number)
    options = tf.compat.v1.io.TFRecordOptions(compression)
    assert options.compression_type == kind
    path = str(tmp_path / "records")
    with tf.io.TFRecordWriter(path, options) as writer:
        writer.write(b"one")
    assert [r.numpy() for r in tf.data.TFRecordDataset(path, compression_type=kind)] == [b"one"]


def test_a_record_that_claims_more_than_the_file_holds(tmp_path):
    """The length has its right checksum: the length is refused when the file ends, before memory is taken for it."""
    length = (1 << 60).to_bytes(8, "little")
    path = tmp_path / "claims.tfrecord"
    path.write_bytes(length + masked(_core.crc32c(length)) + b"short")
    for read in (tf.compat.v1.io.tf_record_iterator, tf.data.TFRecordDataset):
        with pytest.raises(tf.errors.DataLossError, match="truncated record"):
            list(read(str(path)))
