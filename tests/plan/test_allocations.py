"""A warm call allocates its outputs and nothing else: it does not call the allocator of the system."""

import os
import shutil
import subprocess
import sys

import pytest

COUNTER = """
#include <dlfcn.h>
#include <stdlib.h>
static long calls;
static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }
void* malloc(size_t size) {
  static void* (*real)(size_t);
  if (!real) real = (void* (*)(size_t))next("malloc");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return real(size);
}
void* realloc(void* block, size_t size) {
  static void* (*real)(void*, size_t);
  if (!real) real = (void* (*)(void*, size_t))next("realloc");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return real(block, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  static void* (*real)(size_t, size_t);
  if (!real) real = (void* (*)(size_t, size_t))next("aligned_alloc");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return real(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  static int (*real)(void**, size_t, size_t);
  if (!real) real = (int (*)(void**, size_t, size_t))next("posix_memalign");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return real(block, alignment, size);
}
long allocations(void) { return calls; }
"""

PROGRAMS = """
import ctypes

import tapeflow as tf

allocations = ctypes.CDLL(None).allocations
allocations.restype = ctypes.c_long
tf.config.threading.set_intra_op_parallelism_threads(1)  # a thread that helps late would get its memory late
x = tf.Variable(tf.random.normal([16, 8]))
w = tf.Variable(tf.random.normal([8, 8]))
v = tf.Variable(tf.random.normal([8]))
image = tf.Variable(tf.random.normal([2, 8, 8, 3]))
count = tf.Variable(0.0)


def over_rows():
    s = tf.zeros([8])
    for i in tf.range(4):
        for _ in tf.range(3):
            s = tf.tanh(s + x[i] * v)
    return s


def array():
    rows = tf.TensorArray(tf.float32, 4)
    for i in tf.range(4):
        rows = rows.write(i, x[i] * v)
    return rows.stack()


def leaves_early():
    s, i = tf.zeros([8]), 0
    while i < 16:
        s += x[i]
        if tf.reduce_sum(s) > 3.0:
            break
        i += 1
    return s


def updates():
    count.assign_add(1.0)
    return v * count


@tf.custom_gradient
def trebled(a):
    return a * 2.0, lambda dy: dy * 3.0


inner = tf.function(lambda a: tf.tanh(a @ w))
FUNCTIONS = {
    "straight": lambda: tf.nn.softmax(x @ w + v),
    "convolution": lambda: tf.nn.conv2d(image, tf.reshape(tf.tile(v, [9])[:54], [3, 3, 3, 2]), 1, "SAME"),
    "branch": lambda: tf.cond(tf.reduce_sum(x) > 0, lambda: x * v, lambda: tf.nn.relu(x) @ w),
    "switch": lambda: tf.switch_case(tf.constant(1), [lambda: x, lambda: x @ w, lambda: x * 3.0]),
    "loops": over_rows,
    "array": array,
    "leaves_early": leaves_early,
    "map_fn": lambda: tf.map_fn(lambda row: tf.tanh(row) * v, x),
    "scan": lambda: tf.scan(lambda a, row: tf.tanh(a + row), x, tf.zeros([8])),
    "calls": lambda: inner(inner(x)),
    "updates": updates,
    "custom_gradient": lambda: trebled(x),
    "sort": lambda: tf.sort(x),
    "top_k": lambda: tf.math.top_k(x, 3)[0],
    "solve": lambda: tf.linalg.solve(tf.matmul(w, w, transpose_a=True) + 9.0 * tf.eye(8), w),
    "qr": lambda: tf.linalg.qr(x)[0],
    "segments": lambda: tf.math.segment_sum(x, tf.range(16) // 4),
    "shape_of_values": lambda: tf.boolean_mask(x, x[:, 0] > 0),
    "fourier": lambda: tf.abs(tf.signal.rfft(x)),
    "random": lambda: tf.nn.dropout(x, 0.5),
}


def with_gradient(f):
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f() ** 2)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [x, w, v]) if g is not None]

    return step


def twice():
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(over_rows())
        norm = tf.reduce_sum(tape.gradient(loss, x) ** 2)
    return outer.gradient(norm, v)


def forward():
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = over_rows()
    return accumulator.jvp(y)


STEPS = {name: tf.function(with_gradient(f)) for name, f in FUNCTIONS.items()}
STEPS |= {"second_order": tf.function(twice), "forward_mode": tf.function(forward)}
STEPS["tape_outside"] = with_gradient(tf.function(FUNCTIONS["branch"]))
unknown = tf.function(lambda a: tf.reduce_sum(tf.tanh(a), 0), input_signature=[tf.TensorSpec([None, None])])
given = tf.constant([[1.0, 2.0]])
STEPS["unknown_shape"] = lambda: unknown(given)


@tf.function(input_signature=[tf.TensorSpec([None, 8])])
def branch_of_rows(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cond(tf.reduce_sum(rows) > 0, lambda: rows * v, lambda: tf.nn.relu(rows) @ w) ** 2)
    return tape.gradient(loss, v)


sizes = [tf.ones([n, 8]) for n in range(2, 14)]
STEPS["sizes"] = lambda: [branch_of_rows(rows) for rows in sizes]

for name, step in STEPS.items():
    for _ in range(10):
        step()
    least = None
    for _ in range(5):
        before = allocations()
        for _ in range(4):
            step()
        made = allocations() - before
        least = made if least is None else min(least, made)
    print(name, least)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls of the allocator are counted with LD_PRELOAD")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the allocator is another one already")
def test_warm_calls_allocate_only_their_outputs(tmp_path):
    (tmp_path / "counter.c").write_text("#define _GNU_SOURCE\n" + COUNTER)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    library = tmp_path / "counter.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "counter.c", "-ldl"], check=True)
    (tmp_path / "programs.py").write_text(PROGRAMS)
    environment = dict(os.environ, LD_PRELOAD=str(library))
    command = [sys.executable, tmp_path / "programs.py"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    made = dict(line.split() for line in run.stdout.splitlines())
    assert len(made) == 25
    assert {name: count for name, count in made.items() if count != "0"} == {}
