"""`tf.register_tensor_conversion_function`: how objects of a program's own types become tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_other

_HEAP_TYPE = 1 << 9  # of a class that Python code made
_functions: list[tuple[int, int, Any, Callable[..., Any]]] = []  # by priority, then in the order they came


def _convert(value: Any, dtype: Any) -> Any:
    """What the core asks about objects it does not know."""
    for _, _, kinds, function in _functions:
        if isinstance(value, kinds):
            found = function(value, dtype=dtype, name=None, as_ref=False)
            if found is NotImplemented:
                continue
            if not _core.is_tensor(found):
                raise RuntimeError(
                    f"register_tensor_conversion_function: {function!r} returned {found!r}, not a tensor"
                )
            if dtype is not None and found.dtype.base_dtype != dtype:
                raise RuntimeError(
                    f"register_tensor_conversion_function: {function!r} returned {found.dtype!r}, not {dtype!r}"
                )
            return found
    return convert_other(value, dtype)


def _as_tensor(self: Any, dtype: Any = None, name: str | None = None) -> Any:
    found = _convert(self, dtype)
    if found is NotImplemented:
        raise TypeError(f"no registered function makes a tensor of {self!r}")
    return found


@public("register_tensor_conversion_function", "compat.v1.register_tensor_conversion_function")
def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Lets `conversion_func(value, dtype, name, as_ref)` make tensors of objects of a type; lower priorities go first.

    >>> class Meters:
    ...     def __init__(self, number):
    ...         self.number = number
    >>> def convert(value, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(value.number, dtype)
    >>> tf.register_tensor_conversion_function(Meters, convert)
    >>> tf.add(Meters(3.), 1.)
    <tf.Tensor: shape=(), dtype=float32, numpy=4.0>
    """
    kinds = base_type if isinstance(base_type, tuple) else (base_type,)
    if not kinds or not all(isinstance(kind, type) for kind in kinds):
        raise TypeError(f"Argument `base_type` must be a type or a tuple of types. Obtained: {base_type}")
    if any(issubclass(kind, int | float | np.generic | np.ndarray) for kind in kinds):
        raise TypeError("Cannot register conversions for Python numeric types and NumPy scalars and arrays.")
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func}.")
    _functions.append((priority, len(_functions), kinds, conversion_func))
    _functions.sort(key=lambda entry: entry[:2])
    _core.register_objects({"convert_other": _convert})
    for kind in kinds:  # so that operators know it
        if not hasattr(kind, "__tf_tensor__") and kind.__flags__ & _HEAP_TYPE:
            kind.__tf_tensor__ = _as_tensor
