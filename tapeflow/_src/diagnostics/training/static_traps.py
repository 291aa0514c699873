"""Traps that the program's text shows: features shuffled without their labels."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator

from tapeflow._src.diagnostics.finding import Finding

_INDEX = re.compile(r"ind|idx|perm|order|rng|seed|pair|both|list|batch|keys|files|data$|dataset|ds$", re.IGNORECASE)


def findings(files: set[str]) -> Iterator[Finding]:
    """Looks at the files of training steps."""
    for file in files:
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            continue
        yield from _shuffled_alone(tree, file)


def _shuffled_alone(tree: ast.AST, file: str) -> Iterator[Finding]:
    shuffled: dict[str, tuple[int, str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        called = ast.unparse(node.func)
        first = node.args[0]
        if called.endswith(("random.shuffle", "rng.shuffle")) and isinstance(first, ast.Name):
            seed = next((ast.unparse(k.value) for k in node.keywords if k.arg == "seed"), "")
            shuffled[first.id] = (node.lineno, seed)
        if called.endswith(".zip") and isinstance(first, ast.Tuple) and len(first.elts) == 2:
            yield from _zipped(tree, file, first)
    partners = _partners(tree)
    for name, (line, seed) in shuffled.items():
        for other in partners.get(name, ()):
            if _INDEX.search(name) or (other in shuffled and seed and shuffled[other][1] == seed):
                continue
            yield Finding(
                "shuffled-labels",
                "warning",
                f"`{name}` is shuffled, but not together with `{other}`: examples get the labels of others",
                file,
                line,
                evidence={"shuffled": name, "partner": other},
                remedy=f"order = np.random.permutation(len({name})); {name}, {other} = {name}[order], {other}[order]",
                confidence=0.85,
            )
            break


def _partners(tree: ast.AST) -> dict[str, set[str]]:
    """Names that are used as features and labels of one another: in zip, fit, from_tensor_slices."""
    partners: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).rpartition(".")[2]
        args: list[ast.expr] = list(node.args)
        if called in ("from_tensor_slices", "zip") and len(args) == 1 and isinstance(args[0], ast.Tuple):
            args = list(args[0].elts)
        if called in ("zip", "fit", "from_tensor_slices", "train_on_batch", "train_step", "step", "train"):
            names = [a.id for a in args[:2] if isinstance(a, ast.Name)]
            if len(names) == 2:
                partners.setdefault(names[0], set()).add(names[1])
                partners.setdefault(names[1], set()).add(names[0])
    return partners


def _zipped(tree: ast.AST, file: str, pair: ast.Tuple) -> Iterator[Finding]:
    """Two datasets, of which one alone is shuffled before they are zipped."""
    shuffles = []
    for part in pair.elts:
        found: list[ast.expr] = [part] if isinstance(part, ast.Call) else []
        if isinstance(part, ast.Name):
            bound = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
            found = [b.value for b in bound if any(isinstance(t, ast.Name) and t.id == part.id for t in b.targets)]
        calls = [n for value in found for n in ast.walk(value) if isinstance(n, ast.Call)]
        shuffles.append([c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "shuffle"])
    if bool(shuffles[0]) != bool(shuffles[1]):
        call = (shuffles[0] or shuffles[1])[0]
        yield Finding(
            "shuffled-labels",
            "warning",
            f"`{ast.unparse(pair.elts[0 if shuffles[0] else 1])}` is shuffled before it is zipped with a dataset that "
            "is not: examples get the labels of others",
            file,
            call.lineno,
            evidence={"zip": ast.unparse(pair)},
            remedy="Zip first, then shuffle: tf.data.Dataset.zip((x, y)).shuffle(n).",
            confidence=0.9,
        )
