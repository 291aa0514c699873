"""From a code object and an instruction in it, which is all that a record holds, to a file and a line."""

from __future__ import annotations

import bisect
import os
import re
import sys
from types import CodeType

_MOST_PLACES = 20_000
# By the id of a code object, whose hash would read all of it, and an instruction: the object, and its file and line.
_places: dict[tuple[int, int], tuple[CodeType, tuple[str, int]]] = {}
_MOST_CODES = 1000
# By the id of a code object: the object, where the instructions of each line begin, and the lines.
_lines_by_code: dict[int, tuple[CodeType, list[int], list[int | None]]] = {}


def source_line(code: CodeType | None, instruction: int) -> tuple[str, int]:
    """The file and line of an instruction; ("<unknown>", 0) if nothing was recorded."""
    if code is None:
        return "<unknown>", 0
    key = id(code), instruction
    known = _places.get(key)
    if known is None or known[0] is not code:
        if len(_places) >= _MOST_PLACES:
            _places.clear()
        known = _places[key] = code, (code.co_filename, _line(code, instruction))
    return known[1]


def _line(code: CodeType, instruction: int) -> int:
    known = _lines_by_code.get(id(code))
    if known is None or known[0] is not code:
        if len(_lines_by_code) >= _MOST_CODES:
            _lines_by_code.clear()
        rows = list(code.co_lines())
        known = _lines_by_code[id(code)] = code, [start for start, _, _ in rows], [line for _, _, line in rows]
    _, starts, lines = known
    line = lines[bisect.bisect_right(starts, instruction) - 1] if starts else None
    return code.co_firstlineno if line is None else line


def place_text(file: str, line: int) -> str:
    """A line as its reader finds it: "train.py:3", or "cell 3, line 2" in a notebook.

    >>> place_text("train.py", 3)
    'train.py:3'
    """
    cell = _cell_number(file)
    return f"{file}:{line}" if cell is None else f"cell {cell}, line {line}"


def short_file(file: str) -> str:
    """The name of a file without its folders, or "cell 3".

    >>> short_file("/home/user/train.py"), short_file("<ipython-input-3-0f1e2d>")
    ('train.py', 'cell 3')
    """
    cell = _cell_number(file)
    return os.path.basename(file) if cell is None else f"cell {cell}"


def short_place(file: str, line: int | None) -> str:
    """A line where space is scarce: the file without its folders, or the cell.

    >>> short_place("/home/user/train.py", 3), short_place("<ipython-input-3-0f1e2d>", 2)
    ('train.py:3', 'cell 3, line 2')
    """
    if not line:
        return short_file(file)
    return f"{os.path.basename(file)}:{line}" if _cell_number(file) is None else place_text(file, line)


def _cell_number(file: str) -> int | None:
    """The number of the notebook's cell that has a temporary file name, if it is one."""
    named = re.match(r"<ipython-input-(\d+)-", file)
    if named is not None:
        return int(named[1])
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return number if isinstance(number, int) else None


def counted(number: int, noun: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
