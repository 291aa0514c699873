"""Tables: eager, in graphs, ragged and sparse keys, and the numbers that TensorFlow gives unknown words."""

import numpy as np
import pytest

import tapeflow as tf


def static(keys=("a", "b"), values=(1, 2), default=-1):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(list(keys), list(values)), default)


class TestStatic:
    def test_lookup(self):
        table = static()
        assert table.lookup(tf.constant([["a"], ["z"]])).numpy().tolist() == [[1], [-1]]
        assert table[tf.constant("b")].numpy() == 2
        assert table.size().numpy() == 2
        assert (table.key_dtype, table.value_dtype) == (tf.string, tf.int32)

    def test_ragged_and_sparse(self):
        table = static()
        assert table.lookup(tf.ragged.constant([["a"], [], ["b", "q"]])).to_list() == [[1], [], [2, -1]]
        found = table.lookup(tf.sparse.from_dense([["a", "b"]]))
        assert found.values.numpy().tolist() == [1, 2]

    def test_in_a_graph(self):
        table = static((10, 20), ("x", "y"), "?")

        @tf.function
        def find(keys):
            return table.lookup(keys)

        assert find(tf.constant([20, 5])).numpy().tolist() == [b"y", b"?"]

    def test_export(self):
        keys, values = static().export()
        assert dict(zip(keys.numpy().tolist(), values.numpy().tolist())) == {b"a": 1, b"b": 2}

    def test_refusals(self):
        with pytest.raises(TypeError, match="Dtype of argument `keys` must be"):
            static().lookup(tf.constant([1]))
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"different value for same key\. Key a has 1 and"):
            static(("a", "a"), (1, 2))
        assert static(("a", "a"), (1, 1)).size().numpy() == 1


class TestTextFile:
    def test_lines_and_columns(self, tmp_path):
        path = tmp_path / "words"
        path.write_text("x 1\ny 2\n")
        line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter=" ")
        assert tf.lookup.StaticHashTable(words, -1).lookup(tf.constant(["y", "x"])).numpy().tolist() == [2, 1]
        lines = tf.lookup.TextFileInitializer(str(path), tf.string, line, tf.int64, number, value_index_offset=5)
        assert tf.lookup.StaticHashTable(lines, -1).lookup(tf.constant("y 2")).numpy() == 6
        back = tf.lookup.TextFileInitializer(str(path), tf.int64, number, tf.string, line)
        assert tf.lookup.StaticHashTable(back, "").lookup(tf.constant([1], tf.int64)).numpy() == [b"y 2"]

    def test_refusals(self, tmp_path):
        path = tmp_path / "words"
        path.write_text("x\n")
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid number of columns"):
            tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1), -1)
        with pytest.raises(ValueError, match="LINE_NUMBER"):
            tf.lookup.TextFileInitializer(str(path), tf.string, -2, tf.string, -1)
        with pytest.raises(tf.errors.NotFoundError):
            tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer("nothing", tf.string, -2, tf.int64, -1), -1)


class TestVocabulary:
    def test_unknown_words_get_tensorflows_numbers(self):
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
        table = tf.lookup.StaticVocabularyTable(words, 3)
        assert table.lookup(tf.constant(["a", "q", "w", "e"])).numpy().tolist() == [0, 4, 4, 3]
        assert table.size().numpy() == 5

    def test_integers(self):
        words = tf.lookup.KeyValueTensorInitializer(tf.constant([10, 20], tf.int64), tf.constant([0, 1], tf.int64))
        table = tf.lookup.StaticVocabularyTable(words, 3)
        assert table.lookup(tf.constant([10, 3, 4, 5], tf.int64)).numpy().tolist() == [0, 2, 4, 3]

    def test_without_a_vocabulary(self):
        table = tf.lookup.StaticVocabularyTable(None, 3, lookup_key_dtype=tf.string)
        assert table.lookup(tf.constant(["a", "q"])).numpy().tolist() == [0, 2]


class TestMutable:
    def test_life(self):
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
        table.remove(tf.constant(["a", "x"]))
        assert table.size().numpy() == 1
        keys = tf.constant(["b", "c"])
        assert table.lookup(keys).numpy().tolist() == [2, -1]
        assert table.lookup(keys, tf.constant([5, 6], tf.int64)).numpy().tolist() == [2, 6]
        assert [x.numpy().tolist() for x in table.export()] == [[b"b"], [2]]

    def test_values_that_are_vectors(self):
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
        table.insert(tf.constant(["a"]), [[1.0, 2.0]])
        np.testing.assert_array_equal(table.lookup(tf.constant(["a", "x"])).numpy(), [[1, 2], [0, 0]])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape"):
            table.insert(tf.constant(["a"]), [1.0])

    def test_in_a_graph(self):
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)

        @tf.function
        def count(key):
            table.insert(key, table.lookup(key) + 1)
            return table.size()

        for key in (5, 5, 7):
            size = count(tf.constant([key], tf.int64))
        assert size.numpy() == 2
        assert table.lookup(tf.constant([5, 7], tf.int64)).numpy().tolist() == [2, 1]

    def test_reserved_keys(self):
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key as a table key is not allowed"):
            table.insert(tf.constant([0], tf.int64), tf.constant([1], tf.int64))
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be equal"):
            tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, 0)


def test_in_a_graph_of_tensorflow_1():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        table, changing = static(), tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        words = v1.placeholder(tf.string, [None])
        session.run(v1.tables_initializer())
        assert session.run(table.lookup(words), {words: ["b", "z"]}).tolist() == [2, -1]
        insert = changing.insert(words, tf.constant([5], tf.int64))
        found = changing.lookup(words)
        assert session.run(found, {words: ["q"]}).tolist() == [-1]
        session.run(insert, {words: ["q"]})
        assert session.run(found, {words: ["q"]}).tolist() == [5]


def test_tables_of_an_imported_graph_are_filled_by_their_initializer():
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        filled = v1.Variable(0.0)
        session.run(v1.global_variables_initializer())
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, filled.assign(1.0).op)
        session.run(v1.tables_initializer())
        assert session.run(filled) == 1.0


def test_the_offset_counts_lines_of_keys_too(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    words = tf.lookup.TextFileInitializer(str(path), tf.int64, number, tf.string, line, value_index_offset=5)
    table = tf.lookup.StaticHashTable(words, "?")
    assert table.lookup(tf.constant([0, 5, 6], tf.int64)).numpy().tolist() == [b"?", b"a", b"b"]


def test_a_vocabulary_without_words_has_buckets_only():
    table = tf.lookup.StaticVocabularyTable(None, 5)
    np.testing.assert_array_equal(table.lookup(tf.constant(["brain", "salad", "surgery"])), [3, 1, 4])
    assert table.size() == 5 and table.key_dtype == tf.string and table.resource_handle is None


def test_keys_may_be_vectors():
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=[0, 3], deleted_key=[-1, -1]
    )
    table.insert(tf.constant([[0, 1], [1, 2]], tf.int64), tf.constant([10, 11], tf.int64))
    table.remove(tf.constant([[1, 2], [7, 8]], tf.int64))
    np.testing.assert_array_equal(table.lookup(tf.constant([[0, 1], [1, 2]], tf.int64)), [10, -1])
    np.testing.assert_array_equal(table.export()[0], [[0, 1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected key shape"):
        table.lookup(tf.constant([1, 2, 3], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key"):
        table.insert(tf.constant([[0, 3]], tf.int64), tf.constant([1], tf.int64))


def test_what_tables_refuse():
    dense = tf.lookup.experimental.DenseHashTable
    for given, message in [
        ({"empty_key": 1, "deleted_key": [1, 2]}, "same shape"),
        ({"empty_key": 1, "deleted_key": 1}, "cannot be equal"),
        ({"empty_key": 1, "deleted_key": 2, "initial_num_buckets": 12}, "power of 2"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            dense(tf.int64, tf.int64, -1, **given)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a vector"):
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, [[-1, -1]])
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, [-1, -1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Expected shape \[2\] or \[1,2\] for default value, got \[3\]"
    ):
        table.lookup(tf.constant(["a"]), tf.constant([1, 2, 3], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="one shape"):
        tf.lookup.KeyValueTensorInitializer(["a"], [1, 2])


def changing_tables():
    return {
        "strings": tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, "?"),
        "rows": tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0]),
        "dense": tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, -1, -2),
        "words": tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "", "~"),
        "pairs": tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, [-1, -1], [-2, -2]),
    }


CONTENTS = {
    "strings": ([1, 2], ["a", "b\0"]),
    "rows": (["a", "b"], [[1.0, 2.0], [3.0, 4.0]]),
    "dense": ([1, 9, 17, 25], [0.1, 0.9, 0.17, 0.25]),  # all of them begin in one bucket
    "words": (["x", "y"], [1, 2]),
    "pairs": ([[1, 2], [2, 1]], [12, 21]),
}


def test_checkpoints_hold_the_contents_of_tables(tmp_path):
    tables = changing_tables()
    for name, (keys, values) in CONTENTS.items():
        tables[name].insert(keys, values)
    path = tf.train.Checkpoint(**tables).save(tmp_path / "tables")
    others = changing_tables()
    others["dense"].insert([5], [5.0])  # is not in the checkpoint
    tf.train.Checkpoint(**others).restore(path).assert_consumed()
    for name, (keys, values) in CONTENTS.items():
        assert int(others[name].size()) == len(keys)
        found = others[name].lookup(tf.constant(keys, others[name].key_dtype))
        assert bool(tf.reduce_all(found == tf.constant(values, found.dtype)))
    assert others["strings"].lookup(tf.constant([2], tf.int64)).numpy()[0] == b"b\0"


def test_the_buckets_of_a_dense_table_are_tensorflows(tmp_path):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -7, -1, -2)
    table.insert([1, 9, 4], [10, 90, 40])
    reader = tf.train.load_checkpoint(tf.train.Checkpoint(t=table).save(tmp_path / "t"))
    # 9 begins where 1 is, in bucket 1 of 8, and goes on to the next one.
    assert reader.get_tensor("t/.ATTRIBUTES/table-keys").ravel().tolist() == [-1, 1, 9, -1, 4, -1, -1, -1]
    assert reader.get_tensor("t/.ATTRIBUTES/table-values").ravel().tolist() == [-7, 10, 90, -7, 40, -7, -7, -7]


def test_a_table_without_checkpoint_is_not_saved(tmp_path):
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1, checkpoint=False)
    path = tf.train.Checkpoint(t=table).save(tmp_path / "t")
    assert not any("table" in name for name, _ in tf.train.list_variables(path))
