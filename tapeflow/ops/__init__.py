"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    activations,
    arrays,
    clip,
    constants,
    conversion,
    convolutions,
    ctc,
    embeddings,
    linalg,
    losses,
    math,
    normalization,
    pools,
    quantization,
    windows,
)
