"""`%load_ext tapeflow`: the magic `%%doctor`, which runs a cell under a doctor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src.diagnostics.doctor import Doctor
from tapeflow._src.diagnostics.last_none import text_about
from tapeflow._src.namespace import public


@public("load_ipython_extension")
def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tapeflow` in IPython and Jupyter: adds the magic `%%doctor`.

    Args:
      shell: The interactive shell.

    >>> from types import SimpleNamespace
    >>> shell = SimpleNamespace(register_magic_function=lambda *_, **names: print(names["magic_name"]))
    >>> tf.load_ipython_extension(shell)
    doctor
    """

    def doctor(options: str, cell: str) -> Doctor:
        """%%doctor [monitor]: runs the cell and reports what is wrong with its gradients."""
        if options.strip() not in ("", "full", "monitor"):
            raise ValueError(f"%%doctor: the option must be 'full' or 'monitor'; got {options.strip()!r}")
        watching = Doctor(mode=options.strip() or "full")
        with watching, _as_one_cell(shell):
            shell.run_cell("# doctor\n" + cell)  # in place of the line of the magic, so that lines have their numbers
        print(watching)
        return watching

    shell.register_magic_function(doctor, magic_kind="cell", magic_name="doctor")
    if hasattr(shell, "set_custom_exc"):
        shell.set_custom_exc((TypeError, ValueError, AttributeError), _explain_and_show)


@contextmanager
def _as_one_cell(shell: Any) -> Iterator[None]:
    """While it is open, what runs has the number of the cell with the magic, not that of the next cell."""
    count = getattr(shell, "execution_count", None)
    if count is None:
        yield
        return
    shell.execution_count = count - 1
    try:
        yield
    finally:
        shell.execution_count = count


def _explain_and_show(shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: Any) -> None:
    """Shows an error of a cell, below the explanation if it is about a gradient that is None."""
    if (text := text_about(error)) is not None:
        print(text, file=sys.stderr)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


@public("unload_ipython_extension")
def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext tapeflow`: takes the magic `%%doctor` away.

    Args:
      shell: The interactive shell.

    >>> from types import SimpleNamespace
    >>> magics = {"cell": {"doctor": None}}
    >>> tf.unload_ipython_extension(SimpleNamespace(magics_manager=SimpleNamespace(magics=magics)))
    >>> magics
    {'cell': {}}
    """
    shell.magics_manager.magics["cell"].pop("doctor", None)
    if hasattr(shell, "set_custom_exc"):
        shell.set_custom_exc((), None)
