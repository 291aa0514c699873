"""`tapeflow run --workers N`: starts the processes of a program with MPI, and prepares each of them."""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import subprocess
import sys
from typing import Any, TextIO

from tapeflow._src.config import set_intra_op_parallelism_threads
from tapeflow._src.data.pipes.background import processors
from tapeflow._src.distribute.cluster import expand_counts
from tapeflow._src.distribute.communicator import OneProcess, started_processes
from tapeflow._src.distribute.processes import join_at_exit, world

_OUTPUT = "TAPEFLOW_OUTPUT"  # set for processes that `tapeflow run --workers` starts: "all" or "rank0"
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_LOCAL_SIZE_VARIABLES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")
_FIRST_PORT = 12345


def run_workers(
    workers: int, command: list[str], hosts: str | None, hostfile: str | None, output: str, restarts: int
) -> int:
    """Runs `tapeflow run` with the given arguments in each worker, again after a failure; gives the exit code."""
    if workers < 1:
        raise SystemExit(f"tapeflow run: --workers must be at least 1; got {workers}")
    starter = _find_mpiexec()
    arguments = [*_launch_options(starter, workers, hosts, hostfile), sys.executable, "-m", "tapeflow", "run", *command]
    environment = {"OMPI_MCA_osc": "^ucx", **os.environ, _OUTPUT: output}  # it complains where there is no such network
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # Open MPI refuses root otherwise, as containers are
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for attempt in range(restarts + 1):
        code = subprocess.run(arguments, env=environment, check=False).returncode
        if code == 0 or attempt == restarts:
            break
        print(f"tapeflow run: the workers ended with code {code}; restart {attempt + 1} of {restarts}", file=sys.stderr)
    return 128 - code if code < 0 else code


def _find_mpiexec() -> str:
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = os.environ.get("TAPEFLOW_MPIEXEC") or (beside if os.access(beside, os.X_OK) else shutil.which("mpiexec"))
    if found is None:
        raise SystemExit(
            "tapeflow run: --workers needs MPI, but no `mpiexec` was found. Install it with "
            '`pip install "tapeflow[mpi]"`, or load the MPI of your site.'
        )
    return found


def _launch_options(starter: str, workers: int, hosts: str | None, hostfile: str | None) -> list[str]:
    """The command up to the program, in the dialect of the MPI that is installed."""
    version = subprocess.run([starter, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" in version or "PRRTE" in version or "prte" in version:
        options = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        where = (["--host", hosts] if hosts else []) + (["--hostfile", hostfile] if hostfile else [])
    else:
        options = []
        where = (["-hosts", hosts] if hosts else []) + (["-f", hostfile] if hostfile else [])
    return [starter, "-n", str(workers), *options, *where]


# ---- in each process


def prepare_process() -> None:
    """Makes a process that MPI started ready to run the program: its share of the cores, TF_CONFIG, its output."""
    size = started_processes()
    if size == 1:
        return
    rank = _number(_RANK_VARIABLES, 0)
    set_intra_op_parallelism_threads(_own_cores(size))
    if not os.environ.get("TF_CONFIG"):
        workers = [f"localhost:{_FIRST_PORT + number}" for number in range(size)]
        task = {"type": "worker", "index": rank}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    output = os.environ.get(_OUTPUT)
    if output is not None:  # this process is a rank itself: its program is the only one that runs in it
        atexit.register(join_at_exit)
    if output == "rank0" and rank:
        sys.stdout = open(os.devnull, "w", encoding="utf8")  # noqa: SIM115  open as long as the process
    elif output == "all":
        sys.stdout, sys.stderr = _Prefixed(sys.stdout, rank), _Prefixed(sys.stderr, rank)


def _number(variables: tuple[str, ...], otherwise: int) -> int:
    found = (os.environ.get(variable, "") for variable in variables)
    return next((int(value) for value in found if value.isdecimal()), otherwise)


def _own_cores(size: int) -> int:
    """How many cores this process may use: what Slurm gives a task, or else its share of those of its machine."""
    per_task = _number(("SLURM_CPUS_PER_TASK",), 0)
    if per_task:
        return per_task
    tasks = dict(enumerate(expand_counts(os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""))))
    here = _number(_LOCAL_SIZE_VARIABLES, tasks.get(_number(("SLURM_NODEID",), 0), size))
    return max(1, processors() // here)


def end_all(code: Any) -> None:
    """Ends the other processes too, if this one fails: they would wait for it. `code` is what `sys.exit` was given."""
    if code and started_processes() > 1:
        group: Any = world()
        if not isinstance(group, OneProcess):
            if not isinstance(code, int):  # a message, which the interpreter has no time to print
                print(code, file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            group.abort(code if isinstance(code, int) else 1)


class _Prefixed(io.TextIOBase):
    """A stream whose lines begin with the number of the process."""

    def __init__(self, stream: TextIO, rank: int) -> None:
        self._stream, self._prefix = stream, f"[{rank}] "
        self._begun, self._starts_line = "", True  # a line without its end, and whether nothing of it is written

    encoding = property(lambda self: self._stream.encoding)
    buffer = property(lambda self: self._stream.buffer)

    def write(self, text: str) -> int:
        lines = (self._begun + text).splitlines(keepends=True)
        self._begun = "" if not lines or lines[-1].endswith(("\n", "\r")) else lines.pop()
        if lines:  # in one piece: launchers mix what processes write piece by piece
            self._pass_on("".join([*lines[:1], *(self._prefix + line for line in lines[1:])]))
            self._starts_line = True
        return len(text)

    def _pass_on(self, text: str) -> None:
        self._stream.write(self._prefix + text if self._starts_line else text)
        self._stream.flush()

    def flush(self) -> None:
        if self._begun:
            self._pass_on(self._begun)
            self._begun, self._starts_line = "", False
        self._stream.flush()

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True
