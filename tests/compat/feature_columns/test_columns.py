"""Feature columns: what they make of features, eager, in functions and in graphs of TensorFlow 1."""

import numpy as np
import pytest

import tapeflow as tf

fc, v1 = tf.feature_column, tf.compat.v1
internal = tf.__internal__.feature_column

FEATURES = {"price": [[1.0], [5.0], [20.0]], "word": [["a"], ["b"], ["zz"]], "digit": [[1, 2], [0, -1], [2, 2]]}


def _columns():
    price = fc.numeric_column("price")
    buckets = fc.bucketized_column(price, [2.0, 10.0])
    word = fc.categorical_column_with_vocabulary_list("word", ["a", "b"], num_oov_buckets=2)
    digit = fc.categorical_column_with_identity("digit", 3)
    return price, buckets, word, digit, fc.crossed_column(["word", buckets, digit], 100)


def test_input_layer_puts_columns_side_by_side():
    price, buckets, word, digit, _ = _columns()
    columns = [price, buckets, fc.indicator_column(word), fc.indicator_column(digit)]
    expected = [
        [0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0],
        [1, 0, 0, 5, 0, 1, 0, 0, 1, 0, 0],
        [0, 0, 2, 20, 0, 0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(v1.feature_column.input_layer(FEATURES, columns), expected)
    traced = tf.function(lambda features: v1.feature_column.input_layer(features, columns))
    np.testing.assert_array_equal(traced({k: tf.constant(v) for k, v in FEATURES.items()}), expected)


def test_crosses_hash_as_tensorflow_does():
    *_, crossed = _columns()
    y = v1.feature_column.input_layer(FEATURES, [fc.indicator_column(crossed)]).numpy()
    assert np.argwhere(y).tolist() == [[0, 25], [0, 80], [1, 47], [2, 12]]


def test_linear_model_trains_in_a_graph():
    price, buckets, word, digit, crossed = _columns()
    with tf.Graph().as_default():
        features = {k: tf.constant(v) for k, v in FEATURES.items()}
        variables = {}
        y = v1.feature_column.linear_model(features, [price, buckets, word, digit, crossed], cols_to_vars=variables)
        assert y.shape.as_list()[1] == 1
        loss = tf.reduce_sum((y - [[1.0], [2.0], [3.0]]) ** 2)
        step = v1.train.AdagradOptimizer(0.5).minimize(loss)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            before = session.run(loss)
            for _ in range(20):
                session.run(step)
            assert session.run(loss) < 0.2 * before
        assert [v.name for v in variables[word]] == ["linear_model/word/weights:0"]
        assert [v.name for v in variables["bias"]] == ["linear_model/bias_weights:0"]


def test_embeddings_choose_rows():
    *_, digit, _ = _columns()
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    column = fc.embedding_column(digit, 2, initializer=lambda shape, dtype, partition_info=None: tf.constant(table))
    with tf.Graph().as_default(), v1.Session() as session:
        y = v1.feature_column.input_layer({"digit": tf.constant(FEATURES["digit"])}, [column])
        session.run(v1.global_variables_initializer())
        np.testing.assert_allclose(session.run(y), [[3, 4], [0, 1], [4, 5]])


def test_weights_of_categories_are_summed():
    digit = fc.weighted_categorical_column(fc.categorical_column_with_identity("digit", 3), "weight")
    features = {"digit": [[1, 1, 5]], "weight": [[0.5, 2.0, 9.0]]}
    y = v1.feature_column.input_layer(features, [fc.indicator_column(digit)])
    np.testing.assert_array_equal(y, [[0, 2.5, 0]])


def test_sequences_give_steps_and_lengths():
    digit = fc.sequence_categorical_column_with_identity("digit", 3)
    number = fc.sequence_numeric_column("number", shape=2)
    ids = tf.SparseTensor([[0, 0], [2, 0], [2, 1]], tf.constant([2, 0, 1], tf.int64), [4, 2])
    numbers = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]], [1.0, 2, 3, 4, 5, 6], [4, 4])
    cache = internal.FeatureTransformationCache({"digit": ids, "number": numbers})
    steps, lengths = fc.indicator_column(digit).get_sequence_dense_tensor(cache, None)
    assert lengths.numpy().tolist() == [1, 0, 2, 0]
    assert steps.numpy()[2].tolist() == [[1, 0, 0], [0, 1, 0]]
    steps, lengths = number.get_sequence_dense_tensor(cache, None)
    assert lengths.numpy().tolist() == [1, 0, 2, 0]
    assert steps.numpy()[2].tolist() == [[3, 4], [5, 6]]


def test_vocabulary_files(tmp_path):
    path = str(tmp_path / "words.txt")
    tf.io.write_file(path, "x\ny\n")
    column = fc.categorical_column_with_vocabulary_file("word", path, num_oov_buckets=1)
    assert column.num_buckets == 3
    y = v1.feature_column.input_layer({"word": [["y"], ["?"]]}, [fc.indicator_column(column)])
    np.testing.assert_array_equal(y, [[0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="does not exist"):
        fc.categorical_column_with_vocabulary_file("word", path + "x")


def test_examples_are_parsed_by_the_specification():
    price, _, word, *_ = _columns()
    spec = fc.make_parse_example_spec([price, fc.indicator_column(word)])
    feature = {
        "price": tf.train.Feature(float_list=tf.train.FloatList(value=[2.0])),
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"b"])),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    parsed = tf.io.parse_example([example], spec)
    y = v1.feature_column.input_layer(parsed, [price, fc.indicator_column(word)])
    np.testing.assert_array_equal(y, [[2, 0, 1, 0, 0]])
    with pytest.raises(ValueError, match="different parse_spec for key price"):
        fc.make_parse_example_spec([price, fc.numeric_column("price", shape=2)])


def test_configurations_round_trip():
    price, buckets, word, digit, crossed = _columns()
    weighted = fc.weighted_categorical_column(digit, "weight")
    for column in (price, buckets, word, crossed, weighted, fc.indicator_column(word)):
        config = internal.serialize_feature_column(column)
        assert internal.deserialize_feature_column(config) == column
    embedding = internal.serialize_feature_column(fc.embedding_column(digit, 4))
    assert embedding["config"]["initializer"]["class_name"] == "TruncatedNormal"
    assert internal.deserialize_feature_column(embedding).dimension == 4
    shared = {}
    twice = [
        internal.deserialize_feature_column(internal.serialize_feature_column(c), None, shared)
        for c in (price, buckets)
    ]
    assert twice[0] is twice[1].source_column
    with pytest.raises(ValueError, match="Unknown feature_column_v2: Other"):
        internal.deserialize_feature_column({"class_name": "Other", "config": {}})


def test_shared_embeddings_have_one_variable():
    with tf.Graph().as_default():
        columns = [fc.categorical_column_with_identity(name, 3) for name in ("a", "b")]
        y = v1.feature_column.input_layer(
            {"a": [[1]], "b": [[1]]}, v1.feature_column.shared_embedding_columns(columns, 2)
        )
        assert len(v1.trainable_variables()) == 1
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            (row,) = session.run(y)
            np.testing.assert_array_equal(row[:2], row[2:])
    with pytest.raises(RuntimeError, match="eager"):
        fc.shared_embeddings(columns, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.numeric_column("x", shape=0), "greater than 0"),
        (lambda: fc.numeric_column("x", dtype=tf.string), "convertible to float"),
        (lambda: fc.numeric_column(3), "key must be a string"),
        (lambda: fc.numeric_column("x", shape=2, default_value=[1.0]), "must be equal to given shape"),
        (lambda: fc.bucketized_column(fc.numeric_column("x"), [2, 1]), "sorted list"),
        (lambda: fc.categorical_column_with_identity("x", 3, 3), "not in range"),
        (lambda: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]), "Duplicate keys"),
        (lambda: fc.crossed_column(["x", fc.categorical_column_with_hash_bucket("y", 2)], 3), "not supported for"),
        (lambda: fc.indicator_column(fc.numeric_column("x")), "must be a CategoricalColumn"),
        (lambda: v1.feature_column.input_layer({}, fc.numeric_column("x")), "not in features dictionary"),
        (lambda: v1.feature_column.input_layer({}, fc.categorical_column_with_identity("x", 3)), "_DenseColumn"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
