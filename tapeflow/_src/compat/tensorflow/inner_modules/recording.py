"""Whether the open tapes record an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import _core


def should_record_backprop(tensors: Sequence[Any]) -> bool:
    """Whether an open tape tracks one of these tensors or variables."""
    return any(_core.is_tracked(x) for x in tensors if _core.is_tensor(x))
