"""Dense columns of categories: embeddings, each for itself or shared, and indicators."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.feature_columns.column import (
    CategoricalColumn,
    DenseColumn,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
)
from tapeflow._src.compat.feature_columns.combined import WeightedCategoricalColumn
from tapeflow._src.compat.feature_columns.sequences import SequenceCategoricalColumn
from tapeflow._src.compat.feature_columns.transformation import sequence_length_from_sparse_tensor
from tapeflow._src.compat.v1.graph.eager_switch import executing_eagerly
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.train.checkpoint_files import init_from_checkpoint
from tapeflow._src.compat.v1.variables.variable_scope import get_variable
from tapeflow._src.namespace import find_public, public, public_as
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.nn.initializers import TruncatedNormalInitializerV1
from tapeflow._src.types.dtypes import float32, int64
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.trackable import AutoTrackable


class _OverCategories(DenseColumn, SequenceDenseColumn):
    """A dense column of a categorical one: of its example, or of each step if that one is a sequence."""

    _kind: Any
    categorical_column: Any
    parents = property(lambda self: [self.categorical_column])
    parse_example_spec = property(lambda self: self.categorical_column.parse_example_spec)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The categories."""
        return transformation_cache.get(self.categorical_column, state_manager)

    def _dense(self, transformation_cache: Any, state_manager: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._dense")

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The tensor of the column for a batch."""
        if isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must not be of type SequenceCategoricalColumn. "
                "Suggested fix A: If you wish to use DenseFeatures, use a non-sequence categorical_column_with_*. "
                "Suggested fix B: If you wish to create sequence input, use SequenceFeatures instead of "
                f"DenseFeatures. Given (type {type(self.categorical_column)}): {self.categorical_column}"
            )
        return self._dense(transformation_cache, state_manager)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        """Steps and lengths of the sequences of a batch."""
        if not isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must be of type SequenceCategoricalColumn to use "
                "SequenceFeatures. Suggested fix: Use one of sequence_categorical_column_with_*. "
                f"Given (type {type(self.categorical_column)}): {self.categorical_column}"
            )
        dense = self._dense(transformation_cache, state_manager)
        ids = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager).id_tensor
        return TensorSequenceLengthPair(dense, sequence_length_from_sparse_tensor(ids))


class IndicatorColumn(_OverCategories, namedtuple("IndicatorColumn", "categorical_column")):
    """How often each category is there, or the sum of its weights."""

    _kind = "indicator_column"
    name = property(lambda self: f"{self.categorical_column.name}_indicator")
    variable_shape = property(lambda self: TensorShape([1, self.categorical_column.num_buckets]))

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The counts."""
        ids, weights = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        size = self.categorical_column.num_buckets
        if weights is None:
            return find_public("reduce_sum")(
                find_public("one_hot")(find_public("sparse.to_dense")(ids, -1), size, 1.0, 0.0), axis=-2
            )
        values = cast(ids.values, int64)
        known = find_public("where")(primitives.LogicalAnd(values >= 0, values < size))[:, 0]
        places = find_public("concat")([ids.indices[:, :-1], primitives.ExpandDims(values, -1)], 1)
        shape = find_public("concat")([ids.dense_shape[:-1], find_public("constant")([size], int64)], 0)
        gather = find_public("gather")
        return find_public("scatter_nd")(gather(places, known), gather(weights.values, known), shape)

    def _dense(self, transformation_cache: Any, state_manager: Any) -> Any:
        return transformation_cache.get(self, state_manager)


def _restore(variable: Any, checkpoint: Any, name: Any) -> None:
    if checkpoint is not None:
        init_from_checkpoint(checkpoint, {name: variable})


class _Embedded(_OverCategories):
    """A column whose categories choose rows of a variable."""

    combiner: Any
    max_norm: Any
    use_safe_embedding_lookup: Any
    _kind = "embedding_column"

    def _weights(self, state_manager: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._weights")

    def _dense(self, transformation_cache: Any, state_manager: Any) -> Any:
        ids, weights = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        table, rank = self._weights(state_manager), ids.shape.rank
        safe = self.use_safe_embedding_lookup or rank is None or rank > 2
        lookup = find_public("nn.safe_embedding_lookup_sparse" if safe else "nn.embedding_lookup_sparse")
        y = lookup(table, ids, weights, combiner=self.combiner, max_norm=self.max_norm)
        y.set_shape(ids.shape[:-1].concatenate(self.variable_shape))
        return y


def _create_rows(column: Any, state_manager: Any) -> None:
    """Makes the variable of a column with a row for each category."""
    state_manager.create_variable(
        column,
        name="embedding_weights",
        shape=(column.categorical_column.num_buckets, column.dimension),
        dtype=float32,
        trainable=column.trainable,
        use_resource=True,
        initializer=column.initializer,
    )


class EmbeddingColumn(
    _Embedded,
    namedtuple(
        "EmbeddingColumn",
        "categorical_column dimension combiner initializer ckpt_to_load_from tensor_name_in_ckpt max_norm trainable "
        "use_safe_embedding_lookup",
        defaults=[True],
    ),
):
    """Rows of a variable of its own."""

    name = property(lambda self: f"{self.categorical_column.name}_embedding")
    variable_shape = property(lambda self: TensorShape([self.dimension]))

    def create_state(self, state_manager: Any) -> None:
        """Makes the variable."""
        _create_rows(self, state_manager)

    def _weights(self, state_manager: Any) -> Any:
        variable = state_manager.get_variable(self, name="embedding_weights")
        _restore(variable, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
        return variable

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """The column of a configuration, which may be older than `use_safe_embedding_lookup`."""
        return super().from_config({"use_safe_embedding_lookup": True} | config, custom_objects, columns_by_name)


class SharedEmbeddingColumnCreator(AutoTrackable):
    """Holds the variable that several columns share, one in each graph."""

    def __init__(
        self,
        dimension: int,
        initializer: Any,
        ckpt_to_load_from: Any,
        tensor_name_in_ckpt: Any,
        num_buckets: Any,
        trainable: bool,
        name: str = "shared_embedding_column_creator",
        use_safe_embedding_lookup: bool = True,
    ) -> None:
        self._dimension, self._initializer, self._num_buckets = dimension, initializer, num_buckets
        self._ckpt_to_load_from, self._tensor_name_in_ckpt = ckpt_to_load_from, tensor_name_in_ckpt
        self._trainable, self._name, self._use_safe_embedding_lookup = trainable, name, use_safe_embedding_lookup
        self._embedding_weights: dict[Any, Any] = {}

    def __call__(self, categorical_column: Any, combiner: Any, max_norm: Any) -> SharedEmbeddingColumn:
        return SharedEmbeddingColumn(categorical_column, self, combiner, max_norm, self._use_safe_embedding_lookup)

    @property
    def embedding_weights(self) -> Any:
        """The variable of the current graph."""
        graph = get_default_graph()._graph_key
        if graph not in self._embedding_weights:
            variable = get_variable(
                self._name, (self._num_buckets, self._dimension), float32, self._initializer, trainable=self._trainable
            )
            _restore(variable, self._ckpt_to_load_from, self._tensor_name_in_ckpt)
            self._embedding_weights[graph] = variable
        return self._embedding_weights[graph]

    @property
    def dimension(self) -> int:
        """The number of columns of the variable."""
        return self._dimension


class SharedEmbeddingColumn(
    _Embedded,
    namedtuple(
        "SharedEmbeddingColumn",
        "categorical_column shared_embedding_column_creator combiner max_norm use_safe_embedding_lookup",
        defaults=[True],
    ),
):
    """Rows of a variable that other columns use too."""

    name = property(lambda self: f"{self.categorical_column.name}_shared_embedding")
    variable_shape = property(lambda self: TensorShape([self.shared_embedding_column_creator.dimension]))

    def _weights(self, state_manager: Any) -> Any:
        return self.shared_embedding_column_creator.embedding_weights


class SharedEmbeddingColumnV1(
    _Embedded,
    namedtuple(
        "SharedEmbeddingColumnV1",
        "categorical_column dimension combiner initializer shared_embedding_collection_name ckpt_to_load_from "
        "tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup",
    ),
):
    """Rows of a variable that a collection of the graph keeps for all columns that share it."""

    name = property(lambda self: f"{self.categorical_column.name}_shared_embedding")
    variable_shape = property(lambda self: TensorShape([self.dimension]))
    _var_scope_name = property(lambda self: self.shared_embedding_collection_name)

    def create_state(self, state_manager: Any) -> None:
        """Makes the variable, or takes that of the collection."""
        _create_rows(self, state_manager)

    def _weights(self, state_manager: Any) -> Any:
        kept = get_default_graph().get_collection_ref(self.shared_embedding_collection_name)
        shape = (self.categorical_column.num_buckets, self.dimension)
        if not kept:
            variable = state_manager.get_variable(self, name="embedding_weights")
            _restore(variable, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
            kept.append(variable)
        if len(kept) > 1:
            raise ValueError(
                f"Collection {kept} can only contain one variable. Suggested fix A: Choose a unique name for this "
                "collection. Suggested fix B: Do not add any variables to this collection. The feature_column "
                "library already adds a variable under the hood."
            )
        if tuple(kept[0].shape) != shape:
            raise ValueError(
                f"Shared embedding collection {self.shared_embedding_collection_name} contains variable "
                f"{kept[0].name} of unexpected shape {kept[0].shape}. Expected shape is {TensorShape(shape)}. "
                "Suggested fix A: Choose a unique name for this collection. Suggested fix B: Do not add any "
                "variables to this collection. The feature_column library already adds a variable under the hood."
            )
        return kept[0]


@public("feature_column.indicator_column", "compat.v1.feature_column.indicator_column")
def indicator_column(categorical_column: Any) -> Any:
    """A dense column of how often each category is there.

    >>> digit = tf.feature_column.categorical_column_with_identity("digit", 3)
    >>> tf.compat.v1.feature_column.input_layer({"digit": [[2, 2]]}, [tf.feature_column.indicator_column(digit)])
    <tf.Tensor: shape=(1, 3), dtype=float32, numpy=array([[0., 0., 2.]], dtype=float32)>
    """
    if not isinstance(categorical_column, CategoricalColumn):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {categorical_column}")
    return IndicatorColumn(categorical_column)


def _checked_initializer(
    dimension: Any, initializer: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any, about: str = ""
) -> Any:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified.{about}")
    if initializer is None:
        return TruncatedNormalInitializerV1(mean=0.0, stddev=1 / math.sqrt(dimension))
    return initializer


@public("feature_column.embedding_column", "compat.v1.feature_column.embedding_column")
def embedding_column(
    categorical_column: Any,
    dimension: Any,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: Any = None,
    max_norm: Any = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> Any:
    """A dense column of the rows of a variable that categories choose.

    Args:
      categorical_column: the categories.
      dimension: the size of a row.
      combiner: "mean", "sqrtn" or "sum" of the rows of an example.
      initializer: of the variable; truncated normal with deviation 1 / sqrt(dimension) if None.
      ckpt_to_load_from: a checkpoint with the first value of the variable.
      tensor_name_in_ckpt: its name there.
      max_norm: a bound on the norm of a row.
      trainable: whether optimizers change the variable.
      use_safe_embedding_lookup: whether ids and weights that are not valid are left out.

    Returns:
      The column.

    >>> digit = tf.feature_column.categorical_column_with_identity("digit", 3)
    >>> tf.feature_column.embedding_column(digit, dimension=4).variable_shape
    TensorShape([4])
    """
    about = f" Embedding of column_name: {getattr(categorical_column, 'name', categorical_column)}"
    initializer = _checked_initializer(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, about)
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
        use_safe_embedding_lookup,
    )


def _innermost(column: Any) -> Any:
    while isinstance(column, WeightedCategoricalColumn | SequenceCategoricalColumn):
        column = column.categorical_column
    return column


def _shared_name(columns: Any, name: str | None) -> str:
    """The name of what columns share, which must be of one type and size."""
    if executing_eagerly():
        raise RuntimeError("shared_embedding_columns are not supported when eager execution is enabled.")
    ordered = sorted(columns, key=lambda column: str(column.name))
    first = ordered[0]
    if not isinstance(first, CategoricalColumn):
        raise ValueError(
            f"All categorical_columns must be subclasses of CategoricalColumn. Given: {first}, of type: {type(first)}"
        )
    buckets, first = first.num_buckets, _innermost(first)
    for column in map(_innermost, ordered[1:]):
        if not isinstance(column, type(first)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be "
                "weighted_categorical_column or sequence column of the same type. "
                f"Given column: {first} of type: {type(first)} does not match given column: {column} of type: "
                f"{type(column)}"
            )
        if buckets != column.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of buckets. "
                f"Given column: {first} with buckets: {buckets} does  not match column: {column} with buckets: "
                f"{column.num_buckets}"
            )
    return name or "_".join(column.name for column in ordered) + "_shared_embedding"


def _sharing(by_scope: bool, doc: str, path: str) -> Callable[..., Any]:
    """A function that makes columns of one variable: one of the open variable scope, or one that a creator makes."""

    @public_as(doc, path)
    def function(
        categorical_columns: Any,
        dimension: Any,
        combiner: str = "mean",
        initializer: Any = None,
        shared_embedding_collection_name: str | None = None,
        ckpt_to_load_from: Any = None,
        tensor_name_in_ckpt: Any = None,
        max_norm: Any = None,
        trainable: bool = True,
        use_safe_embedding_lookup: bool = True,
    ) -> list[Any]:
        name = _shared_name(categorical_columns, shared_embedding_collection_name)
        checkpoint = ckpt_to_load_from, tensor_name_in_ckpt
        initializer = _checked_initializer(dimension, initializer, *checkpoint)
        if by_scope:
            first = dimension, combiner, initializer, name, *checkpoint
            last = max_norm, trainable, use_safe_embedding_lookup
            return [SharedEmbeddingColumnV1(column, *first, *last) for column in categorical_columns]
        buckets = categorical_columns[0].num_buckets
        creator = SharedEmbeddingColumnCreator(
            dimension, initializer, *checkpoint, buckets, trainable, name, use_safe_embedding_lookup
        )
        return [creator(column, combiner, max_norm) for column in categorical_columns]

    return function


shared_embeddings = _sharing(
    False,
    """Dense columns like `embedding_column` that choose rows of one variable; in graphs of TensorFlow 1.

    >>> with tf.Graph().as_default():
    ...     seen, bought = (tf.feature_column.categorical_column_with_identity(name, 3) for name in ("seen", "bought"))
    ...     [column.name for column in tf.feature_column.shared_embeddings([seen, bought], dimension=4)]
    ['seen_shared_embedding', 'bought_shared_embedding']
    """,
    "feature_column.shared_embeddings",
)
shared_embedding_columns = _sharing(
    True,
    """Dense columns for `input_layer` and `linear_model` that choose rows of one variable of the graph.

    >>> with tf.Graph().as_default():
    ...     columns = [tf.feature_column.categorical_column_with_identity(name, 3) for name in ("seen", "bought")]
    ...     shared = tf.compat.v1.feature_column.shared_embedding_columns(columns, dimension=4)
    ...     y = tf.compat.v1.feature_column.input_layer({"seen": [[1]], "bought": [[2]]}, shared)
    ...     y.shape, [v.name for v in tf.compat.v1.trainable_variables()]
    (TensorShape([1, 8]), ['input_layer/bought_seen_shared_embedding/embedding_weights:0'])
    """,
    "compat.v1.feature_column.shared_embedding_columns",
)
