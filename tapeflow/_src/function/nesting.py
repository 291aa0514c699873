"""The error for functions that call each other more deeply than Python can trace them."""

from __future__ import annotations

import sys

from tapeflow._src.types.errors import ResourceExhaustedError


class NestedTooDeeplyError(ResourceExhaustedError, RecursionError):
    """Both what a failed operation raises and what Python raises, which programs may expect."""


def named_nesting(error: Exception, name: str) -> Exception:
    """The error to raise for one that the trace of the function `name` met: a RecursionError gets a name and advice."""
    if not isinstance(error, RecursionError) or isinstance(error, NestedTooDeeplyError):
        return error
    return NestedTooDeeplyError.of(
        f"tf.function {name}: the functions that it calls are nested too deeply for Python's recursion limit "
        f"({sys.getrecursionlimit()}). Use a loop, or raise the limit with sys.setrecursionlimit."
    )
