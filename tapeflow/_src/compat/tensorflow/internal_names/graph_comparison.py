"""Whether two graphs are the same as messages, in whatever order their nodes and functions stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tapeflow._src.io.protos.tensor_protos import make_ndarray
from tapeflow._src.namespace import public


@public("__internal__.graph_util.graph_defs_equal")
def graph_defs_equal(graph_def_1: Any, graph_def_2: Any, treat_nan_as_equal: bool = False) -> bool:
    """Whether two messages hold the same nodes and functions, in any order; NaN is unequal to itself unless asked.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.constant(1.)
    >>> tf.__internal__.graph_util.graph_defs_equal(graph.as_graph_def(), graph.as_graph_def())
    True
    """
    one, two = graph_def_1, graph_def_2
    if not (one.versions == two.versions and _same_nodes(one.node, two.node, treat_nan_as_equal)):
        return False
    functions = [{f.signature.name: f for f in g.library.function} for g in (one, two)]
    if functions[0].keys() != functions[1].keys():
        return False
    return all(_same_function(f, functions[1][name], treat_nan_as_equal) for name, f in functions[0].items())


def _same_function(one: Any, two: Any, treat_nan_as_equal: bool) -> bool:
    if not _same_nodes(one.node_def, two.node_def, treat_nan_as_equal):
        return False
    rest = []
    for function in (one, two):
        copy = type(function)()
        copy.CopyFrom(function)
        del copy.node_def[:]
        rest.append(copy)
    return bool(rest[0] == rest[1])


def _same_nodes(one: Sequence[Any], two: Sequence[Any], treat_nan_as_equal: bool) -> bool:
    by_name = {node.name: node for node in two}
    if len(one) != len(two) or {node.name for node in one} != by_name.keys():
        return False
    return all(_same_node(node, by_name[node.name], treat_nan_as_equal) for node in one)


def _same_node(one: Any, two: Any, treat_nan_as_equal: bool) -> bool:
    if _text(one) != _text(two):
        return False
    return treat_nan_as_equal or not any(_has_nan(value) for value in one.attr.values())


def _text(node: Any) -> bytes:
    """What a message holds, bit for bit, so that NaN equals itself."""
    return bytes(node.SerializeToString(deterministic=True))


def _has_nan(value: Any) -> bool:
    if math.isnan(value.f) or any(map(math.isnan, value.list.f)):
        return True
    if not value.HasField("tensor"):
        return False
    numbers = make_ndarray(value.tensor)
    return bool((numbers != numbers).any())
