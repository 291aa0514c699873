"""How many milliseconds an epoch over a dataset takes: `python benchmarks/dataset.py [tapeflow|tensorflow]`."""

import importlib
import sys
import time

import numpy as np

tf = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "tapeflow")
ROWS, BATCH = 60_000, 32
Dataset = tf.data.Dataset

images = np.random.default_rng(0).random((ROWS, 784), dtype=np.float32)
features = images[:, :8].copy()
labels = np.arange(ROWS) % 10


@tf.function
def total(dataset):
    found = tf.constant(0.0)
    for x, _ in dataset:
        found += tf.reduce_sum(x)
    return found


def epoch(dataset):
    for _ in dataset:
        pass


def best(run, *args):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        run(*args)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


small, large = (Dataset.from_tensor_slices((x, labels)) for x in (features, images))
for name, run, dataset in (
    ("batch, rows of 8", epoch, small.batch(BATCH)),
    ("shuffle, batch, rows of 8", epoch, small.shuffle(10_000).batch(BATCH)),
    ("shuffle, batch, rows of 784", epoch, large.shuffle(10_000).batch(BATCH)),
    ("shuffle, batch, map, rows of 8", epoch, small.shuffle(10_000).batch(BATCH).map(lambda x, y: (x * 2.0, y))),
    ("map, batch, 10,000 rows of 8", epoch, small.take(10_000).map(lambda x, y: (x * 2.0, y)).batch(BATCH)),
    ("one by one, 10,000 rows of 8", epoch, small.take(10_000)),
    ("shuffle, batch, in a tf.function", total, small.shuffle(10_000).batch(BATCH)),
):
    print(f"{name:36} {best(run, dataset):10.1f}")
