"""Whether gradients go where they belong: to their own variables, once, by one optimizer, and not added up forever."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow, Step, known
from tapeflow._src.diagnostics.frames import Frames, names_of, user_frames
from tapeflow._src.diagnostics.program import bound_at, is_inside_with
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.training.activations import moves_elements
from tapeflow._src.diagnostics.training.assignments import Assignments, dot
from tapeflow._src.diagnostics.training.by_hand import ChangesByHand
from tapeflow._src.diagnostics.variable_names import class_of_variable, made_at, name_of_variable, variable_behind

_KEPT_STEPS = 12
_SUMMED_STEPS, _SUMMED_VARIABLES = 60, 3  # whose gradients are added up
_FEWEST_SUMS = 3  # that were applied
_FEWEST_OBJECTS = 4  # optimizers at one line
_NORMALISES = re.compile(r"(gamma|beta)(:0)?$")


class AppliedGradients:
    """Tracks gradients from `tape.gradient` to `apply_gradients`."""

    def __init__(self, report: Callable[[Finding | None], None], assignments: Assignments, sees_all: bool) -> None:
        """`sees_all` says that every call of gradient is reported, not a sample."""
        self._report, self._assignments, self._sees_all = report, assignments, sees_all
        self.calls = 0  # of gradient, also those that are no steps
        self.optimizer: Any = None
        self._sources_by_gradient: dict[int, list[Any]] = {}  # several, if one value is the gradient of all of them
        self._alive: list[list[Any]] = []
        self._applied: dict[tuple[int, int], int] = {}  # gradient and variable, to the number of the step
        self._applied_at: dict[int, int] = {}  # by variable, the number of the step
        self._last_optimizer: dict[int, Any] = {}  # by variable
        self._switches: dict[int, int] = {}  # how often another optimizer than the last changed a variable
        self._last_gradient: dict[int, Any] = {}  # by variable: what was applied last
        self._sums: dict[int, np.ndarray[Any, Any]] = {}  # by variable: of all gradients
        self._sums_before: dict[int, np.ndarray[Any, Any]] = {}  # the same at the last apply
        self._factors: list[
            tuple[float | None, float | None]
        ] = []  # of what is applied, to the sums of all and new ones
        self._applies = 0
        self._applies_others = False  # than what tapes gave: sums, or clipped gradients
        self._sum_place: tuple[str, int] | None = None
        self.ever_applied: set[int] = set()
        self.ascending: set[tuple[str, int]] = set()  # lines of gradient whose results are applied with a minus
        self.applied_step: dict[int, int] = {}  # by variable: the number of the step after which it was changed last
        self._asked: dict[int, tuple[Any, tuple[str, int]]] = {}
        self._left_out: dict[int, tuple[Any, tuple[str, int]]] = {}  # trainable and used, but not asked for
        self._uses: dict[int, int] = {}  # in how many steps each of them was used
        self._looks: dict[tuple[str, int], int] = {}  # at how many steps, by line
        self._objects: dict[tuple[str, int], list[Any]] = {}  # by line, the optimizers that applied gradients there
        self._made_at: dict[tuple[str, int], int | None] = {}  # by that line, where the optimizer got its name
        self._renewals: dict[tuple[str, int], int] = {}  # by line, new optimizers for what another one changed before
        self._taken_in_turn: set[tuple[str, int]] = set()  # lines that come back to an optimizer
        self.steps = 0
        self._by_hand = ChangesByHand(report)
        assignments.on_change = self._by_hand.see_change

    def see_step(self, place: tuple[str, int], pairs: list[tuple[Any, Any]], variables: list[Any]) -> None:
        """A call of gradient that gave these; `variables` are those behind the sources."""
        self.steps += 1
        self._assignments.see_step()
        if not self._by_hand.see_step(pairs, variables):
            self._assignments.on_change = None
        self._alive.append([g for _, g in pairs])
        for (source, gradient), variable in zip(pairs, variables):
            self._note_source(gradient, variable)
            self._asked[id(variable)] = (source, place)
        if self.steps <= (_SUMMED_STEPS if self._applies_others else _KEPT_STEPS):
            self._add_up(pairs, variables)
        if len(self._alive) > _KEPT_STEPS:
            for gradient in self._alive.pop(0):
                self._sources_by_gradient.pop(id(gradient), None)

    def _add_up(self, pairs: list[tuple[Any, Any]], variables: list[Any]) -> None:
        """The sums of all gradients so far, for a few variables."""
        for (_, gradient), variable in zip(pairs, variables):
            if hasattr(gradient, "indices") or (
                id(variable) not in self._sums and len(self._sums) >= _SUMMED_VARIABLES
            ):
                continue
            array, before = np.asarray(gradient.numpy()), self._sums.get(id(variable))
            self._sums[id(variable)] = array if before is None or before.shape != array.shape else before + array

    def see_graph(self, place: tuple[str, int], pairs: list[tuple[Any, Any]]) -> None:
        """A call of `tf.gradients` that gave these."""
        self._alive.append([g for _, g in pairs])
        for source, gradient in pairs:
            self._note_source(gradient, variable_behind(source))

    def _note_source(self, gradient: Any, variable: Any) -> None:
        sources = self._sources_by_gradient.setdefault(id(gradient), [])
        if all(s is not variable for s in sources):
            sources.append(variable)

    def optimizer_of(self, variables: list[Any]) -> Any:
        """The optimizer that changed one of some variables last; if none did, the last one of all."""
        known = (self._last_optimizer.get(id(v)) for v in variables)
        return next((optimizer for optimizer in known if optimizer is not None), self.optimizer)

    def see_structure(
        self, tape: Any, flow: Flow, targets: list[Any], sources: list[Any], place: tuple[str, int]
    ) -> None:  # fmt: skip
        """Notes variables that act on the target in series with the sources, but are not among them."""
        self._looks[place] = self._looks.get(place, 0) + 1
        own = {id(variable_behind(s)) for s in sources}
        goals = [known(i) for t in targets if t is not None and (i := tape._index_of(t)) is not None]
        variables = [s for s in map(variable_behind, sources) if isinstance(s, _core.Variable)]
        others = [v for v in tape.watched_variables() if id(v) not in own and v.trainable]
        others = [v for v in others if id(_original_of(v)) not in own]  # None by a copy is said already
        if not goals or not variables or not others or len(others) > 200:
            return
        above = set().union(*(flow.ancestors(goal) for goal in goals))
        indices = [known(tape._index_of(v)) for v in variables[:200]]
        reached = set().union(*(flow.reached(i) for i in indices if i is not None))
        for variable in others:
            index = tape._index_of(variable)
            if index is None or known(index) not in above:
                continue
            behind = any(not reached.isdisjoint(step.inputs) for step in _uses(flow, known(index)))
            if behind or _is_before(flow, known(index), indices):
                self._left_out.setdefault(id(variable), (variable, place))
                self._uses[id(variable)] = self._uses.get(id(variable), 0) + 1

    def see_apply(self, optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
        """An optimizer is about to change variables."""
        self.optimizer = optimizer
        place = source_line(*_core.current_line())
        frames = user_frames()
        self._applies += 1
        renewed = False
        objects = self._objects.setdefault(place, [])
        if len(objects) < 20 and not any(o is optimizer for o in objects):
            objects.append(optimizer)
            if len(objects) == _FEWEST_OBJECTS:
                named = [n for n in names_of(optimizer, frames) if n.file == place[0]]
                self._made_at[place] = next((at for n in named if (at := bound_at(n)) is not None), None)
        elif any(o is optimizer for o in objects[:-1]):
            self._taken_in_turn.add(place)
        for gradient, given in pairs:
            variable = variable_behind(given)
            if gradient is None or not isinstance(variable, _core.Variable):
                continue
            self.ever_applied.add(id(variable))
            self.applied_step[id(variable)] = self.steps
            self._assignments.see_applied(variable)
            self._by_hand.see_apply(variable)
            own = self._sources_by_gradient.get(id(gradient), [])
            if own and all(s is not variable for s in own):
                self._wrong(place, name_of_variable(own[-1], frames), name_of_variable(given, frames))
            if not own and _is_opposite(gradient, self._by_hand.gradient_of(variable)):
                self.ascending.add(self._asked[id(variable)][1])
            key = (id(gradient), id(variable))
            same = self._last_optimizer.get(id(variable), optimizer) is optimizer
            is_same = bool(own) and self._applied.get(key) == self.steps
            follows = self._sees_all and self._applied_at.get(id(variable)) == self.calls
            if same and (is_same or (follows and _is_alike(gradient, self._last_gradient[id(variable)]))):
                self._twice(place, name_of_variable(given, frames))
            self._applied[key], self._applied_at[id(variable)] = self.steps, self.calls
            self._last_gradient[id(variable)] = gradient
            last = self._last_optimizer.get(id(variable))
            self._last_optimizer[id(variable)] = optimizer
            if last is not None and last is not optimizer and any(o is last for o in objects):
                renewed = True
            if last is not None and last is not optimizer and len(objects) < 3:
                self._switches[id(variable)] = self._switches.get(id(variable), 0) + 1
                if self._switches[id(variable)] == 3:
                    self._two(place, name_of_variable(given, frames), any(o is last for o in objects))
        self._renewals[place] = self._renewals.get(place, 0) + renewed
        self._look_for_sums(pairs, place)

    def _made_anew(self) -> list[Finding]:
        """Each step has an optimizer of its own, which has forgotten the steps before."""
        found = []
        for place, objects in self._objects.items():
            if len(objects) < _FEWEST_OBJECTS or place in self._taken_in_turn or self._renewals.get(place, 0) < 3:
                continue
            kind = type(objects[0]).__name__
            stateless = kind == "SGD" and not getattr(objects[0], "momentum", 0)
            line = made_in_text(place, kind) or self._made_at.get(place)
            found.append(
                Finding(
                    "optimizer-recreated", "hint" if stateless else "warning",
                    f"a new {kind} is made for each step: it forgets its momentum and its averages",
                    place[0], line or place[1], evidence={"optimizers": len(objects)},
                    remedy="Make the optimizer once, before the loop.", confidence=0.9,
                )
            )  # fmt: skip
        return found

    def left_out(self, keras: set[int], frozen: set[int]) -> list[Finding]:
        """Variables that the loss depends on and nothing trains; with the ids of those of (frozen) Keras layers."""
        idle = [
            (v, place)
            for key, (v, place) in self._left_out.items()
            if key not in self._asked
            and key not in frozen
            and key not in self.ever_applied
            and key not in self._assignments.changed
            and not self._is_temporary(key, v, place)
        ]
        any_keras = any(key in keras for key in self._asked)
        idle = [(v, place) for v, place in idle if id(v) not in keras or any_keras]
        if all(_NORMALISES.search(v.name) for v, _ in idle):  # a normalisation works with its initial values, too
            return []
        if not idle or not (self._applies or self._assignments.changed & set(self._asked)):
            return []
        names = [name_of_variable(v, Frames()) for v, _ in idle]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        classes = {class_of_variable(v) for v, _ in idle}
        own = {class_of_variable(variable_behind(source)) for source, _ in self._asked.values()}
        chosen = len(self._asked) == 1 and not classes & own  # one variable, in a world that others describe
        return [
            Finding(
                "not-applied", "hint" if chosen else "warning",
                f"the loss depends on {names[0]}{more}, but no gradient is asked for it: it keeps its initial values",
                *idle[0][1], variable=names[0], evidence={"variables": names[:20]},
                remedy="Add it to the list of variables, or make it with trainable=False.", confidence=0.8,
            )
        ]  # fmt: skip

    def _is_temporary(self, key: int, variable: Any, place: tuple[str, int]) -> bool:
        """Whether the step makes a variable itself, and the next one makes another."""
        if self._looks.get(place, 0) > 1:
            return self._uses.get(key, 0) < 2
        made = made_at(variable)
        return made is not None and made[0] == place[0] and is_inside_with(*made)

    def _wrong(self, place: tuple[str, int], own: str, given: str) -> None:
        self._report(
            Finding(
                "applied-to-wrong", "severe", f"the gradient of {own} is applied to {given}", *place, variable=given,
                evidence={"gradient_of": own, "applied_to": given},
                remedy="Keep the order: zip(tape.gradient(loss, variables), variables).",
                confidence=0.97,
            )
        )  # fmt: skip

    def _twice(self, place: tuple[str, int], name: str) -> None:
        self._report(
            Finding(
                "applied-twice", "severe", f"the same gradient of {name} is applied a second time", *place,
                variable=name, evidence={"step": self.steps},
                remedy="Apply each gradient once; compute it anew for another step.", confidence=0.95,
            )
        )  # fmt: skip

    def _two(self, place: tuple[str, int], name: str, one_line: bool) -> None:
        """At one line the program itself chooses which of its optimizers takes the step."""
        self._report(
            Finding(
                "two-optimizers", "hint" if one_line else "warning", f"{name} is changed by two optimizers in turn",
                *place, variable=name,
                remedy="Give each variable to one optimizer.", confidence=0.85,
            )
        )  # fmt: skip

    def _look_for_sums(self, pairs: list[tuple[Any, Any]], place: tuple[str, int]) -> None:
        """What is applied is the sum of all gradients since the program began, step after step."""
        if self.steps > _SUMMED_STEPS:
            return
        for gradient, given in pairs:
            key = id(variable_behind(given))
            total = self._sums.get(key)
            if gradient is None or total is None or hasattr(gradient, "indices") or _core.is_symbolic(gradient):
                continue
            before = self._sums_before.get(key)
            self._sums_before[key] = total
            if id(gradient) not in self._sources_by_gradient:
                self._applies_others = True
                array = np.asarray(gradient.numpy(), np.float64)
                recent = None if before is None or before.shape != total.shape else _factor(array, total - before)
                self._factors.append((_factor(array, total), recent))
                self._sum_place = place
            return

    def _never_reset(self) -> bool:
        """Whether what is applied is one and the same multiple of the sum of all gradients, not of the last ones."""
        whole = [factor for factor, _ in self._factors]
        if len(whole) < _FEWEST_SUMS or None in whole:
            return False
        first = whole[0] or 0.0
        same = all(math.isclose(factor or 0.0, first, rel_tol=1e-2) for factor in whole)
        return same and not any(r is not None and math.isclose(r, first, rel_tol=0.05) for _, r in self._factors)

    def findings(self) -> list[Finding]:
        """What is reported at the end."""
        self._by_hand.end_step()
        found = []
        if self._sum_place is not None and self._never_reset():
            found.append(
                Finding(
                    "accumulated-gradients", "severe",
                    f"what is applied in step {self.steps} is the sum of the gradients of all steps: the sum is never "
                    "set to zero", *self._sum_place, evidence={"applies": len(self._factors)},
                    remedy="Set the accumulators to zero after each apply_gradients.", confidence=0.9,
                )
            )  # fmt: skip
        found += self._made_anew()
        trained = self.ever_applied | self._assignments.changed_in_steps
        left = [about for v, about in self._asked.items() if v not in trained]
        if self._applies >= 2 and left and len(left) < len(self._asked):
            places = {place for _, place in left}
            applied_places = {self._asked[v][1] for v in self.ever_applied if v in self._asked}
            common = places & applied_places
            names = [name_of_variable(source, Frames()) for source, place in left if place in common]
            if names:
                found.append(
                    Finding(
                        "not-applied", "warning",
                        f"gradients of {', '.join(names[:3])} are computed but never given to the optimizer",
                        *next(iter(common)), variable=names[0], evidence={"variables": names[:20]},
                        remedy="Pass all pairs of gradients and variables to apply_gradients.", confidence=0.85,
                    )
                )  # fmt: skip
        return found


def _original_of(variable: Any) -> Any:
    """What a variable is a copy of, if it is one."""
    original = getattr(variable, "_copy_of", None)
    return None if original is None else original()


def _is_before(flow: Flow, start: int, indices: list[Any]) -> bool:
    """Whether one of the values meets, where it is first used, something that was computed from `start`."""
    reached = flow.reached(start)
    return any(not reached.isdisjoint(step.inputs) for i in indices if i is not None for step in _uses(flow, i))


def _uses(flow: Flow, value: int) -> Iterator[Step]:
    """The operations that a variable goes into, behind those that have no other operand."""
    for edge in flow.edges.get(value, ()):
        if edge.step.event == "record" and _has_one_operand(edge.step):
            yield from _uses(flow, edge.output)
        else:
            yield edge.step


def _has_one_operand(step: Step) -> bool:
    """Whether nothing else takes part: a copy, or a function of each element such as exp."""
    name = step.operation or ""
    facts = primitives.facts_by_name.get(name) or primitives.facts_by_function.get(name.rpartition(".")[2], {})
    return len(step.inputs) == 1 and (moves_elements(step) or facts.get("family") == "unary")


def _factor(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    """The number by which an array is a multiple of another one; None if it is none."""
    if a.shape != b.shape or a.size < 2:
        return None
    x, y = a.ravel(), b.astype(np.float64).ravel()
    inner, square = dot(x, y), dot(y, y)
    if inner <= 0 or not np.isfinite(inner) or inner * inner < 0.999999 * dot(x, x) * square:
        return None
    return inner / square


def _is_alike(a: Any, b: Any, sign: int = 1) -> bool:
    """Whether a gradient is another one, clipped or scaled, with a sign."""
    if hasattr(a, "indices") or hasattr(b, "indices") or _core.is_symbolic(a) or _core.is_symbolic(b):
        return False
    return _factor(sign * np.asarray(a.numpy(), np.float64), np.asarray(b.numpy())) is not None


def _is_opposite(a: Any, b: Any) -> bool:
    """Whether a gradient is another one, if that is known, with a minus."""
    return b is not None and _is_alike(a, b, -1)


def made_in_text(place: tuple[str, int], kind: str) -> int | None:
    """The nearest line above that makes an object of a class."""
    lines = linecache.getlines(place[0])
    return next((n for n in range(min(place[1], len(lines)), 0, -1) if f"{kind}(" in lines[n - 1]), None)
