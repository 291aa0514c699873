"""Full mode runs small functions as graphs between watched steps, and misses nothing that is not finite."""

import subprocess
import sys

import numpy as np

import tapeflow as tf

PROGRAM = """
import tapeflow as tf

w = tf.Variable([[0.5, -0.3], [0.1, 0.2]])
x = tf.constant([[1.0, 2.0], [3.0, -1.0]])

@tf.function
def step(number):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((x @ w) ** 2) + tf.math.log(LAST - number)
    w.assign_sub(1e-3 * tape.gradient(loss, w))
    return loss

with tf.debugging.Doctor() as doctor:
    for number in range(1500):
        loss = step(tf.constant(float(number)))
        if STOPS and not bool(tf.math.is_finite(loss)):
            break
found = [(f.kind, f.line) for f in doctor.findings if f.severity == "severe"]
assert found[0] == ("infinity", 10), found
"""


def run(text):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300)


def test_the_origin_of_a_nan_in_a_stretch_is_found(tmp_path):
    for last, stops in ((1100, False), (1100, True), (205, False), (1498, False)):
        file = tmp_path / f"program_{last}_{stops}.py"
        file.write_text(PROGRAM.replace("LAST", f"{last}.0").replace("STOPS", str(stops)))
        done = run(f"exec(compile(open({str(file)!r}).read(), {str(file)!r}, 'exec'))")
        assert done.returncode == 0, done.stderr


def test_most_steps_of_a_small_function_run_as_graphs():
    calls = []

    def step(w, x):
        calls.append(1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ w) ** 2)
        w.assign_sub(1e-3 * tape.gradient(loss, w))

    results = []
    for watched in (False, True):
        w, x = tf.Variable([[0.5, -0.3], [0.1, 0.2]]), tf.constant([[1.0, 2.0], [3.0, -1.0]])
        function = tf.function(step)
        calls.clear()
        with tf.debugging.Doctor() if watched else tf.name_scope("plain"):
            for _ in range(3000):
                function(w, x)
        results.append(w.numpy())
    assert 200 <= len(calls) < 3000
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    assert not tf.config.functions_run_eagerly()


COPY = """
import os
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.graph_stretches import Replay

replay = Replay()
replay.start()
if replay.is_copy:
    try:
        open("written", "w")
    except OSError:
        replay.tell(Finding("nan", "severe", "refused"))
    os._exit(1)
assert replay.ask().message == "refused" and replay.ask() is None
"""


def test_a_copy_opens_no_files(tmp_path):
    done = run(f"import os; os.chdir({str(tmp_path)!r})\n{COPY}")
    assert done.returncode == 0 and not list(tmp_path.iterdir()), done.stderr
