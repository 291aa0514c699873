"""Datasets of files of examples and of SQLite files."""

import sqlite3

import numpy as np
import pytest

import tapeflow as tf

FEATURES = {"a": tf.io.FixedLenFeature([], tf.float32), "b": tf.io.VarLenFeature(tf.int64)}


def example(a, b):
    feature = {
        "a": tf.train.Feature(float_list=tf.train.FloatList(value=[a])),
        "b": tf.train.Feature(int64_list=tf.train.Int64List(value=b)),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


@pytest.fixture
def pattern(tmp_path):
    for k in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"{k}.tfrecord")) as writer:
            for i in range(3):
                writer.write(example(10.0 * k + i, list(range(i))))
    return str(tmp_path / "*.tfrecord")


class TestBatchedFeatures:
    make = staticmethod(tf.data.experimental.make_batched_features_dataset)

    def test_files_one_after_the_other(self, pattern):
        batches = list(self.make(pattern, 4, FEATURES, shuffle=False, num_epochs=1))
        assert [batch["a"].numpy().tolist() for batch in batches] == [[0, 1, 2, 10], [11, 12]]
        assert tf.sparse.to_dense(batches[0]["b"]).numpy().tolist() == [[0, 0], [0, 0], [0, 1], [0, 0]]
        dropped = self.make(pattern, 4, FEATURES, shuffle=False, num_epochs=1, drop_final_batch=True)
        assert len(list(dropped)) == 1 and dropped.element_spec["a"].shape == [4]

    def test_files_side_by_side(self, pattern):
        batches = self.make(pattern, 2, FEATURES, shuffle=False, num_epochs=1, reader_num_threads=2)
        assert [batch["a"].numpy().tolist() for batch in batches] == [[0, 10], [1, 11], [2, 12]]

    def test_without_epochs_it_goes_on(self, pattern):
        labels = [y for x, y in self.make(pattern, 4, FEATURES, shuffle=False, label_key="a").take(3) if "a" not in x]
        assert [y.numpy().tolist() for y in labels] == [[0, 1, 2, 10], [11, 12, 0, 1], [2, 10, 11, 12]]

    def test_shuffled(self, pattern):
        batches = self.make(pattern, 6, FEATURES, num_epochs=1, shuffle_seed=5, reader_num_threads=tf.data.AUTOTUNE)
        (batch,) = list(batches)
        assert sorted(batch["a"].numpy().tolist()) == [0, 1, 2, 10, 11, 12]

    def test_readers_with_keys(self, pattern):
        def reader(file, suffix):
            return tf.data.TFRecordDataset(file).map(lambda record: (file + suffix, record))

        batches = self.make(pattern, 3, FEATURES, reader, reader_args=["!"], shuffle=False, num_epochs=1)
        assert [batch["a"].numpy().tolist() for batch in batches] == [[0, 1, 2], [10, 11, 12]]

    def test_what_is_refused(self, pattern):
        with pytest.raises(ValueError, match=r"`label_key` provided \(z\) must be one of"):
            self.make(pattern, 2, FEATURES, label_key="z")
        with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
            self.make(pattern + "none", 2, FEATURES)
        parse = tf.data.experimental.parse_example_dataset(FEATURES)
        for dataset in (tf.data.Dataset.range(3), tf.data.Dataset.from_tensors("text")):
            with pytest.raises(TypeError, match="should be a dataset of vectors of strings"):
                dataset.apply(parse)
        with pytest.raises(ValueError, match="`features` is required"):
            tf.data.experimental.parse_example_dataset(None)


@pytest.fixture
def students(tmp_path):
    file = str(tmp_path / "students.sqlite")
    connection = sqlite3.connect(file)
    connection.execute("create table students (id integer, name text, grade real, here integer, note text)")
    rows = [(1, "John", 3.5, 1, None), (2, "Jane", 2.25, 0, "x")]
    connection.executemany("insert into students values (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return file


def rows_of(file, query, types):
    return list(tf.data.experimental.SqlDataset("sqlite", file, query, types).as_numpy_iterator())


class TestSql:
    def test_columns_have_their_types(self, students):
        types = (tf.int32, tf.string, tf.float64, tf.bool, tf.string)
        rows = rows_of(students, "select * from students order by id", types)
        assert rows == [(1, b"John", 3.5, True, b""), (2, b"Jane", 2.25, False, b"x")]
        assert [type(value) for value in rows[0]][::2] == [np.int32, np.float64, bytes]

    def test_values_are_converted(self, students):
        query = "select id, grade from students order by id"
        assert rows_of(students, query, (tf.string, tf.string)) == [(b"1", b"3.5"), (b"2", b"2.25")]
        assert rows_of(students, query, (tf.uint16, tf.int8)) == [(1, 3), (2, 2)]
        assert rows_of(students, "select name from students", tf.int32) == [0, 0]
        assert rows_of(students, "select id from students where id > 9", (tf.int64,)) == []

    def test_it_is_a_dataset(self, students):
        dataset = tf.data.experimental.SqlDataset("sqlite", students, "select id from students", tf.int64)
        assert [x.numpy().tolist() for x in dataset.repeat(2).map(lambda x: x * x).batch(4)] == [[1, 4, 1, 4]]

    def test_what_is_refused(self, students):
        refused = [
            (tf.errors.InvalidArgumentError, "must match the number of elements", "select id, name from students"),
            (tf.errors.UnknownError, "syntax error", "selec id"),
            (tf.errors.UnknownError, "no such table", "select id from teachers"),
            (tf.errors.UnknownError, "readonly", "delete from students"),
        ]
        for error, message, query in refused:
            with pytest.raises(error, match=message):
                rows_of(students, query, (tf.int64,))
        with pytest.raises(tf.errors.InvalidArgumentError, match="database type, mysql, is not supported"):
            tf.data.experimental.SqlDataset("mysql", students, "select 1", tf.int64)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be one of"):
            rows_of(students, "select id from students", (tf.float32,))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
            rows_of([students], "select id from students", (tf.int64,))
