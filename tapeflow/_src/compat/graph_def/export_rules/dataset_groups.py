"""How stages of datasets that put elements into groups are written."""

from __future__ import annotations

import contextlib
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.datasets import DatasetWriter, stage
from tapeflow._src.control_flow.tracing import building
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.pipes import buckets, mapping, windows
from tapeflow._src.ops.arrays.conversion import cast, constant
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.effects.assertions import assert_less
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_shape import TensorShape


@stage(mapping.GroupedByWindow)
def _grouped(d: DatasetWriter, pipe: Any) -> Ref:
    before = d.pipe(pipe.inputs[0])
    key, reduce, size = (d.function(f) for f in (pipe._key, pipe._reduce, pipe._size))
    names = {"key_func": key[0], "reduce_func": reduce[0], "window_size_func": size[0]}
    return d.node("GroupByWindowDataset", pipe, before, key[1], reduce[1], size[1], **names)


@stage(mapping.GroupedByReducer)
def _reduced(d: DatasetWriter, pipe: Any) -> Ref:
    before = d.pipe(pipe.inputs[0])
    functions = (pipe._key, pipe._init, pipe._reduce, pipe._finalize)
    names, captured = zip(*(d.function(f) for f in functions))
    return d.node(
        "GroupByReducerDataset",
        pipe,
        before,
        *captured,
        key_func=names[0],
        init_func=names[1],
        reduce_func=names[2],
        finalize_func=names[3],
    )


@stage(buckets.Bucketed)
def _bucketed(d: DatasetWriter, pipe: Any) -> Ref:
    """Buckets as windows of elements with equal numbers of buckets, which TensorFlow's are."""
    before, given = pipe.inputs[0], pipe.given
    boundaries, sizes = (constant(numbers, "int64") for numbers in (given.boundaries, given.sizes))

    def key(*element: Any) -> Any:
        passed = cast(given.length(*element), "int64") >= boundaries
        number = primitives.Sum(cast(passed, "int64"))
        if pipe.to_boundary:
            text = "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
            assert_less(number, len(given.boundaries), message=text)
        return number

    def shape_of(number: Any, shape: list[Any]) -> Any:
        if not pipe.to_boundary or TensorShape(shape).is_fully_defined():
            return TensorShape(shape)
        limit = gather(boundaries, number) - 1
        return primitives.Pack([limit if size in (None, -1) else cast(size, "int64") for size in shape])

    def batch(number: Any, window: Any) -> Any:
        size = gather(sizes, number)
        if given.no_padding:
            return window.batch(size, given.drops)
        shapes = nest.pack_sequence_as(before.spec, [shape_of(number, shape) for shape in pipe.shapes])
        return window.padded_batch(size, shapes, given.values, given.drops)

    around = pipe.function_around()
    with contextlib.nullcontext() if around is None else building(around):
        as_windows = mapping.GroupedByWindow(before, key, batch, lambda n: gather(sizes, n), Dataset, windows.Window)
    return d.pipe(as_windows)
