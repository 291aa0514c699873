"""Images: flips, crops and paddings, patches, edges and gradients, and how alike two images are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import dynamic_dims, holds_symbolic, whole
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.arrays.shaping import broadcast_static_shape
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.ops.image.color import convert_image_dtype
from tapeflow._src.ops.nn.convolutions import depthwise_conv2d
from tapeflow._src.ops.nn.morphology import window_positions
from tapeflow._src.ops.nn.pools import avg_pool2d
from tapeflow._src.ops.nn.window_arguments import padding_of, per_dimension
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec


def as_image(image: Any) -> Any:
    """An image (H, W, C) or images (N, H, W, C), as a tensor."""
    image = convert_to_tensor(image)
    if image.shape.rank < 3:
        raise ValueError(f"'image' (shape {image.shape}) must be at least three-dimensional.")
    if image.shape.rank > 4:
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    if 0 in image.shape.as_list()[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")
    return image


# ---- flips


@public("image.flip_left_right", "compat.v1.image.flip_left_right")
def flip_left_right(image: Any) -> Tensor:
    """Images with the columns in reverse order.

    Args:
        image: An image, or a batch of them.

    Returns:
        A tensor of the shape of `image`.

    Gradient:
        `dy`, flipped.

    >>> tf.image.flip_left_right([[[1.], [2.]]])
    <tf.Tensor: shape=(1, 2, 1), dtype=float32, numpy=
    array([[[2.],
            [1.]]], dtype=float32)>
    """
    return primitives.ReverseV2(as_image(image), [-2])


@public("image.flip_up_down", "compat.v1.image.flip_up_down")
def flip_up_down(image: Any) -> Tensor:
    """Images with the rows in reverse order.

    >>> tf.image.flip_up_down([[[1.]], [[2.]]])
    <tf.Tensor: shape=(2, 1, 1), dtype=float32, numpy=
    array([[[2.]],
           [[1.]]], dtype=float32)>
    """
    return primitives.ReverseV2(as_image(image), [-3])


@public("image.transpose", "compat.v1.image.transpose", "compat.v1.image.transpose_image")
def transpose(image: Any, name: str | None = None) -> Tensor:
    """Images with rows and columns exchanged.

    >>> tf.image.transpose([[[1.], [2.]]])
    <tf.Tensor: shape=(2, 1, 1), dtype=float32, numpy=
    array([[[1.]],
           [[2.]]], dtype=float32)>
    """
    image = as_image(image)
    return primitives.Transpose(image, [1, 0, 2] if image.shape.rank == 3 else [0, 2, 1, 3])


@public("image.rot90", "compat.v1.image.rot90")
def rot90(image: Any, k: Any = 1, name: str | None = None) -> Any:
    """Images turned `k` times by 90 degrees against the clock.

    >>> tf.image.rot90([[[1.], [2.]]])
    <tf.Tensor: shape=(2, 1, 1), dtype=float32, numpy=
    array([[[2.]],
           [[1.]]], dtype=float32)>
    """
    if isinstance(k, float):
        raise TypeError(f"rot90: k must be an integer: Cannot convert {k} to EagerTensor of dtype int32")
    image, turns = as_image(image), int(k) % 4
    if turns == 1:
        return primitives.ReverseV2(transpose(image), [-3])
    if turns == 2:
        return primitives.ReverseV2(image, [-3, -2])
    if turns == 3:
        return primitives.ReverseV2(transpose(image), [-2])
    return image


# ---- crops and paddings


def _in_a_box(image: Any) -> Any:
    """An image or images that are cut or padded, as a tensor; of unknown rank it is one image."""
    image = convert_to_tensor(image)
    if image.shape.rank is None:
        image = primitives.Identity(image)
        image.set_shape([None] * 3)
    if image.shape.rank not in (3, 4):
        raise ValueError(f"'image' (shape {image.shape}) must have either 3 or 4 dimensions.")
    return as_image(image)


def _require(holds: Any, message: str) -> None:
    """Raises unless it holds; where that is known only when the graph runs, then."""
    if _core.is_symbolic(holds):
        Assert(holds, [message])
    elif not holds:
        raise ValueError(message)


def _number(value: Any) -> Any:
    """An integer argument, or the scalar that running the graph gives."""
    return cast(value, "int32") if _core.is_symbolic(value) else whole(value)


def _cut(image: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    return image[..., top : top + height, left : left + width, :]


def _extent(image: Any) -> tuple[Any, Any]:
    """Height and width."""
    height, width = dynamic_dims(image)[-3:-1]
    return height, width


@public("image.crop_to_bounding_box", "compat.v1.image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """The part of the given size from the given corner.

    >>> tf.image.crop_to_bounding_box([[[1.], [2.]]], 0, 1, 1, 1)
    <tf.Tensor: shape=(1, 1, 1), dtype=float32, numpy=array([[[2.]]], dtype=float32)>
    """
    image = _in_a_box(image)
    top, left, height, width = (_number(v) for v in (offset_height, offset_width, target_height, target_width))
    rows, columns = _extent(image)
    _require(left >= 0, "offset_width must be >= 0.")
    _require(top >= 0, "offset_height must be >= 0.")
    _require(width > 0, "target_width must be > 0.")
    _require(height > 0, "target_height must be > 0.")
    _require(columns >= width + left, "width must be >= target + offset.")
    _require(rows >= height + top, "height must be >= target + offset.")
    return _sized(_cut(image, top, left, height, width), height, width)


def _sized(image: Any, height: Any, width: Any) -> Any:
    """The same image, of which the size is known where it is a number."""
    if _core.is_symbolic(image):
        known = [None if _core.is_symbolic(size) else size for size in (height, width)]
        image.set_shape([*[None] * (image.shape.rank - 3), *known, None])
    return image


@public("image.pad_to_bounding_box", "compat.v1.image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """Images on a field of zeros of the given size, with their corner at the given place.

    >>> tf.image.pad_to_bounding_box([[[1.]]], 0, 1, 1, 2)
    <tf.Tensor: shape=(1, 2, 1), dtype=float32, numpy=
    array([[[0.],
            [1.]]], dtype=float32)>
    """
    image = _in_a_box(image)
    top, left, height, width = (_number(v) for v in (offset_height, offset_width, target_height, target_width))
    rows, columns = _extent(image)
    below, right = height - top - rows, width - left - columns
    _require(top >= 0, "offset_height must be >= 0")
    _require(left >= 0, "offset_width must be >= 0")
    _require(right >= 0, "width must be <= target - offset")
    _require(below >= 0, "height must be <= target - offset")
    pads: list[Any] = [[top, below], [left, right], [0, 0]]
    if any(_core.is_symbolic(size) for pair in pads for size in pair):
        pads = [primitives.Pack([cast(size, "int32") for size in pair], 0) for pair in pads]
    padded = pad(image, pads if image.shape.rank == 3 else [[0, 0], *pads])
    return _sized(padded, height, width)


@public("image.central_crop", "compat.v1.image.central_crop")
def central_crop(image: Any, central_fraction: Any) -> Any:
    """The middle part of images, `central_fraction` of each side long.

    >>> tf.image.central_crop([[[1.], [2.], [3.], [4.]]], 0.5).shape
    TensorShape([1, 2, 1])
    """
    image = as_image(image)
    fraction = float(central_fraction)
    if not 0 < fraction <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    if fraction == 1:
        return image
    rows, columns = _extent(image)
    top, left = (_margin(size, fraction) for size in (rows, columns))
    return _cut(image, top, left, rows - 2 * top, columns - 2 * left)


def _margin(size: Any, fraction: float) -> Any:
    """How much is cut at each end of a side."""
    if not _core.is_symbolic(size):
        return int((size - size * fraction) / 2)
    length = cast(size, "float64")
    return cast((length - length * fraction) / 2, "int32")


def _larger(a: Any, b: Any) -> Any:
    return primitives.Maximum(a, b) if _core.is_symbolic(a) or _core.is_symbolic(b) else max(a, b)


def _smaller(a: Any, b: Any) -> Any:
    return primitives.Minimum(a, b) if _core.is_symbolic(a) or _core.is_symbolic(b) else min(a, b)


@public(
    "image.resize_with_crop_or_pad",
    "compat.v1.image.resize_with_crop_or_pad",
    "compat.v1.image.resize_image_with_crop_or_pad",
)
def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """Images cut, or put on a field of zeros, to the given size, around their middle.

    >>> tf.image.resize_with_crop_or_pad([[[1.], [2.], [3.]]], 1, 1)
    <tf.Tensor: shape=(1, 1, 1), dtype=float32, numpy=array([[[2.]]], dtype=float32)>
    """
    image = _in_a_box(image)
    height, width = _number(target_height), _number(target_width)
    _require(width > 0, "target_width must be > 0.")
    _require(height > 0, "target_height must be > 0.")
    rows, columns = _extent(image)
    cut = _cut(
        image,
        _larger(rows - height, 0) // 2,
        _larger(columns - width, 0) // 2,
        _smaller(height, rows),
        _smaller(width, columns),
    )
    return pad_to_bounding_box(cut, _larger(height - rows, 0) // 2, _larger(width - columns, 0) // 2, height, width)


@public("image.resize_with_pad")
def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> Any:
    """Images resized as far as they fit, keeping their shape, in the middle of a field of zeros.

    >>> tf.image.resize_with_pad([[[1.]]], 1, 3)
    <tf.Tensor: shape=(1, 3, 1), dtype=float32, numpy=
    array([[[0.],
            [1.],
            [0.]]], dtype=float32)>
    """
    resized = find_public("image.resize")  # a node of its own where sizes are unknown
    return resize_into_padding(
        image, target_height, target_width, lambda x, size: resized(x, size, method, False, antialias)
    )


def resize_into_padding(image: Any, target_height: Any, target_width: Any, resized: Any) -> Any:
    """Images resized by `resized(image, size)` as far as they fit, in the middle of zeros."""
    image = _in_a_box(image)
    height, width = _number(target_height), _number(target_width)
    _require(width > 0, "target_width must be > 0.")
    _require(height > 0, "target_height must be > 0.")
    rows, columns = _extent(image)
    if any(_core.is_symbolic(size) for size in (rows, columns, height, width)):
        return _resize_into_unknown(image, height, width, resized)
    if 0 in image.shape.as_list()[-3:]:
        raise ValueError(f"resize_with_pad: inner 3 dims of 'image.shape' must be > 0: {image.shape}")
    ratio = max(columns / width, rows / height)
    new_height, new_width = math.floor(rows / ratio), math.floor(columns / ratio)
    top, left = (
        max(0, math.floor((height - rows / ratio) / 2)),
        max(0, math.floor((width - columns / ratio) / 2)),
    )
    return pad_to_bounding_box(resized(image, [new_height, new_width]), top, left, height, width)


def _resize_into_unknown(image: Any, height: Any, width: Any, resized: Any) -> Any:
    """The same for sizes that running the graph gives."""
    target = primitives.Pack([cast(height, "int32"), cast(width, "int32")], 0)
    now, wanted = cast(primitives.Pack(list(_extent(image)), 0), "float64"), cast(target, "float64")
    exact = now / primitives.Max(now / wanted)
    size = cast(primitives.Floor(exact), "int32")
    corner = primitives.Maximum(0, cast(primitives.Floor((wanted - exact) / 2), "int32"))
    return pad_to_bounding_box(resized(image, size), corner[0], corner[1], height, width)


# ---- patches


@public("image.extract_patches")
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """The windows of images (N, H, W, C), each laid out flat along the last dimension.

    >>> tf.image.extract_patches([[[[1.], [2.]]]], [1, 1, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    <tf.Tensor: shape=(1, 1, 1, 2), dtype=float32, numpy=array([[[[1., 2.]]]], dtype=float32)>
    """
    return _windows_of(convert_to_tensor(images), sizes, strides, rates, padding, 2, "image.extract_patches")


@public("extract_volume_patches", "compat.v1.extract_volume_patches")
def extract_volume_patches(input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None) -> Tensor:
    """The windows of volumes (N, depth, height, width, C), each laid out flat along the last dimension.

    >>> tf.extract_volume_patches([[[[[1.], [2.]]]]], [1, 1, 1, 2, 1], [1, 1, 1, 1, 1], "VALID")
    <tf.Tensor: shape=(1, 1, 1, 1, 2), dtype=float32, numpy=array([[[[[1., 2.]]]]], dtype=float32)>
    """
    return _windows_of(convert_to_tensor(input), ksizes, strides, None, padding, 3, "extract_volume_patches")


def _windows_of(x: Any, sizes: Any, strides: Any, rates: Any, padding: str, spatial: int, who: str) -> Tensor:
    if x.shape.rank != spatial + 2:
        raise InvalidArgumentError.of(f"{who}: input must be {spatial + 2}-dimensional; got {x.shape.as_list()}")
    kind, _ = padding_of(padding, spatial, False)
    window, steps = per_dimension(sizes, spatial, False, "sizes"), per_dimension(strides, spatial, False, "strides")
    dilation = per_dimension(rates, spatial, False, "rates")
    if min(*window, *steps, *dilation) < 1:
        raise InvalidArgumentError.of(
            f"{who}: sizes, strides and rates must be positive; got {window}, {steps} and {dilation}"
        )
    batch, depth = dynamic_dims(x)[0], x.shape[-1]
    if math.prod(window) * (depth or 1) >= 2**31:
        raise InvalidArgumentError.of(
            f"{who}: Output size would overflow: a patch must have less than 2**31 elements; "
            f"got {window}, depth {depth}"
        )
    split_shape, flat_shape = [batch], [batch]
    for d in range(spatial):
        positions, before, after = window_positions(x.shape[d + 1], window[d], steps[d], dilation[d], kind)
        if before or after:
            margins = [[0, 0] for _ in range(spatial + 2)]
            margins[d + 1] = [before, after]
            x = pad(x, margins)
        x = gather(x, positions.reshape(-1), axis=d + 1)
        split_shape += [len(positions), window[d]]
        flat_shape.append(len(positions))
    cells = primitives.Reshape(x, [*split_shape, depth])
    order = [0, *range(1, 2 * spatial, 2), *range(2, 2 * spatial + 1, 2), 2 * spatial + 1]
    size = depth
    for n in window:
        size *= n
    return primitives.Reshape(primitives.Transpose(cells, order), [*flat_shape, size])


# ---- edges and gradients


@public("image.sobel_edges", "compat.v1.image.sobel_edges")
def sobel_edges(image: Any) -> Tensor:
    """Sobel's estimate of the gradient down and across, along a new last dimension.

    >>> tf.image.sobel_edges(tf.ones([1, 2, 2, 1]))[0, 0, 0, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    x = convert_to_tensor(image)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"image.sobel_edges: the images must have rank 4; got {x.shape.as_list()}")
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    kernels = np.stack([down, down.T], -1)[:, :, None, :]
    filters = convert_to_tensor(kernels.astype(np.float64), dtype=x.dtype)
    filters = primitives.Tile(filters, [1, 1, dynamic_dims(x)[3], 1])
    padded = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    y = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    return primitives.Reshape(y, [*dynamic_dims(x), 2])


@public("image.image_gradients", "compat.v1.image.image_gradients")
def image_gradients(image: Any) -> tuple[Any, Any]:
    """The difference to the next pixel down and across; 0 in the last row and column.

    >>> tf.image.image_gradients([[[[1.], [3.]]]])[1]
    <tf.Tensor: shape=(1, 1, 2, 1), dtype=float32, numpy=
    array([[[[2.],
             [0.]]]], dtype=float32)>
    """
    x = convert_to_tensor(image)
    if x.shape.rank != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}.")
    down, across = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), pad(across, [[0, 0], [0, 0], [0, 1], [0, 0]])


@public("image.total_variation", "compat.v1.image.total_variation")
def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the sizes of the differences between neighbouring pixels, for each image.

    >>> tf.image.total_variation([[[1.], [3.]]])
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    x = convert_to_tensor(images)
    if x.shape.rank not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")
    batched = x.shape.rank == 4
    y = x if batched else primitives.ExpandDims(x, 0)
    down = primitives.Sum(primitives.Abs(y[:, 1:] - y[:, :-1]), [1, 2, 3], False)
    across = primitives.Sum(primitives.Abs(y[:, :, 1:] - y[:, :, :-1]), [1, 2, 3], False)
    total = down + across
    return total if batched else primitives.Reshape(total, [])


@public("image.per_image_standardization", "compat.v1.image.per_image_standardization")
def per_image_standardization(image: Any) -> Any:
    """Each image with mean 0 and variance 1; one of equal pixels becomes 0.

    >>> tf.image.per_image_standardization([[[1.], [3.]]])
    <tf.Tensor: shape=(1, 2, 1), dtype=float32, numpy=
    array([[[-1.],
            [ 1.]]], dtype=float32)>
    """
    x = cast(as_image(image), float32)
    mean = primitives.Mean(x, [-3, -2, -1], True)
    variance = primitives.Mean(primitives.Square(x - mean), [-3, -2, -1], True)
    count = math.prod(dynamic_dims(x)[-3:])
    least = 1 / cast(primitives.Maximum(count, 1), x.dtype) if holds_symbolic(count) else 1 / max(1, count)
    # The bound stands inside the root, whose derivative at 0 is infinite.
    return (x - mean) / primitives.Sqrt(primitives.Maximum(variance, cast(least, x.dtype)))


# ---- how alike two images are


def _same_images(first: Any, second: Any) -> tuple[Any, Any]:
    first, second = convert_to_tensor(first), convert_to_tensor(second)
    if first.shape.rank < 3 or second.shape.rank < 3:
        raise ValueError("Input images must have at least 3 dimensions (height, width, channels).")
    if not first.shape[-3:].is_compatible_with(second.shape[-3:]):
        raise ValueError(f"images must have the same height, width and channels; got {first.shape} and {second.shape}")
    return first, second


@public("image.psnr", "compat.v1.image.psnr")
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images, in decibels.

    >>> tf.image.psnr([[[1.]]], [[[0.]]], 1.)
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """
    a, b = _same_images(a, b)
    peak = convert_image_dtype(cast(max_val, a.dtype), float32)
    a, b = convert_image_dtype(a, float32), convert_image_dtype(b, float32)
    error = primitives.Mean(primitives.SquaredDifference(a, b), [-3, -2, -1], False)
    return (20 / math.log(10)) * primitives.Log(peak) - (10 / math.log(10)) * primitives.Log(error)


def _gaussian(size: int, sigma: float) -> np.ndarray:
    positions = np.arange(size) - (size - 1) / 2
    line = np.exp(-0.5 * (positions / sigma) ** 2)
    values: np.ndarray = line / line.sum()
    return values


def _ssim_per_channel(
    x: Any, y: Any, peak: Any, filter_size: int, filter_sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:
    """The map of structural similarity (.., H, W, C), and that of its contrast and structure alone."""
    if any(size is not None and size < filter_size for size in x.shape[-3:-1]):
        raise InvalidArgumentError.of(
            f"image.ssim: the filter of size {filter_size} must not be larger than the images {x.shape.as_list()}",
        )
    channels = x.shape[-1]
    line = np.tile(_gaussian(filter_size, filter_sigma)[:, None, None, None], [1, 1, channels, 1])
    down = convert_to_tensor(line, dtype=x.dtype)
    across = convert_to_tensor(line.transpose(1, 0, 2, 3), dtype=x.dtype)

    def blur(image: Any) -> Tensor:
        dims = dynamic_dims(image)
        flat = primitives.Reshape(image, [math.prod(dims[:-3]), *dims[-3:]])
        blurred = depthwise_conv2d(depthwise_conv2d(flat, down, [1, 1, 1, 1], "VALID"), across, [1, 1, 1, 1], "VALID")
        return primitives.Reshape(blurred, [*dims[:-3], *dynamic_dims(blurred)[1:]])

    c1, c2 = (k1 * peak) ** 2, (k2 * peak) ** 2
    mean_x, mean_y = blur(x), blur(y)
    product = mean_x * mean_y * 2
    squares = primitives.Square(mean_x) + primitives.Square(mean_y)
    luminance = (product + c1) / (squares + c1)
    both = blur(x * y) * 2
    each = blur(primitives.Square(x) + primitives.Square(y))
    structure = (both - product + c2) / (each - squares + c2)
    return luminance * structure, structure


def _for_similarity(img1: Any, img2: Any, max_val: Any) -> tuple[Any, Any, Any]:
    x, y = _same_images(img1, img2)
    peak = convert_image_dtype(cast(convert_to_tensor(max_val), x.dtype), float32)
    return convert_image_dtype(x, float32), convert_image_dtype(y, float32), peak


@public("image.ssim", "compat.v1.image.ssim")
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of images, from -1 to 1; or its map over the image.

    >>> tf.image.ssim(tf.ones([12, 12, 1]), tf.ones([12, 12, 1]), 1.)
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    x, y, peak = _for_similarity(img1, img2, max_val)
    similarity, _ = _ssim_per_channel(x, y, peak, filter_size, filter_sigma, k1, k2)
    if not return_index_map:
        similarity = primitives.Mean(similarity, [-3, -2], False)
    return primitives.Mean(similarity, [-1], False)


def _similarity_spec(img1: Any, img2: Any, *rest: Any, return_index_map: bool = False, **_: Any) -> TensorSpec:
    """What is known of the result while the sizes of the images are not."""
    x, y = convert_to_tensor(img1).shape, convert_to_tensor(img2).shape
    if return_index_map or any(rest[5:]) or x.rank is None or y.rank is None:
        return TensorSpec(None, float32)
    return TensorSpec(broadcast_static_shape(x.with_rank_at_least(3)[:-3], y.with_rank_at_least(3)[:-3]), float32)


ssim.result_specs = _similarity_spec  # type: ignore[attr-defined]


@public("image.ssim_multiscale", "compat.v1.image.ssim_multiscale")
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images over several scales, each half as large as the one before.

    >>> x = tf.ones([12, 12, 1])
    >>> tf.image.ssim_multiscale(x, x, 1., power_factors=(0.5, 0.5), filter_size=3)
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    x, y, peak = _for_similarity(img1, img2, max_val)
    parts = []
    powers = [float(p) for p in power_factors]
    similarity = None
    for scale in range(len(powers)):
        if scale:
            x, y = _halved(x), _halved(y)
        similarity, structure = _ssim_per_channel(x, y, peak, filter_size, filter_sigma, k1, k2)
        last = scale == len(powers) - 1
        parts.append(primitives.Relu(primitives.Mean(similarity if last else structure, [-3, -2], False)))
    stacked = primitives.Pack(parts, -1)
    product = primitives.Prod(primitives.Pow(stacked, convert_to_tensor(powers, dtype=stacked.dtype)), [-1], False)
    return primitives.Mean(product, [-1], False)


ssim_multiscale.result_specs = _similarity_spec  # type: ignore[attr-defined]


def _halved(x: Any) -> Tensor:
    """Images of half the size; an odd last row or column counts twice."""
    dims = dynamic_dims(x)
    flat = primitives.Reshape(x, [math.prod(dims[:-3]), *dims[-3:]])
    for axis, size in ((1, dims[-3]), (2, dims[-2])):
        odd = size % 2
        if holds_symbolic(odd) or odd:
            last = flat[:, size - odd :] if axis == 1 else flat[:, :, size - odd :]
            flat = primitives.ConcatV2([flat, last], axis)
    half = avg_pool2d(flat, 2, 2, "VALID")
    return primitives.Reshape(half, [*dims[:-3], *dynamic_dims(half)[1:]])
