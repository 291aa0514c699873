"""The command line: `tapeflow run program.py` runs an unmodified TensorFlow program; the work is done elsewhere."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType, TracebackType
from typing import Any

import tapeflow
from tapeflow._src.compat.tensorflow import stand_in
from tapeflow._src.compat.tensorflow.alias import install_as_tensorflow
from tapeflow._src.diagnostics import compare_runs, report_text
from tapeflow._src.diagnostics.doctor import Doctor
from tapeflow._src.diagnostics.entrances.options import add_options, doctor_of
from tapeflow._src.distribute.launcher import end_all, prepare_process, run_workers
from tapeflow._src.namespace import find_public

_DESCRIPTION = "Tapeflow: TensorFlow's gradients, rebuilt. Runs TensorFlow programs without TensorFlow."
_EXAMPLES = """examples:
  tapeflow run train.py --epochs 3     run a TensorFlow program; `import tensorflow` gives Tapeflow
  tapeflow run -m package.train        run a module, as `python -m` does
  tapeflow run --v1 train.py           run a program that was written for TensorFlow 1
  tapeflow run --workers 4 train.py    run it in four processes, for tf.distribute
  tapeflow doctor train.py             run it and report what is wrong with its gradients
  tapeflow stand-in install            let this virtual environment have a `tensorflow` that is Tapeflow
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code of the process."""
    options = _parser().parse_args(arguments)
    if options.command == "stand-in":
        return _change_stand_in(options.action)
    if options.command not in ("run", "doctor"):
        _parser().print_help()
        return 2
    if options.command == "doctor":
        return _run_doctor(options)
    if options.workers is not None:
        program = ["--v1"] * options.v1 + ["-m"] * options.m + [options.program, *options.args]
        return run_workers(options.workers, program, options.hosts, options.hostfile, options.output, options.restarts)
    prepare_process()
    return _run_program(options)


def _run_program(options: argparse.Namespace) -> int:
    install_as_tensorflow(v1=options.v1)
    if options.v1:
        find_public("compat.v1.disable_v2_behavior")()
    return _run_module(options.program, options.args) if options.m else _run_file(options.program, options.args)


def _run_doctor(options: argparse.Namespace) -> int:
    """Runs a program under a doctor and reports; the exit code is the program's own, or 3 by --fail-on."""
    if not options.m and not os.path.exists(options.program):
        return _run_file(options.program, options.args)  # says so; there is nothing to report
    doctor = doctor_of(options)
    code: Any = 1
    process = os.getpid()
    try:
        with doctor:
            try:
                code = _run_program(options)
            except SystemExit as exit_request:
                code = exit_request.code
                doctor.ended_by(exit_request)
            else:
                doctor.ended_by(getattr(sys, "last_value", None) if code else None)
    finally:
        if os.getpid() == process:  # not in a copy that computes a numeric derivative
            _write_report(doctor, options)
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    levels = {"severe": ("severe",), "warning": ("severe", "warning")}.get(options.fail_on, ())
    return 3 if any(f.severity in levels for f in doctor.findings) else code or 0


def _write_report(doctor: Doctor, options: argparse.Namespace) -> None:
    report = doctor.report(options.program)
    sys.stdout.flush()
    print(report_text.text(report), file=sys.stderr)
    if options.against is not None:
        print(compare_runs.text(compare_runs.compare(options.against, report)), file=sys.stderr)
    if options.json is not None:
        doctor.save_json(options.json, options.program)
    if options.html is not None:
        doctor.save_html(options.html, options.program)


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
    doctor = commands.add_parser(
        "doctor",
        help="run a program and report what is wrong with its gradients",
        description="Runs a TensorFlow, Keras or Tapeflow program, watches its gradients, and reports at its end, at "
        "an error or at Ctrl-C. The exit code is the program's own.",
    )
    add_options(doctor)
    doctor.add_argument("--fail-on", choices=["severe", "warning"], help="exit with 3 if there is such a finding")
    doctor.add_argument(
        "--against", type=_earlier_report, metavar="FILE", help="compare with the report.json of another run"
    )
    doctor.add_argument("--v1", action="store_true", help="`import tensorflow` gives TensorFlow 1")
    doctor.add_argument("-m", action="store_true", help="the program is the name of a module, as for `python -m`")
    doctor.add_argument("program", help="as for `tapeflow run`")
    doctor.add_argument("args", nargs=argparse.REMAINDER, help="the arguments of the program")
    run.add_argument("program", help="a Python file, a folder or zip file with __main__.py, or, after -m, a module")
    run.add_argument("args", nargs=argparse.REMAINDER, help="the arguments of the program")
    change = commands.add_parser(
        "stand-in",
        help="let this virtual environment have a `tensorflow` that is Tapeflow",
        description="Writes a distribution `tensorflow` without code into this virtual environment, or takes it away. "
        "Packages that declare tensorflow install without it, and `import tensorflow` gives Tapeflow.",
    )
    change.add_argument("action", choices=["install", "remove"])
    return parser


def _earlier_report(text: str) -> dict[str, Any]:
    try:
        with open(text, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not the report of another run: {error}") from None
    if not isinstance(report, dict) or "verdict" not in report or "findings" not in report:
        raise argparse.ArgumentTypeError(f"{text!r} is not the report of another run: it has no verdict")
    return report


def _change_stand_in(action: str) -> int:
    try:
        print(f"tapeflow stand-in: {stand_in.install() if action == 'install' else stand_in.remove()}")
    except stand_in.StandInError as error:
        print(f"tapeflow stand-in {action}: {error}", file=sys.stderr)
        return 1
    return 0


def _version() -> str:
    try:
        return metadata.version("tapeflow")
    except metadata.PackageNotFoundError:  # run from a source tree
        return tapeflow.__tapeflow_version__


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
            end_all(exit_request.code)
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
