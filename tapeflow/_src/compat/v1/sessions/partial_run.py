"""A run in parts: `Session.partial_run` feeds and computes some tensors at a time, and no operation runs twice."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.sessions.fetches import Fetches
from tapeflow._src.compat.v1.sessions.stepwise import StepwiseRun
from tapeflow._src.types.errors import InvalidArgumentError


class PartialRun:
    """What was promised at the beginning, and what of it is fed and fetched so far."""

    def __init__(self, graph: Any, wanted: Fetches, feeds: list[Any]) -> None:
        self._steps = StepwiseRun(graph)
        self._fetch_by_key = {_key(tensor): tensor for tensor in wanted.tensors}
        self._operations = set(wanted.operations)
        self._feed_by_key = {_key(tensor): tensor for tensor in feeds}
        self._fed: set[Any] = set()
        self._fetched: set[Any] = set()

    def go_on(self, wanted: Fetches, feeds: list[tuple[Any, Any]]) -> list[Any]:
        """The values of tensors that were not fetched yet, with the values fed now and before."""
        for tensor, value in feeds:
            self._check(tensor, self._feed_by_key, self._fed, "feed", "fed")
            self._fed.add(_key(tensor))
            self._steps.feed(tensor, value)
        for tensor in wanted.tensors:
            self._check(tensor, self._fetch_by_key, self._fetched, "fetch", "fetched")
        if not set(wanted.operations) <= self._operations:
            raise InvalidArgumentError.of("A target operation was not specified in partial_run_setup.")
        results = self._steps.compute(wanted.tensors, wanted.operations)
        self._fetched.update(map(_key, wanted.tensors))
        return results

    @staticmethod
    def _check(tensor: Any, promised: dict[Any, Any], done: set[Any], noun: str, participle: str) -> None:
        name = getattr(tensor, "name", None)
        if _key(tensor) in done:
            raise InvalidArgumentError.of(f"The {noun} {name} has already been {participle}.")
        if _key(tensor) not in promised:
            raise InvalidArgumentError.of(f"The {noun} {name} was not specified in partial_run_setup.")


def _key(tensor: Any) -> Any:
    place = _core.place_of(tensor)
    return id(tensor) if place is None else place[1]
