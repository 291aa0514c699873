"""Random numbers that have no public name."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import float32

_draw = find_public("raw_ops.ParameterizedTruncatedNormal")


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Normal numbers between bounds, with means, deviations and bounds for each row."""
    means, stddevs, minvals, maxvals = (convert_to_tensor(x, dtype) for x in (means, stddevs, minvals, maxvals))
    return _draw(shape=shape, means=means, stdevs=stddevs, minvals=minvals, maxvals=maxvals, seed2=seed or 0)
