"""What a wheel is for: a version of CPython, a processor, and the headers of that Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

GLIBC = "2.28"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROCESSORS = ("x86_64", "aarch64")
INCLUDE = "import sysconfig; print(sysconfig.get_path('include'))"


@dataclass(frozen=True)
class Target:
    python: str  # "3.13"
    arch: str  # "aarch64"
    headers: tuple[Path, ...]  # folders of Python's headers

    @property
    def interpreter_tag(self) -> str:
        return "cp" + self.python.replace(".", "")

    @property
    def platform_tag(self) -> str:
        return f"manylinux_{GLIBC.replace('.', '_')}_{self.arch}"

    @property
    def tag(self) -> str:
        return f"{self.interpreter_tag}-{self.interpreter_tag}-{self.platform_tag}"

    @property
    def module_suffix(self) -> str:
        return f".cpython-{self.python.replace('.', '')}-{self.arch}-linux-gnu.so"


def interpreter(python: str) -> Path | None:
    """An installed CPython of this version: this one, one of pyenv's, or one on the PATH."""
    if python == "{}.{}".format(*sys.version_info):
        return Path(sys.executable)
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for candidate in [*sorted(root.glob(f"versions/{python}.*/bin/python{python}")), shutil.which(f"python{python}")]:
        if candidate and subprocess.run([candidate, "-c", "import ctypes"], capture_output=True).returncode == 0:
            return Path(candidate)
    return None


def headers(python: str, given: list[Path]) -> tuple[Path, ...] | None:
    """The folders of `Python.h` and `pyconfig.h`, which are alike on the 64-bit processors of Linux."""
    if given:
        return tuple(given)
    found = interpreter(python)
    if found is None:
        return None
    if found == Path(sys.executable):
        folder = Path(sysconfig.get_path("include"))
    else:
        folder = Path(subprocess.run([found, "-c", INCLUDE], capture_output=True, text=True, check=True).stdout.strip())
    return (folder,) if (folder / "Python.h").exists() else None
