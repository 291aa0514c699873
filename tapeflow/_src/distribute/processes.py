"""Which processes belong to this program: those that a launcher of MPI started, or this one alone."""

from __future__ import annotations

import faulthandler
import functools
import importlib.util
import os
import sys
from typing import Any

from tapeflow._src.distribute.communicator import Communicator, OneProcess, started_processes
from tapeflow._src.distribute.mpi import deadline_of_program
from tapeflow._src.distribute.one_machine import OneMachine
from tapeflow._src.distribute.several_machines import SeveralMachines

_START = 60.0  # seconds that ranks have at least to start, as they may load programs at different speeds
_HOW = "TAPEFLOW_COLLECTIVES"  # "messages": processes of one machine send messages too


def join_at_exit() -> None:
    """Called at the end of a process of several. If it has never joined the others, they may wait for it while MPI
    starts: it joins them, to say that it has ended."""
    if world.cache_info().currsize or "mpi4py.MPI" in sys.modules or importlib.util.find_spec("mpi4py") is None:
        return
    group: Any = world()
    group.say_ended()


@functools.cache
def world() -> Communicator:
    """All processes of this program."""
    if started_processes() == 1:
        return OneProcess()
    # MPI waits for all ranks while it starts, in one call: nothing but this ends it.
    if sys.__stderr__ is not None:
        limit = max(deadline_of_program(), _START)
        faulthandler.dump_traceback_later(limit, exit=True, file=sys.__stderr__)
    try:
        return _all_ranks_that_have_started()
    finally:
        faulthandler.cancel_dump_traceback_later()


def _all_ranks_that_have_started() -> Communicator:
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # it complains where there is no network of its kind
    try:
        from mpi4py import MPI  # initialises MPI, so it is imported only in a process that a launcher started
    except ImportError as error:
        raise ImportError(
            f"tf.distribute: this program was started as {started_processes()} processes, but mpi4py cannot be "
            f'imported ({error}). Install it with `pip install "tapeflow[mpi]"`.'
        ) from error
    if MPI.COMM_WORLD.size == 1:
        library = MPI.Get_library_version().partition("\n")[0].strip(" \0")
        raise RuntimeError(
            f"tf.distribute: this program was started as {started_processes()} processes, but each of them is alone: "
            f"the launcher does not belong to the MPI that mpi4py uses ({library}). Start it with `tapeflow run "
            "--workers N`, with the mpiexec of that MPI, or with `srun --mpi=pmix` or `--mpi=pmi2`."
        )
    here = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    shared = here.size == MPI.COMM_WORLD.size and os.environ.get(_HOW) != "messages"
    here.Free()
    return OneMachine(MPI) if shared else SeveralMachines(MPI)
