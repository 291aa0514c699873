"""Which processes belong to this program: those that a launcher of MPI started, or this one alone."""

from __future__ import annotations

import functools

from tapeflow._src.distribute.communicator import Communicator, OneProcess, started_processes
from tapeflow._src.distribute.mpi import MpiWorld


@functools.cache
def world() -> Communicator:
    """All processes of this program."""
    if started_processes() == 1:
        return OneProcess()
    try:
        from mpi4py import MPI  # initialises MPI, so it is imported only in a process that a launcher started
    except ImportError as error:
        raise ImportError(
            f"tf.distribute: this program was started as {started_processes()} processes, but mpi4py cannot be "
            f'imported ({error}). Install it with `pip install "tapeflow[mpi]"`.'
        ) from error
    group = MpiWorld(MPI)
    return group if group.size > 1 else OneProcess()
