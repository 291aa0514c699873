"""Step times of the workloads in every framework that is present, as Markdown tables of peer time / Tapeflow time.

    python benchmarks/compare.py [--compiled] [--work a,b,...] [--rounds 5] [--seconds 0.3]

Also what the other scripts share: finding the frameworks, running one in its own process, timing, printing tables.
Peers live in a virtual environment of their own (`make peers`); without it only Tapeflow is measured.
"""

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS_PYTHON = HERE.parent / ".peers" / "bin" / "python"
PEERS = ("tensorflow", "torch", "jax")
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
    "KMP_WARNINGS": "0",
    "PYTHONWARNINGS": "ignore",
}


@functools.cache
def frameworks() -> dict:
    """The Python that has it, by framework; Tapeflow first."""
    found = {"tapeflow": sys.executable}
    if PEERS_PYTHON.exists():
        question = f"from importlib.util import find_spec\nprint(*(m for m in {PEERS} if find_spec(m)))"
        answer = subprocess.run([PEERS_PYTHON, "-c", question], capture_output=True, text=True, check=True)
        found |= {name: str(PEERS_PYTHON) for name in answer.stdout.split()}
    return found


def run(framework: str, *arguments: str):
    """Runs Python with `arguments` for `framework` in a fresh process; the JSON value in the last line it prints."""
    command = [frameworks()[framework], *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, env=os.environ | QUIET)
    if process.returncode:
        raise SystemExit(f"{framework}: {' '.join(command)}\n{process.stderr}")
    return json.loads(process.stdout.splitlines()[-1])


def build_step(framework: str, work: str, compiled: bool = False):
    """A function that does one step of the workload `work`."""
    if framework in ("torch", "jax"):
        return importlib.import_module(f"{framework}_like").build(work, compiled)
    return importlib.import_module("tf_like").build(importlib.import_module(framework), work, compiled)


def best_seconds(call, seconds: float = 0.2, calls: int = 1, clock=time.perf_counter) -> float:
    """The shortest time of one call, over `seconds` of trying; `calls` is how many to time together at first."""
    best, end = float("inf"), clock() + seconds
    while True:
        start = clock()
        for _ in range(calls):
            call()
        spent = clock() - start
        best = min(best, spent / calls)
        if clock() > end:
            return best
        if spent < 0.005:
            calls *= 2


def print_table(title: str, header: list, rows: list):
    """Prints Markdown; the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}\n")
    for row in [header, ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]], *rows]:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("| " + " | ".join(cells) + " |")


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.{2 if seconds < 1e-5 else 1 if seconds < 1e-3 else 0}f} µs"


def ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


LABELS = {
    "tapeflow:eager": "Tapeflow",
    "tensorflow:eager": "TensorFlow eager",
    "torch:eager": "PyTorch eager",
    "jax:eager": "JAX eager",
    "tapeflow:compiled": "Tapeflow tf.function",
    "tensorflow:compiled": "tf.function",
    "torch:compiled": "torch.compile",
    "jax:compiled": "jax.jit",
}


def measure(implementations: list, options) -> dict:
    """Lets bench.py time all `implementations` in turns; seconds or an error, by workload and implementation."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pythons = ",".join(f"{name}={python}" for name, python in frameworks().items())
        command = [sys.executable, HERE / "bench.py", "--impl", ",".join(implementations), "--python", pythons]
        command += ["--rounds", str(options.rounds), "--seconds", str(options.seconds), "--json", report]
        command += ["--work", options.work] if options.work else []
        subprocess.run(command, check=True, stdout=sys.stderr)
        return json.loads(report.read_text())


def print_ratios(what: str, results: dict, key: str, ours: str, peers: list):
    rows = []
    for work, result in results.items():
        own = result[ours].get(key)
        rows.append([work, microseconds(own) if own else result[ours]["error"]])
        rows[-1] += [ratio(result[peer][key] / own) if own and key in result[peer] else "-" for peer in peers]
    title = f"{what}, and how many times longer the others need."
    print_table(title, ["workload", LABELS[ours], *(LABELS[peer] for peer in peers)], rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiled", action="store_true", help="compiled modes instead of eager")
    parser.add_argument("--work", default="", help="workloads, with commas between (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()

    if options.compiled:
        ours, peers = "tapeflow:compiled", ["tensorflow:compiled", "torch:compiled", "jax:compiled"]
    else:
        ours, peers = "tapeflow:eager", ["tensorflow:eager", "torch:eager", "jax:compiled"]
    peers = [peer for peer in peers if peer.split(":")[0] in frameworks()]
    results = measure([ours, *peers], options)
    print_ratios(f"Time of one step in {LABELS[ours]}", results, "t", ours, peers)
    if options.compiled:
        print_ratios("Time of the first call (tracing and compiling included)", results, "first", ours, peers)


if __name__ == "__main__":
    main()
