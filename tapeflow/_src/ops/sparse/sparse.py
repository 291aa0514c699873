"""`tf.sparse`: operations on tensors of which only some elements are stored."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.arrays.sorting import argsort
from tapeflow._src.ops.effects.host_call import WithCall, host_effect
from tapeflow._src.ops.sparse.coordinates import (
    as_sparse,
    can_flatten,
    chosen_elements,
    coordinates_of,
    dims_of_sparse,
    flat_positions,
    is_sparse,
    true_positions,
)
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue

# ---- one sparse tensor


@public("sparse.map_values")
def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """`op` applied to the stored elements; all SparseTensors among the arguments must have the same positions.

    >>> tf.sparse.map_values(tf.square, tf.SparseTensor([[1]], [5.], [3])).values
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([25.], dtype=float32)>
    """
    found = [a for a in nest.flatten((args, kwargs)) if is_sparse(a)]
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")
    first = found[0]
    for other in found[1:]:
        if other.shape != first.shape or not np.array_equal(other.indices.numpy(), first.indices.numpy()):
            raise InvalidArgumentError.of("map_values: all SparseTensors must have the same indices and dense_shape")

    def inner(value: Any) -> Any:
        if is_sparse(value):
            return value.values
        if isinstance(value, list | tuple):
            return type(value)(inner(v) for v in value)
        return value

    sparse: SparseTensor = first.with_values(
        op(*(inner(a) for a in args), **{key: inner(v) for key, v in kwargs.items()})
    )
    return sparse


@public("sparse.reorder")
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same elements in the order of their positions.

    >>> tf.sparse.reorder(tf.SparseTensor([[1], [0]], [5., 6.], [3])).values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([6., 5.], dtype=float32)>
    """
    x = as_sparse(sp_input, "reorder")
    if x.indices.shape[0] == 0:
        return x
    dims = dims_of_sparse(x)
    if can_flatten(dims):
        flat = flat_positions(x.indices, dims)
        order = primitives.TopKV2(flat, dynamic_dims(flat)[0], True, True)[1]
    else:
        order = convert_to_tensor(np.lexsort(x.indices.numpy().T[::-1]))
    return SparseTensor(primitives.GatherV2(x.indices, order, 0, 0), take(x.values, order, 0), x.dense_shape)


@public("sparse.transpose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Dimensions in another order; reversed if `perm` is None.

    >>> tf.sparse.transpose(tf.SparseTensor([[0, 2]], [5.], [2, 3])).indices
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[2, 0]])>
    """
    x = as_sparse(sp_input, "transpose")
    order = list(range(x.indices.shape[1]))[::-1] if perm is None else dims_of(perm)
    if len(order) != x.indices.shape[1]:
        raise ValueError(
            f"sparse.transpose: Dimensions {len(order)} and {x.indices.shape[1]} are not compatible: perm must name "
            "each dimension once"
        )
    indices = primitives.GatherV2(x.indices, np.asarray(order, np.int32), 1, 0)
    return reorder(SparseTensor(indices, x.values, [dims_of_sparse(x)[i] for i in order]))


@public("sparse.reshape")
def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements under another shape; one dimension may be -1.

    >>> tf.sparse.reshape(tf.SparseTensor([[1, 0]], [5.], [2, 3]), [6]).indices
    <tf.Tensor: shape=(1, 1), dtype=int64, numpy=array([[3]])>
    """
    x = as_sparse(sp_input, "reshape")
    if _core.is_symbolic(x.dense_shape) or any(_core.is_symbolic(d) for d in nest.flatten(shape)):
        return _reshape_by_tensors(x, cast(convert_to_tensor(shape), int64))
    old = dims_of_sparse(x)
    new = _reshaped_dims(old, dims_of(shape))
    return SparseTensor(coordinates_of(flat_positions(x.indices, old), new), x.values, new)


def _reshaped_dims(old: list[int], new: list[int]) -> list[int]:
    """The sizes that are wanted, with the one that -1 stands for."""
    new, total = list(new), math.prod(old)
    if new.count(-1) > 1:
        raise InvalidArgumentError.of(
            f"sparse.reshape: only one output dimension may be -1: At most one dimension can be inferred; got {new}"
        )
    if -1 in new:
        known = math.prod(d for d in new if d != -1)
        if not known or total % known:
            raise InvalidArgumentError.of(
                f"sparse.reshape: Cannot reshape: Input to reshape is a SparseTensor with {total} dense values, but "
                f"the requested shape requires a multiple of {known}",
            )
        new[new.index(-1)] = total // known
    if math.prod(new) != total:
        raise InvalidArgumentError.of(
            f"sparse.reshape: Cannot reshape: Input to reshape is a tensor with {total} dense values, but the "
            f"requested shape has {math.prod(new)}",
        )
    return new


def check_reshaped(old: Any, new: Any) -> None:
    """Raises an error if a tensor of one shape cannot have the other one, in which a size may be -1."""
    _reshaped_dims(*(np.asarray(dims).tolist() for dims in (old, new)))


def _reshape_by_tensors(x: SparseTensor, shape: Any) -> SparseTensor:
    """`reshape` where a shape is known only when the graph runs."""
    one = convert_to_tensor(1, int64)
    wanted = shape
    total = primitives.Prod(x.dense_shape, [0], False)
    known = primitives.Prod(primitives.SelectV2(shape < 0, one, shape), [0], False)
    shape = primitives.SelectV2(shape < 0, primitives.FloorDiv(total, primitives.Maximum(known, one)), shape)
    check = host_effect(WithCall(check_reshaped, check_reshaped, 2), [x.dense_shape, wanted])
    with find_public("control_dependencies")([] if check is None else [check]):
        shape = primitives.Identity(shape)
    cumprod = find_public("math.cumprod")
    flat = primitives.Sum(x.indices * cumprod(x.dense_shape, exclusive=True, reverse=True), 1, False)
    steps = primitives.Maximum(cumprod(shape, exclusive=True, reverse=True), one)
    columns = primitives.FloorDiv(primitives.ExpandDims(flat, 1), steps)
    return SparseTensor(primitives.FloorMod(columns, primitives.Maximum(shape, one)), x.values, shape)


@public("sparse.expand_dims")
def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A dimension of 1 put in at `axis`, the last one by default.

    >>> tf.sparse.expand_dims(tf.SparseTensor([[1]], [5.], [3]), 0).indices
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[0, 1]])>
    """
    x = as_sparse(sp_input, "expand_dims")
    rank = x.indices.shape[1]
    axis = rank if axis is None else int(axis)
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError.of(
            f"sparse.expand_dims: axis {axis} is out of range for a sparse tensor of rank {rank}"
        )
    axis = axis if axis >= 0 else axis + rank + 1
    column = primitives.BroadcastTo(_core.convert_to_tensor(0, int64, None, "expand_dims"), [x.indices.shape[0], 1])
    dims = dims_of_sparse(x)
    indices = primitives.ConcatV2([x.indices[:, :axis], column, x.indices[:, axis:]], 1)
    return SparseTensor(indices, x.values, [*dims[:axis], 1, *dims[axis:]])


@public("sparse.retain")
def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The stored elements for which `to_retain` is true.

    >>> tf.sparse.retain(tf.SparseTensor([[1], [2]], [5., 6.], [3]), [False, True]).values
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>
    """
    x, mask = as_sparse(sp_input, "retain"), convert_to_tensor(to_retain)
    if not mask.shape.is_compatible_with(x.values.shape):
        raise ValueError(f"retain: to_retain must have the shape {x.values.shape} of the values; got {mask.shape}")
    places = true_positions(mask)
    return SparseTensor(
        primitives.GatherV2(x.indices, places, 0, 0), primitives.GatherV2(x.values, places, 0, 0), x.dense_shape
    )


@public("sparse.slice")
def slice_(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The stored elements in a block of `size` from the position `start`.

    >>> tf.sparse.slice(tf.SparseTensor([[1], [2]], [5., 6.], [3]), [2], [1]).indices
    <tf.Tensor: shape=(1, 1), dtype=int64, numpy=array([[0]])>
    """
    x = as_sparse(sp_input, "slice")
    begin, dims = np.asarray(start, np.int64), np.asarray(dims_of_sparse(x), np.int64)
    for what, given in (("start", start), ("size", size)):
        if np.shape(given) != dims.shape:
            raise InvalidArgumentError.of(
                f"sparse.slice: Expected {what} to be a vector of length {dims.size} but got shape {np.shape(given)}"
            )
    if (np.asarray(size, np.int64) < 0).any():
        raise InvalidArgumentError.of(f"sparse.slice: size must be non-negative; got {np.asarray(size).tolist()}")
    end = np.minimum(begin + np.asarray(size, np.int64), dims)
    inside = primitives.All(
        primitives.LogicalAnd(primitives.GreaterEqual(x.indices, begin), primitives.Less(x.indices, end)), 1, False
    )
    indices, values = chosen_elements(x, inside)
    return SparseTensor(indices - begin, values, np.maximum(end - begin, 0))


@public("sparse.split")
def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None) -> list[SparseTensor]:
    """So many parts along `axis`; the first ones are longer by one if the dimension does not divide.

    >>> [part.values for part in tf.sparse.split(tf.SparseTensor([[1], [2]], [5., 6.], [4]), 2, 0)]
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>, <tf.Tensor: shape=(1,),
     dtype=float32, numpy=array([6.], dtype=float32)>]
    """
    if sp_input is None or num_split is None or axis is None:
        missing = [name for name, given in (("sp_input", sp_input), ("num_split", num_split)) if given is None]
        raise ValueError(f"sparse.split: {(missing or ['axis'])[0]} is required: Keyword arguments are required")
    if np.ndim(axis):
        raise InvalidArgumentError.of(f"sparse.split: axis should be a scalar; got {axis}")
    x, count = as_sparse(sp_input, "split"), int(num_split)
    dims = dims_of_sparse(x)
    if not -len(dims) <= int(axis) < len(dims):
        raise InvalidArgumentError.of(
            f"sparse.split: Input axis should be in range [{-len(dims)}, {len(dims)}), got {int(axis)}"
        )
    axis = int(axis) % len(dims)
    if count < 1 or count > dims[axis]:
        raise InvalidArgumentError.of(f"sparse.split: Input num_split should be in [1, {dims[axis]}]; got {count}")
    if not _core.is_symbolic(x.indices):
        places = x.indices.numpy()
        outside = ((places < 0) | (places >= np.asarray(dims))).any(1)
        if outside.any():
            row = int(outside.argmax())
            raise InvalidArgumentError.of(
                f"sparse.split: Sparse index tuple indices[{row}, :] = {places[row].tolist()} is out of bounds"
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
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([2])>
    """
    x = as_sparse(sp_input, "reset_shape")
    if new_shape is None:
        highest = primitives.Max(x.indices, 0, False)
        return SparseTensor(x.indices, x.values, primitives.Maximum(highest, -1) + 1)
    shape = cast(convert_to_tensor(new_shape), int64)
    dims, old = get_static_value(shape), get_static_value(x.dense_shape)
    if shape.shape.rank not in (1, None) or not shape.shape.is_compatible_with(x.dense_shape.shape):
        raise ValueError(
            f"reset_shape: new_shape must have one size for each of the {x.dense_shape.shape[0]} dimensions; "
            f"got shape {shape.shape}"
        )
    if dims is None or old is None:
        same_rank = find_public("debugging.assert_equal")(primitives.Shape(shape), primitives.Shape(x.dense_shape))
        not_smaller = find_public("debugging.assert_less_equal")(x.dense_shape, shape)
        with find_public("control_dependencies")([part for part in (same_rank, not_smaller) if part is not None]):
            return SparseTensor(x.indices, x.values, primitives.Identity(shape))
    if (dims < old).any():
        raise ValueError(
            "reset_shape: Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape "
            f"({dims.tolist()}), sp_input.shape ({old.tolist()})."
        )
    return SparseTensor(x.indices, x.values, shape)


@public("sparse.fill_empty_rows")
def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Any]:
    """An element `default_value` at column 0 of each row without elements; and which rows these are.

    >>> tf.sparse.fill_empty_rows(tf.SparseTensor([[1, 0]], [5.], [2, 2]), 9.)[0].values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([9., 5.], dtype=float32)>
    """
    x = as_sparse(sp_input, "fill_empty_rows")
    filler = convert_to_tensor(default_value, dtype=None if _core.is_tensor(default_value) else x.dtype)
    if filler.shape.rank not in (0, None):
        raise InvalidArgumentError.of(f"fill_empty_rows: default_value must be a scalar; got shape {filler.shape}")
    empty = primitives.Equal(_elements_by_row(x), 0)
    rows = primitives.Where(empty)
    new, rank = primitives.Shape(rows)[0], primitives.Shape(x.indices)[1]
    zeros = primitives.BroadcastTo(convert_to_tensor(0, int64), primitives.Pack([new, rank - 1], 0))
    indices = primitives.ConcatV2([x.indices, primitives.ConcatV2([rows, zeros], 1)], 0)
    values = primitives.ConcatV2([x.values, primitives.BroadcastTo(filler, primitives.ExpandDims(new, 0))], 0)
    order = argsort(indices[:, 0], stable=True)  # elements of a row stay in their order
    filled = SparseTensor(primitives.GatherV2(indices, order, 0, 0), take(values, order, 0), x.dense_shape)
    return filled, empty


def _elements_by_row(x: SparseTensor) -> Any:
    """How many elements each row has."""
    rows = x.indices[:, 0]
    ones = primitives.BroadcastTo(convert_to_tensor(1, int32), primitives.Shape(rows))
    try:
        return primitives.UnsortedSegmentSum(ones, rows, x.dense_shape[0])
    except InvalidArgumentError:
        places, count = rows.numpy(), int(x.dense_shape[0])
        at = int(np.argmax((places < 0) | (places >= count)))
        raise InvalidArgumentError.of(
            f"fill_empty_rows: indices({at}, 0) is invalid: {places[at]} "
            + ("< 0" if places[at] < 0 else f">= {count}")
        ) from None


# ---- joining


@public("sparse.concat")
def concat(axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None) -> SparseTensor:
    """Sparse tensors joined along `axis`. No gradient flows.

    >>> tf.sparse.concat(0, [tf.SparseTensor([[1]], [5.], [2]), tf.SparseTensor([[0]], [6.], [2])]).indices
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[1],
           [2]])>
    """
    parts = [as_sparse(x, "concat") for x in (sp_inputs if isinstance(sp_inputs, list | tuple) else [sp_inputs])]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise ValueError("sparse.concat: sp_inputs must not be empty")
    rank = parts[0].indices.shape[1]
    axis = int(axis)
    if not -rank <= axis < rank:
        raise InvalidArgumentError.of(f"sparse.concat: Concat dimension must be in range [{-rank}, {rank}), got {axis}")
    axis = axis % rank
    sizes = [dims_of_sparse(x) for x in parts]
    if any(len(dims) != rank for dims in sizes):
        raise InvalidArgumentError.of(f"sparse.concat: all inputs must have one rank; got shapes {sizes}")
    full = [builtins.max(column) for column in zip(*sizes)]
    if not expand_nonconcat_dims:
        for dims in sizes:
            if any(d != f for i, (d, f) in enumerate(zip(dims, full)) if i != axis):
                raise InvalidArgumentError.of(
                    f"sparse.concat: All dimensions but {axis} must match; got shapes {sizes}"
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
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.]], dtype=float32)>
    """
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"sparse.mask: `a` must be a tf.IndexedSlices; got {type(a).__name__}")
    indices = convert_to_tensor(a.indices)
    masked = convert_to_tensor(mask_indices, dtype_hint=indices.dtype)
    hit = primitives.Equal(primitives.ExpandDims(indices, 1), primitives.ExpandDims(cast(masked, indices.dtype), 0))
    places = true_positions(primitives.LogicalNot(primitives.Any(hit, 1, False)))
    places = cast(places, int32)
    return IndexedSlices(
        primitives.GatherV2(a.values, places, 0, 0), primitives.GatherV2(indices, places, 0, 0), a.dense_shape
    )


@public("compat.v1.convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A sparse tensor as it is, and anything else as a tensor.

    >>> tf.compat.v1.convert_to_tensor_or_sparse_tensor([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
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
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    if not isinstance(value, IndexedSlices | SparseTensor):
        return convert_to_tensor(value, dtype)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            "Tensor conversion requested dtype "
            f"{as_dtype(dtype).name} for Tensor with dtype {value.dtype.name}: {value!r}"
        )
    return value
