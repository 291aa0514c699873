"""`tf.io.parse_sequence_example`: serialised sequences as tensors, of the whole and of the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.io.examples.example_lists import read_sequence_example, refuse
from tapeflow._src.io.examples.example_parsing import Rows, assemble, column_specs, serialized_tensor, tensor_of
from tapeflow._src.io.examples.features import FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import as_shape


def _steps(rows: list[Any], key: str, feature: Any, single: bool) -> tuple[list[Any], Any]:
    """One feature of sequences as tensors, and the length of each sequence."""
    dtype = as_dtype(feature.dtype)
    found = []
    for row in rows:
        if key not in row and isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise refuse(f"Name: <unknown>, Feature list '{key}' is required but could not be found.")
        steps: list[Any] = []
        for step in row.get(key, []):
            kind, values = step or (dtype.name, [])
            if kind != dtype.name:
                raise refuse(f"Key: {key}.  Data types don't match. Expected type: {dtype.name}, got: {kind}")
            steps.append(values)
        found.append(steps)
    lengths = np.asarray([len(steps) for steps in found], np.int64)
    longest = int(lengths.max()) if len(lengths) else 0
    if isinstance(feature, FixedLenSequenceFeature):
        shape = as_shape(feature.shape).as_list()
        size = int(np.prod(shape))
        if any(len(step) != size for steps in found for step in steps):
            raise refuse(f"Key: {key}.  Number of {dtype.name} values != expected.  output shape: {shape}")
        filler = b"" if dtype.name == "string" else 0
        values = [v for steps in found for step in [*steps, *[[filler] * size] * (longest - len(steps))] for v in step]
        return [tensor_of(values, dtype, [longest, *shape] if single else [len(rows), longest, *shape])], lengths
    if isinstance(feature, RaggedFeature):
        kind = as_dtype(feature.row_splits_dtype).as_numpy_dtype
        inner = np.cumsum([0, *(len(step) for steps in found for step in steps)]).astype(kind)
        parts = [tensor_of([v for steps in found for step in steps for v in step], dtype, [-1])]
        if not single:
            parts.append(convert_to_tensor(np.cumsum([0, *lengths]).astype(kind)))
        return [*parts, convert_to_tensor(inner)], lengths
    widest = max([len(step) for steps in found for step in steps], default=0)
    places = [[r, t, i] for r, steps in enumerate(found) for t, step in enumerate(steps) for i in range(len(step))]
    index = np.asarray(places, np.int64).reshape(-1, 3)
    dense_shape = np.asarray([len(rows), longest, widest], np.int64)
    values = tensor_of([v for steps in found for step in steps for v in step], dtype, [-1])
    first = 1 if single else 0
    return [convert_to_tensor(index[:, first:]), values, convert_to_tensor(dense_shape[first:])], lengths


def _step_specs(feature: Any, batch: list[Any]) -> list[tuple[Any, Any]]:
    dtype = as_dtype(feature.dtype)
    if isinstance(feature, FixedLenSequenceFeature):
        return [(dtype, [*batch, None, *as_shape(feature.shape).as_list()])]
    if isinstance(feature, RaggedFeature):
        return [(dtype, [None]), *[(feature.row_splits_dtype, [None])] * (len(batch) + 1)]
    return [("int64", [None, len(batch) + 2]), (dtype, [None]), ("int64", [len(batch) + 2])]


def _parse_sequences(serialized: Any, context: Any, sequence: Any) -> tuple[Any, Any, Any]:
    context, sequence = dict(sorted((context or {}).items())), dict(sorted((sequence or {}).items()))
    if not context and not sequence:
        raise ValueError("Missing features: context_features and sequence_features are both empty.")
    for key, feature in sequence.items():
        if not isinstance(feature, FixedLenSequenceFeature | VarLenFeature | RaggedFeature):
            raise ValueError(f"Invalid feature {key}:{feature} of a sequence.")
    tensor = serialized_tensor(serialized)
    single, batch = tensor.shape.rank == 0, tensor.shape.as_list()

    def run(tensor: Any) -> list[Any]:
        pairs = [read_sequence_example(x) for x in np.atleast_1d(np.asarray(tensor.numpy(), dtype=object))]
        whole, rows = Rows([pair[0] for pair in pairs], single), [pair[1] for pair in pairs]
        parts = [part for key, feature in context.items() for part in whole.column(key, feature)]
        for key, feature in sequence.items():
            found, lengths = _steps(rows, key, feature, single)
            parts += [*found, convert_to_tensor(lengths[0] if single else lengths)]
        return parts

    whole_specs = {key: column_specs(feature, batch) for key, feature in context.items()}
    step_specs = {key: [*_step_specs(feature, batch), ("int64", batch)] for key, feature in sequence.items()}
    specs = [spec for each in (*whole_specs.values(), *step_specs.values()) for spec in each]
    parts = iter(host_call(run, [tensor], specs))
    whole = {key: assemble(feature, [next(parts) for _ in whole_specs[key]]) for key, feature in context.items()}
    steps, lengths = {}, {}
    for key, feature in sequence.items():
        *found, length = [next(parts) for _ in step_specs[key]]
        steps[key] = assemble(feature, found)
        if isinstance(feature, FixedLenSequenceFeature):
            lengths[key] = length
    return whole, steps, lengths


@public("io.parse_sequence_example", "compat.v1.io.parse_sequence_example")
def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Sequences as tensors by name: of the whole, of the steps, and how many steps there are.

    >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> lists = tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList(feature=[step, step])})
    >>> sequence = tf.train.SequenceExample(feature_lists=lists).SerializeToString()
    >>> tf.io.parse_sequence_example([sequence], None, {"a": tf.io.FixedLenSequenceFeature([], tf.int64)})
    ({}, {'a': <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[7, 7]])>}, {'a': <tf.Tensor: shape=(1,),
     dtype=int64, numpy=array([2])>})
    """
    return _parse_sequences(serialized, context_features, sequence_features)


@public(
    "io.parse_single_sequence_example",
    "compat.v1.io.parse_single_sequence_example",
    "compat.v1.parse_single_sequence_example",
)
def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One sequence as tensors by name: of the whole, and of the steps.

    >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> lists = tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList(feature=[step, step])})
    >>> sequence = tf.train.SequenceExample(feature_lists=lists).SerializeToString()
    >>> tf.io.parse_single_sequence_example(sequence, None, {"a": tf.io.FixedLenSequenceFeature([], tf.int64)})
    ({}, {'a': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([7, 7])>})
    """
    whole, steps, _ = _parse_sequences(serialized, context_features, sequence_features)
    return whole, steps
