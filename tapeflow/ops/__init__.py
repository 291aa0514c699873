"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    activations,
    arrays,
    boxes,
    clip,
    color,
    constants,
    conversion,
    convolutions,
    ctc,
    embeddings,
    image,
    linalg,
    losses,
    math,
    normalization,
    pools,
    quantization,
    resize,
    windows,
)
