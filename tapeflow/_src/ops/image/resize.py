"""Resizing images: every method as a weighted sum of neighbouring pixels, along each axis in turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import plain_sizes
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import float32, float64
from tapeflow._src.types.errors import InvalidArgumentError, OutOfRangeError
from tapeflow._src.types.tensor_spec import TensorSpec


@public("image.ResizeMethod")
class ResizeMethod:
    """The names of the resize methods.

    >>> tf.image.ResizeMethod.BILINEAR
    'bilinear'
    """

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


@public("compat.v1.image.ResizeMethod")
class ResizeMethodV1:
    """TensorFlow 1's numbers of the resize methods.

    >>> tf.compat.v1.image.ResizeMethod.BILINEAR
    0
    """

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


# ---- weights: for each output pixel the first input pixel that counts, and the weights from there on

Taps = tuple[np.ndarray, np.ndarray]  # starts (out), weights (out, span)


def _centers(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Where the centers of output pixels lie on the input's axis, in float32 as TensorFlow computes them."""
    scale = (size - 1) / (out - 1) if align_corners and out > 1 else size / out
    positions = np.arange(out, dtype=np.float32)
    if half_pixel_centers:
        return (positions + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)
    return positions * np.float32(scale)


def _packed(size: int, cells: np.ndarray, weights: np.ndarray) -> Taps:
    """Weights of cells (out, taps), some of which may repeat or have no weight, as runs inside the axis."""
    out = len(cells)
    used = weights != 0
    first = np.where(used, cells, size).min(axis=1, initial=size)
    last = np.where(used, cells, -1).max(axis=1, initial=-1)
    span = max(1, int((last - first).max(initial=0)) + 1)
    starts = np.clip(first, 0, size - span)
    packed = np.zeros((out, span))
    rows, taps = np.nonzero(used)
    np.add.at(packed, (rows, cells[rows, taps] - starts[rows]), weights[rows, taps])
    return starts.astype(np.int64), packed


def _bilinear_taps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    centers = _centers(size, out, align_corners, half_pixel_centers)
    below = np.floor(centers)
    fraction = (centers - below).astype(np.float64)
    low = np.clip(below, 0, size - 1).astype(np.int64)
    high = np.clip(np.ceil(centers), 0, size - 1).astype(np.int64)
    return _packed(size, np.stack([low, high], 1), np.stack([1 - fraction, fraction], 1))


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _bicubic_taps(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """TensorFlow's bicubic: 1024 phases between two pixels, and with half pixel centers no weight outside the image."""
    centers = _centers(size, out, align_corners, half_pixel_centers)
    below = np.floor(centers)
    phase = np.rint((centers - below) * np.float32(1024)).astype(np.float64) / 1024
    a = -0.5 if half_pixel_centers else -0.75
    distance = phase[:, None] - np.array([-1, 0, 1, 2])
    weights = _cubic(distance, a)
    cells = below.astype(np.int64)[:, None] + np.array([-1, 0, 1, 2])
    if half_pixel_centers:
        weights = np.where((cells >= 0) & (cells < size), weights, 0)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(np.abs(total) > 1e-30, total, 1)
    return _packed(size, np.clip(cells, 0, size - 1), weights)


def _area_taps(size: int, out: int, align_corners: bool) -> Taps:
    scale = np.float32((size - 1) / (out - 1) if align_corners and out > 1 else size / out)
    starts = np.arange(out, dtype=np.float32) * scale
    ends = np.arange(1, out + 1, dtype=np.float32) * scale
    taps = int(np.ceil(scale)) + 2
    cells = np.floor(starts).astype(np.int64)[:, None] + np.arange(taps)
    covered = np.minimum(cells + 1, ends[:, None]) - np.maximum(cells, starts[:, None])
    return _packed(size, np.clip(cells, 0, size - 1), np.maximum(covered, 0).astype(np.float64) / scale)


def _sinc(x: np.ndarray) -> np.ndarray:
    values: np.ndarray = np.sinc(x)
    return values


def _lanczos(radius: int) -> Any:
    return lambda x: np.where(np.abs(x) < radius, _sinc(x) * _sinc(x / radius), 0)


def _mitchell(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = ((7 * x - 12) * x * x) / 6 + 16 / 18
    far = ((-7 / 18 * x + 2) * x - 60 / 18) * x + 32 / 18
    return np.where(x < 1, near, np.where(x < 2, far, 0))


# Method -> (radius, function of the distance in pixels).
KERNELS = {
    "bilinear": (1.0, lambda x: np.maximum(0, 1 - np.abs(x))),
    "bicubic": (2.0, lambda x: _cubic(x, -0.5)),
    "lanczos3": (3.0, _lanczos(3)),
    "lanczos5": (5.0, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(np.abs(x) < 1.5, np.exp(-2 * x * x), 0)),
    "mitchellcubic": (2.0, _mitchell),
}


def _kernel_taps(size: int, out: int, method: str, antialias: bool) -> Taps:
    """Weights by a kernel around each center; with `antialias` the kernel grows with the step between centers."""
    radius, kernel = KERNELS[method]
    step = size / out
    width = max(step, 1.0) if antialias else 1.0
    centers = (np.arange(out) + 0.5) * step
    reach = int(np.ceil(2 * radius * width)) + 2
    first = np.ceil(centers - radius * width - 0.5).astype(np.int64)
    cells = first[:, None] + np.arange(reach)
    weights = kernel((cells + 0.5 - centers[:, None]) / width)
    weights = np.where((cells >= 0) & (cells < size), weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    return _packed(size, np.clip(cells, 0, size - 1), weights / np.where(np.abs(total) > 1e-30, total, 1))


@lru_cache(maxsize=256)
def _taps(
    size: int, out: int, method: str, antialias: bool, align_corners: bool, half_pixel_centers: bool
) -> tuple[Any, Any]:
    if method == "area":
        starts, weights = _area_taps(size, out, align_corners)
    elif method == "bilinear" and not antialias:
        starts, weights = _bilinear_taps(size, out, align_corners, half_pixel_centers)
    elif method == "bicubic" and not antialias:
        starts, weights = _bicubic_taps(size, out, align_corners, half_pixel_centers)
    else:
        starts, weights = _kernel_taps(size, out, method, antialias)
    return convert_to_tensor(starts), convert_to_tensor(weights.astype(np.float32))


@lru_cache(maxsize=256)
def _nearest_cells(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Any:
    scale = np.float32((size - 1) / (out - 1) if align_corners and out > 1 else size / out)
    positions = np.arange(out, dtype=np.float32)
    if half_pixel_centers:
        positions = positions + np.float32(0.5)
    cells = positions * scale
    cells = np.floor(cells + np.float32(0.5)) if align_corners else np.floor(cells)
    return convert_to_tensor(np.clip(cells, 0, size - 1).astype(np.int64))


def resample(
    images: Any, height: int, width: int, method: str, antialias: bool, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """Images (N, H, W, C) at another size."""
    if height < 1 or width < 1:
        raise InvalidArgumentError.of(f"image.resize: output dimensions must be positive; got [{height}, {width}]")
    dims = images.shape.as_list()
    if 0 in dims[1:3]:
        raise InvalidArgumentError.of(f"image.resize: input image must be of non-zero size; got {images.shape}")
    if method == "nearest":
        for axis, out in ((1, height), (2, width)):
            if dims[axis] != out:
                cells = _nearest_cells(dims[axis], out, align_corners, half_pixel_centers)
                images = primitives.GatherV2(images, cells, axis)
        return images
    images = cast(images, float32)
    # The axis that shrinks most goes first.
    axes = sorted(((1, height), (2, width)), key=lambda pair: pair[1] / dims[pair[0]])
    for axis, out in axes:
        starts, weights = _taps(dims[axis], out, method, antialias, align_corners, half_pixel_centers)
        if dims[axis] != out or weights.shape[1] != 1:
            images = primitives.Resample(images, weights, starts, axis)
    return images


def image_batch(images: Any) -> tuple[Any, bool]:
    """Images as (N, H, W, C), and whether one image alone was given."""
    images = convert_to_tensor(images)
    if images.shape.rank == 3:
        return primitives.ExpandDims(images, 0), True
    if images.shape.rank != 4:
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    return images, False


def target_size(images: Any, size: Any, preserve_aspect_ratio: bool) -> tuple[int, int]:
    """The height and width that `size` asks for."""
    if plain_sizes(size) and len(size) == 2 and not preserve_aspect_ratio:
        return size[0], size[1]
    size = np.asarray(size) if _core.is_tensor(size) or not isinstance(size, np.ndarray) else size
    if size.shape != (2,):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    if not np.issubdtype(size.dtype, np.integer):
        raise ValueError("'size' must be a 1-D int32 Tensor")
    height, width = int(size[0]), int(size[1])
    if preserve_aspect_ratio:
        now_height, now_width = images.shape[1], images.shape[2]
        scale = min(height / now_height, width / now_width)
        height, width = round(scale * now_height), round(scale * now_width)
    return height, width


def _known_size(size: Any) -> list[int | None]:
    """The height and width as far as they are known while tracing."""
    if _core.is_symbolic(size):
        return _core.known_elements(size) or [None, None]
    parts = size if isinstance(size, list | tuple) else np.asarray(size).tolist()
    return [(_core.known_elements(part) or [None])[0] if _core.is_symbolic(part) else int(part) for part in parts]


def _resized_spec(images: Any, size: Any, method: str, known_size: bool = True) -> TensorSpec:
    """What is known of a result while the size, or that of the images, is not."""
    x = images if isinstance(images, RaggedTensor) else convert_to_tensor(images)
    if x.shape.rank not in (3, 4, None):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    target = _known_size(size) if known_size else [None, None]
    if len(target) != 2:
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    shape = None if x.shape.rank is None else [*x.shape[:-3], *target, x.shape[-1]]
    return TensorSpec(shape, x.dtype if method == "nearest" else float32)


@public("image.resize")
def resize(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """Images (N, H, W, C) or (H, W, C) at the size (height, width); float32 but for the nearest pixel.

    Args:
        images: Images, `[batch, height, width, channels]` or `[height, width, channels]`.
        size: The new height and width.
        method: 'bilinear', 'nearest', 'bicubic', 'area', 'lanczos3', 'lanczos5', 'gaussian' or 'mitchellcubic'.
        preserve_aspect_ratio: Whether to keep the ratio; the image then fits into `size`.
        antialias: Whether to filter when the image becomes smaller.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `[batch, height, width, channels]`, float32 unless the method is 'nearest'.

    Gradient:
        By `images`, for every method.

    >>> tf.image.resize([[[1.], [3.]]], [1, 4])[0, :, 0]
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1. , 1.5, 2.5, 3. ], dtype=float32)>
    """
    if isinstance(images, RaggedTensor):
        resize_one = find_public("image.resize")
        return resize_rows(
            lambda x: resize_one(x, size, method, False, antialias), images, size, method, preserve_aspect_ratio
        )
    batch, single = image_batch(images)
    if method != "nearest" and method != "area" and method not in KERNELS:
        raise ValueError(f"Resize method is not implemented: {method}")
    height, width = target_size(batch, size, preserve_aspect_ratio)
    dims = batch.shape
    known = isinstance(height, int) and isinstance(width, int)
    if known and (dims[0] or 1) * height * width * (dims[3] or 1) >= 2**63:
        raise InvalidArgumentError.of(
            f"image.resize: the result would have too many elements: {height} x {width} pixels"
        )
    if (height, width) == (dims[1], dims[2]) and method not in ("gaussian", "mitchellcubic"):
        y = batch if method == "nearest" else cast(batch, float32)
    else:
        y = resample(batch, height, width, method, antialias and method not in ("nearest", "area"), False, True)
    return primitives.Squeeze(y, [0]) if single else y


def _resize_specs(
    images: Any, size: Any, method: str = "bilinear", preserve_aspect_ratio: bool = False, *_: Any, **__: Any
) -> TensorSpec:
    return _resized_spec(images, size, method, not preserve_aspect_ratio)


resize.result_specs = _resize_specs  # type: ignore[attr-defined]


def resize_rows(
    resize_one: Callable[[Any], Any], images: RaggedTensor, size: Any, method: Any, preserve_aspect_ratio: bool
) -> Any:
    """Images of different sizes: each is resized by itself."""
    if images.shape.rank not in (None, 4):
        raise ValueError(f"image.resize: ragged images rank must be 4; got {images.shape.rank}")
    if preserve_aspect_ratio:
        raise ValueError(
            "preserve_aspect_ratio=True is not supported for a tf.RaggedTensor: the results differ in size"
        )

    def resize_row(row: Any) -> Any:
        return resize_one(row.to_tensor() if isinstance(row, RaggedTensor) else row)

    known = get_static_value(size)
    dims = [None, None] if known is None else [int(n) for n in known]
    spec = TensorSpec([*dims, images.shape[-1]], images.dtype if method == "nearest" else float32)
    return find_public("map_fn")(resize_row, images, fn_output_signature=spec)


def _legacy(images: Any, size: Any, method: str, align_corners: bool, half_pixel_centers: bool) -> Any:
    images = convert_to_tensor(images)
    if images.shape.rank != 4:
        raise InvalidArgumentError.of(f"image.resize: input must be 4-dimensional; got {images.shape.as_list()}")
    if align_corners and half_pixel_centers:
        raise InvalidArgumentError.of("image.resize: If half_pixel_centers is True, align_corners must be False.")
    height, width = target_size(images, size, False)
    wide = images.dtype == float64
    y = resample(images, height, width, method, False, align_corners, half_pixel_centers)
    return y if method == "nearest" or not wide else cast(y, float32)


@public("compat.v1.image.resize_bilinear")
def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Any:
    """Images (N, H, W, C) at another size by linear interpolation.

    >>> tf.compat.v1.image.resize_bilinear([[[[1.], [3.]]]], [1, 3], align_corners=True)[0, 0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 2., 3.], dtype=float32)>
    """
    return _legacy(images, size, "bilinear", align_corners, half_pixel_centers)


@public("compat.v1.image.resize_bicubic")
def resize_bicubic(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Any:
    """Images (N, H, W, C) at another size by cubic interpolation.

    >>> tf.compat.v1.image.resize_bicubic([[[[1.], [3.]]]], [1, 3], align_corners=True)[0, 0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 2., 3.], dtype=float32)>
    """
    return _legacy(images, size, "bicubic", align_corners, half_pixel_centers)


@public("compat.v1.image.resize_nearest_neighbor")
def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Any:
    """Images (N, H, W, C) at another size by the nearest pixel.

    >>> tf.compat.v1.image.resize_nearest_neighbor([[[[1.], [3.]]]], [1, 4])[0, 0, :, 0]
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 1., 3., 3.], dtype=float32)>
    """
    return _legacy(images, size, "nearest", align_corners, half_pixel_centers)


@public("compat.v1.image.resize_area")
def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Any:
    """Images (N, H, W, C) at another size by the mean over the area of each new pixel.

    >>> tf.compat.v1.image.resize_area([[[[1.], [3.]]]], [1, 1])[0, 0, :, 0]
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([2.], dtype=float32)>
    """
    return _legacy(images, size, "area", align_corners, False)


for _function, _method in (
    (resize_bilinear, "bilinear"),
    (resize_bicubic, "bicubic"),
    (resize_nearest_neighbor, "nearest"),
    (resize_area, "area"),
):
    _function.result_specs = lambda images, size, *_, _method=_method, **__: _resized_spec(images, size, _method)  # type: ignore[attr-defined]

# ---- crops of boxes


def _corners(boxes: Any, first: int, length: int, out: int) -> Any:
    """The positions (boxes, out) on an axis of `length` pixels; `first` is the box column of its lower border."""
    low, high = boxes[:, first : first + 1], boxes[:, first + 2 : first + 3]
    if out == 1:
        return 0.5 * (low + high) * (length - 1)
    steps = convert_to_tensor(np.arange(out, dtype=np.float32)[None, :])
    return low * (length - 1) + steps * ((high - low) * (length - 1) / (out - 1))


def _inside(positions: Any, length: int) -> Tensor:
    return primitives.LogicalAnd(positions >= 0, positions <= length - 1)


@public("image.crop_and_resize")
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """The boxes (y1, x1, y2, x2), in parts of the image, cut out and brought to one size; boxes have gradients too.

    >>> tf.image.crop_and_resize([[[[1.], [3.]]]], [[0., 0., 0., 1.]], [0], [1, 3])[0, 0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 2., 3.], dtype=float32)>
    """
    x = of_rank(convert_to_tensor(image), 4)
    boxes = of_rank(convert_to_tensor(boxes, dtype_hint=float32), 2)
    box_indices = of_rank(convert_to_tensor(box_indices), 1)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"image.crop_and_resize: input image must be 4-D; got {x.shape.as_list()}")
    if boxes.shape.rank != 2 or boxes.shape[1] != 4:
        raise InvalidArgumentError.of(f"image.crop_and_resize: boxes must have 4 columns; got {boxes.shape}")
    if box_indices.shape.as_list() != [boxes.shape[0]]:
        raise InvalidArgumentError.of(
            f"image.crop_and_resize: box_index has incompatible shape; got {box_indices.shape} for {boxes.shape}",
        )
    if method not in ("bilinear", "nearest"):
        raise InvalidArgumentError.of(f"image.crop_and_resize: method must be 'bilinear' or 'nearest'; got {method!r}")
    height, width = target_size(x, crop_size, False)
    if height < 1 or width < 1:
        raise InvalidArgumentError.of(f"image.crop_and_resize: crop dimensions must be positive; got {crop_size}")
    x = cast(x, float32)
    rows = _corners(boxes, 0, x.shape[1], height)
    columns = _corners(boxes, 1, x.shape[2], width)
    if method == "bilinear":
        y = _crop_bilinear(x, rows, columns, box_indices)
    else:
        y = _cells_at(x, box_indices, _rounded(rows), _rounded(columns))
        # As in TensorFlow, the gradient of the boxes is that of linear interpolation.
        smooth = _crop_bilinear(primitives.StopGradient(x), rows, columns, box_indices)
        y = y + (smooth - primitives.StopGradient(smooth))
    seen = primitives.LogicalAnd(
        primitives.ExpandDims(_inside(rows, x.shape[1]), 2), primitives.ExpandDims(_inside(columns, x.shape[2]), 1)
    )
    return primitives.SelectV2(primitives.ExpandDims(seen, 3), y, cast(extrapolation_value, float32))


def _crop_spec(image: Any, boxes: Any, box_indices: Any, crop_size: Any, *_: Any, **__: Any) -> TensorSpec:
    """What is known of the crops while the sizes of the images are not."""
    x, numbers = convert_to_tensor(image), convert_to_tensor(box_indices)
    given = convert_to_tensor(boxes, dtype_hint=float32)
    if x.shape.rank not in (None, 4) or given.shape.rank not in (None, 2) or numbers.shape.rank not in (None, 1):
        raise ValueError(
            "image.crop_and_resize: image, boxes and box_indices must have ranks 4, 2 and 1; got shapes "
            f"{x.shape}, {given.shape} and {numbers.shape}"
        )
    count = numbers.shape.with_rank(1).merge_with(given.shape.with_rank(2)[:1])[0]
    return TensorSpec([count, *_known_size(crop_size), x.shape.with_rank(4)[3]], float32)


crop_and_resize.result_specs = _crop_spec  # type: ignore[attr-defined]


def _rounded(positions: Any) -> Any:
    return primitives.Sign(positions) * primitives.Floor(primitives.Abs(positions) + 0.5)


def _cells_at(x: Any, box_indices: Any, rows: Any, columns: Any) -> Any:
    """The pixels (boxes, height, width, C) at whole positions; those outside are taken from the border."""
    height, width = x.shape[1], x.shape[2]
    rows = cast(primitives.Maximum(primitives.Minimum(rows, height - 1.0), 0.0), "int64")
    columns = cast(primitives.Maximum(primitives.Minimum(columns, width - 1.0), 0.0), "int64")
    number = primitives.Reshape(cast(box_indices, "int64"), [-1, 1, 1])
    flat = (number * height + primitives.ExpandDims(rows, 2)) * width + primitives.ExpandDims(columns, 1)
    dims = x.shape.as_list()
    if box_indices.shape[0]:
        least, most = primitives.Min(box_indices, None, False), primitives.Max(box_indices, None, False)
        if bool(least < 0) or bool(most >= dims[0]):
            raise OutOfRangeError.of(f"image.crop_and_resize: box_index has values outside [0, batch_size = {dims[0]})")
    return gather(primitives.Reshape(x, [dims[0] * height * width, dims[3]]), flat)


def _crop_bilinear(x: Any, rows: Any, columns: Any, box_indices: Any) -> Any:
    top, left = primitives.Floor(rows), primitives.Floor(columns)
    bottom, right = primitives.Ceil(rows), primitives.Ceil(columns)
    down = primitives.Reshape(rows - top, [*rows.shape.as_list(), 1, 1])
    across = primitives.ExpandDims(primitives.ExpandDims(columns - left, 1), 3)
    upper_left, upper_right = _cells_at(x, box_indices, top, left), _cells_at(x, box_indices, top, right)
    lower_left, lower_right = _cells_at(x, box_indices, bottom, left), _cells_at(x, box_indices, bottom, right)
    upper = upper_left + (upper_right - upper_left) * across
    lower = lower_left + (lower_right - lower_left) * across
    return upper + (lower - upper) * down
