"""The options that the command and the magic of notebooks have in common."""

from __future__ import annotations

import argparse
import os

from tapeflow._src.diagnostics.doctor import Doctor


def add_options(parser: argparse.ArgumentParser) -> None:
    """How to watch, and where to write the report."""
    parser.add_argument(
        "--steps", type=_positive, metavar="N", help="watch N calls of gradient, then let the program be"
    )
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="write the report as JSON (docs/doctor.md)")
    parser.add_argument("--html", type=_new_file, metavar="FILE", help="write the report as one HTML page")
    parser.add_argument("--monitor", action="store_true", help="sample steps; functions run as graphs")
    parser.add_argument(
        "--memory-budget", type=_bytes, metavar="SIZE", help="say what to recompute so that tapes keep at most 2GB, say"
    )
    parser.add_argument(
        "--check-step", action="store_true", help="check a step by reverse mode, forward mode and differences"
    )
    parser.add_argument(
        "--curvature", action="store_true", help="compute the largest eigenvalue of the Hessian of the first step"
    )


def doctor_of(options: argparse.Namespace) -> Doctor:
    """The doctor that watches as these options say."""
    return Doctor(
        steps=options.steps,
        mode="monitor" if options.monitor else "full",
        memory_budget=options.memory_budget,
        check_step=options.check_step,
        curvature=options.curvature,
    )


def _bytes(text: str) -> int:
    """A number of bytes: "500MB", "2GB", "1e9"."""
    units = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "b": 1}
    unit = next((u for u in units if text.lower().endswith(u)), "")
    try:
        size = int(float(text.lower().removesuffix(unit)) * units.get(unit, 1))
    except (ValueError, OverflowError):
        size = -1
    if size < 0:
        raise argparse.ArgumentTypeError(f"a size such as 500MB or 2GB is expected; got {text!r}")
    return size


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a positive integer is expected; got {text!r}")
    return int(text)


def _new_file(text: str) -> str:
    """The full path of a file that can be written, before the program runs and may change the folder."""
    path = os.path.abspath(text)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder!r}")
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"{path!r} cannot be written")
    return path
