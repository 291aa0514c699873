"""`break`, `continue` and `return` as flags, so that branches and loops have one entry and one exit.

What follows a branch that always jumps moves into the other branch; what follows one that may jump runs under
`if not flag`. A loop lists its flags in the attribute `flags`: it stops when one of them is true.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

RETURNED = "ag__returned"
VALUE = "ag__value"


class UnsupportedError(Exception):
    """The function uses something that cannot be converted; the text says what."""


class _Loop(NamedTuple):
    stopped: str
    skipped: str


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _set(name: str, value: ast.expr | bool, place: ast.AST) -> ast.Assign:
    expression = ast.Constant(value) if isinstance(value, bool) else value
    node = ast.Assign([ast.Name(name, ast.Store())], expression)
    return ast.copy_location(node, place)


def unless(flags: set[str] | list[str]) -> ast.expr:
    """The expression that no flag is true."""
    names: list[ast.expr] = [_load(flag) for flag in sorted(flags)]
    return ast.UnaryOp(ast.Not(), names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names))


def returns_inside(body: list[ast.stmt]) -> bool:
    """Whether a `return` stands inside another statement."""
    return any(
        isinstance(inner, ast.Return)
        for statement in body
        if not isinstance(statement, ast.Return)
        for inner in _walk_own(statement)
    )


def _walk_own(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those in it, without the insides of other functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk_own(child)


def always_jumps(body: list[ast.stmt]) -> bool:
    """Whether the end of the block is never reached."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(statement, ast.If) and always_jumps(statement.body) and always_jumps(statement.orelse):
            return True
    return False


def always_returns(body: list[ast.stmt]) -> bool:
    """Whether the end of the function is never reached, as far as no context swallows an exception."""
    for statement in body:
        if always_jumps([statement]):
            return True
        if isinstance(statement, ast.With) and always_returns(statement.body):
            return True
        if isinstance(statement, ast.Try | ast.TryStar):
            call_cache = [[*statement.body, *statement.orelse], *(handler.body for handler in statement.handlers)]
            if all(map(always_returns, call_cache)):
                return True
    return False


class JumpLowering:
    """Lowers the jumps of one function's body."""

    def __init__(self) -> None:
        self._loops = 0
        self.flags: set[str] = set()  # those that something reads

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body with at most one `return` outside of other statements, at its end."""
        if not returns_inside(body):
            return self.block(body, None)
        place = body[0]
        last = body[-1]
        no_value = ast.Attribute(_load("ag__"), "no_value", ast.Load())
        not_yet = ast.Attribute(_load("ag__"), "not_yet", ast.Load())
        whole = body if always_returns(body) else [*body, _return(no_value, last)]
        result = ast.Call(ast.Attribute(_load("ag__"), "result", ast.Load()), [_load(VALUE)], [])
        end = ast.copy_location(ast.Return(result), last)
        self._returns_as_flag = True
        lowered = self.block(whole, None)
        return [_set(RETURNED, False, place), _set(VALUE, not_yet, place), *lowered, end]

    _returns_as_flag = False

    def block(self, statements: list[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        """Statements in a row, without jumps."""
        done: list[ast.stmt] = []
        for number, node in enumerate(statements):
            rest = statements[number + 1 :]
            if isinstance(node, ast.Return) and self._returns_as_flag:
                done.append(_set(VALUE, node.value or ast.Constant(None), node))
                done.append(_set(RETURNED, True, node))
                return done
            if isinstance(node, ast.Break | ast.Continue) and loop is not None:
                done.append(_set(loop.stopped if isinstance(node, ast.Break) else loop.skipped, True, node))
                return done
            if isinstance(node, ast.If) and rest and self._jumps([node], loop):
                return [*done, *self._branch_and_rest(node, rest, loop)]
            if isinstance(node, ast.While | ast.For):
                lowered, orelse = self._loop(node)
                done += lowered
                rest = [*orelse, *rest]
                jumps = self._jumps(node.body, None)
                if orelse and not jumps:
                    return [*done, *self.block(rest, loop)]
            else:
                jumps = self._jumps([node], loop)
                done.append(self._inside(node, loop))
            if jumps and rest:
                return [*done, self._guarded(jumps, rest, loop)]
        return done

    def _guarded(self, jumps: set[str], rest: list[ast.stmt], loop: _Loop | None) -> ast.If:
        self.flags |= jumps
        guard = ast.If(unless(jumps), self.block(rest, loop), [])
        return ast.copy_location(guard, rest[0])

    def _branch_and_rest(self, node: ast.If, rest: list[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        first, second = always_jumps(node.body), always_jumps(node.orelse)
        if first and second:
            return [self._inside(node, loop)]
        if first or second:
            body = node.body if first else [*node.body, *rest]
            orelse = [*node.orelse, *rest] if first else node.orelse
            return [self._inside(ast.copy_location(ast.If(node.test, body, orelse), node), loop)]
        return [self._inside(node, loop), self._guarded(self._jumps([node], loop), rest, loop)]

    def _loop(self, node: ast.While | ast.For) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The loop with what prepares it, and the statements of its `else` (under a guard), not lowered yet."""
        self._loops += 1
        loop = _Loop(f"ag__break_{self._loops}", f"ag__continue_{self._loops}")
        jumps = self._jumps(node.body, loop)
        stops = jumps - {loop.skipped}
        orelse = node.orelse
        if orelse and stops:
            orelse = [ast.copy_location(ast.If(unless(stops), orelse, []), orelse[0])]
        self.flags |= stops
        body = self.block(node.body, loop)
        if loop.skipped in jumps:
            body = [_set(loop.skipped, False, node), *body]
        if isinstance(node, ast.For):
            lowered: Any = ast.For(node.target, node.iter, body, [])
        else:
            lowered = ast.While(node.test, body, [])
        lowered.flags = sorted(stops)  # the next pass reads them from the node
        ast.copy_location(lowered, node)
        before: list[ast.stmt] = [_set(loop.stopped, False, node)] if loop.stopped in jumps else []
        if isinstance(node, ast.While) and any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            before.append(self._tested_in_rounds(lowered))
        return [*before, lowered], orelse

    def _tested_in_rounds(self, loop: Any) -> ast.stmt:
        """Makes the loop test at the end of each iteration, since its test binds names; gives the first test."""
        name = f"ag__going_{self._loops}"
        again: ast.stmt = _set(name, copy.deepcopy(loop.test), loop)
        if loop.flags:
            again = ast.copy_location(ast.If(unless(loop.flags), [again], []), loop)
        loop.body = [*loop.body, again]
        first = _set(name, loop.test, loop)
        loop.test = ast.copy_location(_load(name), first.value)
        return first

    def _inside(self, node: ast.stmt, loop: _Loop | None) -> ast.stmt:
        """The statement with the blocks in it lowered."""
        if isinstance(node, ast.If):
            return ast.copy_location(
                ast.If(node.test, self.block(node.body, loop), self.block(node.orelse, loop)), node
            )
        if isinstance(node, ast.With):
            return ast.copy_location(ast.With(node.items, self.block(node.body, loop)), node)
        if isinstance(node, ast.Try | ast.TryStar):
            if self._jumps(node.finalbody, loop):
                raise UnsupportedError("a jump out of a `finally` block")
            jumps = self._jumps(node.body, loop)
            orelse = node.orelse
            if orelse:
                orelse = [self._guarded(jumps, orelse, loop)] if jumps else self.block(orelse, loop)
            handlers = [
                ast.copy_location(ast.ExceptHandler(h.type, h.name, self.block(h.body, loop)), h) for h in node.handlers
            ]
            final = self.block(node.finalbody, loop)
            return ast.copy_location(type(node)(self.block(node.body, loop), handlers, orelse, final), node)
        if isinstance(node, ast.Match):
            cases = [ast.match_case(c.pattern, c.guard, self.block(c.body, loop)) for c in node.cases]
            return ast.copy_location(ast.Match(node.subject, cases), node)
        return node

    def _jumps(self, statements: list[ast.stmt], loop: _Loop | None) -> set[str]:
        """The flags that the statements may set."""
        found: set[str] = set()
        for node in statements:
            if isinstance(node, ast.Return):
                found |= {RETURNED} if self._returns_as_flag else set()
            elif isinstance(node, ast.Break | ast.Continue):
                if loop is not None:
                    found.add(loop.stopped if isinstance(node, ast.Break) else loop.skipped)
            elif isinstance(node, ast.While | ast.For):
                found |= self._jumps(node.body, None) | self._jumps(node.orelse, loop)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for block in _blocks_of(node):
                    found |= self._jumps(block, loop)
        return found


def _blocks_of(node: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(node, "handlers", [])]
    return blocks + [case.body for case in getattr(node, "cases", [])]


def _return(value: ast.expr, place: ast.AST) -> ast.Return:
    return ast.copy_location(ast.Return(value), place)
