"""The corpus: precision, recall and exact lines of the doctor on broken programs, and silence on healthy ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.diagnostics.corpus.programs import families, read_family

ROOT = Path(__file__).parents[2]
NUMBERS = {"none": 200, "nan": 80, "partly": 60, "health": 60, "healthy": 200}


def group_of(program):
    return "healthy" if program.kinds == ("healthy",) else program.family.removeprefix("v1_").split("_")[0]


@pytest.fixture(scope="module")
def results():
    """For each program, what the doctor found: each family in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    found = []
    for path in families():
        run = subprocess.run(
            [sys.executable, "-m", "tests.diagnostics.corpus.runner", str(path)],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr[-2000:]
        found += zip(read_family(path), json.loads(run.stdout))
    return found


def alarms(result):
    return [f for f in result["findings"] if f[1] != "hint"]


def judged(results, group):
    """How many programs were named rightly, at the right line, how many there are, and how many findings were wrong."""
    mine = [(p, r) for p, r in results if group_of(p) == group]
    right = [any(f[0] in p.kinds for f in r["findings"]) for p, r in mine]
    line = [any(f[0] in p.kinds and f[3] in p.lines and f[2] == p.file for f in r["findings"]) for p, r in mine]
    wrong = [sum(f[0] not in p.kinds for f in alarms(r)) for p, r in mine]
    missed = [p.name for (p, _), found in zip(mine, line) if not found]
    return sum(right), sum(line), len(mine), sum(wrong), missed


def test_there_are_enough_programs(results):
    counts = {group: sum(group_of(p) == group for p, _ in results) for group in NUMBERS}
    assert all(counts[group] >= least for group, least in NUMBERS.items()), counts
    assert all(p.lines for p, _ in results if p.kinds != ("healthy",))


def test_the_doctor_itself_does_not_fail(results):
    assert [(p.name, r["failed"]) for p, r in results if r["failed"]] == []


@pytest.mark.parametrize("group", ["none", "nan", "partly", "health"])
def test_precision_recall_and_lines(results, group):
    right, line, count, wrong, missed = judged(results, group)
    assert right >= 0.95 * count, missed  # recall
    assert right >= 0.95 * (right + wrong)  # precision
    assert line >= 0.95 * count, missed


def test_the_variable_is_named(results):
    asked = [(p, r) for p, r in results if p.variable is not None]
    named = [any(f[0] in p.kinds and p.variable in str(f[6]) for f in r["findings"]) for p, r in asked]
    assert sum(named) >= 0.95 * len(asked), [p.name for (p, _), found in zip(asked, named) if not found]


def test_healthy_programs_get_no_alarm(results):
    healthy = [(p, r) for p, r in results if group_of(p) == "healthy"]
    false = [(p.name, alarms(r), r["error"]) for p, r in healthy if alarms(r) or r["error"]]
    assert len(false) <= 0.02 * len(healthy), false
