"""Nodes that make datasets inside of functions and read them. The elements of a dataset are tuples of tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.dataset_spec import DatasetSpec
from tapeflow._src.data.iterator import IteratorSpec
from tapeflow._src.function.spec_messages import register_spec
from tapeflow._src.types import nest
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


def as_tuple(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, list | tuple) else (element,)


def function_of(step: Step, context: Context, name: str, captured: list[Any]) -> Callable[..., list[Any]]:
    """What runs a function of the library on the tensors of an element, and on the datasets of a window."""

    def run(*tensors: Any) -> list[Any]:
        given = [Stage(x.map(lambda *parts: parts)) if isinstance(x, Dataset) else x for x in tensors]
        found: list[Any] = context.library.call(step.attributes[name], [*given, *captured], context.resources)
        return found

    return run


# ---- sources


@handles("TensorSliceDataset")
def _slices(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(Dataset.from_tensor_slices(tuple(values)))]


@handles("TensorDataset")
def _single(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(Dataset.from_tensors(tuple(values)))]


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
    return [Stage(values[0].dataset.flat_map(lambda *x: run(*x)[0].dataset))]


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
    state, run = tuple(values[1 : 1 + count]), function_of(step, context, "f", values[1 + count :])

    def scanned(state: Any, element: Any) -> Any:
        found = run(*state, *as_tuple(element))
        return tuple(found[:count]), tuple(found[count:])

    return [Stage(values[0].dataset.scan(state, scanned))]


@handles("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def _batch(step: Step, values: list[Any], context: Context) -> Any:
    drops = bool(values[-1]) if len(values) > 2 else False
    return [Stage(values[0].dataset.batch(values[1], drop_remainder=drops))]


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
    state, run = tuple(values[1 : 1 + count]), function_of(step, context, "f", values[1 + count :])
    found = values[0].dataset.reduce(state, lambda state, x: tuple(run(*as_tuple(state), *as_tuple(x))))
    return list(as_tuple(found))


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
    element = next(place.iterator if isinstance(place, _Place) else place)
    return nest.flatten(element, expand_composites=True)


@handles("AnonymousMemoryCache", "DummyMemoryCache", "AnonymousSeedGenerator", "DummySeedGenerator")
def _held(step: Step, values: list[Any], context: Context) -> Any:
    return [None, None]


@handles("DeleteIterator", "DeleteMemoryCache", "DeleteSeedGenerator")
def _deleted(step: Step, values: list[Any], context: Context) -> Any:
    return []
