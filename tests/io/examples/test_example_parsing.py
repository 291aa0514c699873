"""Examples: the messages, their bytes, and what the parsers make of them."""

import pickle

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import tapeflow as tf


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


class TestMessages:
    def test_bytes(self):
        assert (
            example(a=ints(1, -2)) == b"\n\x16\n\x14\n\x01a\x12\x0f\x1a\r\n\x0b\x01" + b"\xfe" + b"\xff" * 8 + b"\x01"
        )
        assert example(c=floats(1.5)) == b"\n\x0f\n\r\n\x01c\x12\x08\x12\x06\n\x04\0\0\xc0?"
        assert example(b=texts(b"x")) == b"\n\x0c\n\n\n\x01b\x12\x05\n\x03\n\x01x"

    def test_round_trip_and_presence(self):
        message = tf.train.Example.FromString(example(a=ints(1, 300, -5), b=texts(b"x", b""), c=floats(0.5)))
        feature = message.features.feature
        assert list(feature["a"].int64_list.value) == [1, 300, -5]
        assert list(feature["b"].bytes_list.value) == [b"x", b""]
        assert feature["c"].WhichOneof("kind") == "float_list"
        assert not feature["c"].HasField("int64_list")
        assert pickle.loads(pickle.dumps(message)) == message

    def test_built_step_by_step(self):
        message = tf.train.Example()
        message.features.feature["a"].int64_list.value.append(3)
        message.features.feature["b"].bytes_list.value.extend([b"x"])
        assert message == tf.train.Example.FromString(example(a=ints(3), b=texts(b"x")))

    def test_unpacked_numbers_are_read(self):
        body = b"\x08\x01\x08\x02"
        feature = b"\x1a" + bytes([len(body)]) + body
        assert list(tf.train.Feature.FromString(feature).int64_list.value) == [1, 2]

    def test_text(self):
        text = str(tf.train.Example.FromString(example(a=ints(1))))
        assert text == (
            'features {\n  feature {\n    key: "a"\n    value {\n'
            "      int64_list {\n        value: 1\n      }\n    }\n  }\n}\n"
        )

    def test_refusals(self):
        with pytest.raises(TypeError):
            tf.train.BytesList(value=[3])
        with pytest.raises(TypeError):
            tf.train.Int64List(value=["1"])
        with pytest.raises(ValueError, match='has no "values" field'):
            tf.train.Int64List(values=[1])
        with pytest.raises(DecodeError, match="Error parsing message"):
            tf.train.Example.FromString(b"garbage")
        with pytest.raises(AttributeError, match="Assignment not allowed"):
            tf.train.Example().features = 3


class TestParsing:
    data = example(a=ints(1, -2), b=texts(b"x"), c=floats(1.5))

    def test_single(self):
        found = tf.io.parse_single_example(
            self.data,
            {
                "a": tf.io.FixedLenFeature([2], tf.int64),
                "b": tf.io.FixedLenFeature([], tf.string),
                "c": tf.io.VarLenFeature(tf.float32),
                "d": tf.io.FixedLenFeature([2], tf.float32, default_value=[7.0, 8.0]),
                "e": tf.io.FixedLenFeature([3], tf.int64, default_value=9),
            },
        )
        assert found["a"].numpy().tolist() == [1, -2]
        assert found["b"].numpy() == b"x"
        assert found["c"].indices.numpy().tolist() == [[0]]
        assert found["d"].numpy().tolist() == [7.0, 8.0]
        assert found["e"].numpy().tolist() == [9, 9, 9]

    def test_batch(self):
        found = tf.io.parse_example(
            [self.data, example(a=ints(5))],
            {
                "s": tf.io.RaggedFeature(tf.int64, value_key="a"),
                "c": tf.io.VarLenFeature(tf.float32),
                "t": tf.io.FixedLenFeature([], tf.string, ""),
            },
        )
        assert found["s"].to_list() == [[1, -2], [5]]
        assert found["s"].row_splits.dtype == tf.int32
        assert found["c"].dense_shape.numpy().tolist() == [2, 1]
        assert found["t"].numpy().tolist() == [b"", b""]

    def test_padded_sequences(self):
        feature = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-1)
        found = tf.io.parse_example([self.data, example(), example(a=ints(5))], {"a": feature})
        assert found["a"].numpy().tolist() == [[1, -2], [-1, -1], [5, -1]]

    def test_sparse_feature(self):
        data = example(at=ints(3, 0), value=floats(1.0, 2.0))
        feature = tf.io.SparseFeature("at", "value", tf.float32, 5)
        found = tf.io.parse_example([data, example()], {"x": feature})["x"]
        assert tf.sparse.to_dense(found).numpy().tolist() == [[2.0, 0.0, 0.0, 1.0, 0.0], [0.0] * 5]

    def test_ragged_partitions(self):
        data = example(v=ints(1, 2, 3), n=ints(2, 1))
        feature = tf.io.RaggedFeature(tf.int64, value_key="v", partitions=[tf.io.RaggedFeature.RowLengths("n")])
        assert tf.io.parse_single_example(data, {"x": feature})["x"].to_list() == [[1, 2], [3]]
        assert tf.io.parse_example([data, data], {"x": feature})["x"].to_list() == [[[1, 2], [3]]] * 2

    @pytest.mark.parametrize(
        ("feature", "what"),
        [
            ({"a": tf.io.FixedLenFeature([3], tf.int64)}, "Number of int64 values != expected.  Values size: 2"),
            ({"z": tf.io.FixedLenFeature([], tf.int64)}, r"Feature: z \(data type: int64\) is required but could not"),
            (
                {"a": tf.io.FixedLenFeature([2], tf.float32)},
                "Key: a.  Data types don't match. Data type: int64 but exp",
            ),
            ({"a": tf.io.FixedLenFeature([2], tf.int32)}, "is not in the list of allowed values"),
        ],
    )
    def test_refusals(self, feature, what):
        with pytest.raises(tf.errors.InvalidArgumentError, match=what):
            tf.io.parse_single_example(self.data, feature)

    def test_garbage_and_no_features(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input, value: 'garbage'"):
            tf.io.parse_example([b"garbage"], {"a": tf.io.VarLenFeature(tf.int64)})
        with pytest.raises(ValueError, match="features cannot be empty"):
            tf.io.parse_single_example(self.data, {})

    def test_in_a_graph(self):
        @tf.function
        def parse(data):
            found = tf.io.parse_single_example(
                data, {"a": tf.io.FixedLenFeature([2], tf.int64), "c": tf.io.VarLenFeature(tf.float32)}
            )
            assert found["a"].shape == [2]
            return found["a"] * 2, tf.sparse.to_dense(found["c"])

        doubled, dense = parse(tf.constant(self.data))
        assert doubled.numpy().tolist() == [2, -4]
        assert dense.numpy().tolist() == [1.5]


class TestSequences:
    lists = tf.train.FeatureLists(
        feature_list={
            "k": tf.train.FeatureList(feature=[ints(1, 2), ints(3, 4)]),
            "v": tf.train.FeatureList(feature=[texts(b"a"), texts()]),
        }
    )
    data = tf.train.SequenceExample(
        context=tf.train.Features(feature={"b": texts(b"x")}), feature_lists=lists
    ).SerializeToString()

    def test_single(self):
        whole, steps = tf.io.parse_single_sequence_example(
            self.data,
            {"b": tf.io.FixedLenFeature([], tf.string)},
            {"k": tf.io.FixedLenSequenceFeature([2], tf.int64), "v": tf.io.VarLenFeature(tf.string)},
        )
        assert whole["b"].numpy() == b"x"
        assert steps["k"].numpy().tolist() == [[1, 2], [3, 4]]
        assert steps["v"].indices.numpy().tolist() == [[0, 0]]
        assert steps["v"].dense_shape.numpy().tolist() == [2, 1]

    def test_batch(self):
        short = tf.train.SequenceExample(
            feature_lists=tf.train.FeatureLists(feature_list={"k": tf.train.FeatureList(feature=[ints(9, 9)])})
        ).SerializeToString()
        _, steps, lengths = tf.io.parse_sequence_example(
            [self.data, short],
            None,
            {"k": tf.io.FixedLenSequenceFeature([2], tf.int64), "v": tf.io.RaggedFeature(tf.string)},
        )
        assert steps["k"].numpy().tolist() == [[[1, 2], [3, 4]], [[9, 9], [0, 0]]]
        assert lengths["k"].numpy().tolist() == [2, 1]
        assert steps["v"].to_list() == [[[b"a"], []], []]

    def test_missing_list(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="required but could not be found"):
            tf.io.parse_single_sequence_example(self.data, None, {"z": tf.io.FixedLenSequenceFeature([], tf.int64)})


def test_json():
    text = '{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}, "b": {"bytesList": {"value": ["eA=="]}}}}}'
    found = tf.train.Example.FromString(tf.io.decode_json_example(text).numpy())
    assert found == tf.train.Example.FromString(example(a=ints(1), b=texts(b"x")))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Error while parsing JSON"):
        tf.io.decode_json_example("{")


def test_records_of_examples_become_a_training_batch(tmp_path):
    path = str(tmp_path / "data.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(example(x=floats(i, i + 1), y=ints(i)))
    rows = list(tf.compat.v1.io.tf_record_iterator(path))
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    batch = tf.io.parse_example(rows, features)
    np.testing.assert_array_equal(batch["x"].numpy()[3], [3, 4])
    assert batch["y"].shape == [4]


SPEC = {
    "x": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.0, 0.0]),
    "n": tf.io.VarLenFeature(tf.int64),
    "t": tf.io.RaggedFeature(tf.string),
}


def by_messages(data):
    """What the message classes of protobuf say about an example: the values by name, or None if they refuse it."""
    try:
        features = tf.train.Example.FromString(data).features.feature
    except DecodeError:
        return None
    kinds = {"x": "float_list", "n": "int64_list", "t": "bytes_list"}
    found = {}
    for key, kind in kinds.items():
        held = features[key].WhichOneof("kind") if key in features else None
        if held not in (None, kind):
            return None
        found[key] = None if held is None else list(getattr(features[key], kind).value)
    return None if found["x"] is not None and len(found["x"]) != 2 else found


def test_mutated_examples_are_read_as_protobuf_reads_them_or_refused():
    rng = np.random.RandomState(0)
    whole = example(x=floats(1.5, -2.0), n=ints(1, -1, 300, 2**62), t=texts(b"abc", b""), other=ints(4))
    agreed = refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            kind, at = rng.randint(3), rng.randint(len(data))
            if kind == 0:
                data[at] = rng.randint(256)
            elif kind == 1:
                del data[at : at + rng.randint(1, 8)]
            else:
                data[at:at] = bytes(rng.randint(0, 256, rng.randint(1, 4)).tolist())
            if not data:
                data = bytearray(b"\0")
        expected = by_messages(bytes(data))
        try:
            found = tf.io.parse_single_example(bytes(data), SPEC)
        except tf.errors.InvalidArgumentError:
            refused += 1
            continue
        if expected is None:  # protobuf also refuses names that are no UTF-8
            continue
        agreed += 1
        np.testing.assert_array_equal(found["x"], expected["x"] or [0.0, 0.0])
        assert found["n"].values.numpy().tolist() == (expected["n"] or [])
        assert found["t"].numpy().tolist() == (expected["t"] or [])
    assert agreed > 100 and refused > 200


def test_lengths_beyond_the_bytes_are_refused_before_anything_is_allocated():
    huge = b"\n\x0e\n\x0c\n\x01x\x12\x07\x12\x05\n\xff\xff\xff\x7f"
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input"):
        tf.io.parse_single_example(huge, SPEC)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse sequence example input"):
        tf.io.parse_sequence_example(
            [b"\x12\x10\n\x0e\n\x01x\x12\x09\n\x07\x12\x05\n\xff\xff\xff\x7f"],
            sequence_features={"x": tf.io.FixedLenSequenceFeature([], tf.float32)},
        )


def test_features_of_mixed_presence():
    first, second = example(x=floats(1.0, 2.0), n=ints(5)), example(t=texts(b"q"))
    found = tf.io.parse_example([first, second, first], SPEC)
    assert found["x"].numpy().tolist() == [[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]
    assert tf.sparse.to_dense(found["n"]).numpy().tolist() == [[5], [0], [5]]
    assert found["t"].to_list() == [[], [b"q"], []]
    twice = first + example(x=floats(7.0, 8.0))  # messages that follow each other are merged: the last entry counts
    assert tf.io.parse_single_example(twice, SPEC)["x"].numpy().tolist() == [7.0, 8.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Index: 1\.  Number of float values != expected"):
        tf.io.parse_example([first, example(x=floats(1.0))], SPEC)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Data types don't match\. Data type: int64 but expected"):
        tf.io.parse_example([first, example(x=ints(1))], SPEC)


def sequence(**lists):
    made = {key: tf.train.FeatureList(feature=steps) for key, steps in lists.items()}
    return tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list=made)).SerializeToString()


def test_partitions_of_the_steps_of_sequences():
    data = sequence(v=[floats(1, 2, 3, 4), floats(2, 4, 6)], s=[ints(0, 1, 4), ints(0, 2, 3)])
    other = sequence(v=[floats(9)], s=[ints(0, 1)])
    features = {
        "b": tf.io.RaggedFeature(tf.float32, "v", [tf.io.RaggedFeature.RowSplits("s")]),
        "c": tf.io.RaggedFeature(tf.float32, "v", [tf.io.RaggedFeature.UniformRowLength(1)]),
        "d": tf.io.RaggedFeature(tf.float32, "v"),
    }
    rows = [[[1, 2, 3, 4], [2, 4, 6]], [], [[9]]]
    whole = [[[[1], [2, 3, 4]], [[2, 4], [6]]], [], [[[9]]]]
    _, found, _ = tf.io.parse_sequence_example([data, sequence(), other], None, features)
    assert found["b"].to_list() == whole and found["d"].to_list() == rows
    assert found["c"].to_list() == [[[[x] for x in step] for step in steps] for steps in rows]
    _, found = tf.io.parse_single_sequence_example(data, None, features)
    assert found["b"].to_list() == whole[0] and found["d"].to_list() == rows[0]
    wrong = sequence(v=[floats(1), floats(2)], s=[ints(0, 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="values and partitions are not aligned"):
        tf.io.parse_sequence_example([wrong], None, features)


def test_errors_name_the_example():
    data = [example(a=ints(1)), example(a=ints(1, 2))]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Name: two, Key: a, Index: 1\.  Number of int64 values"):
        tf.io.parse_example(data, {"a": tf.io.FixedLenFeature([1], tf.int64)}, ["one", "two"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Name: one, Feature: b "):
        tf.io.parse_example(data, {"b": tf.io.FixedLenFeature([1], tf.int64)}, ["one", "two"])
    steps = sequence(a=[ints(1, 2), ints(1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Name: s, Key: a, Index: 1\.  Number of int64 values"):
        tf.io.parse_sequence_example([steps], None, {"a": tf.io.FixedLenSequenceFeature([2], tf.int64)}, ["s"])


def test_a_serialized_tensor_is_one_string():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected `serialized` to be a scalar, got shape: \[1\]"):
        tf.io.parse_tensor([b"bogus"], tf.float32)
