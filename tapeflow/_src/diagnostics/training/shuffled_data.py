"""Features that are shuffled without their labels, as the program's text shows it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import NamedTuple

from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.training.named_arrays import Held

_SHUFFLES = {"shuffle", "permutation"}
_DRAWS = {"permutation", "choice", "randint", "integers", "randperm", "argsort", "shuffle"}
_TAKES = {"gather", "take"}
_MAKES_GENERATORS = {"RandomState", "default_rng", "Random", "Generator"}
_PAIRED_CALLS = {"zip", "fit", "from_tensor_slices", "train_on_batch", "train_step", "step", "train", "train_one_epoch"}
_CONVERSIONS = {
    "constant", "convert_to_tensor", "array", "asarray", "cast", "astype", "copy", "reshape", "float32", "one_hot",
    "to_categorical", "Variable", "expand_dims",
}  # fmt: skip
_NO_DATA = re.compile(r"ind|idx|perm|order|rng|seed|pair|both|keys|files|paths|indices", re.IGNORECASE)
_WRITTEN_LABELS = re.compile(
    r"(^|[^a-zA-Z])(d?[yYt]s?|[yYt]_\w+|\w+_[yYt])([^a-zA-Z]|$)|label|target|class|answer|output|truth", re.I
)
_LABELS = {
    "x": ["y", "t"], "X": ["Y", "y"], "features": ["labels", "targets"], "images": ["labels", "targets"],
    "inputs": ["targets", "labels", "outputs"], "data": ["labels", "targets", "target"],
}  # fmt: skip


class _Shuffle(NamedTuple):
    """A name that got another order of rows; rows keep their partners where the tokens are equal."""

    line: int
    token: str


class _OwnAttributes(ast.NodeTransformer):
    """Reads the attributes of an object inside its methods, `self.x`, as names."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            name = ast.copy_location(ast.Name(node.attr, node.ctx), node)
            name.is_own = True  # type: ignore[attr-defined]
            return name
        return ast.copy_location(ast.Attribute(self.visit(node.value), node.attr, node.ctx), node)


class _Generators:
    """Random generators whose state is known: two that begin with one seed, or go back to one state, draw the same."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}  # by the text of the generator
        self._draws: dict[str, int] = {}  # since then

    def see(self, statement: ast.Assign | ast.Expr) -> None:
        """`rng = RandomState(7)`, `np.random.seed(7)`, `state = rng.get_state()` and `rng.set_state(state)`."""
        call = statement.value
        if not isinstance(call, ast.Call):
            return
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        called, text = _called(call), ast.unparse(call)
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if called in _MAKES_GENERATORS and isinstance(target, ast.Name):
            self._begin(target.id, text if call.args or call.keywords else None)
        elif called in ("seed", "set_state", "setstate"):
            self._begin(owner, ast.unparse(call.args[0]) if call.args else None)
        elif called in ("get_state", "getstate") and isinstance(target, ast.Name):
            self._begin(owner, target.id)

    def _begin(self, generator: str, state: str | None) -> None:
        self._draws[generator] = 0
        self._states.pop(generator, None)
        if state is not None:
            self._states[generator] = state

    def token(self, call: ast.Call) -> str:
        """The order that a call draws."""
        made = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(made, ast.Call) and _called(made) in _MAKES_GENERATORS and (made.args or made.keywords):
            return f"state {ast.unparse(made)}"
        generator = "" if made is None else ast.unparse(made)
        if generator not in self._states:
            return _token(call)
        self._draws[generator] += 1
        return f"state {self._states[generator]}, draw {self._draws[generator]}"


def findings(tree: ast.AST, file: str, held: dict[str, Held]) -> Iterator[Finding]:
    """Looks at one program; `held` has the values that its names had in training steps."""
    tree = _OwnAttributes().visit(copy.deepcopy(tree))
    shuffles = _shuffles(tree)
    reported = set()
    for name, other in _pairs(tree, shuffles):
        mine, theirs = shuffles.get(name, []), shuffles.get(other, [])
        if {s.token for s in mine} == {s.token for s in theirs} or not _may_be_paired(held, name, other):
            continue
        for who, partner, alone in ((name, other, mine), (other, name, theirs)):
            if alone and who not in reported and not _NO_DATA.search(who):
                reported.add(who)
                yield _finding(file, alone[-1].line, who, partner)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "zip":
            parts = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple) else node.args
            if len(parts) == 2:
                yield from _zipped(tree, file, parts)


def _may_be_paired(held: dict[str, Held], *names: str) -> bool:
    """Whether names may be features and labels of one another: arrays with as many rows, as far as is known."""
    seen = [held[name].rows for name in names if name in held]
    return None not in seen and len(set(seen)) <= 1


def _finding(file: str, line: int, name: str, partner: str) -> Finding:
    return Finding(
        "shuffled-labels",
        "warning",
        f"`{name}` is shuffled, but not together with `{partner}`: examples get the labels of others",
        file,
        line,
        evidence={"shuffled": name, "partner": partner},
        remedy=f"order = np.random.permutation(len({name})); {name}, {partner} = {name}[order], {partner}[order]",
        confidence=0.85,
    )


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _is_draw(node: ast.AST) -> bool:
    """Whether an expression makes random positions of rows."""
    if _called(node) == "argsort":
        return any("rand" in ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Call))
    drawn = any(_called(n) in _DRAWS - {"argsort"} for n in ast.walk(node))
    return drawn and re.search(r"random|rng", ast.unparse(node)) is not None


def _shuffles(tree: ast.AST) -> dict[str, list[_Shuffle]]:
    """For each name, how its rows were put into another order, in the order of the text."""
    found: dict[str, list[_Shuffle]] = {}
    drawn: dict[str, str] = {}  # names of random positions
    orders: set[str] = set()  # those that hold each position once
    generators = _Generators()
    statements = [n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.Expr)]
    for node in sorted(statements, key=lambda n: n.lineno):
        generators.see(node)
        if isinstance(node, ast.Expr):
            call = node.value
            if _called(call) == "shuffle" and isinstance(call, ast.Call) and call.args and not _is_dataset(call):
                first = call.args[0]
                if isinstance(first, ast.Name):
                    if first.id in orders or _NO_DATA.search(first.id):
                        drawn[first.id] = f"{first.id}@{node.lineno}"
                    else:
                        found.setdefault(first.id, []).append(_Shuffle(node.lineno, generators.token(call)))
            continue
        for target, value in _parts(node):
            event = _reordered(value, drawn, generators)
            if event is not None:
                source, token = event
                found[target] = [*found.get(source, []), _Shuffle(node.lineno, token)]
            elif _is_draw(value) or _called(value) in ("arange", "range", "list"):
                drawn[target] = f"{target}@{node.lineno}"
                orders |= {target} if re.search(r"arange|range|list|permutation|argsort", ast.unparse(value)) else set()
            elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in drawn:
                drawn[target] = drawn[value.value.id]  # the first of the positions
            elif (name := _converted(value)) is not None and name in found:
                found[target] = list(found[name])
            elif (alone := _only_shuffled(value, found)) is not None:
                found[target] = list(found[alone])  # labels that are computed from shuffled rows fit them
            elif target in found:
                del found[target]
        for target in _unpacked(node):
            if (alone := _only_shuffled(node.value, found)) is not None:
                found[target] = list(found[alone])
    return found


def _only_shuffled(value: ast.expr, found: dict[str, list[_Shuffle]]) -> str | None:
    """The one shuffled name that an expression uses, if it is one."""
    used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in found}
    return used.pop() if len(used) == 1 else None


def _unpacked(node: ast.Assign) -> list[str]:
    """The names of `a, b = f(x)`."""
    tuples = [t for t in node.targets if isinstance(t, ast.Tuple) and not isinstance(node.value, ast.Tuple)]
    return [n.id for t in tuples for n in t.elts if isinstance(n, ast.Name)]


def _converted(value: ast.expr) -> str | None:
    """The name whose rows an expression has in the same order: itself, `tf.constant(x)`, `x.astype(dtype)`."""
    if isinstance(value, ast.Call) and _called(value) in _CONVERSIONS:
        inner = value.args[0] if value.args else None
        if _called(value) in ("astype", "copy", "reshape") and isinstance(value.func, ast.Attribute):
            held = value.func.value
            inner = inner if isinstance(held, ast.Name) and held.id in ("np", "tf", "numpy") else held
        return None if inner is None else _converted(inner)
    return value.id if isinstance(value, ast.Name) else None


def _is_dataset(call: ast.Call) -> bool:
    """`dataset.shuffle(100)`, which moves whole examples."""
    return isinstance(call.func, ast.Attribute) and not re.search(r"random|rng|utils", ast.unparse(call.func.value))


def _token(call: ast.Call) -> str:
    seed = next((ast.unparse(k.value) for k in call.keywords if k.arg in ("seed", "random_state")), None)
    return f"seed {seed}" if seed else f"line {call.lineno} column {call.col_offset}"


def _parts(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for one, value in zip(target.elts, node.value.elts):
                if isinstance(one, ast.Name):
                    yield one.id, value


def _reordered(value: ast.expr, drawn: dict[str, str], generators: _Generators) -> tuple[str, str] | None:
    """The name whose rows an expression gives in another order, and what the order is called."""
    called = _called(value)
    if isinstance(value, ast.Call) and called in _SHUFFLES and not _is_dataset(value) and len(value.args) >= 1:
        first = value.args[0]
        several = len(value.args) > 1 and isinstance(value.args[1], ast.Name) and called == "shuffle"
        if isinstance(first, ast.Name) and not several and _is_rows(first.id):
            return first.id, generators.token(value)
        return None
    data: ast.expr | None = None
    index: ast.expr | None = None
    while isinstance(value, ast.Subscript) and isinstance(value.value, ast.Subscript):  # x[order][:100]
        value = value.value
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        data, index = value.value, value.slice
    elif isinstance(value, ast.Call) and called in _TAKES:
        both = [*value.args, *(k.value for k in value.keywords if k.arg in ("params", "indices"))]
        if len(both) == 1 and isinstance(value.func, ast.Attribute):
            both = [value.func.value, *both]
        data, index = (both[0], both[1]) if len(both) >= 2 else (None, None)
    if not isinstance(data, ast.Name) or index is None or _NO_DATA.search(data.id):
        return None
    base = index.value if isinstance(index, ast.Subscript) else index  # order[i:i + 32]
    if isinstance(base, ast.Name) and base.id in drawn:
        return data.id, drawn[base.id]
    if isinstance(index, ast.Call) and _is_draw(index):
        return data.id, generators.token(index)
    return None


def _is_rows(name: str) -> bool:
    return not re.fullmatch(r"n|num\w*|n_\w+|N|size|len\w*|\w*count|total|batch_size", name) and not _NO_DATA.search(
        name
    )


def _pairs(tree: ast.AST, shuffled: dict[str, list[_Shuffle]]) -> Iterator[tuple[str, str]]:
    """Names that are used as features and labels of one another."""
    scopes = _scopes(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        args: list[ast.expr] = list(node.args)
        called = _called(node)
        if called in ("from_tensor_slices", "zip") and len(args) == 1 and isinstance(args[0], ast.Tuple):
            args = list(args[0].elts)
        args += [k.value for k in node.keywords if k.arg in ("x", "y")] if called == "fit" else []
        if called in _PAIRED_CALLS and len(args) >= 2:
            one, two = args[0], args[1]
            if isinstance(one, ast.Name) and isinstance(two, ast.Name):
                yield one.id, two.id
    for name in sorted(shuffled):
        for label in _label_names(name):
            if label != name and any(scope.holds(name, label, s.line) for s in shuffled[name] for scope in scopes):
                yield name, label
                break


class _Scope(NamedTuple):
    """The names that a function, a class (by its attributes) or the module binds, and its lines."""

    names: set[str]
    lines: range

    def holds(self, name: str, label: str, line: int) -> bool:
        """Whether two names are those of this scope, for a statement at a line."""
        return line in self.lines and {name, label} <= self.names


def _scopes(tree: ast.AST) -> list[_Scope]:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    inner = {id(n) for function in functions for n in ast.walk(function) if n is not function}
    module = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_bound(n) and id(n) not in inner}
    scopes = [_Scope(module, range(1 << 30))]
    for node in (*functions, *classes):
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and _is_bound(n)]
        is_class = isinstance(node, ast.ClassDef)
        bound = {n.id for n in names if not is_class or getattr(n, "is_own", False)}
        bound |= set() if isinstance(node, ast.ClassDef) else {a.arg for a in node.args.args}
        scopes.append(_Scope(bound, range(node.lineno, (node.end_lineno or node.lineno) + 1)))
    return scopes


def _is_bound(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _label_names(name: str) -> Iterator[str]:
    """What the labels of features with this name are usually called: x_train, y_train."""
    for features, labels in _LABELS.items():
        found = re.search(rf"(?:^|(?<=_)){features}(?=$|_|b$|\d)", name)
        if found:
            for label in labels:
                yield name[: found.start()] + label + name[found.end() :]


def _zipped(tree: ast.AST, file: str, pair: list[ast.expr]) -> Iterator[Finding]:
    """Two datasets that are shuffled before they are zipped, one alone or each by itself."""
    shuffles, texts = [], []
    for part in pair:
        values: list[ast.expr] = [part] if isinstance(part, ast.Call) else []
        if isinstance(part, ast.Name):
            bound = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
            values = [b.value for b in bound if any(isinstance(t, ast.Name) and t.id == part.id for t in b.targets)]
        calls = [n for value in values for n in ast.walk(value) if isinstance(n, ast.Call)]
        slices = [c.args[0] for c in calls if _called(c) == "from_tensor_slices" and c.args]
        if any(isinstance(data, ast.Tuple | ast.Dict) for data in slices):
            return  # examples that have their labels with them
        texts.append(" ".join([ast.unparse(part), *map(ast.unparse, slices)]))
        shuffles.append([c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "shuffle"])
    seeds = [[_token(c) for c in calls] for calls in shuffles]
    if seeds[0] == seeds[1] or not _WRITTEN_LABELS.search(texts[1]):
        return  # together, or two sets of examples that are no pairs, such as of two domains
    for part, calls in zip(pair, shuffles):
        if calls:
            yield Finding(
                "shuffled-labels",
                "warning",
                f"`{ast.unparse(part)}` is shuffled before it is zipped: examples get the labels of others",
                file,
                calls[0].lineno,
                evidence={"zip": [ast.unparse(p) for p in pair]},
                remedy="Zip first, then shuffle: tf.data.Dataset.zip((x, y)).shuffle(n).",
                confidence=0.9,
            )
