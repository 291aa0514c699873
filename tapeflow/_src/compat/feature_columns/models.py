"""What consumes columns without a layer object: `input_layer`, `linear_model`, the specification of examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.feature_columns.column import CategoricalColumn, DenseColumn, FeatureColumn
from tapeflow._src.compat.feature_columns.transformation import FeatureTransformationCache, shape_of
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.types.dtypes import float32


def normalize_feature_columns(feature_columns: Any) -> list[Any]:
    """Columns as a list, sorted by their names, which must differ."""
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, Iterator):
        feature_columns = list(feature_columns)
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"Items of feature_columns must be a FeatureColumn. Given (type {type(column)}): {column}."
            )
    if not feature_columns:
        raise ValueError("feature_columns must not be empty.")
    column_by_name: dict[str, Any] = {}
    for column in feature_columns:
        if column.name in column_by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and {column_by_name[column.name]}. This "
                "usually means that these columns refer to same base feature. Either one must be discarded or a "
                "duplicated but renamed item must be inserted in features dict."
            )
        column_by_name[column.name] = column
    return sorted(feature_columns, key=lambda column: str(column.name))


class _ScopeState:
    """A state manager whose variables are those of the open variable scope."""

    def __init__(self, collections: Any, trainable: bool) -> None:
        self._collections, self._trainable = collections, trainable
        self._variable: Any = None

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """A variable of the scope."""
        self._variable = get_variable(
            name,
            shape,
            dtype,
            initializer,
            trainable=self._trainable and trainable,
            collections=self._collections,
            use_resource=use_resource,
        )
        return self._variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of the column in the scope."""
        feature_column.create_state(self)
        return self._variable

    def has_resource(self, feature_column: Any, resource_name: str) -> bool:
        """Tables are made anew for each call."""
        return False

    def add_resource(self, feature_column: Any, resource_name: str, resource: Any) -> None:
        """The nodes of the graph hold the table."""


def _flat(column: Any, tensor: Any) -> Any:
    shape = primitives.Pack([shape_of(tensor)[0], column.variable_shape.num_elements()])
    flat = primitives.Reshape(tensor, shape)
    flat.set_shape([tensor.shape[0] if tensor.shape.rank else None, column.variable_shape.num_elements()])
    return flat


def _check_batch(tensors: list[Any], columns: list[Any]) -> None:
    """All tensors have the same number of rows where it is known."""
    first = None
    for tensor, column in zip(tensors, columns, strict=True):
        size = tensor.shape[0] if tensor.shape.rank else None
        if size is None:
            continue
        if first is not None and first[0] != size:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. "
                f"Batch size of columns ({first[1].name}, {column.name}): ({first[0]}, {size})"
            )
        first = first or (size, column)


def _collections(given: Any, *needed: str) -> list[str]:
    return [*(given or []), *(key for key in needed if key not in (given or []))]


def _scope_variables() -> list[Any]:
    return list(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope=get_variable_scope().name + "/"))


@public("compat.v1.feature_column.input_layer")
def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
    cols_to_output_tensors: Any = None,
) -> Any:
    """The tensors of dense columns side by side, [batch, sum of sizes], in the order of the columns' names.

    Args:
      features: tensors, SparseTensors or lists by name.
      feature_columns: the columns.
      weight_collections: collections of the graph for the variables.
      trainable: whether optimizers change the variables.
      cols_to_vars: a dictionary that gets the variables of each column.
      cols_to_output_tensors: a dictionary that gets the tensor of each column.

    Returns:
      A tensor.

    >>> price = tf.feature_column.numeric_column("price", shape=2)
    >>> tf.compat.v1.feature_column.input_layer({"price": [[1., 2.]]}, [price])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>
    """
    columns = normalize_feature_columns(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column}"
            )
    collections = _collections(weight_collections, GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    cache = FeatureTransformationCache(features)
    outputs = []
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        for column in columns:
            with variable_scope(None, default_name=column._var_scope_name):
                tensor = column.get_dense_tensor(cache, _ScopeState(collections, trainable))
                outputs.append(_flat(column, tensor))
                if cols_to_vars is not None:
                    cols_to_vars[column] = _scope_variables()
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = outputs[-1]
        _check_batch(outputs, columns)
        return find_public("concat")(outputs, 1)


def _weighted_sum(column: Any, cache: Any, state: _ScopeState, units: int, combiner: str) -> Any:
    """The part of one column in a linear model."""
    categorical = isinstance(column, CategoricalColumn)
    size = column.num_buckets if categorical else column.variable_shape.num_elements()
    if categorical:
        ids, weights = column.get_sparse_tensors(cache, state)
        flat, reshape = primitives.Pack([shape_of(ids)[0], -1]), find_public("sparse.reshape")
        ids, weights = reshape(ids, flat), None if weights is None else reshape(weights, flat)
    else:
        dense = _flat(column, column.get_dense_tensor(cache, state))
    table = state.create_variable(column, "weights", [size, units], float32, initializer=ZerosInitializer())
    if not categorical:
        return primitives.MatMul(dense, table)
    y = find_public("nn.safe_embedding_lookup_sparse")(table, ids, weights, combiner=combiner)
    y.set_shape([None, units])
    return y


@public("compat.v1.feature_column.linear_model")
def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
) -> Any:
    """A linear function of columns with zeros as first weights, [batch, units].

    Args:
      features: tensors, SparseTensors or lists by name.
      feature_columns: dense and categorical columns.
      units: the number of outputs.
      sparse_combiner: "sum", "mean" or "sqrtn" of the weights of an example's categories.
      weight_collections: collections of the graph for the variables.
      trainable: whether optimizers change the variables.
      cols_to_vars: a dictionary that gets the variables of each column, and those of "bias".

    Returns:
      A tensor.

    >>> with tf.Graph().as_default():
    ...     price = tf.feature_column.numeric_column("price")
    ...     y = tf.compat.v1.feature_column.linear_model({"price": [[1.], [5.]]}, [price])
    ...     y.shape, [v.name for v in tf.compat.v1.trainable_variables()]
    (TensorShape([2, 1]), ['linear_model/price/weights:0', 'linear_model/bias_weights:0'])
    """
    columns = normalize_feature_columns(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn | CategoricalColumn):
            raise ValueError(
                f"Items of feature_columns must be either a _DenseColumn or _CategoricalColumn. Given: {column}"
            )
    collections = _collections(weight_collections, GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    cache, state = FeatureTransformationCache(features), _ScopeState(collections, trainable)
    sums = []
    with variable_scope(None, default_name="linear_model"):
        for column in columns:
            with variable_scope(None, default_name=column._var_scope_name):
                sums.append(_weighted_sum(column, cache, state, units, sparse_combiner))
                if cols_to_vars is not None:
                    cols_to_vars[column] = _scope_variables()
        _check_batch(sums, columns)
        bias = state.create_variable(None, "bias_weights", [units], float32, initializer=ZerosInitializer())
        if cols_to_vars is not None:
            cols_to_vars["bias"] = list(bias) if hasattr(bias, "_get_variable_list") else [bias]
        return find_public("nn.bias_add")(find_public("add_n")(sums), bias)


@public("feature_column.make_parse_example_spec", "compat.v1.feature_column.make_parse_example_spec")
def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """How `tf.io.parse_example` reads the features of columns.

    >>> tf.feature_column.make_parse_example_spec([tf.feature_column.numeric_column("price")])
    {'price': FixedLenFeature(shape=(1,), dtype=tf.float32, default_value=None)}
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, value in column.parse_example_spec.items():
            if spec.setdefault(key, value) != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. Given {value} and {spec[key]}"
                )
    return spec
