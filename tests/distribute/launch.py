"""Starts programs on several processes with `tapeflow run --workers`, as a user does."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import tapeflow

PROGRAMS = Path(__file__).parent / "programs"

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason='mpi4py is not installed: pip install "tapeflow[mpi]"',
)


class Finished(NamedTuple):
    """What a program printed, by rank, and how it ended."""

    code: int
    out: str
    err: str

    def lines(self, rank: int) -> list[str]:
        """The lines that a rank printed."""
        prefix = f"[{rank}] "
        return [line[len(prefix) :] for line in self.out.splitlines() if line.startswith(prefix)]


def environment(**variables: str) -> dict[str, str]:
    """The environment of a program that imports this checkout."""
    root = str(Path(tapeflow.__file__).parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}


def command(program: str, *args: str, workers: int = 2, options: tuple[str, ...] = ()) -> list[str]:
    """The command line for one of the programs beside this file."""
    path = str(PROGRAMS / f"{program}.py")
    return [sys.executable, "-m", "tapeflow", "run", "--workers", str(workers), *options, path, *args]


def run(program: str, *args: str, workers: int = 2, options: tuple[str, ...] = (), **variables: str) -> Finished:
    """Runs a program to its end."""
    done = subprocess.run(
        command(program, *args, workers=workers, options=options),
        capture_output=True, text=True, check=False, timeout=300, env=environment(**variables),
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)
