"""Which names a piece of a function reads, binds or may bind: what a branch or a loop must carry.

A name is live where its value may still be read. Facts of a statement hold whatever follows it, so each is found once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

_NOTHING: frozenset[str] = frozenset()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Facts(NamedTuple):
    """Names read before they are bound here, surely bound, and possibly bound; `a.b` and `a[0]` count as names."""

    reads: frozenset[str] = _NOTHING
    binds: frozenset[str] = _NOTHING
    may_bind: frozenset[str] = _NOTHING

    def then(self, other: Facts) -> Facts:
        """The facts of `self` followed by `other`."""
        return Facts(self.reads | (other.reads - self.binds), self.binds | other.binds, self.may_bind | other.may_bind)

    def or_else(self, other: Facts) -> Facts:
        """The facts of running one of the two."""
        return Facts(self.reads | other.reads, self.binds & other.binds, self.may_bind | other.may_bind)

    def perhaps(self) -> Facts:
        """The facts of what may not run."""
        return Facts(self.reads, _NOTHING, self.may_bind)


def composite_name(node: ast.AST) -> str | None:
    """`a.b`, `a[0]`, `a["k"].c`: places with a fixed name, which a loop can carry like variables."""
    if isinstance(node, ast.Subscript):
        if not isinstance(node.slice, ast.Constant | ast.Name):
            return None
    elif not isinstance(node, ast.Attribute):
        return None
    return ast.unparse(node) if isinstance(node.value, ast.Name) or composite_name(node.value) else None


class NameAnalysis:
    """The facts of the statements of one function (not of the functions in it, which are seen from outside)."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self._facts_by_statement: dict[int, Facts] = {}
        self._closure_by_name: dict[str, Facts] = {}
        self.composite_by_name: dict[str, ast.expr] = {}
        for statement in body:
            for node in ast.walk(statement):
                self._note_closure(node)
        self._facts_by_statement.clear()

    def _note_closure(self, node: ast.AST) -> None:
        """A name bound to an inner function reads, where it is used, what that function reads."""
        if isinstance(node, ast.FunctionDef):
            self._closure_by_name[node.name] = self._inner_facts(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._closure_by_name[target.id] = self._inner_facts(node.value)

    def _inner_facts(self, node: Any) -> Facts:
        """What calling an inner function reads and binds outside of it."""
        arguments = node.args
        parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        parameters |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        if isinstance(node, ast.Lambda):
            return Facts(self.expression(node.body).reads - parameters)
        outer = {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
        reads: set[str] = set()
        bound = set(parameters)
        for statement in node.body:
            facts = self.statement(statement)
            reads |= facts.reads
            bound |= facts.may_bind
        return Facts(frozenset(reads - (bound - outer)), _NOTHING, frozenset(bound & outer))

    def block(self, statements: Iterable[ast.stmt]) -> Facts:
        """The facts of statements in a row."""
        facts = Facts()
        for statement in statements:
            facts = facts.then(self.statement(statement))
        return facts

    def statement(self, node: ast.stmt) -> Facts:
        """The facts of one statement."""
        known = self._facts_by_statement.get(id(node))
        if known is None:
            find = getattr(self, f"_{type(node).__name__.lower()}", self._other)
            known = self._facts_by_statement[id(node)] = find(node)
        return known

    # ---- expressions

    def expression(self, *nodes: ast.AST | None) -> Facts:
        """What expressions read, and the names that `:=` and calls of inner functions bind."""
        reads: set[str] = set()
        may_bind: set[str] = set()
        for node in nodes:
            if node is not None:
                self._collect(node, reads, may_bind)
        return Facts(frozenset(reads), _NOTHING, frozenset(may_bind))

    def _collect(self, node: ast.AST, reads: set[str], may_bind: set[str]) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                reads.add(node.id)
                closure = self._closure_by_name.get(node.id)
                if closure is not None:
                    reads |= closure.reads
                    may_bind |= closure.may_bind
            else:
                may_bind.add(node.id)
        elif isinstance(node, ast.Lambda):
            self._collect_children([*node.args.defaults, *filter(None, node.args.kw_defaults)], reads, may_bind)
            reads |= self._inner_facts(node).reads
        elif isinstance(node, _COMPREHENSIONS):
            inner: set[str] = set()
            targets: set[str] = set()
            for generator in node.generators:
                self._collect_children([generator.iter, *generator.ifs], inner, may_bind)
                targets |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
            elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            self._collect_children(elements, inner, may_bind)
            reads |= inner - targets
        else:
            self._collect_children(ast.iter_child_nodes(node), reads, may_bind)

    def _collect_children(self, nodes: Iterable[ast.AST], reads: set[str], may_bind: set[str]) -> None:
        for node in nodes:
            self._collect(node, reads, may_bind)

    def target(self, node: ast.expr) -> Facts:
        """The facts of assigning to `node`."""
        if isinstance(node, ast.Name):
            return Facts(_NOTHING, frozenset([node.id]), frozenset([node.id]))
        if isinstance(node, ast.Tuple | ast.List):
            return self._targets(node.elts)
        if isinstance(node, ast.Starred):
            return self.target(node.value)
        name = composite_name(node)
        facts = self.expression(*ast.iter_child_nodes(node))
        if name is None:
            return facts
        self.composite_by_name[name] = node
        return Facts(facts.reads, _NOTHING, facts.may_bind | {name})

    def _targets(self, nodes: Iterable[ast.expr]) -> Facts:
        facts = Facts()
        for node in nodes:
            facts = facts.then(self.target(node))
        return facts

    # ---- statements

    def _other(self, node: ast.stmt) -> Facts:
        return self.expression(node)

    def _assign(self, node: ast.Assign) -> Facts:
        return self.expression(node.value).then(self._targets(node.targets))

    def _augassign(self, node: ast.AugAssign) -> Facts:
        read = Facts(frozenset([node.target.id])) if isinstance(node.target, ast.Name) else Facts()
        return read.then(self.expression(node.value)).then(self.target(node.target))

    def _annassign(self, node: ast.AnnAssign) -> Facts:
        return Facts() if node.value is None else self.expression(node.value).then(self.target(node.target))

    def _delete(self, node: ast.Delete) -> Facts:
        return self._targets(node.targets)

    def _if(self, node: ast.If) -> Facts:
        return self.expression(node.test).then(self.block(node.body).or_else(self.block(node.orelse)))

    def _while(self, node: ast.While) -> Facts:
        flags = Facts(frozenset(getattr(node, "flags", ())))
        return self.expression(node.test).then(flags).then(self.block(node.body).perhaps())

    def _for(self, node: ast.For) -> Facts:
        flags = Facts(frozenset(getattr(node, "flags", ())))
        around = self.target(node.target).then(self.block(node.body)).perhaps()
        return self.expression(node.iter).then(flags).then(around)

    def _with(self, node: ast.With) -> Facts:
        facts = Facts()
        for item in node.items:
            facts = facts.then(self.expression(item.context_expr))
            if item.optional_vars is not None:
                facts = facts.then(self.target(item.optional_vars))
        return facts.then(self.block(node.body))

    def _try(self, node: ast.Try) -> Facts:
        facts = self.block(node.body).perhaps()
        for handler in node.handlers:
            name = Facts(may_bind=frozenset([handler.name])) if handler.name else Facts()
            facts = facts.then(self.expression(handler.type)).then(name).then(self.block(handler.body).perhaps())
        return facts.then(self.block(node.orelse).perhaps()).then(self.block(node.finalbody))

    _trystar = _try

    def _match(self, node: ast.Match) -> Facts:
        facts = self.expression(node.subject)
        for case in node.cases:
            bound = {
                name
                for n in ast.walk(case.pattern)
                for name in (getattr(n, "name", None), getattr(n, "rest", None))
                if name is not None
            }
            inside = self.expression(case.pattern, case.guard).then(self.block(case.body))
            inside = Facts(inside.reads - bound, _NOTHING, inside.may_bind | bound)
            facts = facts.then(inside)
        return facts

    def _functiondef(self, node: ast.FunctionDef) -> Facts:
        facts = self.expression(*node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
        if node.decorator_list:
            facts = facts.then(Facts(self._inner_facts(node).reads))
        return facts.then(Facts(_NOTHING, frozenset([node.name]), frozenset([node.name])))

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> Facts:
        reads = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return Facts(frozenset(reads), frozenset([node.name]), frozenset([node.name]))

    def _import(self, node: ast.Import | ast.ImportFrom) -> Facts:
        names = frozenset(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        return Facts(_NOTHING, names, names)

    _importfrom = _import

    def _global(self, node: ast.Global | ast.Nonlocal) -> Facts:
        return Facts()

    _nonlocal = _global
