"""`tf.math.sobol_sample`: points that fill a cube evenly; the direction numbers are SciPy's, loaded when needed."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError

_MOST_DIMENSIONS = 21200


@public("math.sobol_sample", "compat.v1.math.sobol_sample")
def sobol_sample(dim: Any, num_results: Any, skip: Any = 0, dtype: Any = float32, name: str | None = None) -> Any:
    """Points (num_results, dim) of the Sobol sequence, without the first, the origin, and `skip` more; it needs SciPy.

    >>> tf.math.sobol_sample
    <function sobol_sample at ...>
    """
    dim, count, skip = int(dim), int(num_results), int(skip)
    if dim < 1 or dim > _MOST_DIMENSIONS:
        limit = "at least one" if dim < 1 else f"at most {_MOST_DIMENSIONS}"
        raise InvalidArgumentError.of(f"math.sobol_sample: dim must be {limit}; got {dim}")
    if count < 0 or skip < 0:
        raise InvalidArgumentError.of(
            f"math.sobol_sample: num_results and skip must not be negative; got {count} and {skip}"
        )
    try:
        from scipy.stats import qmc  # a large import that only this function pays for
    except ImportError:
        raise UnimplementedError.of(
            "math.sobol_sample needs the package SciPy, which is not installed: pip install scipy"
        ) from None
    sequence = qmc.Sobol(dim, scramble=False).fast_forward(skip + 1)
    found = sequence.random(count) if count else sequence.random(1)[:0]
    wanted = as_dtype(dtype)
    return convert_to_tensor(found.astype(wanted.as_numpy_dtype))
