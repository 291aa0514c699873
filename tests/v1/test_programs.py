"""Programs written for TensorFlow 1 run unchanged with `tapeflow run`, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "from_tensorflow_1.md").read_text()


def run(path):
    done = subprocess.run(
        [sys.executable, "-m", "tapeflow", "run", str(path)], capture_output=True, text=True, cwd=HERE.parents[1]
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("name", "expected"), [("word_vectors", "fell"), ("classifier", "300 True True"), ("recurrent", "fell")]
)
def test_programs(name, expected):
    assert run(HERE / "programs" / f"{name}.py") == expected


def test_both_styles_give_equal_numbers(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for i, block in enumerate(blocks):
        (tmp_path / f"{i}.py").write_text(block)
        found = run(tmp_path / f"{i}.py")
        assert f"    {found}\n" in PAGE, found
