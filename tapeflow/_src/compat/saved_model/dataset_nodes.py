"""Nodes that make datasets inside of functions and read them. The elements of a dataset are tuples of tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.graph_def.variants import RaggedVariant, RaggedVariants, SparseVariants
from tapeflow._src.compat.raw_ops.optional_values import has_value, value_of
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.dataset_spec import DatasetSpec
from tapeflow._src.data.iterator import IteratorSpec
from tapeflow._src.data.optional import Optional
from tapeflow._src.function.spec_messages import register_spec
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_spec import TensorSpec

register_spec(DatasetSpec, 5)
register_spec(IteratorSpec, 6)


class Stage:
    """A dataset that travels between nodes."""

    is_graph_resource = True

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset


class _Place:
    """An iterator that is made before it has a dataset."""

    is_graph_resource = True

    def __init__(self) -> None:
        self.iterator: Any = None


def component(value: Any) -> Any:
    """What a node takes for a part of an element: a variant for a dataset or a ragged tensor."""
    if isinstance(value, Dataset):
        return Stage(as_tuples(value))
    if isinstance(value, RaggedTensor):
        return RaggedVariant(list(value.nested_row_lengths()), value.flat_values)
    return value


def part_of(value: Any) -> Any:
    """The part of an element that a node gives as a variant."""
    if isinstance(value, Stage):
        return value.dataset.map(only_component)
    if isinstance(value, RaggedVariants):
        return RaggedTensor.from_nested_row_splits(value.values, value.splits, validate=False)
    if isinstance(value, RaggedVariant):
        if not value.lengths:
            return value.values
        return RaggedTensor.from_nested_row_lengths(value.values, value.lengths, validate=False)
    return SparseTensor(*value) if isinstance(value, SparseVariants) else value


def only_component(*parts: Any) -> Any:
    """An element of one part as that part."""
    return parts[0] if len(parts) == 1 else parts


def components(element: Any) -> list[Any]:
    """The components of an element of a dataset."""
    return [component(part) for part in as_tuple(element)]


def as_tuples(dataset: Any) -> Any:
    """A dataset whose elements are tuples."""
    return dataset.map(lambda *parts: parts)


def as_tuple(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, list | tuple) else (element,)


def function_of(step: Step, context: Context, name: str, captured: list[Any]) -> Callable[..., list[Any]]:
    """What runs a function of the library on the tensors of an element, and on the datasets of a window."""

    def run(*tensors: Any) -> list[Any]:
        given = [component(x) for x in tensors]
        found: list[Any] = context.library.call(step.attributes[name], [*given, *captured], context.resources)
        return [part_of(x) for x in found]

    return run


# ---- sources


@handles("TensorSliceDataset")
def _slices(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(Dataset.from_tensor_slices(tuple(map(part_of, values))))]


@handles("TensorDataset")
def _single(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(Dataset.from_tensors(tuple(map(part_of, values))))]


@handles("RangeDataset")
def _range(step: Step, values: list[Any], context: Context) -> Any:
    numbers = Dataset.range(*values, output_type=step.attributes["output_types"][0])
    return [Stage(numbers.map(lambda x: (x,)))]


# ---- stages


@handles("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2")
def _map(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Targuments"])
    run = function_of(step, context, "f", values[1 : 1 + count])
    return [Stage(values[0].dataset.map(lambda *x: tuple(run(*x))))]


@handles("FlatMapDataset")
def _flat_map(step: Step, values: list[Any], context: Context) -> Any:
    run = function_of(step, context, "f", values[1:])
    return [Stage(values[0].dataset.flat_map(lambda *x: as_tuples(run(*x)[0])))]


@handles("FilterDataset")
def _filter(step: Step, values: list[Any], context: Context) -> Any:
    run = function_of(step, context, "predicate", values[1:])
    return [Stage(values[0].dataset.filter(lambda *x: run(*x)[0]))]


@handles("TakeWhileDataset")
def _take_while(step: Step, values: list[Any], context: Context) -> Any:
    run = function_of(step, context, "predicate", values[1:])
    return [Stage(values[0].dataset.take_while(lambda *x: run(*x)[0]))]


@handles("ScanDataset")
def _scan(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Tstate"])
    state, run = tuple(map(part_of, values[1 : 1 + count])), function_of(step, context, "f", values[1 + count :])

    def scanned(state: Any, element: Any) -> Any:
        found = run(*state, *as_tuple(element))
        return tuple(found[:count]), tuple(found[count:])

    return [Stage(values[0].dataset.scan(state, scanned))]


@handles("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def _batch(step: Step, values: list[Any], context: Context) -> Any:
    drops = bool(values[-1]) if len(values) > 2 else False
    dataset = values[0].dataset
    types = step.attributes.get("output_types", [])
    ragged = [
        kind.name == "variant" and type(spec) is TensorSpec for kind, spec in zip(types, as_tuple(dataset.element_spec))
    ]
    if not any(ragged):  # components that are variants and single tensors here may have different sizes
        return [Stage(dataset.batch(values[1], drop_remainder=drops))]

    def settled(*parts: Any) -> Any:
        return tuple(
            x if wanted or not isinstance(x, RaggedTensor) else x.to_tensor() for x, wanted in zip(parts, ragged)
        )

    return [Stage(dataset.ragged_batch(values[1], drop_remainder=drops).map(settled))]


@handles("RepeatDataset")
def _repeat(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.repeat(values[1]))]


@handles("TakeDataset")
def _take(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.take(values[1]))]


@handles("SkipDataset")
def _skip(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.skip(values[1]))]


@handles("ConcatenateDataset")
def _concatenate(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.concatenate(values[1].dataset))]


@handles("ZipDataset")
def _zip(step: Step, values: list[Any], context: Context) -> Any:
    joined = Dataset.zip(tuple(stage.dataset for stage in values))
    return [Stage(joined.map(lambda *parts: tuple(x for part in parts for x in as_tuple(part))))]


@handles("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
def _shuffle(step: Step, values: list[Any], context: Context) -> Any:
    again = step.attributes.get("reshuffle_each_iteration", True)
    seeded = step.op != "ShuffleDatasetV2" and int(values[2]) != 0
    seed = int(values[3]) if seeded else None
    return [Stage(values[0].dataset.shuffle(values[1], seed=seed, reshuffle_each_iteration=again))]


@handles("PrefetchDataset", "OptionsDataset", "ModelDataset", "FinalizeDataset", "CacheDataset", "CacheDatasetV2")
@handles("RewriteDataset", "MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset")
def _same(step: Step, values: list[Any], context: Context) -> Any:
    """What changes how a dataset is computed, and not its elements."""
    return [values[0]]


# ---- reading


@handles("ReduceDataset")
def _reduce(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Tstate"])
    state, run = tuple(map(part_of, values[1 : 1 + count])), function_of(step, context, "f", values[1 + count :])
    found = values[0].dataset.reduce(state, lambda state, x: tuple(run(*as_tuple(state), *as_tuple(x))))
    return components(found)


@handles("AnonymousIteratorV2", "AnonymousIteratorV3", "IteratorV2")
def _iterator(step: Step, values: list[Any], context: Context) -> Any:
    return [_Place(), None]


@handles("MakeIterator")
def _begin(step: Step, values: list[Any], context: Context) -> Any:
    values[1].iterator = iter(values[0].dataset)
    return []


@handles("IteratorGetNext", "IteratorGetNextSync")
def _next(step: Step, values: list[Any], context: Context) -> Any:
    place = values[0]
    if isinstance(place, _core.Tensor):  # the handle of an iterator that a function takes
        kinds = zip(step.attributes["output_shapes"], step.attributes["output_types"])
        place = IteratorSpec(tuple(TensorSpec(shape, dtype) for shape, dtype in kinds))._from_components(place)
    return components(next(place.iterator if isinstance(place, _Place) else place))


@handles("IteratorGetNextAsOptional")
def _next_or_none(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].iterator.get_next_as_optional()]


@handles("OptionalHasValue")
def _has_value(step: Step, values: list[Any], context: Context) -> Any:
    (optional,) = values
    return [optional.has_value() if isinstance(optional, Optional) else has_value(optional)]


@handles("OptionalGetValue")
def _value(step: Step, values: list[Any], context: Context) -> Any:
    (optional,) = values
    if isinstance(optional, Optional):
        return components(optional.get_value())
    return value_of(optional, step.attributes["output_types"], step.attributes["output_shapes"])


@handles("AnonymousMemoryCache", "DummyMemoryCache", "AnonymousSeedGenerator", "DummySeedGenerator")
def _held(step: Step, values: list[Any], context: Context) -> Any:
    return [None, None]


@handles("DeleteIterator", "DeleteMemoryCache", "DeleteSeedGenerator")
def _deleted(step: Step, values: list[Any], context: Context) -> Any:
    return []
