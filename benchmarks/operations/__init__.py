"""The rows of op_by_op.py, by topic: name: (arguments, Tapeflow, PyTorch[, NumPy and JAX]).

The last function takes `numpy` or `jax.numpy`; JAX compiles it. A function may be None where a library lacks the
operation. The gradient is asked for all arguments that are floating or complex.
"""

from operations import dtypes, layouts, linear_algebra, movement, networks, usual

ROWS = usual.ROWS | layouts.ROWS | movement.ROWS | dtypes.ROWS | linear_algebra.ROWS | networks.ROWS
WITHOUT_GRADIENT = {"sign", "floor", "greater", "zeros_like", "count_nonzero", "is_nan", "one_hot"}
NO_GRADIENT = (
    "random",
    "arg",
    "fmod",
    "round",
    "cast int",
    "cast to bool",
    "unique",
    "searchsorted",
    "range",
    "linspace",
)
WITHOUT_GRADIENT |= {name for name in ROWS if name.startswith((*NO_GRADIENT, "eye", "bincount"))}
