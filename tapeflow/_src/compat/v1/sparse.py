"""`tf.compat.v1.sparse.merge`: sparse ids and values as one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.sparse.coordinates import as_sparse, is_sparse
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.sparse_tensor import SparseTensor


def _check_size(size: Any, what: str) -> None:
    if not (_core.is_tensor(size) or isinstance(size, Integral)):
        raise TypeError(f"vocab_size has to be {what}. Found {type(size)}")


def _listed(sp_ids: Any, vocab_size: Any) -> tuple[list[Any], list[Any]]:
    if is_sparse(sp_ids):
        _check_size(vocab_size, "a Tensor or Python int")
        return [sp_ids], [vocab_size]
    if not isinstance(sp_ids, Iterable):
        raise TypeError(f"sp_ids has to be a SparseTensor or list thereof. Found {type(sp_ids)}")
    if _core.is_tensor(vocab_size) or not isinstance(vocab_size, Iterable):
        raise TypeError(f"vocab_size has to be a list of Tensors or Python ints. Found {type(vocab_size)}")
    ids, sizes = list(sp_ids), list(vocab_size)
    for size in sizes:
        _check_size(size, "a list of Tensors or Python ints")
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    return ids, sizes


@public("compat.v1.sparse_merge", "compat.v1.sparse.merge")
def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """The values at the columns that the ids say, or at the places that several lists of ids say.

    >>> ids = tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1])
    >>> values = tf.SparseTensor([[0, 0], [1, 0]], [5., 6.], [2, 1])
    >>> tf.sparse.to_dense(tf.compat.v1.sparse.merge(ids, values, 3))
    <tf.Tensor: shape=(2, 3), dtype=float32, numpy=
    array([[0., 0., 5.],
           [6., 0., 0.]], dtype=float32)>
    """
    ids, sizes = _listed(sp_ids, vocab_size)
    ids, values = [as_sparse(each, "merge") for each in ids], as_sparse(sp_values, "merge")
    columns = [primitives.ExpandDims(cast(each.values, int64), 1) for each in ids]
    indices = primitives.ConcatV2([ids[0].indices[:, :-1], *columns], 1)
    shape = primitives.ConcatV2([ids[0].dense_shape[:-1], primitives.Pack([cast(n, int64) for n in sizes], 0)], 0)
    found = SparseTensor(indices, values.values, shape)
    return found if already_sorted else find_public("sparse.reorder")(found)
