"""Tapeflow's entry for GradBench: answers the messages of an eval, one JSON object a line.

    python benchmarks/gradbench/run.py [--multithreaded]

`entry/NAME.py` holds the eval NAME: `prepare(input)` makes the arguments, one function for each function of the eval,
and `encode(output)`, where it exists, makes what is sent. Decoding, tracing and encoding are not part of the timings:
the first run is not timed.
"""

import argparse
import importlib.util
import json
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import tapeflow as tf


def define(message: dict) -> dict:
    name = f"entry.{message['module']}"
    try:
        found = importlib.util.find_spec(name) is not None
    except ValueError:
        found = False
    if not found:
        return {"success": False, "error": f"there is no module {message['module']}"}
    importlib.import_module(name)
    return {"success": True}


def evaluate(message: dict) -> dict:
    try:
        return {"success": True} | measure(message)
    except Exception:
        return {"success": False, "error": traceback.format_exc()}


def measure(message: dict) -> dict:
    """The output of the function and the time of each run, as many runs as the input asks for."""
    module = importlib.import_module(f"entry.{message['module']}")
    function, given = getattr(module, message["function"]), message["input"]
    runs, seconds = (given["min_runs"], given["min_seconds"]) if isinstance(given, dict) else (1, 0)
    arguments = module.prepare(given)
    tf.nest.map_structure(np.asarray, function(*arguments))
    timings, total = [], 0
    while len(timings) < max(runs, 1) or total < seconds * 1e9:
        start = time.perf_counter_ns()
        output = tf.nest.map_structure(np.asarray, function(*arguments))
        spent = time.perf_counter_ns() - start
        total += spent
        timings.append({"name": "evaluate", "nanoseconds": spent})
    output = getattr(module, "encode", lambda arrays: arrays)(output)
    return {"output": tf.nest.map_structure(lambda array: array.tolist(), output), "timings": timings}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--multithreaded", action="store_true")
    if not parser.parse_args().multithreaded:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    answers = {"start": lambda message: {"tool": "tapeflow"}, "define": define, "evaluate": evaluate}
    for line in sys.stdin:
        message = json.loads(line)
        response = answers.get(message["kind"], lambda message: {})(message)
        print(json.dumps({"id": message["id"]} | response), flush=True)


if __name__ == "__main__":
    main()
