"""`%load_ext tapeflow`: the magic `%%doctor`, which runs a cell under a doctor."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tapeflow._src.diagnostics.doctor import Doctor
from tapeflow._src.diagnostics.entrances.options import add_options, doctor_of
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

    def doctor(line: str, cell: str) -> Doctor | None:
        """%%doctor [options]: runs the cell and reports what is wrong with its gradients. See `%%doctor --help`."""
        options = _read_options(line)
        if options is None:
            return None
        watching = doctor_of(options)
        with watching, _as_one_cell(shell):
            done = shell.run_cell("# doctor\n" + cell)  # in place of the line of the magic: lines have their numbers
        watching.ended_by(getattr(done, "error_before_exec", None) or getattr(done, "error_in_exec", None))
        print(watching)
        if options.json:
            watching.save_json(options.json, "cell")
        if options.html:
            watching.save_html(options.html, "cell")
        return watching

    shell.register_magic_function(doctor, magic_kind="cell", magic_name="doctor")
    if hasattr(shell, "set_custom_exc"):
        shell.set_custom_exc((TypeError, ValueError, AttributeError), _explain_and_show)


class _Parser(argparse.ArgumentParser):
    """Raises errors: a notebook goes on."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"%%doctor: {message}")


def _read_options(line: str) -> argparse.Namespace | None:
    """The options; None if the line asks for help, which is printed."""
    about = "Runs the cell and reports what is wrong with its gradients."
    parser = _Parser(prog="%%doctor", description=about, add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this message")
    parser.add_argument("mode", nargs="?", choices=["full", "monitor"], default="full", help="monitor: as --monitor")
    add_options(parser)
    options = parser.parse_args(shlex.split(line))
    if options.help:
        parser.print_help()
        return None
    options.monitor = options.monitor or options.mode == "monitor"
    return options


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
