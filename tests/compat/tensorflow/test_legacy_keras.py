"""`TF_USE_LEGACY_KERAS=1`: `tf.keras` is Keras 2."""

import os
import subprocess
import sys

PROGRAM = """
import tapeflow as tf
try:
    print(tf.keras.layers.marker, tf.losses.marker, tf.compat.v1.keras.marker)
except ModuleNotFoundError as error:
    print(error.name)
"""


INNER = """
import tapeflow
tapeflow.install_as_tensorflow()
for name in ("callbacks", "engine.input_spec", "nonsense"):
    try:
        print(__import__("importlib").import_module("tensorflow.python.keras." + name).marker)
    except ModuleNotFoundError as error:
        print(error.name)
"""


def _printed(folder, program=PROGRAM):
    variables = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True).stdout.strip()


def test_the_environment_chooses_keras_2(tmp_path):
    (tmp_path / "empty").mkdir()
    assert _printed(tmp_path / "empty") == "tf_keras"  # it is not installed
    package = tmp_path / "tf_keras"
    for path in (".", "api", "api/_v1", "api/_v1/keras", "api/_v2", "api/_v2/keras"):
        (package / path).mkdir(exist_ok=True)
        (package / path / "__init__.py").write_text("")
    (package / "api/_v2/keras/__init__.py").write_text("from tf_keras.api._v2.keras import layers, losses")
    (package / "api/_v2/keras/layers.py").write_text("marker = 'layers of Keras 2'")
    (package / "api/_v2/keras/losses.py").write_text("marker = 'losses of Keras 2'")
    (package / "api/_v1/keras/__init__.py").write_text("marker = 'v1 names'")
    assert _printed(tmp_path) == "layers of Keras 2 losses of Keras 2 v1 names"


def test_files_of_keras_2_answer_to_their_places_in_tensorflow(tmp_path):
    (tmp_path / "empty").mkdir()
    assert _printed(tmp_path / "empty", INNER).split() == ["tf_keras"] * 3
    files = tmp_path / "tf_keras/src"
    (files / "engine").mkdir(parents=True)
    for folder in (files.parent, files, files / "engine"):
        (folder / "__init__.py").write_text("")
    (files / "callbacks.py").write_text("marker = 'callbacks'")
    (files / "engine/input_spec.py").write_text("marker = 'specs'")
    assert _printed(tmp_path, INNER).split() == ["callbacks", "specs", "tensorflow.python.keras.nonsense"]
