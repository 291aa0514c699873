"""The fields of extension types: which annotations they may have, and how a value becomes one."""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec

_PLAIN = (int, float, str, bytes, bool, type(None))


class ImmutableDict(dict[Any, Any]):
    """A dictionary that cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> None:
        raise TypeError("ImmutableDict does not support changes; make another object instead")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = _refuse  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ImmutableDict({super().__repr__()})"


def _is_class(annotation: Any, *bases: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, bases)


def resolved(annotation: Any, value_by_name: dict[str, Any]) -> Any:
    """The annotation with the classes that names in it stand for: a field may hold objects of its own class."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return resolved(eval(annotation, value_by_name), value_by_name)
    arguments = typing.get_args(annotation)
    if not any(isinstance(a, str | typing.ForwardRef) or typing.get_args(a) for a in arguments):
        return annotation
    if typing.get_origin(annotation) is Literal:
        return annotation
    changed = tuple(resolved(a, value_by_name) for a in arguments)
    if isinstance(annotation, types.UnionType):
        return functools.reduce(operator.or_, changed)
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else annotation.__origin__[changed]


def check_annotation(path: str, annotation: Any) -> None:
    """Raises for an annotation that no value can be stored for."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType, tuple):
        for argument in arguments:
            if argument is not ...:
                check_annotation(path, argument)
    elif origin in (Mapping, typing.get_origin(typing.Mapping[str, int])):
        check_annotation(path, arguments[1])
    elif origin is not Literal and not (
        annotation in _PLAIN
        or annotation is None
        or isinstance(annotation, TypeSpec)
        or _is_class(annotation, _core.Tensor, _core.Variable, CompositeTensor, DType, TensorShape)
    ):
        raise TypeError(
            f"In field {path!r}: Unsupported type annotation `{getattr(annotation, '__name__', annotation)}`"
        )


def convert_field(path: str, annotation: Any, value: Any) -> Any:
    """`value` as the annotation wants it; a TypeError if it cannot be that."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is _core.Tensor:
        return _tensor(path, value, None)
    if isinstance(annotation, TensorSpec):
        tensor = _tensor(path, value, annotation.dtype)
        if not annotation.is_compatible_with(tensor):
            raise TypeError(f"{path}: expected a value compatible with {annotation}, got {value!r}")
        return tensor
    if isinstance(annotation, TypeSpec):
        if not annotation.is_compatible_with(value):
            raise TypeError(f"{path}: expected a value compatible with {annotation}, got {value!r}")
        return value
    if origin in (Union, types.UnionType):
        return _one_of(path, arguments, value)
    if origin is Literal:
        if value not in arguments:
            raise TypeError(f"{path}: expected one of {arguments}, got {value!r}")
        return value
    if origin is tuple:
        return _tuple(path, arguments, value)
    if origin is not None:
        if not isinstance(value, Mapping):
            raise TypeError(f"{path}: expected mapping, got {type(value).__name__!r}")
        return ImmutableDict({key: convert_field(f"{path}[{key!r}]", arguments[1], x) for key, x in value.items()})
    if annotation is DType:
        return as_dtype(value)
    if annotation is TensorShape:
        return as_shape(value)
    wanted = type(None) if annotation is None else annotation
    if not isinstance(value, wanted):
        raise TypeError(f"{path}: expected {wanted.__name__!r}, got {type(value).__name__!r}")
    return value


def convert_spec_field(annotation: Any, value: Any) -> Any:
    """A field of a spec: shapes and dtypes as the annotation wants them, all else as it is."""
    if annotation is TensorShape:
        return as_shape(value)
    if annotation is DType:
        return as_dtype(value)
    return value


def _tensor(path: str, value: Any, dtype: Any) -> Any:
    try:
        return convert_to_tensor(value, dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: expected a Tensor, got {type(value).__name__!r}") from error


def _one_of(path: str, options: tuple[Any, ...], value: Any) -> Any:
    for option in options:  # as it is, before anything is converted
        if isinstance(option, type) and isinstance(value, option):
            return convert_field(path, option, value)
    for option in options:
        try:
            return convert_field(path, option, value)
        except TypeError:
            continue
    names = " or ".join(repr(getattr(option, "__name__", str(option))) for option in options)
    raise TypeError(f"{path}: expected {names}, got {type(value).__name__!r}")


def _tuple(path: str, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
    if len(kinds) == 2 and kinds[1] is ...:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise TypeError(f"{path}: expected tuple with length {len(kinds)}, got length {len(value)}")
    return tuple(convert_field(f"{path}[{i}]", kind, x) for i, (kind, x) in enumerate(zip(kinds, value)))
