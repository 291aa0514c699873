"""Tensors made from a shape: zeros, ones, fills, sequences."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import DType, as_dtype, float32, float64, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError, refused_dtype
from tapeflow._src.types.tensor_shape import TensorShape


def dims_of(shape: Any) -> list[int]:
    """A shape argument (list, TensorShape, tensor, number) as a list of sizes."""
    if isinstance(shape, TensorShape):
        if not shape.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {shape} to a Tensor.")
        return shape.as_list()
    if _core.is_symbolic(shape):
        known: list[int] = _core.known_elements(shape)
        if known is not None and None not in known:
            return known
    if isinstance(shape, list | tuple) and not (shape and isinstance(shape[0], list | tuple)):
        return [whole(d) for d in shape]
    values = np.asarray(shape)
    if values.ndim > 1:
        raise _invalid(f"a shape must represent a vector: dims must represent a vector, got shape {list(values.shape)}")
    if values.size:
        whole(values.flat[0])
    return [int(values)] if values.ndim == 0 else [int(d) for d in values]


def whole(number: Any) -> int:
    """An argument that must be an integer, as a Python one."""
    if isinstance(number, float | np.floating | str):
        raise TypeError(f"Cannot convert {number!r} to EagerTensor of dtype int32")
    return int(number)


def plain_sizes(shape: Any) -> bool:
    """Whether a shape argument is, as usual, a list of Python integers that are not negative."""
    if type(shape) is not list and type(shape) is not tuple:
        return False
    for size in shape:  # noqa: SIM110, a generator takes three times as long
        if type(size) is not int or size < 0:
            return False
    return True


def holds_symbolic(value: Any) -> bool:
    """Whether an argument is, or is a list that holds, something that only running the graph gives."""
    if not _core.is_tracing():
        return False
    if isinstance(value, list | tuple):
        return any(holds_symbolic(v) for v in value)
    return _core.is_symbolic(value) or isinstance(value, _core.Variable)


def is_open(x: Any) -> bool:
    """Whether a dimension of a tensor is unknown while tracing."""
    return _core.is_tracing() and not x.shape.is_fully_defined()


def shape_argument(shape: Any) -> Any:
    """A shape argument as a list of sizes, or as an integer tensor if not all of them are known while tracing."""
    if plain_sizes(shape):
        return list(shape)
    if not holds_symbolic(shape):
        return dims_of(shape)
    if isinstance(shape, list | tuple):
        shape = primitives.Pack([cast(convert_to_tensor(d), "int64") for d in shape], 0)
    shape = convert_to_tensor(shape)
    known = _core.known_elements(shape) if _core.is_symbolic(shape) else None
    if known is not None and None not in known:
        return known
    return shape if shape.shape.rank != 0 else primitives.Reshape(shape, [1])


def numbers_of(numbers: Any) -> list[Any]:
    """A vector argument as a list of numbers; scalars that running the graph gives where they are not known."""
    given: list[Any] = shape_argument(numbers)
    if not _core.is_tensor(given):
        return given
    known = _core.known_elements(given)
    if known is None:
        return dims_of(given)
    return [given[i] if n is None else n for i, n in enumerate(known)]


def joined_shape(shape: Any, x: Any) -> Any:
    """A shape argument with the shape of `x` behind it."""
    front = shape_argument(shape)
    if not _core.is_tensor(front) and x.shape.rank is not None:
        return shape_argument([*front, *dynamic_dims(x)])
    return primitives.ConcatV2([cast(convert_to_tensor(front, dtype_hint=int32), int32), primitives.Shape(x)], 0)


def dynamic_dims(x: Any) -> list[Any]:
    """The sizes of a tensor of known rank: numbers, or scalars that running the graph gives."""
    dims: list[Any] = x.shape.as_list()
    if is_open(x):
        shape = primitives.Shape(x)
        dims = [shape[i] if d is None else d for i, d in enumerate(dims)]
    return dims


def _checked_dims(who: str, shape: Any) -> Any:
    dims = shape_argument(shape)
    if _core.is_tensor(dims):
        return dims
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


def _filled(shape: Any, value: Any, dtype: DType) -> Tensor:
    if plain_sizes(shape):
        return primitives.BroadcastTo(_core.convert_to_tensor(value, dtype, None, "fill"), shape)
    sizes = _symbolic_dims(shape)
    if sizes is not None:
        return primitives.BroadcastTo(_core.convert_to_tensor(value, dtype, None, "fill"), sizes)
    return primitives.BroadcastTo(_core.convert_to_tensor(value, dtype, None, "fill"), _checked_dims("fill", shape))


def _zero_of(dtype: DType) -> Any:
    return 0 if dtype.is_numeric else "" if dtype.name == "string" else False


_LAYOUT = """name: A name for the operation in graphs.
        layout: TensorFlow's, for DTensor; it changes nothing."""


def _constant(value_of: Callable[[DType], Any], sentence: str, example: str, path: str) -> Callable[..., Tensor]:
    """A function that gives a tensor with one value, which depends on the dtype alone."""
    doc = f"""{sentence}

    Args:
        shape: The shape: a list of integers or an integer tensor.
        dtype: The dtype of the elements.
        {_LAYOUT}

    Returns:
        A tensor of shape `shape`.

    Gradient:
        None.

    {example}
    """

    @public_as(doc, path)
    def function(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Tensor:
        dtype = as_dtype(dtype).base_dtype
        return _filled(shape, value_of(dtype), dtype)

    return function


zeros = _constant(
    _zero_of,
    "A tensor of zeros (empty strings, False).",
    """>>> tf.zeros([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>""",
    "zeros",
)
ones = _constant(
    lambda dtype: True if dtype.is_bool else 1,
    "A tensor of ones (True).",
    """>>> tf.ones([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>""",
    "ones",
)


def _constant_like(make: Callable[..., Tensor], sentence: str, example: str, path: str) -> Callable[..., Any]:
    """A function that gives what `make` makes, in the shape of a tensor."""
    doc = f"""{sentence}

    Args:
        input: The tensor whose shape to take.
        dtype: The dtype; that of `input` if None.
        {_LAYOUT}

    Returns:
        A tensor of the shape of `input`.

    Gradient:
        None.

    {example}
    """

    @public_as(doc, path)
    def function(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
        if type(input) is not _core.Tensor and hasattr(input, "with_flat_values"):
            return input.with_flat_values(function(input.flat_values, dtype))
        tensor = convert_to_tensor(input)
        shape = primitives.Shape(tensor) if is_open(tensor) else tensor.shape.as_list()
        return make(shape, dtype or tensor.dtype)

    return function


zeros_like = _constant_like(
    zeros,
    "Zeros with the shape of `input`, and its dtype unless another is given.",
    """>>> tf.zeros_like([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>""",
    "zeros_like",
)
ones_like = _constant_like(
    ones,
    "Ones with the shape of `input`, and its dtype unless another is given.",
    """>>> tf.ones_like([5, 6])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 1], dtype=int32)>""",
    "ones_like",
)


@public("fill", node="Fill")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor with the shape `dims` and one value everywhere.

    Args:
        dims: The shape.
        value: A scalar.
        name: A name for the operation in graphs.
        layout: TensorFlow's, for DTensor; it changes nothing.

    Returns:
        A tensor of shape `dims`.

    Gradient:
        The gradient by `value` is the sum of `dy`.

    >>> tf.fill([2], 7)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([7, 7], dtype=int32)>
    """
    value = convert_to_tensor(value)
    if value.shape.rank:
        raise _invalid(f"fill: value must represent a scalar, got shape {value.shape.as_list()}")
    if plain_sizes(dims):
        return primitives.BroadcastTo(value, dims)
    sizes = _symbolic_dims(dims)
    return primitives.BroadcastTo(value, _checked_dims("fill", dims) if sizes is None else sizes)


@public("range")
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Numbers from `start` (0 if only one is given) up to but not including `limit`, in steps of `delta`.

    Args:
        start: The first number; 0 if only one number is given, which is then `limit`.
        limit: The bound, which is left out.
        delta: The step.
        dtype: The dtype; it follows from the numbers if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor of one dimension.

    Gradient:
        None.

    >>> tf.range(2, 8, 3)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 5], dtype=int32)>
    """
    if limit is None:
        start, limit = 0, start
    if dtype is None and type(start) in _NUMBERS and type(limit) in _NUMBERS and type(delta) in _NUMBERS:
        if type(start) is not type(limit) or type(delta) is not type(limit):
            start, limit, delta = float(start), float(limit), float(delta)
        return primitives.Range(start, limit, delta)
    if dtype is not None:
        start, limit, delta = (_number(v, dtype) for v in (start, limit, delta))
    else:
        hint = next((v.dtype for v in (start, limit, delta) if _core.is_tensor(v)), None)
        start, limit, delta = (convert_to_tensor(v, dtype_hint=hint) for v in (start, limit, delta))
    order = ["int8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64"]
    names = [v.dtype.name for v in (start, limit, delta)]
    if wrong := [name for name in names if name not in order]:
        raise TypeError(f"range: start, limit and delta must be real numbers; got dtype {wrong[0]}")
    common = max(names, key=order.index)
    return _narrowed_range(*(cast(v, common) for v in (start, limit, delta)))


_NUMBERS = (int, float)


def _number(value: Any, dtype: Any) -> Any:
    if type(value) is int and as_dtype(dtype).is_numeric and abs(value) < 128:
        return _core.convert_to_tensor(value, as_dtype(dtype), None, "range")
    return cast(convert_to_tensor(value), dtype)


def _narrowed_range(*numbers: Any) -> Tensor:
    """The range, and its static length if that is known while tracing."""
    y = primitives.Range(*numbers)
    if not _core.is_symbolic(y):
        return y
    known: list[Any] = [_core.known_elements(v) for v in numbers] if y.dtype.is_integer else [None]
    if None not in known and all(v[0] is not None for v in known):
        _core.narrow_shape(y, TensorShape([len(builtins.range(*(v[0] for v in known)))]))
    return y


def _counted(length: Any) -> Any:
    """0, 1, ..., length - 1 as a tensor, for a length that may be unknown."""
    if not _core.is_symbolic(length):
        return _core.convert_to_tensor(np.arange(int(length)), None, None, "range")
    return range(cast(length, "int64"))


def _invalid(message: str) -> Exception:
    return InvalidArgumentError.of(message)


@public("linspace", "linalg.linspace")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, both included.

    Args:
        start: The first number, or a tensor of first numbers.
        stop: The last number, or a tensor of the same shape.
        num: How many numbers, at least 1.
        name: A name for the operation in graphs.
        axis: Where the new dimension stands, for tensors.

    Returns:
        A tensor with `num` elements along `axis`.

    Gradient:
        Linear in `start` and `stop`.

    >>> tf.linspace(0., 1., 5)
    <tf.Tensor: shape=(5,), dtype=float32, numpy=array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)>
    """
    start = convert_to_tensor(start)
    stop = convert_to_tensor(stop, dtype=start.dtype)
    if start.dtype.is_integer:
        real = "float32" if start.dtype.size < 4 else "float64"
        start, stop = cast(start, real), cast(stop, real)
    if start.shape.rank != stop.shape.rank:
        none = zeros_like(start + stop)
        start, stop = start + none, stop + none
    if _core.is_symbolic(num):
        return _open_linspace(start, stop, num, axis)
    num = int(num)
    if num < 0:
        raise _invalid(f"linspace: Requires num >= 0: {num}")
    rank = start.shape.rank
    axis = axis if axis >= 0 else rank + 1 + axis
    if rank or num == 1:
        start, stop = primitives.ExpandDims(start, axis), primitives.ExpandDims(stop, axis)
    if num == 1:
        return start + zeros_like(stop)
    steps = _few_steps(num, start.dtype, rank + 1, axis) if num <= _FEW else _steps(num, start.dtype, rank + 1, axis)
    weights, last = steps
    return primitives.SelectV2(last, stop, start + (stop - start) / (num - 1) * weights)


_FEW = 1024  # elements: so many are kept, or made by NumPy
_MANY = 1 << 24  # so many places differ as float32


def _steps(num: int, dtype: Any, rank: int, axis: int) -> tuple[Any, Any]:
    """0, 1, ..., num - 1 along an axis, and which of them is the last."""
    shape = [1] * rank
    shape[axis] = num
    if _FEW < num <= _MANY and dtype in (float32, float64):
        weights = primitives.Reshape(primitives.Range(*(cast(n, dtype) for n in (0, num, 1))), shape)
        return weights, primitives.Equal(weights, num - 1)
    places = np.arange(num, dtype=np.float64).reshape(shape)
    return (
        _core.convert_to_tensor(places, dtype, None, "linspace"),
        _core.convert_to_tensor(places == num - 1, None, None, "linspace"),
    )


_few_steps = functools.lru_cache(64)(_steps)


def _open_linspace(start: Any, stop: Any, num: Any, axis: int) -> Any:
    axis = axis if axis >= 0 else start.shape.rank + 1 + axis
    start, stop = primitives.ExpandDims(start, axis), primitives.ExpandDims(stop, axis)
    shape = [1] * start.shape.rank
    shape[axis] = -1
    places = primitives.Reshape(range(cast(num, "int64")), shape)
    last = cast(num, "int64") - 1
    inside = start + (stop - start) / cast(primitives.Maximum(last, 1), start.dtype) * cast(places, start.dtype)
    return primitives.SelectV2(primitives.LogicalAnd(primitives.Equal(places, last), last > 0), stop, inside)


@public("eye", "linalg.eye")
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = float32, name: str | None = None
) -> Any:
    """The identity matrix, possibly a batch of them.

    Args:
        num_rows: The number of rows.
        num_columns: The number of columns; `num_rows` if None.
        batch_shape: Leading dimensions, along which the matrix is repeated.
        dtype: The dtype of the elements.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `batch_shape + [num_rows, num_columns]`.

    Gradient:
        None.

    >>> tf.eye(2)
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [0., 1.]], dtype=float32)>
    """
    if _core.is_symbolic(num_rows) or _core.is_symbolic(num_columns):
        rows, columns = _counted(num_rows), _counted(num_rows if num_columns is None else num_columns)
        tensor = cast(primitives.Equal(primitives.ExpandDims(rows, 1), columns), dtype)
    else:
        for size in (num_rows, num_columns):
            if isinstance(size, float):
                raise TypeError(
                    "eye: Arguments `num_rows` and `num_columns` must be positive integer values. Received: "
                    f"num_rows={num_rows}, num_columns={num_columns}"
                )
            if size is not None and size < 0:
                raise _invalid(f"eye: Dimension {size} must be >= 0")
        rows, columns = int(num_rows), int(num_rows if num_columns is None else num_columns)
        if rows * columns <= _FEW:
            tensor = _core.convert_to_tensor(np.eye(rows, columns, dtype=np.float32), None, None, "eye")
        else:
            diagonal = primitives.BroadcastTo(cast(1, float32), [min(rows, columns)])
            tensor = primitives.MatrixDiagV3(diagonal, 0, rows, columns, 0)
        if dtype is not float32:
            tensor = cast(tensor, dtype)
    if batch_shape is None:
        return tensor
    return primitives.BroadcastTo(tensor, joined_shape(batch_shape, tensor))


@functools.lru_cache(64)
def _limits(length: int, dtype: DType) -> tuple[Any, ...]:
    """The arguments of a range of numbers below `length`."""
    return tuple(_core.convert_to_tensor(v, dtype, None, "range") for v in (0, length, 1))


@public("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """A new dimension of size `depth` with `on_value` at the position in `indices` and `off_value` elsewhere.

    Args:
        indices: Integers. One that is not in `[0, depth)` gives a row of `off_value`.
        depth: The size of the new dimension.
        on_value: The value at the position that an index names; 1 if None.
        off_value: The value everywhere else; 0 if None.
        axis: Where the new dimension stands; last if None.
        dtype: The dtype; it follows from the values, else float32.
        name: A name for the operation in graphs.

    Returns:
        A tensor of one more dimension, of size `depth`.

    Gradient:
        None.

    >>> tf.one_hot([0, 2], 3)
    <tf.Tensor: shape=(2, 3), dtype=float32, numpy=
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)>
    """
    if on_value is None and off_value is None and axis is None and type(depth) is int and depth >= 0:
        places = indices if type(indices) is _core.Tensor else convert_to_tensor(indices, dtype_hint=int32)
        if places.dtype is int32 or places.dtype is int64:
            hit = primitives.Equal(primitives.ExpandDims(places, -1), primitives.Range(*_limits(depth, places.dtype)))
            return primitives.StopGradient(primitives.Cast(hit, float32 if dtype is None else as_dtype(dtype)))
    on, off = (None if v is None else convert_to_tensor(v, dtype_hint=dtype) for v in (on_value, off_value))
    for which, value in (("on_value", on), ("off_value", off)):
        if value is not None and dtype is not None and value.dtype != as_dtype(dtype):
            raise TypeError(f"one_hot: dtype {value.dtype} of {which} does not match dtype parameter {as_dtype(dtype)}")
    if dtype is None:
        dtype = next((value.dtype for value in (on, off) if value is not None), float32)
    on, off = (convert_to_tensor(n, dtype=dtype) if v is None else v for n, v in ((1, on), (0, off)))
    if on.dtype != off.dtype:
        raise TypeError(f"one_hot: dtype {on.dtype} of on_value does not match dtype {off.dtype} of off_value")
    indices = convert_to_tensor(indices, dtype_hint=int32)
    if not indices.dtype.is_integer:
        raise refused_dtype("one_hot", "indices", "TI", indices.dtype, "uint8, int8, int32, int64")
    rank = indices.shape.rank
    if rank is None and axis in (None, -1):
        hit = primitives.Equal(primitives.ExpandDims(indices, -1), cast(_counted(depth), indices.dtype))
        return primitives.StopGradient(primitives.SelectV2(hit, on, off))
    axis = rank if axis in (None, -1) else int(axis)
    if not 0 <= axis <= rank:
        raise _invalid(f"one_hot: Expected axis to be -1 or between [0, {rank}].  But received: {axis}")
    shape = [1] * (rank + 1)
    shape[axis] = -1
    if not _core.is_symbolic(depth):
        shape[axis] = whole(depth)
        if int(depth) < 0:
            raise _invalid(f"one_hot: depth must be non-negative, got: {int(depth)}")
    positions = cast(primitives.Reshape(_counted(depth), shape), indices.dtype)
    hit = primitives.Equal(primitives.ExpandDims(indices, axis), positions)
    return primitives.StopGradient(primitives.SelectV2(hit, on, off))
