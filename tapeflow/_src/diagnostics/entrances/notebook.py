"""`%load_ext tapeflow`: the magic `%%doctor`, which runs a cell under a doctor."""

from __future__ import annotations

from typing import Any

from tapeflow._src.diagnostics.doctor import Doctor
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
        with watching:
            shell.run_cell(cell)
        print(watching)
        return watching

    shell.register_magic_function(doctor, magic_kind="cell", magic_name="doctor")


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
