"""`tf.sparse`: sums, extrema and products of two tensors, and edit distances."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.sparse import coordinates
from tapeflow._src.types.dtypes import float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, define_products
from tapeflow._src.types.tensor_spec import TensorSpec

# ---- two tensors


def _union(a: SparseTensor, b: SparseTensor, who: str) -> tuple[Any, Any, Any]:
    """The positions in `a` or `b`, in order, and the place among these of each element of `a` and of `b`."""
    dims = coordinates.dims_of_sparse(a)
    if dims != coordinates.dims_of_sparse(b):
        raise InvalidArgumentError.of(
            f"{who}: Operands' shapes do not match: got {dims} and {coordinates.dims_of_sparse(b)}"
        )
    if not coordinates.can_flatten(dims):
        at = np.concatenate([a.indices.numpy(), b.indices.numpy()])
        rows, inverse = np.unique(at, axis=0, return_inverse=True)
        indices, places = convert_to_tensor(rows), convert_to_tensor(inverse)
        return indices, places[: a.indices.shape[0]], places[a.indices.shape[0] :]
    flat = primitives.ConcatV2(
        [coordinates.flat_positions(a.indices, dims), coordinates.flat_positions(b.indices, dims)], 0
    )
    ordered = primitives.TopKV2(flat, _row_count(flat), True, True)[0] if flat.shape[0] != 0 else flat
    first, _, _ = primitives.DistinctElements(ordered, int64)
    distinct = primitives.GatherV2(ordered, first, 0, 0)
    line, row = primitives.ExpandDims(distinct, 0), primitives.ExpandDims(flat, 0)
    places = primitives.Squeeze(primitives.SearchSorted(line, row, False, int64), [0])
    indices, count = coordinates.coordinates_of(distinct, dims), _row_count(a.indices)
    return indices, places[:count], places[count:]


def _row_count(x: Any) -> Any:
    """The size of the first dimension: a number if it is known."""
    count = x.shape[0]
    return primitives.Shape(x, int32)[0] if count is None else count


@public("sparse.add")
def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of two sparse tensors, sparse; or of a sparse and a dense one, dense.

    Sums of two elements whose magnitude is below `threshold` are left out; an element of one tensor alone stays.

    >>> tf.sparse.add(tf.SparseTensor([[1]], [5.], [2]), [1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 6.], dtype=float32)>
    """
    if not coordinates.is_sparse(a) and not coordinates.is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not coordinates.is_sparse(a):
        a, b = b, a
    a = coordinates.as_sparse(a, "add")
    if not coordinates.is_sparse(b):
        dense = convert_to_tensor(b, dtype_hint=a.dtype)
        if _core.is_symbolic(a.dense_shape):
            if not dense.shape.is_compatible_with(a.shape):
                raise ValueError(f"sparse.add: Dimensions {a.shape} and {dense.shape} do not match")
        elif dense.shape.rank is None or dense.shape.as_list() != coordinates.dims_of_sparse(a):
            raise InvalidArgumentError.of(
                f"sparse.add: Dimensions {coordinates.dims_of_sparse(a)} and {dense.shape.as_list()} do not match"
            )
        return primitives.TensorScatterAdd(dense, a.indices, a.values)
    b = coordinates.as_sparse(b, "add")
    indices, in_a, in_b = _union(a, b, "sparse.add")
    count = _row_count(indices)
    values = primitives.UnsortedSegmentSum(
        primitives.ConcatV2([a.values, b.values], 0), primitives.ConcatV2([in_a, in_b], 0), count
    )
    total = SparseTensor(indices, values, a.dense_shape)
    if not _core.is_tensor(threshold) and threshold == 0:
        return total
    size = primitives.ComplexAbs(values) if values.dtype.is_complex else primitives.Abs(values)
    alone = primitives.LogicalNot(primitives.LogicalAnd(_present(in_a, count), _present(in_b, count)))
    kept = primitives.LogicalOr(alone, primitives.GreaterEqual(size, cast(threshold, size.dtype)))
    indices, values = coordinates.chosen_elements(total, kept)
    return SparseTensor(indices, values, a.dense_shape)


def _present(places: Any, count: Any) -> Any:
    """Whether each of `count` positions is among `places`."""
    return primitives.Greater(primitives.UnsortedSegmentSum(places * 0 + 1, places, count), 0)


def _extremum(choose: Any, sp_a: Any, sp_b: Any, who: str) -> SparseTensor:
    a, b = coordinates.as_sparse(sp_a, who), coordinates.as_sparse(sp_b, who)
    indices, in_a, in_b = _union(a, b, who)
    count = _row_count(indices)
    wide = (primitives.UnsortedSegmentSum(x.values, places, count) for x, places in ((a, in_a), (b, in_b)))
    return SparseTensor(indices, choose(*wide), a.dense_shape)


@public("sparse.maximum")
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger element at each position that is stored in either; one that is not stored counts as 0.

    >>> tf.sparse.maximum(tf.SparseTensor([[1]], [5.], [3]), tf.SparseTensor([[1]], [7.], [3])).values
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([7.], dtype=float32)>
    """
    return _extremum(primitives.Maximum, sp_a, sp_b, "sparse.maximum")


@public("sparse.minimum")
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller element at each position that is stored in either; one that is not stored counts as 0.

    >>> tf.sparse.minimum(tf.SparseTensor([[1]], [5.], [3]), tf.SparseTensor([[1]], [7.], [3])).values
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>
    """
    return _extremum(primitives.Minimum, sp_a, sp_b, "sparse.minimum")


def dense_elements(x: SparseTensor, dense: Any, who: str) -> Any:
    """The elements of a dense tensor, broadcast to the shape of `x`, at the positions of `x`."""
    y = convert_to_tensor(dense, dtype_hint=x.dtype)
    if y.shape.rank == 0:
        return y
    if _core.is_symbolic(x.dense_shape) or not y.shape.is_fully_defined():
        sizes = primitives.Shape(y, int64)
        skip = primitives.Shape(x.dense_shape)[0] - primitives.Shape(sizes)[0]
        return primitives.GatherNd(y, x.indices[:, skip:] % sizes, 0)
    dims = coordinates.dims_of_sparse(x)
    if y.shape.rank > len(dims) or any(d not in (1, full) for d, full in zip(y.shape.as_list()[::-1], dims[::-1])):
        raise InvalidArgumentError.of(
            f"{who}: SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes "
            f"{dims} vs. {y.shape.as_list()}",
        )
    skip = len(dims) - y.shape.rank
    columns = [
        x.indices[:, skip + i]
        if size != 1
        else primitives.BroadcastTo(_core.convert_to_tensor(0, int64, None, who), [x.indices.shape[0]])
        for i, size in enumerate(y.shape.as_list())
    ]
    flat = coordinates.flat_positions(primitives.Pack(columns, 1), y.shape.as_list())
    return take(primitives.Reshape(y, [-1]), flat, 0)


def _multiply(self: SparseTensor, other: Any) -> SparseTensor:
    return self.with_values(self.values * dense_elements(self, other, "multiply"))


def _divide(self: SparseTensor, other: Any) -> SparseTensor:
    elements = dense_elements(self, other, "divide")
    if self.dtype.is_integer:
        return self.with_values(primitives.TruncateDiv(self.values, elements))
    return self.with_values(primitives.RealDiv(self.values, elements))


define_products(multiply=_multiply, divide=_divide)


@public("sparse.sparse_dense_matmul")
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """The product of two matrices of which one is sparse.

    >>> tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 1]], [2.], [2, 2]), [[1.], [3.]])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[6.],
           [0.]], dtype=float32)>
    """
    if coordinates.is_sparse(b) and coordinates.is_sparse(sp_a):
        raise TypeError("sparse_dense_matmul: one matrix must be dense; got two SparseTensors")
    if coordinates.is_sparse(b):
        # a b = (b^H a^H)^H
        product = sparse_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a)
        return _adjoint(product)
    a = coordinates.as_sparse(sp_a, "sparse_dense_matmul")
    dense = convert_to_tensor(b, dtype_hint=a.dtype)
    if adjoint_b:
        dense = _adjoint(dense)
    shape = shape_argument(a.dense_shape) if _core.is_symbolic(a.dense_shape) else coordinates.dims_of_sparse(a)
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
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>
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
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.5], dtype=float32)>
    """
    a, b = coordinates.as_sparse(hypothesis, "edit_distance"), coordinates.as_sparse(truth, "edit_distance")
    if len(coordinates.dims_of_sparse(a)) != len(coordinates.dims_of_sparse(b)):
        raise InvalidArgumentError.of(
            "edit_distance: Expected truth and hypothesis to have matching ranks, but their shapes are "
            f"{coordinates.dims_of_sparse(b)} and {coordinates.dims_of_sparse(a)}",
        )
    if len(coordinates.dims_of_sparse(a)) < 2:
        raise InvalidArgumentError.of(
            "edit_distance: Input SparseTensors must have rank at least 2, but truth and hypothesis have rank "
            f"{len(coordinates.dims_of_sparse(a))}"
        )
    shape = np.maximum(coordinates.dims_of_sparse(a)[:-1], coordinates.dims_of_sparse(b)[:-1])
    for x in (a, b):
        places = x.indices.numpy()[:, :-1]
        if places.size and (places.min() < 0 or (places >= shape).any()):
            raise InvalidArgumentError.of(
                f"edit_distance: inner product of the indices is out of bounds for shape {shape.tolist()}: "
                "dimensions are too small for the indices"
            )
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


def _distance_spec(hypothesis: Any, truth: Any, *_: Any, **__: Any) -> TensorSpec:
    """What is known of the distances while tracing: the larger of both sizes, as far as they are."""
    shapes = [x.shape for x in (hypothesis, truth)]
    if any(shape.rank is None for shape in shapes) or shapes[0].rank != shapes[1].rank:
        return TensorSpec(None, "float32")
    pairs = zip(*(shape.as_list()[:-1] for shape in shapes))
    return TensorSpec([None if None in pair else builtins.max(pair) for pair in pairs], "float32")


edit_distance.result_specs = _distance_spec  # type: ignore[attr-defined]
