"""Columns of sequences: categories and numbers for each step."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.feature_columns.arguments import check_normalizer, check_numeric, checked_shape
from tapeflow._src.compat.feature_columns.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from tapeflow._src.compat.feature_columns.column import (
    CategoricalColumn,
    IdWeightPair,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
)
from tapeflow._src.compat.feature_columns.transformation import sequence_length_from_sparse_tensor, shape_of
from tapeflow._src.io.examples.features import VarLenFeature
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import float32, string
from tapeflow._src.types.tensor_shape import TensorShape


class SequenceCategoricalColumn(CategoricalColumn, namedtuple("SequenceCategoricalColumn", "categorical_column")):
    """Categories for each step: ids of shape [batch, steps, categories]."""

    name = property(lambda self: self.categorical_column.name)
    parents = property(lambda self: [self.categorical_column])
    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)
    num_buckets = property(lambda self: self.categorical_column.num_buckets)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """What the inner column makes of the features."""
        return self.categorical_column.transform_feature(transformation_cache, state_manager)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """Ids and weights with three dimensions."""
        ids, weights = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        shape = shape_of(ids)
        shape = primitives.Pack([shape[0], shape[1], find_public("reduce_prod")(shape[2:])])
        reshape = find_public("sparse.reshape")
        return IdWeightPair(reshape(ids, shape), None if weights is None else reshape(weights, shape))


class SequenceNumericColumn(
    SequenceDenseColumn, namedtuple("SequenceNumericColumn", "key shape default_value dtype normalizer_fn")
):
    """Numbers for each step."""

    name = property(lambda self: self.key)
    parents = property(lambda self: [self.key])
    parse_example_spec = property(lambda self: {self.key: VarLenFeature(self.dtype)})
    variable_shape = property(lambda self: TensorShape(self.shape))

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The normalized feature, a SparseTensor."""
        x = transformation_cache.get(self.key, state_manager)
        return x if self.normalizer_fn is None else self.normalizer_fn(x)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        """Steps of `shape`, with the default where sequences end before the longest."""
        x = transformation_cache.get(self, state_manager)
        dense = find_public("sparse.to_dense")(x, self.default_value)
        batch = shape_of(dense)[0]
        steps = primitives.Reshape(dense, primitives.Pack([batch, -1, *self.shape]))
        group = self.variable_shape.num_elements() if x.shape.rank == 2 else 1
        return TensorSequenceLengthPair(steps, sequence_length_from_sparse_tensor(x, group))


@public(
    "feature_column.sequence_categorical_column_with_identity",
    "compat.v1.feature_column.sequence_categorical_column_with_identity",
)
def sequence_categorical_column_with_identity(key: str, num_buckets: Any, default_value: Any = None) -> Any:
    """`categorical_column_with_identity` for each step of a sequence.

    >>> tf.feature_column.sequence_categorical_column_with_identity("digit", 3).num_buckets
    3
    """
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


@public(
    "feature_column.sequence_categorical_column_with_hash_bucket",
    "compat.v1.feature_column.sequence_categorical_column_with_hash_bucket",
)
def sequence_categorical_column_with_hash_bucket(key: str, hash_bucket_size: Any, dtype: Any = string) -> Any:
    """`categorical_column_with_hash_bucket` for each step of a sequence.

    >>> tf.feature_column.sequence_categorical_column_with_hash_bucket("word", 10).num_buckets
    10
    """
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


@public(
    "feature_column.sequence_categorical_column_with_vocabulary_file",
    "compat.v1.feature_column.sequence_categorical_column_with_vocabulary_file",
)
def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Any = None,
    num_oov_buckets: Any = 0,
    default_value: Any = None,
    dtype: Any = string,
) -> Any:
    """`categorical_column_with_vocabulary_file` for each step of a sequence.

    >>> tf.io.write_file("colours.txt", "red\\nblue\\n")
    >>> tf.feature_column.sequence_categorical_column_with_vocabulary_file("colour", "colours.txt").num_buckets
    2
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets
        )
    )


@public(
    "feature_column.sequence_categorical_column_with_vocabulary_list",
    "compat.v1.feature_column.sequence_categorical_column_with_vocabulary_list",
)
def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Any, dtype: Any = None, default_value: Any = -1, num_oov_buckets: Any = 0
) -> Any:
    """`categorical_column_with_vocabulary_list` for each step of a sequence.

    >>> tf.feature_column.sequence_categorical_column_with_vocabulary_list("colour", ["red", "blue"]).num_buckets
    2
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


@public("feature_column.sequence_numeric_column", "compat.v1.feature_column.sequence_numeric_column")
def sequence_numeric_column(
    key: str, shape: Any = (1,), default_value: Any = 0.0, dtype: Any = float32, normalizer_fn: Any = None
) -> Any:
    """A column of numbers for each step of a sequence; its feature is a SparseTensor.

    >>> tf.feature_column.sequence_numeric_column("temperature").name
    'temperature'
    """
    shape = checked_shape(shape, key)
    check_numeric(dtype, key)
    check_normalizer(normalizer_fn)
    return SequenceNumericColumn(key, shape, default_value, dtype, normalizer_fn)


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Any:
    """The input of a sequence with the context of its example at each step, [batch, steps, sizes of both]."""
    for what, x, rank in (("sequence_input", sequence_input, 3), ("context_input", context_input, 2)):
        if x.dtype != float32:
            raise TypeError(f"{what} must have dtype float32; got {x.dtype}.")
        find_public("debugging.assert_rank")(x, rank, f"{what} must have rank {rank}")
    steps = shape_of(sequence_input)[1]
    repeated = find_public("repeat")(primitives.ExpandDims(context_input, 1), steps, axis=1)
    return find_public("concat")([sequence_input, repeated], 2)
