"""Answers about a tape: why a gradient is None, what the tape holds, what it looks like."""

from tapeflow._src.diagnostics import first_nan
