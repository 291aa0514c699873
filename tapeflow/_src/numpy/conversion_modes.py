"""`dtype_conversion_mode`: public functions and operators that promote dtypes, once a program has asked for it.

In the modes "all" and "safe" the functions named here take the place of the plain ones under all public names; in the
mode "legacy" they pass their arguments on.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public, installed_namespaces
from tapeflow._src.numpy.weak_tensor import WeakTensor, maybe_weak, with_dtype
from tapeflow._src.numpy.weak_types import PromoMode, holds_only_numbers, result_type, state
from tapeflow._src.ops.extension.api_dispatch import Replacement
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.elementwise_names import BINARY, UNARY

_MODES = {"legacy": None, "safe": PromoMode.SAFE, "all": PromoMode.ALL}
_NOT_NUMBERS = ("strings.", "io.", "cast", "dtypes.", "math.logical", "math.is_", "image.convert", "math.nextafter")
_MORE_UNARY = [
    *(f"math.reduce_{kind}" for kind in ("euclidean_norm", "logsumexp", "max", "mean", "min", "prod", "std", "sum")),
    "math.reduce_variance", "linalg.trace", "reshape", "nn.depth_to_space", "expand_dims", "image.extract_patches",
    "identity", "linalg.diag", "linalg.diag_part", "linalg.matrix_transpose", "nn.space_to_depth", "squeeze",
    "stop_gradient", "linalg.tensor_diag_part", "transpose",
]  # fmt: skip
_NUMPY_UNARY = [
    "abs", "absolute", "angle", "arccos", "arcsin", "arcsinh", "arctan", "arctanh", "bitwise_not", "cbrt", "ceil",
    "conj", "conjugate", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fabs", "fix", "floor", "log",
    "negative", "rad2deg", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh", "nanmean", "log2", "log10",
    "log1p", "positive", "sinc", "square", "diff", "sort", "average", "trace", "amax", "amin", "around", "arange",
    "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "cumprod", "cumsum", "diag", "diagflat",
    "diagonal", "empty_like", "expand_dims", "flatten", "flip", "fliplr", "flipud", "full_like", "imag", "max",
    "mean", "min", "moveaxis", "ones_like", "prod", "ravel", "real", "reshape", "repeat", "rot90", "round",
    "squeeze", "std", "sum", "swapaxes", "transpose", "triu", "vander", "var", "zeros_like",
]  # fmt: skip
_NUMPY_BINARY = [
    "add", "subtract", "multiply", "true_divide", "divide", "floor_divide", "mod", "remainder", "power",
    "float_power", "matmul", "maximum", "minimum", "arctan2", "hypot", "fmod", "logaddexp", "logaddexp2",
    "nextafter", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "dot",
]  # fmt: skip
_COMPARISONS = ("math.equal", "math.not_equal", "math.less", "math.greater", "math.maximum", "math.minimum")
_OPERATORS = {
    "add": "math.add", "sub": "math.subtract", "mul": "math.multiply", "truediv": "math.truediv",
    "floordiv": "math.floordiv", "mod": "math.floormod", "pow": "math.pow", "matmul": "linalg.matmul",
    "and": "bitwise.bitwise_and", "or": "bitwise.bitwise_or", "xor": "bitwise.bitwise_xor", "lt": "math.less",
    "le": "math.less_equal", "gt": "math.greater", "ge": "math.greater_equal", "eq": "math.equal",
    "ne": "math.not_equal",
}  # fmt: skip
_COMPARING = ("lt", "le", "gt", "ge", "eq", "ne")


_SLOT_BY_NAME = {
    (cls, name): getattr(cls, name, None)
    for cls in (_core.Tensor, _core.Variable)
    for operator in _OPERATORS
    for name in (f"__{operator}__", f"__r{operator}__")
}  # the operators of the core, before anything takes their place


class _Promoting(Replacement):
    """A public function that promotes the dtypes of its first arguments."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._names = [*inspect.signature(function).parameters]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.mode is None:
            return self.__wrapped__(*args, **kwargs)
        given = {**dict(zip(self._names, args)), **kwargs}
        if len(args) > len(self._names):
            return self.__wrapped__(*args, **kwargs)
        return self.promote(given)

    def promote(self, given: dict[str, Any]) -> Any:
        """The result for arguments by name."""
        raise NotImplementedError


class _Unary(_Promoting):
    """A function of one number: of a weak one, it gives a weak one."""

    def promote(self, given: dict[str, Any]) -> Any:
        name = next((key for key in self._names if key in given), None)
        x = given.get(name) if name else None
        if name is None or isinstance(x, _core.Tensor | _core.Variable) or given.get("dtype") is not None:
            return self.__wrapped__(**{key: _plain(value) for key, value in given.items()})
        try:
            dtype, weak = result_type(x)
        except NotImplementedError:
            return self.__wrapped__(**given)
        rest = {key: _plain(value) for key, value in given.items()}
        return maybe_weak(self.__wrapped__(**{**rest, name: with_dtype(x, dtype)}), weak)


class _Binary(_Promoting):
    """A function of two numbers, which get their common dtype; of two weak ones, it gives a weak one."""

    def promote(self, given: dict[str, Any]) -> Any:
        names = [key for key in self._names[:2] if key in given]
        if len(names) < 2:
            return self.__wrapped__(**given)
        x, y = (given[name] for name in names)
        if isinstance(x, _core.Tensor) and isinstance(y, _core.Tensor) and x.dtype == y.dtype:
            return self.__wrapped__(**given)
        try:
            dtype, weak = result_type(x, y)
        except NotImplementedError:
            return self.__wrapped__(**{key: _plain(value) for key, value in given.items()})
        both = {names[0]: with_dtype(x, dtype), names[1]: with_dtype(y, dtype)}
        return maybe_weak(self.__wrapped__(**{**given, **both}), weak)


class _Constant(_Promoting):
    """`tf.constant`: Python's numbers are weak; tensors are cast where that is a promotion."""

    def promote(self, given: dict[str, Any]) -> Any:
        value, dtype = given.get("value"), given.get("dtype")
        if dtype is None:
            if not holds_only_numbers(value):
                return self.__wrapped__(**{**given, "value": _plain(value)})
            found, weak = result_type(value)
            return maybe_weak(self.__wrapped__(**{**given, "value": _plain(value), "dtype": found}), weak)
        if isinstance(value, _core.Tensor | WeakTensor):
            wanted = as_dtype(dtype)
            if result_type(value, wanted)[0] != wanted:
                shown = str(_plain(value)) if _core.is_symbolic(_plain(value)) else _plain(value).numpy()
                raise TypeError(f"Expected tensor {shown} with dtype {wanted!r}, but got dtype {value.dtype!r}.")
            value = with_dtype(value, wanted)
        return self.__wrapped__(**{**given, "value": value})


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        parts = [_plain(x) for x in value]
        return value if all(a is b for a, b in zip(parts, value)) else type(value)(parts)
    return value.tensor if isinstance(value, WeakTensor) else value


_promoting_by_function: dict[int, _Promoting] = {}
_installed: list[bool] = []


def _wrap(path: str, kind: type[_Promoting]) -> None:
    try:
        function = find_public(path)
    except AttributeError:
        return
    if id(function) in _promoting_by_function or isinstance(function, _Promoting):
        return
    wrapper = _promoting_by_function[id(function)] = kind(function)
    for module in _places():
        for name, value in list(vars(module).items()):
            if value is function:
                setattr(module, name, wrapper)


def _places() -> list[Any]:
    """The public namespaces, and TensorFlow's inner modules that lead to them."""
    inner = [module for name, module in list(sys.modules.items()) if name.startswith("tensorflow.python.")]
    return [*installed_namespaces().values(), *inner]


def _install() -> None:
    """Puts the promoting functions and operators in place; once."""
    if _installed:
        return
    _installed.append(True)
    for path in [*(path for path in UNARY if not path.startswith(_NOT_NUMBERS)), *_MORE_UNARY]:
        _wrap(path, _Unary)
    for path in [*(path for path in BINARY if not path.startswith(_NOT_NUMBERS)), "linalg.matmul"]:
        _wrap(path, _Binary)
    for name in _NUMPY_UNARY:
        _wrap(f"experimental.numpy.{name}", _Unary)
    for name in _NUMPY_BINARY:
        _wrap(f"experimental.numpy.{name}", _Binary)
    _wrap("constant", _Constant)
    for cls in (_core.Tensor, _core.Variable):
        _set_operators(cls)
    for cls, name in ((_core.Variable, name) for name in ("assign", "assign_add", "assign_sub")):
        setattr(cls, name, _assignment(getattr(cls, name)))


def _set_operators(cls: Any) -> None:
    for operator, path in _OPERATORS.items():
        for name in [f"__{operator}__"] if operator in _COMPARING else [f"__{operator}__", f"__r{operator}__"]:
            slot, plain = _SLOT_BY_NAME.get((cls, name)), getattr(cls, name, None)
            setattr(cls, name, _operator(find_public(path), slot, plain, name.startswith("__r"), f"__r{operator}__"))


def _operator(function: Any, slot: Any, plain: Any, reflected: bool, other_name: str) -> Any:
    def operate(self: Any, other: Any) -> Any:
        if state.mode is None and plain is not None:
            return plain(self, other)
        if slot is not None and type(other) is type(self) and self.dtype == other.dtype:
            return slot(self, other)
        if other is None and other_name in ("__req__", "__rne__"):
            return other_name == "__rne__"
        try:
            return function(other, self) if reflected else function(self, other)
        except (TypeError, ValueError):
            if not reflected and not hasattr(other, "dtype") and hasattr(type(other), other_name):
                return NotImplemented  # an object of the program, which may know better
            raise

    return operate


def _assignment(method: Any) -> Any:
    def assign(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if state.mode is not None:
            try:
                found = result_type(self.dtype, value)[0]
            except NotImplementedError:
                return method(self, value, *args, **kwargs)
            if found != self.dtype:
                raise TypeError(
                    f"Variable dtype is immutable. Calling {method.__name__} of Variable (with dtype {self.dtype!r}) "
                    f"with a value of a dtype that gives {found!r} is not allowed."
                )
            value = with_dtype(value, self.dtype)
        return method(self, value, *args, **kwargs)

    return assign


def set_dtype_conversion_mode(dtype_conversion_mode: Any) -> None:
    """Chooses which promotions happen by themselves: "legacy", "safe" or "all"."""
    if isinstance(dtype_conversion_mode, PromoMode):
        mode: PromoMode | None = None if dtype_conversion_mode is PromoMode.NONE else dtype_conversion_mode
    else:
        name = str(dtype_conversion_mode).lower()
        if name not in _MODES:
            raise ValueError(f"dtype_conversion_mode must be one of {[*_MODES]}; got {dtype_conversion_mode!r}")
        mode = _MODES[name]
    if mode is not None:
        _install()
    state.mode = mode


def get_dtype_conversion_mode() -> PromoMode:
    """The mode of the process; NONE for the older rules."""
    return state.mode or PromoMode.NONE


def promo_mode_enum_to_string(mode: PromoMode) -> str:
    """The name of a mode."""
    return {PromoMode.NONE: "legacy", PromoMode.SAFE: "safe", PromoMode.ALL: "all"}[mode]


def is_auto_dtype_conversion_enabled() -> bool:
    """Whether dtypes are promoted by the rules of weak dtypes."""
    return state.mode is not None
