"""Training steps of many families in Tapeflow and the peers: times, ratios, and whether the losses agree.

    python benchmarks/workloads/compare.py [--compiled | --best] [--only NAME ...] [--seconds 0.3] [--rounds 3]

Each library runs in a process of its own; the processes are timed in turns. `make peers` installs the peers. JAX is
always under jax.jit; in the table of eager modes its column is shown beside, it does not count as an eager peer.
`--best` measures both modes and takes the better one of each library. The exit code is 1 where losses differ or a
library failed. The whole table takes some minutes on two quiet cores.
"""

import argparse
import json
import math
import os
import selectors
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from compare import LABELS, QUIET, frameworks, print_table, ratio  # noqa: E402
from values import VALUES  # noqa: E402

STEPS = 3


class Worker:
    """A process that builds and times workloads for one implementation, such as `torch:compiled`."""

    def __init__(self, name: str, limit: float):
        self.name, self.limit, self.process = name, limit, None

    def ask(self, **request):
        if self.process is None:
            command = [frameworks()[self.name.split(":")[0]], HERE / "worker.py", self.name]
            self.process = subprocess.Popen(
                command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True, env=os.environ | QUIET
            )
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(self.limit) else None
        if not line:
            self.stop()
            return {"error": f"no answer in {self.limit:.0f} s" if line is None else "the process ended"}
        return json.loads(line)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def processor() -> str:
    """The processor's name, its vector extensions, and how many cores this process may use."""
    lines = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in lines.items()}
    flags = set(facts.get("flags", "").split())
    known = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    return f"{facts.get('model name', 'unknown')} ({', '.join(known)}), {len(os.sched_getaffinity(0))} cores"


def measure(name: str, workers: list, options) -> dict:
    """What each worker answered for the workload `name`: losses and time, or an error."""
    for worker in workers:
        worker.ask(build=name, steps=STEPS)  # all at once: building is not timed
    results = {worker.name: worker.answer() for worker in workers}
    for _ in range(options.rounds):
        for worker in workers:
            result = results[worker.name]
            if "error" not in result:
                worker.ask(seconds=options.seconds / options.rounds)
                answer = worker.answer()
                result["time"] = min(result.get("time", math.inf), answer.pop("time", math.inf))
                result |= answer
    return results


def deviation(own: list, other: list) -> float:
    """The greatest relative difference of two lists of losses; NaN counts as infinite."""
    differences = [abs(a - b) / max(abs(a), 1e-30) for a, b in zip(own, other)]
    return max(math.inf if math.isnan(d) else d for d in differences)


def geometric_mean(values: list) -> str:
    return ratio(math.exp(sum(map(math.log, values)) / len(values))) if values else "-"


def fastest(results: dict, library: str) -> float:
    """The best time of any mode of `library`; infinite where none ran."""
    times = [r["time"] for n, r in results.items() if n.split(":")[0] == library and "error" not in r]
    return min(times, default=math.inf)


class Table:
    """Rows of times and ratios, what must be told below them, and the ratios by column."""

    def __init__(self, columns: list, eager: bool):
        self.columns, self.eager = columns, eager  # libraries, Tapeflow first
        self.rows, self.complaints, self.ratios = [], [], [[] for _ in columns]

    def add(self, name: str, results: dict):
        own_results = [result for n, result in results.items() if n.startswith("tapeflow")]
        ours = next((result for result in own_results if "error" not in result), own_results[0])
        for implementation, result in results.items():
            if "error" in result:
                self.complaints.append(f"{name}: {LABELS[implementation]}: {result['error']}")
        if "error" in ours:
            self.rows.append([name, *["-"] * (len(self.columns) + 2)])
            return
        differences = [deviation(ours["losses"], r["losses"]) for r in results.values() if "losses" in r]
        worst, tolerance = max(differences), VALUES[name]().tolerance
        if not worst <= tolerance:
            losses = {LABELS[n]: r.get("losses") for n, r in results.items()}
            self.complaints.append(f"{name}: losses differ by {worst:.1e}, allowed {tolerance:.0e}: {losses}")
        own = fastest(results, "tapeflow")
        values = [fastest(results, library) / own for library in self.columns[1:]]
        counted = [v for v, library in zip(values, self.columns[1:]) if not (self.eager and library == "jax")]
        values.append(min(counted, default=math.inf))
        for column, value in zip(self.ratios, values):
            column += [value] if math.isfinite(value) else []
        cells = [ratio(v) if math.isfinite(v) else "-" for v in values]
        self.rows.append([name, f"{own * 1e3:,.3f} ms", *cells, f"{worst:.0e}"])

    def print(self, title: str, labels: list):
        means = ["geometric mean", "", *map(geometric_mean, self.ratios), ""]
        print_table(title, ["workload", *labels, "best peer", "losses differ by"], [*self.rows, means])
        below = [row[0] for row in self.rows if row[-2] != "-" and float(row[-2].replace(",", "")) < 1]
        print(f"\nAhead of the best peer in {len(self.rows) - len(below)} of {len(self.rows)}.", end=" ")
        print("Behind in: " + ", ".join(below) + "." if below else "")
        for complaint in self.complaints:
            print(f"- {complaint}")


def main():
    parser = argparse.ArgumentParser()
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--compiled", action="store_true", help="compiled modes instead of eager")
    modes.add_argument("--best", action="store_true", help="both modes, and the better one of each library counts")
    parser.add_argument("--only", nargs="+", default=list(VALUES), choices=list(VALUES), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=0.6, help="for timing, of each workload and library")
    parser.add_argument("--rounds", type=int, default=3, help="how often the libraries take turns")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds to wait for one library")
    options = parser.parse_args()

    libraries = list(frameworks())
    chosen = ("eager", "compiled") if options.best else ("compiled",) if options.compiled else ("eager",)
    names = [f"{library}:{mode}" for library in libraries for mode in (chosen if library != "jax" else ["compiled"])]
    workers = [Worker(name, options.limit) for name in names]
    table = Table(libraries, eager=chosen == ("eager",))
    try:
        for name in options.only:
            table.add(name, measure(name, workers, options))
            print(*table.rows[-1], file=sys.stderr, flush=True)
    finally:
        for worker in workers:
            worker.stop()
    labels = [LABELS[n] for n in names] if not options.best else [LABELS[f"{library}:eager"] for library in libraries]
    labels = [label.replace(" eager", "") for label in labels] if options.best else labels
    title = f"Time of one step in {labels[0]}{', best mode' if options.best else ''}, and how many times longer the "
    table.print(f"{title}others need. {processor()}.", labels)
    sys.exit(bool(table.complaints))


if __name__ == "__main__":
    main()
