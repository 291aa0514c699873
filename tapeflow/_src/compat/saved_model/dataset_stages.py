"""Further nodes of datasets inside of functions: files, windows, padded batches, and single elements."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.saved_model.dataset_nodes import Stage, as_tuple, as_tuples, components, function_of
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.experimental import Reducer, group_by_reducer
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor


def _tuples(dataset: Any) -> Stage:
    """A dataset of single elements, as tuples."""
    return Stage(dataset.map(lambda x: (x,)))


# ---- files


@handles("TextLineDataset")
def _lines(step: Step, values: list[Any], context: Context) -> Any:
    return [_tuples(find_public("data.TextLineDataset")(values[0], _compression(values[1])))]


@handles("TFRecordDataset", "TFRecordDatasetV2")
def _records(step: Step, values: list[Any], context: Context) -> Any:
    return [_tuples(find_public("data.TFRecordDataset")(values[0], _compression(values[1])))]


@handles("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def _fixed_records(step: Step, values: list[Any], context: Context) -> Any:
    names, header, size, footer, buffer, *rest = values
    sizes = [int(n) for n in (size, header, footer, buffer)]
    kind = find_public("data.FixedLengthRecordDataset")
    return [_tuples(kind(names, *sizes, _compression(rest[0]) if rest else None))]


def _compression(kind: Any) -> str | None:
    text: str = convert_to_tensor(kind).numpy().decode()
    return text or None


# ---- stages


@handles("PaddedBatchDataset", "PaddedBatchDatasetV2")
def _padded(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Toutput_types"])
    stage, size, rest = values[0], values[1], values[2:]
    shapes, fillers = tuple(rest[:count]), tuple(rest[count : 2 * count])
    drops = bool(rest[2 * count]) if len(rest) > 2 * count else False
    return [Stage(stage.dataset.padded_batch(size, shapes, fillers, drop_remainder=drops))]


@handles("ShardDataset")
def _shard(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.shard(int(values[1]), int(values[2])))]


@handles("UnbatchDataset")
def _unbatch(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.unbatch())]


@handles("UniqueDataset")
def _unique(step: Step, values: list[Any], context: Context) -> Any:
    return [_tuples(values[0].dataset.map(lambda x: x).unique())]


@handles("IgnoreErrorsDataset")
def _ignore_errors(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.ignore_errors(step.attributes.get("log_warning", False)))]


@handles("WindowDataset")
def _window(step: Step, values: list[Any], context: Context) -> Any:
    stage, size, shift, stride, drops = values
    return [Stage(stage.dataset.window(size, shift, stride, bool(drops)))]


@handles("InterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3")
@handles("ParallelInterleaveDatasetV4")
def _interleave(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Targuments"])
    run = function_of(step, context, "f", values[1 : 1 + count])
    cycle, block = values[1 + count], values[2 + count]
    found = values[0].dataset.interleave(lambda *x: as_tuples(run(*x)[0]), int(cycle), int(block))
    return [Stage(found)]


@handles("ParallelFilterDataset")
def _filter(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Targuments"])
    run = function_of(step, context, "predicate", values[1 : 1 + count])
    return [Stage(values[0].dataset.filter(lambda *x: run(*x)[0]))]


def _functions_of(step: Step, values: list[Any], context: Context, *names: str) -> list[Any]:
    """The functions `name_func` of a node, each of which takes the next of what the node has beside its dataset."""
    found, rest = [], iter(values[1:])
    for name in names:
        captured = [next(rest) for _ in step.attributes[f"T{name}_func_other_arguments"]]
        found.append(function_of(step, context, f"{name}_func", captured))
    return found


@handles("GroupByWindowDataset")
def _group_by_window(step: Step, values: list[Any], context: Context) -> Any:
    key, reduce, size = _functions_of(step, values, context, "key", "reduce", "window_size")
    found = values[0].dataset.group_by_window(
        key_func=lambda *x: run_one(key, *x),
        reduce_func=lambda number, part: as_tuples(reduce(number, part)[0]),
        window_size_func=lambda number: run_one(size, number),
    )
    return [Stage(found)]


@handles("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
def _group_by_reducer(step: Step, values: list[Any], context: Context) -> Any:
    names = ("key", "init", "reduce", "finalize")
    rest = iter(values[1:])
    key, init, reduce, finalize = (
        function_of(
            step, context, f"{name}_func", [next(rest) for _ in step.attributes[f"T{name}_func_other_arguments"]]
        )
        for name in names
    )
    reducer = Reducer(
        lambda number: tuple(init(number)),
        lambda state, x: tuple(reduce(*state, *as_tuple(x))),
        lambda *state: tuple(finalize(*as_tuple(state))),
    )
    return [Stage(values[0].dataset.apply(group_by_reducer(lambda *x: run_one(key, *x), reducer)))]


def run_one(function: Any, *values: Any) -> Any:
    """The one result of a function of the library."""
    (found,) = function(*values)
    return found


@handles("DirectedInterleaveDataset")
def _directed(step: Step, values: list[Any], context: Context) -> Any:
    selector, *stages = values
    numbers = selector.dataset.map(lambda number: number)
    stops = step.attributes.get("stop_on_empty_dataset", False)
    return [Stage(Dataset.choose_from_datasets([stage.dataset for stage in stages], numbers, stops))]


@handles("RebatchDatasetV2")
def _rebatch(step: Step, values: list[Any], context: Context) -> Any:
    stage, sizes, drops = values
    return [Stage(stage.dataset.rebatch(sizes, drop_remainder=bool(drops)))]


@handles("RandomDataset", "RandomDatasetV2")
def _random(step: Step, values: list[Any], context: Context) -> Any:
    return [_tuples(Dataset.random(int(values[1]) or None))]


@handles("MapAndBatchDataset")
def _map_and_batch(step: Step, values: list[Any], context: Context) -> Any:
    count = len(step.attributes["Targuments"])
    run = function_of(step, context, "f", values[1 : 1 + count])
    size, _, drops = values[1 + count :]
    mapped = values[0].dataset.map(lambda *x: tuple(run(*x)))
    return [Stage(mapped.batch(size, drop_remainder=bool(drops)))]


@handles("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2")
def _shuffle_and_repeat(step: Step, values: list[Any], context: Context) -> Any:
    stage, buffer, seed, _, count, *_ = values
    again = step.attributes.get("reshuffle_each_iteration", True)
    own = int(seed) or None
    return [Stage(stage.dataset.shuffle(buffer, seed=own, reshuffle_each_iteration=again).repeat(count))]


@handles("AssertCardinalityDataset")
def _assert_cardinality(step: Step, values: list[Any], context: Context) -> Any:
    return [Stage(values[0].dataset.apply(find_public("data.experimental.assert_cardinality")(int(values[1]))))]


@handles("OptimizeDataset", "OptimizeDatasetV2", "AutoShardDataset", "AssertNextDataset", "NonSerializableDataset")
def _same(step: Step, values: list[Any], context: Context) -> Any:
    """What changes how a dataset is computed, and not its elements."""
    return [values[0]]


# ---- reading


@handles("DatasetToSingleElement")
def _single_element(step: Step, values: list[Any], context: Context) -> Any:
    return components(values[0].dataset.get_single_element())


@handles("DatasetCardinality")
def _cardinality(step: Step, values: list[Any], context: Context) -> Any:
    return [cast(values[0].dataset.cardinality(), "int64")]
