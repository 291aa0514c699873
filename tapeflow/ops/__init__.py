"""Compositions: public functions over the primitives of the core, one file per family."""

from tapeflow.ops import (
    arrays,
    clip,
    conjugate_gradient,
    constants,
    conversion,
    diagonals,
    einsum,
    factorizations,
    linalg,
    linear_operator,
    linear_operator_banded,
    linear_operator_combined,
    linear_operator_simple,
    math,
    nn,
    reductions,
    special,
)
