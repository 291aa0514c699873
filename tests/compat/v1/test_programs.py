"""Programs written for TensorFlow 1 run unchanged with `tapeflow run`, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tapeflow as tf

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "from_tensorflow_1.md").read_text()


def run(path, *arguments, options=()):
    done = subprocess.run(
        [sys.executable, "-m", "tapeflow", "run", *options, str(path), *arguments],
        capture_output=True,
        text=True,
        cwd=HERE.parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("name", "expected"), [("word_vectors", "fell"), ("classifier", "300 True True"), ("recurrent", "fell")]
)
def test_programs(name, expected):
    assert run(HERE / "programs" / f"{name}.py") == expected


def test_both_styles_give_equal_numbers(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for i, block in enumerate(blocks):
        (tmp_path / f"{i}.py").write_text(block)
        found = run(tmp_path / f"{i}.py")
        assert f"    {found}\n" in PAGE, found


def test_flags_and_main(tmp_path):
    program = tmp_path / "flagged.py"
    program.write_text(
        "import tensorflow.compat.v1 as tf\n"
        "flags = tf.app.flags\n"
        "flags.DEFINE_integer('steps', 3, 'how many')\n"
        "flags.DEFINE_boolean('fast', False, 'whether')\n"
        "def main(_):\n"
        "    tf.logging.set_verbosity(tf.logging.INFO)\n"
        "    print(flags.FLAGS.steps, flags.FLAGS.fast)\n"
        "if __name__ == '__main__':\n"
        "    tf.app.run()\n"
    )
    assert run(program) == "3 False"
    assert run(program, "--steps=5", "--fast") == "5 True"


def test_a_program_of_the_first_tensorflow_runs_as_it_stands(tmp_path):
    program = tmp_path / "older.py"
    program.write_text(
        "import tensorflow as tf\n"
        "from tensorflow.python_io import TFRecordWriter\n"
        "import tensorflow.compat.v1 as v1\n"
        "x = tf.placeholder(tf.float32, [None, 2])\n"
        "w = tf.get_variable('w', initializer=[[1.], [2.]])\n"
        "with tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n"
        "    print(session.run(tf.matmul(x, w), {x: [[3, 4]]}), x.shape[1].value, v1.Session is tf.Session)\n"
    )
    assert run(program, options=["--v1"]) == "[[11.]] 2 True"
    program.write_text("import tensorflow as tf\ntf.placeholder(tf.float32)\n")
    done = subprocess.run([sys.executable, "-m", "tapeflow", "run", str(program)], capture_output=True, text=True)
    assert "`tapeflow run --v1`" in done.stderr


def test_messages_that_are_logged_some_times(caplog):
    logging = tf.compat.v1.logging
    with caplog.at_level("INFO", logger="tensorflow"):
        for step in range(5):
            logging.log_every_n(logging.INFO, "every %d", 2, step)
            logging.log_first_n(logging.INFO, "first %d", 2, step)
        logging.vlog(logging.INFO, "at once")
        logging.TaskLevelStatusMessage("stopped")
    assert [record.getMessage() for record in caplog.records] == [
        "every 0", "first 0", "first 1", "every 2", "every 4", "at once", "stopped",
    ]  # fmt: skip
