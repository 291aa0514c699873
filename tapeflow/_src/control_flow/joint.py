"""Branches that several replicas of a strategy run as one, because they merge values inside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

Branches = Sequence[Callable[[], Any]]


class MergeInBranch(BaseException):
    """Ends the trace of a branch in which a replica merges values: all replicas must trace it together."""


class _Joint(local):
    """How this thread traces branches together with other replicas; None where it is no replica."""

    def __init__(self) -> None:
        self.trace: Callable[[Any, Branches], Any] | None = None


joint = _Joint()
