"""The TensorFlow 1 signatures of functions that make, move and choose elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.v1.signatures.declaration import Arguments, v1_signature
from tapeflow._src.namespace import find_public
from tapeflow._src.types.tensor_shape import as_shape

v1_signature(
    "reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None, seq_dim=None, batch_dim=None)",
    "reverse_sequence",
    renamed={"seq_dim": "seq_axis", "batch_dim": "batch_axis"},
    example="tf.compat.v1.reverse_sequence([[1, 2, 3]], [2], seq_dim=1) => [[2, 1, 3]]",
)
for _name, _value in (("zeros", "[0, 0]"), ("ones", "[1, 1]")):
    v1_signature(
        f"{_name}_like(tensor, dtype=None, name=None, optimize=True)",
        f"{_name}_like",
        renamed={"tensor": "input"},
        ignored=["optimize"],
        example=f"tf.compat.v1.{_name}_like(tensor=[3, 4]) => {_value}",
    )
for _name, _value in (("shape", "[2]"), ("size", "2")):
    v1_signature(
        f"{_name}(input, name=None, out_type=int32)",
        _name,
        example=f"tf.compat.v1.{_name}([3, 4], 'n') => {_value}",
    )
v1_signature(
    "pad(tensor, paddings, mode='CONSTANT', name=None, constant_values=0)",
    "pad",
    example="tf.compat.v1.pad([1], [[0, 1]], 'CONSTANT', 'n', 7) => [1, 7]",
)
v1_signature(
    "transpose(a, perm=None, name='transpose', conjugate=False)",
    "transpose",
    example="tf.compat.v1.transpose([[1, 2]], [1, 0], 'n') => [[1], [2]]",
)
v1_signature(
    "boolean_mask(tensor, mask, name='boolean_mask', axis=None)",
    "boolean_mask",
    example="tf.compat.v1.boolean_mask([1, 2], [True, False], 'n') => [1]",
)
v1_signature(
    "gather(params, indices, validate_indices=None, name=None, axis=None, batch_dims=0)",
    "gather",
    example="tf.compat.v1.gather([5, 6], [1], None, 'n') => [6]",
)


def _gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Any:
    return find_public("gather_nd")(
        params, indices, batch_dims=batch_dims, name=name, bad_indices_policy=bad_indices_policy
    )


v1_signature(
    "gather_nd(params, indices, name=None, batch_dims=0, bad_indices_policy='')",
    "gather_nd",
    also=["manip.gather_nd"],
    function=_gather_nd,
    example="tf.compat.v1.gather_nd([5, 6], [[1]], 'n') => [6]",
)
v1_signature(
    "tuple(tensors, name=None, control_inputs=None)",
    "tuple",
    example="tf.compat.v1.tuple([1, 2], 'n') => [1, 2]",
)


def _constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False) -> Any:
    """A constant. In a graph the last element fills what is missing of `shape`, unless the shape is verified."""
    constant = find_public("constant")
    if shape is None or _core.is_tensor(value) or not _core.is_tracing():
        return constant(value, dtype=dtype, shape=shape, name=name)
    given, wanted = _core.convert_to_tensor(value, dtype, None, "constant"), as_shape(shape)
    values, count = given.numpy(), wanted.num_elements() or 0
    if verify_shape and values.shape != tuple(wanted.as_list()):
        raise TypeError(f"Expected Tensor's shape: {wanted}, but got {given.shape}.")
    if values.size > count:
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {values.size}")
    if 0 < values.size < count:
        flat = values.reshape(-1)
        values = np.append(flat, np.repeat(flat[-1:], count - values.size))
    return constant(values, dtype=given.dtype, shape=shape, name=name)


v1_signature(
    "constant(value, dtype=None, shape=None, name='Const', verify_shape=False)",
    "constant",
    function=_constant,
    example="tf.compat.v1.constant(1, verify_shape=True) => 1",
)
v1_signature(
    "convert_to_tensor(value, dtype=None, name=None, preferred_dtype=None, dtype_hint=None)",
    "convert_to_tensor",
    renamed={"preferred_dtype": "dtype_hint"},
    example="tf.compat.v1.convert_to_tensor(1, preferred_dtype=tf.float32) => 1.0",
)
for _name, _dtype in (
    ("ToFloat", "float32"), ("ToDouble", "float64"), ("ToInt32", "int32"), ("ToInt64", "int64"),
    ("ToBFloat16", "bfloat16"), ("ToComplex64", "complex64"), ("ToComplex128", "complex128"),
):  # fmt: skip
    v1_signature(
        f"to_{_name[2:].lower()}(x, name='{_name}')",
        "cast",
        fixed={"dtype": _dtype},
        example=f"tf.compat.v1.to_{_name[2:].lower()}([1, 2]).dtype.name => '{_dtype}'",
    )


def _require_axis(arguments: Arguments) -> None:
    if arguments["axis"] is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")


v1_signature(
    "expand_dims(input, axis=None, name=None, dim=None)",
    "expand_dims",
    renamed={"dim": "axis"},
    adapt=_require_axis,
    example="tf.compat.v1.expand_dims([1., 2.], dim=0) => [[1., 2.]]",
)
v1_signature(
    "squeeze(input, axis=None, name=None, squeeze_dims=None)",
    "squeeze",
    renamed={"squeeze_dims": "axis"},
    example="tf.compat.v1.squeeze([[1., 2.]], squeeze_dims=[0]) => [1., 2.]",
)
for _name in ("space_to_depth", "depth_to_space"):
    v1_signature(
        f"{_name}(input, block_size, name=None, data_format='NHWC')",
        f"nn.{_name}",
        also=[f"nn.{_name}"],
        example=f"tf.compat.v1.{_name}(tf.zeros([1, 2, 2, 4]), 2, 'n').shape.rank => 4",
    )


def _square_block(arguments: Arguments) -> None:
    size = arguments.pop("block_size")
    if arguments["block_shape"] is None:
        arguments["block_shape"] = [size, size]


v1_signature(
    "space_to_batch(input, paddings, block_size=None, name=None, block_shape=None)",
    "space_to_batch",
    also=["nn.space_to_batch"],
    adapt=_square_block,
    example="tf.compat.v1.space_to_batch([[[[1]], [[2]]]], [[0, 0], [0, 1]], 2).shape => TensorShape([4, 1, 1, 1])",
)
v1_signature(
    "batch_to_space(input, crops, block_size, name=None, block_shape=None)",
    "batch_to_space",
    adapt=_square_block,
    example="tf.compat.v1.batch_to_space(tf.zeros([4, 1, 1, 1]), [[0, 0], [0, 0]], 2).shape "
    "=> TensorShape([1, 2, 2, 1])",
)
