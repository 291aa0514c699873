"""Builds the wheel and prints its size, packed and unpacked; for the peers, what is installed.

python benchmarks/wheel_size.py
"""

import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from compare import HERE, frameworks, print_table, run

INSTALLED = """
from importlib.metadata import files, packages_distributions
print(sum(f.locate().stat().st_size for f in files(packages_distributions()["{name}"][0]) if f.locate().exists()))
"""


def wheel(folder: str) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check", "-w", folder]
    if importlib.util.find_spec("scikit_build_core"):  # then nothing needs to be fetched
        command.append("--no-build-isolation")
    subprocess.run([*command, HERE.parent], check=True, stdout=sys.stderr)
    return next(Path(folder).glob("tapeflow-*.whl"))


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = wheel(folder)
        unpacked = sum(member.file_size for member in zipfile.ZipFile(path).infolist())
        rows = [["tapeflow", megabytes(path.stat().st_size), megabytes(unpacked)]]
    for name in [name for name in frameworks() if name != "tapeflow"]:
        rows.append([name, "-", megabytes(run(name, "-c", INSTALLED.format(name=name)))])
    print_table("Size without dependencies.", ["framework", "wheel", "installed"], rows)


if __name__ == "__main__":
    main()
