"""Functions of `array_ops`, `confusion_matrix`, `random_grad` and `sparse_ops` without a public name."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.serialization import deserialize_many_sparse
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_shape, _reshape, _concat = find_public("shape"), find_public("reshape"), find_public("concat")


def batch_gather_nd(params: Any, indices: Any, batch_dims: Any, name: str | None = None) -> Any:
    """`tf.gather_nd` with leading dimensions that both share."""
    known = find_public("get_static_value")(batch_dims)
    if known is None:
        raise ValueError("batch_dims must be known statically.")
    if int(known) < 0:
        raise ValueError(f"Argument `batch_dims` must be non-negative. Received: batch_dims={int(known)}")
    return find_public("gather_nd")(params, indices, batch_dims=int(known))


def add_leading_unit_dimensions(x: Any, num_dimensions: Any) -> Any:
    """`x` with so many dimensions of size 1 before its own."""
    ones = find_public("ones")(find_public("reshape")(num_dimensions, [1]), "int32")
    return _reshape(x, _concat([ones, _shape(x)], 0))


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Any, Any]:
    """Labels and predictions; a last dimension of size 1 goes if it makes the ranks one more than expected.

    `expected_rank_diff` is the rank of the predictions less that of the labels, as it should be.
    """
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    squeeze = find_public("squeeze")
    ranks = predictions.shape.rank, labels.shape.rank
    if None not in ranks:
        excess = ranks[0] - ranks[1] - expected_rank_diff
        if excess == 1 and predictions.shape[-1] in (None, 1):
            predictions = squeeze(predictions, [-1])
        elif excess == -1 and labels.shape[-1] in (None, 1):
            labels = squeeze(labels, [-1])
        return labels, predictions
    rank, cond, equal = find_public("rank"), find_public("cond"), find_public("equal")
    excess = rank(predictions) - rank(labels) - expected_rank_diff
    found = []
    for x, wanted in ((labels, -1), (predictions, 1)):
        may_squeeze = x.shape.rank is None or x.shape[-1] in (None, 1)
        squeezed = (lambda x=x: squeeze(x, [-1])) if may_squeeze else (lambda x=x: x)
        found.append(cond(equal(excess, wanted), squeezed, lambda x=x: x))
    return found[0], found[1]


def deserialize_sparse(serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None) -> Any:
    """The sparse tensor of three strings of `tf.io.serialize_sparse`; of a batch of them one with more dimensions."""
    text = convert_to_tensor(serialized_sparse, "string")
    sizes = _shape(text, "int64")
    batch_rank = None if text.shape.rank is None else text.shape.rank - 1
    if batch_rank is None:
        raise ValueError("deserialize_sparse: the rank of `serialized_sparse` must be known")
    rows = deserialize_many_sparse(_reshape(text, [-1, 3]), dtype, None if rank is None else rank + 1)
    batch, inner = sizes[:-1], rows.dense_shape[1:]
    whole = _concat([batch, inner], 0)
    return find_public("sparse.reshape")(rows, whole)


def sparse_dense_cwise_add(sp_t: Any, dense_t: Any) -> Any:
    """A sparse tensor to whose elements those of a dense one are added, which is broadcast to it."""
    dense = find_public("broadcast_to")(convert_to_tensor(dense_t, sp_t.dtype), sp_t.dense_shape)
    return sp_t.with_values(sp_t.values + find_public("gather_nd")(dense, sp_t.indices))


def _changed(operation: str) -> Any:
    """A function of a tensor, the rows to change and their values: all of it, one row by its number, or several."""
    change = find_public(f"raw_ops.{operation}")

    def run(x: Any, i: Any, v: Any) -> Any:
        x, v = convert_to_tensor(x), convert_to_tensor(v)
        if i is None:
            flat = change(x=_reshape(x, [1, -1]), i=convert_to_tensor([0], "int32"), v=_reshape(v, [1, -1]))
            return _reshape(flat, _shape(x))
        i = convert_to_tensor(i)
        if i.shape.rank == 0:
            return change(x=x, i=_reshape(i, [1]), v=find_public("expand_dims")(v, 0))
        return change(x=x, i=i, v=v)

    run.__name__ = run.__qualname__ = f"inplace_{operation.removeprefix('Inplace').lower()}"
    run.__doc__ = "A copy of `x` with the rows `i` changed by `v`; all of it if `i` is None."
    return run


inplace_names = {
    f"inplace_{operation.lower()}": _changed(f"Inplace{operation}") for operation in ("Update", "Add", "Sub")
}
