"""Peak memory of training, each framework in its own process: of the whole process, and beyond what the import took.

python benchmarks/peak_memory.py [steps]      the workloads of the step times
python benchmarks/peak_memory.py --recompute  deep models, with and without recomputing: the table of docs/memory.md
python benchmarks/peak_memory.py --budget     the same models in tf.function(memory_budget=): the second table there
python benchmarks/peak_memory.py --workloads [NAME ...]  the training steps of benchmarks/workloads, beyond the import
"""

import importlib
import json
import sys
import time
from pathlib import Path

import checkpoint_models
from compare import LABELS, best_seconds, build_step, frameworks, print_table, run

sys.path.append(str(Path(__file__).resolve().parent / "workloads"))

WORK = ["mlp_mnist", "cnn"]
BUDGETS = {"mlp": [64, 48], "cnn": [64, 57]}  # MiB


def resident(field: str) -> float:
    """Megabytes in `field` of the kernel's account: VmRSS is now, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def train(framework: str, work: str, steps: int, recompute: bool | None) -> dict:
    library = importlib.import_module(framework)
    if recompute is not None and framework == "torch":
        checkpoint_models.import_checkpoint()
    imported = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back to VmRSS: an import has a peak of its own
    if recompute is None:
        step = build_step(framework, work, compiled=framework == "jax")
    else:
        step = checkpoint_models.build(framework, library, work, recompute)
    for _ in range(steps):
        step()
    return {"imported": imported, "peak": resident("VmHWM")}


def train_workload(implementation: str, name: str, steps: int) -> float:
    """The peak beyond import and data of some steps of a workload, in megabytes."""
    from values import VALUES
    from worker import load

    library, mode = implementation.split(":")
    build, values = load(library).build, VALUES[name]()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    step = build(name, values, mode == "compiled")
    for _ in range(steps):
        step()
    return resident("VmHWM") - before


def compare_workloads(names: list, steps: int = 4):
    from values import VALUES

    peers = [name for name in ("torch:eager", "jax:compiled") if name.split(":")[0] in frameworks()]
    implementations = ["tapeflow:eager", "tapeflow:compiled", *peers]
    rows = []
    for work in names or VALUES:
        peaks = [run(name.split(":")[0], __file__, "--workload", name, work, steps) for name in implementations]
        rows.append(
            [work, *(f"{peak:,.0f} MB" for peak in peaks), f"{min(peaks[2:]) / peaks[1]:.2f}" if peers else "-"]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    headers = ["workload", *(LABELS[name] for name in implementations), "best peer / compiled"]
    print_table(f"Peak memory of {steps} steps, beyond the import and the data.", headers, rows)


def train_within(model: str, megabytes: int) -> dict:
    """The peak beyond the import and the processor time of a compiled step; 0: without a budget."""
    import tapeflow as tf

    before = resident("VmRSS")
    step = tf.function(
        checkpoint_models.build("tapeflow", tf, model, False), memory_budget=megabytes << 20 if megabytes else None
    )
    for _ in range(3):
        step()
    peak = resident("VmHWM") - before
    return {"peak": peak, "seconds": best_seconds(step, 2.0, clock=time.process_time)}


def compare_budgets():
    rows = []
    for model, budgets in BUDGETS.items():
        found = {budget: run("tapeflow", __file__, "--within", model, budget) for budget in (0, *budgets)}
        for budget, result in found.items():
            relative = result["seconds"] / found[0]["seconds"]
            rows.append([model, f"{budget} MiB" if budget else "-", f"{result['peak']:,.0f} MB", f"{relative:.2f}"])
    print_table("Compiled steps within a memory budget.", ["model", "budget", "peak beyond import", "time"], rows)


def main():
    steps = sys.argv[1] if sys.argv[1:] else "200"
    for work in WORK:
        rows = []
        for name in frameworks():
            result = run(name, __file__, "--worker", name, work, steps)
            peak, beyond = result["peak"], result["peak"] - result["imported"]
            rows.append([name, f"{peak:,.0f} MB", f"{beyond:,.0f} MB"])
        print_table(f"Peak memory of {steps} steps of {work}.", ["framework", "process", "beyond import"], rows)


def compare_recomputing(steps: int = 3):
    rows = []
    for model in checkpoint_models.MODELS:
        for recompute in (False, True):
            row = [model, "recomputed" if recompute else "kept"]
            for name in ("tapeflow", "tensorflow", "torch"):
                if name in frameworks():
                    result = run(name, __file__, "--worker", name, model, steps, int(recompute))
                    row.append(f"{result['peak'] - result['imported']:,.0f} MB")
            rows.append(row)
    headers = ["model", "activations", "Tapeflow", "TensorFlow", "PyTorch"]
    print_table(f"Peak memory of {steps} steps, beyond the import.", headers[: len(rows[0])], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        recompute = bool(int(sys.argv[5])) if sys.argv[5:] else None
        print(json.dumps(train(sys.argv[2], sys.argv[3], int(sys.argv[4]), recompute)))
    elif sys.argv[1:2] == ["--within"]:
        print(json.dumps(train_within(sys.argv[2], int(sys.argv[3]))))
    elif sys.argv[1:2] == ["--budget"]:
        compare_budgets()
    elif sys.argv[1:2] == ["--workload"]:
        print(json.dumps(train_workload(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    elif sys.argv[1:2] == ["--workloads"]:
        compare_workloads(sys.argv[2:])
    elif sys.argv[1:2] == ["--recompute"]:
        compare_recomputing()
    else:
        main()
