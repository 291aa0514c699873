"""Datasets: what recorded values do not show."""

import itertools

import numpy as np
import pytest

import tapeflow as tf

Dataset = tf.data.Dataset


def rows(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


STEPS = {
    "shuffle": lambda d: d.shuffle(4, seed=3),
    "repeat": lambda d: d.repeat(2),
    "take": lambda d: d.take(5),
    "skip": lambda d: d.skip(2),
    "shard": lambda d: d.shard(3, 1),
    "cache": lambda d: d.cache(),
    "prefetch": lambda d: d.prefetch(2),
}


@pytest.mark.parametrize("names", [*itertools.permutations(STEPS, 2)], ids="-".join)
@pytest.mark.parametrize("drop", [False, True])
def test_rows_taken_by_number_are_those_taken_one_by_one(names, drop):
    """Batches that are gathered at once hold what batches of mapped elements hold, which are stacked."""

    def built(source):
        tf.random.set_seed(5)
        for name in names:
            source = STEPS[name](source)
        return source.batch(3, drop_remainder=drop)

    x = np.arange(14).reshape(7, 2)
    by_number, one_by_one = built(Dataset.from_tensor_slices(x)), built(Dataset.from_tensor_slices(x).map(lambda r: r))
    for _ in range(2):
        assert rows(by_number) == rows(one_by_one)
    assert by_number.cardinality() == one_by_one.cardinality() == len(rows(by_number))


def test_each_run_has_an_order_of_its_own():
    dataset = Dataset.range(100).shuffle(100)
    first, second = rows(dataset), rows(dataset)
    assert first != second and sorted(first) == sorted(second) == list(range(100))
    fixed = Dataset.range(100).shuffle(100, reshuffle_each_iteration=False)
    assert rows(fixed) == rows(fixed)


def test_seeds_of_later_runs_are_those_of_tensorflow():
    """Which orders of a fixed stream of orders the epochs of three runs take, as counted in TensorFlow."""

    def orders(step, shown=20):
        tf.random.set_seed(0)
        source = Dataset.range(20).shuffle(10, seed=11)
        stream = [rows(source)[:shown] for _ in range(12)]
        tf.random.set_seed(0)
        dataset = step(Dataset.range(20).shuffle(10, seed=11))
        runs = [rows(dataset) for _ in range(3)]
        return [[stream.index(run[i : i + shown]) for i in range(0, len(run), shown)] for run in runs]

    one_after_the_other, one_between = [[0, 1], [2, 3], [4, 5]], [[0, 1], [3, 4], [6, 7]]
    assert orders(lambda d: d.repeat(2)) == one_after_the_other
    assert orders(lambda d: d.repeat(2).map(lambda x: x + 0)) == one_after_the_other
    assert orders(lambda d: d.map(lambda x: x).repeat(2).take(40)) == one_after_the_other
    assert orders(lambda d: d.map(lambda x: x + 0).repeat().take(40)) == one_after_the_other
    assert orders(lambda d: d.map(lambda x: x + 0).repeat(2)) == one_between
    assert orders(lambda d: d.batch(4).repeat(2).unbatch()) == one_between
    assert orders(lambda d: d.prefetch(1).repeat(2)) == one_between
    assert orders(lambda d: d.take(8).repeat(2), shown=8) == one_between
    assert orders(lambda d: d.take(8).repeat(1), shown=8) == [[0], [1], [2]]


def test_an_iterator_goes_on_after_an_error():
    dataset = Dataset.from_tensor_slices([1, 2, 0, 4]).map(lambda x: tf.debugging.check_numerics(1 / x, "bad"))
    iterator = iter(dataset)
    assert [float(next(iterator)), float(next(iterator))] == [1.0, 0.5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
        next(iterator)
    assert float(next(iterator)) == 0.25
    assert rows(dataset.ignore_errors()) == [1.0, 0.5, 0.25]


def test_functions_read_variables_when_they_run():
    v = tf.Variable(1)
    dataset = Dataset.from_tensor_slices([1, 2]).map(lambda x: x + v)
    assert rows(dataset) == [2, 3]
    v.assign(10)
    assert rows(dataset) == [11, 12]


def test_functions_are_not_recorded():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        (y,) = Dataset.from_tensors(3.0).map(lambda x: x * v)
    assert tape.gradient(y, v) is None


def test_what_a_generator_raises():
    def numbers():
        yield 1
        raise RuntimeError("boom")

    iterator = iter(Dataset.from_generator(numbers, tf.int32))
    assert next(iterator) == 1
    with pytest.raises(tf.errors.UnknownError, match="RuntimeError: boom"):
        next(iterator)


def test_iterator_protocol():
    iterator = iter(Dataset.range(2))
    assert iter(iterator) is iterator and iterator.element_spec == tf.TensorSpec([], tf.int64)
    assert [int(iterator.get_next()), int(next(iterator))] == [0, 1]
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    optional = iterator.get_next_as_optional()
    assert not optional.has_value()
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        optional.get_value()


def test_options_are_kept():
    options = tf.data.Options()
    options.deterministic = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    options.threading.private_threadpool_size = 3
    dataset = Dataset.range(3).with_options(options).batch(2)
    more = tf.data.Options()
    more.experimental_slack = True
    kept = dataset.with_options(more).options()
    assert (kept.deterministic, kept.experimental_slack, kept.threading.private_threadpool_size) == (False, True, 3)
    assert kept.experimental_distribute.auto_shard_policy.name == "DATA"
    with pytest.raises(AttributeError, match="Cannot set the property nonsense"):
        options.nonsense = 1


def test_rejection_resample():
    labels = np.array([0] * 900 + [1] * 100)
    dataset = Dataset.from_tensor_slices(labels).rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=1)
    classes = [int(c) for c, _ in dataset]
    assert 80 <= sum(classes) <= 100 and 60 <= len(classes) - sum(classes) <= 140
    estimated = Dataset.from_tensor_slices(np.tile([0, 0, 0, 1], 250)).rejection_resample(
        lambda x: x, [0.5, 0.5], seed=1
    )
    classes = [int(c) for c, _ in estimated]
    assert 0.35 < np.mean(classes) < 0.65


def test_a_cache_in_a_folder(tmp_path):
    calls = []

    def numbers():
        calls.append(None)
        yield from [(1, b"a"), (2, b"b")]

    def make():
        return Dataset.from_generator(numbers, (tf.int32, tf.string)).cache(str(tmp_path / "cache"))

    assert list(make().as_numpy_iterator()) == list(make().as_numpy_iterator()) == [(1, b"a"), (2, b"b")]
    assert len(calls) == 1


def test_save_and_load(tmp_path):
    ragged = tf.ragged.constant([[1, 2], [3]])
    Dataset.from_tensor_slices({"r": ragged, "s": ["a", "b"]}).save(str(tmp_path / "d"))
    loaded = Dataset.load(str(tmp_path / "d"))
    assert [(x["r"].numpy().tolist(), x["s"].numpy()) for x in loaded] == [([1, 2], b"a"), ([3], b"b")]
    with pytest.raises(tf.errors.NotFoundError, match="no dataset was saved here"):
        Dataset.load(str(tmp_path / "none"))
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        Dataset.load(str(tmp_path / "d"), element_spec=tf.TensorSpec([], tf.int32))


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: Dataset.range(5).flat_map(lambda x: Dataset.range(2)), 10),
        (lambda: Dataset.range(5).interleave(lambda x: Dataset.range(2), 2), 10),
        (lambda: Dataset.range(9).batch(4, drop_remainder=True).rebatch(3), 3),
    ],
)
def test_counts_that_can_be_known_are_known(make, count):
    assert len(make()) == len(list(make())) == count


def test_functions_that_return_the_wrong_thing():
    with pytest.raises(TypeError, match="must return a `Dataset` object"):
        Dataset.range(3).flat_map(lambda x: x)
    with pytest.raises(TypeError, match=r"Unsupported return value from function passed to Dataset\.map"):
        Dataset.range(3).map(lambda x: object())
    with pytest.raises(ValueError, match=r"`predicate` must return a `tf\.bool` scalar"):
        Dataset.range(3).filter(lambda x: (x > 1, x > 2))


def test_a_conditional_lambda():
    assert rows(Dataset.range(3).map(lambda x: x if x > 1 else -x)) == [0, -1, 2]


def test_sparse_batches():
    lengths = Dataset.range(1, 5).map(tf.range)
    first, second = lengths.sparse_batch(3, [6])
    assert first.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]]
    assert first.values.numpy().tolist() == [0, 0, 1, 0, 1, 2] and first.dense_shape.numpy().tolist() == [3, 6]
    assert second.dense_shape.numpy().tolist() == [1, 6]
    with pytest.raises(tf.errors.DataLossError, match=r"larger than the row shape \(\[2\]\)"):
        list(lengths.sparse_batch(3, [2]))


def test_group_by_reducer():
    reducer = tf.data.experimental.Reducer(
        lambda key: (np.int64(0), np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1), lambda a, b: a * 100 + b
    )
    dataset = Dataset.range(10).apply(tf.data.experimental.group_by_reducer(lambda x: (x * 7) % 3, reducer))
    assert rows(dataset) == [1804, 1203, 1503]  # TensorFlow's


def test_padding_to_a_cardinality():
    with pytest.raises(ValueError, match="requires its input dataset to be a dictionary"):
        Dataset.range(3).apply(tf.data.experimental.pad_to_cardinality(4))
    with pytest.raises(ValueError, match=r"less than the target cardinality \(1\), but has cardinality 2"):
        Dataset.from_tensor_slices({"a": [1, 2]}).apply(tf.data.experimental.pad_to_cardinality(1))


def test_seeded_operations_begin_anew_in_each_pass():
    tf.random.set_seed(7)
    dataset = tf.data.Dataset.range(2).map(lambda _: tf.random.uniform([], maxval=100, dtype=tf.int32)).repeat(2)
    expected = [37, 23, 66, 77]
    assert [list(dataset.as_numpy_iterator()) for _ in range(2)] == [expected, expected]
    one, two = iter(dataset), iter(dataset)
    assert [int(next(iterator)) for iterator in (one, two, one, two)] == [37, 37, 23, 23]


def test_unseeded_operations_go_on():
    tf.random.set_seed(None)
    dataset = tf.data.Dataset.range(1).map(lambda _: tf.random.uniform([8]))
    assert (next(iter(dataset)) != next(iter(dataset))).numpy().any()


def test_batches_of_several_sizes_in_turn():
    batches = tf.data.Dataset.range(8).batch(4).rebatch([2, 1])
    assert [list(batch) for batch in batches.as_numpy_iterator()] == [[0, 1], [2], [3, 4], [5], [6, 7]]
    assert batches.element_spec.shape.as_list() == [None]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.data.Dataset.range(8).batch(4).rebatch([0])


def test_one_number_is_a_padded_shape():
    rows = tf.data.Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).padded_batch(2, 3)
    assert next(iter(rows)).numpy().tolist() == [[1, 0, 0], [2, 2, 0]]


def test_tables_of_datasets():
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2]))
    table = tf.data.experimental.table_from_dataset(pairs, default_value=-1)
    assert table.lookup(tf.constant(["b", "q"])).numpy().tolist() == [2, -1]
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "c"])
    numbers = tf.data.experimental.index_table_from_dataset(words, num_oov_buckets=1, vocab_size=2)
    assert numbers.lookup(tf.constant(["b", "c"])).numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="must be"):
        tf.data.experimental.DatasetInitializer(words)


def test_an_element_by_its_number_in_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        place = tf.compat.v1.placeholder(tf.int64, [])
        element = tf.data.experimental.at(tf.data.Dataset.range(5, 8), place)
        assert [session.run(element, {place: i}) for i in (0, 2)] == [5, 7]
        for wrong in (-1, 3):
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element, {place: wrong})


def test_slices_of_what_a_session_gave_for_a_ragged_tensor():
    value = tf.compat.v1.ragged.constant_value([[1, 2], [], [3]])
    assert [row.numpy().tolist() for row in tf.data.Dataset.from_tensor_slices(value)] == [[1, 2], [], [3]]


def test_stages_as_a_message():
    """Keras 2 looks for a stage that shuffles."""
    base = tf.data.Dataset.range(4)
    dataset = tf.data.Dataset.zip((base.shuffle(2), base.map(lambda x: x + 1))).batch(2)
    graph = tf.compat.v1.GraphDef.FromString(dataset._as_serialized_graph().numpy())
    node_by_operation = {node.op: node for node in graph.node}
    assert len(graph.node) == 5
    assert set(node_by_operation) == {"RangeDataset", "ShuffleDataset", "MapDataset", "ZipDataset", "BatchDataset"}
    zipped = node_by_operation["ZipDataset"]
    assert list(zipped.input) == [node_by_operation[name].name for name in ("ShuffleDataset", "MapDataset")]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        data = session.run(tf.data.Dataset.range(4).shuffle(2)._as_serialized_graph())
        assert len(tf.compat.v1.GraphDef.FromString(data).node) == 2


def test_files_of_images_are_read_and_resized(tmp_path):
    paths = [str(tmp_path / f"{size}.png") for size in (3, 8)]
    for path, size in zip(paths, (3, 8)):
        tf.io.write_file(path, tf.io.encode_png(tf.fill([size, size, 3], tf.constant(7, tf.uint8))))

    def read(path):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        image = tf.image.resize(image, (4, 5))
        image.set_shape((4, 5, 3))
        return image

    (batch,) = tf.data.Dataset.from_tensor_slices(paths).map(read).batch(2)
    assert batch.shape == (2, 4, 5, 3) and tf.reduce_all(batch == 7.0)


def test_pairs_stay_together_after_an_error():
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    inverse = numbers.map(lambda x: tf.debugging.check_numerics(1.0 / x, "inverse"))
    for order in ((inverse, numbers), (numbers, inverse)):
        pairs = list(tf.data.Dataset.zip(order).ignore_errors().as_numpy_iterator())
        assert [a * b for a, b in pairs] == [1.0, 1.0, 1.0]


def test_datasets_of_weight_zero_are_not_waited_for():
    endless, one = tf.data.Dataset.from_tensors(-1).repeat(), tf.data.Dataset.from_tensors(1)
    sample = tf.data.Dataset.sample_from_datasets
    assert [int(x) for x in sample([endless, one], weights=[0.0, 1.0])] == [1]
    assert list(sample([endless, endless], weights=np.array([0.0, 0.0]))) == []
    with pytest.raises(TypeError, match=r"tf\.float32"):
        sample([one, one], weights=[1, 1])


def test_paths_and_names_of_files(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_text(path.name)
    assert [x.numpy() for x in tf.data.TextLineDataset(paths)] == [b"a.txt", b"b.txt"]
    for names in (tf.data.Dataset.range(2), tf.data.Dataset.from_tensors(["a", "b"])):
        with pytest.raises(TypeError, match=r"must contain `tf\.string` elements"):
            tf.data.TextLineDataset(names)


def test_batches_say_their_size():
    numbers = tf.data.Dataset.range(10)
    for batches in (numbers.batch(3), numbers.padded_batch(3), numbers.ragged_batch(3), numbers.batch(tf.constant(3))):
        assert batches._batch_size.numpy() == 3 and not batches._drop_remainder
    assert not any(hasattr(dataset, "_batch_size") for dataset in (numbers, numbers.batch(3).map(lambda x: x)))


def test_tensors_that_a_generator_yields_are_converted():
    numbers = tf.data.Dataset.from_generator(lambda: iter([tf.constant([1]), tf.constant([2])]), tf.float32)
    assert [x.numpy().tolist() for x in numbers] == [[1.0], [2.0]]


def test_unbatch_refuses_scalars_that_come_unannounced():
    unknown = tf.TensorSpec(None, tf.int32)
    elements = tf.data.Dataset.from_generator(lambda: iter([(1, [1, 2])]), output_signature=(unknown, unknown))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a non-scalar value in each component"):
        list(elements.unbatch())
