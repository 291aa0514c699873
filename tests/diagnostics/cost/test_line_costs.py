"""Cost by line: times, bytes, the largest gradient, what to recompute, and traces."""

import linecache
import sys

import tapeflow as tf

TEXT = """
def block(x, w):
    h = tf.nn.relu(x @ w)
    return tf.tanh(h) * tf.sigmoid(h)

def step(x, ws):
    with tf.GradientTape() as tape:
        h = x
        for w in ws:
            h = block(h, w)
        loss = tf.reduce_mean(h * h)
    return tape.gradient(loss, ws)
"""


def program(name, text=TEXT):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"tf": tf}
    exec(compile(text, name, "exec"), scope)
    return scope


def watched(budget=None, steps=4):
    scope = program("/programs/cost.py")
    ws = [tf.Variable(tf.random.normal([8, 8])) for _ in range(3)]
    with tf.debugging.Doctor(memory_budget=budget) as doctor:
        for _ in range(steps):
            scope["step"](tf.random.normal([16, 8]), ws)
    return doctor.report()


def test_lines_have_times_bytes_and_gradients():
    rows = {row["line"]: row for row in watched()["lines"]}
    assert {3, 4, 11} <= set(rows)
    assert all(rows[n]["forward_seconds"] > 0 and rows[n]["backward_seconds"] > 0 for n in (3, 4, 11))
    assert rows[4]["bytes_kept"] >= 3 * 16 * 8 * 4
    assert rows[4]["largest_gradient"] > 0
    assert {"matmul", "relu"} <= set(rows[3]["operations"])


def test_operations_are_added_up_over_lines():
    rows = {row["operation"]: row for row in watched()["operations"]}
    assert rows["matmul"]["calls"] % 3 == 0
    assert rows["matmul"]["backward_seconds"] > 0


def test_a_budget_names_the_function_to_recompute():
    memory = watched(budget=1000)["memory"]
    assert memory["kept"] > 1000
    assert memory["recompute"][0]["function"] == "block"
    assert memory["recompute"][0]["remedy"] == "block = tf.recompute_grad(block)"
    assert 0 < memory["recompute"][0]["saved"] < memory["kept"]


def test_a_budget_that_holds_asks_for_nothing():
    assert watched(budget=10**9)["memory"]["recompute"] == []
    assert watched()["memory"]["recompute"] == []


def test_traces_and_their_reason_are_listed():
    @tf.function
    def double(x, n):
        return x * n

    with tf.debugging.Doctor() as doctor:
        for n in range(6):
            double(tf.constant(1.0), n)
        double(tf.constant(1.0), 5)
    report = doctor.report()
    assert len(report["retraces"]) == 5
    assert "Python number" in report["retraces"][0]["why"]
    finding = next(f for f in report["findings"] if f["kind"] == "retracing")
    assert finding["evidence"] == {"traces": 6, "calls": 7}


def test_one_signature_is_no_trace():
    double = tf.function(lambda x: x + x)
    with tf.debugging.Doctor() as doctor:
        for n in range(6):
            double(tf.constant(float(n)))
    assert doctor.report()["retraces"] == []


def test_python_in_graphs_is_listed():
    w = tf.Variable(2.0)
    with tf.debugging.Doctor() as doctor:
        with tf.GradientTape() as tape:
            loss = tf.py_function(lambda v: v * v, [w], tf.float32)
        tape.gradient(loss, w)
    rows = doctor.report()["graph_breaks"]
    assert [row["file"] for row in rows] == [sys._getframe().f_code.co_filename]
