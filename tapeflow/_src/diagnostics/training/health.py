"""How training goes over the steps: what the losses and the variables say about it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.training.assignments import dot, norm
from tapeflow._src.diagnostics.training.variable_health import VariableHealth
from tapeflow._src.diagnostics.variable_names import rate_line

_MOST_STEPS = 5_000
_COMPARED = 40  # variables whose steps are compared with the gradients of others
FEWEST_STEPS = 8  # for any statement about the course of training


THRESHOLDS = {
    "vanishing: first layer by last": 1e-4, "exploding: first layer by last": 1e5, "saturated: share of units": 0.9,
    "dead: steps with a zero gradient": 3, "too low: update by weight": 1e-5, "too high: loss by its beginning": 5,
    "statements about the course: steps": FEWEST_STEPS,
}  # fmt: skip


class Course:
    """The course of one training step of the program: all calls of gradient at one line, with scalar targets."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self.losses: list[float] = []
        self.variables: dict[int, VariableHealth] = {}
        self.saturation: dict[tuple[int, str, str, int], list[float]] = {}  # by number, name and line
        self.gates: set[int] = set()  # numbers of those that are multiplied with something else
        self.saturating: dict[int, tuple[str, str, tuple[str, int]]] = {}  # by number: operation, activation, line
        self.learning_rate_place: tuple[str, int] | None = None
        self.learning_rate: float | None = None
        self.last_rate: float | None = None  # in the last step that was looked at
        self.applied: set[int] = set()  # the variables that optimizers changed, by id
        self.changed_at: dict[int, tuple[str, int]] = {}  # by variable: the line that changed it last
        self.astray: dict[tuple[int, int], int] = {}  # steps in which one variable moved by the gradient of another
        self.is_error = False  # the target is a sum of errors
        self.behind: set[int] = set()  # the trainable variables behind the first target, by id
        self.asked: set[int] = set()  # those that its tape was asked for
        self.is_for_its_own_sake = False  # a derivative of a derivative, in a program without an optimizer
        self.applied_between: set[int] = set()  # those that optimizers changed between two steps of this course
        self._last_step = 0  # its number among the steps of all courses
        self.is_nested = False  # another tape recorded one of the first calls of gradient

    def add_loss(self, value: float) -> None:
        if len(self.losses) < _MOST_STEPS:
            self.losses.append(value)

    def see_applied(self, steps: int, applied_step: dict[int, int]) -> None:
        """Which variables optimizers changed since the last step of this course; `steps` counts those of all."""
        if len(self.losses) > 1 and len(self.applied_between) < len(self.variables):
            self.applied_between |= {key for key in self.variables if applied_step.get(key, 0) > self._last_step}
        self._last_step = steps

    def as_dict(self) -> dict[str, Any]:
        """As report.json holds it."""
        file, line = self.place
        losses = self.losses or [math.nan]
        return {
            "file": file,
            "line": line,
            "steps": len(self.losses),
            "first_loss": losses[0],
            "last_loss": losses[-1],
            "learning_rate": self.learning_rate,
            "noise_scale": self.noise_scale(),
        }

    def noise_scale(self) -> float | None:
        """The variance of the gradients of the first steps by the square of their mean: in batches, how many it takes
        until their noise is as small as their mean. None if it is not known.
        """
        dense = [v for v in self.variables.values() if not v.sparse and v.summed_steps >= 4]
        if not dense or len({v.summed_steps for v in dense}) != 1:
            return None
        count = dense[0].summed_steps
        mean_square = sum(v.square_sum for v in dense) / count
        square_of_mean = sum(v.squared_mean_gradient() for v in dense)
        variance = (mean_square - square_of_mean) * count / (count - 1)
        return max(variance, 0.0) / square_of_mean if square_of_mean > 0 else None

    def findings(self) -> Iterator[Finding]:
        """Statements about the course, if it is long enough for any."""
        if any(not math.isfinite(x) for x in self.losses):
            yield from self._burst() or self._diverging()
            return
        yield from self._unmoved()
        astray = list(self._moved_by_others())
        yield from astray
        uphill = [] if astray else list(self._uphill())
        yield from uphill
        yield from self._summed()
        diverging = [] if uphill or astray else list(self._diverging())
        saturated = list(self._saturated())
        for f in self._zeros():
            behind = f.kind == "zero-gradient" and saturated
            if not behind and not (diverging and f.evidence.get("first_bad_step")):
                yield f
        yield from self._equal_units()
        yield from diverging
        if not diverging:
            yield from self._too_slow()
            yield from self._spikes()
            yield from self._plateau()
        yield from self._vanishing()
        yield from saturated

    # ---- the loss

    def _where(self) -> tuple[str, int]:
        """The line of the learning rate; of one that the program writes into its own update, that update."""
        own = [self.changed_at[key] for key in self.variables if key in self.changed_at and key not in self.applied]
        return self.learning_rate_place or (rate_line(*min(own)) if own else self.place)

    def _diverging(self) -> Iterator[Finding]:
        finite = [x for x in self.losses if math.isfinite(x)]
        exploded = len(finite) < len(self.losses)
        if len(finite) < (2 if exploded else 6) or len(self.variables) == 0 or min(finite) < 0:
            return
        first, best, last = abs(finite[0]), min(finite), finite[-1]
        tail = finite[-max(3, len(finite) // 4) :]
        rises = all(a < b for a, b in pairwise(finite[-3:]))
        steeper = any(v.norms and v.norms[-1] > 3 * v.norms[0] > 0 for v in self.variables.values())
        growth = 100 if len(finite) > 2 else 1000
        grows = last > growth * (first + 1e-6) and last == max(finite) and rises and steeper
        high = min(tail) > 5 * (first + 1e-6) and min(tail) > 5 * abs(best)
        stays_high = len(finite) >= FEWEST_STEPS and high and steeper and self._overshoots()
        swings = _swings(finite) if len(finite) >= 20 else False
        leaps = self._leaps(finite)
        stays_high = stays_high or (min(tail) > 2 * (first + 1e-6) and self._has_collapsed())
        if grows or stays_high or swings or leaps:
            shape = "grows" if grows or stays_high else "swings to and fro without falling"
            if leaps and not (grows or stays_high or swings):
                shape = f"jumps to {max(finite[1:12]):.4g} when the first steps make weights {leaps:.0f} times as large"
            rate = f" (it is {self.learning_rate:g})" if self.learning_rate is not None else ""
            yield Finding(
                "learning-rate-too-high",
                "severe" if grows or stays_high else "warning",
                f"the loss {shape}: from {finite[0]:.4g} to {last:.4g} in {len(self.losses)} steps; the steps are too "
                f"large{rate}",
                *self._where(),
                evidence={"first": finite[0], "best": best, "last": last, "steps": len(self.losses)},
                remedy="Lower the learning rate by a factor of 10, or clip the gradients (clipnorm=1.0).",
                confidence=0.85 if grows else 0.75,
            )

    def _burst(self) -> list[Finding]:
        """The first gradients were so large that the loss is not finite after a step or two."""
        finite = [x for x in self.losses if math.isfinite(x)]
        kernels = [v for v in self.variables.values() if len(v.shape) >= 2 and v.norms and not v.sparse]
        ratios = sorted(v.first_ratio for v in kernels)
        if not finite or len(finite) > 2 or not kernels or ratios[len(ratios) // 2] < 1e3:
            return []
        recurrent = [v for v in kernels if not v.used_once and len(set(v.shape)) == 1]  # a network through time
        ratio = ratios[len(ratios) // 2]
        large = f"{ratio:.1e} times as large as the weights" if math.isfinite(ratio) else "infinite"
        deep, v = len(kernels) >= 4 or bool(recurrent), [*recurrent, *kernels][0]
        return [
            Finding(
                "exploding-gradients" if deep else "learning-rate-too-high",
                "severe",
                f"the first gradients are {large} (the loss is {finite[0]:.4g}), and "
                f"after step {len(finite) - 1} the loss is not finite",
                *((v.activation_place or self.place) if deep else self._where()),
                variable=v.name,
                evidence={"gradient_by_weight": ratio, "first": finite[0], "first_bad_step": len(finite)},
                remedy="Use smaller initial weights (Glorot or He), normalise the data, clip the gradients "
                "(clipnorm=1.0), or lower the learning rate.",
                confidence=0.8,
            )
        ]

    def compare_directions(self) -> None:
        """Notes which variables just moved along the gradient of another one, and not along their own."""
        moved = [(key, v) for key, v in self.variables.items() if v.last_step is not None and 2 <= v.calls <= 8]
        for key, v in moved[:_COMPARED]:
            if v.last_step is None or v.gradient_before is None or v.last_step.size < 2:
                continue
            if _alignment(v.last_step, v.gradient_before) > 0.98:
                continue
            for other, o in self.variables.items():
                if other == key or o.shape != v.shape or o.gradient_before is None:
                    continue
                if _alignment(v.last_step, o.gradient_before) > 0.9999:
                    self.astray[key, other] = self.astray.get((key, other), 0) + 1

    def _moved_by_others(self) -> Iterator[Finding]:
        for (key, other), steps in self.astray.items():
            v, o = self.variables[key], self.variables[other]
            if steps >= 3 and key not in self.applied:  # what optimizers apply is looked at itself
                yield Finding(
                    "applied-to-wrong",
                    "severe",
                    f"{v.name} is moved by the gradient of {o.name}",
                    *self.changed_at.get(key, self.place),
                    variable=v.name,
                    evidence={"gradient_of": o.name, "applied_to": v.name, "steps": steps},
                    remedy="Keep the order of the variables that tape.gradient was given.",
                    confidence=0.9,
                )
                return

    @property
    def ascends(self) -> bool:
        """Whether the variables are moved along the gradient: the target is to be large. Momentum may overshoot."""
        up, down = (sum(getattr(v, way) for v in self.variables.values()) for way in ("uphill", "downhill"))
        return bool(up > 2 * down)

    def _uphill(self) -> Iterator[Finding]:
        """An error grows because the variables are moved along its gradient.

        Attacks do so on purpose: on what other variables predict, or by the sign of the gradient.
        """
        if not self.behind <= self.asked or any(v.sign_steps >= 3 for v in self.variables.values()):
            return
        moved = [(key, v) for key, v in self.variables.items() if v.uphill + v.downhill >= 4]
        if not self.is_error or not moved or self.losses[-1] <= self.losses[0] or any(v.downhill for _, v in moved):
            return
        key, v = moved[0]
        yield Finding(
            "wrong-sign",
            "severe",
            f"{v.name} is moved along its gradient, and the loss grows from {self.losses[0]:.4g} to "
            f"{self.losses[-1]:.4g}",
            *self.changed_at.get(key, self.place),
            variable=v.name,
            evidence={"steps": v.uphill, "first": self.losses[0], "last": self.losses[-1]},
            remedy="Subtract the gradient: variable.assign_sub(learning_rate * gradient).",
            confidence=0.9,
        )

    def _summed(self) -> Iterator[Finding]:
        for key, v in self.variables.items():
            if v.follows_sum:
                yield Finding(
                    "accumulated-gradients",
                    "severe",
                    f"{v.name} is moved by the sum of the gradients of all steps: the sum is never set to zero",
                    *self.changed_at.get(key, self.place),
                    variable=v.name,
                    evidence={"steps": len(v.sum_factors)},
                    remedy="Set the accumulators to zero after each update.",
                    confidence=0.85,
                )
                return

    def _overshoots(self) -> bool:
        """Whether about half of the steps, or more, go past the minimum along their own direction."""
        moved = sum(v.uphill + v.downhill for v in self.variables.values())
        return moved == 0 or sum(v.overshoots for v in self.variables.values()) > 0.4 * moved

    def _has_collapsed(self) -> bool:
        """Whether the first steps led to where all gradients are exactly zero."""
        dense = [v for v in self.variables.values() if not v.sparse]
        return bool(dense) and all(FEWEST_STEPS <= v.zero_run < v.calls and v.calls - v.zero_run <= 5 for v in dense)

    def _leaps(self, losses: list[float]) -> float:
        """By how much the first steps made random weights larger, if the loss then jumped; else 0."""
        grown = sorted(v.growth for v in self.variables.values() if len(v.shape) >= 2 and not v.sparse)
        factor = grown[len(grown) // 2] if grown else 1.0
        jumped = max(losses[1:12], default=0.0) > 3 * abs(losses[0]) > 1e-6
        return factor if factor > 4 and jumped else 0.0

    def _too_slow(self) -> Iterator[Finding]:
        if len(self.losses) < 20 or not self.variables:
            return
        first, last = np.mean(self.losses[:3]), np.mean(self.losses[-3:])
        ratios = [np.median(v.update_ratios) for v in self.variables.values() if len(v.update_ratios) >= 5]
        norms = [np.median(v.norms) for v in self.variables.values() if v.norms]
        if not ratios or not any(v.changed for v in self.variables.values()) or max(norms, default=0.0) < 1e-6:
            return
        moved = max(sum(v.update_ratios) for v in self.variables.values())
        if self._warms_up():
            return
        if moved < 1e-4 or (max(ratios) < 1e-5 and abs(first - last) < 0.01 * abs(first)) or self._fades():
            yield self._low_rate(float(max(ratios)), float(first), float(last))

    def _warms_up(self) -> bool:
        """Whether the learning rate is on its way up, or the steps still grow more than the gradients do."""
        if self.last_rate is not None and self.learning_rate is not None and self.last_rate > 1.1 * self.learning_rate:
            return True
        growing = []
        for v in self.variables.values():
            quarter = min(len(v.update_ratios), len(v.norms)) // 4
            if quarter < 2:
                continue
            before, last = slice(-2 * quarter, -quarter), slice(-quarter, None)
            steps = float(np.median(v.update_ratios[last])) / max(float(np.median(v.update_ratios[before])), 1e-30)
            slopes = float(np.median(v.norms[last])) / max(float(np.median(v.norms[before])), 1e-30)
            growing.append(steps > 1.2 and steps > 1.2 * slopes)
        return bool(growing) and sum(growing) > len(growing) / 2

    def _fades(self) -> bool:
        """Whether the steps have become far smaller than the gradients have: the learning rate decayed too fast."""
        fading = []
        for v in self.variables.values():
            half = len(v.update_ratios) // 2
            if half < 5 or not v.norms or v.weight_norm == 0:
                continue
            late, early = max(v.update_ratios[half:]), max(v.update_ratios[:half])
            steep = float(np.median(v.norms[len(v.norms) // 2 :])) > 0.1 * v.norms[0] > 0
            fading.append(steep and late < 1e-7 and early > 1e-5)
        return bool(fading) and all(fading)

    def _low_rate(self, ratio: float, first: float, last: float) -> Finding:
        rate = f" (it is {self.learning_rate:g})" if self.learning_rate is not None else ""
        return Finding(
            "learning-rate-too-low",
            "warning",
            f"weights change by at most {ratio:.1e} of their size in a step, and the loss went from {first:.5g} to "
            f"{last:.5g} in {len(self.losses)} steps{rate}",
            *self._where(),
            evidence={"largest_update_ratio": ratio, "first": first, "last": last},
            remedy="Raise the learning rate by 10 to 100: updates of about 1e-3 of the weights are usual.",
            confidence=0.8,
        )

    def _spikes(self) -> Iterator[Finding]:
        for step in range(10, len(self.losses) - 1):
            before = sorted(abs(x) for x in self.losses[step - 10 : step])
            middle, range_ = before[5], before[8] - before[1]
            if abs(self.losses[step]) > 20 * (middle + range_) + 1e-3:
                yield Finding(
                    "loss-spike",
                    "hint",
                    f"the loss jumps from {middle:.4g} to {self.losses[step]:.4g} at step {step}",
                    *self.place,
                    evidence={"step": step, "before": middle, "loss": self.losses[step]},
                    remedy="Look at the batch of that step, or clip the gradients.",
                    confidence=0.7,
                )
                return

    def _plateau(self) -> Iterator[Finding]:
        """The loss stands still, not far below its beginning, while the weights go on moving."""
        if len(self.losses) < 40 or not any(v.changed for v in self.variables.values()):
            return
        tail = np.asarray(self.losses[-max(20, len(self.losses) // 3) :])
        first, level = abs(float(np.mean(self.losses[:3]))), abs(float(np.mean(tail)))
        if level > 0.5 * first and level > 1e-3 and float(np.ptp(tail)) < 0.01 * level:
            since = next(i for i, x in enumerate(self.losses) if abs(abs(x) - level) < 0.02 * level)
            yield Finding(
                "plateau",
                "hint",
                f"the loss stands at {level:.4g} since step {since}",
                *self.place,
                evidence={"level": level, "first_bad_step": since, "steps": len(self.losses)},
                remedy="Try another learning rate or initialisation, and check that the labels depend on the inputs.",
                confidence=0.6,
            )

    # ---- the variables

    def _unmoved(self) -> Iterator[Finding]:
        """Gradients are computed step after step, but no weight changes."""
        watched = [v for v in self.variables.values() if v.calls >= 4 and v.last is not None]
        if len(self.losses) < 4 or not watched or any(v.changed for v in watched) or self.is_for_its_own_sake:
            return
        sparse = {key for key, v in self.variables.items() if v.sparse}
        if max(max(v.norms) for v in watched) == 0 or len(watched) + len(sparse) != len(self.variables):
            return
        if sparse & self.changed_at.keys():
            return
        if self.learning_rate is not None and self.learning_rate < 1e-5:
            yield self._low_rate(0.0, self.losses[0], self.losses[-1])
            return
        if self.applied.intersection(self.variables) or (self.applied and self.is_nested):
            yield from self._undone()
            return
        which = "none of these variables" if self.applied else "no variable"
        yield Finding(
            "never-applied",
            "severe",
            f"gradients are computed in {len(self.losses)} steps, but {which} changes: they are not applied",
            *self.place,
            evidence={"steps": len(self.losses), "variables": [v.name for v in watched[:5]]},
            remedy="optimizer.apply_gradients(zip(gradients, variables))",
            confidence=0.8,
        )

    def _undone(self) -> Iterator[Finding]:
        """Optimizers change the variables, but at the next step they have their old values."""
        rate = self.learning_rate
        for key, v in self.variables.items():
            size = v.weight_norm / max(1.0, np.sqrt(np.prod(v.shape)))
            if key not in self.applied_between or rate is None or rate * float(np.median(v.norms)) < 1e-4 * size:
                return
        yield Finding(
            "weights-changed",
            "severe",
            "an optimizer changes the variables, but at the next step they have their old values again",
            *self.place,
            evidence={"steps": len(self.losses)},
            remedy="Look for set_weights, assign or a restored checkpoint inside the loop.",
            confidence=0.85,
        )

    def _is_solved(self, steps: int) -> bool:
        """Whether the loss was zero in the last steps, as that of a margin is when all examples keep it."""
        first = abs(self.losses[0]) if self.losses else 0.0
        return bool(self.losses) and max(map(abs, self.losses[-steps:])) <= 1e-6 * first

    def _zeros(self) -> Iterator[Finding]:
        zero = [v for v in self.variables.values() if v.steps >= 3 and v.zero_steps == v.steps]
        dead = [v for v in zero if v.activation is not None and "relu" in v.activation[0]]
        fires = not any(v.silent_units == 1.0 for v in dead)
        if zero and fires and self._is_solved(len(self.losses)):  # a margin that all examples keep, or a factor of zero
            what = f"the loss is zero in all {len(self.losses)} steps, and so are the gradients"
            yield replace(self._dead(zero[0], 1.0), kind="zero-gradient", severity="hint", message=what)
            return
        silent = [v for v in dead if v.silent_units == 1.0]
        for v in silent[:1] or dead or zero:  # what lies before and behind dead units gets nothing either
            yield self._dead(v, 1.0)
        died = [v for v in self.variables.values() if v not in zero and v.zero_run >= FEWEST_STEPS and not v.sparse]
        died = [v for v in died if not self._is_solved(v.zero_run)]
        for v in [v for v in died if v.activation is not None and "relu" in v.activation[0]]:
            yield self._dead(v, 1.0, v.calls - v.zero_run)
        for v in self.variables.values():
            if v.sparse or v.calls < 3 or v in zero or v in died:
                continue
            if (
                v.never_zero is not None and v.calls >= FEWEST_STEPS and v.never_zero.size >= 8
                and v.never_zero.mean() <= 0.1 and v.activation is not None and "relu" in v.activation[0]
            ):  # fmt: skip
                yield self._dead(v, 1 - float(v.never_zero.mean()))

    def _dead(self, v: VariableHealth, share: float, since: int = 0) -> Finding:
        silent = since > 0 or share < 1 or v.silent_units in (None, 1.0)
        behind = v.activation if silent and v.activation and "relu" in v.activation[0] else None
        place = (v.activation_place if behind else v.place) or self.place
        when = f"all steps since step {since}" if since else "its only step" if v.steps == 1 else f"all {v.steps} steps"
        what = f"the units of {behind[0]} behind it never fire" if behind else "as if the loss did not depend on it"
        return Finding(
            "dead-units" if behind else "zero-gradient",
            "hint" if not behind and self._may_cancel(v) else "severe" if share == 1 else "warning",
            f"{share:.0%} of the gradient of {v.name} was exactly zero in {when}: {what}",
            *place,
            variable=v.name,
            evidence={"share": share, "steps": v.steps, "first_bad_step": since},
            remedy="Use a smaller learning rate, He initialisation and no large negative bias, or tf.nn.leaky_relu."
            if behind
            else "Look for a factor of zero, a clip that is always active, or a mask that hides everything.",
            confidence=0.85,
        )

    def _may_cancel(self, v: VariableHealth) -> bool:
        """Whether a zero may be a sum: of a variable that is used twice, or is added to what gets gradients."""
        layer = v.name.rpartition("/")[0] if len(v.shape) <= 1 else ""
        others = [o for o in self.variables.values() if o is not v and o.zero_steps < o.steps]
        beside = any(layer and o.name.rpartition("/")[0] == layer for o in others)
        return not v.used_once or beside or any(o.index in v.added_to for o in others)

    def _equal_units(self) -> Iterator[Finding]:
        for v in self.variables.values():
            if v.equal_units >= max(2, v.values_compared - 1):
                yield Finding(
                    "symmetric-weights",
                    "severe",
                    f"all {v.shape[-1]} units of {v.name} have the same weights and gradients: they stay copies of one",
                    *(v.place or self.place),
                    variable=v.name,
                    evidence={"steps": v.calls, "units": v.shape[-1]},
                    remedy="Initialise with random numbers: tf.random.normal(shape, stddev=0.1), or "
                    "kernel_initializer='glorot_uniform'.",
                    confidence=0.9,
                )

    def _vanishing(self) -> Iterator[Finding]:
        kernels = [v for v in self.variables.values() if len(v.shape) >= 2 and v.norms and not v.sparse]
        if len(kernels) < 4 or any(v.calls < 2 for v in kernels):
            return
        kernels.sort(key=lambda v: v.first_use)
        first, last = kernels[0], kernels[-1]
        early = [float(np.median(v.norms[:3])) for v in kernels]  # before the last layer has settled
        sizes = next((s for s in ([float(np.median(v.norms)) for v in kernels], early) if _vanishes(s)), early)
        low, high = sizes[0], sizes[-1]
        if _vanishes(sizes):
            kind, text, v = "vanishing-gradients", "shrinks", first
            advice = "Use relu or gelu, residual connections, or normalisation between the layers."
        elif min(low, float(np.median(first.norms))) > 1e5 * max(high, float(np.median(last.norms))) > 0:
            kind, text, v = "exploding-gradients", "grows", first
            advice = "Use smaller initial weights, normalisation, or clip the gradients (clipnorm=1.0)."
        elif self._is_faint(kernels):
            kind, text, v = "vanishing-gradients", "shrinks", first
            advice = "Use larger initial weights (Glorot or He), residual connections, or normalisation."
        else:
            return
        place = v.activation_place or self.place
        yield Finding(
            kind,
            "warning",
            f"the gradient {text} from {high:.1e} at {last.name} to {low:.1e} at {first.name} (root mean square)",
            *place,
            variable=v.name,
            evidence={"first": low, "last": high, "layers": len(kernels)},
            remedy=advice,
            confidence=0.85,
        )

    def _is_faint(self, kernels: list[VariableHealth]) -> bool:
        """Whether the loss, though not small, hardly depends on any of the layers in the first steps."""
        loss = abs(self.losses[0])
        return loss > 1e-3 and all(v.first_influence < 1e-3 * loss for v in kernels)

    def _saturated(self) -> Iterator[Finding]:
        for (number, name, file, line), shares in self.saturation.items():
            # A gate may be open on purpose, as that of an LSTM that shall not forget, but not all of them.
            place = (name, file, line)
            gates = [s for (n, *other), s in self.saturation.items() if n in self.gates and tuple(other) == place]
            beside = gates if number in self.gates else [shares]
            if all(len(s) >= 3 and min(s) > 0.85 and np.mean(s) > 0.9 for s in beside):
                yield Finding(
                    "saturated-units",
                    "warning",
                    f"{np.mean(shares):.0%} of the results of {name} are at its limits, where its gradient vanishes",
                    file,
                    line,
                    evidence={"share": float(np.mean(shares)), "steps": len(shares)},
                    remedy="Scale inputs and weights down (normalise the data, Glorot initialisation), or use relu.",
                    confidence=0.85,
                )


def _swings(losses: list[float]) -> bool:
    """Up and down in turn with no progress, and far more than noise: the sign of steps that are too large."""
    tail = np.asarray(losses[len(losses) // 2 :])
    steps = np.diff(tail)
    turns = np.mean(np.sign(steps[1:]) != np.sign(steps[:-1])) if len(steps) > 2 else 0.0
    start = np.mean(np.abs(losses[:3]))
    return bool(turns > 0.9 and np.mean(np.abs(steps)) > 0.5 * start and np.mean(tail) > start)


def _vanishes(sizes: list[float]) -> bool:
    """Whether gradients, from the first layer to the last, are far smaller at the first one."""
    return 0 < sizes[0] < 1e-4 * sizes[-1] and _shrinks_by_layers(sizes)


def _shrinks_by_layers(sizes: list[float]) -> bool:
    """Whether the way from large to small takes several layers: one small gradient alone, such as that of an
    attention's query, has other reasons.
    """
    logs = np.log(np.maximum(sizes, 1e-30))
    return float(np.max(np.diff(logs))) < 0.7 * float(logs[-1] - logs[0])


def _alignment(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The absolute cosine of the angle between two vectors; 0 if one of them is zero."""
    size = norm(a) * norm(b)
    return abs(dot(a, b)) / size if size > 0 else 0.0
