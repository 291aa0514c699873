"""Training on two processes with one thread each, beside one process with one thread; and the cost of collectives.

    python benchmarks/distribute.py                 # examples per second, Tapeflow, PyTorch DDP (gloo), TensorFlow
    python benchmarks/distribute.py --all-reduce    # time of an all-reduce, beside mpi4py alone
    python benchmarks/distribute.py --one-worker    # what a strategy with one worker costs

Strong scaling: the same global batch of 128 for one process and for two. Weak scaling: 128 examples for each process.
The library `tapeflow/silent` is two processes that compute as much and do not communicate: the bound of the others.

The same models and global batches everywhere; the libraries take turns. `make peers` installs the others.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".peers" / "bin" / "python"
BATCH = 128
MODELS = ("mlp_mnist", "cnn", "transformer")
SIZES = (1 << 10, 1 << 20, 25 << 20)


# ---- in a worker


def tensorflow_like(model: str) -> list[float]:
    """Examples per second of TensorFlow or Tapeflow, whichever `tensorflow` is, with strong and with weak scaling."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    options, wire = (), os.environ.get("BENCHMARK_WIRE")
    if wire and wire != "silent":
        options = (None, tf.distribute.experimental.CommunicationOptions(wire_dtype=wire))
    strategy = tf.distribute.MultiWorkerMirroredStrategy(*options)
    replicas = strategy.num_replicas_in_sync

    def barrier():
        strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)

    rates = []
    for batch in (BATCH, BATCH * replicas):
        if wire == "silent":
            step = training_step(model, tf.distribute.get_strategy(), batch // replicas)
        else:
            step = training_step(model, strategy, batch)
        rates.append(measured(step, batch, barrier))
    return rates


def training_step(model: str, strategy, batch: int):
    """A compiled step on a global batch of random rows."""
    import numpy as np
    import tensorflow as tf

    here = batch // strategy.num_replicas_in_sync
    shapes = {"mlp_mnist": [784], "cnn": [28, 28, 1], "transformer": [32, 64]}
    rows = np.random.default_rng(0)
    x = tf.constant(rows.normal(size=[here, *shapes[model]]).astype("float32"))
    labels = tf.constant(rows.integers(0, 10, size=[here]))
    with strategy.scope():
        tf.random.set_seed(0)
        sizes = {
            "mlp_mnist": [[784, 512], [512, 512], [512, 10]],
            "cnn": [[3, 3, 1, 16], [3, 3, 16, 32], [7 * 7 * 32, 10]],
            "transformer": [[64, 192], [64, 64], [64, 256], [256, 64], [64, 10]],
        }[model]
        weights = [tf.Variable(tf.random.normal(size, stddev=0.05)) for size in sizes]

    def logits(x):
        w = weights
        if model == "mlp_mnist":
            return tf.nn.relu(tf.nn.relu(x @ w[0]) @ w[1]) @ w[2]
        if model == "cnn":
            y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w[0], 1, "SAME")), 2, 2, "SAME")
            y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(y, w[1], 1, "SAME")), 2, 2, "SAME")
            return tf.reshape(y, [-1, 7 * 7 * 32]) @ w[2]
        q, k, v = tf.split(tf.tensordot(x, w[0], 1), 3, axis=-1)
        y = x + tf.tensordot(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 8.0) @ v, w[1], 1)
        y = y + tf.tensordot(tf.nn.relu(tf.tensordot(y, w[2], 1)), w[3], 1)
        return tf.reduce_mean(y, axis=1) @ w[4]

    def replica(x, labels):
        with tf.GradientTape() as tape:
            errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits(x))
            loss = tf.reduce_sum(errors) / batch
        gradients = tape.gradient(loss, weights)
        return tf.distribute.get_replica_context().all_reduce("SUM", gradients)

    @tf.function
    def step():
        for weight, gradient in zip(weights, strategy.run(replica, args=(x, labels))):
            weight.assign_sub(0.01 * gradient)

    return step


def torch_ddp(model: str) -> list[float]:
    """Examples per second of PyTorch with DistributedDataParallel, with strong and with weak scaling."""
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    size = int(os.environ["WORLD_SIZE"])
    if size > 1:
        distributed.init_process_group("gloo")
    torch.manual_seed(0)

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)
            self.up, self.down = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False)
            self.head = nn.Linear(64, 10, bias=False)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            y = x + self.out(torch.softmax(q @ k.transpose(1, 2) / 8.0, -1) @ v)
            y = y + self.down(torch.relu(self.up(y)))
            return self.head(y.mean(1))

    def linear(a, b):
        return nn.Linear(a, b, bias=False)

    net = {
        "mlp_mnist": lambda: nn.Sequential(linear(784, 512), nn.ReLU(), linear(512, 512), nn.ReLU(), linear(512, 10)),
        "cnn": lambda: nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), linear(7 * 7 * 32, 10),
        ),
        "transformer": Transformer,
    }[model]()  # fmt: skip
    net = nn.parallel.DistributedDataParallel(net) if size > 1 else net
    shape = {"mlp_mnist": [784], "cnn": [1, 28, 28], "transformer": [32, 64]}[model]
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def training_step(batch):
        x, labels = torch.randn([batch // size, *shape]), torch.randint(0, 10, [batch // size])

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()

        return step

    return [measured(training_step(batch), batch) for batch in (BATCH, BATCH * size)]


def measured(step, batch: int, barrier=lambda: None) -> float:
    """Examples per second, the best of several runs; all workers begin together and make the same number of steps."""
    count, best = int(os.environ["BENCHMARK_STEPS"]), 0.0
    for _ in range(5):
        step()
    for _ in range(5):
        barrier()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        best = max(best, batch * count / (time.perf_counter() - begin))
    return best


def one_worker_cost(model: str) -> float:
    """The time of a step with a strategy of one worker, by the time without a strategy, in turns."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategies = (tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy())
    steps = [training_step(model, strategy, BATCH) for strategy in strategies]
    best = [1e9, 1e9]
    for _ in range(40):
        for number, step in enumerate(steps):
            step()
            begin = time.perf_counter()
            for _ in range(10):
                step()
            best[number] = min(best[number], time.perf_counter() - begin)
    return best[1] / best[0]


def all_reduce_times() -> dict[int, tuple[float, float]]:
    """Microseconds of an all-reduce by size: Tapeflow's and mpi4py's."""
    import numpy as np
    import tensorflow as tf
    from mpi4py import MPI

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    times = {}
    for size in SIZES:
        array = np.ones(size // 4, np.float32)
        tensor, into = tf.constant(array), np.empty_like(array)
        count = max(5, min(2000, (64 << 20) // size))

        def ours(tensor=tensor, count=count):
            replica = tf.distribute.get_replica_context()
            for _ in range(count):
                replica.all_reduce("SUM", tensor)

        def raw(array=array, into=into, count=count):
            for _ in range(count):
                MPI.COMM_WORLD.Allreduce(array, into)

        best = {}
        for _ in range(9):
            for name, run in (("ours", lambda run=ours: strategy.run(run)), ("raw", raw)):
                MPI.COMM_WORLD.Barrier()
                begin = time.perf_counter()
                run()
                best[name] = min(best.get(name, 1e9), (time.perf_counter() - begin) / count * 1e6)
        times[size] = (best["ours"], best["raw"])
    return times


# ---- the one that starts them


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_library(library: str, model: str, workers: int, steps: int) -> list[float]:
    """Examples per second of all workers together, as the slowest one says, with strong and with weak scaling."""
    me = str(Path(__file__).resolve())
    base = {**os.environ, "BENCHMARK_STEPS": str(steps), "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    arguments = ["--worker", library, "--model", model]
    if library.startswith("tapeflow"):
        base |= {"PYTHONPATH": str(ROOT), "BENCHMARK_WIRE": library.partition("/")[2]}
        command = [sys.executable, "-m", "tapeflow", "run", "--workers", str(workers), me, *arguments]
        done = subprocess.run(command, env=base, capture_output=True, text=True, check=True)
        outputs = done.stdout.splitlines()
    else:
        ports, processes = [free_port() for _ in range(workers)], []
        for rank in range(workers):
            cluster = {"worker": [f"localhost:{port}" for port in ports]}
            config = {"cluster": cluster, "task": {"type": "worker", "index": rank}}
            env = base | {"RANK": str(rank), "WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1"}
            env |= {"MASTER_PORT": str(ports[0])} | ({"TF_CONFIG": json.dumps(config)} if workers > 1 else {})
            command = [str(PEERS), me, *arguments]
            processes.append(
                subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
        outputs = [line for process in processes for line in process.communicate()[0].splitlines()]
    rates = [json.loads(line[line.index("{") :])["rates"] for line in outputs if "{" in line]
    return [min(rank[number] for rank in rates) for number in range(2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all-reduce", action="store_true")
    parser.add_argument("--one-worker", action="store_true")
    parser.add_argument("--libraries", default="tapeflow,tapeflow/bfloat16,tapeflow/silent,torch,tensorflow")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--worker")
    parser.add_argument("--model")
    options = parser.parse_args()
    if options.worker == "all-reduce":
        print(json.dumps(all_reduce_times()), flush=True)
        return
    if options.worker:
        run = torch_ddp if options.worker == "torch" else tensorflow_like
        print(json.dumps({"rates": run(options.model)}), flush=True)
        return
    if options.one_worker:
        sys.path.insert(0, str(ROOT))
        import tapeflow

        sys.modules["tensorflow"] = tapeflow
        for model in options.models.split(","):
            print(f"{model}: {one_worker_cost(model):.3f} times the time without a strategy", flush=True)
        return
    if options.all_reduce:
        me = str(Path(__file__).resolve())
        command = [sys.executable, "-m", "tapeflow", "run", "--workers", "2", "--output", "rank0", me]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*command, "--worker", "all-reduce"], capture_output=True, text=True, check=True, env=env)
        print("| bytes | all_reduce | mpi4py | ratio |\n|---:|---:|---:|---:|")
        for size, (ours, raw) in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"| {int(size):,} | {ours:,.1f} us | {raw:,.1f} us | {ours / raw:.2f} |")
        return
    print("Examples per second, best of several runs in turns; one thread in each process.\n")
    print("| model | library | 1 process | 2 processes | strong scaling | 2 processes, batch x 2 | weak scaling |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for model in options.models.split(","):
        best: dict[tuple[str, int], list[float]] = {}
        for _ in range(options.rounds):
            for library in options.libraries.split(","):
                for workers in (1, 2):
                    rates = run_library(library, model, workers, options.steps)
                    best[library, workers] = [max(pair) for pair in zip(rates, best.get((library, workers), rates))]
        for library in options.libraries.split(","):
            one, strong, weak = max(best[library, 1]), *best[library, 2]
            print(
                f"| {model} | {library} | {one:,.0f} | {strong:,.0f} | {strong / one:.2f} "
                f"| {weak:,.0f} | {weak / one:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
