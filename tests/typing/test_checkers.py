"""The printed stubs, as type checkers read them; `tools.check_stubs` compares them with the package."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tapeflow

HERE = Path(__file__).parent
STUBS = Path(tapeflow.__file__).with_suffix(".pyi")

pytestmark = pytest.mark.skipif(not STUBS.exists(), reason="no stubs; `make build` prints them")


def run_pyright(file: Path) -> list[int]:
    """The lines in which pyright finds errors."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, file.name]
    output = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False).stdout
    found = json.loads(output)["generalDiagnostics"]
    return sorted({row["range"]["start"]["line"] + 1 for row in found if row["severity"] == "error"})


def run_mypy(file: Path) -> list[int]:
    """The lines in which mypy finds errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", file.name]
    output = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False).stdout
    return sorted({int(line) for line in re.findall(rf"^{file.name}:(\d+): error", output, re.MULTILINE)})


@pytest.mark.parametrize("check", [run_pyright, run_mypy])
def test_a_correct_program_has_no_errors(check):
    assert check(HERE / "training.py") == []


@pytest.mark.parametrize("check", [run_pyright, run_mypy])
def test_mistakes_are_found(check):
    file = HERE / "mistakes.py"
    wrong = [number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# wrong")]
    assert len(wrong) > 10
    assert check(file) == wrong


def test_the_correct_program_runs(tmp_path):
    result = subprocess.run([sys.executable, str(HERE / "training.py")], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "accuracy" in result.stdout


def test_stubs_have_docs():
    text = STUBS.read_text()
    assert "def reduce_sum(input_tensor: " in text
    assert "Gradient:" in text
