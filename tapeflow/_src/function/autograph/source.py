"""From a function to its syntax tree, with the line and column numbers of the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import CodeType, FunctionType

Function = ast.FunctionDef | ast.Lambda


def syntax_of(function: FunctionType) -> Function | None:
    """The definition of `function`; None where its source cannot be found, or defines several functions.

    >>> syntax_of(eval("lambda: 1")) is None
    True
    """
    code = function.__code__
    is_lambda = code.co_name == "<lambda>"
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        return None
    tree = _parse_lambda(lines, code.co_firstlineno) if is_lambda else _parse_definition(lines, code)
    if tree is None:
        return None
    wanted = ast.Lambda if is_lambda else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, wanted) and _matches(node, function)]
    return found[0] if len(found) == 1 else None


def _parse_definition(lines: list[str], code: CodeType) -> ast.Module | None:
    """The definition that begins with the first of `lines`.

    It ends before a line that is not indented more than its first one, and behind its last instruction; where such a
    line stands inside a string or brackets, what is before it does not parse. (`inspect.getblock` finds the end by
    tokens, which costs the first function of a process several milliseconds.)
    """
    margin = _indentation(lines[0])
    last = max((line for line, *_ in code.co_positions() if line is not None), default=code.co_firstlineno)
    for end in range(last - code.co_firstlineno + 1, len(lines) + 1):
        behind = lines[end].lstrip() if end < len(lines) else "end"
        if not behind or behind.startswith("#") or (end < len(lines) and _indentation(lines[end]) > margin):
            continue
        tree = _parse(lines[:end], code.co_firstlineno)
        if tree is not None:
            return tree
    return None


def _parse_lambda(lines: list[str], first: int) -> ast.Module | None:
    """The statement that holds a lambda of the first line; it may begin or end inside a larger expression."""
    try:
        lines = inspect.getblock(lines)
    except (SyntaxError, IndexError):
        return None
    tree = _parse(lines, first)
    text = "".join(lines)
    start = text.find("lambda")
    for end in range(len(text), start, -1) if tree is None and start > 0 else ():
        tree = tree or _parse([f"({' ' * (start - 1)}{text[start:end]})"], first)
    return tree


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parse(lines: list[str], first: int) -> ast.Module | None:
    """The lines as a tree. An indented piece stands under an `if`, so that columns and strings stay as written."""
    indented = lines[0][:1].isspace()
    try:
        tree = ast.parse(("if 1:\n" if indented else "") + "".join(lines))
    except SyntaxError:
        return None
    ast.increment_lineno(tree, first - 2 if indented else first - 1)
    return tree


def _matches(node: Function, function: FunctionType) -> bool:
    code = function.__code__
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    own = list(code.co_varnames[: len(names)])
    if own != names and [n.rpartition("__")[2] for n in own] != [n.rpartition("__")[2] for n in names]:
        return False
    body = node.body
    places = {place for place in code.co_positions() if place[0] is not None}
    end = (body.end_lineno, body.end_col_offset)
    whole = any(line == body.lineno and column == body.col_offset for line, _, column, _ in places)
    return whole and all(
        (body.lineno, body.col_offset) <= (line, column) and (last, stop) <= end
        for line, last, column, stop in places
        if column is not None and (line, column, stop) != (code.co_firstlineno, 0, 0)
    )
