"""Where NaNs and infinities came from: traces every result that is not finite back to the operation that made it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.diagnostics.source_line import place_text, source_line

_MOST_TRACKED = 20_000
_OVERFLOW = "The result overflows: scale or clip the arguments, or compute with logarithms or in float64."


class Origin(NamedTuple):
    """The operation that made the first value that is not finite, on one chain of them."""

    operation: str  # "Log"
    function: str  # "math.log"
    gradient_of: str | None
    file: str
    line: int
    kind: str  # "nan", "infinity", or "data" for a value that was not finite when the program brought it in
    position: tuple[int, ...]  # of the first such element
    operands: list[float]  # the operands' elements there, of operations that act element by element
    counts: tuple[int, int, int]
    order: int
    is_mask: bool  # of data: infinities beside at most one other number

    @property
    def name(self) -> str:
        return self.function.rpartition(".")[2]

    @property
    def on_purpose(self) -> bool:
        """Whether the program brought in infinities as a mask does: no NaN, and no other numbers but one."""
        return self.kind == "data" and not self.counts[2] and self.is_mask

    @property
    def work(self) -> str:
        """What was computed, in words: "the gradient of tf.sqrt", "division", "tf.exp"."""
        if self.gradient_of:
            return f"the gradient of {self.gradient_of}"
        named = f"tf.{self.function}" if self.name.islower() else f"the operation {self.operation}"
        return primitives.facts_by_name.get(self.operation, {}).get("symbol") or named

    @property
    def inner(self) -> str:
        """Of a gradient: the public operation in its rule whose operands are known."""
        if not self.gradient_of or not self.operands or not self.name.islower():
            return ""
        return f" in {primitives.facts_by_name.get(self.operation, {}).get('symbol') or f'tf.{self.function}'}"

    def __str__(self) -> str:
        what = {"nan": "NaN", "infinity": "an infinity", "data": "data that is not finite"}[self.kind]
        work = self.work
        given = f" from {', '.join(f'{n:g}' for n in self.operands)}" if self.operands else ""
        where = f" at position {list(self.position)}" if self.position else ""
        verb = "was given" if self.kind == "data" else "made"
        return f"{work} {verb} {what}{self.inner}{given}{where} ({place_text(self.file, self.line)}). {self.remedy}"

    @property
    def remedy(self) -> str:
        if self.kind == "data":
            return "Remove or replace such rows: data = data[np.isfinite(data).all(axis=-1)]."
        facts = primitives.facts_by_name.get(self.operation, {})
        if self.gradient_of:
            forward = _facts_by_written_name().get(self.gradient_of, {})
            advice = forward.get("non_finite_gradient_advice") or forward.get("non_finite_advice")
            return (
                advice
                or facts.get("non_finite_advice")
                or "Keep the argument away from where the derivative is infinite."
            )
        advice = facts.get("non_finite_advice") or "Clip the arguments of the operation."
        return _OVERFLOW if self._overflows and "overflow" not in advice else advice

    @property
    def _overflows(self) -> bool:
        """Whether two operands, neither near zero, gave a result that is too large, as a power does."""
        far = all(1 <= abs(n) < float("inf") for n in self.operands)
        return self.kind == "infinity" and len(self.operands) == 2 and far


def _written_name(facts: dict[str, Any]) -> str:
    """What programs write for an operation: the name of its operator, or its public path."""
    return facts["symbol"] or f"tf.{facts['public_name']}"


@functools.cache
def _facts_by_written_name() -> dict[str, dict[str, Any]]:
    return {_written_name(facts): facts for facts in primitives.facts_by_name.values()}


class NanOrigins:
    """Receives every result that is not finite, and keeps for each the operation that began it."""

    def __init__(self, also: Callable[..., None] | None = None) -> None:
        self.check = _core.NumericsCheck(self._see, True)
        self._also = also  # called with the facts of each result that is not finite, and its origin
        self._origin_by_id: dict[int, Origin] = {}
        self._alive: list[Any] = []  # so that the ids stay theirs
        self.origins: list[Origin] = []
        self.step_start = 0  # how many origins there were when the step began
        self._last_gradient = 0  # and when a gradient was asked for the last time
        self.seen_in_step = 0  # results that were not finite
        self.stopped_in_step: Origin | None = None  # of what a closed relu let not pass

    def start(self) -> None:
        self.check.start()

    def stop(self) -> None:
        self.check.stop()

    def begin_step(self) -> None:
        self.step_start = len(self.origins)
        self.seen_in_step = 0
        self.stopped_in_step = None
        if len(self._alive) > _MOST_TRACKED:
            self._origin_by_id.clear()
            self._alive.clear()

    def of(self, tensor: Any) -> Origin | None:
        """Where a value that is not finite came from."""
        found = self._origin_by_id.get(id(tensor))
        if found is not None:
            return found
        fresh = self.origins[self.step_start :]
        return next((o for o in fresh if o.kind != "infinity"), None) or (fresh[0] if fresh else None)

    def end_step(self) -> None:
        """A gradient was asked for."""
        self._last_gradient = len(self.origins)

    def of_update(self, used: Origin) -> Origin | None:
        """What began between the last gradient and a use: the origin of a NaN that a variable has there."""
        between = [o for o in self.origins[self._last_gradient : max(used.order, self.step_start)] if o.kind != "data"]
        return next((o for o in between if o.kind == "nan"), None) or (between[0] if between else None)

    def mark(self, tensor: Any, origin: Origin) -> None:
        self._origin_by_id[id(tensor)] = origin
        self._alive.append(tensor)

    def _see(self, *facts: Any) -> None:
        operation, function, gradient_of, _, _, _, about, _, code, instruction, value, operands, copies_elements = facts
        self.seen_in_step += 1
        if not any(about[2]):  # the gradient of a relu that is closed wherever something is not finite
            self.stopped_in_step = self.stopped_in_step or self._origin_by_id.get(id(operands[0]))
            return
        if gradient_of in primitives.facts_by_name:
            gradient_of = _written_name(primitives.facts_by_name[gradient_of])
        before = [x for x in operands if not is_finite(x)]
        origin = next((o for x in _nan_first(before) if (o := self._origin_by_id.get(id(x))) is not None), None)
        on_purpose = origin is not None and origin.on_purpose
        if origin is None and before and not _has_nan(before) and _has_nan([value]):
            on_purpose = all(_is_mask(np.asarray(x.numpy(), np.float64)) for x in before)
        if origin is not None and before and len(operands) == 1 and _is_masked_out(operands[0], value):
            on_purpose = True
        if on_purpose and _has_nan([value]):  # an infinity that the program put in; here it becomes a NaN
            before = []
            origin = None
        if origin is None and before and copies_elements:
            return  # data on its way to its first use
        if origin is None:
            origin = self._make(operation, function, gradient_of, code, instruction, value, operands, before)
        if len(self._alive) < 2 * _MOST_TRACKED:
            self.mark(value, origin)
        if self._also is not None:
            self._also(origin, *facts)

    def _make(
        self, operation: str, function: str, gradient_of: str | None, code: Any, instruction: int, value: Any,
        operands: list[Any], before: list[Any],
    ) -> Origin:  # fmt: skip
        file, line = source_line(code, instruction)
        looked_at = before[0] if before else value
        array = np.asarray(looked_at.numpy(), np.float64)
        counts = (int(np.isneginf(array).sum()), int(np.isposinf(array).sum()), int(np.isnan(array).sum()))
        bad = np.argwhere(~np.isfinite(array))
        position = tuple(int(i) for i in bad[0]) if len(bad) else ()
        kind = "data" if before else "nan" if counts[2] else "infinity"
        aligned = not before and primitives.facts_by_name.get(operation, {}).get("elementwise", False)
        elements = (_element(x, array.shape, position) for x in operands[:3]) if aligned else ()
        numbers = [n for n in elements if n is not None]
        origin = Origin(
            operation, function, gradient_of, file, line, kind, position, numbers, counts, len(self.origins),
            _is_mask(array),
        )  # fmt: skip
        if len(self.origins) < _MOST_TRACKED:
            self.origins.append(origin)
        return origin


def _is_mask(array: np.ndarray[Any, Any]) -> bool:
    """Whether the finite numbers of an array are all the same one: data have several."""
    finite = array[np.isfinite(array)]
    return finite.size == 0 or bool((finite == finite[0]).all())


def _is_masked_out(x: Any, y: Any) -> bool:
    """Whether an operation takes -inf as a mask, as a softmax does, and gives NaN where all is masked.

    So it is if some elements of -inf become NaN and others do not.
    """
    given, made = np.asarray(x.numpy(), np.float64), np.asarray(y.numpy(), np.float64)
    if given.shape != made.shape or np.isnan(given).any() or np.isposinf(given).any():
        return False
    at_masked = np.isnan(made[np.isneginf(given)])
    return bool(at_masked.any() and not at_masked.all())


def is_finite(x: Any) -> bool:
    """Whether all elements of a tensor or variable are finite."""
    if not x.dtype.is_floating:
        return True
    return bool(np.isfinite(np.asarray(x.numpy(), np.float64)).all())


def _has_nan(tensors: list[Any]) -> bool:
    return any(np.isnan(np.asarray(x.numpy(), np.float64)).any() for x in tensors)


def _nan_first(tensors: list[Any]) -> list[Any]:
    return sorted(tensors, key=lambda x: not np.isnan(np.asarray(x.numpy(), np.float64)).any())


def _element(x: Any, shape: tuple[int, ...], position: tuple[int, ...]) -> float | None:
    """The element of an operand that belongs to a position of the result, if there is one."""
    if not x.dtype.is_floating and not x.dtype.is_integer:
        return None
    try:
        array = np.broadcast_to(np.asarray(x.numpy(), np.float64), shape)
    except ValueError:
        return None
    return float(array[position])
