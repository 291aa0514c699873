"""Convolutions, forward and backward, by shape: the input, the filter's gradient and the input's. Best of many.

python benchmarks/conv.py [--rounds 3]

The frameworks take turns, each round in a fresh process, and the fastest round counts. PyTorch is shown in its own
layout (channels first) and with channels last.
"""

import importlib
import json
import sys

import numpy as np
from compare import best_seconds, frameworks, microseconds, print_table, run

# batch, height, width, channels in, channels out, filter size
SHAPES = {
    "32x28x28x32 -> 64, 3x3": (32, 28, 28, 32, 64, 3),
    "8x56x56x64 -> 64, 3x3": (8, 56, 56, 64, 64, 3),
    "8x14x14x256 -> 256, 1x1": (8, 14, 14, 256, 256, 1),
    "32x28x28x1 -> 32, 3x3": (32, 28, 28, 1, 32, 3),
}


def arrays(shape):
    n, h, w, c, k, f = shape
    random = np.random.default_rng(0)
    return random.standard_normal((n, h, w, c)).astype("f4"), random.standard_normal((f, f, c, k)).astype("f4")


def tensorflow_times(tf):
    for name, shape in SHAPES.items():
        x, filters = map(tf.constant, arrays(shape))

        def both(x=x, filters=filters):
            with tf.GradientTape() as tape:
                tape.watch([x, filters])
                y = tf.nn.conv2d(x, filters, 1, "SAME")
            return tape.gradient(y, [x, filters])[0].numpy()

        forward = best_seconds(lambda x=x, filters=filters: tf.nn.conv2d(x, filters, 1, "SAME").numpy())
        yield name, forward, best_seconds(both)


def torch_times(torch, channels_last):
    torch.set_num_threads(2)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    for name, shape in SHAPES.items():
        x, filters = map(torch.from_numpy, arrays(shape))
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=layout).requires_grad_(True)
        filters = filters.permute(3, 2, 0, 1).contiguous(memory_format=layout).requires_grad_(True)

        def forward(x=x, filters=filters):
            return torch.nn.functional.conv2d(x, filters, padding=filters.shape[-1] // 2)

        def both(x=x, filters=filters, forward=forward):
            y = forward()
            return torch.autograd.grad(y, [x, filters], torch.ones_like(y))

        with torch.no_grad():
            alone = best_seconds(forward)
        yield name, alone, best_seconds(both)


def main():
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
    names = [n for n in frameworks() if n != "jax"]
    variants = [(n, n) for n in names if n != "torch"]
    if "torch" in names:
        variants += [("torch", "torch"), ("torch channels last", "torch")]
    best = {}
    for _ in range(rounds):
        for label, framework in variants:
            for name, *times in run(framework, __file__, "--worker", label):
                old = best.get((label, name), [float("inf")] * 2)
                best[label, name] = [min(pair) for pair in zip(old, times)]
    labels = [label for label, _ in variants]
    for column, title in enumerate(("Forward.", "Forward and both gradients.")):
        rows = [[name] + [microseconds(best[label, name][column]) for label in labels] for name in SHAPES]
        print_table(title, ["shape", *labels], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        label = sys.argv[2]
        if label.startswith("torch"):
            times = torch_times(importlib.import_module("torch"), label.endswith("last"))
        else:
            times = tensorflow_times(importlib.import_module(label))
        print(json.dumps(list(times)))
    else:
        main()
