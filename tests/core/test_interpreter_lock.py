"""Large kernels and plans run without the interpreter lock, and nothing breaks."""

import subprocess
import sys
import threading
import time

import numpy as np

import tapeflow as tf


def ticks_during(work) -> int:
    """How often another thread of the program gets its turn while `work` runs."""
    ticks, running = 0, True

    def count():
        nonlocal ticks
        while running:
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    time.sleep(0.01)
    before = ticks
    work()
    found = ticks - before
    running = False
    thread.join()
    return found


def test_another_thread_runs_during_a_large_kernel():
    x = tf.constant(np.random.rand(600, 600))
    x.numpy()
    assert ticks_during(lambda: [tf.linalg.svd(x)[0].numpy() for _ in range(3)]) >= 3


def test_another_thread_runs_during_a_plan():
    @tf.function
    def f(x):
        for _ in range(10):
            x = tf.tanh(tf.matmul(x, x)) * 0.01
        return x

    x = tf.constant(np.random.rand(700, 700).astype(np.float32))
    f(x)
    assert ticks_during(lambda: [f(x).numpy() for _ in range(10)]) >= 3


def test_another_thread_runs_during_a_loop():
    @tf.function
    def f(n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5 + 1.0), [0, tf.constant(1.0)])[1]

    f(10)
    f(tf.constant(10))
    assert ticks_during(lambda: f(tf.constant(4_000_000))) >= 3


def in_threads(count, work):
    errors = []

    def run(i):
        try:
            work(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_share_tensors_of_large_kernels():
    """The counts of holders of shared tensors stay right: values and memory are as before."""
    x = tf.constant(np.random.rand(300, 300))
    expected = (x @ x).numpy()

    def work(_):
        for _ in range(20):
            y = x @ x
            views = [tf.reshape(x, [-1]) for _ in range(20)]
            np.testing.assert_allclose(y.numpy(), expected)
            del views

    in_threads(4, work)
    np.testing.assert_allclose((x @ x).numpy(), expected)


def test_threads_run_one_function():
    w = tf.Variable(np.random.rand(256, 256).astype(np.float32))

    @tf.function
    def f(x):
        y = x
        for _ in range(6):
            y = tf.matmul(y, w) * 0.01
        return y

    x = tf.ones([256, 256])
    expected = f(x).numpy()
    in_threads(4, lambda i: [np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-5) for _ in range(10)])


def test_a_variable_is_assigned_while_a_plan_updates_it():
    w = tf.Variable(tf.zeros([512, 512]))

    @tf.function
    def update(x):
        y = x
        for _ in range(6):
            y = tf.matmul(y, y) * 0.001
        w.assign_add(y * 0.0 + 1.0)
        return tf.reduce_sum(y)

    x = tf.ones([512, 512]) * 0.01
    update(x)

    def work(i):
        for _ in range(20):
            if i == 0:
                update(x)
            elif i == 1:
                w.assign(tf.zeros([512, 512]))
            else:
                assert np.isfinite(w.numpy()).all()

    in_threads(3, work)
    values = w.numpy()
    assert (values == values[0, 0]).all()


def test_a_daemon_thread_in_a_kernel_does_not_disturb_the_exit():
    program = """
import threading, time, numpy as np, tapeflow as tf
x = tf.constant(np.random.rand(800, 800))
def work():
    while True:
        tf.linalg.svd(x)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


def test_forked_children_draw_numbers_of_their_own():
    program = """
import os, sys, tapeflow as tf
f = tf.function(lambda: tf.random.uniform([2]))
tf.random.uniform([1]); f()
sys.stdout.flush()
for _ in range(2):
    if os.fork() == 0:
        print(*tf.random.uniform([2]).numpy(), *f().numpy(), flush=True)
        os._exit(0)
    os.wait()
print(*tf.random.uniform([2]).numpy(), *f().numpy())
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    numbers = [number for line in result.stdout.split("\n") for number in line.split()]
    assert len(numbers) == len(set(numbers)) == 12, result.stderr
