"""Columns made of other categorical columns: with weights, and crossed."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src.compat.feature_columns.categorical import HashedCategoricalColumn
from tapeflow._src.compat.feature_columns.column import CategoricalColumn, FeatureColumn, IdWeightPair
from tapeflow._src.compat.feature_columns.transformation import sparse_input
from tapeflow._src.io.examples.features import VarLenFeature
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor
from tapeflow._src.types.dtypes import float32, string
from tapeflow._src.types.sparse_tensor import SparseTensor


class WeightedCategoricalColumn(
    CategoricalColumn, namedtuple("WeightedCategoricalColumn", "categorical_column weight_feature_key dtype")
):
    """Categories with the weights of another feature."""

    name = property(lambda self: f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}")
    parents = property(lambda self: [self.categorical_column, self.weight_feature_key])
    num_buckets = property(lambda self: self.categorical_column.num_buckets)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How both features are read from examples."""
        spec = dict(self.categorical_column.parse_example_spec)
        key = self.weight_feature_key
        if key in spec:
            raise ValueError(f"Parse config {spec[key]} already exists for {key}.")
        return spec | {key: VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> tuple[Any, Any]:
        """Ids and weights."""
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if weights is None:
            raise ValueError(f"Missing weights {self.weight_feature_key}.")
        weights = convert_to_tensor_or_sparse_tensor(weights)
        if self.dtype != weights.dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        weights = sparse_input(weights, ignore_value=0)
        if not weights.dtype.is_floating:
            weights = SparseTensor(weights.indices, cast(weights.values, float32), weights.dense_shape)
        return sparse_input(transformation_cache.get(self.categorical_column, state_manager)), weights

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """Ids and weights."""
        return IdWeightPair(*transformation_cache.get(self, state_manager))


class CrossedColumn(CategoricalColumn, namedtuple("CrossedColumn", "keys hash_bucket_size hash_key")):
    """All combinations of the categories of several features, hashed."""

    parents = property(lambda self: list(self.keys))
    num_buckets = property(lambda self: self.hash_bucket_size)

    @property
    def name(self) -> str:
        """The names of the features, sorted."""
        names = (key.name if isinstance(key, FeatureColumn) else key for key in self._leaves())
        return "_X_".join(sorted(names))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How the features are read from examples."""
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec |= key.parse_example_spec if isinstance(key, FeatureColumn) else {key: VarLenFeature(string)}
        return spec

    def _leaves(self) -> list[Any]:
        """The keys, with those of crossed columns in place of these."""
        return [
            leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, CrossedColumn) else [key])
        ]  # fmt: skip

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids of the combinations."""
        inputs = []
        for key in self._leaves():
            if isinstance(key, str):
                inputs.append(transformation_cache.get(key, state_manager))
                continue
            ids, weights = key.get_sparse_tensors(transformation_cache, state_manager)
            if weights is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column populates weight_tensor. "
                    f"Given column: {key.name}"
                )
            inputs.append(ids)
        return find_public("sparse.cross_hashed")(inputs, self.hash_bucket_size, self.hash_key)


@public("feature_column.weighted_categorical_column", "compat.v1.feature_column.weighted_categorical_column")
def weighted_categorical_column(categorical_column: Any, weight_feature_key: str, dtype: Any = float32) -> Any:
    """A categorical column whose ids have the weights of another feature.

    >>> digit = tf.feature_column.categorical_column_with_identity("digit", 2)
    >>> column = tf.feature_column.indicator_column(tf.feature_column.weighted_categorical_column(digit, "weight"))
    >>> tf.compat.v1.feature_column.input_layer({"digit": [[1]], "weight": [[0.5]]}, [column])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[0. , 0.5]], dtype=float32)>
    """
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


@public("feature_column.crossed_column", "compat.v1.feature_column.crossed_column")
def crossed_column(keys: Any, hash_bucket_size: Any, hash_key: Any = None) -> Any:
    """A column of the combinations of several features, by their hash modulo `hash_bucket_size`.

    Args:
      keys: names of features, or categorical columns without a hash.
      hash_bucket_size: the number of ids.
      hash_key: the key of the hash.

    Returns:
      The column.

    >>> column = tf.feature_column.crossed_column(["street", "town"], hash_bucket_size=1)
    >>> tf.compat.v1.feature_column.input_layer(
    ...     {"street": [["Elm"]], "town": [["Ulm"]]}, [tf.feature_column.indicator_column(column)])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, str | CategoricalColumn):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column except "
                f"HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will "
                f"increase probability of collision. Instead, use the feature name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
