"""Programs with a None gradient, each with the cause that its explanation must name; tests collect and check them."""

import inspect
from collections.abc import Callable
from typing import Any


class Programs(list):
    """The programs of one file: (function, cause, operation)."""

    def expect(self, cause: str, operation: str | None = None) -> Callable[..., Any]:
        """Marks a program that answers with an explanation of this cause."""

        def add(function):
            self.append((function, cause, operation))
            return function

        return add


def why(tape, target, source):
    assert tape.gradient(target, source) is None
    return tape.explain(target, source)


def check(function, cause, operation):
    """The explanation names the cause, and the line that is marked with `# <- here`."""
    lines, first = inspect.getsourcelines(function)
    marked = [first + i for i, line in enumerate(lines) if "# <- here" in line]
    answer = function()
    assert (answer.cause, answer.line) == (cause, marked[0]), str(answer)
    assert answer.file == function.__code__.co_filename
    assert answer.advice
    if operation is not None:
        assert answer.operation == operation
