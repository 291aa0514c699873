"""Layered layout of acyclic graphs (Sugiyama): layers, few crossings, straight edges. It knows sizes, not contents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_SWEEPS = 12
_GAP_X, _GAP_Y = 26.0, 46.0
_DUMMY_WIDTH = 10.0


class Layout(NamedTuple):
    """The middle of the upper side of each node, the points of each edge, and the size of the whole."""

    positions: list[tuple[float, float]]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


def layered_layout(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places the nodes 0, 1, ... of an acyclic graph whose edges go from lower to higher numbers.

    >>> layout = layered_layout([(60., 20.)] * 3, [(0, 2), (1, 2)])
    >>> [y for _, y in layout.positions]
    [0.0, 0.0, 66.0]
    """
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    layer = _layers(len(sizes), edges)
    widths = [width for width, _ in sizes]
    chains = _split_long_edges(layer, edges, widths)
    above, below = _neighbours(len(layer), chains)
    order = _order(layer, above, below)
    x = _coordinates(order, widths, above, below)
    left = min(x[v] - widths[v] / 2 for v in range(len(x)))
    x = [value - left for value in x]
    heights = [max((sizes[v][1] for v in row if v < len(sizes)), default=0.0) for row in order]
    top = [0.0]
    for height in heights:
        top.append(top[-1] + height + _GAP_Y)
    positions = [(x[v], top[layer[v]]) for v in range(len(sizes))]
    routes = [_route(chain, x, layer, top, heights, sizes) for chain in chains]
    width = max(x[v] + widths[v] / 2 for v in range(len(x)))
    return Layout(positions, routes, width, top[-1] - _GAP_Y)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path from a source; nodes without inputs move down to their first reader."""
    layer = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    has_input = [False] * count
    for start, end in sorted(edges, key=lambda edge: edge[0]):
        layer[end] = max(layer[end], layer[start] + 1)
        readers[start].append(end)
        has_input[end] = True
    for v in range(count):
        if not has_input[v] and readers[v]:
            layer[v] = min(layer[r] for r in readers[v]) - 1
    return layer


def _split_long_edges(layer: list[int], edges: Sequence[tuple[int, int]], widths: list[float]) -> list[list[int]]:
    """Each edge as a chain of nodes in neighbouring layers; narrow nodes without a box stand in the layers between."""
    chains = []
    for start, end in edges:
        chain = [start]
        for between in range(layer[start] + 1, layer[end]):
            chain.append(len(layer))
            layer.append(between)
            widths.append(_DUMMY_WIDTH)
        chains.append([*chain, end])
    return chains


def _neighbours(count: int, chains: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    return above, below


def _crossings(order: list[list[int]], below: list[list[int]]) -> int:
    """Crossings between neighbouring layers: inversions, counted by insertion into a sorted list."""
    count = 0
    place = {v: i for row in order for i, v in enumerate(row)}
    for row in order:
        ends = [place[w] for v in row for w in sorted(below[v], key=place.__getitem__)]
        tree: list[int] = [0] * (max(ends, default=0) + 2)
        for seen, end in enumerate(ends):
            i, before = end + 1, 0
            while i > 0:
                before += tree[i]
                i -= i & -i
            count += seen - before
            i = end + 1
            while i < len(tree):
                tree[i] += 1
                i += i & -i
    return count


def _order(layer: list[int], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """The nodes of each layer from left to right, by barycentres, swept down and up; the best of all sweeps."""
    order: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for v, number in enumerate(layer):
        order[number].append(v)
    best, fewest = [list(row) for row in order], _crossings(order, below)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for number in range(len(order)) if down else range(len(order) - 1, -1, -1):
            fixed = order[number - 1 if down else number + 1] if 0 <= number + (-1 if down else 1) < len(order) else []
            place = {v: i for i, v in enumerate(fixed)}
            neighbours = above if down else below
            here = {v: i for i, v in enumerate(order[number])}

            def barycentre(v: int) -> float:
                near = [place[w] for w in neighbours[v] if w in place]  # noqa: B023  used before the next turn
                return sum(near) / len(near) if near else float(here[v])  # noqa: B023

            order[number].sort(key=barycentre)
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in order], crossings
    return best


def _coordinates(
    order: list[list[int]], widths: list[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Moves every node towards the middle of its neighbours as far as the order and the gaps allow."""
    x = [0.0] * len(widths)
    for row in order:
        at = 0.0
        for v in row:
            x[v] = at + widths[v] / 2
            at += widths[v] + _GAP_X
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 0
        for row in order if down else reversed(order):
            wished = []
            for v in row:
                near = (above if down else below)[v] or (below if down else above)[v]
                middle = sorted(x[w] for w in near)
                wished.append((middle[len(middle) // 2] + middle[(len(middle) - 1) // 2]) / 2 if middle else x[v])
            _place_row(row, wished, widths, x)
    return x


def _place_row(row: list[int], wished: list[float], widths: list[float], x: list[float]) -> None:
    """The places nearest to the wished ones, by least squares, that keep the order and the gaps (pool adjacent)."""
    offset, blocks = 0.0, []
    offsets = []
    for i, v in enumerate(row):
        if i:
            offset += (widths[row[i - 1]] + widths[v]) / 2 + _GAP_X
        offsets.append(offset)
        blocks.append([wished[i] - offset, 1.0, i])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            total = blocks[-2][1] + blocks[-1][1]
            mean = (blocks[-2][0] * blocks[-2][1] + blocks[-1][0] * blocks[-1][1]) / total
            blocks[-2:] = [[mean, total, blocks[-2][2]]]
    for number, (start, _, first) in enumerate(blocks):
        end = int(blocks[number + 1][2]) if number + 1 < len(blocks) else len(row)
        for i in range(int(first), end):
            x[row[i]] = start + offsets[i]


def _route(
    chain: list[int],
    x: list[float],
    layer: list[int],
    top: list[float],
    heights: list[float],
    sizes: Sequence[tuple[float, float]],
) -> list[tuple[float, float]]:
    """From the lower side of the first node, past those between, to the upper side of the last."""
    first, *between, last = chain
    points = [(x[first], top[layer[first]] + sizes[first][1])]
    for v in between:
        points += [(x[v], top[layer[v]]), (x[v], top[layer[v]] + heights[layer[v]])]
    return [*points, (x[last], top[layer[last]])]
