"""Layered diagrams: no box on another, arrows downwards, any number of operations legible."""

import random
from itertools import combinations, pairwise
from xml.dom import minidom

import pytest

from tapeflow._src.diagnostics.diagram import Box, draw, fold
from tapeflow._src.diagnostics.layered_layout import layered_layout


def random_graph(count, seed):
    draws = random.Random(seed)
    edges = {
        (draws.randrange(max(0, end - 8), end), end) for end in range(1, count) for _ in range(draws.randint(0, 3))
    }
    return [(draws.uniform(40, 160), draws.uniform(20, 60)) for _ in range(count)], sorted(edges)


@pytest.mark.parametrize("count, seed", [(2, 0), (5, 1), (40, 2), (60, 3)])
def test_boxes_stand_apart_and_arrows_point_down(count, seed):
    sizes, edges = random_graph(count, seed)
    layout = layered_layout(sizes, edges)
    for (i, (x, y)), (j, (u, v)) in combinations(enumerate(layout.positions), 2):
        beside = abs(x - u) >= (sizes[i][0] + sizes[j][0]) / 2 - 1e-6
        below = y + sizes[i][1] <= v or v + sizes[j][1] <= y
        assert beside or below
    for (start, end), route in zip(edges, layout.routes):
        assert route[0] == (layout.positions[start][0], layout.positions[start][1] + sizes[start][1])
        assert route[-1] == layout.positions[end]
        assert all(before[1] <= after[1] for before, after in pairwise(route))
    for x, _ in layout.positions:
        assert 0 <= x <= layout.width


def test_a_chain_is_straight():
    layout = layered_layout([(50.0, 20.0), (90.0, 20.0), (70.0, 20.0)], [(0, 1), (1, 2)])
    assert len({round(x, 6) for x, _ in layout.positions}) == 1


def test_repeated_runs_fold_to_one_box():
    boxes = [Box("x", (), (), "variable")]
    for i in range(500):
        boxes.append(Box(("mul", "tanh")[i % 2], ("a.py:3",), (len(boxes) - 1,), "node", ("op", i % 2)))
    boxes.append(Box("sum", ("a.py:4",), (len(boxes) - 1,), "node", "sum"))
    shown = fold(boxes, 60)
    assert [(box.title, box.kind) for box in shown] == [("x", "variable"), ("mul, tanh", "fold"), ("sum", "node")]
    assert shown[1].details == ("500 operations, 250 times 2", "a.py:3") and shown[2].inputs == (1,)


def test_a_thousand_different_operations_are_legible():
    draws = random.Random(4)
    boxes = [
        Box(f"op{i}", (f"a.py:{i}",), tuple({draws.randrange(i) for _ in range(2)} if i else ()), "node", i)
        for i in range(1000)
    ]
    shown = fold(boxes, 60)
    assert len(shown) <= 62
    assert all(i < number for number, box in enumerate(shown) for i in box.inputs)
    root = minidom.parseString(draw(boxes)).documentElement
    assert 8 <= len(root.getElementsByTagName("rect")) <= len(shown)
    assert float(root.getAttribute("width")) < 1700


def test_text_is_escaped_and_nothing_is_drawn_of_nothing():
    assert "a &lt; b" in draw([Box("a < b", (), ())])
    minidom.parseString(draw([]))


@pytest.mark.parametrize("count", [25, 50, 300])
def test_wide_programs_are_folded(count):
    weights = [Box(f"w{i}", ("float32[3]",), (), "variable") for i in range(count)]
    squares = [Box("square", ("float32[3]", "a.py:2"), (i,), "node", "square") for i in range(count)]
    total = Box("add_n", ("float32[3]", "a.py:3"), tuple(range(count, 2 * count)), "node", "add_n")
    assert [box.kind for box in fold([*weights, total._replace(inputs=tuple(range(count)))], 400)] == ["group", "node"]
    root = minidom.parseString(draw([*weights, *squares, total])).documentElement
    assert float(root.getAttribute("width")) < 1700
    assert "group" in [rect.getAttribute("class") for rect in root.getElementsByTagName("rect")]


def test_variables_are_counted_once():
    reads = [Box("kernel", (), (), "variable", i % 2) for i in range(20)]
    shown = fold([*reads, Box("add_n", (), tuple(range(20)))], 60)
    assert [(box.title, box.details) for box in shown] == [("kernel", ("2 variables",)), ("add_n", ())]
