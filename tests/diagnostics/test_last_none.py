"""What stands above the traceback of an error about None: only true statements, each with the user's line."""

import subprocess
import sys

import pytest

import tapeflow as tf
from tapeflow._src.diagnostics.source_line import place_text

HEAD = "import tapeflow as tf\ntf.install_as_tensorflow()\nimport numpy as np\n"


def above_traceback(folder, text, *arguments):
    """What is printed before the traceback of a program; its first line is line 4."""
    program = folder / "program.py"
    program.write_text(HEAD + text)
    ended = subprocess.run([sys.executable, *arguments, str(program)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    return ended.stderr.partition("Traceback")[0].replace(str(program), "program.py")


STEP = "w = tf.Variable([1.5, 2.5])\nwith tf.GradientTape() as tape:\n    loss = tf.reduce_sum(tf.round(w))\n"


@pytest.mark.parametrize(
    "use",
    [
        "w.assign_sub(0.1 * g)", "g.numpy()", "np.linalg.norm(g)", "g[0]", "list(g)", "tf.convert_to_tensor(g)",
        "tf.reduce_sum(g)", "raise ValueError('gradient is None')",
        "try:\n    g + 1\nexcept TypeError as error:\n    raise RuntimeError('training failed') from error",
    ],
)  # fmt: skip
def test_every_error_about_none_is_explained(tmp_path, use):
    above = above_traceback(tmp_path, f"{STEP}g = tape.gradient(loss, w)\n{use}\n")
    assert "a gradient is None at program.py:7" in above
    assert "ends at round" in above and "(program.py:6)" in above and "made at program.py:4" in above


@pytest.mark.parametrize("call", ["jacobian", "batch_jacobian"])
def test_jacobians_are_explained(tmp_path, call):
    text = "w = tf.Variable([[1.5, 2.5]])\nwith tf.GradientTape() as tape:\n    y = tf.round(w)\n"
    text += f"j = tape.{call}(y, w)\nraise ValueError('the Jacobian is None')\n"
    above = above_traceback(tmp_path, text)
    assert "a gradient is None at program.py:7" in above and "ends at round" in above and "(program.py:6)" in above


def test_other_errors_are_not(tmp_path):
    assert above_traceback(tmp_path, f"{STEP}g = tape.gradient(loss, w)\nraise KeyError('None')\n") == ""


def test_only_gradients_that_are_none_are_explained(tmp_path):
    text = (
        "a, b = tf.Variable(1.0), tf.Variable(2.0)\nwith tf.GradientTape() as tape:\n    loss = tf.floor(a) * b\n"
        "grads = tape.gradient(loss, [a, b])\n0.1 * grads[0]\n"
    )
    above = above_traceback(tmp_path, text)
    assert "a gradient is None" in above and "`a`, sources[0]" in above
    assert "`b`" not in above and "used up" not in above


def test_one_row_for_one_cause(tmp_path):
    text = (
        "import keras\nmodel = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
        "def loss_fn(y_true, y_pred):\n    return tf.reduce_mean(tf.abs(tf.round(y_pred) - y_true))\n"
        "model.compile('sgd', loss_fn)\nmodel.fit(np.ones([4, 3]), np.ones([4, 1]), verbose=0)\n"
    )
    rows = above_traceback(tmp_path, text).strip().splitlines()
    assert len(rows) == 2 and "2 gradients are None at program.py:9" in rows[0]
    assert "(program.py:7)" in rows[1] and "dense/kernel" in rows[1] and "dense/bias" in rows[1]


def test_graphs_of_tensorflow_1(tmp_path):
    text = (
        "tf.compat.v1.disable_eager_execution()\nx = tf.compat.v1.placeholder(tf.float32, [None])\n"
        "w = tf.compat.v1.get_variable('w', [1])\nloss = tf.reduce_sum(tf.round(x * w))\n"
        "tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
    )
    above = above_traceback(tmp_path, text)
    assert "None at program.py:8" in above and "ends at round" in above and "(program.py:7)" in above


def test_cells_of_notebooks_have_numbers():
    assert place_text("<ipython-input-3-0f1e2d>", 2) == "cell 3, line 2"
    assert place_text("train.py", 7) == "train.py:7"


FORWARD = (
    "x = tf.Variable([1.0, 2.0])\nwith tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as acc:\n"
    "    y = tf.round(x) * 2.0\n"
)


def test_forward_mode_says_how_to_get_the_reason(tmp_path):
    above = above_traceback(tmp_path, f"{FORWARD}acc.jvp(y) + 1.0\n")
    assert "a Jacobian-vector product is None at program.py:7" in above and "TAPEFLOW_EXPLAIN=1" in above


def test_forward_mode_is_explained(tmp_path):
    above = above_traceback(tmp_path, f"tf.debugging.enable_gradient_explanations()\n{FORWARD}acc.jvp(y) + 1.0\n")
    assert "None at program.py:8" in above and "ends at round" in above and "(program.py:7)" in above


def test_accumulators_explain_themselves():
    x, y = tf.Variable(2.0), tf.constant(3.0)
    with pytest.raises(RuntimeError, match=r"^ForwardAccumulator.explain: .*enable_gradient_explanations"):
        tf.autodiff.ForwardAccumulator(x, tf.ones([])).explain(x)
    tf.debugging.enable_gradient_explanations()
    try:
        with tf.autodiff.ForwardAccumulator([x, y], [tf.ones([]), tf.ones([])]) as acc:
            z = tf.floor(x) * y
    finally:
        tf.debugging.disable_gradient_explanations()
    assert acc.jvp(z).numpy() == 2
    assert [answer.cause for answer in acc.explain(z)] == ["operation without gradient", "connected"]


def test_a_doctor_reports_forward_mode():
    x = tf.Variable(2.0)
    with tf.debugging.Doctor() as doctor:
        with tf.autodiff.ForwardAccumulator(x, tf.ones([])) as acc:
            z = tf.floor(x)
        assert acc.jvp(z) is None
    assert [f.kind for f in doctor.findings] == ["none-gradient"]


NESTED = (
    "w = tf.Variable([[2.0]])\nx = tf.constant([[1.0]])\n"
    "with tf.GradientTape(), tf.GradientTape() as outer:\n    outer.watch(x)\n"
    "    with tf.GradientTape() as inner:\n        y = tf.tanh(x @ w) @ w\n    slope = inner.gradient(y, x)\n"
    "print(outer.gradient(slope, x))\n"
)


@pytest.mark.parametrize("arguments", [(), ("-m", "tapeflow", "doctor")])
def test_what_the_third_tape_did_not_watch(tmp_path, arguments):
    above = above_traceback(tmp_path, NESTED, *arguments)
    assert "`x` is a tensor, and this tape did not watch it (program.py:9)" in above
