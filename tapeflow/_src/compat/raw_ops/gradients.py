"""Raw operations that are gradients: what a tape gives for the operation whose gradient they are, to any order. And the
one that refuses its gradient."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.compat.raw_ops import operation, table
from tapeflow._src.compat.raw_ops.nn_ops import explicit_or
from tapeflow._src.ops.arrays import indexing, sorting
from tapeflow._src.ops.arrays.constants import dims_of, numbers_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.image import resize
from tapeflow._src.ops.math import segments
from tapeflow._src.ops.nn import convolutions, fractional_pools, morphology, normalization, pools
from tapeflow._src.ops.nn.convolution_gradients import input_gradient
from tapeflow._src.ops.nn.window_arguments import geometry
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec

FusedBatchNormGrad = namedtuple(
    "FusedBatchNormGrad", ["x_backprop", "scale_backprop", "offset_backprop", "reserve_space_3", "reserve_space_4"]
)
FusedBatchNormGradV3 = namedtuple(
    "FusedBatchNormGradV3", ["x_backprop", "scale_backprop", "offset_backprop", "reserve_space_4", "reserve_space_5"]
)


def gradient(function: Callable[..., Any], sources: list[Any], dy: Any) -> list[Any]:
    """The gradients of `function(*sources)` by each of its arguments; zeros where nothing flows."""
    with GradientTape() as tape:
        watched = [primitives.Identity(convert_to_tensor(x)) for x in sources]
        tape.watch(watched)
        y = function(*watched)
    found: list[Any] = tape.gradient(y, watched, cast(dy, y.dtype), unconnected_gradients="zero")
    return found


def _prevented(x: Any, message: Any) -> Any:
    """The value itself, of which no gradient can be taken."""
    text = message if isinstance(message, bytes) else str(message).encode()

    def refuse(dy: Any) -> Any:
        raise LookupError(f"Gradient explicitly disabled. Reason: {text!r}")

    return custom_gradient(lambda x: (primitives.Identity(x), refuse))(convert_to_tensor(x))


def _of_zeros(function: Callable[[Any], Any], shape: Any, dy: Any) -> Any:
    """The gradient of a linear function, for which only the shape of the argument counts."""
    dy = convert_to_tensor(dy)
    if not _core.is_symbolic(shape):
        shape = [int(n) for n in dims_of(shape)]
    if dy.dtype.is_integer:  # a tape does not follow integers
        return cast(_of_zeros(function, shape, cast(dy, "float64")), dy.dtype)
    return gradient(function, [primitives.BroadcastTo(convert_to_tensor(0, dy.dtype), shape)], dy)[0]


def _spread_slice(shape: Any, begin: Any, end: Any, strides: Any, dy: Any, *masks: int) -> Any:
    key = indexing.slice_key(begin, end, strides, *masks)
    return _of_zeros(lambda x: x[key], shape, dy)


def _average(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(shape: Any, dy: Any, ksize: Any, strides: Any, padding: str, layout: str) -> Any:
        return _of_zeros(lambda x: function(x, ksize, strides, padding, layout), shape, dy)

    return run


def _check_pooled(shape: Any, **given: Any) -> None:
    """Raises unless tensors that belong to the result of a pool have its shape."""
    for name, x in given.items():
        if x.shape != shape:
            text = ["[" + ",".join(map(str, s.as_list())) + "]" for s in (shape, x.shape)]
            raise InvalidArgumentError.of(f"Expected {name} shape to be {text[0]}, but got {text[1]}")


def _largest(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, y: Any, dy: Any, ksize: Any, strides: Any, padding: str, *rest: Any) -> Any:
        *explicit, layout = rest
        steps, window = (numbers_of(v) for v in (strides, ksize))
        pads = explicit_or(padding, explicit[0]) if explicit else padding
        x, y, dy = convert_to_tensor(x), convert_to_tensor(y), convert_to_tensor(dy)
        if not _core.is_tracing():
            _check_pooled(function(x, window, steps, pads, layout).shape, orig_output=y, grad=dy)
        return gradient(lambda x: function(x, window, steps, pads, layout), [x], dy)[0]

    return run


def _largest_twice(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the gradient by its cotangent: what a cotangent of the input picks."""

    def run(x: Any, y: Any, v: Any, ksize: Any, strides: Any, padding: str, layout: str) -> Any:
        steps, window = (numbers_of(n) for n in (strides, ksize))

        def first(dy: Any) -> Any:
            return gradient(lambda x: function(x, window, steps, padding, layout), [x], dy)[0]

        y = convert_to_tensor(y)
        if not _core.is_tracing():
            _check_pooled(function(x, window, steps, padding, layout).shape, orig_output=y)
        return _of_zeros(first, y.shape.as_list(), v)

    return run


def _response(dy: Any, x: Any, y: Any, radius: int, bias: float, alpha: float, beta: float) -> Any:
    normalize = lambda x: normalization.local_response_normalization(x, radius, bias, alpha, beta)  # noqa: E731
    return gradient(normalize, [x], dy)[0]


def _resized(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(dy: Any, original: Any, align: bool, centers: bool) -> Any:
        dy, original = convert_to_tensor(dy), convert_to_tensor(original)
        size = dy.shape.as_list()[1:3]
        return gradient(lambda x: function(x, size, align, half_pixel_centers=centers), [original], dy)[0]

    return run


def _resized_nearest(dy: Any, size: Any, align: bool, centers: bool) -> Any:
    dy = convert_to_tensor(dy)
    batch, height, width, channels = dy.shape.as_list()
    before = [batch, *(int(n) for n in dims_of(size)), channels]
    nearest = lambda x: resize.resize_nearest_neighbor(x, [height, width], align, half_pixel_centers=centers)  # noqa: E731
    return _of_zeros(nearest, before, dy)


def _crop_to_image(dy: Any, boxes: Any, box_ind: Any, image_size: Any, T: Any, method: str) -> Any:
    dy = convert_to_tensor(dy)
    size = dy.shape.as_list()[1:3]
    crop = lambda x: resize.crop_and_resize(x, boxes, box_ind, size, method)  # noqa: E731
    return _of_zeros(crop, image_size, dy)


def _crop_to_boxes(dy: Any, image: Any, boxes: Any, box_ind: Any, method: str) -> Any:
    size = convert_to_tensor(dy).shape.as_list()[1:3]
    return gradient(lambda b: resize.crop_and_resize(image, b, box_ind, size, method), [boxes], dy)[0]


def _dilated(which: int) -> Callable[..., Any]:
    def run(x: Any, filters: Any, dy: Any, strides: Any, rates: Any, padding: str) -> Any:
        return gradient(lambda x, f: morphology.dilation2d(x, f, strides, padding, "NHWC", rates), [x, filters], dy)[
            which
        ]

    return run


def _cholesky(factor: Any, dy: Any) -> Any:
    """The factor determines the matrix, and with it the gradient."""
    factor = convert_to_tensor(factor)
    matrix = primitives.MatMul(factor, factor, False, False, False, True)
    return gradient(primitives.Cholesky, [matrix], dy)[0]


def _normalized(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *options: Any) -> list[Any]:
    *_, epsilon, layout, training = options
    scale = convert_to_tensor(scale)
    offset = primitives.BroadcastTo(convert_to_tensor(0, scale.dtype), scale.shape.as_list())
    given_mean, given_variance = (None, None) if training else (mean, variance)

    def normalize(x: Any, scale: Any, offset: Any) -> Any:
        found = normalization.fused_batch_norm(x, scale, offset, given_mean, given_variance, epsilon, layout, training)
        return found[0]

    return gradient(normalize, [x, scale, offset], dy)


def _nothing() -> Any:
    return convert_to_tensor([0.0])[:0]


def _fused(*arguments: Any) -> FusedBatchNormGrad:
    return FusedBatchNormGrad(*[*_normalized(*arguments), _nothing(), _nothing()])


def _fused_3(*arguments: Any) -> FusedBatchNormGradV3:
    return FusedBatchNormGradV3(*[*_normalized(*arguments), _nothing(), _nothing()])


def _mirrored(dy: Any, paddings: Any, mode: str) -> Any:
    dy = convert_to_tensor(dy)
    pairs = [int(n) for n in convert_to_tensor(paddings).numpy().reshape(-1)]
    before = [n - pairs[2 * i] - pairs[2 * i + 1] for i, n in enumerate(dy.shape.as_list())]
    if min(pairs, default=0) < 0 or min(before, default=0) < 0:
        raise InvalidArgumentError.of(
            "MirrorPadGrad: paddings must be non-negative and no larger together than the dimension; got "
            f"{dy.shape.as_list()} and {pairs}"
        )
    return _of_zeros(lambda x: pad(x, paddings, mode), before, dy)


def _tiled(dy: Any, multiples: Any) -> Any:
    dy, times = convert_to_tensor(dy), [int(n) for n in dims_of(multiples)]
    before = [n // t for n, t in zip(dy.shape.as_list(), times)]
    return _of_zeros(lambda x: primitives.Tile(x, times), before, dy)


def _check_segments(count: int, indices: Any, segment_ids: Any, rows: int) -> None:
    """Raises unless `indices` are numbers of rows and `segment_ids` ascending numbers of the rows of the cotangent."""
    if segment_ids.size and segment_ids[-1] >= count > 0:
        raise InvalidArgumentError.of(f"Invalid number of segments: the last is {segment_ids[-1]}; got {count} rows")
    for what, numbers, limit in (("Index", indices, rows), ("Segment id", segment_ids, count)):
        outside = (numbers < 0) | (numbers >= limit)
        if outside.any():
            raise InvalidArgumentError.of(f"{what} {numbers[outside][0]} out of range [0, {limit}).")


def _chosen_segments(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(dy: Any, indices: Any, segment_ids: Any, rows: Any) -> Any:
        dy, indices, segment_ids = convert_to_tensor(dy), convert_to_tensor(indices), convert_to_tensor(segment_ids)
        _check_segments(dy.shape[0], indices.numpy(), segment_ids.numpy(), int(rows))
        before = [int(rows), *dy.shape.as_list()[1:]]
        return _of_zeros(lambda x: function(x, indices, segment_ids, num_segments=dy.shape[0]), before, dy)

    def specs(dy: Any, indices: Any, segment_ids: Any, rows: Any) -> TensorSpec:
        dy, count = convert_to_tensor(dy), get_static_value(rows)
        return TensorSpec([None if count is None else int(count), *dy.shape[1:]], dy.dtype)

    run.result_specs, run.refuses_values = specs, True  # type: ignore[attr-defined]
    return run


def _to_filter_3d(x: Any, filters: Any, dy: Any, strides: Any, padding: str, rates: Any) -> Any:
    return gradient(lambda f: convolutions.conv3d(x, f, strides, padding, "NDHWC", rates), [filters], dy)[0]


def _to_input_3d(x: Any, filters: Any, dy: Any, strides: Any, padding: str, rates: Any) -> Any:
    return gradient(lambda x: convolutions.conv3d(x, filters, strides, padding, "NDHWC", rates), [x], dy)[0]


def _to_input_3d_sizes(sizes: Any, filters: Any, dy: Any, strides: Any, padding: str, layout: str, rates: Any) -> Any:
    return input_gradient(
        primitives.ConvBackpropInput, sizes, filters, dy, geometry(strides, padding, layout, rates, 3)
    )


def _depthwise(x: Any, filters: Any, options: tuple[Any, ...]) -> Any:
    names = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
    return operation.find_raw_operation("DepthwiseConv2dNative")(input=x, filter=filters, **dict(zip(names, options)))


def _depthwise_to_filter(x: Any, sizes: Any, dy: Any, *options: Any) -> Any:
    return _of_zeros(lambda filters: _depthwise(x, filters, options), sizes, dy)


def _depthwise_to_input(sizes: Any, filters: Any, dy: Any, *options: Any) -> Any:
    return _of_zeros(lambda x: _depthwise(x, filters, options), sizes, dy)


SparseSegmentRows = namedtuple("SparseSegmentRows", ["output", "sorted_unique_indices"])


def _rows_of(gradient: Any) -> Any:
    """The rows of a gradient that are reached, and their numbers in order."""

    def run(dy: Any, indices: Any, segment_ids: Any, count: Any) -> SparseSegmentRows:
        whole = gradient(dy, indices, segment_ids, count)
        numbers = sorting.unique(sorting.sort(convert_to_tensor(indices)))[0]
        return SparseSegmentRows(primitives.GatherV2(whole, numbers, 0, 0), numbers)

    def specs(dy: Any, indices: Any, *_: Any) -> SparseSegmentRows:
        dy, indices = convert_to_tensor(dy), convert_to_tensor(indices)
        return SparseSegmentRows(TensorSpec([None, *dy.shape[1:]], dy.dtype), TensorSpec([None], indices.dtype))

    run.result_specs, run.refuses_values = specs, True  # type: ignore[attr-defined]
    return run


@_core.Composition
def _fractional_largest(x: Any, y: Any, dy: Any, rows: Any, columns: Any, overlapping: bool) -> Any:
    def pool(x: Any) -> Any:
        found = fractional_pools.pooled(x, rows, columns, overlapping, largest=True)
        given = convert_to_tensor(y)
        if found.shape.as_list() != given.shape.as_list() or not np.array_equal(found, given):
            raise InvalidArgumentError.of(
                "FractionalMaxPoolGrad: orig_output is not what the pool gives for orig_input"
            )
        return found

    return gradient(pool, [x], dy)[0]


@_core.Composition
def _fractional_average(shape: Any, dy: Any, rows: Any, columns: Any, overlapping: bool) -> Any:
    return _of_zeros(lambda x: fractional_pools.pooled(x, rows, columns, overlapping, largest=False), shape, dy)


ROWS: list[tuple[str, str, Any]] = [
    (
        "FractionalAvgPoolGrad",
        "orig_input_tensor_shape, out_backprop, row_pooling_sequence, col_pooling_sequence, overlapping=False",
        _fractional_average,
    ),
    (
        "FractionalMaxPoolGrad",
        "orig_input, orig_output, out_backprop, row_pooling_sequence, col_pooling_sequence, overlapping=False",
        _fractional_largest,
    ),
    (
        "AvgPool3DGrad",
        "orig_input_shape, grad, ksize, strides, padding, data_format='NDHWC'",
        _average(pools.avg_pool3d),
    ),
    ("AvgPoolGrad", "orig_input_shape, grad, ksize, strides, padding, data_format='NHWC'", _average(pools.avg_pool2d)),
    ("BatchCholeskyGrad", "l, grad", _cholesky),
    ("CholeskyGrad", "l, grad", _cholesky),
    ("Conv3DBackpropFilter", "input, filter, out_backprop, strides, padding, dilations=[1, 1, 1, 1, 1]", _to_filter_3d),
    ("Conv3DBackpropInput", "input, filter, out_backprop, strides, padding, dilations=[1, 1, 1, 1, 1]", _to_input_3d),
    (
        "Conv3DBackpropInputV2",
        "input_sizes, filter, out_backprop, strides, padding, data_format='NDHWC', dilations=[1, 1, 1, 1, 1]",
        _to_input_3d_sizes,
    ),
    ("CropAndResizeGradBoxes", "grads, image, boxes, box_ind, method='bilinear'", _crop_to_boxes),
    ("CropAndResizeGradImage", "grads, boxes, box_ind, image_size, T, method='bilinear'", _crop_to_image),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        "input, filter_sizes, out_backprop, strides, padding, explicit_paddings=[], data_format='NHWC', "
        "dilations=[1, 1, 1, 1]",
        _depthwise_to_filter,
    ),
    (
        "DepthwiseConv2dNativeBackpropInput",
        "input_sizes, filter, out_backprop, strides, padding, explicit_paddings=[], data_format='NHWC', "
        "dilations=[1, 1, 1, 1]",
        _depthwise_to_input,
    ),
    ("Dilation2DBackpropFilter", "input, filter, out_backprop, strides, rates, padding", _dilated(1)),
    ("Dilation2DBackpropInput", "input, filter, out_backprop, strides, rates, padding", _dilated(0)),
    (
        "FusedBatchNormGrad",
        "y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon=0.0001, data_format='NHWC', is_training=True",
        _fused,
    ),
    (
        "FusedBatchNormGradV2",
        "y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon=0.0001, data_format='NHWC', is_training=True",
        _fused,
    ),
    (
        "FusedBatchNormGradV3",
        "y_backprop, x, scale, reserve_space_1, reserve_space_2, reserve_space_3, epsilon=0.0001, "
        "data_format='NHWC', is_training=True",
        _fused_3,
    ),
    ("LRNGrad", "input_grads, input_image, output_image, depth_radius=5, bias=1, alpha=1, beta=0.5", _response),
    (
        "MaxPool3DGrad",
        "orig_input, orig_output, grad, ksize, strides, padding, data_format='NDHWC'",
        _largest(pools.max_pool3d),
    ),
    (
        "MaxPool3DGradGrad",
        "orig_input, orig_output, grad, ksize, strides, padding, data_format='NDHWC'",
        _largest_twice(pools.max_pool3d),
    ),
    (
        "MaxPoolGrad",
        "orig_input, orig_output, grad, ksize, strides, padding, explicit_paddings=[], data_format='NHWC'",
        _largest(pools.max_pool2d),
    ),
    (
        "MaxPoolGradGrad",
        "orig_input, orig_output, grad, ksize, strides, padding, data_format='NHWC'",
        _largest_twice(pools.max_pool2d),
    ),
    (
        "MaxPoolGradGradV2",
        "orig_input, orig_output, grad, ksize, strides, padding, data_format='NHWC'",
        _largest_twice(pools.max_pool2d),
    ),
    (
        "MaxPoolGradV2",
        "orig_input, orig_output, grad, ksize, strides, padding, data_format='NHWC'",
        _largest(pools.max_pool2d),
    ),
    ("MirrorPadGrad", "input, paddings, mode", _mirrored),
    ("PreventGradient", "input, message=''", _prevented),
    (
        "ResizeBicubicGrad",
        "grads, original_image, align_corners=False, half_pixel_centers=False",
        _resized(resize.resize_bicubic),
    ),
    (
        "ResizeBilinearGrad",
        "grads, original_image, align_corners=False, half_pixel_centers=False",
        _resized(resize.resize_bilinear),
    ),
    ("ResizeNearestNeighborGrad", "grads, size, align_corners=False, half_pixel_centers=False", _resized_nearest),
    (
        "SparseSegmentMeanGrad",
        "grad, indices, segment_ids, output_dim0",
        _chosen_segments(segments.sparse_segment_mean),
    ),
    (
        "SparseSegmentSqrtNGrad",
        "grad, indices, segment_ids, output_dim0",
        _chosen_segments(segments.sparse_segment_sqrt_n),
    ),
    ("SparseSegmentSumGrad", "grad, indices, segment_ids, output_dim0", _chosen_segments(segments.sparse_segment_sum)),
    *(
        (
            f"SparseSegment{name}GradV2",
            "grad, indices, segment_ids, dense_output_dim0",
            _rows_of(_chosen_segments(function)),
        )
        for name, function in (
            ("Mean", segments.sparse_segment_mean),
            ("SqrtN", segments.sparse_segment_sqrt_n),
            ("Sum", segments.sparse_segment_sum),
        )
    ),
    ("TileGrad", "input, multiples", _tiled),
    (
        "StridedSliceGrad",
        "shape, begin, end, strides, dy, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, "
        "shrink_axis_mask=0",
        _spread_slice,
    ),
]
table.add_rows(ROWS)
