"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    arrays,
    clip,
    constants,
    conversion,
    debugging,
    hashing,
    indexing,
    linalg,
    math,
    nn,
    printing,
    quantization,
    ragged,
    raw,
    segments,
    sets,
    sorting,
    spacing,
    sparse,
    strings,
)
