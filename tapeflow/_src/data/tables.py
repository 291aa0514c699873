"""Lookup tables that begin with the elements of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.namespace import public
from tapeflow._src.ops.lookup.initializers import elements
from tapeflow._src.ops.lookup.tables import StaticHashTable, StaticVocabularyTable
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.tensor_spec import TensorSpec


@public("data.experimental.DatasetInitializer", "compat.v1.data.experimental.DatasetInitializer")
class DatasetInitializer:
    """The elements (key, value) of a dataset, for a table to begin with.

    >>> dataset = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2]))
    >>> table = tf.lookup.StaticHashTable(tf.data.experimental.DatasetInitializer(dataset), -1)
    >>> table.lookup(tf.constant(["b", "q"]))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 2, -1], dtype=int32)>
    """

    def __init__(self, dataset: Any) -> None:
        spec = getattr(dataset, "element_spec", None)
        if not isinstance(spec, tuple) or len(spec) != 2 or not all(isinstance(part, TensorSpec) for part in spec):
            raise ValueError(f"DatasetInitializer: the elements of the dataset must be (key, value); got {spec}")
        self.dataset = dataset

    @property
    def key_dtype(self) -> Any:
        """The `tf.DType` of the keys."""
        return self.dataset.element_spec[0].dtype

    @property
    def value_dtype(self) -> Any:
        """The `tf.DType` of the values."""
        return self.dataset.element_spec[1].dtype

    def initialize(self, table: Any) -> None:
        """Puts the keys and values into a table."""
        table.begin_with(self.pairs())

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Keys with their values."""
        return ((elements(key)[0], elements(value)[0]) for key, value in self.dataset)


@public("data.experimental.table_from_dataset", "compat.v1.data.experimental.table_from_dataset")
def table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = None,
    hasher_spec: Any = None,
    key_dtype: Any = string,
    name: str | None = None,
) -> Any:
    """A table of the elements (key, value) of a dataset; other keys give `default_value`, or numbers by a hash.

    >>> dataset = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2]))
    >>> tf.data.experimental.table_from_dataset(dataset, default_value=-1).lookup(tf.constant(["b", "q"]))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 2, -1], dtype=int32)>
    """
    wanted = as_dtype(key_dtype)
    if num_oov_buckets < 0:
        raise ValueError(f"`num_oov_buckets` must be greater than or equal to 0, got {num_oov_buckets}.")
    if vocab_size is not None and (vocab_size.__class__ is not int or vocab_size < 1):
        raise ValueError(f"`vocab_size` must be greater than 0, got {vocab_size}.")
    if not wanted.is_integer and wanted != string:
        raise TypeError(f"`key_dtype` must be either an integer or string type, but got {wanted!r}")
    if vocab_size is not None:
        dataset = dataset.take(vocab_size)
    initializer = DatasetInitializer(dataset)
    if num_oov_buckets > 0:
        if default_value is not None:
            raise ValueError("`default_value` must not be given with `num_oov_buckets`.")
        return StaticVocabularyTable(initializer, num_oov_buckets, wanted)
    return StaticHashTable(initializer, -1 if default_value is None else default_value)


@public("data.experimental.index_table_from_dataset", "compat.v1.data.experimental.index_table_from_dataset")
def index_table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = -1,
    hasher_spec: Any = None,
    key_dtype: Any = string,
    name: str | None = None,
) -> Any:
    """A table that gives each element of a dataset its number, from 0 on.

    >>> words = tf.data.Dataset.from_tensor_slices(["a", "b"])
    >>> tf.data.experimental.index_table_from_dataset(words).lookup(tf.constant(["b", "q"]))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([ 1, -1])>
    """
    numbers = Dataset.range(2**62, output_type=int64)
    pairs = Dataset.zip((dataset, numbers))
    given = None if num_oov_buckets > 0 else default_value
    return table_from_dataset(pairs, num_oov_buckets, vocab_size, given, hasher_spec, key_dtype, name)
