"""`tapeflow stand-in`: a distribution `tensorflow` of a virtual environment that has no code of its own.

Packages that declare `tensorflow` are then installed without it, and `import tensorflow` gives Tapeflow. The files are
those that RECORD lists; removing takes away these and nothing else.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from tapeflow._src.types.version import VERSION

_INSTALLER = "tapeflow stand-in"
_FOLDER = f"tensorflow-{VERSION}.dist-info"
_PACKAGE = '''"""A stand-in: `import tensorflow` gives Tapeflow. `tapeflow stand-in remove` takes it away."""

import sys

import tapeflow

del sys.modules[__name__]
tapeflow.install_as_tensorflow()
import tensorflow  # noqa: E402, F401, PLW0406  from now on this is Tapeflow
'''
_METADATA = f"""Metadata-Version: 2.1
Name: tensorflow
Version: {VERSION}
Summary: A stand-in without code: Tapeflow answers to this name in this environment.
Requires-Dist: tapeflow
"""
_REAL = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos", "tf-nightly", "tf-nightly-cpu")


class StandInError(Exception):
    """Why the stand-in was neither installed nor removed."""


def install() -> str:
    """Writes the stand-in into the environment of this interpreter; gives a sentence about it."""
    folder = _site_packages()
    if sys.prefix == sys.base_prefix:
        raise StandInError(
            "this Python is no virtual environment, and other programs may use it. Make one first: "
            "`python -m venv .venv`, or `uv venv`."
        )
    for name in _REAL:
        real = _distribution(name)
        if real is not None and not _is_ours(real):
            raise StandInError(f"{name} {real.version} is installed here. Uninstall it first: `pip uninstall {name}`.")
    if (folder / "tensorflow").exists() and _distribution("tensorflow") is None:
        raise StandInError(f"{folder / 'tensorflow'} exists, and no distribution says what it is.")
    remove()
    files = {
        "tensorflow/__init__.py": _PACKAGE,
        f"{_FOLDER}/METADATA": _METADATA,
        f"{_FOLDER}/INSTALLER": f"{_INSTALLER}\n",
        f"{_FOLDER}/top_level.txt": "tensorflow\n",
        f"{_FOLDER}/WHEEL": "Wheel-Version: 1.0\nGenerator: tapeflow\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{_FOLDER}/RECORD"] = _record(files)
    with tempfile.TemporaryDirectory(prefix="tapeflow-", dir=folder) as temporary:
        for path, text in files.items():
            target = Path(temporary, path)
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf8")
        for name in ("tensorflow", _FOLDER):  # the distribution last: it says that the package is there
            Path(temporary, name).replace(folder / name)
    return f"`import tensorflow` gives Tapeflow in {sys.prefix}, as tensorflow {VERSION}."


def remove() -> str:
    """Takes the stand-in away; gives a sentence about it."""
    found = _distribution("tensorflow")
    if found is None:
        return f"There is no stand-in in {sys.prefix}."
    if not _is_ours(found):
        raise StandInError(f"tensorflow {found.version} is TensorFlow itself: `pip uninstall tensorflow` removes it.")
    folder, folders = _site_packages(), ("tensorflow", f"tensorflow-{found.version}.dist-info")
    for path in found.files or ():
        (folder / path).unlink(missing_ok=True)
    for name in folders:
        shutil.rmtree(folder / name / "__pycache__", ignore_errors=True)
        if (folder / name).is_dir() and not any((folder / name).iterdir()):
            (folder / name).rmdir()
    return f"The stand-in is gone from {sys.prefix}."


def _site_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    """A distribution of this environment, wherever else the path leads."""
    found = importlib.metadata.distributions(name=name, path=[str(_site_packages()), sysconfig.get_path("platlib")])
    return next(iter(found), None)


def _is_ours(found: importlib.metadata.Distribution) -> bool:
    return (found.read_text("INSTALLER") or "").strip() == _INSTALLER


def _record(files: dict[str, str]) -> str:
    """The list of files with their checksums, as installers write it."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        writer.writerow([path, f"sha256={digest}", len(text.encode())])
    writer.writerow([f"{_FOLDER}/RECORD", "", ""])
    return lines.getvalue()
