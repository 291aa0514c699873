"""Checks of the arguments that feature columns share."""

from __future__ import annotations

from typing import Any

from tapeflow._src.types.dtypes import string


def check_key(key: Any) -> None:
    """The name of a feature is a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_string_or_integer(dtype: Any, prefix: str) -> None:
    """Categories are strings or integers."""
    if dtype != string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")


def check_numeric(dtype: Any, key: Any) -> None:
    """Numbers can become floats."""
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")


def check_normalizer(normalizer_fn: Any) -> None:
    """A normalizer is a function or None."""
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")


def checked_shape(shape: Any, key: Any) -> tuple[int, ...]:
    """The shape of one example as a tuple of positive integers."""
    sizes = tuple(shape) if isinstance(shape, list | tuple) or hasattr(shape, "__iter__") else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"shape dimensions must be integer. shape: {sizes}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
    return sizes


def check_oov(num_oov_buckets: Any, default_given: bool, key: Any) -> None:
    """Numbers for unknown words exclude a default, and are not negative."""
    if num_oov_buckets and default_given:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets and num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def _filled(shape: tuple[int, ...], value: Any) -> Any:
    return tuple(_filled(shape[1:], value) for _ in range(shape[0])) if shape else value


def _nested_tuple(value: Any) -> Any:
    return tuple(_nested_tuple(item) for item in value) if isinstance(value, list | tuple) else value


def _fits(value: Any, shape: tuple[int, ...]) -> bool:
    if not isinstance(value, list | tuple) or not shape:
        return isinstance(value, list | tuple) == bool(shape)
    return len(value) == shape[0] and all(_fits(item, shape[1:]) for item in value)


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list | tuple) else [value]


def checked_default(shape: tuple[int, ...], default_value: Any, dtype: Any, key: Any) -> Any:
    """A default as nested tuples of `shape`; one number stands for all."""
    if default_value is None:
        return None
    if isinstance(default_value, int) or (isinstance(default_value, float) and dtype.is_floating):
        return _filled(shape, default_value)
    if callable(getattr(default_value, "tolist", None)):
        default_value = default_value.tolist()
    if isinstance(default_value, list | tuple):
        if not _fits(default_value, shape):
            raise ValueError(
                "The shape of default_value must be equal to given shape. "
                f"default_value: {default_value}, shape: {shape}, key: {key}"
            )
        leaves = _leaves(default_value)
        if all(isinstance(leaf, int) for leaf in leaves):
            return _nested_tuple(default_value)
        if dtype.is_floating and any(isinstance(leaf, float) for leaf in leaves):
            return _nested_tuple(default_value)
    raise TypeError(
        f"default_value must be compatible with dtype. default_value: {default_value}, dtype: {dtype}, key: {key}"
    )
