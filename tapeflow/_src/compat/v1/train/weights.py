"""Weights of losses and metrics: they must broadcast to the values that they weigh, dimension by dimension."""

from __future__ import annotations

from typing import Any


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
