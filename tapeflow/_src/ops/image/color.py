"""Colors of images: conversions between color spaces and data types, and adjustments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import ensure_shape
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.errors import FailedPreconditionError, InvalidArgumentError


def _largest(dtype: Any) -> int:
    return int(np.iinfo(dtype.as_numpy_dtype).max)


def _saturated(x: Any, dtype: Any) -> Any:
    """The elements as integers of `dtype`; what does not fit becomes the nearest that does."""
    limits = np.iinfo(dtype.as_numpy_dtype)
    if x.dtype.is_integer:
        own = np.iinfo(x.dtype.as_numpy_dtype)
        low: float = max(int(limits.min), int(own.min))
        high: float = min(int(limits.max), int(own.max))
    else:
        low, high = _float_inside(limits.min, x.dtype), _float_inside(limits.max, x.dtype)
    return cast(primitives.Maximum(primitives.Minimum(x, cast(high, x.dtype)), cast(low, x.dtype)), dtype)


def _float_inside(limit: int, dtype: Any) -> float:
    """The float of `dtype` nearest to `limit` that does not lie beyond it."""
    largest = float(dtype.max)
    if abs(int(limit)) > largest:
        return largest if limit > 0 else -largest
    number = dtype.as_numpy_dtype(limit)
    if abs(float(number)) <= abs(int(limit)):
        return float(number)
    return float(np.nextafter(number, dtype.as_numpy_dtype(0)))


@public("image.convert_image_dtype", "compat.v1.image.convert_image_dtype")
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """An image in another data type, scaled: integers use their whole range, floats stand for 0 to 1.

    Args:
        image: The image.
        dtype: The dtype of the result; numbers are scaled to its range, floats to `[0, 1]`.
        saturate: Whether to clip values that do not fit.
        name: A name for the operation in graphs.

    Returns:
        A tensor of dtype `dtype`.

    Gradient:
        `dy` times the scale, between floating dtypes.

    >>> tf.image.convert_image_dtype(tf.constant([[[255]]], tf.uint8), tf.float32)
    <tf.Tensor: shape=(1, 1, 1), dtype=float32, numpy=array([[[1.]]], dtype=float32)>
    """
    image = convert_to_tensor(image)
    dtype = as_dtype(dtype)
    if not dtype.is_floating and not dtype.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if not image.dtype.is_floating and not image.dtype.is_integer:
        raise AttributeError("image dtype must be either floating point or integer")
    if image.dtype == dtype:
        return image
    if image.dtype.is_integer and dtype.is_integer:
        given, wanted = _largest(image.dtype), _largest(dtype)
        if given > wanted:
            scaled = primitives.FloorDiv(image, cast((given + 1) // (wanted + 1), image.dtype))
            return _saturated(scaled, dtype) if saturate else cast(scaled, dtype)
        scale = (wanted + 1) // (given + 1)
        return (_saturated(image, dtype) if saturate else cast(image, dtype)) * cast(scale, dtype)
    if image.dtype.is_floating and dtype.is_floating:
        return cast(image, dtype)
    if image.dtype.is_integer:
        return cast(image, dtype) * (1.0 / _largest(image.dtype))
    scaled = image * (_largest(dtype) + 0.5)
    return _saturated(scaled, dtype) if saturate else cast(scaled, dtype)


def _as_float(image: Any) -> tuple[Any, Any]:
    """An image as float32 (small floats and float32 as they are) and the dtype it came in."""
    image = convert_to_tensor(image)
    if image.dtype.is_floating and image.dtype.size <= 4:
        return image, image.dtype
    return convert_image_dtype(image, float32), image.dtype


def _with_channels(images: Any, channels: int, what: str) -> Any:
    """The images, which have so many channels; where that is not known, it is checked when the graph runs."""
    if images.shape.rank == 0 or (images.shape.rank and images.shape[-1] not in (channels, None)):
        of_spaces = what.endswith(("rgb_to_hsv", "hsv_to_rgb")) and images.shape.rank and not _core.is_tracing()
        raise (FailedPreconditionError if of_spaces else InvalidArgumentError).of(
            f"{what}: the last dimension must be {channels}, one per channel: input must have {channels} channels but "
            f"input only has {images.shape[-1] if images.shape.rank else 0} channels; got {images.shape.as_list()}"
        )
    if images.shape.rank and images.shape[-1] is None:
        return ensure_shape(images, [*images.shape.as_list()[:-1], channels])
    return images


# ---- linear conversions


@public("image.rgb_to_grayscale", "compat.v1.image.rgb_to_grayscale")
def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """The brightness of RGB images, as one channel.

    >>> tf.image.rgb_to_grayscale([[[1., 1., 1.]]])
    <tf.Tensor: shape=(1, 1, 1), dtype=float32, numpy=array([[[0.9999]]], dtype=float32)>
    """
    images = convert_to_tensor(images)
    if images.shape.rank == 0 or (images.shape.rank and images.shape[-1] not in (3, None)):
        raise ValueError(f"image.rgb_to_grayscale: the last dimension of the images must be 3; got {images.shape}")
    images = _with_channels(images, 3, "image.rgb_to_grayscale")
    given = images.dtype
    images = convert_image_dtype(images, float32)
    weights = convert_to_tensor([0.2989, 0.5870, 0.1140], dtype=float32)
    return convert_image_dtype(primitives.Sum(images * weights, [-1], True), given)


@public("image.grayscale_to_rgb", "compat.v1.image.grayscale_to_rgb")
def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """One channel repeated three times.

    >>> tf.image.grayscale_to_rgb([[[2.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[2., 2., 2.]]], dtype=float32)>
    """
    images = convert_to_tensor(images)
    if images.shape.rank == 0 or (images.shape.rank and images.shape[-1] not in (1, None)):
        raise ValueError("Input images must be grayscale (last dimension should be size 1).")
    images = _with_channels(images, 1, "image.grayscale_to_rgb")
    return primitives.Tile(images, [1] * (images.shape.rank - 1) + [3])


_RGB_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_YIQ_TO_RGB: list[list[float]] = [
    [1, 1, 1],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_RGB_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_YUV_TO_RGB: list[list[float]] = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _mixed(images: Any, matrix: list[list[float]], what: str) -> Tensor:
    images = convert_to_tensor(images)
    images = _with_channels(images, 3, what)
    dims = dynamic_dims(images)
    flat = primitives.Reshape(images, [math.prod(dims[:-1]), 3])
    return primitives.Reshape(primitives.MatMul(flat, convert_to_tensor(matrix, dtype=images.dtype)), dims)


@public("image.rgb_to_yiq", "compat.v1.image.rgb_to_yiq")
def rgb_to_yiq(images: Any) -> Tensor:
    """RGB images as YIQ.

    >>> tf.image.rgb_to_yiq([[[0., 0., 0.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[0., 0., 0.]]], dtype=float32)>
    """
    return _mixed(images, _RGB_TO_YIQ, "image.rgb_to_yiq")


@public("image.yiq_to_rgb", "compat.v1.image.yiq_to_rgb")
def yiq_to_rgb(images: Any) -> Tensor:
    """YIQ images as RGB.

    >>> tf.image.yiq_to_rgb([[[1., 0., 0.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[1., 1., 1.]]], dtype=float32)>
    """
    return _mixed(images, _YIQ_TO_RGB, "image.yiq_to_rgb")


@public("image.rgb_to_yuv", "compat.v1.image.rgb_to_yuv")
def rgb_to_yuv(images: Any) -> Tensor:
    """RGB images as YUV.

    >>> tf.image.rgb_to_yuv([[[0., 0., 0.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[0., 0., 0.]]], dtype=float32)>
    """
    return _mixed(images, _RGB_TO_YUV, "image.rgb_to_yuv")


@public("image.yuv_to_rgb", "compat.v1.image.yuv_to_rgb")
def yuv_to_rgb(images: Any) -> Tensor:
    """YUV images as RGB.

    >>> tf.image.yuv_to_rgb([[[1., 0., 0.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[1., 1., 1.]]], dtype=float32)>
    """
    return _mixed(images, _YUV_TO_RGB, "image.yuv_to_rgb")


# ---- hue, saturation, value


@public("image.rgb_to_hsv", "compat.v1.image.rgb_to_hsv")
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """RGB images as hue, saturation and value, each from 0 to 1.

    >>> tf.image.rgb_to_hsv([[[0., 1., 0.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[0.33333334, 1.        , 1.        ]]],
     dtype=float32)>
    """
    images = convert_to_tensor(images)
    images = _with_channels(images, 3, "image.rgb_to_hsv")
    red, green, blue = primitives.Unpack(images, -1, -1)
    where, zero, one = primitives.SelectV2, cast(0, images.dtype), cast(1, images.dtype)
    red_leads = primitives.LogicalAnd(red >= green, red >= blue)
    green_leads = green >= blue
    value = where(red_leads, red, where(green_leads, green, blue))
    blue_least = primitives.LogicalAnd(blue <= green, blue <= red)
    least = where(blue_least, blue, where(green <= red, green, red))
    chroma = value - least
    colored, lit = chroma > 0, value > 0
    saturation = where(lit, chroma / where(lit, value, one), zero)
    scale = 1 / (6 * where(colored, chroma, one))
    hue = where(
        red_leads,
        scale * (green - blue),
        where(green_leads, scale * (blue - red) + 2 / 6, scale * (red - green) + 4 / 6),
    )
    hue = where(colored, where(hue < 0, hue + 1, hue), zero)
    return primitives.Pack([hue, saturation, value], -1)


@public("image.hsv_to_rgb", "compat.v1.image.hsv_to_rgb")
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value, each from 0 to 1, as RGB images.

    >>> tf.image.hsv_to_rgb([[[0., 1., 1.]]])
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[1., 0., 0.]]], dtype=float32)>
    """
    images = convert_to_tensor(images)
    images = _with_channels(images, 3, "image.hsv_to_rgb")
    hue, saturation, value = primitives.Unpack(images, -1, -1)
    turn = hue * 6
    parts = (primitives.Abs(turn - 3) - 1, 2 - primitives.Abs(turn - 2), 2 - primitives.Abs(turn - 4))
    zero, one = cast(0, images.dtype), cast(1, images.dtype)
    colors = [
        (1 - saturation + saturation * primitives.Minimum(primitives.Maximum(part, zero), one)) * value
        for part in parts
    ]
    return primitives.Pack(colors, -1)


@public("image.adjust_hue", "compat.v1.image.adjust_hue")
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Any:
    """RGB images with the hue turned by `delta`, from -1 to 1.

    >>> tf.image.adjust_hue([[[1., 0., 0.]]], 0.5)
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[0., 1., 1.]]], dtype=float32)>
    """
    if not _core.is_tensor(delta) and not -1 <= delta <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")
    x, given = _as_float(image)
    x = _with_channels(x, 3, "image.adjust_hue")
    hue, saturation, value = primitives.Unpack(rgb_to_hsv(x), -1, -1)
    turned = hue + cast(delta, x.dtype)
    turned = turned - primitives.Floor(turned)
    return convert_image_dtype(hsv_to_rgb(primitives.Pack([turned, saturation, value], -1)), given, saturate=True)


@public("image.adjust_saturation", "compat.v1.image.adjust_saturation")
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Any:
    """RGB images with the saturation multiplied, and kept within 0 and 1.

    >>> tf.image.adjust_saturation([[[1., 0.5, 0.5]]], 2.)
    <tf.Tensor: shape=(1, 1, 3), dtype=float32, numpy=array([[[1., 0., 0.]]], dtype=float32)>
    """
    x, given = _as_float(image)
    x = _with_channels(x, 3, "image.adjust_saturation")
    hue, saturation, value = primitives.Unpack(rgb_to_hsv(x), -1, -1)
    zero, one = cast(0, x.dtype), cast(1, x.dtype)
    saturation = primitives.Minimum(primitives.Maximum(saturation * cast(saturation_factor, x.dtype), zero), one)
    return convert_image_dtype(hsv_to_rgb(primitives.Pack([hue, saturation, value], -1)), given, saturate=True)


# ---- brightness, contrast, gamma


@public("image.adjust_brightness", "compat.v1.image.adjust_brightness")
def adjust_brightness(image: Any, delta: Any) -> Any:
    """Images with `delta` added, in parts of the full brightness.

    >>> tf.image.adjust_brightness([[[1., 2.]]], 0.5)
    <tf.Tensor: shape=(1, 1, 2), dtype=float32, numpy=array([[[1.5, 2.5]]], dtype=float32)>
    """
    x, given = _as_float(image)
    return convert_image_dtype(x + cast(delta, x.dtype), given, saturate=True)


@public("image.adjust_contrast", "compat.v1.image.adjust_contrast")
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """The distance of each pixel from the mean of its channel, multiplied.

    >>> tf.image.adjust_contrast([[[1.], [3.]]], 2.)
    <tf.Tensor: shape=(1, 2, 1), dtype=float32, numpy=
    array([[[0.],
            [4.]]], dtype=float32)>
    """
    x, given = _as_float(images)
    if x.shape.rank < 3:
        raise InvalidArgumentError.of(f"image.adjust_contrast: input must be at least 3-D, got shape{x.shape}")
    factor = cast(contrast_factor, float32)
    if factor.shape.rank:
        raise InvalidArgumentError.of(
            f"image.adjust_contrast: contrast_factor must be scalar: {factor.shape.as_list()}"
        )
    y = cast(x, float32)
    mean = primitives.Mean(y, [-3, -2], True)
    result = (y - mean) * factor + mean
    return convert_image_dtype(cast(result, x.dtype), given, saturate=True)


@public("image.adjust_gamma", "compat.v1.image.adjust_gamma")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """`gain * image ** gamma`.

    >>> tf.image.adjust_gamma([[[2., 3.]]], 2.)
    <tf.Tensor: shape=(1, 1, 2), dtype=float32, numpy=array([[[4., 9.]]], dtype=float32)>
    """
    if not _core.is_tensor(gamma) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    x, given = _as_float(image)
    if _core.is_tensor(gamma) and bool(primitives.Less(gamma, cast(0, gamma.dtype))):
        raise InvalidArgumentError.of("Gamma should be a non-negative real number.")
    result = cast(gain, x.dtype) * primitives.Pow(x, cast(gamma, x.dtype))
    return convert_image_dtype(result, given, saturate=True)
