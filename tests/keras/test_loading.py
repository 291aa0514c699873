"""How `tf.keras` and `import keras` come to be Keras on Tapeflow, each in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest


def python(program, *before, **environment):
    command = [sys.executable, *before, "-c", textwrap.dedent(program)]
    variables = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path), **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    return done.returncode, done.stdout, done.stderr


def test_keras_waits_until_asked():
    assert python("""
        import sys, tapeflow as tf
        assert "keras" not in sys.modules and "tensorflow" not in sys.modules
        assert "tapeflow._src.compat.tensorflow.inner_modules.table" not in sys.modules
        tf.keras.layers.Dense(1)
        assert sys.modules["tensorflow"] is tf
        assert tf.losses is tf.keras.losses and tf.optimizers is tf.keras.optimizers
        assert tf.metrics is tf.keras.metrics and tf.initializers is tf.keras.initializers
        import keras
        assert keras.layers.Dense is tf.keras.layers.Dense
        from tensorflow import keras as again
        from tensorflow.keras.layers import Dense
        import tensorflow.keras.optimizers as optimizers
        assert again is tf.keras and Dense is keras.layers.Dense and optimizers.Adam is keras.optimizers.Adam
    """) == (0, "", "")


def test_plain_import():
    assert python("""
        import tapeflow
        tapeflow.install_as_tensorflow()
        import keras
        assert keras.backend.backend() == "tensorflow"
        assert type(keras.ops.ones([2])) is tapeflow.Tensor
    """) == (0, "", "")


@pytest.mark.parametrize("before", ["jax", "tensorflow"])
def test_environment_is_left_as_it_was(before):
    program = """
        import os, tapeflow as tf
        assert tf.keras.backend.backend() == "tensorflow"
        print(os.environ["KERAS_BACKEND"])
    """
    assert python(program, KERAS_BACKEND=before) == (0, f"{before}\n", "")


def test_keras_is_not_installed():
    _, shown, _ = python("""
        import sys
        sys.modules["keras"] = None
        import tapeflow as tf
        try:
            tf.keras
        except ModuleNotFoundError as error:
            print(error)
        from tensorflow import keras
    """)
    assert shown == "tf.keras: Keras is not installed. Install it with `pip install tapeflow[keras]`.\n"


def test_real_tensorflow_is_imported_already():
    code, shown, _ = python("""
        import sys, types
        sys.modules["tensorflow"] = types.ModuleType("tensorflow")
        import tapeflow as tf
        try:
            tf.keras
        except ImportError as error:
            print(error)
        assert "keras" not in sys.modules
    """)
    assert code == 0 and shown.startswith("install_as_tensorflow: TensorFlow itself is imported already")


def test_another_backend_is_loaded_already():
    code, shown, _ = python("""
        import sys, types
        sys.modules["keras"] = keras = types.ModuleType("keras")
        keras.__spec__ = types.SimpleNamespace()
        keras.config = types.SimpleNamespace(backend=lambda: "jax")
        import tapeflow as tf
        try:
            tf.keras
        except ImportError as error:
            print(error)
    """)
    assert code == 0 and shown.startswith("tf.keras: Keras is imported already, with its 'jax' backend.")


def test_run(tmp_path):
    (tmp_path / "program.py").write_text("""
import numpy as np
import tensorflow as tf
from tensorflow import keras
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((4, 2)), np.ones(4), verbose=0)
print(tf.__name__, model.built)
""")
    done = subprocess.run(
        [sys.executable, "-m", "tapeflow", "run", tmp_path / "program.py"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    assert (done.stdout, done.stderr) == ("tapeflow True\n", "")


def test_pickling_beside_keras():
    assert python("""
        import pickle, tapeflow as tf
        tf.keras
        for value in (tf.constant([1.0, 2.0]), tf.sparse.from_dense([0.0, 2.0])):
            again = pickle.loads(pickle.dumps(value))
            assert type(again) is type(value)
    """) == (0, "", "")
