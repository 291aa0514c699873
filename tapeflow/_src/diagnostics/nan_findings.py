"""Values that are not finite as findings: where they came from, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.frames import user_frames
from tapeflow._src.diagnostics.nan_origin import NanOrigins, Origin, is_finite
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind

# For a value that the target does not use, as it is finite.
_CHOOSE_FIRST = " With tf.where, choose the argument first: the branch that is not taken has a gradient, too."
_STOPPED = "a relu that is closed there and stops it; TensorFlow multiplies by 0 and makes NaN of it"


class NanFindings:
    """Asks for the origin when a target, a gradient or a fetched value is not finite. `report` is given findings."""

    def __init__(self, report: Callable[[Finding | None], None], found: Callable[[], list[Finding]]) -> None:
        self._report, self._found = report, found
        self.origins = NanOrigins()
        self.ask_copy: Callable[[], Finding | None] = lambda: None  # which ran through what graphs computed unseen
        self.step = 0
        self.place: tuple[str, int] | None = None  # the line that asks for the gradient
        self._last_finite: dict[tuple[str, int] | None, int] = {}  # by that line: the last step without such values

    def see_step(
        self, tape: Any, tensors: list[Any], values: list[Any], sources: list[Any], gradients: list[Any]
    ) -> bool:
        """Reports the origin of NaNs and infinities among targets and gradients; whether there were any."""
        bad = [t for t, v in zip([t for t in tensors if t.dtype.is_floating], values) if not np.isfinite(v).all()]
        named = None
        if not bad:
            for source, gradient in zip(sources, gradients):
                dense = getattr(gradient, "values", gradient) if gradient is not None else None
                if dense is not None and dense.dtype.is_floating and not np.isfinite(dense.numpy()).all():
                    bad.append(dense)
                    named = source
        if not bad:
            self.see_finite_step()
            if self.origins.stopped_in_step is not None:
                self._add_origin(self.origins.stopped_in_step, _STOPPED)
            return False
        if (unseen := self.ask_copy()) is not None:
            self._report(unseen)
            return True
        origin, reached = self.origins.of(bad[0]), "the target" if named is None else "a gradient"
        if origin is not None and origin.kind == "data":
            held = [*tape.watched_variables(), *(variable_behind(s) for s in sources)]
            spoiled = next((v for v in held if isinstance(v, _core.Variable) and not is_finite(v)), None)
            if spoiled is not None:
                holder = f"variable {name_of_variable(spoiled, user_frames())}"
                self._add_origin(self.origins.of_update(origin) or origin, reached, spoiled, holder)
                return True
        self._add_origin(origin, reached, named)
        return True

    def see_finite_step(self) -> None:
        """A step whose target and gradients are finite."""
        self._last_finite[self.place] = self.step

    def was_left_out(self, finding: Finding) -> bool:
        """Whether gradients that were not finite never got into the variables: later steps at that line are finite."""
        asked_at = finding.evidence.get("asked_at")
        backward = finding.kind in ("nan", "infinity") and finding.evidence.get("backward")
        if not backward or asked_at is None or finding.severity != "severe":
            return False
        return bool(self._last_finite.get(tuple(asked_at), -1) > finding.evidence["step"])

    def see_unfinished_step(self, failed: bool) -> None:
        """A step that ended before its gradient: by an error, or because the program saw the NaN itself."""
        fresh = [o for o in self.origins.origins[self.origins.step_start :] if not o.on_purpose]
        found = next((o for o in fresh if o.kind != "infinity"), None) or (fresh[0] if failed and fresh else None)
        self._add_origin(found, "a value of a step that ended before its gradient")

    def _add_origin(self, origin: Origin | None, reached: str, source: Any = None, holder: str = "") -> None:
        poisoned = any(f.kind in ("nan", "infinity", "bad-data") for f in self._found())
        if origin is None or (origin.kind == "data" and poisoned):
            return
        of_infinity = origin.kind == "nan" and any(math.isinf(n) for n in origin.operands)
        if holder and of_infinity and poisoned:
            return  # an optimizer went on with the infinity that is reported already
        step = self.step
        where = f" at position {list(origin.position)}" if origin.position else ""
        given = f" of {', '.join(f'{n:g}' for n in origin.operands)}" if origin.operands else ""
        if origin.kind == "data":
            what = "NaN" if origin.counts[2] else "an infinity"
            message = f"the {holder or 'data'} given to {origin.work} already had {what}{where}; it reaches {reached}"
            kind = "bad-data"
        else:
            what = "NaN" if origin.kind == "nan" else "infinity"
            through = f" through the {holder}" if holder else ""
            message = f"{origin.work} makes {what}{origin.inner}{given}{where}; it reaches {reached}{through}"
            kind = "nan" if origin.kind == "nan" else "infinity"
        row = origin.position[0] if origin.position else None
        self._report(
            Finding(
                kind,
                "warning" if reached is _STOPPED else "severe",
                message,
                origin.file,
                origin.line,
                variable=None if source is None else name_of_variable(source, user_frames()),
                evidence={
                    "operation": origin.operation, "backward": origin.gradient_of is not None, "step": step, "row": row,
                    "asked_at": None if self.place is None else list(self.place),
                    "position": list(origin.position), "operands": [_number(n) for n in origin.operands],
                    "negative_infinities": origin.counts[0], "infinities": origin.counts[1], "nans": origin.counts[2],
                },
                remedy=origin.remedy + _CHOOSE_FIRST * (reached == "a gradient" and origin.gradient_of is None),
                confidence=0.95,
            )
        )  # fmt: skip

    def see_values(self, values: list[Any], gradients: list[Any]) -> None:
        """What a run of a session gave, and the gradients that it computed: where what is not finite came from."""
        reached = [("a fetched value", value) for value in values] + [("a gradient", value) for value in gradients]
        for where, value in reached:
            array = np.asarray(value)
            if array.dtype.kind == "f" and not np.isfinite(array).all() and self.origins.origins:
                fresh = self.origins.origins[self.origins.step_start :] or self.origins.origins
                self._add_origin(next((o for o in fresh if o.kind != "infinity"), fresh[0]), where)
                return
        self.origins.begin_step()


def _number(x: float) -> float | str:
    return x if math.isfinite(x) else str(x)
