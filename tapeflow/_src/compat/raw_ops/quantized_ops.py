"""Raw operations: numbers as integers of a range, and products of operands that are mostly zeros."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.math import quantization

QuantizeV2 = namedtuple("QuantizeV2", ["output", "output_min", "output_max"])


def _axis(axis: int) -> int | None:
    return None if axis < 0 else axis


def _quantize(
    x: Any, low: Any, high: Any, kind: Any, mode: str, rounding: str, narrow: bool, axis: int, least: float
) -> QuantizeV2:
    found = quantization.quantize(x, low, high, kind, mode, rounding, None, narrow, _axis(axis), least)
    return QuantizeV2(*found)


def _dequantize(x: Any, low: Any, high: Any, mode: str, narrow: bool, axis: int, dtype: Any) -> Any:
    return quantization.dequantize(x, low, high, mode, None, _axis(axis), narrow, dtype)


def _sparse_product(a: Any, b: Any, transpose_a: bool, transpose_b: bool, *_: bool) -> Any:
    return primitives.MatMul(cast(a, "float32"), cast(b, "float32"), transpose_a, transpose_b)


ROWS: list[tuple[str, str, Any]] = [
    (
        "Dequantize",
        "input, min_range, max_range, mode='MIN_COMBINED', narrow_range=False, axis=-1, dtype='float32'",
        _dequantize,
    ),
    (
        "QuantizeV2",
        "input, min_range, max_range, T, mode='MIN_COMBINED', round_mode='HALF_AWAY_FROM_ZERO', narrow_range=False, "
        "axis=-1, ensure_minimum_range=0.01",
        _quantize,
    ),
    (
        "SparseMatMul",
        "a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False",
        _sparse_product,
    ),
]
