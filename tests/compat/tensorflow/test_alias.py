"""`import tensorflow` means Tapeflow when asked for, in a process and through `tapeflow run`."""

import subprocess
import sys
import textwrap

import pytest

import tapeflow as tf


def python(program, *arguments, cwd=None):
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def run(folder, program, *arguments, command=("run", "program.py")):
    (folder / "program.py").write_text(textwrap.dedent(program))
    words = [sys.executable, "-m", "tapeflow", *command, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)


@pytest.fixture(autouse=True)
def find_package(monkeypatch):
    """Lets the processes of these tests import the same tapeflow, wherever they start."""
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))


def test_imports():
    done = python("""
        import tapeflow
        tapeflow.install_as_tensorflow()
        tapeflow.install_as_tensorflow()
        import tensorflow
        import tensorflow as tf
        assert tensorflow is tf is tapeflow
        from tensorflow import nest, Module
        from tensorflow.nest import flatten
        import tensorflow.nest as again
        import tensorflow.compat.v1 as v1
        from tensorflow.compat import v1 as v1_again
        assert nest is again is tapeflow.nest and flatten is nest.flatten and Module is tapeflow.Module
        assert v1 is v1_again is tapeflow.compat.v1
        import tensorflow.compat.v2 as v2
        import tensorflow.compat.v2.nest as nest_of_v2
        assert v2 is tapeflow.compat.v2 is tapeflow and nest_of_v2 is tapeflow.nest
        assert v1.newaxis is None and v1.__version__ == tapeflow.__version__
        import tensorflow.config.experimental as experimental
        assert experimental is tapeflow.config.experimental
        import importlib, pickle, sys
        assert importlib.import_module("tensorflow.nest") is nest
        assert tapeflow.__spec__.name == "tapeflow" and tapeflow.__name__ == "tapeflow"
        assert pickle.loads(pickle.dumps(tf.float32)) is tf.float32
        assert sys.modules["tensorflow"] is tapeflow
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_version_2_is_there_beside_version_1():
    done = python("""
        import tapeflow
        tapeflow.install_as_tensorflow(v1=True)
        import tensorflow as tf
        import tensorflow.compat.v2 as v2
        import tensorflow.compat.v2.nn as nn_of_v2
        assert tf is tapeflow.compat.v1 and v2 is tapeflow and nn_of_v2 is tapeflow.nn
        v2.enable_v2_behavior()
        assert v2.enable_v2_behavior is tf.enable_v2_behavior and tf.executing_eagerly()
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_happens_unasked():
    done = python("""
        import sys, tapeflow
        assert "tensorflow" not in sys.modules
        assert not [finder for finder in sys.meta_path if "tapeflow" in type(finder).__module__]
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "name", ["tensorflow.core.kernels", "tensorflow.python.tpu", "tensorflow.namespace", "tensorflow.no"]
)
def test_inner_modules_are_not_offered(name):
    done = python(f"""
        import tapeflow
        tapeflow.install_as_tensorflow()
        import {name}
    """)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: No module named '{name}': 'tensorflow' means Tapeflow")


def test_modules_of_others_below():
    done = python("""
        import sys, types, tapeflow
        tapeflow.json = __import__("json")  # stands for keras: a package of others under a public name
        tapeflow.install_as_tensorflow()
        from tensorflow.json import decoder
        import tensorflow.json.encoder as encoder
        import tensorflow.json.tool as tool
        import json.tool
        assert encoder is json.encoder and decoder is json.decoder and tool is json.tool
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_refuses_beside_tensorflow():
    done = python("""
        import sys, types
        sys.modules["tensorflow"] = real = types.ModuleType("tensorflow")
        real.__file__ = "/somewhere/tensorflow/__init__.py"
        import tapeflow
        try:
            tapeflow.install_as_tensorflow()
        except ImportError as error:
            print(error)
        import tensorflow
        assert tensorflow is real
    """)
    assert done.stderr == ""
    assert done.stdout.startswith(
        "install_as_tensorflow: TensorFlow itself is imported already, from /somewhere/tensorflow/__init__.py"
    )


def test_classes_stand_where_tensorflow_has_them():
    done = python("""
        import tapeflow as tf
        values = [tf.constant(1.), tf.Variable(1.), tf.sparse.from_dense([1.]), tf.ragged.constant([[1.]]),
                  tf.IndexedSlices(tf.constant([1.]), tf.constant([0])), tf.data.Dataset.range(3)]
        assert not any(type(x).__module__.startswith("tensorflow") for x in values)
        before = [(type(x).__module__, type(x).__name__, repr(x)) for x in values[:4]]
        tf.install_as_tensorflow()
        print(*(type(x).__module__.split(".")[0] for x in values))
        print(type(values[1]).__module__, type(values[1]).__name__, repr(values[1]) == before[1][2])
        import pickle
        print(pickle.loads(pickle.dumps(values[2])).values.numpy(), pickle.loads(pickle.dumps(values[1])).numpy())
        from tapeflow._src.compat.tensorflow.alias import withdraw
        withdraw()
        assert before == [(type(x).__module__, type(x).__name__, repr(x)) for x in values[:4]]
    """)
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "tensorflow tensorflow tensorflow tensorflow tensorflow tensorflow",
            "tensorflow.python.ops.resource_variable_ops ResourceVariable True",
            "[1.] 1.0",
        ],
        "",
    )


def test_withdraw():
    done = python("""
        import sys, tapeflow
        from tapeflow._src.compat.tensorflow.alias import withdraw
        tapeflow.install_as_tensorflow()
        import tensorflow.nest
        withdraw()
        assert not [name for name in sys.modules if name.startswith("tensorflow")]
        withdraw()
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_run(tmp_path):
    (tmp_path / "neighbour.py").write_text("value = 7\n")
    program = """
        import sys, os
        import tensorflow as tf
        import neighbour
        if __name__ == "__main__":
            print(tf.__name__, __file__, sys.argv, neighbour.value)
            print(sys.modules["__main__"].__dict__ is globals(), os.path.samefile(sys.path[0], os.getcwd()))
    """
    done = run(tmp_path, program, "--flag", "-m", "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "tapeflow program.py ['program.py', '--flag', '-m', 'x'] 7\nTrue True\n"


@pytest.mark.parametrize(("line", "code"), [("exit()", 0), ("exit(3)", 3), ("exit('bye')", 1), ("1 / 0", 1)])
def test_exit_codes(tmp_path, line, code):
    assert run(tmp_path, line).returncode == code


def test_traceback_has_the_frames_of_the_program_alone(tmp_path):
    done = run(tmp_path, "def f():\n    1 / 0\nf()\n")
    lines = [line.strip() for line in done.stderr.splitlines() if not set(line.strip()) <= set("~^")]
    assert lines == [
        "Traceback (most recent call last):",
        'File "program.py", line 3, in <module>',
        "f()",
        'File "program.py", line 2, in f',
        "1 / 0",
        "ZeroDivisionError: division by zero",
    ]


def test_syntax_error(tmp_path):
    done = run(tmp_path, "x = (\n")
    assert done.stderr.splitlines()[0].strip() == 'File "program.py", line 1'
    assert done.stderr.splitlines()[-1] == "SyntaxError: '(' was never closed"
    assert done.returncode == 1


def test_own_excepthook_and_atexit(tmp_path):
    program = """
        import atexit, sys
        atexit.register(lambda: print("the end", value))
        sys.excepthook = lambda kind, error, traceback: print("caught", kind.__name__)
        value = 5
        raise KeyError
    """
    done = run(tmp_path, program)
    assert (done.stdout, done.returncode) == ("caught KeyError\nthe end 5\n", 1)


def test_pickling_of_the_program_s_classes(tmp_path):
    program = """
        import pickle
        class Point:
            pass
        assert type(pickle.loads(pickle.dumps(Point()))) is Point
    """
    assert run(tmp_path, program).stderr == ""


def test_run_module(tmp_path):
    done = run(
        tmp_path, "import sys, tensorflow as tf; print(__name__, tf.__name__, sys.argv[1:])", "a", "--b",
        command=("run", "-m", "program"))  # fmt: skip
    assert (done.stdout, done.stderr) == ("__main__ tapeflow ['a', '--b']\n", "")


def test_run_folder(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("import tensorflow, sys; print(tensorflow.__name__, sys.argv)")
    done = run(tmp_path, "", "x", command=("run", "app"))
    assert (done.stdout, done.stderr) == ("tapeflow ['app', 'x']\n", "")


def test_absent_file(tmp_path):
    done = run(tmp_path, "", command=("run", "absent.py"))
    assert done.returncode == 2
    assert done.stderr.startswith("tapeflow: can't open file ")
    assert done.stderr.endswith("absent.py': [Errno 2] No such file or directory\n")


def test_version_and_help(tmp_path):
    done = run(tmp_path, "", command=("--version",))
    assert done.stdout.split()[0] == "tapeflow"
    assert done.returncode == 0
    done = run(tmp_path, "", command=("--help",))
    assert "tapeflow run train.py" in done.stdout
    assert run(tmp_path, "", command=()).returncode == 2


def test_name_is_public():
    assert callable(tf.install_as_tensorflow)
