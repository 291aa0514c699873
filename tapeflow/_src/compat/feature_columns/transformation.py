"""What columns compute with: the features of a batch, each transformed once, and who keeps variables and tables."""

from __future__ import annotations

import inspect
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.feature_columns.column import FeatureColumn
from tapeflow._src.compat.v1.variables.variable_scope import get_variable
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor
from tapeflow._src.types.dtypes import int64, string
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.trackable import Trackable, no_manual_dependency_tracking_scope


def shape_of(x: Any, out_type: Any = int64) -> Any:
    """The shape of a tensor or SparseTensor as a tensor."""
    return cast(x.dense_shape, out_type) if isinstance(x, SparseTensor) else find_public("shape")(x, out_type)


def _with_last_dimension(x: Any) -> Any:
    if isinstance(x, SparseTensor):
        return find_public("sparse.reshape")(x, primitives.Pack([shape_of(x)[0], 1]))
    return primitives.ExpandDims(x, -1)


@public("__internal__.feature_column.FeatureTransformationCache")
class FeatureTransformationCache:
    """Features, and what columns made of them, each computed once.

    >>> tf.__internal__.feature_column.FeatureTransformationCache({"x": tf.constant([1.])}).get("x", None)
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """

    def __init__(self, features: Any) -> None:
        self._features = features.copy()
        self._feature_tensors: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: Any = None, training: bool | None = None) -> Any:
        """The feature of a name, of at least two dimensions, or what a column makes of the features."""
        if key not in self._feature_tensors:
            self._feature_tensors[key] = self._computed(key, state_manager, training)
        return self._feature_tensors[key]

    def _computed(self, key: Any, state_manager: Any, training: bool | None) -> Any:
        if key in self._features:
            return self._feature(key)
        if isinstance(key, str):
            raise ValueError(f"Feature {key} is not in features dictionary.")
        if not isinstance(key, FeatureColumn):
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        takes_training = "training" in inspect.signature(key.transform_feature).parameters
        options = {"training": training} if takes_training else {}
        transformed = key.transform_feature(self, state_manager, **options)
        if transformed is None:
            raise ValueError(f"Column {key.name} is not supported.")
        return transformed

    def _feature(self, key: Any) -> Any:
        x = convert_to_tensor_or_sparse_tensor(self._features[key])
        if x.shape.rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {x}")
        if x.shape.rank is not None:
            return x if x.shape.rank > 1 else _with_last_dimension(x)
        rank = find_public("rank")(x)
        message = f"Feature (key: {key}) cannot have rank 0. Given: {x}"
        with find_public("control_dependencies")([find_public("debugging.assert_positive")(rank, message)]):
            return find_public("cond")(primitives.Equal(rank, 1), lambda: _with_last_dimension(x), lambda: x)


def sparse_input(x: Any, ignore_value: Any = None) -> Any:
    """Categories as a SparseTensor; elements "" and -1 of a dense tensor are none."""
    x = convert_to_tensor_or_sparse_tensor(x)
    if isinstance(x, SparseTensor):
        return x
    if ignore_value is None:
        ignore_value = "" if x.dtype == string else -1 if x.dtype.is_integer else x.dtype.as_numpy_dtype()
    indices = find_public("where")(primitives.NotEqual(x, find_public("constant")(ignore_value, x.dtype)))
    return SparseTensor(indices, primitives.GatherNd(x, indices), shape_of(x))


def sequence_length_from_sparse_tensor(sp_tensor: Any, num_elements: int = 1) -> Any:
    """The number of steps of each row, int64: its last column, in groups of `num_elements`."""
    sp_tensor = find_public("sparse.reorder")(sp_tensor)
    rows, columns = sp_tensor.indices[:, 0], sp_tensor.indices[:, 1]
    longest = find_public("math.unsorted_segment_max")(columns + 1, rows, sp_tensor.dense_shape[0])
    lengths = primitives.Maximum(longest, find_public("constant")(0, int64))
    return -primitives.FloorDiv(-lengths, find_public("constant")(num_elements, int64))


class _ByColumn(dict[Any, dict[str, Any]]):
    """What belongs to each column, by name; empty for a column without anything."""

    def __missing__(self, column: Any) -> dict[str, Any]:
        self[column] = {}
        return self[column]


@public("__internal__.feature_column.StateManager")
class StateManager:
    """Makes and keeps the variables and tables of feature columns for a layer.

    >>> tf.__internal__.feature_column.StateManager(None, True).has_resource("column", "table")
    False
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        self._layer, self._trainable = layer, trainable
        self._cols_to_vars_map = _ByColumn()
        self._cols_to_resources_map = _ByColumn()
        if layer is not None and not hasattr(layer, "_resources"):
            layer._resources = {}

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
        """A new variable of the layer."""
        if name in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable already exists.")
        with no_manual_dependency_tracking_scope(self._layer):
            variable = self._layer.add_weight(
                name=name,
                shape=shape,
                dtype=dtype,
                initializer=initializer,
                trainable=self._trainable and trainable,
                use_resource=use_resource,
                getter=get_variable,
            )
        if isinstance(variable, Trackable):
            self._layer._track_trackable(variable, f"{feature_column.name}/{name}")
        self._cols_to_vars_map[feature_column][name] = variable
        return variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of a column that has this name."""
        if name not in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable does not exist.")
        return self._cols_to_vars_map[feature_column][name]

    def add_resource(self, feature_column: Any, resource_name: str, resource: Any) -> None:
        """Keeps a table or another object of a column."""
        self._cols_to_resources_map[feature_column][resource_name] = resource
        if self._layer is not None and isinstance(resource, Trackable):
            resources = self._layer._resources  # the layer tracks what its dictionaries hold
            if feature_column.name not in resources:
                resources[feature_column.name] = {}
            if resource_name not in resources[feature_column.name]:
                resources[feature_column.name][resource_name] = resource

    def has_resource(self, feature_column: Any, resource_name: str) -> bool:
        """Whether a column has an object of this name."""
        return resource_name in self._cols_to_resources_map[feature_column]

    def get_resource(self, feature_column: Any, resource_name: str) -> Any:
        """The object of a column that has this name."""
        if not self.has_resource(feature_column, resource_name):
            raise ValueError("Resource does not exist.")
        return self._cols_to_resources_map[feature_column][resource_name]
