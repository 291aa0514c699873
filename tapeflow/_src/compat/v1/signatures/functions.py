"""Functions of TensorFlow 1 that no function of today replaces by another signature alone."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.program_order import effect
from tapeflow._src.types.dtypes import as_dtype


@public("compat.v1.div")
def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Division as in Python 2: integers give integers.

    >>> tf.compat.v1.div(7, 2)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    x = convert_to_tensor(x)
    return x // y if x.dtype.is_integer else primitives.RealDiv(x, y, name=name)


@public("compat.v1.nn.xw_plus_b")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """A layer without an activation: `x @ weights + biases`.

    >>> tf.compat.v1.nn.xw_plus_b([[1., 2.]], [[3.], [4.]], [0.5])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[11.5]], dtype=float32)>
    """
    return find_public("nn.bias_add")(find_public("matmul")(x, weights), biases, name=name or "xw_plus_b")


@public("compat.v1.clip_by_average_norm")
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """The tensor, made shorter if its norm for each element is more than `clip_norm`.

    >>> tf.compat.v1.clip_by_average_norm([3., 4.], 1.25)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 2. ], dtype=float32)>
    """
    t = convert_to_tensor(t)
    count = cast(find_public("size")(t), t.dtype)
    norm = primitives.Sqrt(find_public("reduce_sum")(t * t)) / count
    return find_public("multiply")(t, clip_norm / primitives.Maximum(norm, cast(clip_norm, t.dtype)), name=name)


@public("compat.v1.setdiff1d")
def setdiff1d(x: Any, y: Any, index_dtype: Any = "int32", name: str | None = None) -> Any:
    """The elements of `x` that are not in `y`, and where they stand.

    >>> tf.compat.v1.setdiff1d([1, 2, 3], [2]).out
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>
    """
    return find_public("raw_ops.ListDiff")(x=x, y=y, out_idx=as_dtype(index_dtype))


@public("compat.v1.batch_gather")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """From each row of `params` the elements at the same row of `indices`.

    >>> tf.compat.v1.batch_gather([[1, 2], [3, 4]], [[1], [0]])
    <tf.Tensor: shape=(2, 1), dtype=int32, numpy=
    array([[2],
           [3]], dtype=int32)>
    """
    indices = indices if hasattr(indices, "nested_row_splits") else convert_to_tensor(indices)
    if indices.shape.rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    batch_dims = indices.shape.rank - 1
    return find_public("gather")(params, indices, axis=batch_dims, batch_dims=batch_dims, name=name)


@public("compat.v1.sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Any:
    """A tensor with the values at the indices, and `default_value` elsewhere.

    >>> tf.compat.v1.sparse_to_dense([0, 2], [3], 7)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([7, 0, 7], dtype=int32)>
    """
    indices = convert_to_tensor(sparse_indices)
    if any(map(_core.is_symbolic, (indices, output_shape))):
        if indices.shape.rank != 2:
            indices = primitives.Reshape(indices, [-1, 1])
        values = convert_to_tensor(sparse_values)
        filled = find_public("fill")(output_shape, cast(default_value, values.dtype))
        values = find_public("broadcast_to")(values, find_public("shape")(indices)[:1])
        return find_public("tensor_scatter_nd_update")(filled, indices, values)
    return find_public("raw_ops.SparseToDense")(
        sparse_indices=sparse_indices,
        output_shape=output_shape,
        sparse_values=sparse_values,
        default_value=default_value,
        validate_indices=validate_indices,
    )


@public("compat.v1.where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where the condition holds, else of `y`; a vector of conditions chooses rows.

    >>> tf.compat.v1.where([True, False], [[1., 2.], [3., 4.]], [[0., 0.], [0., 0.]])
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 2.],
           [0., 0.]], dtype=float32)>
    """
    if x is None or y is None:
        return find_public("where")(condition, x, y, name=name)
    if any(hasattr(value, "nested_row_splits") for value in (condition, x, y)):
        return _where_ragged(condition, x, y)
    condition, x = convert_to_tensor(condition), convert_to_tensor(x)
    if condition.shape.rank == 1 and x.shape.rank is not None and x.shape.rank > 1:
        condition = primitives.Reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return primitives.SelectV2(condition, x, y, name=name or "Select")


def _where_ragged(condition: Any, x: Any, y: Any) -> Any:
    """Elements of ragged tensors by a ragged condition, or rows by a vector of conditions."""
    if hasattr(condition, "nested_row_splits"):
        return find_public("where")(condition, x, y)
    condition, count = convert_to_tensor(condition), x.nrows()
    own = find_public("range")(count)
    rows = primitives.SelectV2(condition, own, own + count)
    return find_public("gather")(find_public("concat")([x, y], 0), rows)


@public("compat.v1.Print")
def Print(  # noqa: N802
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """The tensor itself; whenever it is computed, `message` and `data` are written to the standard error stream.

    >>> tf.compat.v1.Print(tf.constant(3.), [tf.constant(1)], "data: ")
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    count = [0]

    def write(*values: Any) -> None:
        count[0] += 1
        if first_n is None or first_n < 0 or count[0] <= first_n:
            limit = 3 if summarize is None else summarize
            parts = [_shown(np.asarray(value), limit) for value in values]
            print((message or "") + "".join(parts), file=sys.stderr)

    operation = effect(write)(*[convert_to_tensor(x) for x in data])
    with find_public("control_dependencies")([] if operation is None else [operation]):
        return find_public("identity")(input_, name=name)


def _shown(values: Any, limit: int) -> str:
    flat = values.reshape(-1)
    shown = flat if limit < 0 else flat[:limit]
    return "[" + " ".join(str(v) for v in shown) + ("..." if len(shown) < len(flat) else "") + "]"


@public("compat.v1.string_split")
def string_split(
    source: Any, sep: str | None = None, skip_empty: bool = True, delimiter: str | None = " ",
    result_type: str = "SparseTensor", name: str | None = None,
) -> Any:  # fmt: skip
    """The words of a vector of texts; each character of `delimiter` (newer: the text `sep`) ends a word.

    >>> tf.compat.v1.string_split(["a b", "c"]).values.numpy().tolist()
    [b'a', b'b', b'c']
    """
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    texts = find_public("convert_to_tensor")(source)
    delimiter = " " if delimiter is None else delimiter
    ends = [delimiter] if sep is None else [sep]
    if sep is None and len(delimiter) > 1:
        pattern = "[" + re.escape(delimiter) + "]"
        texts, ends = find_public("strings.regex_replace")(texts, pattern, delimiter[0]), [delimiter[0]]
    if ends == [""]:  # each byte is a word
        words = find_public("strings.bytes_split")(texts)
    else:
        words = find_public("strings.split")(texts, ends[0])
    if skip_empty:
        words = find_public("ragged.boolean_mask")(words, find_public("not_equal")(words, ""))
    return words.to_sparse() if result_type == "SparseTensor" else words


@public("compat.v1.strings.split")
def split(
    input: Any = None,
    sep: str | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """The words of texts, as a `tf.SparseTensor` or, with `result_type="RaggedTensor"`, a ragged one.

    >>> tf.compat.v1.strings.split(["a b", "c"]).values.numpy().tolist()
    [b'a', b'b', b'c']
    """
    if (input is None) == (source is None):
        raise ValueError("strings.split: exactly one of 'input' and 'source' must be given")
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    given = source if input is None else input
    is_ragged = hasattr(given, "nested_row_splits")
    texts = given if is_ragged else find_public("convert_to_tensor")(given)
    if not is_ragged and texts.shape.rank == 0:
        texts = find_public("reshape")(texts, [1])
    words = find_public("strings.split")(texts, sep, maxsplit)
    return words.to_sparse() if result_type == "SparseTensor" else words


@public("compat.v1.assert_scalar", "compat.v1.debugging.assert_scalar")
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """`tensor` as a tensor; a ValueError unless it is a scalar.

    >>> tf.compat.v1.assert_scalar(5)
    <tf.Tensor: shape=(), dtype=int32, numpy=5>
    """
    tensor = find_public("convert_to_tensor")(tensor)
    find_public("debugging.assert_scalar")(tensor, message)
    return tensor
