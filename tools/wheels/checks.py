"""Checks a wheel: its platform tag by auditwheel, its size, and its work in a fresh virtual environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.wheels.targets import Target, interpreter

LARGEST = 6_000_000
NEEDED = ("pytest>=8", "hypothesis", "scipy")
OLDER = (27, 26, 24, 17)  # of manylinux, which wheels of other projects name
EXAMPLES = ("hessian.py", "meta_learning.py", "physics_informed.py")
TESTS = (
    "tests/core/test_tensor.py",
    "tests/autodiff/test_functional.py",
    "tests/autodiff/test_higher_order.py",
    "tests/types/test_dtypes.py",
    "tests/types/test_nest.py",
    "tests/types/test_tensor_shape.py",
)
TRY = "import tapeflow as tf; assert tf.autodiff.grad(lambda x: x**3)(2.0).numpy() == 12.0; print(tf.__file__)"


class WheelError(Exception):
    """A wheel that must not be published."""


def check_tag(wheel: Path, target: Target) -> None:
    """By auditwheel: the symbols of the module must be in glibc 2.28."""
    said = subprocess.run(["auditwheel", "show", wheel], capture_output=True, text=True, check=True).stdout
    found = re.search(r'platform tag: "manylinux_2_(\d+)_(\w+)"', " ".join(said.split()))
    if not found or int(found[1]) > int(target.platform_tag.split("_")[2]) or found[2] != target.arch:
        raise WheelError(f"{wheel.name} is not what its tag says:\n{said}")


def check_size(wheel: Path) -> None:
    if wheel.stat().st_size > LARGEST:
        raise WheelError(f"{wheel.name} has {wheel.stat().st_size:,} bytes; at most {LARGEST:,} are allowed")


def check_work(wheel: Path, target: Target, source: Path, command: Sequence[str] = ()) -> bool:
    """Imports it, runs the examples and tests. False where no such Python or processor is here to do so.

    `command` runs a Python that is not installed here, for example by an emulator of its processor.
    """
    base = interpreter(target.python)
    if not command and (base is None or target.arch != os.uname().machine):
        return False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("tests", "examples"):  # not the package: the installed one is meant
            shutil.copytree(source / name, place / name)
        (place / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\npythonpath = .\n")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if command:
            python, tapeflow = command, (*command, "-m", "tapeflow")
            environment["PYTHONPATH"] = str(_install_for(target, wheel, place / "site"))
        else:
            binaries = _install(base, wheel, place / "venv")
            python, tapeflow = (binaries / "python",), (binaries / "tapeflow",)
        examples = [(*tapeflow, "run", f"examples/{example}") for example in EXAMPLES]
        for program in ((*python, "-c", TRY), *examples, (*python, "-m", "pytest", "-q", *TESTS)):
            subprocess.run(program, cwd=place, env=environment, check=True)
    return True


def _install(base: Path, wheel: Path, environment: Path) -> Path:
    """Installs the wheel in a fresh virtual environment and returns the folder of its programs."""
    subprocess.run([base, "-m", "venv", environment], check=True)
    binaries = environment / "bin"
    subprocess.run([binaries / "python", "-m", "pip", "install", "-q", wheel.resolve(), *NEEDED], check=True)
    return binaries


def _install_for(target: Target, wheel: Path, folder: Path) -> Path:
    """Installs the wheel and what it needs for another Python or processor in `folder`, which it returns."""
    platforms = (
        target.platform_tag,
        *(f"manylinux_2_{minor}_{target.arch}" for minor in OLDER),
        f"manylinux2014_{target.arch}",
    )
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", folder, "--only-binary", ":all:"]
    command += ["--python-version", target.python, "--implementation", "cp"]
    command += [part for platform in platforms for part in ("--platform", platform)]
    subprocess.run([*command, wheel.resolve(), *NEEDED], check=True)
    return folder
