"""The classes that feature columns are made of, and how a column becomes a configuration and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tapeflow._src.namespace import public
from tapeflow._src.ops.nn import constant_initializers, initializers
from tapeflow._src.types.dtypes import DType, as_dtype

_CLASS_BY_NAME: dict[str, type] = {}


def _initializer_name(cls: type) -> str:
    """TensorFlow's name of the class of an initializer: `TruncatedNormal`."""
    return cls.__name__.removesuffix("V1").removesuffix("Initializer")


_INITIALIZERS = {
    _initializer_name(value): value
    for module in (initializers, constant_initializers)
    for name, value in sorted(vars(module).items())  # those of TensorFlow 1 come last
    if isinstance(value, type) and not name.startswith("_")
}


@public("__internal__.feature_column.FeatureColumn")
class FeatureColumn:
    """A description of how a feature becomes a tensor.

    Columns of a library give `name`, `parse_example_spec`, `parents` and `transform_feature`. Columns here are named
    tuples as well, whose fields are their configuration.

    >>> class Number(tf.__internal__.feature_column.FeatureColumn):
    ...     name = "number"
    >>> Number().name
    'number'
    """

    _fields: Any
    _is_v2_column: Any = True
    name: Any
    parse_example_spec: Any
    parents: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(__package__ or ""):
            _CLASS_BY_NAME[cls.__name__] = cls

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)

    def __gt__(self, other: object) -> bool:
        return str(self) > str(other)

    def create_state(self, state_manager: Any) -> None:
        """Makes the variables of the column; most have none."""

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """What the column makes of its features."""
        raise NotImplementedError(f"{type(self).__name__}.transform_feature")

    @property
    def _var_scope_name(self) -> str:
        return str(self.name)

    @property
    def _parse_example_spec(self) -> Any:
        return self.parse_example_spec

    def get_config(self) -> dict[str, Any]:
        """The fields of the column as plain values."""
        return {field: _plain(field, getattr(self, field)) for field in self._fields}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """The column of a configuration."""
        if set(config) != set(cls._fields):
            raise ValueError(f"Invalid config: {config}, expected keys: {cls._fields}")
        return cls(**{
            field: _restored(field, value, custom_objects, columns_by_name) for field, value in config.items()
        })  # fmt: skip


@public("__internal__.feature_column.DenseColumn")
class DenseColumn(FeatureColumn):
    """A column that becomes a dense tensor, by `get_dense_tensor`, of `variable_shape` for each example.

    >>> issubclass(tf.__internal__.feature_column.DenseColumn, tf.__internal__.feature_column.FeatureColumn)
    True
    """

    variable_shape: Any

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The tensor of the column for a batch."""
        raise NotImplementedError(f"{type(self).__name__}.get_dense_tensor")

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape


class IdWeightPair(NamedTuple):
    """Ids of a batch as a SparseTensor, and their weights, or None."""

    id_tensor: Any
    weight_tensor: Any


class CategoricalColumn(FeatureColumn):
    """A column that becomes ids below `num_buckets`."""

    IdWeightPair = IdWeightPair
    num_buckets: Any

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """Ids and weights of the column for a batch."""
        return IdWeightPair(transformation_cache.get(self, state_manager), None)

    @property
    def _num_buckets(self) -> Any:
        return self.num_buckets


class TensorSequenceLengthPair(NamedTuple):
    """The steps of a batch of sequences, and how many of each are real."""

    dense_tensor: Any
    sequence_length: Any


@public("__internal__.feature_column.SequenceDenseColumn")
class SequenceDenseColumn(FeatureColumn):
    """A column that becomes a dense tensor for each step of a sequence.

    >>> issubclass(tf.__internal__.feature_column.SequenceDenseColumn, tf.__internal__.feature_column.FeatureColumn)
    True
    """

    TensorSequenceLengthPair = TensorSequenceLengthPair

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """Steps and lengths of the sequences of a batch."""
        raise NotImplementedError(f"{type(self).__name__}.get_sequence_dense_tensor")


@public("__internal__.feature_column.serialize_feature_column")
def serialize_feature_column(fc: Any) -> Any:
    """A column as a dictionary of its class and its configuration; the name of a feature as it is.

    >>> tf.__internal__.feature_column.serialize_feature_column(tf.feature_column.numeric_column("age"))["class_name"]
    'NumericColumn'
    """
    if isinstance(fc, str):
        return fc
    if isinstance(fc, FeatureColumn):
        return {"class_name": type(fc).__name__, "config": fc.get_config()}
    raise ValueError(f"Instance: {fc} is not a FeatureColumn")


@public("__internal__.feature_column.deserialize_feature_column")
def deserialize_feature_column(config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
    """The column of what `serialize_feature_column` gave; equal columns of `columns_by_name` become one.

    >>> internal = tf.__internal__.feature_column
    >>> age = tf.feature_column.numeric_column("age")
    >>> internal.deserialize_feature_column(internal.serialize_feature_column(age)) == age
    True
    """
    if isinstance(config, str):
        return config
    cls, inner = _class_of(config, _CLASS_BY_NAME, custom_objects, "feature_column_v2")
    if not issubclass(cls, FeatureColumn):
        raise ValueError(f"Expected FeatureColumn class, instead found: {cls}")
    column = cls.from_config(inner, custom_objects=custom_objects, columns_by_name=columns_by_name)
    known = {} if columns_by_name is None else columns_by_name
    return known.setdefault(f"{type(column).__name__}:{column.name}", column)


def serialize_feature_columns(feature_columns: Any) -> list[Any]:
    """Several columns as dictionaries."""
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_columns(configs: Any, custom_objects: Any = None) -> list[Any]:
    """The columns of several dictionaries, with equal parents once."""
    columns_by_name: dict[str, Any] = {}
    return [deserialize_feature_column(config, custom_objects, columns_by_name) for config in configs]


def _class_of(config: Any, known: dict[str, Any], custom_objects: Any, kind: str) -> tuple[Any, dict[str, Any]]:
    if not isinstance(config, dict) or "class_name" not in config or "config" not in config:
        raise ValueError(f"Improper config format: {config}")
    found = (custom_objects or {}).get(config["class_name"], known.get(config["class_name"]))
    if found is None:
        raise ValueError(f"Unknown {kind}: {config['class_name']}")
    return found, dict(config["config"])


def _plain_object(value: Any) -> Any:
    """An initializer or function as its class and configuration, or its name."""
    if value is None:
        return None
    if hasattr(value, "get_config"):
        config = {key: item.name if isinstance(item, DType) else item for key, item in value.get_config().items()}
        return {"class_name": _initializer_name(type(value)), "config": config}
    if hasattr(value, "__name__"):
        return value.__name__
    raise ValueError("Cannot serialize", value)


def _restored_object(value: Any, custom_objects: Any, columns_by_name: Any) -> Any:
    if value is None or callable(value):
        return value
    if isinstance(value, dict):
        cls, inner = _class_of(value, _INITIALIZERS, custom_objects, "object")
        return cls.from_config(inner) if hasattr(cls, "from_config") else cls(**inner)
    found = (custom_objects or {}).get(value, _INITIALIZERS.get(value))
    if found is None:
        raise ValueError(f"Unknown object: {value}")
    return found() if isinstance(found, type) else found


def _restored_keys(keys: Any, custom_objects: Any, columns_by_name: Any) -> tuple[Any, ...]:
    return tuple(deserialize_feature_column(key, custom_objects, columns_by_name) for key in keys)


_PLAIN_BY_FIELD: dict[str, Callable[[Any], Any]] = {
    "categorical_column": serialize_feature_column,
    "source_column": serialize_feature_column,
    "keys": lambda keys: tuple(serialize_feature_columns(keys)),
    "dtype": lambda dtype: dtype.name,
    "initializer": _plain_object,
    "normalizer_fn": _plain_object,
}
_RESTORED_BY_FIELD: dict[str, Callable[[Any, Any, Any], Any]] = {
    "categorical_column": deserialize_feature_column,
    "source_column": deserialize_feature_column,
    "keys": _restored_keys,
    "dtype": lambda dtype, custom_objects, columns_by_name: as_dtype(dtype),
    "initializer": _restored_object,
    "normalizer_fn": _restored_object,
}


def _plain(field: str, value: Any) -> Any:
    return _PLAIN_BY_FIELD[field](value) if field in _PLAIN_BY_FIELD else value


def _restored(field: str, value: Any, custom_objects: Any, columns_by_name: Any) -> Any:
    if field in _RESTORED_BY_FIELD:
        return _RESTORED_BY_FIELD[field](value, custom_objects, columns_by_name)
    return tuple(value) if isinstance(value, list) else value
