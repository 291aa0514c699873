"""Tables of TensorFlow 1, and those of vocabularies that libraries import from `lookup_ops`."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.v1 import lookup


def test_tables_of_a_graph_have_initializers():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        words = tf.compat.v1.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], tf.string, tf.int64)
        table = tf.compat.v1.lookup.StaticHashTable(words, -1)
        numbers = tf.compat.v1.lookup.StaticVocabularyTable(words, 2)
        session.run([table.initializer, numbers.initializer, tf.compat.v1.tables_initializer()])
        found = session.run([table.lookup(tf.constant(["b", "q"])), numbers.lookup(tf.constant(["b", "q"]))])
        assert found[0].tolist() == [1, -1] and found[1][0] == 1 and found[1][1] in (2, 3)


def test_tables_of_vocabularies(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("brain\nsalad\nsurgery\n")
    table = lookup.index_table_from_file(str(file), num_oov_buckets=1)
    assert table.lookup(tf.constant(["salad", "surgery", "tarkus"])).numpy().tolist() == [1, 2, 3]
    assert int(table.size()) == 4
    table = lookup.index_table_from_tensor([10, -10, 7], dtype=tf.int64)
    assert table.lookup(tf.constant([7, 1], tf.int64)).numpy().tolist() == [2, -1]
    strong = lookup.index_table_from_tensor(["a"], 5, hasher_spec=lookup.StrongHashSpec((1, 2)))
    want = tf.strings.to_hash_bucket_strong(["q"], 5, [1, 2]) + 1
    assert strong.lookup(tf.constant(["a", "q"])).numpy().tolist() == [0, int(want[0])]
    for words in (
        lookup.index_to_string_table_from_file(str(file)),
        lookup.index_to_string_table_from_tensor(["brain", "salad", "surgery"]),
    ):
        assert words.lookup(tf.constant([1, 9], tf.int64)).numpy().tolist() == [b"salad", b"UNK"]
    ragged = table.lookup(tf.ragged.constant([[7], [10, 0]], dtype=tf.int64))
    assert ragged.to_list() == [[2], [0, -1]]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: lookup.index_table_from_file(""), ValueError),
        (lambda: lookup.index_table_from_file("f", num_oov_buckets=-1), ValueError),
        (lambda: lookup.index_table_from_file("f", vocab_size=0), ValueError),
        (lambda: lookup.index_table_from_file("f", key_dtype=tf.float32), TypeError),
        (lambda: lookup.index_table_from_tensor(None), ValueError),
        (lambda: lookup.index_table_from_tensor(["a"], dtype=tf.int64), ValueError),
        (lambda: lookup.IdTableWithHashBuckets(None, 0), ValueError),
        (lambda: lookup.IdTableWithHashBuckets(None, 1, hasher_spec=3), TypeError),
        (lambda: lookup.StrongHashSpec((1,)), ValueError),
    ],
)
def test_wrong_vocabularies_are_refused(make, error):
    with pytest.raises(error):
        make()
