"""How derivatives of derivative rules that wait for shapes are written, and the transpose of `dynamic_partition`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.export_rules.compositions import places_gradient
from tapeflow._src.compat.graph_def.export_rules.deferred import Rule, formula
from tapeflow._src.compat.graph_def.export_rules.nn import Window, max_pool_second, pool_attributes
from tapeflow._src.compat.graph_def.inlining import inlined


@formula("AvgPoolGrad")
def _average_pool_again(rule: Rule) -> list[Any]:
    """The rule is linear: its transpose is the pool."""
    e, w = rule.e, Window(rule.node, 0, True)
    name = "AvgPool" if w.rank == 4 else "AvgPool3D"
    return [w.narrowed(e, e.one(name, w.widened(e, rule.dy), **pool_attributes(rule.node, w, False)))]


@formula("MaxPoolGrad")
def _max_pool_again(rule: Rule) -> list[Any]:
    return [None, max_pool_second(rule.node, Window(rule.node, 0, True), rule.x[0], rule.dy)]


@formula("StridedSliceGrad")
def _slice_again(rule: Rule) -> list[Any]:
    """The rule is linear: its transpose is the slice. The slice has as many elements as the cotangent had."""
    e, n, size = rule.e, rule.node, rule.shape(rule.x[0])
    steps = n.param(2)
    turned = [i for i, step in enumerate(steps) if step < 0]
    begin, ahead = n.tensor(1), e.ints(np.abs(steps))
    if turned:  # such a dimension is read forward from where the slice ends
        last = e.one("AddV2", begin, e.one("Mul", e.ints(steps), e.one("Sub", size, e.ints(1))))
        begin = e.one("SelectV2", e.constant(np.asarray(steps) < 0), last, begin)
    part = e.one("StridedSlice", rule.dy, begin, e.one("AddV2", begin, e.one("Mul", ahead, size)), ahead)
    return [e.one("ReverseV2", part, e.ints(turned)) if turned else part]


@formula("MaxPoolWithArgmax")
def _max_pool_with_places(rule: Rule) -> list[Any]:
    """The places say where each cotangent belongs, in the whole batch."""
    has_batch = bool(rule.node.param(5))
    return inlined(rule.outer, places_gradient(has_batch), [rule.dy, rule.y[1], rule.shape(rule.x[0])])


@formula("LeakyReluGrad")
def _leaky_relu_again(rule: Rule) -> list[Any]:
    return [rule.e.one("LeakyReluGrad", rule.dy, rule.x[1], alpha=rule.node.param(0)), None]


@formula("DynamicPartition")
def _partition(rule: Rule) -> list[Any]:
    """The places of the rows are partitioned like the rows, and say where each cotangent belongs."""
    e, (x, partitions) = rule.e, rule.x
    count = e.one("Size", partitions, out_type="int32")
    numbers = e.one("Reshape", e.one("Range", e.ints(0), count, e.ints(1)), rule.shape(partitions))
    places = e.node("DynamicPartition", numbers, partitions, num_partitions=len(rule.y))
    dys = [e.one("ZerosLike", y) if dy is None else dy for y, dy in zip(rule.y, rule.dys)]
    return [e.one("Reshape", e.one("DynamicStitch", places, dys), rule.shape(x)), None]
