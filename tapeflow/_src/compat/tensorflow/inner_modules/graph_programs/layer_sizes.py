"""Sizes of layers and states: `tensorflow.python.layers.utils` and what `rnn_cell_impl` makes shapes with."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow.smart_cond import known_condition, smart_cond
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape

_PADDINGS = ("same", "valid", "full")
_get_static_value = find_public("get_static_value")


def _check_padding(who: str, padding: str) -> None:
    if padding not in _PADDINGS:
        raise ValueError(f'{who}: padding must be "same", "valid" or "full", and is {padding!r}')


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The length of the result of a convolution."""
    if input_length is None:
        return None
    _check_padding("conv_output_length", padding)
    reach = (filter_size - 1) * dilation
    places = input_length + {"same": 0, "valid": -reach, "full": reach}[padding]
    return (places + stride - 1) // stride


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length that a convolution makes this one of."""
    if output_length is None:
        return None
    _check_padding("conv_input_length", padding)
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def deconv_output_length(input_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length of the result of a transposed convolution."""
    if input_length is None:
        return None
    _check_padding("deconv_output_length", padding)
    change = {"same": 0, "valid": max(filter_size - stride, 0), "full": 2 - stride - filter_size}[padding]
    return input_length * stride + change


def constant_value(pred: Any) -> Any:
    """The value of a condition, or None if it is not known yet."""
    return None if isinstance(pred, _core.Variable) else known_condition(pred)


def _dims(size: Any, who: str) -> tuple[Any, list[int | None] | None]:
    """Sizes as a vector (None if some are not known), and as a list (None if not even their number is known)."""
    if not _core.is_tensor(size):
        shape = TensorShape(size)
        known = convert_to_tensor(shape.as_list(), as_dtype("int32")) if shape.is_fully_defined() else None
        return known, None if shape.rank is None else shape.as_list()
    if size.shape.rank not in (0, 1):
        raise ValueError(f"{who} tensor must be either a scalar or vector, but saw tensor: {size}")
    vector = find_public("reshape")(size, [-1]) if size.shape.rank == 0 else size
    static = _get_static_value(vector)
    return vector, None if static is None else [int(dim) for dim in static]


def concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """Two sizes (numbers, shapes or tensors) one behind the other: a tensor, or a list if `static`."""
    (first, first_dims), (last, last_dims) = _dims(prefix, "prefix"), _dims(suffix, "suffix")
    if static:
        shape = TensorShape(first_dims).concatenate(TensorShape(last_dims))
        return None if shape.rank is None else shape.as_list()
    if first is None or last is None:
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    return find_public("concat")([first, cast(last, first.dtype)], 0)


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Any:
    """The shape of a tensor; unless `optimize`, as a tensor of the graph."""
    if isinstance(input, SparseTensor):
        return cast(input.dense_shape, out_type or "int32")
    return find_public("shape")(input, out_type=as_dtype(out_type or "int32"), name=name)


_ALIASES = {
    "Conv1D": "Convolution1D",
    "Conv2D": "Convolution2D",
    "Conv2DTranspose": "Convolution2DTranspose Deconvolution2D Deconv2D",
    "Conv3D": "Convolution3D",
    "Conv3DTranspose": "Conv3DTranspose Convolution3DTranspose Deconvolution3D Deconv3D",
    "SeparableConv2D": "SeparableConvolution2D",
    "conv1d": "convolution1d",
    "conv2d": "convolution2d",
    "conv2d_transpose": "convolution2d_transpose deconvolution2d deconv2d",
    "conv3d": "convolution3d",
    "conv3d_transpose": "conv3d_transpose convolution3d_transpose deconvolution3d deconv3d",
    "separable_conv2d": "separable_convolution2d",
}

names_by_path: dict[str, dict[str, Any]] = {
    "python.framework.smart_cond": {"smart_constant_value": known_condition},
    "python.layers.convolutional": {
        alias: find_public(f"compat.v1.layers.{name}")
        for name, aliases in _ALIASES.items()
        for alias in aliases.split()
    },
    "python.layers.utils": {
        "constant_value": constant_value,
        "conv_input_length": conv_input_length,
        "conv_output_length": conv_output_length,
        "deconv_output_length": deconv_output_length,
        "smart_cond": smart_cond,
    },
    "python.ops.array_ops": {"shape_internal": shape_internal},
    "python.ops.rnn_cell_impl": {"_concat": concat},
}
