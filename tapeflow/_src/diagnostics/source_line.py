"""From a code object and an instruction in it, which is all that a record remembers, to a file and a line."""

from types import CodeType


def source_line(code: CodeType | None, instruction: int) -> tuple[str, int]:
    """The file and line of an instruction; ("<unknown>", 0) if nothing was recorded."""
    if code is None:
        return "<unknown>", 0
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno
