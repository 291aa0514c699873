"""`tf.raw_ops`: operations under TensorFlow's own names, with its argument names, called by keyword."""

from __future__ import annotations

import ast
import functools
import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, namespace, primitives
from tapeflow._src.compat.raw_ops import array_ops, elementwise_ops, image_ops, nn_ops, random_ops, sparse_ops
from tapeflow._src.ops.arrays import indexing, sorting, spacing, splitting
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math import quantization
from tapeflow._src.ops.math.segments import count_bins
from tapeflow._src.ops.sparse import binary as sparse_binary
from tapeflow._src.ops.sparse import conversion as sparse_conversion
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

BlockLSTMV2 = namedtuple("BlockLSTMV2", ["i", "cs", "f", "o", "ci", "co", "h"])


def _division(x: Any, y: Any) -> Any:
    x = convert_to_tensor(x)
    return primitives.TruncateDiv(x, y) if x.dtype.is_integer else primitives.RealDiv(x, y)


def _nearly_equal(x: Any, y: Any, tolerance: float) -> Any:
    return primitives.Less(primitives.Abs(convert_to_tensor(x) - y), tolerance)


def _reverse(tensor: Any, dims: Any) -> Any:
    return primitives.ReverseV2(tensor, np.flatnonzero(np.asarray(dims)).tolist())


def _pad(input: Any, paddings: Any, constant_values: Any) -> Any:
    return primitives.PadV2(input, np.asarray(paddings).reshape(-1).tolist(), constant_values)


def _update_slice(input: Any, begin: Any, end: Any, strides: Any, value: Any, *masks: int) -> Any:
    return indexing.update_slice(input, indexing.slice_key(begin, end, strides, *masks), value)


def _select(condition: Any, x: Any, y: Any) -> Any:
    condition, x = convert_to_tensor(condition), convert_to_tensor(x)
    if condition.shape.rank == 1 and x.shape.rank > 1:
        condition = primitives.Reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return primitives.SelectV2(condition, x, y)


def _search(right: bool) -> Callable[..., Any]:
    def search(sorted_inputs: Any, values: Any, out_type: Any) -> Any:
        return primitives.SearchSorted(sorted_inputs, values, right, out_type)

    return search


def _matmul(x: Any, y: Any, adj_x: bool, adj_y: bool) -> Any:
    return primitives.MatMul(x, y, False, False, adj_x, adj_y)


def _bias_gradient(out_backprop: Any, data_format: str) -> Any:
    dy = convert_to_tensor(out_backprop)
    channels = 1 if data_format.startswith("NC") else dy.shape.rank - 1
    return primitives.Sum(dy, [i for i in range(dy.shape.rank) if i != channels], False)


def _bin_count(arr: Any, size: Any, weights: Any) -> Any:
    weights = convert_to_tensor(weights)
    numbers = primitives.Reshape(cast(arr, "int64"), [-1])
    dtype = weights.dtype
    given = None if weights.shape.num_elements() == 0 else primitives.Reshape(weights, [-1])
    zero = _core.convert_to_tensor(0, "int64", None, "bincount")
    length = int(size)
    return primitives.Reshape(count_bins(numbers, zero, 1, given, length, False, dtype), [length])


def _quantize_3(
    input: Any,
    input_min: Any,
    input_max: Any,
    num_bits: Any,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> Any:
    return quantization.quantize_and_dequantize(
        input, input_min, input_max, signed_input, int(num_bits), range_given, "HALF_TO_EVEN", None, narrow_range, axis
    )


def _quantize(version: Callable[..., Any]) -> Callable[..., Any]:
    def quantize(
        input: Any,
        input_min: Any,
        input_max: Any,
        signed_input: bool,
        num_bits: int,
        range_given: bool,
        round_mode: str,
        narrow_range: bool,
        axis: int,
    ) -> Any:
        return version(
            input, input_min, input_max, signed_input, num_bits, range_given, round_mode, None, narrow_range, axis
        )

    return quantize


class Optional:
    """A value that may be there or not: the components of `OptionalFromValue`."""

    def __init__(self, components: list[Any] | None) -> None:
        self.components = components


def _optional_value(optional: Optional, output_types: Any, output_shapes: Any) -> list[Any]:
    if optional.components is None:
        raise InvalidArgumentError.of("OptionalGetValue: The given optional does not have a value.")
    return [primitives.Identity(t) for t in optional.components]


def _sparse(indices: Any, values: Any, shape: Any) -> SparseTensor:
    return SparseTensor(cast(convert_to_tensor(indices), "int64"), values, cast(convert_to_tensor(shape), "int64"))


def _sparse_dense_add(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    x = _sparse(sp_indices, sp_values, sp_shape)
    return x.values + sparse_binary.dense_elements(x, dense, "SparseDenseCwiseAdd")


def _sparse_matmul(a_indices: Any, a_values: Any, a_shape: Any, b: Any, adjoint_a: bool, adjoint_b: bool) -> Any:
    return sparse_binary.sparse_dense_matmul(_sparse(a_indices, a_values, a_shape), b, adjoint_a, adjoint_b)


def _sparse_to_dense(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any, validate_indices: bool
) -> Any:
    indices = convert_to_tensor(sparse_indices)
    shape = convert_to_tensor(output_shape)
    if indices.shape.rank < 2:
        indices = primitives.Reshape(indices, [-1, 1] if indices.shape.rank == 1 or shape.shape[0] == 1 else [1, -1])
    values = convert_to_tensor(sparse_values)
    if values.shape.rank == 0:
        values = primitives.BroadcastTo(values, [indices.shape[0]])
    return sparse_conversion.to_dense(_sparse(indices, values, shape), default_value, validate_indices)


def _block_lstm(
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    cell_clip: float,
    use_peephole: bool,
) -> Any:
    """An LSTM over the first dimension; the gates stand in the order input, forget, cell, output."""
    x, cs, h = convert_to_tensor(x), convert_to_tensor(cs_prev), convert_to_tensor(h_prev)
    steps = int(seq_len_max)
    rows: list[list[Any]] = [[] for _ in BlockLSTMV2._fields]
    for t in range(x.shape[0]):
        if t >= steps:
            for row in rows:
                row.append(
                    primitives.BroadcastTo(_core.convert_to_tensor(0, x.dtype, None, "lstm"), cs.shape.as_list())
                )
            continue
        gates = primitives.MatMul(primitives.ConcatV2([x[t], h], 1), w) + b
        i, f, ci, o = primitives.SplitV(gates, [cs.shape[1]] * 4, 1)
        if use_peephole:
            i, f = i + cs * wci, f + cs * wcf
        i, f, ci = primitives.Sigmoid(i), primitives.Sigmoid(f), primitives.Tanh(ci)
        cs = ci * i + cs * f
        if cell_clip > 0:
            cs = primitives.Minimum(primitives.Maximum(cs, -cell_clip), cell_clip)
        o = primitives.Sigmoid(o + cs * wco if use_peephole else o)
        co = primitives.Tanh(cs)
        h = co * o
        for row, value in zip(rows, (i, cs, f, o, ci, co, h)):
            row.append(value)
    return BlockLSTMV2(*(primitives.Pack(row, 0) for row in rows))


# Operation, arguments, and what runs it: a public path, called with the arguments in this order (or with the first n of
# them, "path/n"), a path with a function that adapts it, or a function. Without the path there is no operation.
_ROWS: list[tuple[str, str, Any]] = [
    ("Abs", "x", "math.abs"),
    ("Acos", "x", "math.acos"),
    ("Acosh", "x", "math.acosh"),
    ("Add", "x, y", "math.add"),
    ("AddN", "inputs", "math.add_n"),
    ("AddV2", "x, y", "math.add"),
    ("AdjustContrastv2", "images, contrast_factor", "image.adjust_contrast"),
    ("AdjustHue", "images, delta", "image.adjust_hue"),
    ("AdjustSaturation", "images, scale", "image.adjust_saturation"),
    ("All", "input, axis, keep_dims=False", "math.reduce_all"),
    ("Angle", "input, Tout='float32'", "math.angle/1"),
    ("Any", "input, axis, keep_dims=False", "math.reduce_any"),
    ("ApproximateEqual", "x, y, tolerance=1e-05", _nearly_equal),
    ("ArgMax", "input, dimension, output_type='int64'", "math.argmax"),
    ("ArgMin", "input, dimension, output_type='int64'", "math.argmin"),
    ("AsString", "input, precision=-1, scientific=False, shortest=False, width=-1, fill=''", "strings.as_string"),
    ("Asin", "x", "math.asin"),
    ("Asinh", "x", "math.asinh"),
    ("Assert", "condition, data, summarize=3", "debugging.Assert"),
    ("Atan", "x", "math.atan"),
    ("Atan2", "y, x", "math.atan2"),
    ("Atanh", "x", "math.atanh"),
    ("AvgPool", "value, ksize, strides, padding, data_format='NHWC'", "nn.avg_pool2d"),
    (
        "BatchMatMul",
        "x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False",
        lambda x, y, adj_x, adj_y, *_: _matmul(x, y, adj_x, adj_y),
    ),
    (
        "BatchMatMulV2",
        "x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False",
        lambda x, y, adj_x, adj_y, *_: _matmul(x, y, adj_x, adj_y),
    ),
    (
        "BatchMatMulV3",
        "x, y, Tout, adj_x=False, adj_y=False, grad_x=False, grad_y=False",
        lambda x, y, Tout, adj_x, adj_y, *_: cast(_matmul(cast(x, Tout), cast(y, Tout), adj_x, adj_y), Tout),
    ),
    ("BatchMatrixDeterminant", "input", "linalg.det"),
    ("BatchMatrixDiag", "diagonal", "linalg.diag"),
    ("BatchMatrixDiagPart", "input", "linalg.diag_part"),
    ("BatchMatrixSetDiag", "input, diagonal", "linalg.set_diag"),
    ("BatchToSpace", "input, crops, block_size", lambda x, crops, size: spacing.batch_to_space(x, [size, size], crops)),
    ("BatchToSpaceND", "input, block_shape, crops", "batch_to_space"),
    ("BesselI0", "x", "math.bessel_i0"),
    ("BesselI0e", "x", "math.bessel_i0e"),
    ("BesselI1", "x", "math.bessel_i1"),
    ("BesselI1e", "x", "math.bessel_i1e"),
    ("BesselJ0", "x", "math.special.bessel_j0"),
    ("BesselJ1", "x", "math.special.bessel_j1"),
    ("BesselK0", "x", "math.special.bessel_k0"),
    ("BesselK0e", "x", "math.special.bessel_k0e"),
    ("BesselK1", "x", "math.special.bessel_k1"),
    ("BesselK1e", "x", "math.special.bessel_k1e"),
    ("BesselY0", "x", "math.special.bessel_y0"),
    ("BesselY1", "x", "math.special.bessel_y1"),
    ("Betainc", "a, b, x", "math.betainc"),
    ("BiasAdd", "value, bias, data_format='NHWC'", "nn.bias_add"),
    ("BiasAddGrad", "out_backprop, data_format='NHWC'", _bias_gradient),
    ("BiasAddV1", "value, bias", "nn.bias_add"),
    ("Bincount", "arr, size, weights", _bin_count),
    ("Bitcast", "input, type", "bitcast"),
    ("BitwiseAnd", "x, y", "bitwise.bitwise_and"),
    ("BitwiseOr", "x, y", "bitwise.bitwise_or"),
    ("BitwiseXor", "x, y", "bitwise.bitwise_xor"),
    (
        "BlockLSTMV2",
        "seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, cell_clip=0, use_peephole=False",
        _block_lstm,
    ),
    ("BroadcastArgs", "s0, s1", "broadcast_dynamic_shape"),
    ("BroadcastTo", "input, shape", "broadcast_to"),
    ("Cast", "x, DstT, Truncate=False", "cast/2"),
    ("Ceil", "x", "math.ceil"),
    ("CheckNumerics", "tensor, message", "debugging.check_numerics"),
    ("CheckNumericsV2", "tensor, message", "debugging.check_numerics"),
    ("Cholesky", "input", "linalg.cholesky"),
    ("ClipByValue", "t, clip_value_min, clip_value_max", "clip_by_value"),
    ("Complex", "real, imag, Tout='complex64'", "dtypes.complex/2"),
    ("ComplexAbs", "x, Tout='float32'", "math.abs/1"),
    ("Concat", "concat_dim, values", lambda axis, values: primitives.ConcatV2(values, axis)),
    ("ConcatV2", "values, axis", "concat"),
    ("Conj", "input", "math.conj"),
    ("ConjugateTranspose", "x, perm", lambda x, perm: primitives.Transpose(x, perm, True)),
    ("Cos", "x", "math.cos"),
    ("Cosh", "x", "math.cosh"),
    ("Cross", "a, b", "linalg.cross"),
    ("Cumprod", "x, axis, exclusive=False, reverse=False", "math.cumprod"),
    ("Cumsum", "x, axis, exclusive=False, reverse=False", "math.cumsum"),
    ("CumulativeLogsumexp", "x, axis, exclusive=False, reverse=False", "math.cumulative_logsumexp"),
    ("Dawsn", "x", "math.special.dawsn"),
    ("DecodeBase64", "input", "io.decode_base64"),
    ("DeepCopy", "x", "identity"),
    ("DepthToSpace", "input, block_size, data_format='NHWC'", "nn.depth_to_space"),
    ("Diag", "diagonal", "linalg.tensor_diag"),
    ("DiagPart", "input", "linalg.tensor_diag_part"),
    ("Digamma", "x", "math.digamma"),
    ("Div", "x, y", _division),
    ("DivNoNan", "x, y", "math.divide_no_nan"),
    ("DynamicPartition", "data, partitions, num_partitions", "dynamic_partition"),
    ("DynamicStitch", "indices, data", "dynamic_stitch"),
    (
        "EditDistance",
        "hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape, "
        "normalize=True",
        lambda *parts: sparse_binary.edit_distance(_sparse(*parts[:3]), _sparse(*parts[3:6]), parts[6]),
    ),
    ("Einsum", "inputs, equation", ("einsum", lambda einsum: lambda inputs, equation: einsum(equation, *inputs))),
    ("Elu", "features", "nn.elu"),
    ("EncodeBase64", "input, pad=False", "io.encode_base64"),
    ("EnsureShape", "input, shape", "ensure_shape"),
    ("Equal", "x, y, incompatible_shape_error=True", "math.equal/2"),
    ("Erf", "x", "math.erf"),
    ("Erfc", "x", "math.erfc"),
    ("Erfinv", "x", "math.erfinv"),
    ("EuclideanNorm", "input, axis, keep_dims=False", "math.reduce_euclidean_norm"),
    ("Exp", "x", "math.exp"),
    ("ExpandDims", "input, axis", "expand_dims"),
    ("Expint", "x", "math.special.expint"),
    ("Expm1", "x", "math.expm1"),
    ("ExtractVolumePatches", "input, ksizes, strides, padding", "extract_volume_patches"),
    ("FFT", "input", "signal.fft"),
    ("FFT2D", "input", "signal.fft2d"),
    ("FFT3D", "input", "signal.fft3d"),
    (
        "FakeQuantWithMinMaxArgs",
        "inputs, min=-6, max=6, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_args",
    ),
    (
        "FakeQuantWithMinMaxArgsGradient",
        "gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_args_gradient",
    ),
    (
        "FakeQuantWithMinMaxVars",
        "inputs, min, max, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_vars",
    ),
    (
        "FakeQuantWithMinMaxVarsGradient",
        "gradients, inputs, min, max, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_vars_gradient",
    ),
    (
        "FakeQuantWithMinMaxVarsPerChannel",
        "inputs, min, max, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_vars_per_channel",
    ),
    (
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        "gradients, inputs, min, max, num_bits=8, narrow_range=False",
        "quantization.fake_quant_with_min_max_vars_per_channel_gradient",
    ),
    ("Fill", "dims, value", "fill/2"),
    ("Floor", "x", "math.floor"),
    ("FloorDiv", "x, y", "math.floordiv"),
    ("FloorMod", "x, y", "math.floormod"),
    ("FresnelCos", "x", "math.special.fresnel_cos"),
    ("FresnelSin", "x", "math.special.fresnel_sin"),
    (
        "Gather",
        "params, indices, validate_indices=True",
        lambda params, indices, _: primitives.GatherV2(params, indices, 0, 0),
    ),
    ("GatherNd", "params, indices, bad_indices_policy=''", "gather_nd/2"),
    ("GatherV2", "params, indices, axis, batch_dims=0", primitives.GatherV2),
    ("Greater", "x, y", "math.greater"),
    ("GreaterEqual", "x, y", "math.greater_equal"),
    ("GuaranteeConst", "input", "guarantee_const"),
    ("HSVToRGB", "images", "image.hsv_to_rgb"),
    ("HistogramFixedWidth", "values, value_range, nbins, dtype='int32'", "histogram_fixed_width"),
    ("IFFT", "input", "signal.ifft"),
    ("IFFT2D", "input", "signal.ifft2d"),
    ("IFFT3D", "input", "signal.ifft3d"),
    ("IRFFT", "input, fft_length, Treal='float32'", "signal.irfft/2"),
    ("IRFFT2D", "input, fft_length, Treal='float32'", "signal.irfft2d/2"),
    ("IRFFT3D", "input, fft_length, Treal='float32'", "signal.irfft3d/2"),
    ("Identity", "input", "identity"),
    ("IdentityN", "input", "identity_n"),
    ("Igamma", "a, x", "math.igamma"),
    ("Igammac", "a, x", "math.igammac"),
    ("Imag", "input, Tout='float32'", "math.imag/1"),
    ("InTopK", "predictions, targets, k", lambda predictions, targets, k: sorting.in_top_k(targets, predictions, k)),
    ("InTopKV2", "predictions, targets, k", lambda predictions, targets, k: sorting.in_top_k(targets, predictions, k)),
    ("Inv", "x", "math.reciprocal"),
    ("Invert", "x", "bitwise.invert"),
    ("InvertPermutation", "x", "math.invert_permutation"),
    ("IsFinite", "x", "math.is_finite"),
    ("IsInf", "x", "math.is_inf"),
    ("IsNan", "x", "math.is_nan"),
    ("L2Loss", "t", "nn.l2_loss"),
    ("LeakyRelu", "features, alpha=0.2", "nn.leaky_relu"),
    ("LeftShift", "x, y", "bitwise.left_shift"),
    ("Less", "x, y", "math.less"),
    ("LessEqual", "x, y", "math.less_equal"),
    ("Lgamma", "x", "math.lgamma"),
    ("LinSpace", "start, stop, num", "linspace"),
    ("Log", "x", "math.log"),
    ("Log1p", "x", "math.log1p"),
    ("LogMatrixDeterminant", "input", "linalg.slogdet"),
    ("LogSoftmax", "logits", "nn.log_softmax"),
    ("LogicalAnd", "x, y", "math.logical_and"),
    ("LogicalNot", "x", "math.logical_not"),
    ("LogicalOr", "x, y", "math.logical_or"),
    ("LowerBound", "sorted_inputs, values, out_type='int32'", _search(False)),
    ("Lu", "input, output_idx_type='int32'", "linalg.lu"),
    (
        "MatMul",
        "a, b, transpose_a=False, transpose_b=False, grad_a=False, grad_b=False",
        lambda a, b, transpose_a, transpose_b, *_: primitives.MatMul(a, b, transpose_a, transpose_b),
    ),
    ("MatrixBandPart", "input, num_lower, num_upper", "linalg.band_part"),
    ("MatrixDeterminant", "input", "linalg.det"),
    ("MatrixDiag", "diagonal", "linalg.diag"),
    ("MatrixDiagPart", "input", "linalg.diag_part"),
    ("MatrixExponential", "input", "linalg.expm"),
    ("MatrixInverse", "input, adjoint=False", "linalg.inv"),
    ("MatrixLogarithm", "input", "linalg.logm"),
    ("MatrixSetDiag", "input, diagonal", "linalg.set_diag"),
    ("MatrixSolve", "matrix, rhs, adjoint=False", "linalg.solve"),
    ("MatrixSolveLs", "matrix, rhs, l2_regularizer, fast=True", "linalg.lstsq"),
    ("MatrixSquareRoot", "input", "linalg.sqrtm"),
    ("MatrixTriangularSolve", "matrix, rhs, lower=True, adjoint=False", "linalg.triangular_solve"),
    ("Max", "input, axis, keep_dims=False", "math.reduce_max"),
    (
        "MaxPool",
        "input, ksize, strides, padding, explicit_paddings=[], data_format='NHWC'",
        ("nn.max_pool2d", lambda pool: lambda *parts: pool(*parts[:4], parts[5])),
    ),
    ("MaxPoolV2", "input, ksize, strides, padding, data_format='NHWC'", "nn.max_pool2d"),
    ("Maximum", "x, y", "math.maximum"),
    ("Mean", "input, axis, keep_dims=False", "math.reduce_mean"),
    ("Min", "input, axis, keep_dims=False", "math.reduce_min"),
    ("Minimum", "x, y", "math.minimum"),
    ("MirrorPad", "input, paddings, mode", "pad"),
    ("Mod", "x, y", "truncatemod"),
    ("Mul", "x, y", "math.multiply"),
    ("MulNoNan", "x, y", "math.multiply_no_nan"),
    ("Ndtri", "x", "math.ndtri"),
    ("Neg", "x", "math.negative"),
    ("NextAfter", "x1, x2", "math.nextafter"),
    ("NoOp", "", "no_op"),
    ("NotEqual", "x, y, incompatible_shape_error=True", "math.not_equal/2"),
    ("NthElement", "input, n, reverse=False", sorting.nth_element),
    ("OneHot", "indices, depth, on_value, off_value, axis=-1", "one_hot"),
    ("OnesLike", "x", "ones_like"),
    ("OptionalFromValue", "components", lambda components: Optional([convert_to_tensor(t) for t in components])),
    ("OptionalGetValue", "optional, output_types, output_shapes", _optional_value),
    ("OptionalHasValue", "optional", lambda optional: convert_to_tensor(optional.components is not None)),
    ("OptionalNone", "", lambda: Optional(None)),
    ("Pack", "values, axis=0", "stack"),
    ("Pad", "input, paddings", "pad"),
    ("PadV2", "input, paddings, constant_values", _pad),
    ("ParallelConcat", "values, shape", "concat"),
    ("ParallelDynamicStitch", "indices, data", "dynamic_stitch"),
    ("Polygamma", "a, x", "math.polygamma"),
    ("PopulationCount", "x", "bitwise.population_count"),
    ("Pow", "x, y", "math.pow"),
    ("Prod", "input, axis, keep_dims=False", "math.reduce_prod"),
    ("Qr", "input, full_matrices=False", "linalg.qr"),
    (
        "QuantizeAndDequantizeV2",
        "input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, "
        "round_mode='HALF_TO_EVEN', narrow_range=False, axis=-1",
        _quantize(quantization.quantize_and_dequantize),
    ),
    (
        "QuantizeAndDequantizeV3",
        "input, input_min, input_max, num_bits, signed_input=True, range_given=True, narrow_range=False, axis=-1",
        _quantize_3,
    ),
    (
        "QuantizeAndDequantizeV4",
        "input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, "
        "round_mode='HALF_TO_EVEN', narrow_range=False, axis=-1",
        _quantize(quantization.quantize_and_dequantize_v2),
    ),
    ("RFFT", "input, fft_length, Tcomplex='complex64'", "signal.rfft/2"),
    ("RFFT2D", "input, fft_length, Tcomplex='complex64'", "signal.rfft2d/2"),
    ("RFFT3D", "input, fft_length, Tcomplex='complex64'", "signal.rfft3d/2"),
    ("RGBToHSV", "images", "image.rgb_to_hsv"),
    ("Range", "start, limit, delta", "range"),
    ("Rank", "input", "rank"),
    ("Real", "input, Tout='float32'", "math.real/1"),
    ("RealDiv", "x, y", "realdiv"),
    ("Reciprocal", "x", "math.reciprocal"),
    ("RegexFullMatch", "input, pattern", "strings.regex_full_match"),
    ("RegexReplace", "input, pattern, rewrite, replace_global=True", "strings.regex_replace"),
    ("Relu", "features", "nn.relu"),
    ("Relu6", "features", "nn.relu6"),
    ("Reshape", "tensor, shape", "reshape"),
    ("Reverse", "tensor, dims", _reverse),
    ("ReverseSequence", "input, seq_lengths, seq_dim, batch_dim=0", "reverse_sequence"),
    ("ReverseV2", "tensor, axis", "reverse"),
    ("RightShift", "x, y", "bitwise.right_shift"),
    ("Rint", "x", "math.rint"),
    ("Roll", "input, shift, axis", "roll"),
    ("Round", "x", "math.round"),
    ("Rsqrt", "x", "math.rsqrt"),
    ("ScatterNd", "indices, updates, shape, bad_indices_policy=''", "scatter_nd/3"),
    ("ScatterNdNonAliasingAdd", "input, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_add/3"),
    ("SegmentMax", "data, segment_ids", "math.segment_max"),
    ("SegmentMean", "data, segment_ids", "math.segment_mean"),
    ("SegmentMin", "data, segment_ids", "math.segment_min"),
    ("SegmentProd", "data, segment_ids", "math.segment_prod"),
    ("SegmentSum", "data, segment_ids", "math.segment_sum"),
    ("Select", "condition, x, y", _select),
    ("SelectV2", "condition, t, e", "where"),
    ("Selu", "features", "nn.selu"),
    ("Shape", "input, out_type='int32'", "shape"),
    ("ShapeN", "input, out_type='int32'", "shape_n"),
    ("Sigmoid", "x", "math.sigmoid"),
    ("Sign", "x", "math.sign"),
    ("Sin", "x", "math.sin"),
    ("Sinh", "x", "math.sinh"),
    ("Size", "input, out_type='int32'", "size"),
    ("Slice", "input, begin, size", "slice"),
    ("Snapshot", "input", "identity"),
    ("Softmax", "logits", "nn.softmax"),
    ("Softplus", "features", "math.softplus"),
    ("Softsign", "features", "nn.softsign"),
    (
        "SpaceToBatch",
        "input, paddings, block_size",
        lambda x, paddings, size: spacing.space_to_batch(x, [size, size], paddings),
    ),
    ("SpaceToBatchND", "input, block_shape, paddings", "space_to_batch"),
    ("SpaceToDepth", "input, block_size, data_format='NHWC'", "nn.space_to_depth"),
    ("SparseDenseCwiseAdd", "sp_indices, sp_values, sp_shape, dense", _sparse_dense_add),
    (
        "SparseDenseCwiseDiv",
        "sp_indices, sp_values, sp_shape, dense",
        lambda *parts: (_sparse(*parts[:3]) / parts[3]).values,
    ),
    (
        "SparseDenseCwiseMul",
        "sp_indices, sp_values, sp_shape, dense",
        lambda *parts: (_sparse(*parts[:3]) * parts[3]).values,
    ),
    ("SparseSegmentMean", "data, indices, segment_ids, sparse_gradient=False", "sparse.segment_mean/3"),
    (
        "SparseSegmentMeanWithNumSegments",
        "data, indices, segment_ids, num_segments, sparse_gradient=False",
        "sparse.segment_mean/4",
    ),
    ("SparseSegmentSqrtN", "data, indices, segment_ids, sparse_gradient=False", "sparse.segment_sqrt_n/3"),
    (
        "SparseSegmentSqrtNWithNumSegments",
        "data, indices, segment_ids, num_segments, sparse_gradient=False",
        "sparse.segment_sqrt_n/4",
    ),
    ("SparseSegmentSum", "data, indices, segment_ids, sparse_gradient=False", "sparse.segment_sum/3"),
    (
        "SparseSegmentSumWithNumSegments",
        "data, indices, segment_ids, num_segments, sparse_gradient=False",
        "sparse.segment_sum/4",
    ),
    ("SparseTensorDenseMatMul", "a_indices, a_values, a_shape, b, adjoint_a=False, adjoint_b=False", _sparse_matmul),
    (
        "SparseToDense",
        "sparse_indices, output_shape, sparse_values, default_value, validate_indices=True",
        _sparse_to_dense,
    ),
    ("Spence", "x", "math.special.spence"),
    ("Split", "axis, value, num_split", lambda axis, value, count: splitting.split(value, count, axis)),
    ("SplitV", "value, size_splits, axis, num_split", "split/3"),
    ("Sqrt", "x", "math.sqrt"),
    ("Square", "x", "math.square"),
    ("SquaredDifference", "x, y", "math.squared_difference"),
    ("Squeeze", "input, axis=[]", "squeeze"),
    ("StaticRegexFullMatch", "input, pattern", "strings.regex_full_match"),
    ("StaticRegexReplace", "input, pattern, rewrite, replace_global=True", "strings.regex_replace"),
    ("StopGradient", "input", "stop_gradient"),
    (
        "StridedSlice",
        "input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0",
        "strided_slice",
    ),
    ("StringJoin", "inputs, separator=''", "strings.join"),
    ("StringLength", "input, unit='BYTE'", "strings.length"),
    ("StringLower", "input, encoding=''", "strings.lower"),
    ("StringStrip", "input", "strings.strip"),
    ("StringToHashBucket", "string_tensor, num_buckets", "strings.to_hash_bucket"),
    ("StringToHashBucketFast", "input, num_buckets", "strings.to_hash_bucket_fast"),
    ("StringToHashBucketStrong", "input, num_buckets, key", "strings.to_hash_bucket_strong"),
    ("StringToNumber", "string_tensor, out_type='float32'", "strings.to_number"),
    ("StringUpper", "input, encoding=''", "strings.upper"),
    ("Sub", "x, y", "math.subtract"),
    ("Substr", "input, pos, len, unit='BYTE'", "strings.substr"),
    ("Sum", "input, axis, keep_dims=False", "math.reduce_sum"),
    ("Tan", "x", "math.tan"),
    ("Tanh", "x", "math.tanh"),
    ("TensorScatterAdd", "tensor, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_add/3"),
    ("TensorScatterMax", "tensor, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_max/3"),
    ("TensorScatterMin", "tensor, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_min/3"),
    ("TensorScatterSub", "tensor, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_sub/3"),
    ("TensorScatterUpdate", "tensor, indices, updates, bad_indices_policy=''", "tensor_scatter_nd_update/3"),
    (
        "TensorStridedSliceUpdate",
        "input, begin, end, strides, value, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, "
        "shrink_axis_mask=0",
        _update_slice,
    ),
    ("Tile", "input, multiples", "tile"),
    ("Timestamp", "", "timestamp"),
    ("TopK", "input, k, sorted=True", "math.top_k"),
    ("TopKV2", "input, k, sorted=True, index_type='int32'", "math.top_k"),
    ("Transpose", "x, perm", "transpose"),
    ("TruncateDiv", "x, y", "truncatediv"),
    ("TruncateMod", "x, y", "truncatemod"),
    ("UnicodeScript", "input", "strings.unicode_script"),
    (
        "UnicodeTranscode",
        "input, input_encoding, output_encoding, errors='replace', replacement_char=65533, "
        "replace_control_characters=False",
        "strings.unicode_transcode",
    ),
    ("Unique", "x, out_idx='int32'", "unique"),
    ("UniqueWithCounts", "x, out_idx='int32'", "unique_with_counts"),
    ("Unpack", "value, num, axis=0", "unstack"),
    ("UnravelIndex", "indices, dims", "unravel_index"),
    ("UnsortedSegmentMax", "data, segment_ids, num_segments", "math.unsorted_segment_max"),
    ("UnsortedSegmentMin", "data, segment_ids, num_segments", "math.unsorted_segment_min"),
    ("UnsortedSegmentProd", "data, segment_ids, num_segments", "math.unsorted_segment_prod"),
    ("UnsortedSegmentSum", "data, segment_ids, num_segments", "math.unsorted_segment_sum"),
    ("UpperBound", "sorted_inputs, values, out_type='int32'", _search(True)),
    ("Where", "condition", "where"),
    ("Xdivy", "x, y", "math.xdivy"),
    ("Xlog1py", "x, y", "math.xlog1py"),
    ("Xlogy", "x, y", "math.xlogy"),
    ("ZerosLike", "x", "zeros_like"),
    ("Zeta", "x, q", "math.zeta"),
]

_FAMILIES = (array_ops.ROWS, elementwise_ops.ROWS, nn_ops.ROWS, image_ops.ROWS, random_ops.ROWS, sparse_ops.ROWS)
_REQUIRED = inspect.Parameter.empty


class RawOperation:
    """One raw operation: takes keyword arguments alone, and gives their values to a function in order."""

    def __init__(self, name: str, arguments: str, target: Callable[..., Any], count: int | None) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = f"TensorFlow's operation `{name}`."
        self._arguments, self._target, self._count = arguments, target, count

    @functools.cached_property
    def _parameters(self) -> list[tuple[str, Any]]:
        """Argument names and defaults of "x, axis, keep_dims=False"."""
        parameters = ast.parse(f"def f({self._arguments}): pass").body[0].args  # type: ignore[attr-defined]
        names = [a.arg for a in parameters.args]
        defaults = [ast.literal_eval(d) for d in parameters.defaults]
        return list(zip(names, [_REQUIRED] * (len(names) - len(defaults)) + defaults))

    @property
    def __signature__(self) -> inspect.Signature:
        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = [inspect.Parameter(key, keyword, default=default) for key, default in self._parameters]
        return inspect.Signature([*shown, inspect.Parameter("name", keyword, default=None)])

    def __call__(self, **given: Any) -> Any:
        values = []
        for key, default in self._parameters:
            value = given.pop(key, default)
            if value is _REQUIRED:
                raise TypeError(f"{self.__name__}() missing 1 required keyword argument: '{key}'")
            values.append(value)
        given.pop("name", None)
        if given:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{next(iter(given))}'")
        return self._target(*values[: self._count])

    def __get__(self, instance: object, owner: type | None = None) -> RawOperation:
        """As an attribute of a class it stays as it is; with this, `help` knows it for a function."""
        return self

    def __repr__(self) -> str:
        return f"<tf.raw_ops.{self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find_raw_operation, (self.__name__,)


_operation_by_name: dict[str, RawOperation] = {}


def find_raw_operation(name: str) -> RawOperation:
    """The raw operation with this name."""
    return _operation_by_name[name]


def has_raw_operation(name: str) -> bool:
    """Whether there is a raw operation with this name."""
    return name in _operation_by_name


def add_rows(rows: list[tuple[str, str, Any]]) -> None:
    """More operations, from a layer that may use what this one may not."""
    _ROWS.extend(rows)


# The raw operation that a public function is, by the function's identity: its name and how many arguments it takes.
raw_name_by_function: dict[int, tuple[str, int | None]] = {}


def definitions() -> list[tuple[str, RawOperation]]:
    """The path of every raw operation; asked for when all public functions are defined."""
    function_by_path = dict(primitives.definitions) | namespace.registered_definitions()
    for name, arguments, target in (*_ROWS, *(row for rows in _FAMILIES for row in rows)):
        if name in _operation_by_name:
            continue
        count, adapt = None, None
        if isinstance(target, tuple):
            target, adapt = target
        if isinstance(target, str):
            path, _, number = target.partition("/")
            count = int(number) if number else None
            target = function_by_path.get(path)
            if target is None:
                continue
            if adapt is None:
                raw_name_by_function[id(target)] = (name, count)
        target = adapt(target) if adapt else target
        if getattr(target, "__name__", "") == "<lambda>":
            target.__name__ = name
        _operation_by_name[name] = RawOperation(name, arguments, namespace.installed(target), count)
    return [(f"raw_ops.{name}", operation) for name, operation in _operation_by_name.items()]
