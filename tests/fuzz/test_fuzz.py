"""Mutated calls of every public function and mutated inputs of every reader, in processes of their own.

A call may refuse its arguments; it must not end the process, hang, run out of memory without TensorFlow's error, or
fail inside. `make fuzz` runs `python -m tests.fuzz.test_fuzz SECONDS`, with other seeds and more calls.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import tapeflow as tf
from tests.fuzz.corpus import CALLS, REFUSED
from tests.fuzz.readers import readers
from tests.fuzz.seeds import all_seeds

ROOT = Path(__file__).parents[2]


def fuzz(what: str, seed: int, count: int, first: int, last: int) -> list[str]:
    """What was found wrong, a line each. A call that ends the process is passed over, and the rest goes on."""
    found = []
    while first < last:
        log = Path(tempfile.mkstemp(prefix="tapeflow-fuzz-")[1])
        command = [sys.executable, "-m", "tests.fuzz.child", what, str(log), *map(str, (seed, count, first, last))]
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        lines = log.read_text(encoding="utf8").splitlines()
        log.unlink()
        found += [line for line in lines if line.startswith("FOUND")]
        if lines and lines[-1] == "done":
            break
        at = next((line for line in reversed(lines) if line.startswith("call")), f"call {first} before the first")
        how = signal.Signals(-child.returncode).name if child.returncode < 0 else f"exit {child.returncode}"
        found.append(f"ENDED {how} {at}: {child.stderr[-600:]}")
        first = int(at.split()[1]) + 1
    return found


def test_mutated_calls():
    assert fuzz("calls", 1, 5, 0, len(all_seeds())) == []


def test_mutated_inputs_of_readers():
    assert fuzz("readers", 1, 200, 0, len(readers())) == []


@pytest.mark.parametrize("call", CALLS)
def test_what_was_found_before_stays_mended(call):
    """In the same process: all of these return or raise."""
    with pytest.raises(REFUSED):
        eval(call, {"tf": tf, "np": __import__("numpy")})


def _for_seconds(seconds: float) -> int:
    """Fuzzes with new seeds until the time is over; gives the number of findings."""
    end = time.monotonic() + seconds
    seed, count, calls = random.SystemRandom().randrange(2**32), 0, 0
    seeds, sources = len(all_seeds()), len(readers())
    while time.monotonic() < end:
        seed += 1
        found = fuzz("calls", seed, 20, 0, seeds) + fuzz("readers", seed, 200, 0, sources)
        calls += 20 * seeds + 200 * sources
        count += len(found)
        for line in found:
            print(f"seed {seed}: {line}", flush=True)
        print(f"{calls} calls, {count} findings", flush=True)
    return count


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(min(_for_seconds(float(sys.argv[1])), 1))
