"""`tf.__internal__.feature_column`: the base of feature columns of a library, and who keeps their variables."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public


@public("__internal__.feature_column.FeatureColumn")
class FeatureColumn:
    """A description of how a feature becomes a tensor.

    >>> class Number(tf.__internal__.feature_column.FeatureColumn):
    ...     name = "number"
    >>> Number().name
    'number'
    """


@public("__internal__.feature_column.DenseColumn")
class DenseColumn(FeatureColumn):
    """A column that becomes a dense tensor.

    >>> issubclass(tf.__internal__.feature_column.DenseColumn, tf.__internal__.feature_column.FeatureColumn)
    True
    """


@public("__internal__.feature_column.SequenceDenseColumn")
class SequenceDenseColumn(FeatureColumn):
    """A column that becomes a dense tensor for each step of a sequence.

    >>> issubclass(tf.__internal__.feature_column.SequenceDenseColumn, tf.__internal__.feature_column.FeatureColumn)
    True
    """


@public("__internal__.feature_column.FeatureTransformationCache")
class FeatureTransformationCache:
    """Features, and what columns made of them, each computed once.

    >>> tf.__internal__.feature_column.FeatureTransformationCache({"x": tf.constant([1.])}).get("x", None)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>
    """

    def __init__(self, features: dict[str, Any]) -> None:
        self._features = dict(features)
        self._tensor_by_column: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: Any, training: bool | None = None) -> Any:
        """The feature of a name, or what a column makes of the features."""
        if isinstance(key, str):
            if key not in self._features:
                raise ValueError(f"Feature {key} is not in features dictionary.")
            return self._features[key]
        if key not in self._tensor_by_column:
            self._tensor_by_column[key] = key.transform_feature(self, state_manager)
        return self._tensor_by_column[key]


class _ByColumn(dict[Any, dict[str, Any]]):
    """What belongs to each column, by name; empty for a column without anything."""

    def __missing__(self, column: Any) -> dict[str, Any]:
        self[column] = {}
        return self[column]


@public("__internal__.feature_column.StateManager")
class StateManager:
    """Makes and keeps the variables of feature columns for a layer.

    >>> tf.__internal__.feature_column.StateManager(None, True).has_resource("column", "table")
    False
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        self._layer, self._trainable = layer, trainable
        self._cols_to_vars_map = _ByColumn()
        self._cols_to_resources_map = _ByColumn()

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
        trained = self._trainable and trainable
        variable = self._layer.add_weight(
            name=name, shape=shape, dtype=dtype, initializer=initializer, trainable=trained, use_resource=use_resource
        )
        self._cols_to_vars_map[feature_column][name] = variable
        return variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of a column that has this name."""
        if name not in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable does not exist.")
        return self._cols_to_vars_map[feature_column][name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Keeps a table or another object of a column."""
        self._cols_to_resources_map[feature_column][name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        """Whether a column has an object of this name."""
        return name in self._cols_to_resources_map[feature_column]

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """The object of a column that has this name."""
        if not self.has_resource(feature_column, name):
            raise ValueError("Resource does not exist.")
        return self._cols_to_resources_map[feature_column][name]
