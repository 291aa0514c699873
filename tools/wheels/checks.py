"""Checks a wheel: its platform tag by auditwheel, its size, and its work in a fresh virtual environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.wheels.targets import Target, interpreter

LARGEST = 6_000_000
NEEDED = ("pytest>=8", "hypothesis", "scipy")
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


def check_work(wheel: Path, target: Target, source: Path) -> bool:
    """Imports it, runs the examples and tests. False where no such Python or processor is here to do so."""
    base = interpreter(target.python)
    if base is None or target.arch != os.uname().machine:
        return False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("tests", "examples"):  # not the package: the installed one is meant
            shutil.copytree(source / name, place / name)
        (place / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\npythonpath = .\n")
        subprocess.run([base, "-m", "venv", place / "venv"], check=True)
        binaries = place / "venv" / "bin"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

        def run(program: str, *arguments: str | Path) -> None:
            subprocess.run([binaries / program, *arguments], cwd=place, env=environment, check=True)

        run("python", "-m", "pip", "install", "-q", wheel.resolve(), *NEEDED)
        run("python", "-c", TRY)
        for example in EXAMPLES:
            run("tapeflow", "run", f"examples/{example}")
        run("python", "-m", "pytest", "-q", *TESTS)
    return True
