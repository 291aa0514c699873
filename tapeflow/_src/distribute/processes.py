"""Which processes belong to this program: those that a launcher of MPI started, or this one alone."""

from __future__ import annotations

import functools
import os

from tapeflow._src.distribute.communicator import Communicator, OneProcess, started_processes
from tapeflow._src.distribute.one_machine import OneMachine
from tapeflow._src.distribute.several_machines import SeveralMachines

_HOW = "TAPEFLOW_COLLECTIVES"  # "messages": processes of one machine send messages too


@functools.cache
def world() -> Communicator:
    """All processes of this program."""
    if started_processes() == 1:
        return OneProcess()
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
