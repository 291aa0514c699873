"""Stretches of calls that run as graphs: small functions would take several times as long if all calls ran eagerly."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
import warnings
from dataclasses import asdict
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.numeric_probe import Probe
from tapeflow._src.ops.random.seeds import fork_copy

_FIRST_STEPS = 200  # which all run eagerly
_WATCHED = 10  # steps between two stretches
_SLOWEST = 3e-3  # seconds of an eager call: for slower ones watching is cheap enough
_TIMED = 50  # calls of the first stretch that is timed
_LONGEST = 5000
_SHARE = 0.4  # of the time of graphs, that watched steps may take in addition
_PATIENCE = 5  # seconds for the search of an origin
NON_FINITE = ("nan", "infinity", "bad-data")


class GraphStretches:
    """Decides when functions run as graphs, and keeps a copy of the process from before to look for a NaN's origin."""

    def __init__(self) -> None:
        self.asleep = False  # functions run as graphs
        self._replay: Replay | None = None  # from the beginning of a stretch, until one finite step after it
        self._steps = 0
        self._graph_seconds: float | None = None  # of one call
        self._copy_seconds = 0.0  # that the last copy took to make
        self._traced = False
        self._calls = 0  # of the stretch
        self._began, self._eager_before = time.process_time(), 0

    def has_woken(self) -> bool:
        """Whether a stretch just ended: functions run eagerly again."""
        if not self.asleep or not _core.get_run_eagerly():
            return False
        now = time.process_time()
        if self._traced:
            taken = (now - self._began) / self._calls
            self._graph_seconds = min(taken, self._graph_seconds or taken)
        self.asleep, self._traced, self._steps = False, True, 0
        self._began, self._eager_before = now, _core.eager_function_calls()
        return True

    def see_step(self, steps: int, needs_origins: bool) -> bool:
        """One more step that was watched: `steps` in all. Whether functions run as graphs from now on.

        `needs_origins` says that a NaN would be worth its origin. Then a copy is made, which goes on from here.
        """
        if self._replay is not None and self._replay.is_copy:
            self._steps += 1
            if self._steps > self._calls + _WATCHED:
                self.tell(None)
            return False
        if self.asleep or steps < _FIRST_STEPS:
            return False
        self._end_replay()
        self._steps += 1
        if steps == _FIRST_STEPS or self._steps < _WATCHED:
            if steps == _FIRST_STEPS:
                self._begin_watching()
            return False
        eager = _core.eager_function_calls() - self._eager_before
        seconds = time.process_time() - self._began
        calls = self._length(seconds + self._copy_seconds, eager)
        if not calls or not _core.get_run_eagerly() or (needs_origins and not Probe.possible()):
            self._begin_watching()
            return False
        self._calls, self._steps = calls, 0
        if needs_origins:
            self._replay = Replay()
            self._replay.start()
            if self._replay.is_copy:
                return False
        self.asleep, before = True, self._began + seconds
        self._began = time.process_time()
        self._copy_seconds = self._began - before
        _core.run_as_graphs(calls)
        return True

    def _begin_watching(self) -> None:
        self._steps, self._began, self._eager_before = 0, time.process_time(), _core.eager_function_calls()

    def _length(self, seconds: float, eager: int) -> int:
        """The calls of the next stretch, after so many eager ones in so many seconds; 0 for none."""
        if not eager or seconds / eager > _SLOWEST:
            return 0
        if self._graph_seconds is None:
            return _TIMED if self._traced else 2
        calls = int((seconds / self._graph_seconds - (1 + _SHARE) * eager) / _SHARE)
        return min(calls, _LONGEST) if calls >= _WATCHED else 0

    def were_unseen(self) -> bool:
        """Whether functions ran as graphs since the last step that was watched."""
        return self.asleep or self._replay is not None

    def ask(self) -> Finding | None:
        """Where a value came from that is not finite since the last stretch."""
        return None if self._replay is None or self._replay.is_copy else self._replay.ask()

    def tell(self, finding: Finding | None) -> None:
        """In the copy: says what was found."""
        if self._replay is not None and self._replay.is_copy:
            self._replay.tell(finding)

    def finish(self) -> Finding | None:
        """The program ends: what the last stretch may have spoiled unseen."""
        self.tell(None)
        found = self.ask() if self.asleep else None
        self._end_replay()
        return found

    def _end_replay(self) -> None:
        if self._replay is not None:
            self._replay.end()
            self._replay = None


class Replay:
    """A copy of the process that waits, and goes on eagerly if it is asked where a value that is not finite came from.

    It can neither open nor write files, and its output goes nowhere.
    """

    def __init__(self) -> None:
        self.is_copy = False
        self._process, self._order, self._answer = 0, -1, -1

    def start(self) -> None:
        """Makes the copy. Returns in it, too, when it shall go on."""
        order, to_copy = os.pipe()
        from_copy, answer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that there are other threads
            self._process = fork_copy()
        if self._process:
            os.close(order)
            os.close(answer)
            self._order, self._answer = to_copy, from_copy
            return
        os.close(to_copy)
        os.close(from_copy)
        if not os.read(order, 1):
            os._exit(0)
        self.is_copy, self._answer = True, answer
        signal.alarm(_PATIENCE)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (a notebook has its own)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))

    def tell(self, finding: Finding | None) -> None:
        """In the copy: sends a finding about a value that is not finite, and ends."""
        if finding is None or finding.kind in NON_FINITE:
            with contextlib.suppress(OSError):
                os.write(self._answer, json.dumps(finding and asdict(finding)).encode())
            os._exit(0)

    def ask(self) -> Finding | None:
        """What the copy finds in the steps that ran as graphs."""
        answer = b""
        with contextlib.suppress(OSError, EOFError):
            os.write(self._order, b"!")
            ready, _, _ = select.select([self._answer], [], [], _PATIENCE + 1)
            answer = os.read(self._answer, 1 << 16) if ready else b""
        facts: dict[str, Any] | None = json.loads(answer) if answer else None
        self.end()
        return Finding(**facts) if facts else None

    def end(self) -> None:
        """Lets the copy go."""
        if self._order < 0:
            return
        os.close(self._order)
        os.close(self._answer)
        self._order = -1
        with contextlib.suppress(OSError):
            os.kill(self._process, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self._process, 0)
