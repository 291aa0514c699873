"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    arrays,
    clip,
    constants,
    conversion,
    linalg,
    math,
    nn,
    numpy_api,
    reductions,
    special,
)
