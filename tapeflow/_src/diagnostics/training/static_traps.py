"""Traps that the program's text shows: shuffled labels, the first batch again and again, integer quotients of data."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Iterator

from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.training import shuffled_data
from tapeflow._src.diagnostics.training.named_arrays import Held, NamedArrays


def findings(files: set[str], arrays: NamedArrays) -> Iterator[Finding]:
    """Looks at the files of training steps; `arrays` says what their names held."""
    for file in files:
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            continue
        held = arrays.of(file)
        yield from shuffled_data.findings(tree, file, held)
        yield from _first_batch(tree, file)
        yield from _first_of_each(tree, file)
        yield from _integer_pixels(tree, file, held)
        yield from _integer_shares(tree, file)
        yield from _integer_factors(tree, file)


def _first_batch(tree: ast.AST, file: str) -> Iterator[Finding]:
    """`next(iter(dataset))` in a loop, or in a function that a loop calls: each time the first batch.

    Unless the dataset is shuffled.
    """
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for loop in [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While)]:
        for node in [n for n in ast.walk(loop) if isinstance(n, ast.Call)]:
            called = functions.get(ast.unparse(node.func).rpartition(".")[2])
            for first, data in _first_batches(loop, node) if called is None else _first_batches_of(called, node):
                if not (_is_shuffled(tree, data) or _is_bound_in(loop, data) or not _trains_with(loop, node)):
                    yield _repeated(file, first.lineno, f"next(iter({ast.unparse(data)}))", data)


def _first_batches(loop: ast.For | ast.While | None, node: ast.Call) -> Iterator[tuple[ast.Call, ast.expr]]:
    """A call that begins a dataset anew and takes its first batch, and the dataset."""
    iterator = _advanced(node)
    if iterator is None:
        return
    inner = (None if loop is None else _iterator_made_with(loop, node, iterator)) or iterator
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "iter" and inner.args:
        yield node, inner.args[0]


def _first_batches_of(function: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Those that a function returns; an argument stands for what the call gives."""
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.For | ast.While) for n in ast.walk(function)):
        return
    names = [a.arg for a in function.args.args if a.arg != "self"]
    given = dict(zip(names, call.args)) | {k.arg: k.value for k in call.keywords if k.arg}
    for node in [n for n in ast.walk(function) if isinstance(n, ast.Call)]:
        for first, data in _first_batches(None, node):
            yield first, given.get(data.id, data) if isinstance(data, ast.Name) else data


def _trains_with(loop: ast.For | ast.While, batch: ast.Call) -> bool:
    """Whether a batch goes into a training step of a loop: into the block of a tape, or into a call that trains."""
    statements = [n for n in ast.walk(loop) if isinstance(n, ast.Assign | ast.Expr | ast.AugAssign | ast.Return)]
    own = next((s for s in statements if any(n is batch for n in ast.walk(s))), None)
    if not isinstance(own, ast.Assign):
        return own is None or _TRAINS.search(ast.unparse(own)) is not None
    names = _names(own.targets)
    for statement in sorted(statements, key=lambda s: s.lineno):  # what is made of it
        if isinstance(statement, ast.Assign) and names & _names([statement.value]):
            names |= _names(statement.targets)
    blocks = [n for n in ast.walk(loop) if isinstance(n, ast.With) and "GradientTape" in ast.unparse(n.items[0])]
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call) and _TRAINS.search(f"{ast.unparse(n.func)}(")]
    return any(names & _names([n]) for n in (*blocks, *calls))


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


_TRAINS = re.compile(r"GradientTape|gradient|train|\.minimize\(|step\(|fit\(|update|learn|optimi[sz]e")


def _first_of_each(tree: ast.AST, file: str) -> Iterator[Finding]:
    """`for x, y in dataset.take(1)`, or a loop that ends after its first batch, inside of another loop."""
    for outer in [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While)]:
        for loop in [n for n in ast.walk(outer) if isinstance(n, ast.For) and n is not outer]:
            data = loop.iter
            one = data.args[0] if isinstance(data, ast.Call) and len(data.args) == 1 else None
            if isinstance(data, ast.Call) and isinstance(data.func, ast.Attribute) and data.func.attr == "take":
                if not (isinstance(one, ast.Constant) and one.value == 1):
                    continue
                data = data.func.value
            elif not isinstance(loop.body[-1], ast.Break):
                continue
            known = isinstance(data, ast.Name) and not _is_shuffled(tree, data) and _is_dataset(tree, data)
            if not known or _is_bound_in(outer, data) or not _TRAINS.search(ast.unparse(loop)):
                continue
            yield _repeated(file, loop.lineno, ast.unparse(loop.iter), data)


def _is_dataset(tree: ast.AST, data: ast.Name) -> bool:
    return any("Dataset" in ast.unparse(value) or ".batch(" in ast.unparse(value) for value in _bindings(tree, data.id))


def _repeated(file: str, line: int, text: str, data: ast.expr) -> Finding:
    return Finding(
        "repeated-batch",
        "warning",
        f"{text} begins anew each time: every step gets the same batch",
        file,
        line,
        evidence={"dataset": ast.unparse(data)},
        remedy=f"for batch in {ast.unparse(data)}: ..., or make the iterator once, before the loop.",
        confidence=0.85,
    )


def _advanced(node: ast.AST) -> ast.expr | None:
    """The iterator of `next(iterator)` or `iterator.get_next()`."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get_next":
        return node.func.value
    match node:  # list(dataset.take(1))
        case ast.Call(func=ast.Name(id="list"), args=[ast.Call(func=ast.Attribute(attr="take") as taken)]):
            text = ast.unparse(node.args[0])
            return ast.Call(ast.Name("iter"), [taken.value], []) if text.endswith("take(1)") else None
    return node.args[0] if ast.unparse(node.func) == "next" and node.args else None


def _iterator_made_with(loop: ast.For | ast.While, node: ast.Call, name: ast.expr) -> ast.expr | None:
    """For `next(it)` right in a loop: `iter(dataset)`, if the same loop makes `it` anew each time."""
    direct = [s for s in loop.body if isinstance(s, ast.Assign)]
    if not isinstance(name, ast.Name) or not any(node in ast.walk(s) for s in direct):
        return None
    made = [s.value for s in direct if any(isinstance(t, ast.Name) and t.id == name.id for t in s.targets)]
    nexts = [n for n in ast.walk(loop) if isinstance(n, ast.Call) and ast.unparse(n) == ast.unparse(node)]
    return made[0] if len(made) == 1 and len(nexts) == 1 else None


def _bindings(tree: ast.AST, name: str) -> list[ast.expr]:
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    return [a.value for a in assigned if any(ast.unparse(t) == name for t in a.targets)]


def _is_shuffled(tree: ast.AST, data: ast.expr, depth: int = 4) -> bool:
    named = isinstance(data, ast.Name | ast.Attribute)
    texts = _bindings(tree, ast.unparse(data)) if named else [data]
    if not texts:
        return True  # not known
    for text in texts:
        written = ast.unparse(text)
        if re.search(r"shuffle|from_generator|sample_from|rejection_resample", written):
            return True
        root = text
        while isinstance(root, ast.Call | ast.Attribute):
            root = root.func if isinstance(root, ast.Call) else root.value
        other = isinstance(root, ast.Name) and root.id != getattr(data, "id", None) and bool(_bindings(tree, root.id))
        if depth and other and _is_shuffled(tree, root, depth - 1):
            return True
    return False


def _is_bound_in(loop: ast.AST, data: ast.expr) -> bool:
    return isinstance(data, ast.Name) and (bool(_bindings(loop, data.id)) or _is_target(loop, data.id))


def _is_target(loop: ast.AST, name: str) -> bool:
    targets = [n.target for n in ast.walk(loop) if isinstance(n, ast.For)]
    return any(isinstance(t, ast.Name) and t.id == name for target in targets for t in ast.walk(target))


_PIXELS = re.compile(r"im(age|g)|pixel|frame|photo|pict|digit|^x$|^x_|^data$|^xs?_?(train|test|val)", re.IGNORECASE)
_NO_PIXELS = re.compile(r"mask|label|seg|len|num|size|shape|count|total|step", re.IGNORECASE)


def _is_pixels(value: ast.expr, held: dict[str, Held], rebound: set[str]) -> bool:
    """Whether an expression holds the values of images: not a number, nor a mask of two values.

    What is `held` by a name that the division is bound to is the quotient.
    """
    names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id not in ("np", "tf")]
    if _NO_PIXELS.search(ast.unparse(value)) or not names:
        return False
    seen = held.get(names[0])
    if seen is not None and isinstance(value, ast.Name) and names[0] not in rebound:
        return seen.rows is not None and seen.distinct > 2
    return _PIXELS.search(names[0]) is not None


def _integer_pixels(tree: ast.AST, file: str, held: dict[str, Held]) -> Iterator[Finding]:
    """`images // 255`: all zeros but for the largest value."""
    bound = [s for s in ast.walk(tree) if isinstance(s, ast.Assign) and "//" in ast.unparse(s.value)]
    for node in ast.walk(tree):
        targets = [t for s in bound if any(n is node for n in ast.walk(s.value)) for t in s.targets]
        rebound = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        if (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and isinstance(node.right, ast.Constant)
            and node.right.value in (127, 128, 255, 256, 127.5, 255.0) and _is_pixels(node.left, held, rebound)
        ):  # fmt: skip
            yield Finding(
                "integer-division",
                "warning",
                f"`{ast.unparse(node)}` drops the fraction: pixels become zeros and ones",
                file,
                node.lineno,
                evidence={"expression": ast.unparse(node)},
                remedy=f"{ast.unparse(node.left)} / {ast.unparse(node.right)}",
                confidence=0.8,
            )


_SHARES = re.compile(
    r"weight|ratio|frac|share|prob|scale|coef|anneal|momentum|(learning|dropout|drop)_rate"
    r"|(^|_)(alpha|beta|gamma|lam|lambda|lambd|tau|temperature|eps|epsilon|lr|mix)(_|$)", re.IGNORECASE,
)  # fmt: skip
_SIZES = re.compile(r"num|count|size|dim|step|height|width|shape|index|idx", re.IGNORECASE)


_FACTORS = re.compile(f"{_SHARES.pattern}|factor|warm_?up|ramp|fraction|progress", re.IGNORECASE)


def _integer_factors(tree: ast.AST, file: str) -> Iterator[Finding]:
    """`return min(1, step // warmup)`: a factor of a loss or rate that is to grow slowly, and jumps."""
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        if _FACTORS.search(function.name) is None or _SIZES.search(function.name):
            continue
        for node in [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]:
            for value in _operands(node.value):
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv) and not _is_exact(value):
                    yield _dropped(file, value, f"{function.name}()")


def _operands(value: ast.expr | None) -> Iterator[ast.expr]:
    """The numbers that an expression is a sum, product or bound of."""
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            yield from (*_operands(left), *_operands(right))
        case ast.Call(args=args) if ast.unparse(value.func).rpartition(".")[2] in _BOUNDS:
            for argument in args:
                yield from _operands(argument)
        case ast.expr():
            yield value


_BOUNDS = frozenset({"min", "max", "minimum", "maximum", "clip", "clip_by_value", "float", "cast", "constant"})


def _dropped(file: str, value: ast.BinOp, name: str) -> Finding:
    return Finding(
        "integer-division",
        "warning",
        f"`{ast.unparse(value)}` drops the fraction, and `{name}` is to be a share",
        file,
        value.lineno,
        evidence={"expression": ast.unparse(value)},
        remedy=ast.unparse(value).replace("//", "/"),
        confidence=0.7,
    )


def _integer_shares(tree: ast.AST, file: str) -> Iterator[Finding]:
    """`class_weight = counts // total`: a share that loses its fraction."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        names = [ast.unparse(t) for t in node.targets]
        if not all(_SHARES.search(n) and not _SIZES.search(n) for n in names):
            continue
        for value in _elements(node.value):
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv) and not _is_exact(value):
                yield _dropped(file, value, names[0])


def _elements(value: ast.expr) -> list[ast.expr]:
    """What an expression gives or holds: the elements of a list or dictionary, the argument of a conversion."""
    match value:
        case ast.Call(args=[_, _]) if ast.unparse(value.func) == "min":
            return list(_operands(value))
        case ast.Call(args=[first, *_]):
            return _elements(first)
        case ast.DictComp(value=element) | ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return [element]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Dict(values=elements):
            return list(elements)
    return [value]


def _is_exact(division: ast.BinOp) -> bool:
    """Whether two literals divide without a remainder."""
    match division.left, division.right:
        case ast.Constant(value=int(a)), ast.Constant(value=int(b)):
            return b != 0 and a % b == 0
    return False
