"""Python functions inside a computation: `tf.py_function` and `tf.numpy_function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow import _core
from tapeflow.namespace import public
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.types.dtypes import as_dtype
from tapeflow.types.errors import InvalidArgumentError


def _outputs(result: Any, types: Any, convert: Callable[[Any, Any], Any]) -> Any:
    """The results of a call as tensors of the promised types: a list if a list of types is given."""
    if not isinstance(types, list | tuple):
        return convert(result, as_dtype(types))
    values = list(result) if isinstance(result, list | tuple) else [] if result is None else [result]
    if len(values) < len(types):
        raise InvalidArgumentError(
            None, None, f"py_function: Tout promises {len(types)} results; the function returned {len(values)}"
        )
    return [convert(value, as_dtype(dtype)) for value, dtype in zip(values, types)]


@public("py_function")
def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls a Python function with tensors; gradients flow through the operations it runs.

    >>> tf.py_function(lambda x: x * 2., [3.], tf.float32)
    6.0
    """
    if func is None:
        return functools.partial(_decorated, py_function, Tout)
    result = func(*[convert_to_tensor(x) for x in inp])

    def convert(value: Any, dtype: Any) -> Any:
        if _core.is_tensor(value) and value.dtype != dtype:
            raise InvalidArgumentError(
                None, None, f"py_function: Tout promises {dtype.name}; the function returned {value.dtype.name}"
            )
        return convert_to_tensor(0 if value is None else value, dtype=dtype)

    return _outputs(result, Tout, convert)


def _decorated(function: Callable[..., Any], types: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """`@tf.py_function(Tout=...)` above a function."""
    return functools.wraps(func)(lambda *args: function(func, list(args), types))


@public("numpy_function")
def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function with NumPy arrays. No gradient flows through it.

    >>> tf.numpy_function(lambda x: x + x, [3.], tf.float32)
    6.0
    """
    if func is None:
        return functools.partial(_decorated, numpy_function, Tout)
    arrays = [convert_to_tensor(x).numpy() for x in inp]
    with _core.StopRecording(True):
        result = func(*arrays)
    return _outputs(result, Tout, lambda value, dtype: cast(convert_to_tensor(value), dtype))
