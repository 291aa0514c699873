"""Columns of numbers: as they are, and by the bucket they fall into."""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.feature_columns.arguments import (
    check_key,
    check_normalizer,
    check_numeric,
    checked_default,
    checked_shape,
)
from tapeflow._src.compat.feature_columns.column import CategoricalColumn, DenseColumn, IdWeightPair
from tapeflow._src.compat.feature_columns.transformation import shape_of
from tapeflow._src.io.examples.features import FixedLenFeature
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.dtypes import float32, int32, int64
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape


class NumericColumn(DenseColumn, namedtuple("NumericColumn", "key shape default_value dtype normalizer_fn")):
    """A feature of numbers, as float32."""

    name = property(lambda self: self.key)
    parents = property(lambda self: [self.key])
    variable_shape = property(lambda self: TensorShape(self.shape))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How the feature is read from examples."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The normalized feature."""
        x = transformation_cache.get(self.key, state_manager)
        if isinstance(x, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. "
                f"key: {self.key}"
            )
        return cast(x if self.normalizer_fn is None else self.normalizer_fn(x), float32)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The normalized feature."""
        return transformation_cache.get(self, state_manager)


class BucketizedColumn(DenseColumn, CategoricalColumn, namedtuple("BucketizedColumn", "source_column boundaries")):
    """The buckets of a numeric column: one-hot as a dense column, numbered as a categorical one."""

    name = property(lambda self: f"{self.source_column.name}_bucketized")
    parents = property(lambda self: [self.source_column])
    parse_example_spec = property(lambda self: self.source_column.parse_example_spec)
    variable_shape = property(lambda self: TensorShape((*self.source_column.shape, len(self.boundaries) + 1)))
    num_buckets = property(lambda self: (len(self.boundaries) + 1) * self.source_column.shape[0])

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The number of the bucket of each element, int32."""
        source = transformation_cache.get(self.source_column, state_manager)
        return find_public("raw_ops.Bucketize")(input=source, boundaries=list(self.boundaries))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The buckets, one-hot."""
        buckets = cast(transformation_cache.get(self, state_manager), int64)
        return find_public("one_hot")(buckets, len(self.boundaries) + 1, 1.0, 0.0)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """The buckets as ids; each dimension of the source has ids of its own."""
        buckets = transformation_cache.get(self, state_manager)
        batch, width = shape_of(buckets, int32)[0], self.source_column.shape[0]
        rows, columns = find_public("meshgrid")(find_public("range")(batch), find_public("range")(width), indexing="ij")
        rows, columns = primitives.Reshape(rows, [-1]), primitives.Reshape(columns, [-1])
        ids = primitives.Reshape(buckets, [-1]) + (len(self.boundaries) + 1) * columns
        indices = cast(find_public("stack")([rows, columns], axis=1), int64)
        return IdWeightPair(SparseTensor(indices, ids, cast(primitives.Pack([batch, width]), int64)), None)


@public("feature_column.numeric_column", "compat.v1.feature_column.numeric_column")
def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = float32, normalizer_fn: Any = None
) -> Any:
    """A column of numbers.

    Args:
      key: the name of the feature.
      shape: the shape of the feature of one example.
      default_value: what examples without the feature have: one number, or numbers of `shape`.
      dtype: the dtype of the feature in examples.
      normalizer_fn: a function that is applied to the tensor.

    Returns:
      The column.

    >>> price = tf.feature_column.numeric_column("price", normalizer_fn=lambda x: x / 10.)
    >>> tf.compat.v1.feature_column.input_layer({"price": [[1.], [5.]]}, [price])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[0.1],
           [0.5]], dtype=float32)>
    """
    shape = checked_shape(shape, key)
    check_numeric(dtype, key)
    default_value = checked_default(shape, default_value, dtype, key)
    check_normalizer(normalizer_fn)
    check_key(key)
    return NumericColumn(key, shape, default_value, dtype, normalizer_fn)


@public("feature_column.bucketized_column", "compat.v1.feature_column.bucketized_column")
def bucketized_column(source_column: Any, boundaries: Any) -> Any:
    """The numbers of another column by bucket: below the first boundary, from it to the second, and so on.

    >>> price = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("price"), [0., 10.])
    >>> tf.compat.v1.feature_column.input_layer({"price": [[-1.], [10.]]}, [price])
    <tf.Tensor: shape=(2, 3), dtype=float32, numpy=
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)>
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    pairs = pairwise(boundaries) if isinstance(boundaries, list | tuple) else [(1, 0)]
    if any(low >= high for low, high in pairs):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))
