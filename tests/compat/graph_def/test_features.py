"""Functions on text, examples, features and sparse tensors are written as TensorFlow's operations and read back."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core
from tapeflow._src.compat.graph_def.exporter import FunctionWriter
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.compat.saved_model import saved_model  # noqa: F401  all rules
from tests.io.examples.test_example_parsing import example, floats, ints, texts

TEXT = tf.TensorSpec([None], tf.string)
SEED = tf.TensorSpec([2], tf.int32)
NUMBERS = tf.TensorSpec([None], tf.int32)
SPARSE = tf.SparseTensorSpec([None, 5], tf.float32)
SPEC = {
    "a": tf.io.FixedLenFeature([2], tf.float32),
    "b": tf.io.VarLenFeature(tf.string),
    "c": tf.io.RaggedFeature(tf.int64),
    "d": tf.io.FixedLenFeature([], tf.string, default_value="none"),
    "e": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}
WORDS = tf.constant(["Hello World", "foo", "", "x1y22 z"])
EXAMPLE = example(a=floats(1.0, 2.0), b=texts(b"x", b"y"), c=ints(1, 2, 3), e=ints(7))
ROWS = tf.SparseTensor([[0, 1], [2, 3], [2, 4]], [1.0, 2.0, 3.0], [3, 5])
COUNTS = ({}, {"binary_output": True}, {"minlength": 4, "maxlength": 6, "dtype": tf.int64})
CONTEXT = {
    "a": tf.io.FixedLenFeature([], tf.int64),
    "b": tf.io.VarLenFeature(tf.string),
    "c": tf.io.RaggedFeature(tf.float32),
    "d": tf.io.FixedLenFeature([1], tf.float32, default_value=[2.0]),
}
STEPS = {
    "s": tf.io.FixedLenSequenceFeature([2], tf.float32),
    "t": tf.io.VarLenFeature(tf.int64),
    "u": tf.io.RaggedFeature(tf.string),
    "v": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}
SEQUENCE = tf.train.SequenceExample(
    context=tf.train.Features(feature={"a": ints(3), "b": texts(b"x", b"y"), "c": floats(1.0, 2.0)}),
    feature_lists=tf.train.FeatureLists(
        feature_list={
            "s": tf.train.FeatureList(feature=[floats(1.0, 2.0), floats(3.0, 4.0)]),
            "t": tf.train.FeatureList(feature=[ints(1), ints(), ints(2, 3)]),
            "u": tf.train.FeatureList(feature=[texts(b"q"), texts(b"r", b"s")]),
        }
    ),
).SerializeToString()
CASES = {
    "examples": (lambda x: tf.io.parse_example(x, SPEC), TEXT, tf.constant([EXAMPLE, EXAMPLE])),
    "one example": (lambda x: tf.io.parse_single_example(x, SPEC), tf.TensorSpec([], tf.string), tf.constant(EXAMPLE)),
    "csv": (lambda x: tf.io.decode_csv(x, [0.0, "z"]), TEXT, tf.constant(["1.5,a", "2,b"])),
    "bytes": (lambda x: tf.strings.bytes_split(x).to_tensor(""), TEXT, WORDS),
    "points": (lambda x: tf.strings.unicode_decode(x, "UTF-8").to_tensor(-1), TEXT, WORDS),
    "ngrams": (lambda x: tf.strings.ngrams(tf.strings.split(x), 2).to_tensor(""), TEXT, WORDS),
    "ngrams of a vector": (lambda x: tf.strings.ngrams(x, 2), TEXT, WORDS),
    "characters": (lambda x: tf.strings.unicode_split(x, "UTF-8"), TEXT, tf.constant(["añb", "", "日本"])),
    "characters of words": (lambda x: tf.strings.unicode_split(tf.strings.split(x), "UTF-8"), TEXT, WORDS),
    "one text": (lambda x: tf.strings.unicode_split(x, "UTF-8"), tf.TensorSpec([], tf.string), tf.constant("aé")),
    "offsets": (lambda x: tf.strings.unicode_split_with_offsets(x, "UTF-8"), TEXT, tf.constant(["añb", ""])),
    "points with offsets": (lambda x: tf.strings.unicode_decode_with_offsets(x, "UTF-8"), TEXT, WORDS),
    "words of words": (lambda x: tf.strings.split(tf.strings.split(x), "1"), TEXT, WORDS),
    "bytes of words": (lambda x: tf.strings.bytes_split(tf.strings.split(x)), TEXT, WORDS),
    "strings of rows": (
        lambda x: [
            f(tf.strings.split(x))
            for f in (
                tf.strings.length,
                tf.strings.lower,
                lambda w: tf.strings.regex_replace(w, "o", "0"),
                lambda w: tf.strings.to_hash_bucket_fast(w, 10),
                lambda w: tf.strings.join([w, w], "-"),
            )
        ],
        TEXT,
        WORDS,
    ),
    "join": (lambda x: tf.strings.reduce_join(x, separator="|"), TEXT, WORDS),
    "format": (lambda x: tf.strings.format("{}!", x), TEXT, WORDS),
    "added": (lambda s: tf.sparse.add(s, s), SPARSE, ROWS),
    "joined": (lambda s: tf.sparse.concat(0, [s, s]), SPARSE, ROWS),
    "transposed": (lambda s: tf.sparse.to_dense(tf.sparse.transpose(s)), SPARSE, ROWS),
    "bincount": (lambda x: tf.math.bincount(x), NUMBERS, tf.constant([0, 2, 2, 5])),
    "bincount of rows": (
        lambda x: [
            tf.math.bincount(f(tf.RaggedTensor.from_row_lengths(x, [1, 3])), axis=-1, **options)
            for f in (lambda r: r, lambda r: r.to_sparse())
            for options in COUNTS
        ],
        NUMBERS,
        tf.constant([0, 2, 2, 5]),
    ),
    "bincount of floats": (lambda x: tf.math.bincount(tf.cast(x, tf.float32)), NUMBERS, tf.constant([0, 2, 2, 5])),
    "crosses": (
        lambda x: [
            tf.sparse.cross([x[:, None], tf.constant([["a"], ["b"]])], separator="-"),
            tf.sparse.cross_hashed([x[:, None], tf.constant([[1], [2]])], 50),
            tf.sparse.cross_hashed([tf.sparse.from_dense([["a", "b"], ["c", ""]]), x[:, None]], 50, 7),
        ],
        TEXT,
        tf.constant(["x", "y"]),
    ),
    "ranges": (lambda x: tf.ragged.range(x, x * 2, 2), NUMBERS, tf.constant([3, 0, 4])),
    "padded bytes": (lambda x: tf.io.decode_raw(x, tf.uint8, fixed_length=4), TEXT, WORDS),
    "glimpse": (
        lambda x: tf.image.extract_glimpse(x, [3, 2], [[0.1, -0.2]], noise="zero"),
        tf.TensorSpec([None, None, None, 1]),
        tf.reshape(tf.range(20.0), [1, 4, 5, 1]),
    ),
    "sequences": (lambda x: tf.io.parse_sequence_example(x, CONTEXT, STEPS), TEXT, tf.constant([SEQUENCE, SEQUENCE])),
    "one sequence": (
        lambda x: tf.io.parse_single_sequence_example(x, CONTEXT, STEPS),
        tf.TensorSpec([], tf.string),
        tf.constant(SEQUENCE),
    ),
    "integers of two kinds": (
        lambda x: tf.nn.conv1d_transpose(tf.ones([1, 3, 1]), tf.ones([2, 1, 1]), tf.cast(x, tf.int64), 2),
        tf.TensorSpec([3], tf.int32),
        tf.constant([1, 6, 1]),
    ),
    "sets": (
        lambda x: tf.sets.size(tf.sets.intersection(x[None], tf.constant([[0, 2]]))),
        NUMBERS,
        tf.constant([0, 2, 2, 5]),
    ),
    "difference": (lambda x: tf.raw_ops.ListDiff(x=x, y=[2]), NUMBERS, tf.constant([0, 2, 2, 5])),
    "classes": (lambda s: tf.random.stateless_categorical([[0.0, 1.0]], 6, s), SEED, tf.constant([1, 2])),
    "counts": (lambda s: tf.random.stateless_binomial([4], s, 10.0, 0.3), SEED, tf.constant([1, 2])),
    "events": (lambda s: tf.random.stateless_poisson([4], s, 3.0), SEED, tf.constant([1, 2])),
    "order": (lambda s: tf.random.experimental.stateless_shuffle(tf.range(6), s), SEED, tf.constant([1, 2])),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_are_written_and_read_back(name):
    function, spec, given = CASES[name]
    concrete = tf.function(function).get_concrete_function(spec)
    writer = FunctionWriter("test")
    writer.add(_core.graph_data(concrete.graph), "f")
    tensors = tf.nest.flatten(given, expand_composites=True)
    found = FunctionLibrary(writer.library, "test").call("f", [*tensors, *concrete.graph.captures], {})
    expected = tf.nest.flatten(function(given), expand_composites=True)
    for y, wanted in zip(found, expected, strict=True):
        assert y.dtype == wanted.dtype
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("name", ["sequences", "one sequence"])
def test_sequences_are_saved_again_after_loading(name, tmp_path):
    function, spec, given = CASES[name]
    model = tf.Module()
    model.f = tf.function(function, input_signature=[spec])
    tf.saved_model.save(model, tmp_path / "first")
    tf.saved_model.save(tf.saved_model.load(tmp_path / "first"), tmp_path / "second")
    found = tf.saved_model.load(tmp_path / "second").f(given)
    for y, wanted in zip(*(tf.nest.flatten(x, expand_composites=True) for x in (found, function(given))), strict=True):
        assert y.dtype == wanted.dtype
        np.testing.assert_array_equal(y, wanted)
