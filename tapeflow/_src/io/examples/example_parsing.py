"""`tf.io.parse_example` and `parse_single_example`: serialised examples as tensors, by descriptions of features."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.examples.columns import Examples, feature_specs, refuse
from tapeflow._src.io.examples.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.sparse_tensor import SparseTensor

# ------------------------------------------------------------------------------------------------ what is to be made


def _checked_dtype(dtype: Any) -> Any:
    found = as_dtype(dtype)
    if found.name not in ("float32", "int64", "string"):
        raise refuse(
            f"parse_example: Value for attr 'Tdense' of {found.name} is not in the list of allowed values: "
            "float, int64, string"
        )
    return found


def _check_features(features: Any) -> dict[str, Any]:
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    kinds = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature, RaggedFeature)
    for key, feature in features.items():
        if not isinstance(feature, kinds):
            raise ValueError(f"Invalid feature {key}:{feature}.")
        _checked_dtype(feature.dtype)
        if isinstance(feature, FixedLenFeature) and feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}.")
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(
                f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True. Got: {feature} for key {key}."
            )
        if isinstance(feature, FixedLenSequenceFeature) and feature.default_value is not None:
            count = int(np.size(feature.default_value))
            if count != 1:
                raise ValueError(f"Cannot reshape a tensor with {count} elements to shape []: the default of {key}.")
    return {key: features[key] for key in sorted(features)}


# ------------------------------------------------------------------------------------------- tensors in and tensors out


def assemble(feature: Any, parts: list[Any]) -> Any:
    """A feature from the tensors it consists of."""
    if isinstance(feature, VarLenFeature | SparseFeature):
        return SparseTensor(*parts)
    if isinstance(feature, RaggedFeature) and len(parts) > 1:
        found = parts[0]
        for splits in reversed(parts[1:]):
            found = RaggedTensor(found, splits)
        return found
    return parts[0]


def serialized_tensor(value: Any) -> Any:
    """Examples as a tensor of strings."""
    return convert_to_tensor(value, None if _core.is_tensor(value) else "string")


@public("io.parse_example")
def parse_example(serialized: Any, features: Any, example_names: Any = None, name: str | None = None) -> dict[str, Any]:
    """Examples as tensors by name, with a first dimension for the examples; one string gives tensors without it.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages})).SerializeToString()
    >>> tf.io.parse_example([example, example], {"age": tf.io.FixedLenFeature([1], tf.int64)})
    {'age': <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[7],
           [7]])>}
    """
    features = _check_features(features)
    tensor = serialized_tensor(serialized)
    if tensor.shape.rank not in (0, 1):
        raise ValueError(f"Input serialized must be a scalar or a vector; got shape {tensor.shape}")

    def run(tensor: Any, names: Any = None) -> list[Any]:
        examples = Examples(tensor, features, names)
        return [part for key, feature in features.items() for part in examples.feature(key, feature)]

    specs = {key: feature_specs(feature, tensor.shape.as_list()) for key, feature in features.items()}
    names = [] if example_names is None else [serialized_tensor(example_names)]
    parts = iter(host_call(run, [tensor, *names], [spec for each in specs.values() for spec in each]))
    return {key: assemble(feature, [next(parts) for _ in specs[key]]) for key, feature in features.items()}


@public("io.parse_single_example")
def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """One example as tensors by name.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages})).SerializeToString()
    >>> tf.io.parse_single_example(example, {"age": tf.io.FixedLenFeature([], tf.int64)})
    {'age': <tf.Tensor: shape=(), dtype=int64, numpy=7>}
    """
    tensor = serialized_tensor(serialized)
    if tensor.shape.rank not in (0, None):
        raise ValueError(f"Input serialized must be a scalar; got shape {tensor.shape}")
    return parse_example(tensor, features, example_names, name)


# --------------------------------------------------------------------------------------------------------------- JSON

_LISTS = {"bytesList": "bytes_list", "floatList": "float_list", "int64List": "int64_list"}


def _from_json(text: bytes) -> bytes:
    import base64

    example = messages.Example()
    try:
        features = json.loads(text).get("features", {}).get("feature", {})
        for name, feature in features.items():
            for kind, body in feature.items():
                field = _LISTS.get(kind, kind)
                convert: Any = {"bytes_list": base64.b64decode, "float_list": float, "int64_list": int}[field]
                made = example.features.feature[name]
                getattr(made, field).value.extend(convert(value) for value in body.get("value", []))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise refuse(f"decode_json_example: Error while parsing JSON: {error}") from None
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


@public("io.decode_json_example", "compat.v1.io.decode_json_example", "compat.v1.decode_json_example")
def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    """Examples in JSON as serialised ones.

    >>> text = '{"features": {"feature": {"a": {"int64List": {"value": [1]}}}}}'
    >>> tf.io.parse_example(tf.io.decode_json_example(text), {"a": tf.io.FixedLenFeature([], tf.int64)})
    {'a': <tf.Tensor: shape=(), dtype=int64, numpy=1>}
    """
    tensor = serialized_tensor(json_examples)

    def run(tensor: Any) -> list[Any]:
        values = np.asarray(tensor.numpy(), dtype=object)
        found = np.asarray([_from_json(x) for x in values.reshape(-1)], dtype=object).reshape(values.shape)
        return [convert_to_tensor(found, "string")]

    return host_call(run, [tensor], [("string", tensor.shape)])[0]
