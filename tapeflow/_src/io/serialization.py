"""Tensors as strings: `tf.io.serialize_tensor`, `parse_tensor`, and the same for sparse tensors."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import array_of, tensor_message
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import CompositePlace, CompositionCall, Place, host_call
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor


def _serialize(tensor: Any) -> list[Any]:
    return [convert_to_tensor(tensor_message(tensor).SerializeToString())]


@public("io.serialize_tensor", "compat.v1.io.serialize_tensor", "compat.v1.serialize_tensor")
def serialize_tensor(tensor: Any, name: str | None = None) -> Any:
    """A tensor as a string that holds its dtype, its shape and its elements.

    >>> tf.io.parse_tensor(tf.io.serialize_tensor([1., 2.]), tf.float32)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    return host_call(_serialize, [convert_to_tensor(tensor)], [("string", [])])[0]


_serialize.raw_call = CompositionCall(serialize_tensor, (Place(0),), {})  # type: ignore[attr-defined]


def _legacy(dtype: Any) -> str:
    return str({"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name))


@public("io.parse_tensor", "compat.v1.io.parse_tensor", "compat.v1.parse_tensor")
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """The tensor that a string holds.

    >>> tf.io.parse_tensor(tf.io.serialize_tensor([[7]]), tf.int32)
    <tf.Tensor: shape=(1, 1), dtype=int32, numpy=array([[7]], dtype=int32)>
    """
    wanted = as_dtype(out_type)

    def run(serialized: Any) -> list[Any]:
        if serialized.shape.rank:
            shape = ",".join(map(str, serialized.shape.as_list()))
            raise InvalidArgumentError.of(f"parse_tensor: Expected `serialized` to be a scalar, got shape: [{shape}]")
        data = serialized.numpy()
        try:
            proto = messages.TensorProto.FromString(data)
            found = as_dtype(proto.dtype)
            array = array_of(proto)
        except (*messages.decode_errors(), TypeError, ValueError):
            shown = base64.b64encode(data).decode()
            raise InvalidArgumentError.of(
                f"parse_tensor: Could not parse `serialized` as TensorProto, base64: {shown}"
            ) from None
        if found != wanted:
            raise InvalidArgumentError.of(
                f"parse_tensor: Type mismatch between parsed tensor ({_legacy(found)}) and dtype ({_legacy(wanted)})",
            )
        return [convert_to_tensor(array, found)]

    text = convert_to_tensor(serialized, None if _core.is_tensor(serialized) else "string")
    return host_call(run, [text], [(wanted, None)])[0]


def _refuse_variant(out_type: Any) -> None:
    if as_dtype(out_type) != string:
        raise TypeError(f"serialize_sparse: out_type must be tf.string; got {as_dtype(out_type).name}")


@public("io.serialize_sparse")
def serialize_sparse(sp_input: Any, out_type: Any = string, name: str | None = None) -> Tensor:
    """A sparse tensor as three strings: indices, values, dense shape.

    >>> tf.io.serialize_sparse(tf.sparse.from_dense([0, 5])).shape
    TensorShape([3])
    """
    _refuse_variant(out_type)
    parts = (sp_input.indices, sp_input.values, sp_input.dense_shape)
    return primitives.Pack([serialize_tensor(part) for part in parts], 0)


@public("io.serialize_many_sparse")
def serialize_many_sparse(sp_input: Any, out_type: Any = string, name: str | None = None) -> Any:
    """Each slice along the first dimension of a sparse tensor as three strings, (N, 3).

    >>> tf.io.serialize_many_sparse(tf.sparse.from_dense([[0, 5], [6, 0]])).shape
    TensorShape([2, 3])
    """
    _refuse_variant(out_type)

    def run(indices: Any, values: Any, dense_shape: Any) -> list[Any]:
        rows, elements, shape = indices.numpy(), values.numpy(), dense_shape.numpy()
        found = []
        for row in range(int(shape[0])):
            inside = rows[:, 0] == row
            parts = (rows[inside, 1:], elements[inside], shape[1:])
            dtypes = ("int64", values.dtype, "int64")
            found.append([tensor_message(convert_to_tensor(p, d)).SerializeToString() for p, d in zip(parts, dtypes)])
        return [convert_to_tensor(np.asarray(found, dtype=object).reshape(-1, 3), "string")]

    parts = [sp_input.indices, sp_input.values, sp_input.dense_shape]
    place = CompositePlace(SparseTensor, [Place(i) for i in range(3)])
    run.raw_call = CompositionCall(serialize_many_sparse, (place,), {})  # type: ignore[attr-defined]
    return host_call(run, parts, [("string", [None, 3])])[0]


def _sparse_parts(row: int, parts: Any, wanted: Any) -> list[np.ndarray]:
    """Indices, values of the dtype that is wanted, and shape of a sparse tensor, from three strings."""
    found = []
    for what, data, dtype in zip(("indices", "values", "shape"), parts, (int64, wanted, int64)):
        try:
            proto = messages.TensorProto.FromString(data)
            array, given = array_of(proto), as_dtype(proto.dtype)
        except (*messages.decode_errors(), TypeError, ValueError):
            raise InvalidArgumentError.of(
                f"deserialize_many_sparse: Could not parse serialized proto of the {what} of SparseTensor[{row}]"
            ) from None
        if given != dtype:
            raise InvalidArgumentError.of(
                f"deserialize_many_sparse: Requested SparseTensor of type {dtype.name} but "
                f"SparseTensor[{row}].{what}.dtype() == {given.name}"
            )
        found.append(np.asarray(array))
    return found


_MOST_DIMENSIONS = 254  # of a tensor


@public("io.deserialize_many_sparse", "compat.v1.io.deserialize_many_sparse", "compat.v1.deserialize_many_sparse")
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor, one dimension larger, of slices that `tf.io.serialize_many_sparse` made.

    >>> rows = tf.io.serialize_many_sparse(tf.sparse.from_dense([[0, 5], [6, 0]]))
    >>> tf.sparse.to_dense(tf.io.deserialize_many_sparse(rows, tf.int32))
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[0, 5],
           [6, 0]], dtype=int32)>
    """
    wanted = as_dtype(dtype)
    if rank is not None and not 1 <= int(rank) <= _MOST_DIMENSIONS:
        raise InvalidArgumentError.of(
            f"deserialize_many_sparse: rank must be in [1, {_MOST_DIMENSIONS}], the rows included; got {rank}"
        )

    def run(serialized: Any) -> list[Any]:
        indices, values, shapes = [], [], []
        for row, parts in enumerate(serialized.numpy()):
            index, value, shape = _sparse_parts(row, parts, wanted)
            indices.append(np.concatenate([np.full([len(index), 1], row), index], 1))
            values.append(value)
            shapes.append(shape)
            if len(shape) != len(shapes[0]):
                raise InvalidArgumentError.of(
                    f"deserialize_many_sparse: Inconsistent shape across SparseTensors: rank prior to "
                    f"SparseTensor[{row}] was: {len(shapes[0])} but rank of SparseTensor[{row}] is: {len(shape)}"
                )
        dims = np.max(shapes, axis=0) if shapes else np.zeros([0 if rank is None else rank - 1], np.int64)
        empty = np.zeros([0, len(dims) + 1], np.int64)
        return [
            convert_to_tensor(np.concatenate([empty, *indices]), "int64"),
            convert_to_tensor(np.concatenate([np.zeros([0], wanted.as_numpy_dtype), *values]), wanted),
            convert_to_tensor(np.concatenate([[len(shapes)], dims]), "int64"),
        ]

    specs = [("int64", [None, rank]), (wanted, [None]), ("int64", [rank])]
    text = convert_to_tensor(serialized_sparse, None if _core.is_tensor(serialized_sparse) else "string")
    return SparseTensor(*host_call(run, [text], specs))
