"""Functions as graphs: tracing, signatures, and AutoGraph."""

from tapeflow.function import autograph, autograph_api
