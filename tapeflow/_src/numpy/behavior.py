"""`experimental_enable_numpy_behavior`: NumPy's methods and dtype promotion on tensors and variables themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public, public, registered_definitions
from tapeflow._src.numpy.arithmetic import around
from tapeflow._src.numpy.arrays import clip, reshape, transpose
from tapeflow._src.numpy.conversion_modes import set_dtype_conversion_mode
from tapeflow._src.numpy.indexing import needs_numpy_rules, take_like_numpy
from tapeflow._src.numpy.weak_types import state
from tapeflow._src.ops.arrays.conversion import cast

# Python's operators, and the function of tf.experimental.numpy that each becomes.
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_REDUCTIONS = ("max", "min", "mean")

_changed: set[str] = set()  # what must be wrapped only once


def _reshaped(self: Any, *newshape: Any, order: str = "C") -> Any:
    return reshape(self, newshape[0] if len(newshape) == 1 else newshape, order)


def _transposed(self: Any, *axes: Any) -> Any:
    return transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _indexed(plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, key: take_like_numpy(self, key) if needs_numpy_rules(key) else plain(self, key)


@public("experimental.numpy.experimental_enable_numpy_behavior")
def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Gives tensors NumPy's methods and lets operators mix dtypes, from now on in this process.

    In the mode "legacy" dtypes mix as NumPy has it. In "all" and "safe" numbers without a dtype are weak and give way
    to the dtypes beside them; "safe" refuses promotions that may lose values or double the width. With
    `prefer_float32`, Python's floats count as float32.

    >>> tf.experimental.numpy.experimental_enable_numpy_behavior
    <function experimental_enable_numpy_behavior at ...>
    """
    state.prefer_float32 = prefer_float32
    take_numpy_behavior()
    set_dtype_conversion_mode(dtype_conversion_mode)


def take_numpy_behavior() -> None:
    """Gives tensors and variables NumPy's methods and operators; once."""
    if "operators" in _changed:
        return
    _changed.add("operators")
    functions: dict[str, Any] = registered_definitions()
    for cls in (_core.Tensor, find_public("Variable")):
        setattr(cls, "__getitem__", _indexed(cls.__getitem__))  # noqa: B010
    for cls in (_core.Tensor, _core.Variable):
        for name, path in _OPERATORS.items():
            function = functions[f"experimental.numpy.{path}"]
            setattr(cls, f"__{name}__", _method(function))
            setattr(cls, f"__r{name}__", _reflected(function))
        for name, path in _COMPARISONS.items():
            setattr(cls, f"__{name}__", _method(functions[f"experimental.numpy.{path}"]))
        for name in _REDUCTIONS:
            setattr(cls, name, _method(functions[f"experimental.numpy.{name}"]))
        for name, member in _MEMBERS.items():
            setattr(cls, name, member)
        for name in ("ravel", "flatten"):
            setattr(cls, name, _method(functions["experimental.numpy.ravel"]))


_MEMBERS: dict[str, Any] = {
    "astype": lambda self, dtype: cast(self, dtype),
    "clip": _method(clip),
    "reshape": _reshaped,
    "transpose": _transposed,
    "tolist": lambda self: self.numpy().tolist(),
    "T": property(lambda self: transpose(self)),
    "data": property(lambda self: self),
    "ndim": property(lambda self: self.shape.rank),
    "size": property(lambda self: self.shape.num_elements()),
    "__round__": lambda self, decimals=0: around(self, decimals),
}
