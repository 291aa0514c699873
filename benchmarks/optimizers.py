"""Optimizer steps over many parameters, against the time of copying as many bytes: is the update at memory bandwidth?

    python benchmarks/optimizers.py [--parameters 50e6] [--variables 1] [--only adamw,lion] [--rounds 5] [--eager]

Tapeflow runs the plain formulas in a `tf.function`, PyTorch in `torch.compile` and, where it has them, with its fused
optimizers, JAX in `jax.jit` with donated buffers. Each has a process of its own; the steps are timed in turns. With
`--eager` Tapeflow and PyTorch run the formulas eagerly. The columns are times / the time of the copy: the copy reads
and writes, with two threads of NumPy, as many bytes as the update does.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time

from compare import QUIET, frameworks, print_table

# name: how many slots there are; the update reads and writes parameter and slots, and reads the gradient.
SLOTS = {"sgd": 0, "momentum": 1, "rmsprop": 1, "lion": 1, "adam": 2, "adamw": 2, "amsgrad": 3}
LR, B1, B2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-7, 1e-2


def update(name, ops, w, g, slots):
    """The new parameter and slots, by `ops`: sqrt, sign, square and maximum of the library."""
    if name == "sgd":
        return w - LR * g, []
    if name == "momentum":
        m = B1 * slots[0] + g
        return w - LR * m, [m]
    if name == "rmsprop":
        v = 0.9 * slots[0] + 0.1 * ops.square(g)
        return w - LR * g / (ops.sqrt(v) + EPS), [v]
    if name == "lion":
        m = slots[0]
        step = ops.sign(B1 * m + (1 - B1) * g)
        return w - LR * (step + DECAY * w), [B2 * m + (1 - B2) * g]
    m = B1 * slots[0] + (1 - B1) * g
    v = B2 * slots[1] + (1 - B2) * ops.square(g)
    if name == "amsgrad":
        top = ops.maximum(slots[2], v)
        return w - LR * m / (ops.sqrt(top) + EPS), [m, v, top]
    if name == "adamw":
        w = w * (1 - LR * DECAY)
    return w - LR * m / (ops.sqrt(v) + EPS), [m, v]


def arrays(parameters: int, variables: int):
    """Parameters and gradients."""
    import numpy as np

    random = np.random.default_rng(0)
    sizes = [parameters // variables] * variables
    return [[random.standard_normal(n, np.float32) for n in sizes] for _ in range(2)]


def tapeflow_step(name: str, eager: bool, parameters: list, gradients: list):
    import tapeflow as tf

    variables = [tf.Variable(a) for a in parameters]
    gradients = [tf.constant(a) for a in gradients]
    slots = [[tf.Variable(tf.zeros_like(v)) for _ in range(SLOTS[name])] for v in variables]

    def step(gradients):
        for w, g, s in zip(variables, gradients, slots):
            new, new_slots = update(name, tf, w, g, s)
            w.assign(new)
            for slot, value in zip(s, new_slots):
                slot.assign(value)

    run = step if eager else tf.function(step)
    return lambda: run(gradients), lambda: float(variables[0][0])


def torch_step(name: str, eager: bool, parameters: list, gradients: list):
    import torch

    variables = [torch.tensor(a) for a in parameters]
    gradients = [torch.tensor(a) for a in gradients]
    slots = [[torch.zeros_like(v) for _ in range(SLOTS[name])] for v in variables]

    def step(variables, gradients, slots):
        for w, g, s in zip(variables, gradients, slots):
            new, new_slots = update(name, torch, w, g, s)
            w.copy_(new)
            for slot, value in zip(s, new_slots):
                slot.copy_(value)

    run = step if eager else torch.compile(step)
    return lambda: run(variables, gradients, slots), lambda: float(variables[0][0])


def torch_fused_step(name: str, eager: bool, parameters: list, gradients: list):
    import torch

    makers = {
        "sgd": lambda p: torch.optim.SGD(p, LR, fused=True),
        "momentum": lambda p: torch.optim.SGD(p, LR, B1, fused=True),
        "adam": lambda p: torch.optim.Adam(p, LR, (B1, B2), fused=True),
        "adamw": lambda p: torch.optim.AdamW(p, LR, (B1, B2), fused=True),
        "amsgrad": lambda p: torch.optim.Adam(p, LR, (B1, B2), amsgrad=True, fused=True),
    }
    if name not in makers:
        return None, None
    variables = [torch.tensor(a, requires_grad=True) for a in parameters]
    for v, g in zip(variables, gradients):
        v.grad = torch.tensor(g)
    optimizer = makers[name](variables)
    return optimizer.step, lambda: float(variables[0][0])


def jax_step(name: str, eager: bool, parameters: list, gradients: list):
    import jax
    import jax.numpy as jnp

    variables = [jnp.array(a) for a in parameters]
    gradients = [jnp.array(a) for a in gradients]
    state = [variables, [[jnp.zeros_like(v) for _ in range(SLOTS[name])] for v in variables]]

    def step(variables, slots, gradients):
        new = [update(name, jnp, w, g, s) for w, g, s in zip(variables, gradients, slots)]
        return [n[0] for n in new], [n[1] for n in new]

    run = jax.jit(step, donate_argnums=(0, 1))

    def call():
        state[:] = run(*state, gradients)
        jax.block_until_ready(state)

    return call, lambda: float(state[0][0][0])


def copy_step(name: str, eager: bool, parameters: list, gradients: list):
    """Copies half of the update's bytes, so that as many are read and written in all."""
    import numpy as np

    moved = 3 + 2 * SLOTS[name]
    size = sum(a.size for a in parameters) * moved // 2
    source, target = np.ones(size, np.float32), np.ones(size, np.float32)
    halves = [(source[: size // 2], target[: size // 2]), (source[size // 2 :], target[size // 2 :])]

    def step():
        other = threading.Thread(target=lambda: np.copyto(halves[1][1], halves[1][0]))
        other.start()
        np.copyto(halves[0][1], halves[0][0])
        other.join()

    return step, lambda: 0.0


STEPS = {"copy": copy_step, "tapeflow": tapeflow_step, "torch": torch_step, "fused": torch_fused_step, "jax": jax_step}
LABELS = {"tapeflow": "Tapeflow", "torch": "PyTorch", "fused": "PyTorch fused", "jax": "jax.jit"}


def work(which: str, options):
    """A process of one library: for each line of input, the seconds of one step, best of a few."""
    step, value = STEPS[which](options.only, options.eager, *arrays(int(float(options.parameters)), options.variables))
    if step is None:
        print("null", flush=True)
        return
    for _ in range(3):
        step()
    print(json.dumps(value()), flush=True)
    for _ in sys.stdin:
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            step()
            best = min(best, time.perf_counter() - start)
        print(best, flush=True)


def measure(name: str, options) -> dict:
    """The seconds of a step by implementation, taken in turns."""
    python = frameworks()
    there = [w for w in STEPS if {"copy": "tapeflow", "fused": "torch"}.get(w, w) in python]
    workers, values = {}, {}
    for which in there:
        interpreter = python[{"copy": "tapeflow", "fused": "torch"}.get(which, which)]
        command = [interpreter, __file__, "--worker", which, "--only", name, "--parameters", options.parameters]
        command += ["--variables", str(options.variables)] + (["--eager"] if options.eager else [])
        pipe = subprocess.PIPE
        worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ | QUIET)
        value = json.loads(worker.stdout.readline())
        if value is not None:
            workers[which], values[which] = worker, value
    formulas = [v for which, v in values.items() if which not in ("copy", "fused")]
    if max(formulas) - min(formulas) > 1e-5:
        raise SystemExit(f"{name}: the parameters differ: {values}")
    best = dict.fromkeys(workers, float("inf"))
    for _ in range(options.rounds):
        for which, worker in workers.items():
            worker.stdin.write("\n")
            worker.stdin.flush()
            best[which] = min(best[which], float(worker.stdout.readline()))
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parameters", default="50e6")
    parser.add_argument("--variables", type=int, default=1)
    parser.add_argument("--only", default=",".join(SLOTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--worker", default="")
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options)
        return
    rows = []
    for name in options.only.split(","):
        best = measure(name, options)
        cells = [f"{best[w] / best['copy']:.2f}" if w in best else "-" for w in LABELS]
        rows.append([name, f"{best['copy'] * 1e3:.1f} ms", *cells])
    mode = "eager" if options.eager else "compiled"
    print_table(
        f"{float(options.parameters) / 1e6:g} million parameters in {options.variables} variables, {mode}: "
        "the copy of as many bytes, and times / that.",
        ["optimizer", "copy", *LABELS.values()],
        rows,
    )


if __name__ == "__main__":
    main()
