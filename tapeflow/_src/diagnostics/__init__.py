"""Answers about a tape: why a gradient is None, what the tape holds, what it looks like."""

from tapeflow._src.diagnostics import first_nan, last_none
from tapeflow._src.namespace import public_later

public_later(
    "tapeflow._src.diagnostics.profiler",
    *(f"profiler.experimental.{name}" for name in ("Profile", "ProfilerOptions", "Trace", "start", "stop")),
)
public_later("tapeflow._src.diagnostics.doctor", "debugging.Doctor")
public_later("tapeflow._src.diagnostics.entrances.keras_callback", "debugging.doctor_callback")
public_later("tapeflow._src.diagnostics.entrances.notebook", "load_ipython_extension", "unload_ipython_extension")
