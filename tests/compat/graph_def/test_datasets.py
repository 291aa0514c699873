"""Datasets inside of saved functions: each stage is written as TensorFlow's node, and read back."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.graph_def.op_defs import find_op_def

Dataset = tf.data.Dataset
X = np.array([[1.0, 5.0], [3.0, 6.0], [1.0, 7.0]], np.float32)
parse_saved_model = tf.__internal__.saved_model.parse_saved_model


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = tf.Variable(2.0)
        self.sum = tf.Variable(0.0)
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1.0, 2.0]))
        self.table = tf.lookup.StaticHashTable(words, -1.0)


def rows(x):
    return Dataset.from_tensor_slices(x)


def total(dataset):
    return dataset.reduce(0.0, lambda state, x: state * 0.5 + tf.reduce_sum(tf.cast(x, tf.float32)))


def lengths(x):
    return rows(x).map(lambda row: tf.range(tf.cast(row[0], tf.int32)))


def loop(m, x):
    found = 0.0
    for row in rows(x):
        found = found * 0.5 + tf.reduce_sum(row) * m.v
    return found


def loop_that_breaks(m, x):
    found, count = 0.0, 0
    for i, row in rows(x).repeat().enumerate():
        if tf.reduce_sum(row) == 9.0:
            continue
        found += row[1] + tf.cast(i, tf.float32)
        count += 1
        if count > 4:
            break
    return found, count


def nested_loops(m, x):
    found = 0.0
    for row in rows(x):
        for element in rows(row):
            if element > 2.0:
                found = found * 0.9 + element
    return found


def loop_that_assigns(m, x):
    for batch in rows(x).batch(2):
        m.sum.assign_add(tf.reduce_sum(batch))
    return m.sum.read_value()


def loop_over_ragged(m, x):
    found = 0.0
    for ragged, sparse in rows(x).map(
        lambda row: (tf.RaggedTensor.from_row_lengths(row, [0, 2]), tf.sparse.from_dense(row))
    ):
        found = found * 0.5 + tf.reduce_sum(ragged) + tf.sparse.reduce_sum(sparse)
    return found


def loop_inside_a_branch(m, x):
    if tf.reduce_sum(x) > 0.0:
        return loop(m, x)
    return tf.constant(-1.0)


def iterator(m, x):
    elements = iter(rows(x))
    return next(elements) * 2, elements.get_next()


def iterator_in_a_loop(m, x):
    elements, found = iter(rows(x).repeat()), tf.zeros([2])
    for _ in tf.range(4):
        found = found * 0.5 + next(elements)
    return found


def zipped_windows(m, x):
    windows = Dataset.zip((rows(x), Dataset.range(3))).window(2)
    pairs = windows.flat_map(lambda a, b: Dataset.zip((a.batch(2), b.batch(2))))
    return total(pairs.map(lambda a, b: tf.reduce_sum(a) + tf.cast(tf.reduce_sum(b), tf.float32)))


def grouped(m, x):
    def reduce(key, part):
        return part.batch(2).map(lambda b: tf.reduce_sum(b) * tf.cast(key, tf.float32))

    return total(rows(x).group_by_window(lambda row: tf.cast(row[0], tf.int64), reduce, window_size=2))


def chosen(m, x):
    numbers = rows(tf.constant([0, 1, 1, 0], tf.int64))
    return total(Dataset.choose_from_datasets([rows(x), Dataset.from_tensors(x[0]).repeat()], numbers))


def bucketed(m, x):
    numbers = Dataset.range(11).map(lambda i: {"a": tf.fill([i % 5 + 1], i), "b": tf.cast(i, tf.float32)})
    return total(
        numbers.bucket_by_sequence_length(
            lambda e: tf.size(e["a"]) + tf.cast(x[0, 0], tf.int32),
            bucket_boundaries=[3, 5, 7],
            bucket_batch_sizes=[2, 3, 1, 1],
            padding_values={"a": tf.constant(7, tf.int64), "b": 0.0},
            pad_to_bucket_boundary=True,
            drop_remainder=True,
        ).map(lambda e: tf.cast(tf.reduce_sum(e["a"]), tf.float32) * tf.cast(tf.shape(e["a"])[1], tf.float32))
    )


def reduced_by_key(m, x):
    reducer = tf.data.experimental.Reducer(
        lambda key: (x[0, 1], key),
        lambda state, row: (state[0] * 0.5 + row["r"][1], state[1] + 1),
        lambda value, count: {"v": value * m.v, "n": count},
    )
    groups = tf.data.experimental.group_by_reducer(lambda row: tf.cast(row["r"][0], tf.int64), reducer)
    return rows({"r": x}).apply(groups).batch(5).get_single_element()


FUNCTIONS = {
    "single": lambda m, x: rows(x).map(lambda row: row * m.v).batch(10).get_single_element(),
    "padded": lambda m, x: lengths(x).padded_batch(10, padding_values=-1).get_single_element(),
    "padded to": lambda m, x: (
        lengths(x).padded_batch(2, padded_shapes=[4], drop_remainder=True).take(1).get_single_element()
    ),
    "windows": lambda m, x: total(rows(x).window(2, 1, drop_remainder=True).flat_map(lambda w: w.batch(2))),
    "zipped windows": zipped_windows,
    "interleaved": lambda m, x: total(rows(x).interleave(rows, cycle_length=2)),
    "captures": lambda m, x: total(
        rows(x).flat_map(lambda r: rows(r).map(lambda y: y * m.v + r[0] + x[0, 1])),
    ),
    "nested": lambda m, x: total(rows(x).map(rows).flat_map(lambda d: d.map(lambda e: e * 2))),
    "unbatched": lambda m, x: total(rows(x).batch(2).unbatch().shard(2, 1)),
    "rebatched": lambda m, x: total(rows(x).batch(3).rebatch([1, 2]).map(lambda b: tf.shape(b)[0])),
    "unique": lambda m, x: rows(tf.cast(x[:, 0], tf.int64)).unique().batch(10).get_single_element(),
    "counts": lambda m, x: (rows(x).batch(2).cardinality(), rows(x).repeat().cardinality()),
    "filtered": lambda m, x: total(rows(x).filter(lambda row: row[0] < m.v).take(5).skip(1)),
    "taken while": lambda m, x: total(Dataset.range(10).take_while(lambda i: i < tf.cast(x[0, 1], tf.int64))),
    "scanned": lambda m, x: rows(x).scan(tf.zeros([2]), lambda s, r: (s + r, (s * r, r))).batch(5).get_single_element(),
    "zipped": lambda m, x: (
        Dataset.zip({"a": rows(x), "b": (Dataset.range(5), Dataset.from_tensors(x).repeat(4))})
        .enumerate(3)
        .batch(3)
        .get_single_element()
    ),
    "joined": lambda m, x: total(rows(x).concatenate(rows(x * 2)).cache().prefetch(2)),
    "shuffled": lambda m, x: (
        Dataset.range(9).shuffle(4, seed=3, reshuffle_each_iteration=False).batch(9).get_single_element()
    ),
    "structures": lambda m, x: rows({"k": x}).reduce(
        {"sum": tf.zeros([2]), "count": 0}, lambda s, e: {"sum": s["sum"] + e["k"], "count": s["count"] + 1}
    ),
    "text": lambda m, x: rows(tf.strings.as_string(x[:, 0], precision=1)).reduce(
        "", lambda s, e: tf.strings.join([s, e], "|")
    ),
    "ragged": lambda m, x: total(
        rows(tf.RaggedTensor.from_row_lengths(tf.reshape(x, [-1]), [1, 2, 3])).map(lambda r: tf.reduce_sum(r * r))
    ),
    "ragged batch": lambda m, x: lengths(x).ragged_batch(3).get_single_element(),
    "sparse batch": lambda m, x: rows(x).map(tf.sparse.from_dense).batch(3).get_single_element(),
    "table": lambda m, x: rows(tf.constant(["a", "b"])).map(m.table.lookup).batch(2).get_single_element(),
    "grouped": grouped,
    "bucketed": bucketed,
    "bucketed as pairs": lambda m, x: total(
        lengths(x)
        .map(lambda r: (r, tf.size(r)))
        .bucket_by_sequence_length(lambda r, n: n, [2], [2, 1])
        .map(lambda r, n: tf.reduce_sum(r) + tf.reduce_sum(n) + tf.size(r))
    ),
    "buckets that are not padded": lambda m, x: total(
        lengths(x).bucket_by_sequence_length(tf.size, [2], [2, 1], no_padding=True)
    ),
    "reduced by key": reduced_by_key,
    "chosen": chosen,
    "loop": loop,
    "loop that breaks": loop_that_breaks,
    "nested loops": nested_loops,
    "loop that assigns": loop_that_assigns,
    "loop over ragged": loop_over_ragged,
    "loop inside a branch": loop_inside_a_branch,
    "iterator": iterator,
    "iterator in a loop": iterator_in_a_loop,
}


def restored(function, folder):
    model = Model()
    expected = function(Model(), tf.constant(X))
    model.f = tf.function(
        lambda x: tf.autograph.to_graph(function)(model, x), input_signature=[tf.TensorSpec([None, 2])]
    )
    tf.saved_model.save(model, folder)
    return expected, tf.saved_model.load(folder).f


@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_in_functions_are_written_and_read(name, tmp_path):
    expected, loaded = restored(FUNCTIONS[name], tmp_path)
    found = loaded(tf.constant(X))
    tf.nest.assert_same_structure(expected, found, expand_composites=True)
    for one, other in zip(*(tf.nest.flatten(value, expand_composites=True) for value in (expected, found))):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        assert one.dtype == other.dtype or one.shape.rank == 0
        if one.dtype == tf.string:
            assert one.numpy() == other.numpy()
        else:
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)


def test_all_nodes_are_operations_of_tensorflow(tmp_path):
    restored(zipped_windows, tmp_path)
    library = parse_saved_model(tmp_path).meta_graphs[0].graph_def.library
    names = {function.signature.name for function in library.function}
    used = {node.op for function in library.function for node in function.node_def}
    assert {"WindowDataset", "FlatMapDataset", "ZipDataset", "ReduceDataset"} <= used
    assert all(op in names or find_op_def(op) is not None for op in used)


def test_loops_read_elements_ahead(tmp_path):
    restored(loop, tmp_path)
    library = parse_saved_model(tmp_path).meta_graphs[0].graph_def.library
    used = [node.op for function in library.function for node in function.node_def]
    assert used.count("IteratorGetNextAsOptional") == 2  # before the loop, and at the end of its body
    assert "EagerPyFunc" not in used


def test_generators_are_refused(tmp_path):
    def generated(m, x):
        return total(Dataset.from_generator(lambda: iter([1.0]), output_signature=tf.TensorSpec([])))

    with pytest.raises(tf.errors.UnimplementedError, match="from_generator cannot be written"):
        restored(generated, tmp_path)


def test_an_iterator_from_outside_is_refused(tmp_path):
    model = tf.Module()
    elements = iter(Dataset.range(3))
    model.f = tf.function(lambda: next(elements), input_signature=[])
    with pytest.raises(tf.errors.UnimplementedError, match="runs Python"):
        tf.saved_model.save(model, tmp_path)
