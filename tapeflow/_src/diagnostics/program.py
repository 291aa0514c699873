"""What the text of the user's program says about a value: the names it has, and the lines that bind them."""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import FrameType, FunctionType
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.namespace import PACKAGE_FOLDER
from tapeflow._src.types.library_folders import is_library

_FRAMES = 30
_LOOKED_INTO = 400  # of the names of a scope, the last ones, whose items and attributes are looked at


class Binding(NamedTuple):
    """One assignment: the names it binds, those it uses, and where it stands."""

    names: frozenset[str]
    uses: frozenset[str]
    line: int
    scope: tuple[int, int]
    makes_variable: bool
    augmented: bool
    end_line: int


class Named(NamedTuple):
    """A name by which a value can be reached from a frame of the program."""

    name: str
    frame: FrameType
    item: str = ""  # "[2]" or "['key']" for an item of what has the name

    @property
    def label(self) -> str:
        return self.name + self.item

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename


class Frames(list[FrameType]):
    """Frames of the program at one moment. Their names are read once, however many questions are asked about them."""

    def __init__(self, frames: Iterable[FrameType] = ()) -> None:
        super().__init__(frames)
        self._held: list[_Held] | None = None
        self._held_by_id: dict[int, list[_Held]] = {}
        self._tensors: list[_Held] | None = None
        self._owners: list[_Held] | None = None

    def held(self) -> list[_Held]:
        """All but numbers, texts, functions and the like."""
        if self._held is None:  # holds the values, so that ids stay theirs
            self._held = [row for row in _held_values(self) if type(row[0]) not in _PLAIN]
            for row in self._held:
                self._held_by_id.setdefault(id(row[0]), []).append(row)
        return self._held

    def names_of(self, value: Any) -> list[Named]:
        self.held()
        return [_named(row) for row in self._held_by_id.get(id(value), ())]

    def tensors(self) -> list[_Held]:
        if self._tensors is None:
            self._tensors = [row for row in self.held() if _core.is_tensor(row[0])]
        return self._tensors

    def owners(self) -> list[_Held]:
        """Layers, models and modules in sight, by their own names or as attributes of what has one."""
        if self._owners is None:
            kinds = {type(row[0]) for row in self.held()}
            kinds = {kind for kind in kinds if hasattr(kind, "trainable_variables") and not issubclass(kind, type)}
            own = [row for row in self.held() if type(row[0]) in kinds and row[4] is None and row[1] in self[:5]]
            self._owners = sorted(own, key=lambda row: row[3] is not None)
        return self._owners


class _Items(tuple[int, int]):
    """The positions of an item of an item."""


def user_frames() -> Frames:
    """The frames of the program, innermost first, without Tapeflow's and (if others are left) libraries'."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < 2 * _FRAMES:
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            frames.append(frame)
        frame = frame.f_back
    own = [f for f in frames if not is_library(f.f_code.co_filename)]
    return Frames((own or frames)[:_FRAMES])


# A value and its name: the frame, the name, and the attribute or item of what has the name.
_Held = tuple[Any, FrameType, str, str | None, Any]
_PLAIN = frozenset({int, float, bool, str, bytes, type(None), FunctionType})


def _named(held: _Held) -> Named:
    _, frame, name, attribute, item = held
    if attribute is not None:
        return Named(f"{name}.{attribute}", frame)
    items = item if isinstance(item, _Items) else () if item is None else (item,)
    return Named(name, frame, "".join(f"[{key!r}]" for key in items))


def named_values(frames: Frames) -> Iterator[tuple[Named, Any]]:
    """Names and values within reach: locals, attributes and items of locals, and globals."""
    return ((_named(held), held[0]) for held in _held_values(frames))


def named_tensors(frames: Frames, chosen: Callable[[Any], bool]) -> Iterator[tuple[Named, Any]]:
    """Of `named_values`, the tensors and variables for which a question is answered by yes."""
    return ((_named(held), held[0]) for held in frames.tensors() if chosen(held[0]))


def _held_values(frames: list[FrameType]) -> Iterator[_Held]:
    for frame in frames:
        held = list(frame.f_locals.items())
        looked_into = len(held) - _LOOKED_INTO
        for number, (name, value) in enumerate(held):
            yield value, frame, name, None, None
            if number < looked_into or type(value) in _PLAIN or _core.is_tensor(value):
                continue
            if isinstance(value, list | tuple):
                yield from ((item, frame, name, None, i) for i, item in enumerate(value[:50]))
                rows = ((i, row) for i, row in enumerate(value[:50]) if type(row) in (list, tuple))
                yield from (
                    (item, frame, name, None, _Items((i, j))) for i, row in rows for j, item in enumerate(row[:9])
                )
            elif isinstance(value, dict):
                yield from ((item, frame, name, None, key) for key, item in list(value.items())[:50])
            elif name != "tf" and isinstance(getattr(value, "__dict__", None), dict):
                for attribute, item in list(vars(value).items())[:100]:
                    yield item, frame, name, attribute, None
                    if hasattr(type(item), "trainable_variables"):  # the weights of a model that an object holds
                        yield from (
                            (w, frame, name, f"{attribute}.{own}", None) for own, w in list(vars(item).items())[:50]
                        )
    for frame in frames[:3]:
        if frame.f_locals is not frame.f_globals:
            yield from ((value, frame, name, None, None) for name, value in list(frame.f_globals.items()))


def is_direct(named: Named, value: Any) -> bool:
    """Whether the name is the value's own, not that of a list or dictionary that holds it."""
    if named.item:
        return False
    first, *attributes = named.name.split(".")
    frame = named.frame
    held = frame.f_locals.get(first, frame.f_globals.get(first))
    for attribute in attributes:
        held = getattr(held, "__dict__", {}).get(attribute)
    return held is value


def names_of(value: Any, frames: Frames) -> list[Named]:
    """The names of a value, nearest first."""
    return frames.names_of(value)


def owners_of(variable: Any, frames: Frames) -> list[Named]:
    """The names of layers, models and modules that hold a variable, nearest first."""
    return [_named(owner) for owner, _ in _holders(variable, frames)]


def twins_of(variable: Any, frames: Frames) -> Iterator[tuple[Named, list[Any]]]:
    """Other models in sight that have variables of the same shapes as one that holds a variable: their variables."""
    own = [(row, _forms(row[0])) for row, _ in _holders(variable, frames)]
    own = [(row, forms) for row, forms in own if len(forms) > 1]
    mine = {id(row[0]) for row, _ in own}
    for other in frames.owners() if own else ():
        if id(other[0]) not in mine and any(_forms(other[0]) == forms for _, forms in own):
            yield _named(other), [getattr(v, "handle", v) for v in list(other[0].variables)[:1000]]


def _forms(model: Any) -> list[Any]:
    return [tuple(v.shape) for v in list(getattr(model, "variables", ()))[:1000]]


def held_as(variable: Any, frames: Frames) -> Any:
    """The object by which a layer or model in sight holds a variable, as Keras's own; else the variable itself."""
    return next((held for _, held in _holders(variable, frames)), variable)


def _holders(variable: Any, frames: Frames) -> Iterator[tuple[_Held, Any]]:
    for owner in frames.owners():
        for held in list(getattr(owner[0], "variables", ()))[:1000]:
            if held is variable or getattr(held, "handle", None) is variable:
                yield owner, held
                break


def _key(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _key(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Subscript | ast.Starred):
        return _key(node.value)
    return None


def _keys(node: ast.AST) -> frozenset[str]:
    keys = (_key(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute))
    return frozenset(k for k in keys if k)


_MAKE_VARIABLES = frozenset({"Variable", "add_weight", "add_variable", "get_variable"})
# Functions that give the value of a tensor to Python.
_READS = {"numpy", "item", "tolist", "float", "int", "numpy_function", "py_function", "py_func"}


class Statement(NamedTuple):
    """A simple statement: the names that it binds or may change, and all names that it uses."""

    bound: frozenset[str]
    used: frozenset[str]
    lines: tuple[int, int]
    scope: tuple[int, int]


class Control(NamedTuple):
    """A condition, or what a loop runs over, and the lines that run because of its value."""

    test: tuple[int, int]
    body: tuple[int, int]


class _Program(NamedTuple):
    bindings: list[Binding]
    uses_by_function: dict[str, frozenset[str]]
    with_end_by_line: dict[int, int]
    literals_by_line: dict[int, list[float]]
    compiled_by_line: dict[int, tuple[int, int]]  # for each call of compile, the lines of its loss and optimizer
    computed_lines: set[int]  # where Python computes with values that it got from tensors
    statements: list[Statement]
    imported: frozenset[str]
    controls: list[Control]
    classes: list[tuple[int, int]]  # first and last lines


@lru_cache(maxsize=32)
def _read(file: str) -> _Program:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return _Program([], {}, {}, {}, {}, set(), [], frozenset(), [], [])
    bindings: list[Binding] = []
    functions: dict[str, frozenset[str]] = {}
    ends: dict[int, int] = {}
    literals: dict[int, list[float]] = {}
    computed: set[int] = set()
    compiled: dict[int, tuple[int, int]] = {}
    statements: list[Statement] = []
    imported: set[str] = set()
    controls: list[Control] = []
    classes: list[tuple[int, int]] = []

    def visit(node: ast.AST, scope: tuple[int, int], function: str = "") -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        if isinstance(node, _SIMPLE):
            bound = _changed(node) | (frozenset([function]) if isinstance(node, ast.Return) else frozenset())
            lines = (node.lineno, node.end_lineno or node.lineno)
            statements.append(Statement(bound, _keys(node) - _inner_names(node), lines, scope))
        if isinstance(node, ast.For):
            lines = (node.lineno, node.iter.end_lineno or node.lineno)
            statements.append(Statement(_keys(node.target), _keys(node.iter), lines, scope))
        if isinstance(node, ast.If | ast.While | ast.For | ast.IfExp):
            controls.append(_control(node, scope))
        if isinstance(node, ast.ClassDef):
            classes.append((node.lineno, node.end_lineno or node.lineno))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
            functions[node.name] = _keys(node)
            scope = (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            literals.setdefault(node.lineno, []).append(float(node.value))
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "compile":
                given = {k.arg: k.value for k in node.keywords}
                loss = given.get("loss") or (node.args[1:2] or [node])[0]
                optimizer = given.get("optimizer") or (node.args[:1] or [node])[0]
                compiled[node.lineno] = (loss.lineno, optimizer.lineno)
            if called in _READS or (_key(node.func) or "").startswith("np."):
                computed.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.With):
            ends[node.lineno] = node.end_lineno or node.lineno
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
            names = frozenset(k for k in map(_key, parts) if k)
            augmented = isinstance(node, ast.AugAssign)
            uses = _keys(node.value) | (names if augmented else frozenset())
            called = {_key(n.func) or "" for n in ast.walk(node.value) if isinstance(n, ast.Call)}
            makes = any(c.rpartition(".")[2] in _MAKE_VARIABLES for c in called)
            end = node.end_lineno or node.lineno
            bindings.append(Binding(names, uses, node.lineno, scope, makes, augmented, end))
        for child in ast.iter_child_nodes(node):
            visit(child, scope, function)

    visit(tree, (0, 1 << 30))
    return _Program(
        bindings, functions, ends, literals, compiled, computed, statements, frozenset(imported), controls, classes
    )


_SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return


def _control(node: ast.If | ast.While | ast.For | ast.IfExp, scope: tuple[int, int]) -> Control:
    test = node.iter if isinstance(node, ast.For) else node.test
    leaves = any(isinstance(inner, ast.Return | ast.Break | ast.Continue) for inner in ast.walk(node))
    first = node.lineno if isinstance(node, ast.IfExp) else node.body[0].lineno
    last = scope[1] if leaves else node.end_lineno or node.lineno
    return Control((test.lineno, test.end_lineno or test.lineno), (first, last))


def controlled_by(file: str, line: int) -> list[tuple[int, int]]:
    """The ranges of lines that run, or not, by what a condition or loop at a line reads."""
    return [c.body for c in _read(file).controls if c.test[0] <= line <= c.test[1]]


def _changed(node: ast.AST) -> frozenset[str]:
    """The names that a statement binds, and those whose methods it calls: `rows.append(x)` may change `rows`."""
    targets: list[ast.AST] = list(node.targets) if isinstance(node, ast.Assign) else []
    targets += [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) else []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            targets.append(inner.func.value)
        if isinstance(inner, ast.NamedExpr):
            targets.append(inner.target)
    parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
    return frozenset(k for k in map(_key, parts) if k)


def _inner_names(node: ast.AST) -> frozenset[str]:
    """The names that comprehensions and lambdas inside a statement have for themselves."""
    inner: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            inner |= _keys(part.target)
        if isinstance(part, ast.Lambda):
            inner.update(argument.arg for argument in part.args.args)
    return frozenset(inner)


def _statement_at(file: str, line: int) -> Statement | None:
    """The innermost simple statement at a line."""
    held = [s for s in _read(file).statements if s.lines[0] <= line <= s.lines[1]]
    return min(held, key=lambda s: s.lines[1] - s.lines[0], default=None)


@lru_cache(maxsize=4096)
def _origins_of(file: str, line: int) -> frozenset[str]:
    """All names of the file that the statement at a line may depend on, through other statements and functions."""
    program = _read(file)
    first = _statement_at(file, line)
    seen: set[str] = set()
    stack = list(first.used) if first is not None else []
    while stack:
        name = stack.pop()
        if name in seen or name in program.imported:
            continue
        seen.add(name)
        stack += program.uses_by_function.get(name.rpartition(".")[2], ())
        for statement in program.statements:
            if name in statement.bound:
                stack += statement.used
    return _values(file, seen)


def relation(read: tuple[str, int], made: tuple[str, int]) -> str:
    """How a value that Python read at one line may have come into a value that was made at another one.

    "same": by the same statement. "bound": by a name. "possible": nothing speaks against it. "none": no name leads
    from one statement to the other.
    """
    if read[0] != made[0]:
        return "possible"
    first, second = _statement_at(*read), _statement_at(*made)
    if first is None or second is None:
        return "possible"
    if first.lines == second.lines:
        return "same"
    origins = _origins_of(*made)
    bound, used = _values(read[0], first.bound), _values(read[0], first.used)
    if not bound.isdisjoint(origins):
        return "bound"
    return "none" if bound and first.scope == second.scope and used.isdisjoint(origins) else "possible"


@lru_cache(maxsize=32)
def _functions(file: str) -> list[tuple[int, int, str]]:
    """First and last line and name of each function of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(n.lineno, n.end_lineno or n.lineno, n.name) for n in found]


def called_after(file: str, line: int, inner: int) -> int | None:
    """The first statement behind a line, in its scope, that calls the function around an inner line."""
    around = [(last - first, first, last, name) for first, last, name in _functions(file) if first <= inner <= last]
    if not around or min(around)[1] <= line <= min(around)[2]:
        return None
    name = min(around)[3]
    scopes = {s.scope for s in _read(file).statements if s.scope[0] <= line <= s.scope[1]}
    later = [s for s in _read(file).statements if s.lines[0] > line and s.scope == max(scopes, default=None)]
    calls = (s.lines[0] for s in later if any(use.rpartition(".")[2] == name for use in s.used))
    return min(calls, default=None)


def made_by(file: str, line: int) -> int:
    """For a binding whose value a function of the file returns in one place: that place; else the line itself."""
    text = linecache.getline(file, line)
    called = [f for f in _functions(file) if re.search(rf"=\s*(\w+\.)*{f[2]}\(", text)]
    if len(called) != 1:
        return line
    first, last, name = called[0]
    returns = [s for s in _read(file).statements if first < s.lines[0] <= last and name in s.bound]
    return returns[0].lines[0] if len(returns) == 1 else line


def overwritten_at(file: str, line: int) -> int | None:
    """Where the name that a statement binds is bound again, before anything of the same function used it."""
    program = _read(file)
    first = next((b for b in program.bindings if b.line <= line <= b.end_line and len(b.names) == 1), None)
    if first is None or any("." in name for name in first.names):
        return None
    later = (b for b in program.bindings if b.scope == first.scope and b.line > line and first.names & b.names)
    again = min(later, key=lambda b: b.line, default=None)
    if again is None or first.names & again.uses:
        return None
    texts = linecache.getlines(file)[first.end_line : again.line]
    if any(text.lstrip().startswith(("else", "elif", "except", "case")) for text in texts):
        return None  # not one after the other
    between = (s for s in program.statements if first.end_line < s.lines[0] and s.lines[1] < again.line)
    return again.line if all(first.names.isdisjoint(s.used) for s in between) else None


def _values(file: str, names: Iterable[str]) -> frozenset[str]:
    """The names that may stand for values: not those of modules, of functions of the file, and of Python itself."""
    program = _read(file)
    others = (program.imported, program.uses_by_function, _BUILTINS)
    return frozenset(n for n in names if not any(n.partition(".")[0] in held for held in others))


_BUILTINS = frozenset(dir(builtins))


_SHAPES = frozenset({"shape", "get_shape", "len", "size", "num_elements", "ndim", "rank", "nelement"})


def reads_shape(file: str, line: int) -> bool:
    """Whether the statement at a line names a shape, a size or a length."""
    return _uses_one_of(file, line, _SHAPES)


def makes_variable(file: str, line: int) -> bool:
    """Whether the statement at a line makes a variable itself, not a layer that has some."""
    return _uses_one_of(file, line, _MAKE_VARIABLES)


def differentiates(file: str, line: int) -> bool:
    """Whether the statement at a line asks for a derivative."""
    return _uses_one_of(file, line, DERIVATIVES)


DERIVATIVES = frozenset({"gradient", "jacobian", "batch_jacobian", "gradients"})


def _uses_one_of(file: str, line: int, names: frozenset[str]) -> bool:
    statement = _statement_at(file, line)
    return statement is not None and any(use.rpartition(".")[2] in names for use in statement.used)


def class_around(file: str, line: int) -> tuple[str, int, int] | None:
    """The file, first and last line of the class that a line is part of, the innermost one."""
    around = [(last - first, first, last) for first, last in _read(file).classes if first <= line <= last]
    return (file, *min(around)[1:]) if around else None


def end_of_with(file: str, line: int) -> int:
    """The last line of the `with` statement that starts at a line; the line itself if there is none."""
    return _read(file).with_end_by_line.get(line, line)


def is_inside_with(file: str, line: int) -> bool:
    """Whether a line stands inside of a `with` statement."""
    return any(first < line <= last for first, last in _read(file).with_end_by_line.items())


def bindings_of(named: Named) -> list[Binding]:
    """The assignments to a name that its frame may have run, in the order of the text."""
    first = named.frame.f_code.co_firstlineno
    attribute = named.name.rpartition(".")[2] if "." in named.name else None
    found = []
    for binding in _read(named.file).bindings:
        if attribute:
            if any(n.rpartition(".")[2] == attribute and "." in n for n in binding.names):
                found.append(binding)
        elif named.name in binding.names and binding.scope[0] <= first <= binding.scope[1]:
            found.append(binding)
    innermost = max((b.scope for b in found), default=None)
    return [b for b in found if attribute or b.scope == innermost]


def uses_name(named: Named, binding: Binding, source: str, before: int, depth: int = 6) -> bool:
    """Whether a binding uses a name, directly, through other names, or in a function that it calls."""
    functions = _read(named.file).uses_by_function
    uses = set(binding.uses)
    for name in list(uses):
        uses |= functions.get(name.rpartition(".")[2], frozenset())
    last = source.rpartition(".")[2]
    if source in uses or ("." in source and any(u.endswith("." + last) for u in uses)):
        return True
    if depth == 0:
        return False
    inner = (b for n in uses for b in bindings_of(Named(n, named.frame)) if b.line < before and b is not binding)
    return any(uses_name(named, b, source, b.line, depth - 1) for b in inner)


def uses_itself(binding: Binding, name: str) -> bool:
    """Whether a binding of a name computes the new value from the old one."""
    if "." not in name:
        return name in binding.uses
    return any(use in binding.names and use.rpartition(".")[2] == name.rpartition(".")[2] for use in binding.uses)


def loss_line(file: str, line: int) -> int:
    """For a call of `fit`, the line of the loss in the last `compile` before it; for others the line itself."""
    text = linecache.getline(file, line)
    if ".fit(" not in text and ".train_on_batch(" not in text:
        return line
    return _compiled(file, line)[0]


def optimizer_line(file: str, line: int) -> int | None:
    """For a call of `fit`, the line of the optimizer in the last `compile` before it."""
    return _compiled(file, line)[1] if ".fit(" in linecache.getline(file, line) else None


def _compiled(file: str, line: int) -> tuple[int, int]:
    before = [about for at, about in _read(file).compiled_by_line.items() if at <= line]
    return before[-1] if before else (line, line)


def is_literal(file: str, line: int, ends: tuple[float | None, float | None], size: int) -> bool:
    """Whether a line of the program has a value as literals: its first and last number, and enough of them."""
    literals = _read(file).literals_by_line.get(line, [])
    if line in _read(file).computed_lines or size > max(len(literals), 1):
        return False
    return all(end is not None and any(math.isclose(end, n, rel_tol=1e-6) for n in literals) for end in ends)


def has_literal(file: str, line: int, number: float) -> bool:
    """Whether a number stands in a line of the program, beside whatever else."""
    return any(math.isclose(number, n, rel_tol=1e-6) for n in _read(file).literals_by_line.get(line, []))


def bound_at(named: Named, made: tuple[str, int] | None = None) -> int | None:
    """The line that gave a name its value: the one that also made the value, else the last that has run."""
    bindings = bindings_of(named)
    if not bindings:
        return None
    if made is not None and made[0] == named.file:
        for binding in bindings:
            if binding.line <= made[1] <= binding.end_line:
                return binding.line
    current = named.frame.f_lineno
    before = [b for b in bindings if b.line <= current] if "." not in named.name else bindings
    return (before or bindings)[-1].line
