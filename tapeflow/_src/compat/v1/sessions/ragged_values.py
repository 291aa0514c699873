"""Ragged tensors that are fed to a session, and the values that it takes for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.v1.graph.placeholders import placeholder
from tapeflow._src.compat.v1.sessions.fetches import RaggedTensorValue
from tapeflow._src.namespace import public
from tapeflow._src.ops.ragged.construction import nested_values
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import DType, as_dtype, int64


@public("compat.v1.ragged.constant_value")
def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """The arrays of a ragged tensor, from nested lists.

    >>> tf.compat.v1.ragged.constant_value([[1, 2], [3]]).row_splits
    array([0, 2, 3])
    """
    kind = dtype.as_numpy_dtype if isinstance(dtype, DType) else dtype
    splits_kind = as_dtype(row_splits_dtype).as_numpy_dtype

    def make(values: Any, shape: Any) -> Any:
        array = np.array(values, dtype=kind)
        return array if shape is None else array.reshape(shape)

    if isinstance(pylist, RaggedTensor | RaggedTensorValue):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    values, splits = nested_values(pylist, ragged_rank, inner_shape, make)
    for at in reversed(splits):
        values = RaggedTensorValue(values, at.astype(splits_kind))
    return values


@public("compat.v1.ragged.placeholder")
def ragged_placeholder(dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None) -> Any:
    """A ragged tensor that has to be fed when the graph runs, by a RaggedTensorValue.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.ragged.placeholder(tf.int32, 1, []).shape
    TensorShape([None, None])
    """
    if ragged_rank == 0:
        return placeholder(dtype, value_shape, name)
    values = placeholder(dtype, None if value_shape is None else [None, *value_shape], name and f"{name}/flat_values")
    for level in reversed(range(ragged_rank)):
        splits = placeholder(int64, [None], name and f"{name}/row_splits_{level}")
        values = RaggedTensor.from_row_splits(values, splits, validate=False)
    return values
