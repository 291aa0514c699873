"""`tf.data.experimental`: functions that are methods of `tf.data.Dataset` now, and a few that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.dataset_spec import DatasetSpec
from tapeflow._src.data.files import packed_file
from tapeflow._src.data.handles import Recent
from tapeflow._src.data.pipes import mapping, ordering
from tapeflow._src.data.pipes.pipe import Iteration
from tapeflow._src.io.records import framed
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import constant
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.tensor_spec import TensorSpec

Transformation = Callable[[Dataset], Dataset]
_recent = Recent(512)


@public("data.experimental.cardinality")
def cardinality(dataset: Dataset) -> Any:
    """The number of elements of a dataset.

    >>> tf.data.experimental.cardinality(tf.data.Dataset.range(42))
    <tf.Tensor: shape=(), dtype=int64, numpy=42>
    """
    return dataset.cardinality()


@public("data.experimental.assert_cardinality")
def assert_cardinality(expected_cardinality: int) -> Transformation:
    """Says how many elements a dataset has; FailedPreconditionError while it is iterated if that is wrong.

    >>> dataset = tf.data.Dataset.range(10).filter(lambda x: x < 4)
    >>> len(dataset.apply(tf.data.experimental.assert_cardinality(4)))
    4
    """
    return lambda dataset: dataset._then(ordering.Counted(dataset._pipe, int(expected_cardinality)))


@public("data.experimental.Counter")
def Counter(start: Any = 0, step: Any = 1, dtype: Any = int64) -> Dataset:  # noqa: N802  TensorFlow's name
    """The numbers `start`, `start + step`, ... without end.

    >>> list(tf.data.experimental.Counter(2).take(2).as_numpy_iterator())
    [np.int64(2), np.int64(3)]
    """
    dataset: Dataset = Dataset.counter(start, step, dtype)
    return dataset


@public("data.experimental.RandomDataset")
def RandomDataset(  # noqa: N802  TensorFlow's name
    seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
) -> Dataset:
    """Random integers without end.

    >>> next(iter(tf.data.experimental.RandomDataset(seed=1))).dtype
    tf.int64
    """
    dataset: Dataset = Dataset.random(seed, rerandomize_each_iteration)
    return dataset


@public("data.experimental.from_list")
def from_list(elements: list[Any], name: str | None = None) -> Dataset:
    """The elements of a list, all of one structure.

    >>> list(tf.data.experimental.from_list([(1, "a"), (2, "b")]).as_numpy_iterator())
    [(np.int32(1), b'a'), (np.int32(2), b'b')]
    """
    if not isinstance(elements, list) or not elements:
        raise ValueError("Invalid `elements`. `elements` should be a list that is not empty.")
    datasets = [Dataset.from_tensors(element) for element in elements]
    dataset: Dataset = datasets[0]
    for other in datasets[1:]:
        dataset = dataset.concatenate(other)
    return dataset


@public("data.experimental.at")
def at(dataset: Dataset, index: Any) -> Any:
    """The element with a number.

    >>> tf.data.experimental.at(tf.data.Dataset.range(5, 8), 1)
    <tf.Tensor: shape=(), dtype=int64, numpy=6>
    """
    return dataset.element_at(index)


@public("data.experimental.get_single_element")
def get_single_element(dataset: Dataset) -> Any:
    """The one element of a dataset that has one.

    >>> tf.data.experimental.get_single_element(tf.data.Dataset.range(5).batch(5))
    <tf.Tensor: shape=(5,), dtype=int64, numpy=array([0, 1, 2, 3, 4])>
    """
    return dataset.get_single_element()


@public("data.experimental.get_structure")
def get_structure(dataset_or_iterator: Any) -> Any:
    """The specification of the elements of a dataset or an iterator.

    >>> tf.data.experimental.get_structure(tf.data.Dataset.range(5))
    TensorSpec(shape=(), dtype=tf.int64, name=None)
    """
    return dataset_or_iterator.element_spec


@public("data.experimental.enable_debug_mode")
def enable_debug_mode() -> None:
    """Accepted; functions of datasets are traced all the same.

    >>> tf.data.experimental.enable_debug_mode()
    """


def _as_transformation(name: str, method: str, example: str) -> None:
    """Makes the v1 function of which the result is passed to `apply`."""

    def transformation(*args: Any, **kwargs: Any) -> Transformation:
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    transformation.__name__ = transformation.__qualname__ = name
    transformation.__doc__ = f"""A transformation for `Dataset.apply`: the method `{method}` of datasets.

    {example}
    """
    public(f"data.experimental.{name}")(transformation)


_RANGE = ">>> dataset = tf.data.Dataset.range(4).apply(tf.data.experimental."
_BATCHES = ">>> dataset = tf.data.Dataset.range(4).batch(2).apply(tf.data.experimental."
_LIST = ")\n    >>> list(dataset.as_numpy_iterator())\n    "
for _name, _method, _example in (
    ("unbatch", "unbatch", f"{_BATCHES}unbatch(){_LIST}[0, 1, 2, 3]"),
    ("unique", "unique", f"{_RANGE}unique(){_LIST}[0, 1, 2, 3]"),
    ("enumerate_dataset", "enumerate", f"{_RANGE}enumerate_dataset(){_LIST}[(0, 0), (1, 1), (2, 2), (3, 3)]"),
    ("ignore_errors", "ignore_errors", f"{_RANGE}ignore_errors(){_LIST}[0, 1, 2, 3]"),
    ("take_while", "take_while", f"{_RANGE}take_while(lambda x: x < 2){_LIST}[0, 1]"),
    ("scan", "scan", f"{_RANGE}scan(np.int64(0), lambda s, x: (s + x, s)){_LIST}[0, 0, 1, 3]"),
    ("snapshot", "snapshot", f"{_RANGE}snapshot('folder'){_LIST}[0, 1, 2, 3]"),
    (
        "dense_to_sparse_batch",
        "sparse_batch",
        ">>> transformation = tf.data.experimental.dense_to_sparse_batch(2, [3])\n"
        "    >>> dataset = tf.data.Dataset.range(1, 3).map(tf.range).apply(transformation)\n"
        "    >>> tf.sparse.to_dense(dataset.get_single_element())\n"
        "    [[0, 0, 0], [0, 1, 0]]",
    ),
    ("dense_to_ragged_batch", "ragged_batch", f"{_RANGE}dense_to_ragged_batch(4){_LIST}[array([0, 1, 2, 3])]"),
    (
        "group_by_window",
        "group_by_window",
        f"{_RANGE}group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), 2){_LIST}[array([0, 2]), array([1, 3])]",
    ),
    (
        "bucket_by_sequence_length",
        "bucket_by_sequence_length",
        ">>> transformation = tf.data.experimental.bucket_by_sequence_length(lambda x: 1, [5], [2, 2])\n"
        "    >>> tf.data.Dataset.range(4).map(lambda x: [x]).apply(transformation).element_spec\n"
        "    (TensorSpec(shape=(None,), dtype=tf.int64, name=None),)",
    ),
    (
        "rejection_resample",
        "rejection_resample",
        f"{_RANGE}rejection_resample(lambda x: 0, [1.], [1.]){_LIST}[(0, 0), (0, 1), (0, 2), (0, 3)]",
    ),
):  # fmt: skip
    _as_transformation(_name, _method, _example)


public("data.experimental.SHARD_HINT")(-1)


@public("data.experimental.Reducer")
class Reducer:
    """What `group_by_reducer` does with the elements of one key: begin a state, add an element, end.

    >>> reducer = tf.data.experimental.Reducer(lambda key: 0, lambda count, x: count + 1, lambda count: count)
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Callable[..., Any]
    ) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


@public("data.experimental.group_by_reducer")
def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """A transformation for `Dataset.apply`: one element for each key, in the order of the keys.

    >>> count = tf.data.experimental.Reducer(lambda key: 0, lambda count, x: count + 1, lambda count: count)
    >>> dataset = tf.data.Dataset.range(5).apply(tf.data.experimental.group_by_reducer(lambda x: x % 2, count))
    >>> list(dataset.as_numpy_iterator())
    [np.int32(3), np.int32(2)]
    """
    parts = (reducer.init_func, reducer.reduce_func, reducer.finalize_func)
    return lambda dataset: dataset._then(mapping.GroupedByReducer(dataset._pipe, key_func, *parts))


@public("data.experimental.pad_to_cardinality")
def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """A transformation for `Dataset.apply`: dictionaries up to a number; those added are zero and not `valid`.

    >>> dataset = tf.data.Dataset.from_tensor_slices({"a": [7]}).apply(tf.data.experimental.pad_to_cardinality(2))
    >>> list(dataset.as_numpy_iterator())
    [{'a': np.int32(7), 'valid': np.True_}, {'a': np.int32(0), 'valid': np.False_}]
    """

    def transform(dataset: Dataset) -> Dataset:
        if not isinstance(dataset.element_spec, dict):
            raise ValueError("`pad_to_cardinality` requires its input dataset to be a dictionary.")
        count = int(dataset.cardinality())
        if count < 0:
            raise ValueError(
                "The dataset passed into `pad_to_cardinality` must have a known cardinalty, but has cardinality "
                f"{count}"
            )
        if count > cardinality:
            raise ValueError(
                "The dataset passed into `pad_to_cardinality` must have a cardinalty less than the target cardinality "
                f"({cardinality}), but has cardinality {count}"
            )
        given = dataset.map(lambda element: {**element, mask_key: constant(True)})
        blank = nest.map_structure(lambda spec: zeros(spec.shape, spec.dtype), given.element_spec)
        result: Dataset = given.concatenate(Dataset.from_tensors(blank).repeat(cardinality - count))
        return result

    return transform


@public("data.experimental.to_variant")
def to_variant(dataset: Dataset) -> Any:
    """A tensor that stands for a dataset.

    >>> dataset = tf.data.Dataset.range(3)
    >>> variant = tf.data.experimental.to_variant(dataset)
    >>> list(tf.data.experimental.from_variant(variant, dataset.element_spec).as_numpy_iterator())
    [np.int64(0), np.int64(1), np.int64(2)]
    """
    return _recent.hold(dataset)._handle_tensor()


@public("data.experimental.from_variant")
def from_variant(variant: Any, structure: Any) -> Dataset:
    """The dataset for which a tensor stands.

    >>> dataset = tf.data.Dataset.range(3)
    >>> variant = tf.data.experimental.to_variant(dataset)
    >>> tf.data.experimental.from_variant(variant, dataset.element_spec).cardinality()
    <tf.Tensor: shape=(), dtype=int64, numpy=3>
    """
    dataset: Dataset = DatasetSpec(structure)._from_components(variant)
    return dataset


@public("data.experimental.shuffle_and_repeat")
def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """A transformation for `Dataset.apply`: `shuffle`, then `repeat`.

    >>> len(tf.data.Dataset.range(3).apply(tf.data.experimental.shuffle_and_repeat(3, count=2)))
    6
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@public("data.experimental.map_and_batch")
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """A transformation for `Dataset.apply`: `map`, then `batch`.

    >>> tf.data.Dataset.range(3).apply(tf.data.experimental.map_and_batch(lambda x: x * x, 3)).get_single_element()
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 1, 4])>
    """
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


@public("data.experimental.parallel_interleave")
def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """A transformation for `Dataset.apply`: `interleave`.

    >>> dataset = tf.data.Dataset.range(2).apply(
    ...     tf.data.experimental.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2))
    >>> list(dataset.as_numpy_iterator())
    [np.int64(0), np.int64(1), np.int64(0), np.int64(1)]
    """
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


@public("data.experimental.prefetch_to_device")
def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """A transformation for `Dataset.apply` that does nothing: there is one device.

    >>> tf.data.Dataset.range(3).apply(tf.data.experimental.prefetch_to_device("/cpu:0")).cardinality()
    <tf.Tensor: shape=(), dtype=int64, numpy=3>
    """
    return lambda dataset: dataset.prefetch(buffer_size or 1)


@public("data.experimental.copy_to_device")
def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """A transformation for `Dataset.apply` that does nothing: there is one device.

    >>> tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device("/cpu:0")).cardinality()
    <tf.Tensor: shape=(), dtype=int64, numpy=3>
    """
    return lambda dataset: dataset.prefetch(1)


@public("data.experimental.choose_from_datasets")
def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Dataset:
    """`tf.data.Dataset.choose_from_datasets` under its v1 name.

    >>> choices = tf.data.Dataset.range(2)
    >>> parts = [tf.data.Dataset.from_tensors("a"), tf.data.Dataset.from_tensors("b")]
    >>> list(tf.data.experimental.choose_from_datasets(parts, choices).as_numpy_iterator())
    [b'a', b'b']
    """
    dataset: Dataset = Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)
    return dataset


@public("data.experimental.sample_from_datasets")
def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """`tf.data.Dataset.sample_from_datasets` under its v1 name.

    >>> parts = [tf.data.Dataset.from_tensors("a"), tf.data.Dataset.from_tensors("b")]
    >>> sorted(tf.data.experimental.sample_from_datasets(parts, seed=1).as_numpy_iterator())
    [b'a', b'b']
    """
    dataset: Dataset = Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)
    return dataset


@public("data.experimental.save")
def save(
    dataset: Dataset,
    path: str,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: Any = None,
) -> Any:
    """Writes all elements into a folder; in a graph, the operation that does.

    >>> tf.data.experimental.save(tf.data.Dataset.range(2), "numbers")
    """
    return dataset.save(path, compression, shard_func, checkpoint_args)


@public("data.experimental.load")
def load(
    path: str, element_spec: Any = None, compression: str | None = None, reader_func: Callable[..., Any] | None = None
) -> Dataset:
    """The dataset that `save` wrote.

    >>> tf.data.Dataset.range(2).save("numbers")
    >>> list(tf.data.experimental.load("numbers").as_numpy_iterator())
    [np.int64(0), np.int64(1)]
    """
    dataset: Dataset = Dataset.load(path, element_spec, compression, reader_func)
    return dataset


@public("data.experimental.TFRecordWriter")
class TFRecordWriter:
    """Writes a dataset of strings to a TFRecord file.

    >>> tf.data.experimental.TFRecordWriter("one.tfrecord").write(tf.data.Dataset.from_tensors("text"))
    """

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self._filename, self._compression = filename, compression_type

    def write(self, dataset: Dataset) -> None:
        """Writes all elements."""
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype.name != "string":
            raise TypeError(f"`dataset` must produce scalar `DT_STRING` tensors whereas it produces {spec}.")
        with packed_file(self._filename, self._compression) as file:
            for (record,) in dataset._pipe.begin(Iteration()):
                file.write(framed(record.numpy()))

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
