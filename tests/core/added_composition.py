"""A composition as docs/adding_an_op.md describes it; tests/core/test_entries.py puts it into a copy of the package."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import public


@public("math.added_distance")
def added_distance(x: Any, y: Any, name: str | None = None) -> Any:
    """The distance of `x` and `y`, element by element.

    >>> tf.math.added_distance(1., 3.)
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    return primitives.Abs(x - y)
