"""Runs all programs of one family under doctors, in this process: `python -m tests.diagnostics.corpus.runner FILE`.

Prints a JSON list: for each program its findings, or the error of the doctor itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import random
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np

import tapeflow as tf
from tests.diagnostics.corpus.programs import Program, read_family

LIMIT = 50_000_000


def run(program: Program) -> dict:
    """The findings of one program."""
    text = program.text
    linecache.cache[program.file] = (len(text), None, text.splitlines(keepends=True), program.file)
    module = ModuleType("__main__")
    module.__file__ = program.file
    np.random.seed(0)
    random.seed(0)
    tf.random.set_seed(0)
    doctor, error = tf.debugging.Doctor(), None
    process = os.getpid()
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with doctor:
                exec(compile(text, program.file, "exec", dont_inherit=True), module.__dict__)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            if os.getpid() != process:
                os._exit(0)
            if program.family.startswith("v1"):
                tf.compat.v1.reset_default_graph()
    report = doctor.report()
    return {
        "name": program.name, "error": error, "verdict": report["verdict"],
        "findings": [[f["kind"], f["severity"], f["file"], f["line"], f["message"], f["evidence"], f["variable"]]
                     for f in report["findings"]],
        "failed": [c["detail"] for c in report["checks"] if c["result"] == "failed"],
    }  # fmt: skip


if __name__ == "__main__":
    path = Path(sys.argv[1])
    tf.install_as_tensorflow(v1=path.stem.startswith("v1"))
    if path.stem.startswith("v1"):
        tf.compat.v1.disable_v2_behavior()
    wanted = set(sys.argv[2:])
    results = [run(p) for p in read_family(path) if not wanted or p.name in wanted]
    print(json.dumps(results, default=str))
