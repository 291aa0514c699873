"""Columns of categories: by a hash, by a vocabulary, by their number."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.compat.feature_columns.arguments import check_key, check_oov, check_string_or_integer
from tapeflow._src.compat.feature_columns.column import CategoricalColumn
from tapeflow._src.compat.feature_columns.transformation import sparse_input
from tapeflow._src.compat.v1.signatures.declaration import v1_signature
from tapeflow._src.data.readers import TFRecordDataset
from tapeflow._src.data.tables import index_table_from_dataset
from tapeflow._src.function.trace import init_scope
from tapeflow._src.io.examples.features import VarLenFeature
from tapeflow._src.io.gfile import GFile, exists
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.lookup.initializers import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from tapeflow._src.ops.lookup.tables import StaticHashTable, StaticVocabularyTable
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.sparse_tensor import SparseTensor


class _KeyedColumn(CategoricalColumn):
    """A column of one feature, whose name it bears."""

    key: Any
    dtype: Any
    name = property(lambda self: self.key)
    parents = property(lambda self: [self.key])
    parse_example_spec = property(lambda self: {self.key: VarLenFeature(self.dtype)})

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids of the feature."""
        return self._ids(sparse_input(transformation_cache.get(self.key, state_manager)), state_manager)

    def _ids(self, x: SparseTensor, state_manager: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._ids")

    def _check_dtype(self, x: SparseTensor) -> None:
        if self.dtype.is_integer != x.dtype.is_integer:
            raise ValueError(
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: {self.dtype}, tensor dtype: {x.dtype}"
            )
        check_string_or_integer(x.dtype, f"column_name: {self.key} input_tensor")


class HashedCategoricalColumn(_KeyedColumn, namedtuple("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    """Categories by the hash of their text."""

    num_buckets = property(lambda self: self.hash_bucket_size)

    def _ids(self, x: SparseTensor, state_manager: Any) -> Any:
        check_string_or_integer(x.dtype, f"column_name: {self.key} input_tensor")
        self._check_dtype(x)
        words = x.values if self.dtype == string else find_public("strings.as_string")(x.values)
        return SparseTensor(
            x.indices, find_public("strings.to_hash_bucket_fast")(words, self.hash_bucket_size), x.dense_shape
        )


class _VocabularyColumn(_KeyedColumn):
    """Categories by their place in a vocabulary; the state manager keeps the table."""

    num_oov_buckets: Any
    default_value: Any

    def _ids(self, x: SparseTensor, state_manager: Any) -> Any:
        self._check_dtype(x)
        key_dtype = int64 if x.dtype.is_integer else self.dtype
        if x.dtype.is_integer:
            x = SparseTensor(x.indices, cast(x.values, int64), x.dense_shape)
        name = f"{self.key}_lookup"
        if state_manager is not None and state_manager.has_resource(self, name):
            return state_manager.get_resource(self, name).lookup(x)
        with init_scope():
            table = self._table(key_dtype)
        if state_manager is not None:
            state_manager.add_resource(self, name, table)
        return table.lookup(x)

    def _table(self, key_dtype: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._table")

    def _table_of(self, initializer: Any, key_dtype: Any) -> Any:
        if self.num_oov_buckets:
            return StaticVocabularyTable(initializer, self.num_oov_buckets, key_dtype)
        return StaticHashTable(initializer, self.default_value)


class VocabularyFileCategoricalColumn(
    _VocabularyColumn,
    namedtuple(
        "VocabularyFileCategoricalColumn",
        "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format",
        defaults=[None],
    ),
):
    """Categories by the line of a file."""

    num_buckets = property(lambda self: self.vocabulary_size + self.num_oov_buckets)

    def _table(self, key_dtype: Any) -> Any:
        if self.file_format != "tfrecord_gzip":
            line, number = TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER
            words = TextFileInitializer(self.vocabulary_file, key_dtype, line, int64, number, self.vocabulary_size)
            return self._table_of(words, key_dtype)
        records = TFRecordDataset(self.vocabulary_file, "GZIP")
        if key_dtype != string:
            records = records.map(lambda text: find_public("strings.to_number")(text, key_dtype))
        default = None if self.num_oov_buckets else self.default_value
        return index_table_from_dataset(
            records, self.num_oov_buckets, self.vocabulary_size, default, key_dtype=key_dtype
        )


class VocabularyListCategoricalColumn(
    _VocabularyColumn,
    namedtuple("VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets"),
):
    """Categories by their place in a list."""

    num_buckets = property(lambda self: len(self.vocabulary_list) + self.num_oov_buckets)

    def _table(self, key_dtype: Any) -> Any:
        numbers = np.arange(len(self.vocabulary_list), dtype=np.int64)
        words = KeyValueTensorInitializer(list(self.vocabulary_list), numbers, key_dtype, int64)
        return self._table_of(words, key_dtype)


class IdentityCategoricalColumn(
    _KeyedColumn, namedtuple("IdentityCategoricalColumn", "key number_buckets default_value")
):
    """Categories that are numbers already."""

    dtype = int64
    num_buckets = property(lambda self: self.number_buckets)

    def _ids(self, x: SparseTensor, state_manager: Any) -> Any:
        if not x.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {x.dtype}")
        ids = cast(x.values, int64)
        if self.default_value is not None:
            outside = primitives.LogicalOr(ids < 0, ids >= self.number_buckets)
            ids = primitives.SelectV2(outside, find_public("constant")(self.default_value, int64), ids)
        return SparseTensor(x.indices, ids, x.dense_shape)


@public(
    "feature_column.categorical_column_with_hash_bucket",
    "compat.v1.feature_column.categorical_column_with_hash_bucket",
)
def categorical_column_with_hash_bucket(key: str, hash_bucket_size: Any, dtype: Any = string) -> Any:
    """A column of categories whose ids are the hash of their text, modulo `hash_bucket_size`.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", hash_bucket_size=1)
    >>> tf.compat.v1.feature_column.input_layer({"word": [["a"]]}, [tf.feature_column.indicator_column(word)])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    check_key(key)
    check_string_or_integer(dtype, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


def _count_words(vocabulary_file: Any, file_format: str | None, key: Any) -> Any:
    if not exists(vocabulary_file):
        raise ValueError(f"vocabulary_file in {key} does not exist.")
    if file_format == "tfrecord_gzip":
        with init_scope():
            return sum(1 for _ in TFRecordDataset(vocabulary_file, "GZIP"))
    with GFile(vocabulary_file, "rb") as file:
        return sum(1 for _ in file)


@public("feature_column.categorical_column_with_vocabulary_file")
def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Any = None,
    dtype: Any = string,
    default_value: Any = None,
    num_oov_buckets: Any = 0,
    file_format: str | None = None,
) -> Any:
    """A column of categories whose ids are the lines of a file.

    >>> tf.io.write_file("colours.txt", "red\\nblue\\n")
    >>> colour = tf.feature_column.categorical_column_with_vocabulary_file("colour", "colours.txt")
    >>> tf.compat.v1.feature_column.input_layer({"colour": [["blue"]]}, [tf.feature_column.indicator_column(colour)])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[0., 1.]], dtype=float32)>
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format is None and vocabulary_file.endswith("tfrecord.gz"):
        file_format = "tfrecord_gzip"
    if vocabulary_size is None:
        vocabulary_size = _count_words(vocabulary_file, file_format, key)
    if not _core.is_tensor(vocabulary_size) and vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    check_oov(num_oov_buckets, default_value is not None, key)
    check_string_or_integer(dtype, f"column_name: {key}")
    check_key(key)
    return VocabularyFileCategoricalColumn(
        key,
        vocabulary_file,
        vocabulary_size,
        num_oov_buckets or 0,
        dtype,
        -1 if default_value is None else default_value,
        file_format,
    )


v1_signature(
    "feature_column.categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, "
    "num_oov_buckets=0, default_value=None, dtype=string)",
    "feature_column.categorical_column_with_vocabulary_file",
    example="tf.compat.v1.feature_column.categorical_column_with_vocabulary_file('k', 'f.txt', 4, 3).num_buckets => 7",
)


@public(
    "feature_column.categorical_column_with_vocabulary_list",
    "compat.v1.feature_column.categorical_column_with_vocabulary_list",
)
def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Any, dtype: Any = None, default_value: Any = -1, num_oov_buckets: Any = 0
) -> Any:
    """A column of categories whose ids are their places in a list.

    >>> colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", ["red", "blue"])
    >>> tf.compat.v1.feature_column.input_layer({"colour": [["blue"]]}, [tf.feature_column.indicator_column(colour)])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[0., 1.]], dtype=float32)>
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    words = as_dtype(np.array(vocabulary_list).dtype)
    check_oov(num_oov_buckets, default_value != -1, key)
    check_string_or_integer(words, f"column_name: {key} vocabulary")
    if dtype is not None and dtype.is_integer != words.is_integer:
        raise ValueError(f"dtype {dtype} and vocabulary dtype {words} do not match, column_name: {key}")
    dtype = words if dtype is None else dtype
    check_string_or_integer(dtype, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


@public(
    "feature_column.categorical_column_with_identity",
    "compat.v1.feature_column.categorical_column_with_identity",
)
def categorical_column_with_identity(key: str, num_buckets: Any, default_value: Any = None) -> Any:
    """A column of integers below `num_buckets` that are ids already; others become `default_value`.

    >>> digit = tf.feature_column.categorical_column_with_identity("digit", 3, default_value=0)
    >>> tf.compat.v1.feature_column.input_layer({"digit": [[2], [9]]}, [tf.feature_column.indicator_column(digit)])
    <tf.Tensor: shape=(2, 3), dtype=float32, numpy=
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)>
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)
