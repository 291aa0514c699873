"""`tf.io.parse_sequence_example`: serialised sequences as tensors, of the whole and of the steps."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.examples.columns import Examples, Sequences, feature_specs, step_specs
from tapeflow._src.io.examples.example_parsing import assemble, serialized_tensor
from tapeflow._src.io.examples.features import FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call


def _parse_sequences(serialized: Any, context: Any, sequence: Any, example_names: Any) -> tuple[Any, Any, Any]:
    context, sequence = dict(sorted((context or {}).items())), dict(sorted((sequence or {}).items()))
    if not context and not sequence:
        raise ValueError("Missing features: context_features and sequence_features are both empty.")
    for key, feature in sequence.items():
        if not isinstance(feature, FixedLenSequenceFeature | VarLenFeature | RaggedFeature):
            raise ValueError(f"Invalid feature {key}:{feature} of a sequence.")
    tensor = serialized_tensor(serialized)
    single, batch = tensor.shape.rank == 0, tensor.shape.as_list()

    def run(tensor: Any, names: Any = None) -> list[Any]:
        whole, rows = Examples(tensor, context, names), Sequences(tensor, sequence, names)
        parts = [part for key, feature in context.items() for part in whole.feature(key, feature)]
        for key, feature in sequence.items():
            found, lengths = rows.feature(key, feature)
            parts += [*found, convert_to_tensor(lengths[0] if single else lengths)]
        return parts

    whole_specs = {key: feature_specs(feature, batch) for key, feature in context.items()}
    steps_specs = {key: [*step_specs(feature, batch), ("int64", batch)] for key, feature in sequence.items()}
    specs = [spec for each in (*whole_specs.values(), *steps_specs.values()) for spec in each]
    names = [] if example_names is None else [serialized_tensor(example_names)]
    parts = iter(host_call(run, [tensor, *names], specs))
    whole = {key: assemble(feature, [next(parts) for _ in whole_specs[key]]) for key, feature in context.items()}
    steps, lengths = {}, {}
    for key, feature in sequence.items():
        *found, length = [next(parts) for _ in steps_specs[key]]
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
    return _parse_sequences(serialized, context_features, sequence_features, example_names)


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
    whole, steps, _ = _parse_sequences(serialized, context_features, sequence_features, example_name)
    return whole, steps
