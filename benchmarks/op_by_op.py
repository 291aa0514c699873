"""Which operation is slower than elsewhere: hundreds of operations and small formulas, on arrays of 100, 10,000 and
1,000,000 elements, forward and with gradient, against PyTorch, JAX (compiled) and NumPy. Each library runs in a process
of its own and all are timed in turns. The rows are in `operations/`.

    python benchmarks/op_by_op.py [--only REGEX] [--sizes tiny,medium,large] [--peers torch,jax,numpy] [--slowest 40]
                                  [--rounds 3] [--seconds 0.05] [--threads 2] [--below 1.0]

A ratio is the best peer's time / Tapeflow's: below 1 Tapeflow is slower.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time

from compare import PEERS_PYTHON, QUIET, best_seconds, frameworks, microseconds, print_table, ratio
from operations import ROWS, WITHOUT_GRADIENT
from operations.inputs import SIZES, inputs


def tapeflow_call(tf, row: str, arrays: dict, with_gradient: bool):
    names, op = ROWS[row][:2]
    given = [tf.constant(arrays[name]) for name in names]
    sources = [x for x in given if x.dtype.is_floating or x.dtype.is_complex]
    large = any(x.shape.num_elements() > 10_000 for x in given)

    def call():
        if with_gradient:
            with tf.GradientTape() as tape:
                tape.watch(sources)
                y = op(tf, *given)
            y = tape.gradient(y, sources)
        else:
            y = op(tf, *given)
        if large:  # may wait until it is read
            for result in y if isinstance(y, (list, tuple)) else [y]:
                memoryview(getattr(result, "values", result))

    return call


def torch_call(torch, row: str, arrays: dict, with_gradient: bool):
    names, _, op = ROWS[row][:3]
    given = [torch.from_numpy(arrays[name].copy()) for name in names]
    if not with_gradient:
        return lambda: op(torch, *given)
    sources = [x.requires_grad_() for x in given if x.is_floating_point() or x.is_complex()]

    def call():
        y = op(torch, *given)
        ones = [torch.ones_like(part) for part in y] if isinstance(y, list) else torch.ones_like(y)
        for gradient in torch.autograd.grad(y, sources, ones):
            gradient.contiguous()  # not a view of one element

    return call


def jax_call(jax, row: str, arrays: dict, with_gradient: bool):
    names, function = ROWS[row][0], ROWS[row][3]
    given = [jax.numpy.asarray(arrays[name]) for name in names]
    if not with_gradient:
        compiled = jax.jit(lambda *given: function(jax.numpy, *given))
        return lambda: jax.block_until_ready(compiled(*given))
    differentiated = [i for i, x in enumerate(given) if x.dtype.kind in "fc"]

    def vjp(*given):
        def of_sources(*sources):
            every = list(given)
            for i, source in zip(differentiated, sources, strict=True):
                every[i] = source
            return function(jax.numpy, *every)

        return jax.vjp(of_sources, *(given[i] for i in differentiated))

    # The result is computed, too, and the compiler does not know the cotangent: as in a training step.
    def compute(dy, *given):
        y, backward = vjp(*given)
        return y, backward(dy)

    ones = jax.tree.map(
        lambda spec: jax.numpy.ones(spec.shape, spec.dtype), jax.eval_shape(lambda *g: vjp(*g)[0], *given)
    )
    compiled = jax.jit(compute)
    return lambda: jax.block_until_ready(compiled(ones, *given))


def numpy_call(np, row: str, arrays: dict, with_gradient: bool):
    names, function = ROWS[row][0], ROWS[row][3]
    given = [arrays[name].copy() for name in names]
    return lambda: function(np, *given)


def can_run(framework: str, row: str, size: str, with_gradient: bool) -> bool:
    if framework == "tapeflow":
        return True
    if framework == "torch":
        return ROWS[row][2] is not None
    has = len(ROWS[row]) > 3 and ROWS[row][3] is not None
    return has and (not with_gradient if framework == "numpy" else size != "tiny")


def serve(framework: str, threads: int) -> None:
    """Answers questions, one a line: [row, size, with gradient, seconds] with the time of a call."""
    if threads == 1 and framework == "jax":  # it has no setting for it
        os.sched_setaffinity(0, {os.getpid() % os.cpu_count()})
    import numpy as np

    module = importlib.import_module(framework)
    if framework == "torch":
        module.set_num_threads(threads)
    elif framework == "jax":
        module.config.update("jax_enable_x64", True)
    elif framework == "tapeflow":
        module.config.threading.set_intra_op_parallelism_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter  # other programs do not count
    make = {"torch": torch_call, "jax": jax_call, "numpy": numpy_call}.get(framework, tapeflow_call)
    arrays = {size: inputs(np, size) for size in SIZES}
    made, call = None, None
    for line in sys.stdin:
        row, size, with_gradient, seconds = json.loads(line)
        try:
            if made != (row, size, with_gradient):
                made, call = None, None
                call = make(module, row, arrays[size], with_gradient)
                call()
                made = (row, size, with_gradient)
            answer = best_seconds(call, seconds, clock=clock)
        except Exception as error:
            answer = f"{framework}: {type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


class Worker:
    """One framework in a process of its own."""

    def __init__(self, framework: str, threads: int):
        python = PEERS_PYTHON if framework == "numpy" else frameworks()[framework]
        command = [python, __file__, "--worker", framework, str(threads)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if threads == 1 else {}
        self.framework = framework
        self.process = subprocess.Popen(command, env=os.environ | QUIET | alone, **pipes)

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def best_times(workers: list, question: tuple, rounds: int, seconds: float) -> list:
    best = [float("inf") if can_run(worker.framework, *question) else float("nan") for worker in workers]
    for _ in range(rounds):
        for i, worker in enumerate(workers):
            if best[i] != best[i]:
                continue
            answer = worker.ask(*question, seconds)
            if isinstance(answer, str):
                print(f"{question[0]}, {question[1]}: {answer}", file=sys.stderr)
                answer = float("nan")
            best[i] = answer if answer != answer else min(best[i], answer)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="a regular expression for the rows")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--peers", default="torch,jax,numpy")
    parser.add_argument("--slowest", type=int, default=0, help="only the rows with the smallest ratios")
    parser.add_argument("--below", type=float, default=float("inf"), help="only the rows with smaller ratios")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="1: processor time, for a busy machine")
    options = parser.parse_args()
    found = {*frameworks(), "numpy"} if "torch" in frameworks() else frameworks()
    peers = [name for name in options.peers.split(",") if name in found]
    workers = [Worker(name, options.threads) for name in ("tapeflow", *peers)]
    lines = []
    for row in ROWS:
        if not re.search(options.only, row):
            continue
        names = ROWS[row][0]
        floats = [name for name in names if name[:2] not in ("i_", "j_", "b_")]
        for size in options.sizes.split(",") if names else ("tiny",):
            for with_gradient in (False, True) if floats and row not in WITHOUT_GRADIENT else (False,):
                best = best_times(workers, (row, size, with_gradient), options.rounds, options.seconds)
                known = [time for time in best[1:] if time == time]
                what = f"{row}, {size}{', gradient' if with_gradient else ''}"
                lines.append((min(known, default=float("nan")) / best[0], what, best))
                if lines[-1][0] < options.below:
                    print(f"{lines[-1][0]:.2f} {what}: {[microseconds(time) for time in best]}", file=sys.stderr)
    if options.slowest or options.below < float("inf"):
        lines = sorted(line for line in lines if line[0] < options.below)[: options.slowest or None]
    rows = [
        [name, *(microseconds(time) if time == time else "-" for time in best), ratio(times)]
        for times, name, best in lines
    ]
    print_table("Time of a call.", ["operation", "tapeflow", *peers, "ratio"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
