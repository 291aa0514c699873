"""Datasets of which TensorFlow's elements, specifications, cardinalities and errors are recorded.

`python tests/data/recorded_cases.py tensorflow` writes tensorflow_values.json anew; test_recorded.py compares with it.
"""

import collections
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_name("tensorflow_values.json")
Point = collections.namedtuple("Point", "a b")


def lengths(tf, first=1, last=5):
    """Vectors of growing length: [1], [2, 2], [3, 3, 3], ..."""
    return tf.data.Dataset.range(first, last).map(lambda n: tf.fill([n], n))


def sequences(tf):
    """Vectors of different lengths."""
    rows = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]
    return tf.data.Dataset.from_generator(lambda: iter(rows), tf.int64, [None])


def cases(tf):
    """The cases by name, each a function without arguments that gives a dataset or a value."""
    Dataset = tf.data.Dataset
    ragged = tf.ragged.constant([[1, 2], [3], []])
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [3, 2])
    long = np.int64

    def seeded(make):
        def run():
            tf.random.set_seed(1)
            return make()

        return run

    def collatz(x):
        y = x // 2 if x % 2 == 0 else 3 * x + 1
        for i in tf.range(3):
            y += tf.cast(i, tf.int64)
        return y

    def size(row):
        return tf.shape(row)[0]

    def repeated(x):
        return Dataset.from_tensors(x).repeat(x)

    return {
        # sources
        "slices": lambda: Dataset.from_tensor_slices([1, 2, 3]),
        "slices of a tuple": lambda: Dataset.from_tensor_slices(([1, 2], [[3.0, 4.0], [5.0, 6.0]])),
        "slices of a dictionary": lambda: Dataset.from_tensor_slices({"b": [1, 2], "a": ["x", "y"]}),
        "slices of a namedtuple": lambda: Dataset.from_tensor_slices(Point([1, 2], [3, 4])),
        "slices of a scalar": lambda: Dataset.from_tensor_slices(5),
        "slices of different lengths": lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])),
        "slices of an array": lambda: Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)),
        "slices of a ragged tensor": lambda: Dataset.from_tensor_slices(ragged),
        "slices of a sparse tensor": lambda: Dataset.from_tensor_slices(sparse),
        "slices of nothing": lambda: Dataset.from_tensor_slices(()),
        "slices of a variable": lambda: Dataset.from_tensor_slices(tf.Variable([1, 2])),
        "tensors": lambda: Dataset.from_tensors(({"a": 1}, "s")),
        "tensors with None": lambda: Dataset.from_tensors((1, None)),
        "generator": lambda: Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32)),
        "generator with types and shapes": lambda: Dataset.from_generator(
            lambda: iter([(1, [2.0]), (3, [4.0])]), (tf.int64, tf.float32), ([], [None])
        ),
        "generator of a wrong shape": lambda: Dataset.from_generator(
            lambda: iter([[1, 2]]), output_signature=tf.TensorSpec([3], tf.int32)
        ),
        "generator with arguments": lambda: Dataset.from_generator(lambda n: iter(range(n)), tf.int64, args=(3,)),
        "generator of another type": lambda: Dataset.from_generator(lambda: iter([1, 2]), tf.float32),
        "generator that is none": lambda: Dataset.from_generator([1, 2], tf.float32),
        "generator of dictionaries": lambda: Dataset.from_generator(
            lambda: iter([{"a": 1, "b": "q"}]),
            output_signature={"a": tf.TensorSpec([], tf.int32), "b": tf.TensorSpec([], tf.string)},
        ),
        "generator without a signature": lambda: Dataset.from_generator(lambda: iter([1])),
        "generator of ragged tensors": lambda: Dataset.from_generator(
            lambda: iter([tf.ragged.constant([[1], [2, 3]])]),
            output_signature=tf.RaggedTensorSpec([2, None], tf.int32),
        ),
        "range": lambda: Dataset.range(5),
        "range downwards": lambda: Dataset.range(5, 1, -2),
        "range of floats": lambda: Dataset.range(3, output_type=tf.float32),
        "range without arguments": lambda: Dataset.range(),
        "random": seeded(lambda: Dataset.random(seed=3).take(3)),
        "zip": lambda: Dataset.zip((Dataset.range(3), Dataset.range(10, 20))),
        "zip of a structure": lambda: Dataset.zip(Dataset.range(2), (Dataset.range(2), Dataset.range(2))),
        "zip of a dictionary": lambda: Dataset.zip({"a": Dataset.range(2), "b": Dataset.range(3).batch(2)}),
        "zip of a list": lambda: Dataset.zip([Dataset.range(3)]),
        "zip of nothing": lambda: Dataset.zip(),
        "zip of a number": lambda: Dataset.zip(3),
        # order
        "shuffle": seeded(lambda: Dataset.range(10).shuffle(4, seed=2)),
        "shuffle with the global seed": seeded(lambda: Dataset.range(6).shuffle(10)),
        "shuffle of mapped elements": seeded(lambda: Dataset.range(6).map(lambda x: x).shuffle(3, seed=3).batch(2)),
        "shuffle of everything": seeded(lambda: Dataset.range(8).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=1)),
        "shuffle and repeat": seeded(lambda: Dataset.range(8).shuffle(8, seed=1).take(3).repeat(2)),
        "shuffle, repeat, batch": seeded(lambda: Dataset.range(8).shuffle(8, seed=1).repeat(2).batch(5)),
        "shuffle once": seeded(
            lambda: Dataset.range(8).shuffle(8, seed=1, reshuffle_each_iteration=False).skip(2).shard(2, 0)
        ),
        "shuffle twice": seeded(lambda: Dataset.range(6).shuffle(3).shuffle(3)),
        "shuffle with no buffer": lambda: Dataset.range(3).shuffle(0),
        "repeat": lambda: Dataset.range(2).repeat(2),
        "repeat without end": lambda: Dataset.range(2).repeat().take(5),
        "repeat of nothing": lambda: Dataset.range(0).repeat().take(2),
        "take all": lambda: Dataset.range(3).take(-1),
        "take too many": lambda: Dataset.range(3).take(10),
        "skip": lambda: Dataset.range(5).skip(3),
        "skip all": lambda: Dataset.range(3).skip(-1),
        "shard": lambda: Dataset.range(7).shard(3, 1),
        "shard of mapped elements": lambda: Dataset.range(7).map(lambda x: x).shard(2, 1),
        "shard that is none": lambda: Dataset.range(7).shard(3, 3),
        "concatenate": lambda: Dataset.range(2).concatenate(Dataset.range(3)),
        "concatenate shapes": lambda: Dataset.from_tensors([1]).concatenate(Dataset.from_tensors([1, 2])),
        "enumerate": lambda: Dataset.range(5, 7).enumerate(start=3),
        "enumerate pairs": lambda: Dataset.zip((Dataset.range(2), Dataset.range(2))).enumerate(),
        "cache": seeded(lambda: [list(d) for d in [Dataset.range(4).shuffle(4, seed=1).cache()] for _ in range(2)]),
        "choose": lambda: [
            *Dataset.choose_from_datasets(
                [Dataset.from_tensors("a").repeat(), Dataset.from_tensors("b").repeat(2)],
                Dataset.from_tensor_slices(np.array([0, 1, 0, 1, 1, 0], long)),
            )
        ],
        "choose what is not there": lambda: Dataset.choose_from_datasets(
            [Dataset.range(2), Dataset.range(2)], Dataset.range(5)
        ),
        "sample": seeded(lambda: Dataset.sample_from_datasets([Dataset.range(5), Dataset.range(100, 105)], seed=4)),
        "sample with weights": seeded(
            lambda: Dataset.sample_from_datasets(
                [Dataset.range(5), Dataset.range(100, 105)], [0.2, 0.8], seed=4, stop_on_empty_dataset=True
            )
        ),
        "sample with changing weights": seeded(
            lambda: Dataset.sample_from_datasets(
                [Dataset.range(5), Dataset.range(100, 105)], Dataset.from_tensors([0.3, 0.7]).repeat(), seed=9
            )
        ),
        "unique": lambda: Dataset.from_tensor_slices(["a", "b", "a"]).unique(),
        # batches
        "batch": lambda: Dataset.range(5).batch(2),
        "batch without remainder": lambda: Dataset.range(5).batch(2, drop_remainder=True),
        "batch of different shapes": lambda: (
            Dataset.from_tensors([1]).concatenate(Dataset.from_tensors([1, 2])).batch(2)
        ),
        "batch of ragged rows": lambda: Dataset.from_tensor_slices(ragged).batch(2),
        "batch of sparse rows": lambda: Dataset.from_tensor_slices(sparse).batch(2),
        "batch of structures": lambda: Dataset.from_tensor_slices(([1, 2, 3], {"a": ["x", "y", "z"]})).batch(2),
        "batch of mapped elements": lambda: Dataset.range(4).map(lambda x: x).batch(3),
        "batch of batches": lambda: Dataset.range(6).batch(2).batch(2),
        "batch with None": lambda: Dataset.from_tensors((1, None)).batch(2),
        "padded batch": lambda: lengths(tf).padded_batch(2),
        "padded batch to a shape": lambda: lengths(tf).padded_batch(2, padded_shapes=[6], padding_values=long(-1)),
        "padded batch of strings": lambda: (
            Dataset.range(1, 3)
            .map(lambda n: (tf.fill([n], n), tf.fill([n], "s")))
            .padded_batch(2, padding_values=(long(9), "e"), padded_shapes=([None], [5]))
        ),
        "padded batch of dictionaries": lambda: (
            Dataset.range(1, 3).map(lambda n: {"a": tf.fill([n], 1.0)}).padded_batch(2, padded_shapes={"a": [-1]})
        ),
        "padded batch of another rank": lambda: Dataset.from_tensors([[1, 2]]).padded_batch(2, padded_shapes=[3]),
        "ragged batch": lambda: lengths(tf, 1, 4).ragged_batch(2),
        "ragged batch of scalars": lambda: Dataset.range(4).ragged_batch(3),
        "ragged batch of matrices": lambda: Dataset.range(1, 3).map(lambda n: tf.fill([n, n], n)).ragged_batch(2),
        "ragged batch of rows": lambda: (
            Dataset.range(1, 3).map(lambda n: tf.fill([n, 2], n)).ragged_batch(2, drop_remainder=True)
        ),
        "unbatch": lambda: Dataset.range(4).batch(3).unbatch(),
        "unbatch scalars": lambda: Dataset.range(4).unbatch(),
        "unbatch ragged tensors": lambda: Dataset.from_tensors(tf.ragged.constant([[1, 2], [3]])).unbatch(),
        "unbatch different lengths": lambda: Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch(),
        "rebatch": lambda: Dataset.range(7).batch(3).rebatch(2),
        "window": lambda: Dataset.range(7).window(3),
        "window with all arguments": lambda: Dataset.range(7).window(3, shift=2, stride=2, drop_remainder=True),
        "window with gaps": lambda: Dataset.range(5).window(2, shift=3),
        "window of pairs": lambda: Dataset.zip((Dataset.range(4), Dataset.range(4))).window(2),
        "window of dictionaries": lambda: Dataset.from_tensor_slices({"a": [1, 2, 3]}).window(2),
        "window of no size": lambda: Dataset.range(5).window(0),
        "window and reduce": lambda: (
            Dataset.range(7).window(2, 1, 1, True).map(lambda w: w.reduce(long(0), lambda a, b: a + b))
        ),
        "buckets": lambda: sequences(tf).bucket_by_sequence_length(size, [3, 5], [2, 2, 2]),
        "buckets to boundaries": lambda: sequences(tf).bucket_by_sequence_length(
            size, [3, 5, 8], [2, 2, 2, 2], pad_to_bucket_boundary=True
        ),
        "buckets without padding": lambda: sequences(tf).bucket_by_sequence_length(
            size, [4, 5], [1, 1, 1], no_padding=True, drop_remainder=True
        ),
        "buckets without enough sizes": lambda: sequences(tf).bucket_by_sequence_length(size, [3, 5], [2, 2]),
        # functions
        "map": lambda: Dataset.range(3).map(lambda x: x * 2),
        "map of pairs": lambda: Dataset.from_tensor_slices(([1, 2], [3, 4])).map(lambda a, b: a + b),
        "map to a list": lambda: Dataset.range(2).map(lambda x: [x, x]),
        "map to a dictionary": lambda: Dataset.range(2).map(lambda x: {"a": x, "b": [x, x]}),
        "map to a text": lambda: Dataset.range(2).map(lambda x: "s"),
        "map to a sparse tensor": lambda: Dataset.range(2).map(lambda x: tf.SparseTensor([[0]], [x], [2])),
        "map to a ragged tensor": lambda: Dataset.range(2).map(
            lambda x: tf.RaggedTensor.from_row_lengths([1, 2, 3], [1, 2])
        ),
        "map of namedtuples": lambda: Dataset.from_tensor_slices(Point([1, 2], [3, 4])).map(lambda p: p.a + p.b),
        "map in parallel": lambda: Dataset.range(3).map(lambda x: x, num_parallel_calls=tf.data.AUTOTUNE),
        "map with a Python function": lambda: Dataset.range(3).map(
            lambda x: tf.py_function(lambda y: y + 1, [x], tf.int64)
        ),
        "map to one-tuples": lambda: Dataset.range(2).map(lambda x: (x,)),
        "map to datasets": lambda: Dataset.range(2).map(lambda x: Dataset.range(x)),
        "map with control flow": lambda: Dataset.range(4).map(collatz),
        "map of what is no function": lambda: Dataset.range(2).map(3),
        "filter": lambda: Dataset.range(5).filter(lambda x: x % 2 == 0),
        "filter pairs": lambda: Dataset.zip((Dataset.range(3), Dataset.range(3))).filter(lambda a, b: a > 0),
        "filter by a number": lambda: Dataset.range(5).filter(lambda x: x),
        "take while": lambda: Dataset.range(10).take_while(lambda x: x < 3),
        "flat map": lambda: [*Dataset.range(4).flat_map(lambda x: Dataset.range(x))],
        "flat map with a capture": lambda: [
            *Dataset.range(3).flat_map(lambda x: Dataset.from_tensors(x).repeat(2).map(lambda y: y + x))
        ],
        "flat map of windows": lambda: [*Dataset.range(6).window(3).flat_map(lambda w: w.batch(3))],
        "flat map in flat map": lambda: [
            *Dataset.range(3).flat_map(lambda x: Dataset.range(2).flat_map(lambda y: Dataset.from_tensors((x, y))))
        ],
        **{
            f"interleave {cycle} {block}": (
                lambda cycle=cycle, block=block: [
                    *Dataset.range(5).interleave(repeated, cycle_length=cycle, block_length=block)
                ]
            )
            for cycle, block in ((2, 1), (2, 2), (3, 1), (1, 3), (4, 2))
        },
        "reduce": lambda: Dataset.range(5).reduce((0, long(0)), lambda s, x: (s[0] + 1, s[1] + x)),
        "reduce to a growing state": lambda: Dataset.range(3).reduce(
            tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0)
        ),
        "scan": lambda: Dataset.range(4).scan(long(0), lambda s, x: (s + x, s + x)),
        "scan without an output": lambda: Dataset.range(4).scan(long(0), lambda s, x: s + x),
        "group by window": lambda: Dataset.range(10).group_by_window(lambda x: x % 2, lambda k, d: d.batch(3), 3),
        "group by windows of different sizes": lambda: Dataset.range(10).group_by_window(
            lambda x: x % 3, lambda k, d: d.batch(4), window_size_func=lambda k: (k + 1) * 2
        ),
        "group by window and key": lambda: Dataset.range(6).group_by_window(
            lambda x: x % 2, lambda k, d: d.map(lambda x: x * 10 + k), 2
        ),
        "group by window of no size": lambda: Dataset.range(4).group_by_window(
            lambda x: x % 2, lambda k, d: d.batch(3)
        ),
        "apply": lambda: Dataset.range(3).apply(lambda d: 3),
        # what is there
        "single element": lambda: Dataset.range(1).get_single_element(),
        "single element of two": lambda: Dataset.range(2).get_single_element(),
        "single element of none": lambda: Dataset.range(0).get_single_element(),
        "length of infinity": lambda: len(Dataset.range(5).repeat()),
        "length that is not known": lambda: len(Dataset.range(5).filter(lambda x: True)),
        "too many elements": lambda: Dataset.range(5).apply(tf.data.experimental.assert_cardinality(4)),
        "too few elements": lambda: Dataset.range(3).apply(tf.data.experimental.assert_cardinality(4)),
        "cardinalities": lambda: [
            int(d.cardinality())
            for d in (
                Dataset.range(5).concatenate(Dataset.range(5).repeat()),
                Dataset.zip((Dataset.range(3), Dataset.range(5).repeat())),
                Dataset.range(5).scan(0, lambda s, x: (s, x)),
                Dataset.range(5).shard(2, 1),
                Dataset.range(5).repeat().shard(2, 1),
                Dataset.range(7).window(3, 2),
                Dataset.range(5).prefetch(1),
            )
        ],
        "numpy": lambda: list(Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]}).as_numpy_iterator()),
        "names": lambda: [
            repr(Dataset.range(3).batch(2).prefetch(1)),
            repr(Dataset.from_tensor_slices([1]).map(lambda x: x).shuffle(1)),
        ],
    }


def shown(tf, value):
    """A value as text that is the same for both libraries."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {shown(tf, part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        name = type(value).__name__
        return f"{name}({', '.join(shown(tf, part) for part in value)})"
    if isinstance(value, tf.RaggedTensor):
        return f"ragged {value.to_list()}"
    if isinstance(value, tf.SparseTensor):
        return f"sparse {shown(tf, (value.indices, value.values, value.dense_shape))}"
    if isinstance(value, tf.data.Dataset):
        return f"{value.element_spec} {int(value.cardinality())} {shown(tf, list(value))}"
    if tf.is_tensor(value):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {value.tolist()}"
    return repr(value)


def outcome(tf, case):
    """What a case gives, or the class and the first line of its error, without the names of inner operations."""
    try:
        return shown(tf, case())
    except Exception as error:
        line = re.sub(r"\{\{function_node [^}]*\}\} | \[Op:.*", "", str(error)).splitlines()[0]
        return f"{type(error).__name__}: {line}"


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    found = {name: outcome(library, case) for name, case in cases(library).items()}
    VALUES.write_text(json.dumps(found, indent=1) + "\n")
