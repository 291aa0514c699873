"""`tf.profiler.experimental`: the blocks that a program names, with their times, as a file that TensorBoard shows."""

from __future__ import annotations

import gzip
import json
import os
import platform
import threading
import time
from types import TracebackType
from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import AlreadyExistsError, UnavailableError


@public("profiler.experimental.ProfilerOptions")
class ProfilerOptions(tuple[Any, ...]):
    """What a profile contains; blocks of the program are recorded where `host_tracer_level` is above 0.

    >>> tf.profiler.experimental.ProfilerOptions(host_tracer_level=1).host_tracer_level
    1
    """

    def __new__(
        cls,
        host_tracer_level: int = 2,
        python_tracer_level: int = 0,
        device_tracer_level: int = 1,
        delay_ms: int | None = None,
    ) -> ProfilerOptions:
        return tuple.__new__(cls, (host_tracer_level, python_tracer_level, device_tracer_level, delay_ms))

    host_tracer_level = property(lambda self: self[0])
    python_tracer_level = property(lambda self: self[1])
    device_tracer_level = property(lambda self: self[2])
    delay_ms = property(lambda self: self[3])


class _Session:
    """One profile: the folder, and what was recorded so far."""

    def __init__(self, logdir: str, options: ProfilerOptions) -> None:
        self.logdir, self.records_blocks = logdir, options.host_tracer_level > 0
        self.begin, self.began_at = time.perf_counter_ns(), time.time_ns()
        self.events: list[dict[str, Any]] = []

    def write(self) -> None:
        """Writes the blocks where TensorBoard looks for them: for its profile plugin, and as a Chrome trace."""
        folder = os.path.join(self.logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
        os.makedirs(folder, exist_ok=True)
        host = platform.node().partition(".")[0] or "localhost"
        process = {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "/host:CPU"}}
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": [process, *self.events]})
        with gzip.open(os.path.join(folder, f"{host}.trace.json.gz"), "wt", encoding="utf8") as file:
            file.write(text)
        with open(os.path.join(folder, f"{host}.xplane.pb"), "wb") as plane:
            plane.write(_space(self.events, self.began_at, host))


def _space(events: list[dict[str, Any]], began_at: int, host: str) -> bytes:
    """The blocks as an XSpace: a plane for the host with a line for each thread, times in picoseconds."""
    space = messages.XSpace(hostnames=[host])
    plane = space.planes.add(name="/host:CPU")
    line_by_thread: dict[int, Any] = {}
    for event in events:
        thread = event["tid"]
        if thread not in line_by_thread:
            line_by_thread[thread] = plane.lines.add(id=thread, name=f"python/{thread}", timestamp_ns=began_at)
        block = line_by_thread[thread].events.add(metadata_id=_named(plane.event_metadata, event["name"]))
        block.offset_ps, block.duration_ps = round(event["ts"] * 1e6), round(event["dur"] * 1e6)
        for name, value in event["args"].items():
            block.stats.add(metadata_id=_named(plane.stat_metadata, name), str_value=value)
    data: bytes = space.SerializeToString()
    return data


def _named(metadata_by_id: Any, name: str) -> int:
    """The number of a name in one of the plane's tables, which it enters if it is new."""
    for number, known in metadata_by_id.items():
        if known.name == name:
            return int(number)
    number = len(metadata_by_id) + 1
    metadata_by_id[number].id, metadata_by_id[number].name = number, name
    return number


_lock = threading.Lock()
_open: list[_Session] = []


@public("profiler.experimental.start")
def start(logdir: str, options: ProfilerOptions | None = None) -> None:
    """Begins to record; `stop` writes what was recorded below `logdir`.

    >>> tf.profiler.experimental.start("logs")
    >>> tf.profiler.experimental.stop()
    """
    with _lock:
        if _open:
            raise AlreadyExistsError.of("Another profiler is running.")
        _open.append(_Session(os.fspath(logdir), options or ProfilerOptions()))


@public("profiler.experimental.stop")
def stop(save: bool = True) -> None:
    """Ends the recording, and writes it unless `save` is False.

    >>> tf.profiler.experimental.start("logs")
    >>> tf.profiler.experimental.stop(save=False)
    """
    with _lock:
        if not _open:
            raise UnavailableError.of("Cannot export profiling results. No profiler is running.")
        session = _open.pop()
    if save:
        session.write()


@public("profiler.experimental.Profile")
class Profile:
    """A block that is recorded.

    >>> with tf.profiler.experimental.Profile("logs"):
    ...     with tf.profiler.experimental.Trace("step", step_num=1):
    ...         pass
    """

    def __init__(self, logdir: str, options: ProfilerOptions | None = None) -> None:
        self._logdir, self._options = logdir, options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        stop()


@public("profiler.experimental.Trace")
class Trace:
    """A block with a name in the profile; keyword arguments are shown beside it.

    >>> with tf.profiler.experimental.Trace("train", step_num=3, _r=1):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name, self._details = name, kwargs
        self._begin: int | None = None

    def __enter__(self) -> Trace:
        self._begin = time.perf_counter_ns() if _open else None
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds details that are shown beside the block."""
        self._details.update(kwargs)

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        begin = self._begin
        if begin is None or not _open:
            return
        session, end = _open[0], time.perf_counter_ns()
        if session.records_blocks and begin >= session.begin:
            event = {"ph": "X", "pid": 0, "tid": threading.get_ident() % 2**31, "name": self._name}
            event |= {"ts": (begin - session.begin) / 1000, "dur": (end - begin) / 1000}
            session.events.append({**event, "args": {name: str(value) for name, value in self._details.items()}})
