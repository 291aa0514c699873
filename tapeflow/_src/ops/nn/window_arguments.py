"""Arguments of convolutions and pools: strides, dilations, windows, paddings and data formats, brought to one form."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError


def _as_ints(value: Any) -> list[int]:
    if isinstance(value, int | float | np.number):
        return [int(value)]
    if _core.is_tensor(value):
        value = np.asarray(value)
    return [int(v) for v in np.atleast_1d(value)] if isinstance(value, np.ndarray) else [int(v) for v in value]


def per_dimension(value: Any, spatial: int, channels_first: bool, what: str) -> list[int]:
    """Strides, dilations or window sizes as one number per spatial dimension."""
    if value is None:
        return [1] * spatial
    numbers = _as_ints(value)
    if len(numbers) == 1:
        return numbers * spatial
    if len(numbers) == spatial:
        return numbers
    if len(numbers) == spatial + 2:
        outer = (numbers[0], numbers[1] if channels_first else numbers[-1])
        if outer != (1, 1):
            raise UnimplementedError.of(
                f"Current implementation does not yet support {what} in the batch and depth dimensions; got {numbers}",
            )
        return numbers[2:] if channels_first else numbers[1:-1]
    raise ValueError(
        f"{what} should be of length 1, {spatial} or {spatial + 2}. Received: {what}={value} of length {len(numbers)}"
    )


def padding_of(padding: Any, spatial: int, channels_first: bool) -> tuple[str, list[int]]:
    """The kind of padding and, if explicit, before and after for each spatial dimension."""
    if isinstance(padding, str):
        kind = padding.upper()
        if kind not in ("SAME", "VALID"):
            raise InvalidArgumentError.of(
                f"Value for attr 'padding' of \"{padding}\" is not in the list of allowed values: "
                '"SAME", "VALID", or explicit paddings as a list',
            )
        return kind, []
    pairs = [[int(p) for p in pair] for pair in padding]
    if len(pairs) == spatial + 2:
        outer = (pairs[0], pairs[1] if channels_first else pairs[-1])
        if outer != ([0, 0], [0, 0]):
            raise ValueError(f"padding of the batch and depth dimensions must be 0; got {pairs}")
        pairs = pairs[2:] if channels_first else pairs[1:-1]
    if len(pairs) != spatial or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"explicit padding must have {spatial + 2} pairs; got {padding}")
    if any(p < 0 for pair in pairs for p in pair):
        raise InvalidArgumentError.of(f"All elements of explicit_paddings must be nonnegative; got {pairs}")
    return "EXPLICIT", [p for pair in pairs for p in pair]


_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def is_channels_first(data_format: str | None, spatial: int, also: tuple[str, ...] = ()) -> bool:
    """Whether the format names the channels before the spatial dimensions."""
    if data_format is None:
        return False
    last, first = _FORMATS[spatial]
    if data_format in (last, first) or data_format in also:
        return data_format.startswith("NC")
    raise InvalidArgumentError.of(
        f'Value for attr \'data_format\' of "{data_format}" is not in the list of allowed values: "{last}", "{first}"',
    )


class Geometry(NamedTuple):
    """How windows lie: whether channels come first, the kind of padding, explicit padding, steps and dilations."""

    channels_first: bool
    kind: str
    pads: list[int]
    steps: list[int]
    dilation: list[int]


def geometry(strides: Any, padding: Any, data_format: str | None, dilations: Any, spatial: int) -> Geometry:
    """The arguments in one form; results are cached."""
    try:
        return _cached_geometry(_plain(strides), padding, data_format, _plain(dilations), spatial)
    except TypeError:  # something that cannot be a key, such as lists of explicit paddings
        return _geometry(strides, padding, data_format, dilations, spatial)


def _plain(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _geometry(strides: Any, padding: Any, data_format: str | None, dilations: Any, spatial: int) -> Geometry:
    first = is_channels_first(data_format, spatial)
    kind, pads = padding_of(padding, spatial, first)
    steps = per_dimension(strides, spatial, first, "strides")
    return Geometry(first, kind, pads, steps, per_dimension(dilations, spatial, first, "dilations"))


_cached_geometry = lru_cache(256)(_geometry)


def to_channels_last(x: Any) -> Any:
    """(N, C, spatial...) to (N, spatial..., C)."""
    rank = x.shape.rank
    return primitives.Transpose(x, [0, *range(2, rank), 1])


def to_channels_first(x: Any) -> Any:
    """(N, spatial..., C) to (N, C, spatial...)."""
    rank = x.shape.rank
    return primitives.Transpose(x, [0, rank - 1, *range(1, rank - 1)])


def refuse_narrow(who: str, sizes: Any, window: Any, dilations: Any) -> None:
    """Refuses windows that no position of a traced input holds; while operations run, the result is empty.

    TensorFlow does the same: the shape rule of a graph is stricter than the kernel.
    """
    for size, width, rate in zip(sizes.as_list(), window, dilations or [1] * len(window)):
        reach = (width - 1) * rate + 1
        if size is not None and size < reach:
            raise InvalidArgumentError.of(f"{who}: Negative dimension size caused by subtracting {reach} from {size}")
