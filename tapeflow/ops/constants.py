"""Tensors made from a shape: zeros, ones, fills, sequences."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow import _core, primitives
from tapeflow.namespace import public
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.types.dtypes import DType, as_dtype, float32, int32
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.tensor_shape import TensorShape


def dims_of(shape: Any) -> list[int]:
    """A shape argument (list, TensorShape, tensor, number) as a list of sizes."""
    if isinstance(shape, TensorShape):
        return shape.as_list()
    if isinstance(shape, list | tuple):
        return [int(d) for d in shape]
    values = np.asarray(shape)
    return [int(values)] if values.ndim == 0 else [int(d) for d in values]


def _checked_dims(who: str, shape: Any) -> list[int]:
    dims = dims_of(shape)
    for size in dims:
        if size < 0:
            raise _invalid(f"{who}: Dimension {size} must be >= 0; got shape {dims}")
    return dims


def _symbolic_dims(shape: Any) -> Any:
    """A shape that is known only when the graph runs as one tensor; None if it is known now."""
    if not _core.is_tracing():
        return None
    if isinstance(shape, list | tuple) and any(_core.is_symbolic(d) for d in shape):
        return primitives.Pack([cast(convert_to_tensor(d), "int32") for d in shape], 0)
    if isinstance(shape, _core.Variable):
        shape = convert_to_tensor(shape)
    if not _core.is_symbolic(shape):
        return None
    return primitives.Reshape(shape, [1]) if shape.shape.rank == 0 else shape


def _filled(shape: Any, value: Any, dtype: DType) -> Any:
    sizes = _symbolic_dims(shape)
    if sizes is not None:
        return primitives.BroadcastTo(_core.convert_to_tensor(value, dtype, None, "fill"), sizes)
    return primitives.BroadcastTo(_core.convert_to_tensor(value, dtype, None, "fill"), _checked_dims("fill", shape))


def _zero_of(dtype: DType) -> Any:
    return "" if dtype.name == "string" else (False if dtype.is_bool else 0)


@public("zeros")
def zeros(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    """A tensor of zeros (empty strings, False).

    >>> tf.zeros([2])
    [0., 0.]
    """
    dtype = as_dtype(dtype).base_dtype
    return _filled(shape, _zero_of(dtype), dtype)


@public("ones")
def ones(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    """A tensor of ones (True).

    >>> tf.ones([2])
    [1., 1.]
    """
    dtype = as_dtype(dtype).base_dtype
    return _filled(shape, True if dtype.is_bool else 1, dtype)


def _sizes_of(tensor: Any) -> Any:
    known = not _core.is_symbolic(tensor) or tensor.shape.is_fully_defined()
    return tensor.shape if known else _core.shape_of(tensor, int32)


@public("zeros_like")
def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    """Zeros with the shape of `input`, and its dtype unless another is given.

    >>> tf.zeros_like([1., 2.])
    [0., 0.]
    """
    if hasattr(input, "with_flat_values"):
        return input.with_flat_values(zeros_like(input.flat_values, dtype))
    tensor = convert_to_tensor(input)
    return zeros(_sizes_of(tensor), dtype or tensor.dtype)


@public("ones_like")
def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    """Ones with the shape of `input`, and its dtype unless another is given.

    >>> tf.ones_like([5, 6])
    [1, 1]
    """
    if hasattr(input, "with_flat_values"):
        return input.with_flat_values(ones_like(input.flat_values, dtype))
    tensor = convert_to_tensor(input)
    return ones(_sizes_of(tensor), dtype or tensor.dtype)


@public("fill")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Any:
    """A tensor with the shape `dims` and one value everywhere.

    >>> tf.fill([2], 7)
    [7, 7]
    """
    sizes = _symbolic_dims(dims)
    return primitives.BroadcastTo(convert_to_tensor(value), _checked_dims("fill", dims) if sizes is None else sizes)


@public("range")
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Any:
    """Numbers from `start` (0 if only one is given) up to but not including `limit`, in steps of `delta`.

    >>> tf.range(2, 8, 3)
    [2, 5]
    """
    if limit is None:
        start, limit = 0, start
    if dtype is not None:
        start, limit, delta = (cast(convert_to_tensor(v), dtype) for v in (start, limit, delta))
    else:
        hint = next((v.dtype for v in (start, limit, delta) if _core.is_tensor(v)), None)
        start, limit, delta = (convert_to_tensor(v, dtype_hint=hint) for v in (start, limit, delta))
    order = ["int8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64"]
    common = max((v.dtype.name for v in (start, limit, delta)), key=order.index)
    if any(_core.is_symbolic(v) for v in (start, limit, delta)):
        return _symbolic_range(*(cast(v, common) for v in (start, limit, delta)))
    first, last, step = (np.asarray(cast(v, common)).item() for v in (start, limit, delta))
    if step == 0:
        raise _invalid(f"range: Requires delta != 0: {step}")
    if (step > 0 and first > last) or (step < 0 and first < last):
        sign = "<=" if step > 0 else ">="
        raise _invalid(f"range: Requires start {sign} limit when delta {'>' if step > 0 else '<'} 0: {first}/{last}")
    count = (
        builtins.max(0, -int(-(last - first) // step))
        if isinstance(step, int)
        else int(np.ceil(abs((last - first) / step)))
    )
    wide = np.float64 if as_dtype(common).is_floating else np.int64
    values = first + step * np.arange(count, dtype=wide)
    return _core.convert_to_tensor(values, common, None, "range")


def _symbolic_range(start: Any, limit: Any, delta: Any) -> Any:
    """A range whose length is known when the graph runs: the running sum of ones, scaled and shifted."""
    wide = start.dtype if start.dtype.is_floating else as_dtype("int64")
    span = cast(limit, wide) - cast(start, wide)
    step = cast(delta, wide)
    count = (
        primitives.Ceil(span / step)
        if wide.is_floating
        else primitives.Neg(primitives.FloorDiv(primitives.Neg(span), step))
    )
    count = primitives.Maximum(cast(count, "int64"), 0)
    ones = primitives.BroadcastTo(_core.convert_to_tensor(1, wide, None, "range"), primitives.Reshape(count, [1]))
    positions = primitives.Cumsum(ones, 0, True, False)
    return cast(cast(start, wide) + step * positions, start.dtype)


def _invalid(message: str) -> Exception:
    return InvalidArgumentError(None, None, message)


@public("linspace", "linalg.linspace")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, both included.

    >>> tf.linspace(0., 1., 5)
    [0., 0.25, 0.5, 0.75, 1.]
    """
    start = convert_to_tensor(start)
    stop = convert_to_tensor(stop, dtype=start.dtype if not _core.is_tensor(stop) else None)
    if start.dtype.is_integer:
        start, stop = cast(start, "float64"), cast(stop, "float64")
    num = int(num)
    if num < 1:
        raise _invalid(f"linspace: Requires num > 0: {num}")
    axis = axis if axis >= 0 else start.shape.rank + 1 + axis
    start, stop = primitives.ExpandDims(start, axis), primitives.ExpandDims(stop, axis)
    if num == 1:
        return start + (stop - stop)
    shape = [1] * (start.shape.rank)
    shape[axis] = num
    steps = np.arange(num, dtype=np.float64).reshape(shape)
    weights = _core.convert_to_tensor(steps, start.dtype, None, "linspace")
    inside = start + (stop - start) / (num - 1) * weights
    last = np.zeros(shape, bool)
    last.reshape(-1)[-1] = True
    return primitives.SelectV2(last, stop, inside)


@public("eye", "linalg.eye")
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = float32, name: str | None = None
) -> Any:
    """The identity matrix, possibly a batch of them.

    >>> tf.eye(2)
    [[1., 0.], [0., 1.]]
    """
    matrix = np.eye(int(num_rows), None if num_columns is None else int(num_columns), dtype=np.float32)
    tensor = cast(_core.convert_to_tensor(matrix, None, None, "eye"), dtype)
    if batch_shape is None:
        return tensor
    return primitives.BroadcastTo(tensor, dims_of(batch_shape) + tensor.shape.as_list())


@public("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """A new dimension of size `depth` with `on_value` at the position in `indices` and `off_value` elsewhere.

    >>> tf.one_hot([0, 2], 3)
    [[1., 0., 0.], [0., 0., 1.]]
    """
    given = [v for v in (on_value, off_value) if v is not None]
    if dtype is None:
        dtype = convert_to_tensor(given[0]).dtype if given else float32
    on = convert_to_tensor(1 if on_value is None else on_value, dtype=dtype if on_value is None else None)
    off = convert_to_tensor(0 if off_value is None else off_value, dtype=on.dtype)
    if as_dtype(dtype) != on.dtype:
        raise TypeError(f"one_hot: dtype {on.dtype} of on_value does not match dtype parameter {as_dtype(dtype)}")
    indices = convert_to_tensor(indices, dtype_hint=int32)
    if not indices.dtype.is_integer:
        raise _invalid(
            f"one_hot: Value for attr 'TI' of {indices.dtype.name} is not in the list of allowed values: uint8, int8, "
            "int32, int64; indices must be integers, got float"
        )
    rank = indices.shape.rank
    axis = rank if axis in (None, -1) else int(axis)
    if not 0 <= axis <= rank:
        raise _invalid(f"one_hot: Expected axis to be -1 or between [0, {rank}].  But received: {axis}")
    shape = [1] * (rank + 1)
    shape[axis] = int(depth)
    if int(depth) < 0:
        raise _invalid(f"one_hot: depth must be non-negative, got: {int(depth)}")
    positions = cast(primitives.Reshape(np.arange(int(depth)), shape), indices.dtype)
    hit = primitives.Equal(primitives.ExpandDims(indices, axis), positions)
    return primitives.StopGradient(primitives.SelectV2(hit, on, off))
