"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    arrays,
    candidates,
    clip,
    constants,
    conversion,
    initializers,
    linalg,
    math,
    nn,
    random,
    random_seed,
    signal,
    spectral,
    stateless_random,
    windows,
)
