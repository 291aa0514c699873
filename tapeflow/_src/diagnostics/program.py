"""What the text of the user's program says: the lines that bind names, and what statements use."""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tapeflow._src.diagnostics.frames import Named


class Binding(NamedTuple):
    """One assignment: the names it binds, those it uses, and where it stands."""

    names: frozenset[str]
    uses: frozenset[str]
    line: int
    scope: tuple[int, int]
    makes_variable: bool
    augmented: bool
    end_line: int
    unread: frozenset[str]  # of `uses`: those that stand outside of calls that read a value as a Python number or array
    smooth: frozenset[str] = frozenset()  # of `unread`: those outside of calls that have no gradient, such as argmax


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


def _reads(call: ast.Call) -> bool:
    """Whether a call gives the value of a tensor to Python, or computes with such values."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return called in _READS or (_key(call.func) or "").startswith("np.")


def _has_no_gradient(call: ast.Call) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return called in ("argmax", "argmin", "stop_gradient", "round", "floor", "ceil", "sign", "argsort", "categorical")


def _unread(node: ast.AST, smooth: bool = False) -> frozenset[str]:
    """The names in an expression or statement outside of calls that read values; with `smooth`, also of those without
    a gradient.
    """
    found, stack = set(), [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Call) and (_reads(inner) or (smooth and _has_no_gradient(inner))):
            continue
        if isinstance(inner, ast.Name | ast.Attribute) and (key := _key(inner)):
            found.add(key)
        stack += ast.iter_child_nodes(inner)
    return frozenset(found)


_CALLED = ("__call__", "call")  # the methods that run where an object is called
_MAKE_VARIABLES = frozenset({"Variable", "add_weight", "add_variable", "get_variable"})
# Functions that give the value of a tensor to Python.
_READS = {"numpy", "item", "tolist", "float", "int", "numpy_function", "py_function", "py_func"}


class Statement(NamedTuple):
    """A simple statement: the names that it binds or may change, and all names that it uses."""

    bound: frozenset[str]
    used: frozenset[str]
    lines: tuple[int, int]
    scope: tuple[int, int]
    unread: frozenset[str]


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
            inner = _inner_names(node)
            statements.append(Statement(bound, _keys(node) - inner, lines, scope, _unread(node) - inner))
        if isinstance(node, ast.For):
            lines = (node.lineno, node.iter.end_lineno or node.lineno)
            statements.append(Statement(_keys(node.target), _keys(node.iter), lines, scope, _unread(node.iter)))
        if isinstance(node, ast.If | ast.While | ast.For | ast.IfExp):
            controls.append(_control(node, scope))
        if isinstance(node, ast.ClassDef):
            classes.append((node.lineno, node.end_lineno or node.lineno))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
            shared = functions.get(node.name, frozenset()) if node.name in _CALLED else frozenset()
            functions[node.name] = shared | _keys(node)
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
            if _reads(node):
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
            own = names if augmented else frozenset()
            unread, smooth = _unread(node.value) | own, _unread(node.value, smooth=True) | own
            bindings.append(Binding(names, uses, node.lineno, scope, makes, augmented, end, unread, smooth))
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
def _origins_of(file: str, line: int) -> dict[str, int]:
    """All names of the file that the statement at a line may depend on, through other statements and functions.

    With each stands how many statements lie in between.
    """
    program = _read(file)
    first = _statement_at(file, line)
    seen: dict[str, int] = {}
    front, hops = sorted(first.used) if first is not None else [], 0
    while front:
        names = {name for name in front if name not in seen and name not in program.imported}
        seen |= dict.fromkeys(names, hops)
        front, hops = [], hops + 1
        for name in names:
            front += program.uses_by_function.get(name.rpartition(".")[2], ())
            for statement in program.statements:
                if name in statement.bound:
                    front += statement.used
    return {name: seen[name] for name in _values(file, seen)}


def relation(read: tuple[str, int], made: tuple[str, int]) -> str:
    """How a value that Python read at one line may have come into a value that was made at another one.

    "same": by the same statement. "bound": by a name. "possible": nothing speaks against it. "none": no name leads
    from one statement to the other.
    """
    return relation_and_hops(read, made)[0]


def relation_and_hops(read: tuple[str, int], made: tuple[str, int]) -> tuple[str, int]:
    """The same, and for "bound" how many statements lie in between."""
    if read[0] != made[0]:
        return "possible", 0
    first, second = _statement_at(*read), _statement_at(*made)
    if first is None or second is None:
        return "possible", 0
    if first.lines == second.lines:
        return "same", 0
    origins = _origins_of(*made)
    bound, used = _values(read[0], first.bound), _values(read[0], first.used)
    own = {name.rpartition(".")[2] for name in bound if name.startswith("self.")}
    names = {n for n in origins if n in bound or ("." in n and n.rpartition(".")[2] in own)}  # `self.rows` and `o.rows`
    if names:
        return "bound", min(origins[n] for n in names)
    return "none" if bound and first.scope == second.scope and used.isdisjoint(origins) else "possible", 0


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


@lru_cache(maxsize=256)
def is_given_arguments(file: str, line: int, name: str) -> bool:
    """Whether the call of a class at a line uses arguments of the function around it, other than `self`."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return False
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [n for n in functions if n.lineno <= line <= (n.end_lineno or n.lineno)]
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno == line]
    used = {u.partition(".")[0] for n in calls if (_key(n.func) or "").rpartition(".")[2] == name for u in _keys(n)}
    arguments = [[*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs] for n in around]
    return not used.isdisjoint({a.arg for row in arguments for a in row} - {"self"})


def used_as_loss(file: str, line: int) -> int:
    """Where the function around a line is called, if it is a metric by its name and one statement calls it."""
    around = [(last - first, name) for first, last, name in _functions(file) if first <= line <= last]
    name = min(around, default=(0, ""))[1]
    if re.search(r"dice|iou|jaccard|overlap|tversky|f1|f_|score|coef|metric", name) is None or "loss" in name:
        return line
    calls = [s for s in _read(file).statements if any(used.rpartition(".")[2] == name for used in s.used)]
    return calls[0].lines[0] if len(calls) == 1 else line


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
    first = named.inside or named.frame.f_code.co_firstlineno
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


def bindings_used_at(file: str, line: int) -> list[tuple[str, int]]:
    """The names and attributes that the statement at a line uses, and the lines that bind them, whatever the scope."""
    statement = _statement_at(file, line)
    used = {name.rpartition(".")[2] for name in statement.used} if statement is not None else set()
    bindings = ((name.rpartition(".")[2], b.line) for b in _read(file).bindings for name in b.names)
    return [(name, at) for name, at in bindings if name in used]


def computations_of(named: Named) -> list[Binding]:
    """The assignments to a name, and for an item the statements that may put items into what has the name.

    They do so by a method of it, or of the object that holds it: `rows.append(x)`, `memory.add(x)`.
    """
    if not named.item:
        return bindings_of(named)
    first = named.frame.f_code.co_firstlineno
    holders = {named.name, named.name.partition(".")[0]}
    program = _read(named.file)
    own = {b.scope for b in program.bindings if named.name in b.names}  # of functions that bind the name themselves
    is_global = named.frame.f_code.co_name == "<module>"
    fills = [
        Binding(s.bound, s.used, s.lines[0], s.scope, False, True, s.lines[1], s.unread, s.unread)
        for s in program.statements
        if not holders.isdisjoint(s.bound) and (s.scope[0] <= first <= s.scope[1] or (is_global and s.scope not in own))
    ]
    fills += [b for f in fills for b in _of_what_is_put_in(named, f, holders)]
    return sorted({b.line: b for b in (*fills, *bindings_of(named))}.values(), key=lambda b: (not b.augmented, b.line))


def _of_what_is_put_in(named: Named, fill: Binding, holders: set[str]) -> list[Binding]:
    """The assignments to a name that a statement puts into something as it stands, as `rows.append(row)`."""
    made = set(re.findall(r"\b([A-Z]\w*)\(", linecache.getline(named.file, fill.line)))  # rows, such as named tuples
    names = {n for n in fill.unread if n.partition(".")[0] not in {h.partition(".")[0] for h in holders} | made}
    return [b for n in names for b in bindings_of(_named_in(n, named, fill))] if len(names) == 1 else []


def _named_in(name: str, named: Named, binding: Binding) -> Named:
    """A name that a binding uses: of its own function, if that is not the frame's."""
    first = named.frame.f_code.co_firstlineno
    return Named(name, named.frame, "", 0 if binding.scope[0] <= first <= binding.scope[1] else binding.scope[0])


def uses_name(
    named: Named, binding: Binding, source: str, before: int, depth: int = 6, smooth: bool = False
) -> bool:  # fmt: skip
    """Whether a binding uses a name, directly, through other names, or in a function that it calls.

    What Python computes from values that it read is another matter; with `smooth`, also what has no gradient.
    """
    functions = _read(named.file).uses_by_function
    uses = set(binding.smooth if smooth else binding.unread)
    for name in list(uses):
        uses |= functions.get(name.rpartition(".")[2], frozenset())
    last = source.rpartition(".")[2]
    if "." in source and _is_called(named.file, binding, source.partition(".")[0]):
        uses = uses.union(*(functions.get(name, frozenset()) for name in _CALLED))
    if source in uses or ("." in source and any(u.endswith("." + last) for u in uses)):
        return True
    if depth == 0:
        return False
    bindings = (b for n in uses for b in bindings_of(_named_in(n, named, binding)))
    inner = (b for b in bindings if b.line < before and b is not binding)
    return any(uses_name(named, b, source, b.line, depth - 1, smooth) for b in inner)


def _is_called(file: str, binding: Binding, name: str) -> bool:
    """Whether a binding calls the object that has a name."""
    lines = range(binding.line, binding.end_line + 1)
    return any(re.search(rf"(?<![\w.]){name}\(", linecache.getline(file, line)) for line in lines)


def uses_itself(binding: Binding, name: str) -> bool:
    """Whether a binding of a name computes the new value from the old one."""
    if "." not in name:
        return name in binding.uses
    return any(use in binding.names and use.rpartition(".")[2] == name.rpartition(".")[2] for use in binding.uses)


_USE_THE_LOSS = ("fit", "train_on_batch", "evaluate", "test_on_batch")  # methods of Keras models


def loss_line(file: str, line: int) -> int:
    """For a call of `fit` and the like, the line of the loss in the last `compile` before it; for others the line."""
    text = linecache.getline(file, line)
    return _compiled(file, line)[0] if any(f".{name}(" in text for name in _USE_THE_LOSS) else line


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
