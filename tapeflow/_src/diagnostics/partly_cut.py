"""Gradients that are not None but incomplete: one path from a source to the target breaks while another goes on."""

from __future__ import annotations

from typing import NamedTuple

from tapeflow._src import primitives
from tapeflow._src.diagnostics.flow import Edge, Flow, Step, has_gradient, known

_ROUNDING = {"round", "rint", "floordiv", "floor_div", "cast"}

_ARITHMETIC = {
    "add", "add_n", "add_v2", "subtract", "sub", "multiply", "mul", "square", "pow", "abs", "negative", "neg", "matmul",
    "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "cumsum", "maximum", "minimum", "clip_by_value",
    "floordiv", "floor_div", "mod", "floormod", "squared_difference", "tensordot", "einsum",
}  # fmt: skip
_CUTS = {"numpy", "number", "assign", "paused", "operation", "dtype"}


class Cut(NamedTuple):
    """A break on one path, while another path from the source to the target is whole."""

    cause: str  # "numpy", "stop_gradient", "integer", "index", "bool", "assign", "stop_recording"
    operation: str
    file: str
    line: int
    certain: bool  # by the structure alone; else a numeric derivative must confirm it
    deliberate: bool  # the program says that nothing shall flow here
    guess: bool = False  # nothing but time says that the value came back


class CutSearch:
    """Looks for breaks on the way to one value."""

    def __init__(self, flow: Flow, goal: int) -> None:
        self._flow, self._goal = flow, known(goal)
        self._through = _straight_through(flow)
        self._upstream = _reaching(flow, self._goal, self._through)
        stopped = {step.order for step in flow.steps if step.short_name == "stop_gradient"}
        self._open = _reaching(
            flow, self._goal, self._through | stopped
        )  # what a stop_gradient follows is meant to end
        # Uses of variables before the tape began to watch them.
        self._before = {step.outputs[0]: step.inputs[0] for step in flow.steps if step.event == "watch"}

    def cuts(self, start: int | None) -> list[Cut]:
        """The breaks behind a value that leave another path alive. Empty if there is no whole path."""
        flow = self._flow
        whole = flow.reached(known(start)) if start is not None else set()
        if self._goal not in whole:
            return []
        if known(start) in self._before:
            whole |= flow.reached(self._before[known(start)])
        edges = [e for v in whole for e in flow.edges.get(v, ()) if e.breaks in _CUTS and self._counts(e)]
        has_sure = any(e.breaks in ("numpy", "number") and not flow.is_guess(e) for e in edges)
        found: dict[tuple[str, str, int], Cut] = {}
        seen: set[tuple[int, str | None]] = set()  # values that left for Python may have come back at many places
        for edge in edges:
            order, left = edge.step.order, edge.breaks in ("numpy", "number")
            if order in self._through or (has_sure and flow.is_guess(edge)) or (order, edge.breaks) in seen:
                continue
            if left:
                seen.add((order, edge.breaks))
            if edge.breaks == "assign" and not _is_read_after(flow, edge, self._open):
                continue
            cut = _cut(flow, edge)
            if cut is not None and not (cut.cause == "index" and self._through):
                found.setdefault((cut.cause, cut.file, cut.line), cut)
        return list(found.values())

    def _counts(self, edge: Edge) -> bool:
        """Whether the target moves with the value behind a break, along paths that nobody ends on purpose."""
        deliberate = edge.breaks == "paused" or edge.step.short_name == "stop_gradient"
        return edge.output in (self._upstream if deliberate else self._open)


def _reaching(flow: Flow, goal: int, but: set[int]) -> set[int]:
    """The values from which the goal is reached, by whatever path but through the steps of these orders.

    Indices and shapes do not count: the target does not move with them.
    """
    parents: dict[int, list[int]] = {}
    for value, edges in flow.edges.items():
        for edge in edges:
            if edge.step.order not in but and edge.breaks != "argument":
                parents.setdefault(edge.output, []).append(value)
    seen, stack = {goal}, [goal]
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return seen


def _is_read_after(flow: Flow, assigned: Edge, upstream: set[int]) -> bool:
    """Whether the target uses a variable after this assignment; what was read before does not depend on it."""
    later = (e for e in flow.edges.get(assigned.output, ()) if e.step.order > assigned.step.order)
    return any(e.output in upstream for e in later if e.breaks not in ("assign", "argument"))


def _straight_through(flow: Flow) -> set[int]:
    """The stop_gradients of `x + stop_gradient(f(x) - x)`, as the orders of their steps: meant so."""
    meant: set[int] = set()
    for step in flow.steps:
        if step.short_name != "stop_gradient" or not step.inputs:
            continue
        made = flow.maker.get(step.inputs[0])
        if made is None or made.short_name not in ("subtract", "sub") or len(made.inputs) != 2:
            continue
        for edge in flow.edges.get(step.outputs[0], ()):
            if edge.step.short_name in ("add", "add_v2") and made.inputs[1] in edge.step.inputs:
                meant.add(step.order)
    return meant


def _cut(flow: Flow, edge: Edge) -> Cut | None:
    step, name = edge.step, edge.step.short_name
    file, line = step.place
    match edge.breaks:
        case "numpy" | "number":
            left = "numpy" if edge.breaks == "numpy" else "float"
            return Cut("numpy", left, file, line, False, False, flow.is_guess(edge))
        case "assign":
            return Cut("assign", "assign", file, line, False, False)
        case "paused":
            return Cut("stop_recording", name, file, line, True, True)
        case "operation" if name == "stop_gradient":
            return Cut("stop_gradient", name, file, line, True, True)
        case "operation" if name in ("eager_py_func", "py_func", "numpy_function", "composition"):
            return Cut("numpy", "numpy_function", file, line, True, False)
        case "operation" | "dtype" if name in _ROUNDING:
            if name == "cast" and not _comes_back(flow, edge):
                whole = flow.dtype.get(edge.output, "").startswith(("int", "uint"))
                return Cut("index", name, file, line, True, True) if whole and _is_scalar_variable(flow, edge) else None
            return Cut("integer", name, file, line, True, False)
        case "operation" | "dtype" if name in ("argmin", "argmax", "arg_min", "arg_max") and _picks_rows(flow, edge):
            return Cut("index", name, file, line, True, True)
        case "operation" | "dtype" if flow.dtype.get(edge.output) == "bool" and _is_gate(flow, edge):
            return Cut("bool", name, file, line, True, True)
    return None


def _is_scalar_variable(flow: Flow, edge: Edge) -> bool:
    """Whether what is cast is a variable of one number, such as a delay: as a position it cannot be trained."""
    made = flow.maker.get(edge.value)
    read = made is not None and made.short_name == "identity" and made.inputs[0] not in flow.maker
    return (made is None or read) and edge.value not in flow.leaves and edge.step.input_shapes[:1] == [()]


def _picks_rows(flow: Flow, edge: Edge) -> bool:
    """Whether positions choose rows of a variable, such as a codebook: the choice goes on as values."""
    uses = (e.step for e in flow.edges.get(edge.output, ()) if e.step.short_name in ("gather", "embedding_lookup"))
    rows = [v for use in uses for v in use.inputs if v != edge.output]
    read = [m.inputs[0] for v in rows if (m := flow.maker.get(v)) is not None and m.short_name in ("identity", "cast")]
    return any(v not in flow.maker and v not in flow.leaves for v in rows + read)


def _is_gate(flow: Flow, edge: Edge) -> bool:
    """Whether a comparison becomes a number again, a step of height one; not one that only masks what it compares."""
    for cast in flow.edges.get(edge.output, ()):
        if cast.step.short_name == "cast" and has_gradient(flow.dtype.get(cast.output, "float32")):
            uses = [e.step for e in flow.edges.get(cast.output, ())]
            if any(edge.value not in use.inputs for use in uses):
                return True
    return False


def _comes_back(flow: Flow, edge: Edge) -> bool:
    """Whether what was cast to integers, or what integers are computed of it, is cast to a float again, so that it
    takes part as a number.
    """
    if not flow.dtype.get(edge.output, "").startswith(("int", "uint")):
        return False
    seen, front = {edge.output}, [edge.output]
    while front and len(seen) < 100:
        value = front.pop()
        for following in flow.edges.get(value, ()):
            step = following.step
            if step.short_name == "cast" and has_gradient(flow.dtype.get(following.output, "float32")):
                return True
            if following.output not in seen and _computes(step):
                seen.add(following.output)
                front.append(following.output)
    return False


def _computes(step: Step) -> bool:
    """Whether a result of integers moves with them as a number does: not a position, a size or a comparison."""
    moves = primitives.moves_elements(step.operation or "") and step.short_name not in primitives.indexing_functions
    return moves or step.short_name in _ARITHMETIC


def describe(cut: Cut) -> tuple[str, str]:
    """What to say about a cut, and what to do."""
    if cut.cause == "numpy":
        left = "goes through NumPy or Python numbers, which are not recorded"
        return left, "Compute this with operations of tf, or give the function a rule with tf.custom_gradient."
    if cut.cause == "assign":
        return "is assigned to a variable, whose state has no gradient", "Use the assigned tensor itself."
    if cut.cause == "integer":
        text = "becomes integers, which have no gradient"
        return text, "Stay with floating point, or use a straight-through gradient (tf.grad_pass_through)."
    if cut.cause == "index":
        text = "becomes positions, which have no gradient"
        return text, "If the choice shall train what it was made of: z + tf.stop_gradient(chosen - z), or weights."
    if cut.cause == "bool":
        text = "becomes booleans, a step whose derivative is zero"
        return text, "Use the value itself, or a straight-through gradient: soft + tf.stop_gradient(hard - soft)."
    if cut.cause == "stop_recording":
        return "is computed inside tape.stop_recording()", "Move it out of that block if it shall be differentiated."
    return "ends at tf.stop_gradient", "Leave tf.stop_gradient out if this path shall be differentiated."
