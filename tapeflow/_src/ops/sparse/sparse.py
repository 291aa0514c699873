"""`tf.sparse`: operations on tensors of which only some elements are stored."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, ones, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.math.segments import bin_count_length, count_bins
from tapeflow._src.ops.strings.hashing import combined_fingerprint, fingerprint64, fingerprint_of_key
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype, float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue


def is_sparse(x: Any) -> bool:
    """Whether `x` is a SparseTensor (or the NumPy tuple of one)."""
    return isinstance(x, SparseTensor | SparseTensorValue)


def as_sparse(x: Any, who: str) -> SparseTensor:
    """`x` as a SparseTensor; a TypeError if it is not one."""
    if not is_sparse(x):
        raise TypeError(f"{who}: Input must be a SparseTensor. Received: {x!r}")
    return x if isinstance(x, SparseTensor) else SparseTensor.from_value(x)


def _dims(x: SparseTensor) -> list[int]:
    return x.dense_shape.numpy().tolist()


def _strides(dims: list[int]) -> np.ndarray:
    return np.cumprod([1, *dims[::-1]])[:-1][::-1].astype(np.int64)


def _flat(indices: Any, dims: list[int]) -> Any:
    """Positions as single numbers, in the order of the elements of the dense tensor."""
    return primitives.Sum(indices * _strides(dims), 1, False)


def _unflat(flat: Any, dims: list[int]) -> Any:
    """Single numbers as positions."""
    if not dims:
        return (
            primitives.Reshape(flat, [-1, 0])
            if not flat.shape[0]
            else primitives.BroadcastTo(flat[:, None][:, :0], [flat.shape[0], 0])
        )
    columns = [
        primitives.FloorMod(primitives.FloorDiv(flat, int(step)), builtins.max(d, 1))
        for step, d in zip(_strides(dims), dims)
    ]
    return primitives.Pack(columns, 1)


def _column(indices: Any, axis: int) -> Any:
    return indices[:, axis]


def _positions(mask: Any) -> Any:
    return primitives.Squeeze(primitives.Where(mask), [1])


def _chosen(x: SparseTensor, mask: Any) -> tuple[Any, Any]:
    """The positions and elements of `x` where the mask is true, with dense gradients."""
    places = _positions(mask)
    return primitives.GatherV2(x.indices, places, 0, 0), take(x.values, places, 0)


# ---- between dense and sparse


@public("sparse.from_dense")
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero.

    >>> tf.sparse.from_dense([[0, 5], [6, 0]]).indices
    [[0, 1], [1, 0]]
    """
    x = convert_to_tensor(tensor)
    zero = _core.convert_to_tensor(
        "" if x.dtype.name == "string" else False if x.dtype.is_bool else 0, x.dtype, None, "from_dense"
    )
    indices = primitives.Where(primitives.NotEqual(x, zero))
    sizes = x.shape.as_list() if x.shape.is_fully_defined() else primitives.Shape(x, int64)
    return SparseTensor(indices, primitives.GatherNd(x, indices, 0), sizes)


def _check_order(indices: Any, dims: list[int], who: str) -> None:
    """Refuses positions outside the shape, out of order or repeated."""
    at = indices.numpy()
    if not at.size:
        return
    outside = ((at < 0) | (at >= np.asarray(dims))).any(1)
    step = np.diff((at * _strides(dims)).sum(1))

    def text(i: int) -> str:
        return f"{who}: indices[{i}] = [" + ",".join(str(n) for n in at[i]) + "]"

    if outside.any():
        shape = "[" + ",".join(str(d) for d in dims) + "]"
        raise InvalidArgumentError(
            None, None, f"{text(int(outside.argmax()))} is out of bounds: need 0 <= index < {shape}"
        )
    if (step < 0).any():
        raise InvalidArgumentError(
            None,
            None,
            f"{text(int((step < 0).argmax()) + 1)} is out of order. Many sparse ops require sorted indices.\n"
            "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n",
        )
    if (step == 0).any():
        raise InvalidArgumentError(None, None, f"{text(int((step == 0).argmax()) + 1)} is repeated")


@public("sparse.to_dense")
def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Any:
    """The dense tensor, with `default_value` (zero) where nothing is stored.

    >>> tf.sparse.to_dense(tf.SparseTensor([[1]], [5], [3]))
    [0, 5, 0]
    """
    x = as_sparse(sp_input, "to_dense")
    dims = _dims(x)
    if validate_indices:
        _check_order(x.indices, dims, "to_dense")
    if default_value is None:
        if x.dtype.name != "string" and not x.dtype.is_bool and validate_indices:
            return primitives.ScatterNd(x.indices, x.values, dims)
        default_value = "" if x.dtype.name == "string" else False if x.dtype.is_bool else 0
    filler = convert_to_tensor(default_value, dtype=None if _core.is_tensor(default_value) else x.dtype)
    return primitives.TensorScatterUpdate(primitives.BroadcastTo(filler, dims), x.indices, x.values)


@public("sparse.to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Any:
    """True at [..., v] for each stored number v, of shape [..., vocab_size].

    >>> tf.sparse.to_indicator(tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1]), 3)
    [[False, True, False]]
    """
    x = as_sparse(sp_input, "to_indicator")
    dims = [*_dims(x)[:-1], int(vocab_size)]
    values = cast(x.values, int64)
    numbers = values.numpy()
    if numbers.size and (numbers.min() < 0 or numbers.max() >= int(vocab_size)):
        raise InvalidArgumentError(
            None, None, f"to_indicator: values must be in [0, {int(vocab_size)}); got {numbers.tolist()}"
        )
    indices = primitives.ConcatV2([x.indices[:, :-1], primitives.ExpandDims(values, 1)], 1)
    return primitives.ScatterNd(indices, primitives.BroadcastTo(True, [indices.shape[0]]), dims)


@public("sparse.eye")
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = float32, name: str | None = None) -> SparseTensor:
    """The identity matrix.

    >>> tf.sparse.eye(2).values
    [1., 1.]
    """
    rows = int(num_rows)
    columns = rows if num_columns is None else int(num_columns)
    count = builtins.min(rows, columns)
    places = np.arange(count, dtype=np.int64)
    return SparseTensor(np.stack([places, places], 1), ones([count], dtype), [rows, columns])


# ---- one sparse tensor


@public("sparse.map_values")
def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """`op` applied to the stored elements; all SparseTensors among the arguments must have the same positions.

    >>> tf.sparse.map_values(tf.square, tf.SparseTensor([[1]], [5.], [3])).values
    [25.]
    """
    found = [a for a in nest.flatten((args, kwargs)) if is_sparse(a)]
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")
    first = found[0]
    for other in found[1:]:
        if other.shape != first.shape or not np.array_equal(other.indices.numpy(), first.indices.numpy()):
            raise InvalidArgumentError(
                None, None, "map_values: all SparseTensors must have the same indices and dense_shape"
            )

    def inner(value: Any) -> Any:
        if is_sparse(value):
            return value.values
        if isinstance(value, list | tuple):
            return type(value)(inner(v) for v in value)
        return value

    return first.with_values(op(*(inner(a) for a in args), **{key: inner(v) for key, v in kwargs.items()}))


@public("sparse.reorder")
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same elements in the order of their positions.

    >>> tf.sparse.reorder(tf.SparseTensor([[1], [0]], [5., 6.], [3])).values
    [6., 5.]
    """
    x = as_sparse(sp_input, "reorder")
    if not x.indices.shape[0]:
        return x
    flat = _flat(x.indices, _dims(x))
    order = primitives.TopKV2(flat, flat.shape[0], True, True)[1]
    return SparseTensor(primitives.GatherV2(x.indices, order, 0, 0), take(x.values, order, 0), x.dense_shape)


@public("sparse.transpose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Dimensions in another order; reversed if `perm` is None.

    >>> tf.sparse.transpose(tf.SparseTensor([[0, 2]], [5.], [2, 3])).indices
    [[2, 0]]
    """
    x = as_sparse(sp_input, "transpose")
    order = list(range(x.indices.shape[1]))[::-1] if perm is None else dims_of(perm)
    indices = primitives.GatherV2(x.indices, np.asarray(order, np.int32), 1, 0)
    return reorder(SparseTensor(indices, x.values, [_dims(x)[i] for i in order]))


@public("sparse.reshape")
def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements under another shape; one dimension may be -1.

    >>> tf.sparse.reshape(tf.SparseTensor([[1, 0]], [5.], [2, 3]), [6]).indices
    [[3]]
    """
    x = as_sparse(sp_input, "reshape")
    old, new = _dims(x), dims_of(shape)
    total = int(np.prod(old, dtype=np.int64))
    if new.count(-1) > 1:
        raise InvalidArgumentError(None, None, f"sparse.reshape: only one output dimension may be -1; got {new}")
    if -1 in new:
        known = int(np.prod([d for d in new if d != -1], dtype=np.int64))
        if not known or total % known:
            raise InvalidArgumentError(
                None,
                None,
                f"sparse.reshape: Input to reshape is a SparseTensor with {total} dense values, but the "
                f"requested shape requires a multiple of {known}",
            )
        new[new.index(-1)] = total // known
    if int(np.prod(new, dtype=np.int64)) != total:
        raise InvalidArgumentError(
            None,
            None,
            f"sparse.reshape: Input to reshape is a tensor with {total} dense values, but the requested shape "
            f"has {int(np.prod(new, dtype=np.int64))}",
        )
    return SparseTensor(_unflat(_flat(x.indices, old), new), x.values, new)


@public("sparse.expand_dims")
def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A dimension of 1 put in at `axis`, the last one by default.

    >>> tf.sparse.expand_dims(tf.SparseTensor([[1]], [5.], [3]), 0).indices
    [[0, 1]]
    """
    x = as_sparse(sp_input, "expand_dims")
    rank = x.indices.shape[1]
    axis = rank if axis is None else int(axis)
    if not -rank - 1 <= axis <= rank:
        raise ValueError(f"axis {axis} is out of range for a sparse tensor of rank {rank}")
    axis = axis if axis >= 0 else axis + rank + 1
    column = primitives.BroadcastTo(_core.convert_to_tensor(0, int64, None, "expand_dims"), [x.indices.shape[0], 1])
    dims = _dims(x)
    indices = primitives.ConcatV2([x.indices[:, :axis], column, x.indices[:, axis:]], 1)
    return SparseTensor(indices, x.values, [*dims[:axis], 1, *dims[axis:]])


@public("sparse.retain")
def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The stored elements for which `to_retain` is true.

    >>> tf.sparse.retain(tf.SparseTensor([[1], [2]], [5., 6.], [3]), [False, True]).values
    [6.]
    """
    x, mask = as_sparse(sp_input, "retain"), convert_to_tensor(to_retain)
    if not mask.shape.is_compatible_with(x.values.shape):
        raise ValueError(f"retain: to_retain must have the shape {x.values.shape} of the values; got {mask.shape}")
    places = _positions(mask)
    return SparseTensor(
        primitives.GatherV2(x.indices, places, 0, 0), primitives.GatherV2(x.values, places, 0, 0), x.dense_shape
    )


@public("sparse.slice")
def slice_(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The stored elements in a block of `size` from the position `start`.

    >>> tf.sparse.slice(tf.SparseTensor([[1], [2]], [5., 6.], [3]), [2], [1]).indices
    [[0]]
    """
    x = as_sparse(sp_input, "slice")
    begin, dims = np.asarray(start, np.int64), np.asarray(_dims(x), np.int64)
    end = np.minimum(begin + np.asarray(size, np.int64), dims)
    inside = primitives.All(
        primitives.LogicalAnd(primitives.GreaterEqual(x.indices, begin), primitives.Less(x.indices, end)), 1, False
    )
    indices, values = _chosen(x, inside)
    return SparseTensor(indices - begin, values, np.maximum(end - begin, 0))


@public("sparse.split")
def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None) -> list[SparseTensor]:
    """So many parts along `axis`; the first ones are longer by one if the dimension does not divide.

    >>> [part.values for part in tf.sparse.split(tf.SparseTensor([[1], [2]], [5., 6.], [4]), 2, 0)]
    [[5.], [6.]]
    """
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sparse.split: sp_input, num_split and axis are required")
    x, count = as_sparse(sp_input, "split"), int(num_split)
    dims = _dims(x)
    axis = int(axis) % len(dims)
    if count < 1 or count > dims[axis]:
        raise InvalidArgumentError(
            None, None, f"sparse.split: Input num_split should be in [1, {dims[axis]}]; got {count}"
        )
    parts, begin = [], 0
    for i in range(count):
        length = dims[axis] // count + (i < dims[axis] % count)
        start, size = [0] * len(dims), list(dims)
        start[axis], size[axis] = begin, length
        parts.append(slice_(x, start, size))
        begin += length
    return parts


@public("sparse.reset_shape")
def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger shape, or in the tightest one if none is given.

    >>> tf.sparse.reset_shape(tf.SparseTensor([[1]], [5.], [9])).dense_shape
    [2]
    """
    x = as_sparse(sp_input, "reset_shape")
    if new_shape is None:
        if not x.indices.shape[0]:
            return SparseTensor(x.indices, x.values, [0] * x.indices.shape[1])
        return SparseTensor(x.indices, x.values, primitives.Max(x.indices, 0, False) + 1)
    dims = dims_of(new_shape)
    if len(dims) != len(_dims(x)) or any(new < old for new, old in zip(dims, _dims(x))):
        raise ValueError(f"reset_shape: new_shape must not be smaller in any dimension than {_dims(x)}; got {dims}")
    return SparseTensor(x.indices, x.values, dims)


@public("sparse.fill_empty_rows")
def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Any]:
    """An element `default_value` at column 0 of each row without elements; and which rows these are.

    >>> tf.sparse.fill_empty_rows(tf.SparseTensor([[1, 0]], [5.], [2, 2]), 9.)[0].values
    [9., 5.]
    """
    x = as_sparse(sp_input, "fill_empty_rows")
    dims = _dims(x)
    filler = convert_to_tensor(default_value, dtype=None if _core.is_tensor(default_value) else x.dtype)
    if filler.shape.rank != 0:
        raise InvalidArgumentError(
            None, None, f"fill_empty_rows: default_value must be a scalar; got shape {filler.shape}"
        )
    count = primitives.UnsortedSegmentSum(
        primitives.BroadcastTo(_core.convert_to_tensor(1, int32, None, "fill"), [x.indices.shape[0]]),
        _column(x.indices, 0),
        dims[0],
    )
    empty = primitives.Equal(count, 0)
    rows = primitives.Where(empty)
    new = rows.shape[0]
    zeros = primitives.BroadcastTo(_core.convert_to_tensor(0, int64, None, "fill"), [new, len(dims) - 1])
    indices = primitives.ConcatV2([x.indices, primitives.ConcatV2([rows, zeros], 1)], 0)
    values = primitives.ConcatV2([x.values, primitives.BroadcastTo(filler, [new])], 0)
    # Stable by row alone: elements of a row stay in their order.
    keys = _column(indices, 0)
    order = primitives.TopKV2(keys, keys.shape[0], True, True)[1] if keys.shape[0] else cast(keys, int32)
    filled = SparseTensor(primitives.GatherV2(indices, order, 0, 0), take(values, order, 0), x.dense_shape)
    return filled, empty


# ---- reductions


def _reduced(x: SparseTensor, axis: Any, keepdims: Any) -> tuple[Any, list[int], list[int]]:
    """The flat position of each element in the result, the kept dimensions and the shape of the result."""
    dims = _dims(x)
    rank = len(dims)
    axes = set(range(rank)) if axis is None else {a % rank for a in _checked_axes(axis, rank)}
    kept = [i for i in range(rank) if i not in axes]
    kept_dims = [dims[i] for i in kept]
    columns = primitives.GatherV2(x.indices, np.asarray(kept, np.int32), 1, 0)
    shape = [1 if i in axes else d for i, d in enumerate(dims)] if keepdims else kept_dims
    return _flat(columns, kept_dims), kept_dims, shape


def _checked_axes(axis: Any, rank: int) -> list[int]:
    axes = dims_of(axis)
    for a in axes:
        if not -rank <= a < rank:
            raise InvalidArgumentError(
                None, None, f"sparse reduction: Invalid reduction dimension {a} for a tensor of rank {rank}"
            )
    return axes


def _reduce(fold: Any, sp_input: Any, axis: Any, keepdims: Any, output_is_sparse: bool) -> Any:
    x = as_sparse(sp_input, "sparse.reduce")
    ids, kept_dims, shape = _reduced(x, axis, keepdims)
    total = int(np.prod(kept_dims, dtype=np.int64))
    values = fold(x.values, ids, total)
    one = _core.convert_to_tensor(1, int32, None, "reduce")
    reached = primitives.Greater(
        primitives.UnsortedSegmentSum(primitives.BroadcastTo(one, [x.indices.shape[0]]), ids, total), 0
    )
    if output_is_sparse:
        places = _positions(reached)
        return SparseTensor(_unflat(places, shape), take(values, places, 0), shape)
    zero = _core.convert_to_tensor(0, x.dtype, None, "reduce")
    return primitives.Reshape(primitives.SelectV2(reached, values, zero), shape)


@public("sparse.reduce_sum")
def reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The sums of the stored elements along `axis`, dense or sparse.

    >>> tf.sparse.reduce_sum(tf.SparseTensor([[0, 1], [1, 0]], [5., 6.], [2, 2]), 1)
    [5., 6.]
    """
    return _reduce(primitives.UnsortedSegmentSum, sp_input, axis, keepdims, output_is_sparse)


@public("sparse.reduce_max")
def reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The largest of the stored elements along `axis`; 0 where there are none.

    >>> tf.sparse.reduce_max(tf.SparseTensor([[0, 0], [0, 1]], [5., 6.], [2, 2]), 1)
    [6., 0.]
    """
    return _reduce(primitives.UnsortedSegmentMax, sp_input, axis, keepdims, output_is_sparse)


@public("sparse.softmax")
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the stored elements of each line of the last dimension.

    >>> tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 1]], [1., 1.], [1, 3])).values
    [0.5, 0.5]
    """
    x = as_sparse(sp_input, "softmax")
    dims = _dims(x)
    if len(dims) < 2:
        raise InvalidArgumentError(None, None, f"sparse.softmax: input should have rank >= 2; got shape {dims}")
    ids, kept, _ = _reduced(x, len(dims) - 1, False)
    total = int(np.prod(kept, dtype=np.int64))
    highest = primitives.UnsortedSegmentMax(primitives.StopGradient(x.values), ids, total)
    powers = primitives.Exp(x.values - primitives.GatherV2(highest, ids, 0, 0))
    return x.with_values(powers / primitives.GatherV2(primitives.UnsortedSegmentSum(powers, ids, total), ids, 0, 0))


# ---- two tensors


def _union(a: SparseTensor, b: SparseTensor, who: str) -> tuple[list[int], Any, Any, Any]:
    """The shape, the positions in `a` or `b`, and the place among these of each element of `a` and of `b`."""
    dims = _dims(a)
    if dims != _dims(b):
        raise InvalidArgumentError(None, None, f"{who}: Operands' shapes do not match: got {dims} and {_dims(b)}")
    flat = primitives.ConcatV2([_flat(a.indices, dims), _flat(b.indices, dims)], 0)
    n = flat.shape[0]
    ordered = primitives.TopKV2(flat, n, True, True)[0] if n else flat
    first, _, _ = primitives.DistinctElements(ordered, int64)
    distinct = primitives.GatherV2(ordered, first, 0, 0)
    count = distinct.shape[0]
    line = primitives.Reshape(distinct, [1, count])
    places = primitives.Reshape(primitives.SearchSorted(line, primitives.Reshape(flat, [1, n]), False, int64), [n])
    return dims, distinct, places[: a.indices.shape[0]], places[a.indices.shape[0] :]


@public("sparse.add")
def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of two sparse tensors, sparse; or of a sparse and a dense one, dense.

    Elements of a sparse sum whose magnitude is below `threshold` are left out.

    >>> tf.sparse.add(tf.SparseTensor([[1]], [5.], [2]), [1., 1.])
    [1., 6.]
    """
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not is_sparse(a):
        a, b = b, a
    a = as_sparse(a, "add")
    if not is_sparse(b):
        dense = convert_to_tensor(b, dtype_hint=a.dtype)
        if dense.shape.as_list() != _dims(a):
            raise InvalidArgumentError(
                None, None, f"sparse.add: Dimensions {_dims(a)} and {dense.shape.as_list()} do not match"
            )
        return primitives.TensorScatterAdd(dense, a.indices, a.values)
    b = as_sparse(b, "add")
    dims, flat, in_a, in_b = _union(a, b, "sparse.add")
    count = flat.shape[0]
    values = primitives.UnsortedSegmentSum(
        primitives.ConcatV2([a.values, b.values], 0), primitives.ConcatV2([in_a, in_b], 0), count
    )
    total = SparseTensor(_unflat(flat, dims), values, a.dense_shape)
    if not _core.is_tensor(threshold) and threshold == 0:
        return total
    size = primitives.ComplexAbs(values) if values.dtype.is_complex else primitives.Abs(values)
    indices, values = _chosen(total, primitives.GreaterEqual(size, cast(threshold, size.dtype)))
    return SparseTensor(indices, values, a.dense_shape)


def _extremum(choose: Any, sp_a: Any, sp_b: Any, who: str) -> SparseTensor:
    a, b = as_sparse(sp_a, who), as_sparse(sp_b, who)
    dims, flat, in_a, in_b = _union(a, b, who)
    count = flat.shape[0]
    wide = (primitives.UnsortedSegmentSum(x.values, places, count) for x, places in ((a, in_a), (b, in_b)))
    return SparseTensor(_unflat(flat, dims), choose(*wide), a.dense_shape)


@public("sparse.maximum")
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger element at each position that is stored in either; one that is not stored counts as 0.

    >>> tf.sparse.maximum(tf.SparseTensor([[1]], [5.], [3]), tf.SparseTensor([[1]], [7.], [3])).values
    [7.]
    """
    return _extremum(primitives.Maximum, sp_a, sp_b, "sparse.maximum")


@public("sparse.minimum")
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller element at each position that is stored in either; one that is not stored counts as 0.

    >>> tf.sparse.minimum(tf.SparseTensor([[1]], [5.], [3]), tf.SparseTensor([[1]], [7.], [3])).values
    [5.]
    """
    return _extremum(primitives.Minimum, sp_a, sp_b, "sparse.minimum")


def dense_elements(x: SparseTensor, dense: Any, who: str) -> Any:
    """The elements of a dense tensor, broadcast to the shape of `x`, at the positions of `x`."""
    y = convert_to_tensor(dense, dtype_hint=x.dtype)
    if y.shape.rank == 0:
        return y
    if _core.is_symbolic(x.dense_shape):
        places = x.indices[:, x.shape.rank - y.shape.rank :] % primitives.Shape(y, int64)
        return primitives.GatherNd(y, places, 0)
    dims = _dims(x)
    if y.shape.rank > len(dims) or any(d not in (1, full) for d, full in zip(y.shape.as_list()[::-1], dims[::-1])):
        raise InvalidArgumentError(
            None,
            None,
            f"{who}: SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes "
            f"{dims} vs. {y.shape.as_list()}",
        )
    skip = len(dims) - y.shape.rank
    columns = [
        _column(x.indices, skip + i)
        if size != 1
        else primitives.BroadcastTo(_core.convert_to_tensor(0, int64, None, who), [x.indices.shape[0]])
        for i, size in enumerate(y.shape.as_list())
    ]
    flat = _flat(primitives.Pack(columns, 1), y.shape.as_list())
    return take(primitives.Reshape(y, [-1]), flat, 0)


def _multiply(self: SparseTensor, other: Any) -> SparseTensor:
    return self.with_values(self.values * dense_elements(self, other, "multiply"))


def _divide(self: SparseTensor, other: Any) -> SparseTensor:
    elements = dense_elements(self, other, "divide")
    if self.dtype.is_integer:
        return self.with_values(primitives.TruncateDiv(self.values, elements))
    return self.with_values(primitives.RealDiv(self.values, elements))


SparseTensor.__mul__ = _multiply
SparseTensor.__truediv__ = _divide


@public("sparse.sparse_dense_matmul")
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """The product of two matrices of which one is sparse.

    >>> tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 1]], [2.], [2, 2]), [[1.], [3.]])
    [[6.], [0.]]
    """
    if is_sparse(b) and is_sparse(sp_a):
        raise TypeError("sparse_dense_matmul: one matrix must be dense; got two SparseTensors")
    if is_sparse(b):
        # a b = (b^H a^H)^H
        product = sparse_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a)
        return _adjoint(product)
    a = as_sparse(sp_a, "sparse_dense_matmul")
    dense = convert_to_tensor(b, dtype_hint=a.dtype)
    if adjoint_b:
        dense = _adjoint(dense)
    shape = shape_argument(a.dense_shape) if _core.is_symbolic(a.dense_shape) else _dims(a)
    return primitives.SparseTensorDenseMatMul(a.indices, a.values, dense, shape, adjoint_a)


def _adjoint(x: Any) -> Any:
    return primitives.Transpose(x, [1, 0], True)


@public("sparse.sampled_addmm")
def sampled_addmm(
    indices: Any,
    values: Any,
    dense_shape: Any,
    mat1: Any,
    mat2: Any,
    beta: float = 1.0,
    alpha: float = 1.0,
    output_type: Any = float32,
) -> tuple[Any, Any, Any]:
    """`alpha * (mat1 mat2) + beta * values` at the given positions alone: the positions, elements and shape.

    >>> tf.sparse.sampled_addmm([[0, 1]], [1.], [2, 2], [[1.], [2.]], [[3., 4.]])[1]
    [5.]
    """
    indices, values, dims = convert_to_tensor(indices), convert_to_tensor(values), convert_to_tensor(dense_shape)
    mat1, mat2 = convert_to_tensor(mat1), convert_to_tensor(mat2)
    rank = mat1.shape.rank
    if rank < 2 or mat2.shape.rank != rank or indices.shape.rank != rank or indices.shape[-1] != 2:
        raise ValueError(
            "sampled_addmm: mat1 and mat2 must be (batches of) matrices, and indices as many (batches of) pairs; got "
            f"{mat1.shape}, {mat2.shape} and {indices.shape}"
        )
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    rows = primitives.GatherV2(mat1, indices[..., 0], rank - 2, rank - 2)
    columns = primitives.GatherV2(primitives.Transpose(mat2, swapped), indices[..., 1], rank - 2, rank - 2)
    product = primitives.Sum(rows * columns, -1, False)
    result = _core.convert_to_tensor(alpha, product.dtype, None, "sampled_addmm") * product + beta * values
    return indices, cast(result, output_type), dims


@public("edit_distance")
def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Any:
    """The Levenshtein distance of the sequences in the last dimension, divided by the true length if `normalize`.

    >>> tf.edit_distance(tf.sparse.from_dense([[1, 2]]), tf.sparse.from_dense([[1, 3]]))
    [0.5]
    """
    a, b = as_sparse(hypothesis, "edit_distance"), as_sparse(truth, "edit_distance")
    if len(_dims(a)) != len(_dims(b)):
        raise InvalidArgumentError(
            None,
            None,
            "edit_distance: Expected truth and hypothesis to have matching ranks, but their shapes are "
            f"{_dims(b)} and {_dims(a)}",
        )
    shape = np.maximum(_dims(a)[:-1], _dims(b)[:-1])
    groups: dict[tuple[int, ...], tuple[list[Any], list[Any]]] = {}
    for which, x in enumerate((a, b)):
        for place, value in zip(x.indices.numpy().tolist(), x.values.numpy().tolist()):
            groups.setdefault(tuple(place[:-1]), ([], []))[which].append(value)
    result = np.zeros(shape, np.float32)
    for place, (guess, true) in groups.items():
        row = list(range(len(true) + 1))
        for i, element in enumerate(guess, 1):
            above, row = row, [i]
            for j, wanted in enumerate(true, 1):
                row.append(builtins.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (element != wanted)))
        distance = float(row[-1])
        if normalize:
            distance = distance / len(true) if true else (np.inf if guess else 0.0)
        result[place] = distance
    return convert_to_tensor(result)


# ---- joining


@public("sparse.concat")
def concat(axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None) -> SparseTensor:
    """Sparse tensors joined along `axis`. No gradient flows.

    >>> tf.sparse.concat(0, [tf.SparseTensor([[1]], [5.], [2]), tf.SparseTensor([[0]], [6.], [2])]).indices
    [[1], [2]]
    """
    parts = [as_sparse(x, "concat") for x in (sp_inputs if isinstance(sp_inputs, list | tuple) else [sp_inputs])]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise ValueError("sparse.concat: sp_inputs must not be empty")
    rank = parts[0].indices.shape[1]
    axis = int(axis)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            None, None, f"sparse.concat: Concat dimension must be in range [{-rank}, {rank}), got {axis}"
        )
    axis = axis % rank
    sizes = [_dims(x) for x in parts]
    if any(len(dims) != rank for dims in sizes):
        raise InvalidArgumentError(None, None, f"sparse.concat: all inputs must have one rank; got shapes {sizes}")
    full = [builtins.max(column) for column in zip(*sizes)]
    if not expand_nonconcat_dims:
        for dims in sizes:
            if any(d != f for i, (d, f) in enumerate(zip(dims, full)) if i != axis):
                raise InvalidArgumentError(
                    None, None, f"sparse.concat: All dimensions but {axis} must match; got shapes {sizes}"
                )
    full[axis] = sum(dims[axis] for dims in sizes)
    begin, indices = 0, []
    for x, dims in zip(parts, sizes):
        shift = np.zeros(rank, np.int64)
        shift[axis] = begin
        indices.append(x.indices + shift)
        begin += dims[axis]
    values = primitives.ConcatV2([primitives.StopGradient(x.values) for x in parts], 0)
    return reorder(SparseTensor(primitives.ConcatV2(indices, 0), values, full))


@public("sparse.mask")
def mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """The slices of an IndexedSlices whose index is not among `mask_indices`.

    >>> tf.sparse.mask(tf.IndexedSlices(tf.constant([[1.], [2.]]), tf.constant([0, 3])), [3]).values
    [[1.]]
    """
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"sparse.mask: `a` must be a tf.IndexedSlices; got {type(a).__name__}")
    indices = convert_to_tensor(a.indices)
    masked = convert_to_tensor(mask_indices, dtype_hint=indices.dtype)
    hit = primitives.Equal(primitives.ExpandDims(indices, 1), primitives.ExpandDims(cast(masked, indices.dtype), 0))
    places = _positions(primitives.LogicalNot(primitives.Any(hit, 1, False)))
    places = cast(places, int32)
    return IndexedSlices(
        primitives.GatherV2(a.values, places, 0, 0), primitives.GatherV2(indices, places, 0, 0), a.dense_shape
    )


@public("sparse.bincount")
def bincount(
    values: Any,
    weights: Any = None,
    axis: int = 0,
    minlength: Any = None,
    maxlength: Any = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each number occurs, or the sum of its weights, as a sparse tensor; for each row if `axis` is -1.

    >>> tf.sparse.bincount([1, 1, 3]).values
    [2, 1]
    """
    if axis not in (0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    rows = None
    if is_sparse(values):
        row_count = _dims(values)[0]
        rows = _column(values.indices, 0) if axis == -1 and values.shape.rank != 1 else None
        weights = getattr(weights, "values", weights)
        values = values.values
    elif hasattr(values, "row_splits"):
        row_count = int(values.nrows())
        rows = values.value_rowids() if axis == -1 else None
        weights = getattr(weights, "values", weights)
        values = values.values
    values = convert_to_tensor(values)
    numbers, given = cast(values, int64), values.dtype
    if rows is None and axis == -1 and numbers.shape.rank == 2:
        row_count = numbers.shape[0]
        rows = primitives.Reshape(primitives.BroadcastTo(np.arange(row_count)[:, None], numbers.shape.as_list()), [-1])
    by_row = rows is not None
    numbers = primitives.Reshape(numbers, [-1])
    weights = None if weights is None else primitives.Reshape(convert_to_tensor(weights), [-1])
    length = bin_count_length(numbers, minlength, maxlength)
    dtype = weights.dtype if weights is not None else int64 if given == int64 else int32
    row_count, rows = (
        (row_count, cast(rows, int64)) if by_row else (1, _core.convert_to_tensor(0, int64, None, "bincount"))
    )
    counts = count_bins(numbers, rows, row_count, weights, length, binary_output, dtype)
    hits = count_bins(numbers, rows, row_count, None, length, False, int32)
    found = primitives.Where(primitives.Greater(hits, 0))
    elements = primitives.GatherNd(counts, found, 0)
    return SparseTensor(found if by_row else found[:, 1:], elements, [row_count, length] if by_row else [length])


# ---- crossing features


def _features(x: Any) -> list[list[Any]]:
    """The elements of each row, as bytes or ints."""
    if is_sparse(x):
        rows: list[list[Any]] = [[] for _ in range(_dims(x)[0])]
        for (row, *_), value in zip(x.indices.numpy().tolist(), x.values.numpy().tolist()):
            rows[row].append(value)
        return rows
    if hasattr(x, "to_list"):
        return x.to_list()
    tensor = convert_to_tensor(x)
    if tensor.shape.rank != 2:
        raise ValueError(f"cross: each input must have two dimensions; got shape {tensor.shape}")
    return tensor.numpy().tolist()


def crossed_rows(inputs: Any, join: Any) -> list[list[Any]]:
    """For each row, `join` of each combination of one element of every input; the first input varies slowest."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"cross: Inputs must be a list; got {type(inputs).__name__}")
    columns = [_features(x) for x in inputs]
    if len({len(column) for column in columns}) > 1:
        raise InvalidArgumentError(
            None, None, f"cross: all inputs must have one batch size; got {[len(c) for c in columns]}"
        )
    result = []
    for row in zip(*columns):
        combinations: list[list[Any]] = [[]]
        for features in row:
            combinations = [[*c, f] for c in combinations for f in features]
        result.append([join(c) for c in combinations])
    return result


def _sparse_rows(rows: list[list[Any]], dtype: Any) -> SparseTensor:
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [v for row in rows for v in row]
    return SparseTensor(
        np.asarray(indices, np.int64).reshape(-1, 2),
        _core.convert_to_tensor(values, dtype, None, "cross"),
        [len(rows), builtins.max((len(row) for row in rows), default=0)],
    )


def join_features(features: list[Any], separator: str) -> bytes:
    """Features as text, with a separator."""
    return separator.encode().join(f if isinstance(f, bytes) else str(f).encode() for f in features)


def hash_features(features: list[Any], num_buckets: int, hash_key: int | None) -> int:
    """The bucket of a combination of features."""
    value = fingerprint_of_key(hash_key)
    for feature in features:
        number = fingerprint64(feature) if isinstance(feature, bytes) else feature % 2**64
        value = combined_fingerprint(value, number)
    return value % num_buckets if num_buckets else value % (2**63 - 1)


@public("sparse.cross")
def cross(inputs: Any, name: str | None = None, separator: str | None = None) -> SparseTensor:
    """All combinations of one feature of each input, row by row, as text.

    >>> tf.sparse.cross([tf.constant([["a"]]), tf.constant([["b"]])]).values
    [b'a_X_b']
    """
    between = "_X_" if separator is None else separator
    if not isinstance(between, str):
        raise TypeError(f"sparse.cross: `separator` must be a text; got {separator!r}")
    return _sparse_rows(crossed_rows(inputs, lambda features: join_features(features, between)), "string")


@public("sparse.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """All combinations of one feature of each input, row by row, hashed into `num_buckets` numbers.

    >>> tf.sparse.cross_hashed([tf.constant([["a"]]), tf.constant([["b"]])], num_buckets=1).values
    [0]
    """
    return _sparse_rows(crossed_rows(inputs, lambda features: hash_features(features, num_buckets, hash_key)), int64)


@public("compat.v1.convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A sparse tensor as it is, and anything else as a tensor.

    >>> tf.compat.v1.convert_to_tensor_or_sparse_tensor([1., 2.])
    [1., 2.]
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor(*value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise RuntimeError(f"Sparse dtype mismatch. Requested: {as_dtype(dtype).name},  Actual: {value.dtype.name}")
    return value


@public("compat.v1.convert_to_tensor_or_indexed_slices")
def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Indexed slices and sparse tensors as they are, and anything else as a tensor.

    >>> tf.compat.v1.convert_to_tensor_or_indexed_slices([1., 2.])
    [1., 2.]
    """
    if not isinstance(value, IndexedSlices | SparseTensor):
        return convert_to_tensor(value, dtype)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            "Tensor conversion requested dtype "
            f"{as_dtype(dtype).name} for Tensor with dtype {value.dtype.name}: {value!r}"
        )
    return value
