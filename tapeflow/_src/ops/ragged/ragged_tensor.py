"""`tf.RaggedTensor`: its dense, sparse and NumPy forms, indexing, spec, and the operations called with it."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, padding_value_of
from tapeflow._src.ops.arrays.passing import after
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.ragged.elementwise import RaggedOperators, elementwise, holds_ragged, is_elementwise
from tapeflow._src.ops.ragged.row_splits import (
    even_splits,
    numbers_below,
    row_positions,
    span_of,
    spans,
    splits_from_lengths,
)
from tapeflow._src.ops.ragged.rows import RaggedRows, expand_dims, gather_rows, row_count
from tapeflow._src.ops.sparse.coordinates import as_sparse
from tapeflow._src.types.dispatch_fallback import dispatched
from tapeflow._src.types.dtypes import DType, as_dtype, float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import ShapedSpec, TensorSpec

# Of which the second argument may be the ragged one.
_BY_INDICES = {"gather_nd", "dynamic_partition", "matmul", primitives.MatMul.__name__}
_OF_LISTS = {"concat", "stack", "add_n"}  # of which the first argument may be a list of ragged tensors
# Modules with functions that share a name with one that has a rule, and not its meaning: tf.strings.split.
_NAMESAKES = ("tapeflow._src.numpy.", "tapeflow._src.ops.random.", "tapeflow._src.ops.strings.")
_operation_by_name: dict[str, Any] = {}


def add_operation(name: str, function: Any) -> None:
    """Registers what runs when the operation of this name is called with a ragged first argument."""
    _operation_by_name[name] = _core.Composition(function)


def _has_rule(function: Any, name: str, first: Any) -> bool:
    """Whether an operation called with this first argument has a rule of its own for ragged tensors."""
    if name not in _operation_by_name or not (
        holds_ragged(first) if name in _OF_LISTS else isinstance(first, RaggedRows)
    ):
        return False
    return name == "reduce_join" or not str(getattr(function, "__module__", "")).startswith(_NAMESAKES)


def _row_number(key: Any) -> int:
    """The integer of an index."""
    if isinstance(key, bool | np.bool_):
        raise ValueError("RaggedTensor: mask cannot be scalar.")
    whole = key.dtype.name in ("int32", "int64") and key.shape.rank == 0 if _core.is_tensor(key) else None
    if whole or (whole is None and isinstance(key, int | np.integer)):
        return int(key)
    raise TypeError(
        "RaggedTensor: Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 "
        f"tensors are valid indices, got {key!r}"
    )


@public("RaggedTensor", "compat.v1.RaggedTensor")
class RaggedTensor(RaggedOperators, RaggedRows):
    """Rows `values[row_splits[i]:row_splits[i + 1]]`; the values may be ragged themselves.

    >>> tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3]).to_list()
    [[1, 2], [3]]
    """

    __array_priority__ = 200
    is_tensor_like = True

    # ---- other forms

    @classmethod
    @dispatched
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = int64,
    ) -> RaggedTensor:
        """The rows of a dense tensor, cut to `lengths`, or without the `padding` at their ends."""
        x = convert_to_tensor(tensor)
        rank, dtype, sizes = x.shape.rank, as_dtype(row_splits_dtype), primitives.Shape(x, int64)
        if ragged_rank < 1:
            raise ValueError(f"from_tensor: Argument `ragged_rank` must be greater than 0. Received {ragged_rank}.")
        if rank is not None and ragged_rank >= rank:
            raise ValueError(
                f"from_tensor: Shape {x.shape} must have rank at least {ragged_rank + 1}; the rank of a RaggedTensor "
                "must be greater than 1"
            )
        known = [None, None] if rank is None else x.shape.as_list()
        dims = [sizes[axis] if size is None else size for axis, size in enumerate(known)]
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if (
            isinstance(lengths, list | tuple)
            and lengths
            and isinstance(lengths[0], list | tuple | _core.Tensor | np.ndarray)
        ):
            outer = cls.from_tensor(x, lengths[0], row_splits_dtype=dtype)
            if len(lengths) == 1:
                return outer
            return cls(cls.from_tensor(outer.values, lengths[1:], row_splits_dtype=dtype), outer.row_splits)
        joined = (
            primitives.ConcatV2([primitives.Reshape(dims[0] * dims[1], [1]), sizes[2:]], 0)
            if rank is None
            else [dims[0] * dims[1], *dims[2:]]
        )
        flat = primitives.Reshape(x, joined)
        if ragged_rank > 1:
            values = cls.from_tensor(flat, lengths, padding, ragged_rank - 1, None, dtype)
            return cls(values, even_splits(dims, dtype), known[1])
        if padding is not None:
            filler = convert_to_tensor(padding, dtype=x.dtype)
            x.shape[ragged_rank + 1 :].assert_is_compatible_with(filler.shape)
            same = primitives.Equal(x, filler)
            if rank != 2:
                inner = primitives.Prod(sizes[2:], [0], False)
                same = primitives.All(primitives.Reshape(same, [dims[0], dims[1], inner]), [2], False)
            kept = primitives.SelectV2(same, convert_to_tensor(0, int64), cast(numbers_below(dims[1]), int64) + 1)
            lengths = primitives.Maximum(primitives.Max(kept, 1, False), convert_to_tensor(0, int64))  # of nothing, too
        if lengths is None:
            return cls(flat, even_splits(dims, dtype), known[1])
        lengths = convert_to_tensor(lengths, dtype_hint=dtype)
        if not lengths.dtype.is_integer:
            raise TypeError(
                "from_tensor: Argument `tensor` (name: lengths) must be of type integer. Received dtype: "
                f"{lengths.dtype}"
            )
        counts = primitives.Minimum(cast(lengths, dtype), cast(dims[1], dtype))
        mask = primitives.Less(cast(numbers_below(dims[1]), dtype), primitives.ExpandDims(counts, 1))
        places = primitives.Reshape(primitives.Where(primitives.Reshape(mask, [-1])), [-1])
        return cls(primitives.GatherV2(flat, places, 0, 0), splits_from_lengths(counts))

    @classmethod
    @dispatched
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = int64) -> RaggedTensor:
        """The rows of a sparse matrix whose elements stand at the beginning of their rows."""
        x = as_sparse(st_input, "from_sparse")
        rank = x.shape.rank if x.shape.rank is not None else x.indices.shape[1]
        if rank is not None and rank != 2:
            raise ValueError(f"from_sparse: rank(st_input) must be 2; got {rank}")
        rows = x.indices[:, 0]
        count: Any = x.dense_shape[0]
        count = count if _core.is_symbolic(count) else int(count)
        lengths = primitives.UnsortedSegmentSum(rows * 0 + 1, rows, count)
        result = cls(x.values, splits_from_lengths(lengths))
        check = assert_equal(result._places_in_rows(), x.indices[:, 1], "from_sparse: SparseTensor is not right-ragged")
        return result.with_values(after(check, result.values)).with_row_splits_dtype(row_splits_dtype)

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
        """A dense tensor with `default_value` (zero) behind the end of each row; larger or cut if `shape` says so.

        >>> tf.ragged.constant([[1, 2], [3]]).to_tensor()
        <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
        array([[1, 2],
               [3, 0]], dtype=int32)>
        """
        wanted = self._wanted_sizes(shape)
        filler = None if default_value is None else convert_to_tensor(default_value, dtype=self.dtype)
        depth = self.flat_values.shape.rank
        if filler is not None and None not in (filler.shape.rank, depth) and filler.shape.rank >= depth:
            raise InvalidArgumentError.of(
                f"to_tensor: default_value.rank = {filler.shape.rank} must be less than rt_input.flat_values.rank = "
                f"{depth}"
            )
        if self._is_staged or any(map(_core.is_symbolic, wanted)):
            return self._staged_levels(default_value, wanted)
        flat, dims = self.flat_values, self.bounding_shape().numpy().tolist()
        coordinates = cast(self._coordinates(), int32)
        ragged = self.ragged_rank + 1
        places = cast(np.arange(row_count(coordinates)), int32)
        if wanted:
            dims = [d if w is None else w for d, w in zip(dims, wanted)]
            inside = primitives.All(primitives.Less(coordinates, np.asarray(dims[:ragged], np.int32)), 1, False)
            places = cast(primitives.Squeeze(primitives.Where(inside), [1]), int32)
            coordinates = primitives.GatherV2(coordinates, places, 0, 0)
        values = primitives.GatherV2(flat, places, 0, 0)
        if default_value is None and flat.dtype.name != "string":
            return primitives.ScatterNd(coordinates, values, dims)
        filler = convert_to_tensor("", dtype=flat.dtype) if filler is None else filler
        return primitives.TensorScatterUpdate(primitives.BroadcastTo(filler, dims), coordinates, values)

    def _wanted_sizes(self, shape: Any) -> list[Any]:
        """The `shape` of `to_tensor`: a size, None or a scalar tensor for each dimension; nothing if it is unknown."""
        if shape is None or (_core.is_tensor(shape) and shape.shape.rank == 0):  # the scalar -1
            return []
        if not _core.is_tensor(shape):
            given = shape if isinstance(shape, list | tuple) and any(map(_core.is_tensor, shape)) else as_shape(shape)
            if isinstance(given, TensorShape) and given.rank is None:
                return []
            sizes = list(given)
        elif _core.is_symbolic(shape):
            count = self.shape.rank if shape.shape.rank is None or shape.shape[0] is None else shape.shape[0]
            if count is None:
                flat = primitives.Reshape(shape, [-1])
                return [flat[axis] for axis in range(self.ragged_rank + 1)]
            sizes = list(primitives.Unpack(shape, count, 0))
        else:
            sizes = [None if d < 0 else d for d in dims_of(shape)]
        if self.shape.rank not in (None, len(sizes)):
            raise InvalidArgumentError.of(
                f"to_tensor: rt_input.shape and shape are incompatible: rt_input.rank = {self.shape.rank} but "
                f"shape.rank = {len(sizes)}"
            )
        return sizes

    def _staged_levels(self, default_value: Any, wanted: list[Any]) -> Any:
        """`to_tensor` of rows of dynamic lengths, from the inside out."""
        rows = self
        if isinstance(self._values, RaggedTensor):
            rows = self.with_values(self._values._staged_levels(default_value, [None, *wanted[2:]] if wanted else []))
        count, width = (wanted or [None, None])[:2]
        result = rows._staged_tensor(default_value, count, width)
        width = self.uniform_row_length if width is None else width
        known = [size if isinstance(size, int) else None for size in (count, width)]
        if result.shape.rank is not None:
            result.set_shape([*known, *[None] * (result.shape.rank - 2)])
        return result

    def _staged_tensor(self, default_value: Any, count: Any, width: Any) -> Any:
        """`to_tensor` of rows of dynamic lengths; a `count` or `width` that is given cuts or adds rows or columns."""
        values = self._values
        if values.shape.rank is None:
            return self._staged_tensor_of_any_rank(default_value, count, width)
        lengths = self.row_lengths()
        if _core.is_symbolic(count):
            count = primitives.SelectV2(primitives.Less(count, 0), cast(self.nrows(), count.dtype), count)
        if count is not None:
            more = primitives.BroadcastTo(cast(0, lengths.dtype), primitives.Reshape(count, [1]))
            lengths = primitives.ConcatV2([lengths, more], 0)[:count]
        limit = None if width is None else cast(width, lengths.dtype)
        if limit is None or _core.is_symbolic(width):
            longest = primitives.Max(primitives.ConcatV2([lengths, cast([0], lengths.dtype)], 0), None, False)
            limit = longest if limit is None else primitives.SelectV2(primitives.Less(limit, 0), longest, limit)
        rows = primitives.Cumsum(lengths, 0, True, False)[:, None]
        at = primitives.Range(cast(0, limit.dtype), limit, cast(1, limit.dtype))[None, :]
        inside = at < lengths[:, None]
        for _ in range(values.shape.rank - 1):
            inside = primitives.ExpandDims(inside, -1)
        filler = padding_value_of(0 if default_value is None else default_value, values.dtype)
        # One row more, so that there is a place to look at even where there are no values.
        one = primitives.ConcatV2([cast([1], int32), primitives.Shape(values, int32)[1:]], 0)
        more = primitives.ConcatV2([values, primitives.BroadcastTo(filler, one)], 0)
        last = primitives.Maximum(primitives.Shape(more, int64)[0] - 1, 0)
        places = primitives.Minimum(cast(rows + at, int64), last)
        return primitives.SelectV2(inside, primitives.GatherV2(more, places, 0, 0), filler)

    def _staged_tensor_of_any_rank(self, default_value: Any, count: Any, width: Any) -> Any:
        """`_staged_tensor` of values whose rank is not known: of their slices as vectors."""
        sizes = primitives.Shape(self._values, int64)
        flat = primitives.Reshape(self._values, primitives.ConcatV2([sizes[:1], cast([-1], int64)], 0))
        flat.set_shape([None, None])
        if default_value is not None:
            filler = primitives.BroadcastTo(padding_value_of(default_value, flat.dtype), sizes[1:])
            default_value = primitives.Reshape(filler, [-1])
        rows = self.with_values(flat)._staged_tensor(default_value, count, width)
        return primitives.Reshape(rows, primitives.ConcatV2([primitives.Shape(rows, int64)[:2], sizes[1:]], 0))

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A SparseTensor with the values at the beginning of the rows."""
        flat, indices = self.flat_values, cast(self._coordinates(), int64)
        inner = flat.shape.as_list()[1:]
        if inner:
            size = int(np.prod(inner, dtype=np.int64))
            spots = np.stack(np.unravel_index(np.arange(size), inner), 1).astype(np.int64)
            each = indices[:, None, :]
            outer = primitives.Tile(each, [1, size, 1])
            inside = primitives.AddV2(primitives.Mul(each[:, :, :1], 0), spots[None])
            joined = primitives.ConcatV2([outer, inside], 2)
            indices = primitives.Reshape(joined, [-1, joined.shape[2]])
            flat = primitives.Reshape(flat, [-1])
        return SparseTensor(indices, flat, cast(self.bounding_shape(), int64))

    def to_list(self) -> list[Any]:
        """The values as nested lists.

        >>> tf.ragged.constant([[1, 2], [3]]).to_list()
        [[1, 2], [3]]
        """
        inner = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.numpy().tolist()
        at = self._row_splits.numpy().tolist()
        return [inner[start:end] for start, end in itertools.pairwise(at)]

    def numpy(self) -> np.ndarray:
        """A NumPy array of the rows; of objects if they differ in length."""
        if _core.is_symbolic(self._row_splits) or _core.is_symbolic(self.flat_values):
            raise ValueError("RaggedTensor.numpy() is only supported in eager mode.")
        at = self._row_splits.numpy().tolist()
        inner = self._values.numpy()
        rows = [inner[start:end] for start, end in itertools.pairwise(at)]
        if len({len(row) for row in rows}) <= 1:
            return np.stack(rows) if rows else np.zeros((0, 0), self.dtype.as_numpy_dtype)
        result = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            result[i] = row
        return result

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(self, RaggedTensor):  # another class that has this method as its own: for dispatchers
            return find_public("__operators__.ragged_getitem")(self, key)
        keys = list(key) if isinstance(key, list | tuple) else [key]
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
        if at is not None:
            used = sum(k is not None for k in keys) - 1
            if self.shape.rank is None:
                raise ValueError("RaggedTensor: Ellipsis not supported for unknown shape RaggedTensors")
            keys[at : at + 1] = [builtins.slice(None)] * (self.shape.rank - used)
        return self._item(keys)

    def _item(self, keys: list[Any]) -> Any:
        if not keys:
            return self
        first, rest = keys[0], keys[1:]
        if first is None:
            return expand_dims(self._item(rest), 0)
        if isinstance(first, builtins.slice):
            whole = first == builtins.slice(None)
            picked = self
            if not whole:
                rows = row_positions(self._row_splits)
                if any(_core.is_symbolic(bound) for bound in (first.start, first.stop, first.step)):
                    rows = convert_to_tensor(rows)
                found = gather_rows(self, rows[first])
                picked = RaggedTensor(found.values, found.row_splits, self._uniform_row_length)
            return picked._inner_item(rest) if rest else picked
        if _core.is_symbolic(first) or _core.is_symbolic(self._row_splits):
            splits = self._row_splits
            part = self._values[splits[:-1][first] : splits[1:][first]]
            return part[tuple(rest)] if rest else part
        row = _row_number(first)
        count = self._row_splits.shape[0] - 1
        if not -count <= row < count:
            raise IndexError(f"Row key {row} out of bounds")
        start, end = (int(n) for n in self._row_splits.numpy()[row % count : row % count + 2])
        part = self._values[start:end]
        return part[tuple(rest)] if rest else part

    def _inner_item(self, keys: list[Any]) -> Any:
        first, rest = keys[0], keys[1:]
        if first is None:
            return expand_dims(self._inner_item(rest) if rest else self, 1)
        if isinstance(first, builtins.slice):
            if first == builtins.slice(None):
                picked = self
            else:
                begin, count, step = span_of(first, self.row_lengths())
                values = gather_rows(self._values, spans(self._row_splits[:-1] + begin, count, step))
                picked = RaggedTensor(values, splits_from_lengths(count))
            if not rest:
                return picked
            inner = picked._values
            if isinstance(inner, RaggedTensor):
                return picked.with_values(inner._inner_item(rest))
            return picked.with_values(inner[(builtins.slice(None), *rest)])
        length = self._uniform_row_length
        if length is None:
            raise ValueError("Cannot index into an inner ragged dimension.")
        place = first if _core.is_symbolic(first) else _row_number(first)
        if not _core.is_symbolic(place) and not -length <= place < length:
            raise InvalidArgumentError.of(f"__getitem__: index {place} is out of bounds of rows of length {length}")
        if _core.is_symbolic(place):
            place = cast(place, self._row_splits.dtype)
            place = primitives.SelectV2(place < 0, place + length, place)
        elif place < 0:
            place += length
        found = gather_rows(self._values, self._row_splits[:-1] + place)
        if not rest:
            return found
        return found._inner_item(rest) if isinstance(found, RaggedTensor) else found[(builtins.slice(None), *rest)]

    # ---- specs, printing

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, self._row_splits.dtype)

    def _shape_invariant_to_type_spec(self, shape: Any) -> RaggedTensorSpec:
        shape = as_shape(shape)
        if shape.rank is not None and shape.rank <= self.ragged_rank:
            raise ValueError(
                f"Incompatible shape invariant {shape} for a RaggedTensor with ragged rank {self.ragged_rank}: its "
                "rank must be greater."
            )
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self._row_splits.dtype)

    def __repr__(self) -> str:
        if _core.is_symbolic(self._row_splits) or _core.is_symbolic(self.flat_values):
            return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"
        return f"<tf.RaggedTensor {_text_of(self.numpy())}>"

    def __len__(self) -> int:
        raise TypeError("object of type 'RaggedTensor' has no len()")

    def __iter__(self) -> Any:
        return (self[i] for i in range(self._row_splits.shape[0] - 1))

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation that was called with a ragged argument."""
        name = getattr(function, "__name__", "")
        if _has_rule(function, name, args[0] if args else next(iter(kwargs.values()))):
            staged = _operation_by_name[name]
            return NotImplemented if function is staged else staged(*args, **kwargs)
        if name in ("gather", primitives.GatherV2.__name__):
            given = args if name == "gather" else (*args[:2], None, *args[2:4])
            found = NotImplemented if isinstance(given[0], RaggedTensor) else _gather_at(*given, **kwargs)
            staged = _operation_by_name["gather"]
            return staged(*given, **kwargs) if found is NotImplemented and function is not staged else found
        if name in _BY_INDICES:
            staged = _operation_by_name[name.lower()]
            direct = any(isinstance(value, RaggedTensor) for value in (*args, *kwargs.values())[:2])  # not in a list
            return staged(*args, **kwargs) if direct and function is not staged else NotImplemented
        if name == "embedding_lookup":
            return elementwise(lambda ids: function(args[0], ids, *args[2:], **kwargs), args[1:2], {})
        return elementwise(function, args, kwargs) if is_elementwise(function) else NotImplemented


def _gather_at(
    params: Any,
    indices: RaggedTensor,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Any:
    """The slices of a dense tensor along `axis`, in the rows of the indices."""
    if batch_dims or not isinstance(indices, RaggedTensor):
        return NotImplemented
    x = convert_to_tensor(params)
    axis = range(x.shape.rank)[axis or 0]
    if axis == 0:  # of a variable itself: its gradient is an IndexedSlices
        return indices.with_flat_values(primitives.GatherV2(params, indices.flat_values, axis, 0))
    if indices.ragged_rank > 1:
        return NotImplemented
    found = primitives.GatherV2(x, indices.flat_values, axis, 0)
    outer, (count, *inner) = found.shape.as_list()[:axis], found.shape.as_list()[axis:]
    copies, rows = int(np.prod(outer)), indices.row_splits.shape[0] - 1
    starts = np.arange(copies)[:, None] * count + indices.row_splits.numpy()[None, :-1]
    splits = np.append(starts.reshape(-1), copies * count)
    result = RaggedTensor.from_row_splits(primitives.Reshape(found, [copies * count, *inner]), splits)
    for size in (rows, *reversed(outer[1:])):
        result = RaggedTensor.from_uniform_row_length(result, size)
    return result


def _text_of(value: Any) -> str:
    """Rows as NumPy prints them, with commas."""
    if isinstance(value, np.ndarray) and value.size == 0:  # NumPy prints [] for each
        return repr(value.tolist())
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", formatter={"all": _text_of})
    return repr(value) if isinstance(value, bytes) else str(value)


@public("RaggedTensorSpec")
class RaggedTensorSpec(ShapedSpec):
    """The spec of a `tf.RaggedTensor`.

    >>> tf.RaggedTensorSpec([None, None])
    RaggedTensorSpec(TensorShape([None, None]), tf.float32, 1, tf.int64)
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = int64,
        flat_values_spec: Any = None,
    ) -> None:
        self._shape = as_shape(shape)
        if dtype is None and flat_values_spec is None:
            raise ValueError("RaggedTensorSpec: either dtype or flat_values_spec must be given")
        self._dtype = as_dtype(dtype) if dtype is not None else flat_values_spec.dtype
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        if ragged_rank is None:
            if self._shape.rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = self._shape.rank - 1
        if not isinstance(ragged_rank, int | np.integer):
            raise TypeError(f"RaggedTensorSpec: Argument `ragged_rank` must be an int. Received {ragged_rank!r}.")
        if self._shape.rank is not None and ragged_rank >= self._shape.rank:
            raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({self._shape.rank}).")
        self._ragged_rank = int(ragged_rank)
        self._flat_values_spec = flat_values_spec

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a ragged tensor, or of one that a session gave.

        >>> tf.RaggedTensorSpec.from_value(tf.ragged.constant([[1], [2, 3]]))
        RaggedTensorSpec(TensorShape([2, None]), tf.int32, 1, tf.int64)
        """
        if isinstance(value, RaggedTensor):
            return value._type_spec
        if not hasattr(value, "flat_values"):
            raise TypeError(f"Expected RaggedTensor or RaggedTensorValue. Received: {value} of type {type(value)}.")
        return cls(value.shape, value.flat_values.dtype, value.ragged_rank, value.row_splits.dtype)

    flat_values_spec = property(
        lambda self: self._flat_values_spec, doc="The spec of the flat values, if one was given."
    )

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """The `tf.DType` of the splits."""
        return self._row_splits_dtype

    @property
    def value_type(self) -> type:
        """The class of the values: without ragged dimensions a tensor."""
        return RaggedTensor if self._ragged_rank > 0 else _core.Tensor

    def _batch(self, batch_size: int | None) -> RaggedTensorSpec:
        shape = TensorShape([batch_size]).concatenate(self._shape)
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        # A negative number of ragged dimensions stands for what is to be batched again.
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype)

    @property
    def _component_specs(self) -> list[TensorSpec]:
        if self._ragged_rank <= 0:
            return [TensorSpec(self._shape, self._dtype)]
        inner = self._shape[self._ragged_rank + 1 :] if self._shape.rank is not None else None
        flat = TensorSpec(None if inner is None else TensorShape([None]).concatenate(inner), self._dtype)
        rows = self._shape[0] if self._shape.rank else None
        counts = [None if rows is None else rows + 1, *[None] * (self._ragged_rank - 1)][: self._ragged_rank]
        return [flat, *(TensorSpec([count], self._row_splits_dtype) for count in counts)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value] if _core.is_tensor(value) else [value.flat_values, *value.nested_row_splits]

    def _from_components(self, components: Any) -> Any:
        flat, *splits = components
        if not splits:
            return flat
        return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)
