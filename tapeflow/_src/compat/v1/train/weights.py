"""Weights of losses and metrics: they must broadcast to the values that they weigh, dimension by dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.effects.host_call import host_effect
from tapeflow._src.types.errors import InvalidArgumentError


def check_weights(values: Any, weights: Any) -> None:
    """An error if the weights are no number and do not have the rank of the values, with sizes that are equal or 1."""
    if not weights.shape.rank or values.shape.rank is None:
        return
    have, wanted = weights.shape.as_list(), values.shape.as_list()
    if len(have) != len(wanted):
        raise ValueError(
            f"weights can not be broadcast to values. values.rank={len(wanted)}. weights.rank={len(have)}. "
            f"values.shape={values.shape}. weights.shape={weights.shape}. Received weights={weights}, values={values}"
        )
    for axis, (a, b) in enumerate(zip(have, wanted)):
        if a is not None and b is not None and a not in (1, b):
            raise ValueError(
                f"weights can not be broadcast to values. Mismatch at dim {axis}. values.shape={wanted}, "
                f"weights.shape={have}. Received weights={weights}, values={values}"
            )


def require_broadcastable(values: Any, weights: Any) -> Any:
    """An operation that fails unless `check_weights` holds when the graph runs; None if the shapes tell already."""
    check_weights(values, weights)
    if weights.shape.rank == 0 or (weights.shape.is_fully_defined() and values.shape.is_fully_defined()):
        return None

    def check(have: Any, wanted: Any) -> None:
        sizes, others = np.asarray(have).tolist(), np.asarray(wanted).tolist()
        fits = not sizes or (len(sizes) == len(others) and all(a in (1, b) for a, b in zip(sizes, others)))
        if not fits:
            raise InvalidArgumentError.of(
                f"weights can not be broadcast to values. weights.shape={sizes}. values.shape={others}."
            )

    return host_effect(check, [find_public("shape")(weights), find_public("shape")(values)])
