"""Raw operations that read serialised examples: `ParseExample`, `ParseSequenceExample` and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.io.examples.columns import Examples, Sequences, feature_specs, step_specs
from tapeflow._src.io.examples.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import CompositionCall, Place, host_call
from tapeflow._src.types.tensor_shape import as_shape


def _texts(keys: Any) -> list[str]:
    """Names, which a node gives as a vector, as a list of scalars, or as an attribute."""
    if isinstance(keys, list | tuple):
        return [text for key in keys for text in _texts(key)]
    if isinstance(keys, bytes | str):
        return [keys.decode() if isinstance(keys, bytes) else keys]
    found = np.asarray(convert_to_tensor(keys, "string").numpy(), object).reshape(-1)
    return [text.decode() for text in found]


def _dense(dtype: Any, shape: Any, default: Any) -> Any:
    """The description of a dense feature; one whose first size is unknown has any number of rows, filled up."""
    dims = as_shape(shape).as_list()
    empty = default.shape.num_elements() == 0
    value = None if empty or _core.is_symbolic(default) else default
    if dims and dims[0] is None:
        return FixedLenSequenceFeature(dims[1:], dtype, True, value)
    return FixedLenFeature(dims, dtype, value)


class _Features:
    """Descriptions by name, in groups: sparse, dense, ragged. The same name may stand in several."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str, Any]] = []

    def add(self, kind: str, keys: list[str], features: Any) -> None:
        self.items += [(kind, key, feature) for key, feature in zip(keys, features, strict=True)]


def _columns(parts: Iterator[Any], features: _Features, specs: list[Any]) -> dict[str, list[list[Any]]]:
    """The tensors of each feature, by the group it is in."""
    found: dict[str, list[list[Any]]] = {"sparse": [], "dense": [], "ragged": []}
    for (kind, _, _), spec in zip(features.items, specs):
        found[kind].append([next(parts) for _ in spec])
    return found


def _parts_of(found: dict[str, list[list[Any]]]) -> list[Any]:
    """Sparse indices, values and shapes, dense values, ragged values and splits: lists, as the nodes give them."""
    sparse, dense, ragged = found["sparse"], found["dense"], found["ragged"]
    lists = [[p[i] for p in sparse] for i in range(3)]
    return [*lists, [p[0] for p in dense], [p[0] for p in ragged], [_splits(p) for p in ragged]]


def _splits(parts: list[Any]) -> Any:
    """The row splits of a ragged feature; a single example is one row."""
    if len(parts) > 1:
        return parts[1]
    count = primitives.Shape(parts[0], "int32")[0]
    return primitives.Pack([count - count, count], 0)


def _parse(serialized: Any, features: _Features) -> list[Any]:
    tensor = convert_to_tensor(serialized, "string")
    batch = None if tensor.shape.rank is None else tensor.shape.as_list()

    def run(tensor: Any) -> list[Any]:
        found = []
        for _, key, feature in features.items:
            found += Examples(tensor, {key: feature}).feature(key, feature)
        return found

    feature_by_key = {key: feature for _, key, feature in features.items}
    if len(feature_by_key) == len(features.items):  # files know one feature of each name
        call = CompositionCall(parse_in_order, (Place(0), feature_by_key), {})
        run.raw_call = call  # type: ignore[attr-defined]
    specs = [feature_specs(feature, batch) for _, _, feature in features.items]
    parts = iter(host_call(run, [tensor], [spec for each in specs for spec in each]))
    return _parts_of(_columns(parts, features, specs))


def parse_in_order(serialized: Any, features: dict[str, Any]) -> list[Any]:
    """The parts of features in the order given; how files name what `ParseExample` and its versions run."""
    examples = [Examples(serialized, {key: feature}).feature(key, feature) for key, feature in features.items()]
    return [part for parts in examples for part in parts]


def _parse_example_v2(
    serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, ragged_keys: Any, dense_defaults: Any,
    num_sparse: int, sparse_types: Any, ragged_value_types: Any, ragged_split_types: Any, dense_shapes: Any,
) -> Any:  # fmt: skip
    features = _Features()
    features.add("sparse", _texts(sparse_keys), [VarLenFeature(t) for t in sparse_types])
    defaults = [convert_to_tensor(d) for d in dense_defaults]
    features.add("dense", _texts(dense_keys), [_dense(d.dtype, s, d) for d, s in zip(defaults, dense_shapes)])
    kinds = zip(ragged_value_types, ragged_split_types)
    features.add("ragged", _texts(ragged_keys), [RaggedFeature(v, row_splits_dtype=s) for v, s in kinds])
    return tuple(_parse(serialized, features))


def _parse_example(
    serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, dense_defaults: Any, sparse_types: Any,
    dense_shapes: Any,
) -> Any:  # fmt: skip
    found = _parse_example_v2(
        serialized, names, sparse_keys, dense_keys, [], dense_defaults, len(sparse_types), sparse_types, [], [],
        dense_shapes,
    )  # fmt: skip
    return found[:4]


def _parse_single(
    serialized: Any, dense_defaults: Any, num_sparse: int, sparse_keys: Any, dense_keys: Any, sparse_types: Any,
    dense_shapes: Any,
) -> Any:  # fmt: skip
    return _parse_example(serialized, [], sparse_keys, dense_keys, dense_defaults, sparse_types, dense_shapes)


def _parse_sequences(serialized: Any, context: _Features, steps: _Features) -> tuple[list[Any], list[Any], list[Any]]:
    """The lists of the context, of the steps, and the numbers of steps of the dense features."""
    tensor = convert_to_tensor(serialized, "string")
    batch = tensor.shape.as_list()

    def run(tensor: Any) -> list[Any]:
        found = []
        for _, key, feature in context.items:
            found += Examples(tensor, {key: feature}).feature(key, feature)
        for _, key, feature in steps.items:
            parts, lengths = Sequences(tensor, {key: feature}).feature(key, feature)
            found += [*parts, convert_to_tensor(lengths if batch else lengths[0])]
        return found

    named = [{key: feature for _, key, feature in group.items} for group in (context, steps)]
    if all(len(found) == len(group.items) for found, group in zip(named, (context, steps))):
        call = CompositionCall(parse_sequences_in_order, (Place(0), *named), {})
        run.raw_call = call  # type: ignore[attr-defined]
    whole = [feature_specs(feature, batch) for _, _, feature in context.items]
    each = [[*step_specs(feature, batch), ("int64", batch)] for _, _, feature in steps.items]
    parts = iter(host_call(run, [tensor], [spec for group in (*whole, *each) for spec in group]))
    first, second = _columns(parts, context, whole), _columns(parts, steps, each)
    lists = _parts_of(second)
    lists.append([p[-2] for p in second["ragged"]])
    return _parts_of(first), lists, [p[-1] for p in second["dense"]]


def parse_sequences_in_order(
    serialized: Any, context_features: Any, sequence_features: Any, example_names: Any = None
) -> list[Any]:
    """The parts of features in the order given; how files name what `ParseSequenceExample` and its versions run."""
    found = [Examples(serialized, {key: feature}).feature(key, feature) for key, feature in context_features.items()]
    for key, feature in sequence_features.items():
        parts, lengths = Sequences(serialized, {key: feature}).feature(key, feature)
        found.append([*parts, convert_to_tensor(lengths)])
    return [part for parts in found for part in parts]


def _context(sparse: Any, sparse_types: Any, dense: Any, defaults: Any, shapes: Any) -> _Features:
    features = _Features()
    features.add("sparse", _texts(sparse), [VarLenFeature(t) for t in sparse_types])
    tensors = [convert_to_tensor(d) for d in defaults]
    features.add("dense", _texts(dense), [_dense(d.dtype, s, d) for d, s in zip(tensors, shapes)])
    return features


def _steps(sparse: Any, sparse_types: Any, dense: Any, dense_types: Any, shapes: Any, may_miss: list[bool]) -> _Features:  # noqa: E501  # fmt: skip
    features = _Features()
    features.add("sparse", _texts(sparse), [VarLenFeature(t) for t in sparse_types])
    rows = zip(dense_types, shapes, may_miss)
    features.add("dense", _texts(dense), [FixedLenSequenceFeature(as_shape(s).as_list(), t, m) for t, s, m in rows])
    return features


def _parse_sequence_v2(
    serialized: Any, debug_name: Any, context_sparse_keys: Any, context_dense_keys: Any, context_ragged_keys: Any,
    sparse_keys: Any, dense_keys: Any, ragged_keys: Any, missing: Any, context_defaults: Any, context_sparse_types: Any,
    context_ragged_values: Any, context_ragged_splits: Any, context_shapes: Any, dense_types: Any, sparse_types: Any,
    ragged_values: Any, ragged_splits: Any, dense_shapes: Any,
) -> Any:  # fmt: skip
    context = _context(context_sparse_keys, context_sparse_types, context_dense_keys, context_defaults, context_shapes)
    kinds = zip(context_ragged_values, context_ragged_splits)
    context.add("ragged", _texts(context_ragged_keys), [RaggedFeature(v, row_splits_dtype=s) for v, s in kinds])
    may_miss = np.asarray(convert_to_tensor(missing, "bool")).reshape(-1).tolist()
    steps = _steps(sparse_keys, sparse_types, dense_keys, dense_types, dense_shapes, may_miss)
    kinds = zip(ragged_values, ragged_splits)
    steps.add("ragged", _texts(ragged_keys), [RaggedFeature(v, row_splits_dtype=s) for v, s in kinds])
    whole, each, lengths = _parse_sequences(serialized, context, steps)
    *sparse_parts, dense, values, outer, inner = each
    return (*whole, *sparse_parts, dense, lengths, values, outer, inner)


def _parse_sequence(
    serialized: Any, debug_name: Any, context_defaults: Any, missing: Any, context_sparse_keys: Any,
    context_dense_keys: Any, sparse_keys: Any, dense_keys: Any, context_sparse_types: Any, dense_types: Any,
    context_shapes: Any, sparse_types: Any, dense_shapes: Any,
) -> Any:  # fmt: skip
    context = _context(context_sparse_keys, context_sparse_types, context_dense_keys, context_defaults, context_shapes)
    absent = set(_texts(missing))
    may_miss = [key in absent for key in _texts(dense_keys)]
    steps = _steps(sparse_keys, sparse_types, dense_keys, dense_types, dense_shapes, may_miss)
    whole, each, lengths = _parse_sequences(serialized, context, steps)
    return (*whole[:4], *each[:4], lengths)


def _parse_single_sequence(
    serialized: Any, missing: Any, context_sparse_keys: Any, context_dense_keys: Any, sparse_keys: Any,
    dense_keys: Any, context_defaults: Any, debug_name: Any, context_sparse_types: Any, dense_types: Any,
    context_shapes: Any, sparse_types: Any, dense_shapes: Any,
) -> Any:  # fmt: skip
    found = _parse_sequence(
        serialized, debug_name, context_defaults, missing, context_sparse_keys, context_dense_keys, sparse_keys,
        dense_keys, context_sparse_types, dense_types, context_shapes, sparse_types, dense_shapes,
    )  # fmt: skip
    return found[:-1]


ROWS: list[tuple[str, str, Any]] = [
    (
        "ParseExample",
        "serialized, names, sparse_keys, dense_keys, dense_defaults, sparse_types, dense_shapes",
        _parse_example,
    ),
    (
        "ParseExampleV2",
        "serialized, names, sparse_keys, dense_keys, ragged_keys, dense_defaults, num_sparse, sparse_types, "
        "ragged_value_types, ragged_split_types, dense_shapes",
        _parse_example_v2,
    ),
    (
        "ParseSingleExample",
        "serialized, dense_defaults, num_sparse, sparse_keys, dense_keys, sparse_types, dense_shapes",
        _parse_single,
    ),
    (
        "ParseSequenceExample",
        "serialized, debug_name, context_dense_defaults, feature_list_dense_missing_assumed_empty, "
        "context_sparse_keys, context_dense_keys, feature_list_sparse_keys, feature_list_dense_keys, "
        "context_sparse_types=[], feature_list_dense_types=[], context_dense_shapes=[], "
        "feature_list_sparse_types=[], feature_list_dense_shapes=[]",
        _parse_sequence,
    ),
    (
        "ParseSequenceExampleV2",
        "serialized, debug_name, context_sparse_keys, context_dense_keys, context_ragged_keys, "
        "feature_list_sparse_keys, feature_list_dense_keys, feature_list_ragged_keys, "
        "feature_list_dense_missing_assumed_empty, context_dense_defaults, context_sparse_types=[], "
        "context_ragged_value_types=[], context_ragged_split_types=[], context_dense_shapes=[], "
        "feature_list_dense_types=[], feature_list_sparse_types=[], feature_list_ragged_value_types=[], "
        "feature_list_ragged_split_types=[], feature_list_dense_shapes=[]",
        _parse_sequence_v2,
    ),
    (
        "ParseSingleSequenceExample",
        "serialized, feature_list_dense_missing_assumed_empty, context_sparse_keys, context_dense_keys, "
        "feature_list_sparse_keys, feature_list_dense_keys, context_dense_defaults, debug_name, "
        "context_sparse_types=[], feature_list_dense_types=[], context_dense_shapes=[], "
        "feature_list_sparse_types=[], feature_list_dense_shapes=[]",
        _parse_single_sequence,
    ),
]
