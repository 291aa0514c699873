"""Files of `tf.train.Example`: `tf.data.experimental.make_batched_features_dataset` and `parse_example_dataset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.options import AUTOTUNE, Options
from tapeflow._src.data.readers import TFRecordDataset
from tapeflow._src.io.examples.example_parsing import parse_example
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import string
from tapeflow._src.types.tensor_spec import TensorSpec


@public("data.experimental.parse_example_dataset", "compat.v1.data.experimental.parse_example_dataset")
def parse_example_dataset(
    features: Mapping[str, Any] | None, num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: batches of serialized examples become dictionaries of tensors.

    >>> age = tf.train.Feature(int64_list=tf.train.Int64List(value=[31]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": age})).SerializeToString()
    >>> dataset = tf.data.Dataset.from_tensor_slices([example, example]).batch(2)
    >>> parse = tf.data.experimental.parse_example_dataset({"age": tf.io.FixedLenFeature([], tf.int64)})
    >>> next(iter(dataset.apply(parse)))["age"]
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([31, 31])>
    """
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")

    def apply(dataset: Dataset) -> Dataset:
        spec = dataset.element_spec
        if not (isinstance(spec, TensorSpec) and spec.dtype == string and spec.shape.rank in (1, None)):
            raise TypeError(f"Input dataset should be a dataset of vectors of strings. Instead it is `{spec}`.")
        parsed: Dataset = dataset.map(lambda batch: parse_example(batch, features), num_parallel_calls, deterministic)
        return parsed

    return apply


@public("data.experimental.make_batched_features_dataset", "compat.v1.data.experimental.make_batched_features_dataset")
def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[..., Any] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the examples in files, as dictionaries of tensors; with `label_key`, pairs of dictionary and label.

    >>> ages = [tf.train.Feature(int64_list=tf.train.Int64List(value=[age])) for age in (31, 27)]
    >>> with tf.io.TFRecordWriter("ages.tfrecord") as writer:
    ...     for age in ages:
    ...         example = tf.train.Example(features=tf.train.Features(feature={"age": age}))
    ...         writer.write(example.SerializeToString())
    >>> dataset = tf.data.experimental.make_batched_features_dataset(
    ...     "ages.tfrecord", 2, {"age": tf.io.FixedLenFeature([], tf.int64)}, num_epochs=1, shuffle=False)
    >>> [batch["age"].numpy().tolist() for batch in dataset]
    [[31, 27]]
    """
    if label_key and label_key not in features:
        raise ValueError(
            f"The `label_key` provided ({label_key}) must be one of the `features` keys: {features.keys()}."
        )
    read, threads = TFRecordDataset if reader is None else reader, reader_num_threads or 1
    parallel = threads == AUTOTUNE
    dataset = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed).interleave(
        lambda file: read(file, *(reader_args or ())),
        cycle_length=None if parallel else threads,
        num_parallel_calls=AUTOTUNE if parallel else None,
    )
    if parallel:
        options = Options()
        options.deterministic = not sloppy_ordering
        dataset = dataset.with_options(options)
    if isinstance(dataset.element_spec, tuple):  # of a reader that gives keys and values
        dataset = dataset.map(lambda _, value: value)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.apply(parse_example_dataset(features, 2 if parser_num_threads is None else parser_num_threads))
    if label_key:
        dataset = dataset.map(lambda batch: (batch, batch.pop(label_key)))
    result: Dataset = dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
    return result
