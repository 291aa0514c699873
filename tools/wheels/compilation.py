"""Compiles the extension module with the C++ compiler of the package `ziglang`, for any processor and an old glibc."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy
import ziglang

from tools.wheels.targets import GLIBC, Target

ZIG = Path(ziglang.__file__).parent


def module(source: Path, build: Path, target: Target, jobs: int) -> Path:
    """The module for `target`. Wheels of one processor share a build folder: only core/python is compiled for each."""
    compiler = build / "c++"
    build.mkdir(parents=True, exist_ok=True)
    command = shlex.join([sys.executable, "-m", "ziglang", "c++", "-target", f"{target.arch}-linux-gnu.{GLIBC}"])
    compiler.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    compiler.chmod(0o755)
    settings = {
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": target.arch,
        "CMAKE_MODULE_LINKER_FLAGS": "-s",
        "CCACHE": "OFF",
        "Python_EXECUTABLE": sys.executable,
        "TAPEFLOW_PYTHON_INCLUDE": ";".join(map(str, [*target.headers, numpy.get_include()])),
        "TAPEFLOW_PYTHON_SUFFIX": target.module_suffix,
    }
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", *defined], check=True)
    subprocess.run(["cmake", "--build", build, "-j", str(jobs)], check=True)
    return build / f"_core{target.module_suffix}"


def compiler_version() -> str:
    """The version of LLVM, whose C++ library is linked into the module."""
    command = [sys.executable, "-m", "ziglang", "c++", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search(r"clang version (\d+(?:\.\d+)*)", said)[1]


def bundled_licences() -> dict[str, Path]:
    """The licence files of what the compiler links into the module, by the name of the part."""
    return {name: ZIG / "lib" / name / "LICENSE.TXT" for name in ("libcxx", "libcxxabi", "libunwind")}
