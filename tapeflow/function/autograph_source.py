"""From a function to its syntax tree, with the line and column numbers of the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import FunctionType

Function = ast.FunctionDef | ast.Lambda


def syntax_of(function: FunctionType) -> Function | None:
    """The definition of `function`; None where its source cannot be found, or tells of several functions.

    >>> syntax_of(eval("lambda: 1")) is None
    True
    """
    try:
        lines = _lines_of(function)
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    tree = _parse(lines, function.__code__.co_firstlineno, is_lambda=function.__name__ == "<lambda>")
    if tree is None:
        return None
    wanted = ast.Lambda if function.__code__.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, wanted) and _matches(node, function)]
    return found[0] if len(found) == 1 else None


def _lines_of(function: FunctionType) -> list[str]:
    """As `inspect.getsourcelines`, which however looks at the files of all modules when first called."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if len(lines) < code.co_firstlineno:
        raise OSError("the source is not there")
    return inspect.getblock(lines[code.co_firstlineno - 1 :])


def _parse(lines: list[str], first: int, is_lambda: bool) -> ast.Module | None:
    """The lines as a tree. An indented piece stands under an `if`, so that columns and strings stay as written."""
    indented = lines[0][:1].isspace()
    header = "if 1:\n" if indented else ""
    # The lines of a lambda may begin or end inside a larger expression: further readings follow.
    pieces = [header + "".join(lines)]
    if is_lambda:
        blank = "".join(lines)
        start = blank.find("lambda")
        padded = " " * start
        pieces += [f"({padded[1:]}{blank[start:end]})" for end in range(len(blank), start, -1)] if start > 0 else []
    for number, piece in enumerate(pieces):
        try:
            tree = ast.parse(piece)
        except SyntaxError:
            continue
        ast.increment_lineno(tree, first - 1 - (1 if indented and number == 0 else 0))
        return tree
    return None


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
