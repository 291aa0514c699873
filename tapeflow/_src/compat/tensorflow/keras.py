"""Importing Keras for `tf.keras`: its backend is "tensorflow", and `import tensorflow` in it means Tapeflow."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from threading import RLock
from types import ModuleType

from tapeflow._src.compat.tensorflow.alias import install_as_tensorflow

_BACKEND = "KERAS_BACKEND"
_importing = RLock()  # the backend stands in the environment for a while
_TF_KERAS = "keras._tf_keras.keras"  # Keras with the legacy names of `tf.keras`
_LEGACY, _LEGACY_KERAS = "TF_USE_LEGACY_KERAS", "tf_keras.api._v2.keras"  # Keras 2, if the environment asks for it
_INNER, _LEGACY_FILES = "python.keras", "tf_keras.src"  # files of Keras 2, in TensorFlow and in its own package
_V1, _LEGACY_KERAS_V1 = "compat.v1.keras", "tf_keras.api._v1.keras"  # with the v1 names, which Keras 3 does not have


def _uses_legacy_keras() -> bool:
    """Whether `tf.keras` shall be Keras 2, as in TensorFlow."""
    return os.environ.get(_LEGACY) in ("true", "True", "1")


def is_installed() -> bool:
    """Whether there is a Keras to load."""
    if _uses_legacy_keras():
        return importlib.util.find_spec("tf_keras") is not None
    return importlib.util.find_spec("keras") is not None


def load(path: str) -> ModuleType:
    """The module that is `tf.keras`, or a part of it that stands directly under `tf`, such as `tf.losses`."""
    if _uses_legacy_keras():
        return _load_legacy(path)
    if not is_installed():
        raise ModuleNotFoundError(
            f"tf.{path}: Keras is not installed. Install it with `pip install tapeflow[keras]`.", name="keras"
        )
    install_as_tensorflow()
    with _importing:
        if "keras" not in sys.modules:
            _import_with_our_backend()
    backend = importlib.import_module("keras").config.backend()  # waits for a thread that imports it
    if backend != "tensorflow":
        raise ImportError(
            f"tf.{path}: Keras is imported already, with its {backend!r} backend. Ask for tf.keras before the first "
            '`import keras`, or set KERAS_BACKEND to "tensorflow".',
            name="keras",
        )
    return importlib.import_module(_TF_KERAS if path in ("keras", _V1) else f"{_TF_KERAS}.{path}")


def _load_legacy(path: str) -> ModuleType:
    if not is_installed():
        raise ModuleNotFoundError(
            f"tf.{path}: {_LEGACY} is set, but Keras 2 is not installed. Install it with `pip install tf_keras`.",
            name="tf_keras",
        )
    install_as_tensorflow()
    if path == _V1:
        return importlib.import_module(_LEGACY_KERAS_V1)
    return importlib.import_module(_LEGACY_KERAS if path == "keras" else f"{_LEGACY_KERAS}.{path}")


def find(path: str) -> ModuleType | None:
    """The module that answers to `tensorflow.python.keras` or below it: the file of Keras 2 at the same place, or None.

    TensorFlow keeps a copy of an older Keras 2 there, of which libraries take callbacks, specs and helpers.
    """
    if path != _INNER and not path.startswith(f"{_INNER}."):
        return None
    name = f"{_LEGACY_FILES}{path[len(_INNER) :]}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        if error.name != "tf_keras":
            return None
        raise ModuleNotFoundError(
            f"tensorflow.{path}: Keras 2 is not installed, whose files these are. Install it with `pip install "
            "tf_keras`.",
            name="tf_keras",
        ) from None


def _import_with_our_backend() -> None:
    """Imports Keras, which reads the name of its backend from the environment once."""
    before = os.environ.get(_BACKEND)
    os.environ[_BACKEND] = "tensorflow"
    try:
        importlib.import_module("keras")
    finally:
        if before is None:
            del os.environ[_BACKEND]
        else:
            os.environ[_BACKEND] = before
