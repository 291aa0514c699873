"""How derivatives of derivative rules that wait for shapes are written, and the transpose of `dynamic_partition`."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.export_rules.deferred import Rule, formula
from tapeflow._src.compat.graph_def.export_rules.nn import Window, max_pool_second, pool_attributes


@formula("AvgPoolGrad")
def _average_pool_again(rule: Rule) -> list[Any]:
    """The rule is linear: its transpose is the pool."""
    e, w = rule.e, Window(rule.node, 0, True)
    name = "AvgPool" if w.rank == 4 else "AvgPool3D"
    return [w.narrowed(e, e.one(name, w.widened(e, rule.dy), **pool_attributes(rule.node, w, False)))]


@formula("MaxPoolGrad")
def _max_pool_again(rule: Rule) -> list[Any]:
    return [None, max_pool_second(rule.node, Window(rule.node, 0, True), rule.x[0], rule.dy)]


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
