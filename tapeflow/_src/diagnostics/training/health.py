"""How training goes over the steps: gradient norms, updates, zeros, vanishing and exploding, the loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapeflow._src.diagnostics.finding import Finding

_MOST_STEPS = 5_000
_COPIED_ELEMENTS = 4_000_000  # of all variables together: values are kept from one step to the next
FEWEST_STEPS = 8  # for any statement about the course of training


class VariableHealth:
    """The course of one variable: one entry per sampled step."""

    def __init__(self, name: str, variable: Any, made: tuple[str, int] | None) -> None:
        self.name, self.made = name, made
        self.shape = tuple(variable.shape)
        self.norms: list[float] = []
        self.update_ratios: list[float] = []
        self.zero_steps = 0
        self.calls = 0
        self.dtype, self.trainable = variable.dtype.name, bool(variable.trainable)
        self.zeros = 0.0  # share of exact zeros in the last gradient
        self.sparse = False
        self.never_zero: np.ndarray[Any, Any] | None = None  # per unit, whether its gradient was ever not zero
        self.equal_units = 0  # in how many steps all units had the same weights and the same gradient
        self.last: np.ndarray[Any, Any] | None = None
        self.changed = 0
        self.weight_norm = 0.0
        self.activation: tuple[str, str, int] | None = None  # the next activation behind it, and its line

    def see(self, gradient: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:
        """One more step."""
        self.calls += 1
        g = gradient.reshape(-1)
        self.norms.append(float(np.sqrt(np.vdot(g, g).real / g.size)) if g.size else 0.0)
        flat = value.reshape(-1)
        self.weight_norm = float(np.sqrt(np.vdot(flat, flat).real))
        zeros = g.size - np.count_nonzero(g)
        self.zeros = zeros / g.size if g.size else 0.0
        self.zero_steps += bool(zeros == g.size)
        if zeros and gradient.ndim >= 1 and gradient.shape[-1] > 1:
            alive = np.any(gradient.reshape(-1, gradient.shape[-1]) != 0, axis=0)
            self.never_zero = alive if self.never_zero is None else self.never_zero | alive
        elif gradient.ndim >= 1:
            self.never_zero = np.ones(gradient.shape[-1], bool)
        if self.calls <= 4 and gradient.ndim == 2 and gradient.shape[1] > 1 and zeros < g.size:
            same = np.ptp(value, axis=1).max() == 0 and np.allclose(gradient, gradient[:, :1], rtol=1e-5, atol=0)
            self.equal_units += bool(same)
        if self.last is not None:
            step = flat - self.last
            moved = float(np.sqrt(np.vdot(step, step).real))
            self.changed += moved > 0
            if self.weight_norm > 1e-3:
                self.update_ratios.append(moved / self.weight_norm)
        self.last = flat.copy() if value.size <= _COPIED_ELEMENTS else None

    def as_dict(self) -> dict[str, Any]:
        dead = None if self.never_zero is None else float(1 - self.never_zero.mean())
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "trainable": self.trainable,
            "layer": self.name.rpartition("/")[0] or None,
            "file": self.made[0] if self.made else None,
            "line": self.made[1] if self.made else None,
            "steps": self.calls,
            "grad_norms": _thinned(self.norms),
            "update_ratios": _thinned(self.update_ratios),
            "zeros": self.zeros,
            "dead_units": dead,
        }


def _thinned(series: list[float], most: int = 100) -> list[float | None]:
    every = max(1, -(-len(series) // most))
    return [None if not math.isfinite(x) else float(f"{x:.4g}") for x in series[::every]]


class Course:
    """The course of one training step of the program: all calls of gradient at one line, with scalar targets."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self.losses: list[float] = []
        self.variables: dict[int, VariableHealth] = {}
        self.saturation: dict[tuple[str, int, str], list[float]] = {}
        self.learning_rate_place: tuple[str, int] | None = None
        self.learning_rate: float | None = None
        self.applied: set[int] = set()  # the variables that optimizers changed, by id

    def add_loss(self, value: float) -> None:
        if len(self.losses) < _MOST_STEPS:
            self.losses.append(value)

    def findings(self) -> Iterator[Finding]:
        """Statements about the course, if it is long enough for any."""
        if any(not math.isfinite(x) for x in self.losses):
            yield from self._diverging()
            return
        yield from self._unmoved()
        yield from self._zeros()
        yield from self._equal_units()
        diverging = list(self._diverging())
        yield from diverging
        if not diverging:
            yield from self._too_slow()
            yield from self._spikes()
        yield from self._vanishing()
        yield from self._saturated()

    # ---- the loss

    def _where(self) -> tuple[str, int]:
        return self.learning_rate_place or self.place

    def _diverging(self) -> Iterator[Finding]:
        finite = [x for x in self.losses if math.isfinite(x)]
        exploded = len(finite) < len(self.losses)
        if len(finite) < (3 if exploded else 6) or len(self.variables) == 0 or min(finite) < 0:
            return
        first, best, last = abs(finite[0]), min(finite), finite[-1]
        tail = finite[-max(3, len(finite) // 4) :]
        rises = finite[-1] > finite[-2] > finite[-3]
        steeper = any(v.norms and v.norms[-1] > 3 * v.norms[0] for v in self.variables.values())
        grows = last > 100 * (first + 1e-6) and last == max(finite) and rises and steeper
        high = min(tail) > 5 * (first + 1e-6) and min(tail) > 5 * abs(best)
        stays_high = len(finite) >= FEWEST_STEPS and high and steeper
        swings = _swings(finite) if len(finite) >= 20 else False
        if grows or stays_high or swings:
            shape = "grows" if grows or stays_high else "swings to and fro without falling"
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

    def _too_slow(self) -> Iterator[Finding]:
        if len(self.losses) < 20 or not self.variables:
            return
        first, last = np.mean(self.losses[:3]), np.mean(self.losses[-3:])
        ratios = [np.median(v.update_ratios) for v in self.variables.values() if len(v.update_ratios) >= 5]
        norms = [np.median(v.norms) for v in self.variables.values() if v.norms]
        if not ratios or not any(v.changed for v in self.variables.values()) or max(norms, default=0.0) < 1e-6:
            return
        moved = max(sum(v.update_ratios) for v in self.variables.values())
        if moved < 1e-4 or (max(ratios) < 1e-5 and abs(first - last) < 0.01 * abs(first)):
            yield self._low_rate(float(max(ratios)), float(first), float(last))

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
            middle, spread = before[5], before[8] - before[1]
            if abs(self.losses[step]) > 20 * (middle + spread) + 1e-3:
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

    # ---- the variables

    def _unmoved(self) -> Iterator[Finding]:
        """Gradients are computed step after step, but no weight changes."""
        watched = [v for v in self.variables.values() if v.calls >= 4 and v.last is not None]
        if len(self.losses) < 4 or not watched or any(v.changed for v in watched):
            return
        if max(max(v.norms) for v in watched) == 0 or len(watched) != len(self.variables):
            return
        if self.learning_rate is not None and self.learning_rate < 1e-5:
            yield self._low_rate(0.0, self.losses[0], self.losses[-1])
            return
        if self.applied:
            yield from self._undone()
            return
        yield Finding(
            "never-applied",
            "severe",
            f"gradients are computed in {len(self.losses)} steps, but no variable changes: they are not applied",
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
            if key not in self.applied or rate is None or rate * float(np.median(v.norms)) < 1e-4 * size:
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

    def _zeros(self) -> Iterator[Finding]:
        zero = [v for v in self.variables.values() if not v.sparse and v.calls >= 3 and v.zero_steps == v.calls]
        dead = [v for v in zero if v.activation is not None and "relu" in v.activation[0]]
        for v in dead or zero:  # what lies behind dead units gets nothing either
            yield self._dead(v, 1.0)
        for v in self.variables.values():
            if v.sparse or v.calls < 3 or v in zero:
                continue
            if (
                v.never_zero is not None and v.calls >= FEWEST_STEPS and v.never_zero.size >= 8
                and v.never_zero.mean() <= 0.1 and v.activation is not None and "relu" in v.activation[0]
            ):  # fmt: skip
                yield self._dead(v, 1 - float(v.never_zero.mean()))

    def _dead(self, v: VariableHealth, share: float) -> Finding:
        behind = v.activation if v.activation and "relu" in v.activation[0] else None
        place = (behind[1], behind[2]) if behind else v.made or self.place
        what = f"the units of {behind[0]} behind it never fire" if behind else "no change of it reaches the loss"
        return Finding(
            "dead-units" if behind else "zero-gradient",
            "severe" if share == 1 else "warning",
            f"{share:.0%} of the gradient of {v.name} was exactly zero in all {v.calls} steps: {what}",
            *place,
            variable=v.name,
            evidence={"share": share, "steps": v.calls},
            remedy="Use a smaller learning rate, He initialisation and no large negative bias, or tf.nn.leaky_relu."
            if behind
            else "Look for a factor of zero, a clip that is always active, or a mask that hides everything.",
            confidence=0.85,
        )

    def _equal_units(self) -> Iterator[Finding]:
        for v in self.variables.values():
            if v.calls >= 2 and v.equal_units >= max(2, min(v.calls, 4) - 1):
                yield Finding(
                    "symmetric-weights",
                    "severe",
                    f"all {v.shape[-1]} units of {v.name} have the same weights and gradients: they stay copies of one",
                    *(v.made or self.place),
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
        size = {id(v): float(np.median(v.norms)) for v in kernels}
        first, last = kernels[0], kernels[-1]
        low, high = size[id(first)], size[id(last)]
        if high > 0 and 0 < low < 1e-5 * high:
            kind, text, v = "vanishing-gradients", "shrinks", first
            advice = "Use relu or gelu, residual connections, or normalisation between the layers."
        elif low > 1e5 * high > 0:
            kind, text, v = "exploding-gradients", "grows", first
            advice = "Use smaller initial weights, normalisation, or clip the gradients (clipnorm=1.0)."
        else:
            return
        place = (v.activation[1], v.activation[2]) if v.activation else v.made or self.place
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

    def _saturated(self) -> Iterator[Finding]:
        for (file, line, name), shares in self.saturation.items():
            if len(shares) >= 3 and min(shares) > 0.95:
                yield Finding(
                    "saturated-units",
                    "warning",
                    f"{np.mean(shares):.0%} of the results of {name} are at its limits, where its slope is nearly zero",
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
