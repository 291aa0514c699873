"""How eager operations run: at once, so that there is nothing to wait for and no cache of kernels to clear."""

from __future__ import annotations

from typing import Any

from tapeflow import _core


class Context:
    """The state of eager execution."""

    def executing_eagerly(self) -> bool:
        """Whether operations run as they are called."""
        return not _core.is_tracing()

    def clear_kernel_cache(self) -> None:
        """Forgets kernels that were chosen for operations: none are kept."""


_context = Context()


def context() -> Context:
    """The state of eager execution."""
    return _context


def async_wait() -> None:
    """Waits for operations that are still running: none are."""


def graph_or_parents_in_xla_context(graph: Any) -> bool:
    """Whether a graph is built for another compiler: none is."""
    return False


def is_resource_variable(var: Any) -> bool:
    """Whether an object is a variable: all are kept by a handle."""
    return isinstance(var, _core.Variable)
