"""What one operation costs, by size, with and without a tape that records it. Time per call, best of many.

python benchmarks/op_cost.py
"""

import importlib
import json
import sys

from compare import best_seconds, frameworks, microseconds, print_table, run

SIZES = {"scalar": (), "100": (100,), "10,000": (10_000,), "1,000,000": (1_000_000,)}


def recorded_calls(size: int) -> int:
    """How many results a tape may hold at once: at most 64 MB of float32."""
    return max(1, min(1000, 16_000_000 // size))


def tensorflow_costs(tf):
    for size, shape in SIZES.items():
        x = tf.ones(shape)
        for name, op in {"multiply": lambda x=x: x * x, "tanh": lambda x=x: tf.tanh(x)}.items():
            calls = recorded_calls(int(tf.size(x)))

            def recorded(op=op, x=x, calls=calls):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    return best_seconds(op, seconds=0, calls=calls)

            yield name, size, best_seconds(op), min(recorded() for _ in range(10))


def torch_costs(torch):
    torch.set_num_threads(2)
    for size, shape in SIZES.items():
        plain, watched = torch.ones(shape), torch.ones(shape, requires_grad=True)
        for name, op in {"multiply": lambda x: x * x, "tanh": torch.tanh}.items():
            yield name, size, best_seconds(lambda: op(plain)), best_seconds(lambda: op(watched))  # noqa: B023


def jax_costs(jax):
    for size, shape in SIZES.items():
        x = jax.numpy.ones(shape)
        for name, op in {"multiply": lambda x: x * x, "tanh": jax.numpy.tanh}.items():
            yield name, size, best_seconds(lambda: op(x).block_until_ready()), None  # noqa: B023


def main():
    measured = {name: run(name, __file__, "--worker", name) for name in frameworks()}
    for title, column in (("Without a tape.", 2), ("With a tape that records (JAX has none).", 3)):
        names = [name for name, lines in measured.items() if lines[0][column] is not None]
        rows = []
        for lines in zip(*(measured[name] for name in names)):
            rows.append([f"{lines[0][0]}, {lines[0][1]}"] + [microseconds(line[column]) for line in lines])
        print_table(title, ["operation, elements", *names], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        costs = {"torch": torch_costs, "jax": jax_costs}.get(sys.argv[2], tensorflow_costs)
        print(json.dumps(list(costs(importlib.import_module(sys.argv[2])))))
    else:
        main()
