"""How eager operations run: at once, so that there is nothing to wait for and no cache of kernels to clear."""

from __future__ import annotations


class Context:
    """The state of eager execution."""

    def clear_kernel_cache(self) -> None:
        """Forgets kernels that were chosen for operations: none are kept."""


_context = Context()


def context() -> Context:
    """The state of eager execution."""
    return _context


def async_wait() -> None:
    """Waits for operations that are still running: none are."""
