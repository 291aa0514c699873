"""The other ways to a doctor: a Keras callback, a notebook's magic, pytest; and hints for names of other libraries."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import tapeflow as tf
from tapeflow._src.advice import MODULE_HINTS, TENSOR_HINTS


def run(*arguments, folder):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder)


def test_keras_callback(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tapeflow as tf\ntf.install_as_tensorflow()\nimport keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "loss = lambda y, p: tf.reduce_mean(tf.sqrt(p - 100.0))\n"
        "model.compile('sgd', loss)\ncallback = tf.debugging.doctor_callback()\n"
        "model.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0, callbacks=[callback])\n"
        "print([(f.kind, f.line) for f in callback.doctor.findings])\n"
    )
    assert run(str(program), folder=tmp_path).stdout.splitlines()[-1] == "[('nan', 5)]"


class Shell:
    """As much of IPython as the extension uses."""

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magic, self.name = function, (magic_kind, magic_name)

    def run_cell(self, cell):
        exec(cell, {"tf": tf})


def test_notebook_magic(capsys):
    shell = Shell()
    tf.load_ipython_extension(shell)
    assert shell.name == ("cell", "doctor")
    cell = "w = tf.Variable(1.5)\nwith tf.GradientTape() as tape:\n    y = tf.floor(w)\ntape.gradient(y, w)\n"
    doctor = shell.magic("", cell)
    assert [f.kind for f in doctor.findings] == ["none-gradient"]
    assert "SEVERE" in capsys.readouterr().out
    with pytest.raises(ValueError, match="%%doctor"):
        shell.magic("quick", cell)
    with pytest.raises(ValueError, match="%%doctor: unrecognized arguments: --quick"):
        shell.magic("--quick", cell)


def test_notebook_magic_takes_the_options_of_the_command(capsys, tmp_path):
    shell = Shell()
    tf.load_ipython_extension(shell)
    step = "    with tf.GradientTape() as tape:\n        y = w * w\n    tape.gradient(y, w)\n"
    cell = f"w = tf.Variable(1.5)\nfor _ in range(5):\n{step}"
    report = tmp_path / "report.json"
    doctor = shell.magic(f"--steps 2 --json {report}", cell)
    assert doctor.report()["gradient_calls"] == 2
    assert '"version": 1' in report.read_text()
    assert shell.magic("--help", cell) is None
    assert "--steps" in capsys.readouterr().out


def test_notebook_says_that_the_cell_failed():
    shell = Shell()
    error = ZeroDivisionError("division by zero")
    shell.run_cell = lambda cell: SimpleNamespace(error_before_exec=None, error_in_exec=error)
    tf.load_ipython_extension(shell)
    assert shell.magic("", "1 / 0").verdict == "crashed"


def test_pytest_plugin(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import tapeflow as tf\n\ndef test_broken():\n    w = tf.Variable(1.5)\n"
        "    with tf.GradientTape() as tape:\n        y = tf.floor(w)\n    tape.gradient(y, w)\n\n"
        "def test_healthy():\n    w = tf.Variable(1.5)\n    with tf.GradientTape() as tape:\n        y = w * w\n"
        "    assert tape.gradient(y, w) is not None\n"
    )
    plugin = ("-m", "pytest", "-q", "-p", "tapeflow._src.diagnostics.entrances.pytest_plugin", "-p", "no:cacheprovider")
    assert "2 passed" in run(*plugin, folder=tmp_path).stdout
    watched = run(*plugin, "--tapeflow-doctor", "test_it.py", folder=tmp_path).stdout
    assert "1 failed, 1 passed" in watched and "test_it.py:6" in watched
    assert "pluggy" not in watched


def test_hints_for_names_of_other_libraries():
    x = tf.constant([1.0])
    for name, hint in TENSOR_HINTS.items():
        assert not hasattr(x, name)
        with pytest.raises(AttributeError) as caught:
            getattr(x, name)
        assert str(caught.value).endswith(f"has no attribute '{name}'. {hint}")
    for path, hints in MODULE_HINTS.items():
        module = getattr(tf, path) if path else tf
        for name in hints:
            with pytest.raises(AttributeError, match=f"no attribute '{name}'. "):
                getattr(module, name)
    with pytest.raises(AttributeError, match="TensorFlow Lite is not part of Tapeflow"):
        _ = tf.lite
