"""The thread pool and the allocator, seen from Python."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core


@pytest.fixture
def threads():
    yield tf.config.threading.set_intra_op_parallelism_threads
    tf.config.threading.set_intra_op_parallelism_threads(0)


def results():
    x = tf.constant(np.linspace(-3, 3, 300_000, dtype=np.float32).reshape(500, 600))
    w = tf.constant(np.cos(np.arange(600 * 70)).reshape(600, 70).astype(np.float32))
    return [
        tf.tanh(x),
        x + x[0],
        tf.reduce_sum(x, 0),
        tf.reduce_sum(x),
        tf.matmul(x, w),
        tf.transpose(x),
        tf.nn.softmax(x),
    ]


def test_results_do_not_depend_on_the_number_of_threads(threads):
    threads(1)
    alone = [y.numpy() for y in results()]
    threads(4)
    for one, four in zip(alone, results()):
        np.testing.assert_array_equal(one, four)


def test_large_work_from_several_threads_at_once(threads):
    threads(2)
    x = tf.constant(np.ones((300, 400), np.float32))
    seen = []

    def work():
        for _ in range(20):
            seen.append(float(tf.reduce_sum(tf.matmul(x, x, transpose_b=True))))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(seen) == {300.0 * 300 * 400}


def recurrent_gradients():
    """Weights that are used many times: another thread adds up their gradients."""
    rng = np.random.default_rng(1)
    x = tf.constant(rng.standard_normal((40, 32, 16)).astype("float32"))
    w, v = (tf.Variable(0.1 * rng.standard_normal(s).astype("float32")) for s in [(16, 256), (64, 256)])
    with tf.GradientTape(persistent=True) as tape:
        u = v * 1.5  # not a source: its gradient is read on the way back
        h = tf.zeros([32, 64])
        for t in range(40):
            z = tf.matmul(x[t], w) + tf.matmul(h, u)
            h = tf.tanh(z[:, :64] * tf.sigmoid(z[:, 64:128]))
        loss = tf.reduce_sum(h * h)
    gradients = [*tape.gradient(loss, [w, v]), *tape.gradient(loss, [v, u])]
    tape.gradient(loss, w)  # nobody reads the result
    return gradients


def test_sums_made_aside_are_the_same(threads):
    threads(1)
    alone = [dx.numpy() for dx in recurrent_gradients()]
    for _ in range(5):
        threads(2)
        for one, two in zip(alone, recurrent_gradients(), strict=True):
            np.testing.assert_array_equal(one, two)


def test_sums_made_aside_from_several_threads_at_once(threads):
    threads(2)
    expected = [dx.numpy() for dx in recurrent_gradients()]
    wrong = []

    def work():
        for _ in range(5):
            wrong.extend(not np.array_equal(a, b) for a, b in zip(expected, recurrent_gradients(), strict=True))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == [False] * 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_compute():
    program = """
import os, numpy as np, tapeflow as tf
x = tf.constant(np.ones((600, 600), np.float32))
tf.matmul(x, x); tf.tanh(x)
child = os.fork()
if child == 0:
    ok = float(tf.reduce_sum(tf.tanh(tf.matmul(x, x)))) == 360000.0
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "0", run.stderr


def test_memory_is_reused_counted_and_trimmed():
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    x = tf.ones([1_000_000])
    assert tf.config.experimental.get_memory_info("CPU:0")["current"] - before >= 4_000_000
    place = np.asarray(x).__array_interface__["data"][0]
    del x
    y = tf.ones([1_000_000])
    assert np.asarray(y).__array_interface__["data"][0] == place
    del y
    assert _core.memory_info()["cached"] >= 4_000_000
    _core.trim_memory()
    assert _core.memory_info()["cached"] == 0


def test_the_cache_is_bounded():
    _core.trim_memory()
    _core.set_cache_limit(1 << 20)
    try:
        tensors = [tf.ones([100_000]) for _ in range(10)]
        del tensors
        assert _core.memory_info()["cached"] <= 1 << 20
    finally:
        _core.set_cache_limit(1 << 30)


def test_a_full_cache_gives_up_the_sizes_that_were_not_used_for_the_longest_time():
    _core.trim_memory()
    _core.set_cache_limit(1 << 20)
    try:
        old = [tf.ones([60_000]), tf.ones([90_000]), tf.ones([100_000])]
        del old
        x = tf.ones([150_000])
        place = np.asarray(x).__array_interface__["data"][0]
        del x
        y = tf.ones([150_000])
        assert np.asarray(y).__array_interface__["data"][0] == place
        assert _core.memory_info()["cached"] <= 1 << 20
    finally:
        _core.set_cache_limit(1 << 30)


def test_equal_sized_buffers_start_at_staggered_addresses():
    tensors = [tf.zeros([4096]) for _ in range(8)]
    offsets = {np.asarray(t).__array_interface__["data"][0] % 4096 for t in tensors}
    assert len(offsets) > 4
    assert all(offset % 64 == 0 for offset in offsets)


def test_import_is_silent():
    run = subprocess.run([sys.executable, "-c", "import tapeflow"], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
