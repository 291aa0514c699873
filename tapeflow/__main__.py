"""The command line: `tapeflow run program.py` runs an unmodified TensorFlow program; the work is done elsewhere."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType, TracebackType
from typing import Any

import tapeflow
from tapeflow._src.compat.tensorflow.alias import install_as_tensorflow
from tapeflow._src.distribute.launcher import end_all, prepare_process, run_workers
from tapeflow._src.namespace import find_public

_DESCRIPTION = "Tapeflow: TensorFlow's gradients, rebuilt. Runs TensorFlow programs without TensorFlow."
_EXAMPLES = """examples:
  tapeflow run train.py --epochs 3     run a TensorFlow program; `import tensorflow` gives Tapeflow
  tapeflow run -m package.train        run a module, as `python -m` does
  tapeflow run --v1 train.py           run a program that was written for TensorFlow 1
  tapeflow run --workers 4 train.py    run it in four processes, for tf.distribute
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code of the process."""
    options = _parser().parse_args(arguments)
    if options.command != "run":
        _parser().print_help()
        return 2
    if options.workers is not None:
        program = ["--v1"] * options.v1 + ["-m"] * options.m + [options.program, *options.args]
        return run_workers(options.workers, program, options.hosts, options.hostfile, options.output, options.restarts)
    prepare_process()
    install_as_tensorflow(v1=options.v1)
    if options.v1:
        find_public("compat.v1.disable_v2_behavior")()
    return _run_module(options.program, options.args) if options.m else _run_file(options.program, options.args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tapeflow",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tapeflow {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    run = commands.add_parser(
        "run",
        help="run a TensorFlow program on Tapeflow",
        description="Runs a program in which `import tensorflow` gives Tapeflow. Everything after the program's "
        "name goes to the program.",
    )
    run.add_argument(
        "--v1", action="store_true", help="`import tensorflow` gives TensorFlow 1: tf.placeholder, tf.Session"
    )
    run.add_argument("-m", action="store_true", help="the program is the name of a module, as for `python -m`")
    run.add_argument("--workers", type=int, metavar="N", help="start N processes with MPI, for tf.distribute")
    run.add_argument("--hosts", metavar="A,B", help="the machines of the workers")
    run.add_argument("--hostfile", metavar="FILE", help="a file that lists the machines, as mpiexec reads it")
    run.add_argument(
        "--output", choices=["all", "rank0"], default="all", help="whose output is shown; lines begin with the rank"
    )
    run.add_argument("--restarts", type=int, default=0, metavar="N", help="how often to start failed workers again")
    run.add_argument("program", help="a Python file, a folder or zip file with __main__.py, or, after -m, a module")
    run.add_argument("args", nargs=argparse.REMAINDER, help="the arguments of the program")
    return parser


def _version() -> str:
    try:
        return metadata.version("tapeflow")
    except metadata.PackageNotFoundError:  # run from a source tree
        return tapeflow.__version__


def _run_file(path: str, arguments: Sequence[str]) -> int:
    """Runs a file as `python path` does; the `__main__` module stays in place until the process ends."""
    sys.argv[:] = [path, *arguments]
    if os.path.isdir(path) or (not path.endswith((".py", ".pyw")) and _is_zip(path)):
        import runpy  # needed for archives and modules alone

        return _call(runpy.run_path, path, run_name="__main__")
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        full_path = os.path.abspath(path)
        print(f"tapeflow: can't open file {full_path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        return 2
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    main_module = ModuleType("__main__")
    main_module.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None, __spec__=None)
    sys.modules["__main__"] = main_module
    return _call(_execute, source, path, main_module.__dict__)


def _execute(source: bytes, path: str, scope: dict[str, Any]) -> None:
    exec(compile(source, path, "exec", dont_inherit=True), scope)


def _run_module(name: str, arguments: Sequence[str]) -> int:
    """Runs a module as `python -m name` does."""
    import runpy

    sys.argv[:] = [name, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    return _call(runpy.run_module, name, run_name="__main__", alter_sys=True)


def _is_zip(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _call(run: Any, *args: Any, **kwargs: Any) -> int:
    """Runs the program and reports an error as the interpreter does, with the program's own frames alone."""
    try:
        run(*args, **kwargs)
    except SystemExit as exit_request:
        if exit_request.code not in (None, 0):
            end_all(exit_request.code if isinstance(exit_request.code, int) else 1)
        raise
    except BaseException as error:
        error = error.with_traceback(_without_our_frames(error.__traceback__))
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        end_all(1)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is neither of this file nor of runpy."""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name != __file__ and "runpy" not in os.path.basename(name) and name != "<frozen runpy>":
            break
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    sys.exit(main())
