"""What converted code does at run time: Python control flow for Python values, graph control flow for staged ones."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.branches import cond
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tracing import scratch_graph
from tapeflow._src.function.autograph.jumps import VALUE
from tapeflow._src.function.autograph.state import (
    Packed,
    Undefined,
    check_branches,
    check_iteration,
    copied,
    is_carried,
    is_missing,
    not_yet,
    placeholder_like,
    shown,
)
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import shape as sizes_of
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_shape import TensorShape, as_shape

Run = Callable[[], Any]
State = Callable[..., Any]


def staged(value: Any) -> bool:
    """Whether `value` decides in the graph, not now: a symbolic tensor, or any tensor or variable during a trace."""
    return _core.is_tensor(value) and (_core.is_symbolic(value) or _core.is_tracing())


def probe(run: Callable[[], Any]) -> Any:
    """The result of `run` traced into a graph that is thrown away: only kinds of values are read from it."""
    with scratch_graph():
        return run()


# ---- variables


def no_state(values: Any = ()) -> tuple[Any, ...]:
    """The reader and the writer where nothing is carried."""
    return ()


def read(reader: Run, name: str) -> Any:
    """The value of a variable, attribute or element; an `Undefined` where it has none."""
    try:
        return reader()
    except (NameError, AttributeError, LookupError):
        return Undefined(name)


def result(value: Any) -> Any:
    """What a function returns."""
    return None if is_missing(value) else value


def local_values(readers: dict[str, Run]) -> dict[str, Any]:
    """`locals()`: the variables that have a value."""
    values = {name: read(reader, name) for name, reader in readers.items()}
    return {name: value for name, value in values.items() if not is_missing(value)}


# ---- conditions


def condition(value: Any, statement: str) -> Any:
    """A staged condition, if it is one bool."""
    tensor = convert_to_tensor(value)
    wrong_shape = tensor.shape.rank not in (None, 0)
    wrong_dtype = tensor.dtype.name != "bool"
    if wrong_shape or wrong_dtype:
        cast = "to use as boolean Tensor, use `tf.cast`; " if wrong_dtype else ""
        raise ValueError(
            f"condition of {statement} expected to be `tf.bool` scalar, got {tensor!r}; {cast}to check for None, use "
            "`is not None`"
        )
    return tensor


def and_(value: Any, *operands: Run) -> Any:
    """`a and b`: an operand runs only if those before it are true."""
    for operand in operands:
        if staged(value):
            value = _choose(value, operand, value)
        elif value:
            value = operand()
        else:
            return value
    return value


def or_(value: Any, *operands: Run) -> Any:
    """`a or b`: an operand runs only if those before it are false."""
    for operand in operands:
        if staged(value):
            value = _choose(primitives.LogicalNot(value), operand, value)
        elif value:
            return value
        else:
            value = operand()
    return value


def _choose(test: Any, operand: Run, otherwise: Any) -> Any:
    return cond(test, lambda: convert_to_tensor(operand()), lambda: convert_to_tensor(otherwise))


def not_(value: Any) -> Any:
    """`not a`."""
    return primitives.LogicalNot(value) if staged(value) else not value


def _contains(value: Any, container: Any) -> Any:
    if staged(container):
        return primitives.Any(primitives.Equal(container, value))
    if staged(value) and isinstance(container, list | tuple | set | frozenset):
        return or_(False, *((lambda other=other: value == other) for other in container))
    return value in container


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": _contains,
    "not in": lambda value, container: not_(_contains(value, container)),
}


def chain(left: Any, *rest: Any) -> Any:
    """`a < b < c`: each operand is evaluated once, and only if the comparisons before it hold."""
    compare, operand, *further = rest
    right = operand()
    value = _COMPARE[compare](left, right)
    return and_(value, lambda: chain(right, *further)) if further else value


def assert_(test: Any, message: Run | None) -> None:
    """`assert test, message`."""
    if not staged(test):
        if __debug__ and not test:
            raise AssertionError(*(() if message is None else (message(),)))
        return
    Assert(test, ["Assertion error" if message is None else message()])


# ---- branches


def if_expression(test: Any, body: Run, orelse: Run, text: str) -> Any:
    """`body() if test else orelse()`."""
    if not staged(test):
        return body() if test else orelse()
    chosen: list[Any] = []

    def take(branch: Run) -> Run:
        return lambda: chosen.__setitem__(slice(None), [branch()])

    def write(values: Any) -> None:
        chosen[:] = values

    _staged_if(condition(test, "if statement"), take(body), take(orelse), lambda: tuple(chosen), write, (text,), 1)
    return chosen[0]


def if_(
    test: Any, body: Run, orelse: Run, get_state: State, set_state: State, names: Sequence[str], outputs: int
) -> None:
    """`if test: body else: orelse`; the first `outputs` of the variables are read afterwards."""
    if not staged(test):
        body() if test else orelse()
    else:
        _staged_if(condition(test, "if statement"), body, orelse, get_state, set_state, names, outputs)


def _staged_if(
    test: Any, body: Run, orelse: Run, get_state: State, set_state: State, names: Sequence[str], outputs: int
) -> None:
    before = get_state()
    names = names[:outputs]
    flags = [name for name in names if name.startswith("ag__") and name != VALUE]
    packed_by_branch: dict[str, Packed] = {}
    plain_by_branch: dict[str, list[Any]] = {}

    def run(branch: Run) -> list[Any]:
        set_state(copied(before))
        branch()
        return list(get_state()[:outputs])

    def traced(which: str, branch: Run, other: Run) -> Callable[[], list[Any]]:
        def trace() -> list[Any]:
            values = run(branch)
            _fill_return_value(names, values, packed_by_branch, lambda: run(other))
            plain_by_branch[which] = values
            packed = packed_by_branch[which] = Packed(values)
            if len(packed_by_branch) == 2:
                check_branches(names, packed_by_branch["main"], packed_by_branch["else"])
            return packed.travelling

        return trace

    travelling = cond(test, traced("main", body, orelse), traced("else", orelse, body))
    packed = next(iter(packed_by_branch.values()))
    state = list(packed.with_new(travelling))
    for n, name in enumerate(names):
        if is_missing(packed.values[n]) and name != VALUE:
            # Only one branch has run: the other one shows whether it is at fault, too.
            raise ValueError(f"'{shown(name)}' must also be initialized in both branches")
        for known in (True, False):  # a flag that the jumps of both branches set, or of none
            if name in flags and all(values[n] is known for values in plain_by_branch.values()):
                state[n] = known
    set_state((*state, *before[outputs:]))


def _fill_return_value(names: Sequence[str], values: list[Any], known: dict[str, Packed], other: Run) -> None:
    """Where a branch goes on while the other one returns, the value to be returned is any of the right kind."""
    value = names.index(VALUE) if VALUE in names else -1
    if value >= 0 and values[value] is not_yet:
        model = next(iter(known.values())).values[value] if known else probe(other)[value]
        if not is_missing(model) and model is not None:
            values[value] = placeholder_like(model)


# ---- loops


def while_(test: Run, body: Run, get_state: State, set_state: State, names: Sequence[str], options: Run | None) -> None:
    """`while test: body`. It becomes a graph loop in the iteration in which the test becomes a staged value."""
    while True:
        value = test()
        if staged(value):
            condition(value, "while loop")
            _staged_loop(test, body, get_state, set_state, names, options)
            return
        if not value:
            return
        body()


def for_(
    iterable: Any,
    body: Callable[[Any], None],
    go_on: Run | None,
    get_state: State,
    set_state: State,
    names: Sequence[str],
    options: Run | None,
) -> None:
    """`for item in iterable: body(item)`, as long as `go_on()` holds after each iteration."""
    rows = rows_of(iterable)
    if rows is not None:
        _staged_for(rows, body, go_on, (get_state, set_state, names), options)
        return
    hook = getattr(type(iterable), "__autograph_for__", None)
    if hook is not None and _hooked_for(iterable, hook, body, go_on, get_state, set_state, names):
        return
    _python_for(iterable, body, go_on, (get_state, set_state, names))


def _python_for(
    iterable: Any, body: Callable[[Any], None], go_on: Run | None, state: tuple[State, State, Sequence[str]]
) -> None:
    get_state, set_state, names = state
    if go_on is None:
        for item in iterable:
            body(item)
        return
    going: Any = go_on()
    if not staged(going) and not going:
        return
    for item in iterable:
        if staged(going):
            if_(going, functools.partial(body, item), lambda: None, get_state, set_state, names, len(names))
        else:
            body(item)
        going = go_on()
        if staged(going):
            if not hasattr(iterable, "__len__"):
                raise NotImplementedError(
                    "break and return statements which depend on a TF condition are not supported in Python for loops "
                    "without a known length. Did you intend to make it a TF loop?"
                )
        elif not going:
            return


class Rows:
    """What a graph loop runs over: a number of rows, and each of them by a symbolic position.

    Where the number is not known before, `more(position)` says whether there is a row. `start` is the first position.
    """

    def __init__(
        self,
        count: Any,
        row: Callable[[Any], Any],
        start: Any = None,
        more: Callable[[Any], Any] | None = None,
        finish: Run | None = None,
        counts: bool = False,
    ) -> None:
        self.count = count
        self.row = row
        self.counts = counts  # the rows are those of `tf.range`: the loop variable is 0 where there are none
        self.start, self.more, self.finish = start, more, finish

    def __iter__(self) -> Any:
        raise TypeError(
            "Iterating over a symbolic `tf.Tensor` is not allowed. Write a `for` statement in a function that "
            "AutoGraph converts."
        )


def rows_of(iterable: Any) -> Rows | None:
    """The rows of a staged iterable; None for all others."""
    if isinstance(iterable, Rows):
        return iterable
    own_rows = getattr(type(iterable), "__autograph_rows__", None)
    if own_rows is not None and _core.is_tracing():
        result: Rows | None = own_rows(iterable)
        return result
    if staged(iterable):
        tensor = convert_to_tensor(iterable)
        if tensor.shape.rank == 0:
            raise ValueError(f"len requires a non-scalar tensor, got one of shape {tensor.shape}")
        counts = _core.is_symbolic(tensor) and tensor.op.type == primitives.operation_name(primitives.Range)
        return Rows(length_of(tensor), lambda i: tensor[i], counts=counts)
    values = getattr(iterable, "flat_values", None)
    if values is not None and staged(values):
        return Rows(iterable.nrows(), lambda i: iterable[i])
    return None


def length_of(tensor: Any) -> Any:
    """The size of the first dimension: a number if it is known."""
    known = None if tensor.shape.rank is None else tensor.shape[0]
    return sizes_of(tensor)[0] if known is None else known


def _staged_for(
    rows: Rows,
    body: Callable[[Any], None],
    go_on: Run | None,
    state: tuple[State, State, Sequence[str]],
    options: Run | None,
) -> None:
    get_state, set_state, names = state
    if isinstance(rows.count, int) and rows.count == 0:
        return
    position: list[Any] = [convert_to_tensor(0) if rows.start is None else rows.start]
    if rows.more is None:
        count = convert_to_tensor(rows.count)
        if count.dtype != position[0].dtype:
            position[0] = convert_to_tensor(0, dtype=count.dtype)

    def test() -> Any:
        has_more = rows.more
        if has_more is not None:
            return has_more(position[0]) if go_on is None else and_(go_on(), lambda: has_more(position[0]))
        more = position[0] < count
        return more if go_on is None else and_(more, go_on)

    items: list[Any] = []  # the last one

    def step() -> None:
        here = position[0]
        items[:] = [rows.row(here)]
        body(items[0])
        position[0] = here + 1

    def get_all() -> tuple[Any, ...]:
        return (position[0], *get_state())

    def set_all(values: Sequence[Any]) -> None:
        position[0] = values[0]
        set_state(values[1:])

    widens = rows.more is not None
    may_be_skipped = None if isinstance(rows.count, int) else lambda value: rows.counts and value is items[0]
    all_names = ("the position in the loop", *names)
    _staged_loop(test, step, get_all, set_all, all_names, options, widens, may_be_skipped)
    if rows.finish is not None:
        rows.finish()


def _hooked_for(
    iterable: Any,
    hook: Callable[..., Any],
    body: Callable[[Any], None],
    go_on: Run | None,
    get_state: State,
    set_state: State,
    names: Sequence[str],
) -> bool:
    """Lets the iterable run the loop: `__autograph_for__(state, step, go_on)` gives the last state."""
    before = Packed(get_state())

    def step(state: Sequence[Any], item: Any) -> list[Any]:
        set_state(before.with_new(state))
        body(item)
        after = Packed(get_state())
        check_iteration(names, before, after, [None] * len(before.travelling))
        return after.travelling

    def going(state: Sequence[Any]) -> Any:
        set_state(before.with_new(state))
        return go_on is None or go_on()

    last = hook(iterable, before.travelling, step, None if go_on is None else going)
    if last is NotImplemented:
        return False
    set_state(before.with_new(last))
    return True


class _WiderError(Exception):
    """An iteration of a loop gives shapes that those of the start do not cover."""

    def __init__(self, shapes: list[Any]) -> None:
        super().__init__()
        self.shapes = shapes


def _staged_loop(
    test: Run,
    body: Run,
    get_state: State,
    set_state: State,
    names: Sequence[str],
    options: Run | None,
    widens: bool = False,
    may_be_skipped: Callable[[Any], bool] | None = lambda _: False,
) -> None:
    """A loop of the graph. One that `widens` finds for itself what may vary in shapes, as loops over datasets do.

    A variable that has no value before the loop can be read after it only if there was an iteration, unless it
    `may_be_skipped`, by the value that an iteration gives it; None stands for a loop with at least one iteration.
    """
    start = get_state()
    chosen = {} if options is None else {k: v for k, v in options().items() if v is not None}
    invariants = _invariants(names, start, chosen.pop("shape_invariants", None) or ())
    defined, made_up = _defined(names, start, body, get_state, set_state, invariants)
    before = Packed(defined)
    set_state(before.values)
    shapes = _flat_shapes(names, before, invariants)
    needs_iteration = [] if may_be_skipped is None else [n for n in made_up if not may_be_skipped(made_up[n])]
    # It travels behind the state, or alone, if the loop changes variables only.
    has_run = [convert_to_tensor(False)] if needs_iteration or not before.travelling else []

    def holds(*state: Any) -> Any:
        set_state(before.with_new(state))
        value = test()
        return condition(value, "while loop") if staged(value) else value

    def step(*state: Any) -> list[Any]:
        set_state(before.with_new(state))
        body()
        after = Packed(get_state())
        if widens and len(after.travelling) == len(shapes):
            wider = [_widened(*leaves) for leaves in zip(before.travelling, after.travelling, shapes)]
            if any(new is not old for new, old in zip(wider, shapes)):
                raise _WiderError(wider)
        check_iteration(names, before, after, shapes)
        return [*after.travelling, *[convert_to_tensor(True)] * len(has_run)]

    while True:
        if any(shape is not None for shape in shapes):
            chosen["shape_invariants"] = [
                getattr(leaf, "shape", None) if shape is None else shape
                for leaf, shape in zip([*before.travelling, *has_run], [*shapes, *[None] * len(has_run)])
            ]
        try:
            last = while_loop(holds, step, [*before.travelling, *has_run], **chosen)
            break
        except _WiderError as error:
            shapes = error.shapes
    state = list(before.with_new(last))
    for n in needs_iteration:
        text = f"assertion failed: [loop must iterate at least once to initialize {names[n]}]"
        state[n] = nest.map_structure(lambda leaf: _required(leaf, last[-1], text), state[n])  # noqa: B023
    set_state(state)


def _required(leaf: Any, holds: Any, text: str) -> Any:
    return _core.required(leaf, holds, text) if isinstance(leaf, _core.Tensor) else leaf


def _widened(first: Any, second: Any, shape: TensorShape | None) -> TensorShape | None:
    """The shape of a loop variable that covers what it is before and after an iteration; None if the first one does."""
    if not (isinstance(first, _core.Tensor) and isinstance(second, _core.Tensor)):
        return shape
    known = first.shape if shape is None else shape
    common = known.most_specific_compatible_shape(second.shape)
    return shape if common == known else common


def _defined(
    names: Sequence[str],
    start: Sequence[Any],
    body: Run,
    get_state: State,
    set_state: State,
    invariants: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """The first state, with zeros for variables that only the loop sets: of the kind that one iteration gives them.

    And what that is, by the number of the variable.
    """
    missing = [n for n, value in enumerate(start) if is_missing(value) or value is None]
    made_up: dict[int, Any] = {}
    if not missing:
        return tuple(start), made_up
    set_state(Packed(start).values)  # numbers are tensors in the loop
    try:
        after = probe(lambda: (body(), get_state())[1])
    except (NameError, AttributeError, LookupError) as error:
        lacking = [shown(names[n]) for n in missing if is_missing(start[n])]
        if not lacking:
            raise
        raise ValueError(
            f"'{lacking[0]}' must be defined before the loop\nNote: AutoGraph tried to define it automatically, but "
            f"ran into a {type(error).__name__}: {error}"
        ) from error
    finally:
        set_state(start)
    values = list(start)
    for n in missing:
        if is_missing(after[n]):
            if names[n] != VALUE:
                raise ValueError(f"'{names[n]}' must be defined before the loop")
        else:
            values[n] = placeholder_like(after[n])
            if names[n] != VALUE:
                made_up[n] = after[n]
            shapes = [leaf.shape for leaf in Packed([after[n]]).travelling if hasattr(leaf, "shape")]
            if not all(shape.is_fully_defined() for shape in shapes):
                invariants.setdefault(names[n], shapes)
    return tuple(values), made_up


def _invariants(names: Sequence[str], start: Sequence[Any], given: Sequence[Any]) -> dict[str, Any]:
    """The shape invariants by variable: `set_loop_options` names one by the value that it has before the loop."""
    found: dict[str, Any] = {}
    for value, shape in given:
        for name, own in zip(names, start):
            if own is value:
                found[name] = shape
    return found


def _flat_shapes(names: Sequence[str], before: Packed, invariants: dict[str, Any]) -> list[TensorShape | None]:
    """One invariant, or None, for each leaf that travels."""
    shapes: list[TensorShape | None] = []
    for name, value in zip(names, before.values):
        leaves = [leaf for leaf in nest.flatten(value) if is_carried(leaf)]
        given = invariants.get(name)
        if given is None:
            shapes += [None] * len(leaves)
            continue
        one = isinstance(given, TensorShape) or (len(leaves) == 1 and not isinstance(given, dict))
        flat = [given] * len(leaves) if one else nest.flatten(given)
        for leaf, shape in zip(leaves, flat):
            shape = as_shape(getattr(shape, "shape", shape))
            if not shape.is_compatible_with(leaf.shape):
                raise ValueError(
                    f"'{name}' has shape {leaf.shape} before the loop, which does not conform with the shape invariant "
                    f"{shape}."
                )
            shapes.append(shape)
    return shapes
