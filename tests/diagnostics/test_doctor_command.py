"""`tapeflow doctor`: the report, the exit code, and that the program runs as it would."""

import json
import subprocess
import sys

import pytest

BROKEN = """import sys
import tensorflow as tf
w = tf.Variable([1.6, 2.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.round(w))  # BREAK
print("gradient", tape.gradient(loss, w), sys.argv[1:])
"""
HEALTHY = """import tensorflow as tf
w = tf.Variable([3.0, -2.0])
for step in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(w))
    w.assign_sub(0.1 * tape.gradient(loss, w))
"""
FUNCTION = """import tensorflow as tf
w = tf.Variable(2.5)
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.floor(w) * 2.0
    dw = tape.gradient(loss, w)
    return 0.0 if dw is None else dw
step()
"""


def doctor(tmp_path, text, *options, arguments=()):
    program = tmp_path / "program.py"
    program.write_text(text)
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "tapeflow", "doctor", "--json", str(report), *options, str(program), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    return ended, json.loads(report.read_text())


def test_report_of_a_broken_program(tmp_path):
    ended, report = doctor(tmp_path, BROKEN, arguments=["--epochs", "3"])
    assert ended.returncode == 0
    assert ended.stdout == "gradient None ['--epochs', '3']\n"
    assert report["version"] == 1 and report["verdict"] == "findings"
    (finding,) = report["findings"]
    assert (finding["kind"], finding["severity"], finding["line"]) == ("none-gradient", "severe", 5)
    assert finding["variable"] == "w" and finding["remedy"] and finding["evidence"]["operation"] == "round"
    assert "SEVERE" in ended.stderr and "program.py:5" in ended.stderr


def test_report_of_a_healthy_program(tmp_path):
    ended, report = doctor(tmp_path, HEALTHY)
    assert (ended.returncode, report["verdict"], report["findings"]) == (0, "healthy", [])
    assert len(report["steps"]) == 10 and report["variables"][0]["name"] == "w"
    assert "healthy" in ended.stderr


def test_exit_codes(tmp_path):
    assert doctor(tmp_path, BROKEN, "--fail-on", "severe")[0].returncode == 3
    assert doctor(tmp_path, HEALTHY, "--fail-on", "warning")[0].returncode == 0
    assert doctor(tmp_path, HEALTHY + "raise SystemExit(7)\n")[0].returncode == 7
    ended, report = doctor(tmp_path, BROKEN + "1 + None\n")
    assert (ended.returncode, report["verdict"]) == (1, "crashed")
    assert "TypeError" in report["error"] and len(report["findings"]) == 1


def test_silence(tmp_path):
    _, report = doctor(tmp_path, BROKEN.replace("# BREAK", "# tapeflow: ok none-gradient"))
    assert report["verdict"] == "healthy"
    _, report = doctor(tmp_path, BROKEN.replace("# BREAK", "# tapeflow: ok nan"))
    assert report["verdict"] == "findings"


def test_steps_and_comparison(tmp_path):
    ended, report = doctor(tmp_path, HEALTHY, "--steps", "4")
    assert report["gradient_calls"] == 4
    (tmp_path / "before.json").write_text(json.dumps(report))
    ended, _ = doctor(tmp_path, HEALTHY.replace("3.0", "4.0"), "--steps", "4", "--against", "before.json")
    assert "the first operation whose values differ is square at program.py:5" in ended.stderr


def test_the_first_different_operation_may_have_another_constant(tmp_path):
    shifted = HEALTHY.replace("tf.square(w)", "tf.square(w - 1.0)")
    _, report = doctor(tmp_path, shifted)
    (tmp_path / "before.json").write_text(json.dumps(report))
    ended, _ = doctor(tmp_path, shifted.replace("1.0", "2.0"), "--against", "before.json")
    assert "the first operation whose values differ is subtract at program.py:5" in ended.stderr


def test_an_error_about_none_has_the_explanation_of_the_programs_own_call(tmp_path):
    last = BROKEN.splitlines(keepends=True)[-1]
    ended, _ = doctor(tmp_path, BROKEN.replace(last, "w.assign_sub(0.1 * tape.gradient(loss, w))\n"))
    explanation, _, trace = ended.stderr.partition("Traceback")
    assert "The source is `w`, made at" in explanation and "sources[" not in explanation
    assert "TypeError" in trace


def test_a_missing_program_is_not_called_healthy(tmp_path):
    command = [sys.executable, "-m", "tapeflow", "doctor", "missing.py"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2 and "can't open file" in ended.stderr and "healthy" not in ended.stderr


UNUSED_HEAD = """import keras
import tensorflow as tf
given = keras.Input((8,))
trunk = keras.layers.Dense(8, activation="relu")(given)
model = keras.Model(given, [keras.layers.Dense(1)(trunk), keras.layers.Dense(2, name="second")(trunk)])
copied = tf.Variable(model.get_layer("second").bias)
with tf.GradientTape() as tape:
    first, _ = model(tf.ones([4, 8]))
    loss = tf.reduce_mean(first ** 2) + tf.reduce_sum(copied)
tape.gradient(loss, model.trainable_variables)
"""


def test_a_head_of_a_model_without_a_part_in_the_loss(tmp_path):
    _, report = doctor(tmp_path, UNUSED_HEAD)
    causes = {f["variable"]: (f["evidence"]["cause"], f["line"]) for f in report["findings"]}
    assert causes == {"second/kernel": ("no path", 8), "second/bias": ("copied variable", 6)}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--json", "nowhere/report.json", "there is no folder"),
        ("--html", ".", "cannot be written"),
        ("--against", "program.py", "is not the report of another run"),
        ("--steps", "0", "a positive integer is expected"),
        ("--memory-budget", "much", "a size such as 500MB"),
    ],
)
def test_bad_options_are_refused_before_the_program_runs(tmp_path, option, value, words):
    (tmp_path / "program.py").write_text("print('ran')")
    command = [sys.executable, "-m", "tapeflow", "doctor", option, value, "program.py"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2 and ended.stdout == ""
    assert f"argument {option}" in ended.stderr and words in ended.stderr and "Traceback" not in ended.stderr


def test_the_report_stays_in_the_folder_of_the_command(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "program.py").write_text("import os\nos.chdir('elsewhere')\n")
    command = [sys.executable, "-m", "tapeflow", "doctor", "--json", "report.json", "program.py"]
    subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "healthy"


def test_page(tmp_path):
    doctor(tmp_path, BROKEN, "--html", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "none-gradient" in page and "tf.round(w)" in page


@pytest.mark.parametrize("mode", [[], ["--monitor"]])
def test_functions(tmp_path, mode):
    _, report = doctor(tmp_path, FUNCTION, *mode)
    assert [(f["kind"], f["line"]) for f in report["findings"]] == [("none-gradient", 6)]
