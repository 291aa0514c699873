"""The types of Tapeflow's values and of what is known about them; none of them computes."""

from tapeflow.types import (
    dtypes,
    enums,
    errors,
    example,
    indexed_slices,
    logging,
    nest,
    sparse_tensor,
    tensor_kinds,
    tensor_shape,
    tensor_spec,
    text,
    trackable,
    version,
)
