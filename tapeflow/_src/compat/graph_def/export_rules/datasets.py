"""How datasets inside of functions are written: each stage as TensorFlow's node of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.python import rule_by_call
from tapeflow._src.compat.graph_def.exporter import (
    DataWithResources,
    ExportedNode,
    GraphWriter,
    component_kinds,
    resources_in,
)
from tapeflow._src.data.dataset_spec import DatasetSpec, NamedDataset
from tapeflow._src.data.files import FromFiles
from tapeflow._src.data.graph_calls import DatasetCall, functions_of
from tapeflow._src.data.pipes import (
    batching,
    choosing,
    flattening,
    mapping,
    ordering,
    padding,
    sources,
    windows,
)
from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.data.pipes.traced import Traced
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensorSpec
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.sparse_tensor import SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec

_ENDLESS = 2**63 - 1
# What stages are called that are made of others in TensorFlow.
_NAMES: dict[type, str] = {sources.Generated: "from_generator"}
_FIRST_OUTSIDE, _FIRST_PACKED = -1000, -2000  # numbers of inputs of functions that are no values of their graphs

Rule = Callable[["DatasetWriter", Any], Ref]
_rule_by_pipe: dict[type, Rule] = {}


def stage(*kinds: type) -> Callable[[Rule], Rule]:
    """Registers how stages of some kinds are written."""

    def register(rule: Rule) -> Rule:
        _rule_by_pipe.update(dict.fromkeys(kinds, rule))
        return rule

    return register


class DatasetWriter:
    """Writes the stages of datasets into one graph or function, where symbolic tensors are these references."""

    def __init__(self, writer: GraphWriter, ref_by_symbol: dict[int, Ref]) -> None:
        self.w, self.e, self._ref_by_symbol = writer, writer.emitter, ref_by_symbol

    def pipe(self, pipe: Pipe) -> Ref:
        """The dataset of a stage, a variant."""
        rule = next((_rule_by_pipe[kind] for kind in type(pipe).__mro__ if kind in _rule_by_pipe), None)
        if rule is None:
            raise self.refused(pipe)
        return rule(self, pipe)

    def refused(self, pipe: Pipe, what: str = "") -> Exception:
        """The error for a stage that cannot be written."""
        name = next((name for kind, name in _NAMES.items() if isinstance(pipe, kind)), pipe.name.lstrip("_"))
        return UnimplementedError.of(f"{self.w.where}: {name}{f' with {what}' if what else ''} cannot be written")

    def value(self, value: Any, dtype: Any = None) -> Ref:
        """A number, a tensor, or the value of a symbolic one."""
        if not _core.is_symbolic(value):
            return self.e.constant(value, None if isinstance(value, _core.Tensor) else dtype)
        ref = self._ref_by_symbol.get(id(value))
        if ref is None:
            raise UnimplementedError.of(f"{self.w.where}: a dataset uses {value!r} of another function")
        return ref if dtype is None or ref.dtype == as_dtype(dtype) else self.e.one("Cast", ref, DstT=dtype)

    def node(self, op: str, pipe: Pipe, *inputs: Any, **attributes: Any) -> Ref:
        """The node of a stage."""
        types, shapes = component_kinds(pipe.specs)
        known = {"output_shapes": shapes}
        known["Toutput_types" if op in _TYPED_BY_INPUTS else "output_types"] = types
        return self.e.one(op, *inputs, **known, **attributes)

    # ---- functions of elements

    def function(self, traced: Traced) -> tuple[str, list[Ref]]:
        """The name of a function of elements, and what it takes beside them."""
        data = _core.graph_data(traced.graph)
        own = {id(tensor) for parts in traced._parts for tensor in parts}
        pipes = traced.inner_pipes()
        outside = [symbol for pipe in pipes for symbol in pipe.all_symbols() if id(symbol) not in own]
        outside = list({id(symbol): symbol for symbol in outside}.values())
        inner = [_core.graph_data(f.graph) for pipe in pipes for f in functions_of(pipe)]
        resources = list({id(r): r for graph in [data, *inner] for r in resources_in(graph)}.values())
        packed: list[tuple[Any, list[int]]] = []
        inputs, rest = [], iter(data[0])
        for spec in traced._input_specs:
            parts = [next(rest) for _ in range(_part_count(spec))]
            if type(spec) is TensorSpec:
                inputs += parts
            elif isinstance(spec, DatasetSpec):
                inputs.append((parts[0][0], "variant", parts[0][2]))
            else:
                inputs.append((_FIRST_PACKED - len(packed), "variant", TensorShape(None)))
                packed.append((spec, [number for number, *_ in parts]))
        inputs += rest
        inputs += [(_FIRST_OUTSIDE - i, symbol.dtype.name, symbol.shape) for i, symbol in enumerate(outside)]

        def body(w: GraphWriter) -> list[Ref]:
            for place, (spec, numbers) in enumerate(packed):
                for number, ref in zip(numbers, _unpacked(w, spec, w.value(_FIRST_PACKED - place))):
                    w.give(number, ref)
            known = {id(symbol): w.value(_FIRST_OUTSIDE - i) for i, symbol in enumerate(outside)}
            found, results = iter(w.write()), []
            for leaf, spec, tensors in zip(traced.leaves, traced.specs, traced._parts):
                refs = [next(found) for _ in tensors]
                pipe = getattr(leaf, "_pipe", None)
                if isinstance(pipe, Pipe):
                    inner_values = {**known, **{id(t): ref for t, ref in zip(tensors, refs)}}
                    results.append(DatasetWriter(w, inner_values).pipe(pipe))
                else:
                    results.append(_packed(w, spec, refs))
            return results

        name = self.w.functions.fresh_name(traced.graph.name)
        self.w.functions.add(DataWithResources((inputs, *data[1:]), resources), name, body=body)
        given = [self.value(tensor) for tensor in (*traced.captures, *outside)]
        if resources:
            self.w.stateful = True
        return name, [*given, *(self.w.resource(resource) for resource in resources)]


_TYPED_BY_INPUTS = ("TensorDataset", "TensorSliceDataset", "PaddedBatchDatasetV2")


def _part_count(spec: Any) -> int:
    if isinstance(spec, RaggedTensorSpec):
        return int(spec.ragged_rank) + 1
    return 3 if isinstance(spec, SparseTensorSpec) else 1


def _packed(w: GraphWriter, spec: Any, refs: list[Ref], rows: bool = False) -> Ref:
    """The parts of a tensor as one component of an element, or its rows as one each."""
    if isinstance(spec, RaggedTensorSpec):
        values, *splits = refs
        return w.emitter.one("RaggedTensorToVariant", splits, values, batched_input=rows)
    if isinstance(spec, SparseTensorSpec):
        return w.emitter.one("SerializeManySparse" if rows else "SerializeSparse", *refs, out_type="variant")
    if type(spec) is not TensorSpec:
        raise UnimplementedError.of(f"{w.where}: elements of a dataset that are {spec} cannot be written")
    return refs[0]


def _unpacked(w: GraphWriter, spec: Any, ref: Ref) -> list[Ref]:
    """The parts of a component of an element."""
    if isinstance(spec, RaggedTensorSpec):
        splits = spec.row_splits_dtype
        rank = spec.ragged_rank
        *found, values = w.emitter.node(
            "RaggedTensorFromVariant",
            ref,
            input_ragged_rank=-1,
            output_ragged_rank=rank,
            Tvalues=spec.dtype,
            Tsplits=splits,
        )
        return [values, *found]
    if isinstance(spec, SparseTensorSpec):
        return w.emitter.node("DeserializeSparse", ref, dtype=spec.dtype, Tserialized="variant")
    return [ref]


# ---- what nodes do with datasets


def _dataset_call(n: ExportedNode, call: DatasetCall) -> Any:
    w, e = n.writer, n.e
    datasets = DatasetWriter(w, {id(symbol): ref for symbol, ref in zip(call.symbols, n.inputs)})
    types, shapes = component_kinds(call.specs)
    common = {"output_types": types, "output_shapes": shapes}

    def unpacked(refs: list[Ref]) -> list[Ref]:
        return [part for spec, ref in zip(call.specs, refs) for part in _unpacked(w, spec, ref)]

    match call.kind:
        case "single":
            return unpacked(n.act("DatasetToSingleElement", datasets.pipe(_pipe(call)), **common))
        case "at":
            found = datasets.pipe(_pipe(call))
            found = e.one("SkipDataset", found, datasets.value(call.state, "int64"), **common)
            found = e.one("TakeDataset", found, e.constant(1, "int64"), **common)
            return unpacked(n.act("DatasetToSingleElement", found, **common))
        case "count":
            return e.one("DatasetCardinality", datasets.pipe(_pipe(call)))
        case "reduce":
            assert call.function is not None
            name, captured = datasets.function(call.function)
            state = [_leaf(datasets, spec, leaf) for spec, leaf in zip(call.specs, call.state)]
            dataset = datasets.pipe(_pipe(call))
            return unpacked(n.act("ReduceDataset", dataset, state, captured, f=name, **common))
        case "bind":
            return datasets.pipe(_pipe(call))
        case "begin":
            dataset = datasets.pipe(_pipe(call))
            iterator = n.act("AnonymousIteratorV3", **common)[0]
            n.act("MakeIterator", dataset, iterator)
            w.resources[id(call.token)] = iterator
            return e.constant(0, "int64")
        case "next":
            return unpacked(n.act("IteratorGetNext", w.resource(call.token), **common))
        case "start":
            return e.constant(0, "int64")
        case "more":
            return e.one("OptionalHasValue", w.resource(call.token))
        case "take":
            return unpacked(e.node("OptionalGetValue", w.resource(call.token), **common))
    return []  # the end of an iterator


rule_by_call[DatasetCall] = _dataset_call


def _pipe(call: DatasetCall) -> Pipe:
    assert call.pipe is not None
    return call.pipe


def _leaf(datasets: DatasetWriter, spec: Any, leaf: Any, rows: bool = False) -> Ref:
    """A tensor as a component of an element, or its rows as one each."""
    if isinstance(spec, RaggedTensorSpec):
        parts = [leaf.flat_values, *leaf.nested_row_splits]
    elif isinstance(spec, SparseTensorSpec):
        parts = [leaf.indices, leaf.values, leaf.dense_shape]
    else:
        parts = [leaf]
    return _packed(datasets.w, spec, [datasets.value(part) for part in parts], rows)


# ---- sources


@stage(sources.Tensors)
def _tensors(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("TensorDataset", pipe, [_leaf(d, s, leaf) for s, leaf in zip(pipe.specs, pipe._leaves)])


@stage(sources.Slices)
def _slices(d: DatasetWriter, pipe: Any) -> Ref:
    parts = [_leaf(d, spec, leaf, rows=True) for spec, leaf in zip(pipe.specs, pipe._leaves)]
    return d.node("TensorSliceDataset", pipe, parts)


@stage(sources.Numbers)
def _numbers(d: DatasetWriter, pipe: Any) -> Ref:
    start, stop, step = pipe._bounds
    return d.node(
        "RangeDataset", pipe, *(d.value(x, "int64") for x in (start, _ENDLESS if stop is None else stop, step))
    )


@stage(sources.RandomNumbers)
def _random(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("RandomDataset", pipe, *_seeds(d, pipe))


@stage(NamedDataset)
def _named(d: DatasetWriter, pipe: Any) -> Ref:
    ref = d.value(pipe.handle)
    if ref.dtype.name != "variant":
        raise d.refused(pipe, "a dataset that is no part of the function")
    return ref


@stage(FromFiles)
def _files(d: DatasetWriter, pipe: Any) -> Ref:
    if pipe.inputs:
        raise d.refused(pipe, "a dataset of names")
    op = {"TextLineDatasetV2": "TextLineDataset", "TFRecordDatasetV2": "TFRecordDataset"}.get(pipe.name)
    if op is None:
        raise d.refused(pipe)
    return d.e.one(op, d.value(pipe._names), d.value(pipe._compression, "string"), d.value(0, "int64"))


def _seeds(d: DatasetWriter, pipe: Any) -> list[Ref]:
    if pipe._source.symbols:
        raise d.refused(pipe, "a seed that is computed")
    return [d.value(seed, "int64") for seed in pipe._source.seeds]


# ---- functions of elements


@stage(mapping.Mapped)
def _mapped(d: DatasetWriter, pipe: Any) -> Ref:
    before, (name, captured) = d.pipe(pipe.inputs[0]), d.function(pipe._function)
    return d.node("MapDataset", pipe, before, captured, f=name, preserve_cardinality=pipe._preserves_count)


@stage(mapping.Filtered)
def _filtered(d: DatasetWriter, pipe: Any) -> Ref:
    before, (name, captured) = d.pipe(pipe.inputs[0]), d.function(pipe._function)
    op = "TakeWhileDataset" if isinstance(pipe, mapping.TakenWhile) else "FilterDataset"
    return d.node(op, pipe, before, captured, predicate=name)


@stage(mapping.Scanned)
def _scanned(d: DatasetWriter, pipe: Any) -> Ref:
    before, (name, captured) = d.pipe(pipe.inputs[0]), d.function(pipe._function)
    leaves = pipe.state_leaves()
    state = [_leaf(d, spec, leaf) for spec, leaf in zip(pipe._function.specs, leaves)]
    return d.node("ScanDataset", pipe, before, state, captured, f=name, preserve_cardinality=True)


@stage(mapping.WithoutErrors)
def _without_errors(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("IgnoreErrorsDataset", pipe, d.pipe(pipe.inputs[0]), log_warning=pipe._warn is not None)


@stage(flattening.FlatMapped)
def _flat_mapped(d: DatasetWriter, pipe: Any) -> Ref:
    before, (name, captured) = d.pipe(pipe.inputs[0]), d.function(pipe._function)
    return d.node("FlatMapDataset", pipe, before, captured, f=name)


@stage(flattening.Interleaved)
def _interleaved(d: DatasetWriter, pipe: Any) -> Ref:
    before, (name, captured) = d.pipe(pipe.inputs[0]), d.function(pipe._function)
    sizes = [d.value(size, "int64") for size in (pipe._cycle, pipe._block)]
    return d.node("InterleaveDataset", pipe, before, captured, *sizes, f=name)


# ---- batches


def _needs_dense(d: DatasetWriter, pipe: Pipe) -> None:
    if any(type(spec) is not TensorSpec for spec in pipe.inputs[0].specs):
        raise d.refused(pipe, "sparse or ragged elements")


@stage(batching.Batched)
def _batched(d: DatasetWriter, pipe: Any) -> Ref:
    if any(isinstance(spec, DatasetSpec) for spec in pipe.specs):
        raise d.refused(pipe, "datasets as elements")
    before = d.pipe(pipe.inputs[0])
    return d.node("BatchDatasetV2", pipe, before, d.value(pipe._size, "int64"), d.value(pipe._drops))


@stage(batching.RaggedBatched)
def _ragged_batched(d: DatasetWriter, pipe: Any) -> Ref:
    """Each tensor becomes a variant, so that a batch may hold different sizes."""
    specs = pipe.inputs[0].specs
    becomes = [isinstance(s, RaggedTensorSpec) and type(before) is TensorSpec for s, before in zip(pipe.specs, specs)]
    if any(more and s.ragged_rank > 1 for more, s in zip(becomes, pipe.specs)):
        raise d.refused(pipe, "more than one ragged dimension")
    types, shapes = component_kinds(specs)
    data: Any = ([(i, dtype.name, shape) for i, (dtype, shape) in enumerate(zip(types, shapes))], {}, [], [], [])

    def body(w: GraphWriter) -> list[Ref]:
        refs = [w.value(i) for i in range(len(specs))]
        return [_packed(w, s, [ref]) if more else ref for s, more, ref in zip(pipe.specs, becomes, refs)]

    name = d.w.functions.fresh_name("as_variants")
    d.w.functions.add(data, name, body=body)
    types = [as_dtype("variant") if more else kind for kind, more in zip(types, becomes)]
    shapes = [TensorShape([]) if more else shape for shape, more in zip(shapes, becomes)]
    before = d.pipe(pipe.inputs[0])
    before = d.e.one(
        "MapDataset", before, [], f=name, output_types=types, output_shapes=shapes, preserve_cardinality=True
    )
    return d.node("BatchDatasetV2", pipe, before, d.value(pipe._size, "int64"), d.value(pipe._drops))


@stage(batching.Unbatched)
def _unbatched(d: DatasetWriter, pipe: Any) -> Ref:
    _needs_dense(d, pipe)
    return d.node("UnbatchDataset", pipe, d.pipe(pipe.inputs[0]))


@stage(batching.Rebatched)
def _rebatched(d: DatasetWriter, pipe: Any) -> Ref:
    _needs_dense(d, pipe)
    sizes = pipe._size if pipe._in_turn is None else pipe._in_turn
    before = d.pipe(pipe.inputs[0])
    if _core.is_symbolic(sizes):
        return d.node("RebatchDatasetV2", pipe, before, d.value(sizes, "int64"), d.value(pipe._drops))
    return d.node("RebatchDatasetV2", pipe, before, d.value(np.asarray(sizes), "int64"), d.value(pipe._drops))


@stage(padding.PaddedBatched)
def _padded(d: DatasetWriter, pipe: Any) -> Ref:
    def sizes(shape: Any) -> Ref:
        if isinstance(shape, TensorShape):
            return d.value(np.asarray([-1 if size is None else size for size in shape.as_list()], np.int64), "int64")
        return d.value(shape, "int64")

    before = d.pipe(pipe.inputs[0])
    shapes, values = [sizes(shape) for shape in pipe._shapes], [d.value(value) for value in pipe._values]
    size = d.value(pipe._size, "int64")
    return d.node("PaddedBatchDatasetV2", pipe, before, size, shapes, values, d.value(pipe._drops))


@stage(windows.Windows)
def _windows(d: DatasetWriter, pipe: Any) -> Ref:
    sizes = [d.value(size, "int64") for size in (pipe._size, pipe._shift, pipe._stride)]
    return d.node("WindowDataset", pipe, d.pipe(pipe.inputs[0]), *sizes, d.value(pipe._drops))


# ---- order and number of elements


@stage(ordering.Passing)
def _passed(d: DatasetWriter, pipe: Any) -> Ref:
    """What changes how elements are computed, and not what they are."""
    return d.pipe(pipe.inputs[0])


@stage(ordering.Prefetched)
def _prefetched(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("PrefetchDataset", pipe, d.pipe(pipe.inputs[0]), d.value(pipe._size, "int64"))


@stage(ordering.Counted)
def _counted(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("AssertCardinalityDataset", pipe, d.pipe(pipe.inputs[0]), d.value(pipe._expected, "int64"))


@stage(ordering.Cached)
def _cached(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("CacheDataset", pipe, d.pipe(pipe.inputs[0]), d.value(pipe._folder, "string"))


@stage(ordering.Shuffled)
def _shuffled(d: DatasetWriter, pipe: Any) -> Ref:
    before, size = d.pipe(pipe.inputs[0]), d.value(pipe._size, "int64")
    return d.node("ShuffleDataset", pipe, before, size, *_seeds(d, pipe), reshuffle_each_iteration=pipe._source.changes)


def _number_of(op: str, *names: str) -> Rule:
    def write(d: DatasetWriter, pipe: Any) -> Ref:
        before = d.pipe(pipe.inputs[0])
        return d.node(op, pipe, before, *(d.value(getattr(pipe, name), "int64") for name in names))

    return write


stage(ordering.Taken)(_number_of("TakeDataset", "_count"))
stage(ordering.Skipped)(_number_of("SkipDataset", "_count"))
stage(ordering.Repeated)(_number_of("RepeatDataset", "_count"))
stage(ordering.Sharded)(_number_of("ShardDataset", "_shards", "_index"))


@stage(ordering.Joined)
def _joined(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("ConcatenateDataset", pipe, *(d.pipe(before) for before in pipe.inputs))


@stage(ordering.Zipped, ordering.Numbered)
def _zipped(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("ZipDataset", pipe, [d.pipe(before) for before in pipe.inputs])


@stage(choosing.Directed)
def _directed(d: DatasetWriter, pipe: Any) -> Ref:
    selector, *pipes = (d.pipe(before) for before in pipe.inputs)
    return d.node("DirectedInterleaveDataset", pipe, selector, pipes, stop_on_empty_dataset=pipe._stops)


@stage(choosing.Unique)
def _unique(d: DatasetWriter, pipe: Any) -> Ref:
    return d.node("UniqueDataset", pipe, d.pipe(pipe.inputs[0]))
