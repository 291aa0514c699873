"""One library in one process: builds and times workloads as compare.py asks, one JSON line for each request.

Requests, one a line: {"build": name, "steps": n} answers {"losses": [...]}; {"seconds": s} times the workload that was
built last and answers {"time": seconds of one step}. A failure answers {"error": text}.
"""

import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path

from values import VALUES

FAMILIES = ("sequence", "vision", "science", "dense", "generative", "relational", "dynamics", "structured")


def load(library: str):
    """The module that builds steps for `library`, with the workloads of all families registered."""
    if library == "tapeflow":
        sys.path.append(str(Path(__file__).resolve().parents[2]))
        importlib.import_module("tapeflow").install_as_tensorflow()
    folder = "in_tensorflow" if library in ("tapeflow", "tensorflow") else f"in_{library}"
    for family in FAMILIES:
        importlib.import_module(f"{folder}.{family}")
    return importlib.import_module(f"{folder}.train")


def step_seconds(step, seconds: float) -> float:
    """The shortest time of one step; steps below a millisecond are timed together."""
    best, calls, end = float("inf"), 1, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            step()
        spent = time.perf_counter() - start
        best = min(best, spent / calls)
        if time.perf_counter() > end:
            return best
        if spent < 0.002:
            calls *= 2


def main():
    library, mode = sys.argv[1].split(":")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    train = load(library)
    step = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "build" in request:
                step = None
                gc.collect()
                name = request["build"]
                step = train.build(name, VALUES[name](), mode == "compiled")
                answer = {"losses": [step() for _ in range(request["steps"])]}
            else:
                answer = {"time": step_seconds(step, request["seconds"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
