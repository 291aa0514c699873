"""Every conformance check in scope is one test here; a shard of checks shares one process of `conformance/run.py`.

Run with `--dist loadgroup` (as `make test` does), so that a shard runs once and shards run side by side.
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tapeflow
from tests import conformance_scope as scope

FOLDER = Path(__file__).parent / "conformance"
CHECKS = json.loads((FOLDER / "goldens" / "index.json").read_text())["checks"]
SELECTED = [check for check in CHECKS if scope.in_scope(check)]
SHARD_SIZE = 100


@functools.cache
def shard_results(number: int, scratch: Path) -> dict:
    """Runs one shard in a fresh process; the result of each check by its id."""
    ids = [check["id"] for check in SELECTED[number * SHARD_SIZE :][:SHARD_SIZE]]
    report = scratch / f"shard{number}.json"
    pattern = "^(" + "|".join(map(re.escape, ids)) + ")$"
    command = [sys.executable, FOLDER / "run.py", "--jobs", "1", "--filter", pattern, "--json", report]
    run = subprocess.run(command, cwd=Path(tapeflow.__file__).parents[1], capture_output=True, text=True)
    assert report.exists(), f"run.py wrote no report:\n{run.stdout}{run.stderr}"
    return {result["id"]: result for result in json.loads(report.read_text())["results"]}


def check_parameters():
    for position, check in enumerate(SELECTED):
        shard = position // SHARD_SIZE
        yield pytest.param(shard, check["id"], id=check["id"], marks=pytest.mark.xdist_group(f"conformance{shard}"))


@pytest.mark.parametrize("shard, check_id", list(check_parameters()))
def test_check(shard, check_id, tmp_path_factory):
    result = shard_results(shard, tmp_path_factory.getbasetemp())[check_id]
    assert result["ok"], result["why"]


def test_scope_selects_checks_in_every_area():
    assert {check["area"] for check in SELECTED} == set(scope.AREAS)
    assert {check["kind"] for check in SELECTED} == scope.KINDS


def test_scope_mentions_everything():
    assert {check["area"] for check in CHECKS} == scope.AREAS.keys() | scope.LATER_AREAS
    assert {check["kind"] for check in CHECKS} == scope.KINDS | scope.LATER_KINDS.keys()
    for pattern in (*scope.LATER_IDS, *scope.WRONG_IDS):
        assert any(re.search(pattern, check["id"]) for check in CHECKS), f"{pattern} matches no check"
