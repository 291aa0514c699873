"""Random changes of images, by TensorFlow's stream of random numbers or as a seed decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.image.color import adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation
from tapeflow._src.ops.image.geometry import as_image
from tapeflow._src.ops.random.stateless import stateless_uniform
from tapeflow._src.ops.random.streams import uniform
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.errors import InvalidArgumentError

Sample = Callable[..., Any]  # (shape, minval, maxval, dtype) to uniform numbers


def _streaming(seed: Any) -> Sample:
    def sample(shape: Any, low: Any = 0.0, high: Any = 1.0, dtype: Any = "float32") -> Any:
        return uniform(shape, low, high, dtype=dtype, seed=seed)

    return sample


def _stateless(seed: Any) -> Sample:
    def sample(shape: Any, low: Any = 0.0, high: Any = 1.0, dtype: Any = "float32") -> Any:
        return stateless_uniform(shape, seed, low, high, dtype)

    return sample


def _check_range(lower: Any, upper: Any) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def _brightness(image: Any, max_delta: Any, sample: Sample) -> Any:
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, sample([], -max_delta, max_delta))


@public("image.random_brightness", "compat.v1.image.random_brightness")
def random_brightness(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """Images with a random brightness from `-max_delta` to `max_delta` added.

    >>> tf.image.random_brightness(tf.ones([1, 2, 3]), 0.2).shape
    TensorShape([1, 2, 3])
    """
    return _brightness(image, max_delta, _streaming(seed))


@public("image.stateless_random_brightness")
def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Any:
    """Images with a brightness added that `seed` decides.

    >>> tf.image.stateless_random_brightness(tf.ones([1, 2, 3]), 0.2, [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _brightness(image, max_delta, _stateless(seed))


def _contrast(image: Any, lower: Any, upper: Any, sample: Sample) -> Any:
    _check_range(lower, upper)
    return adjust_contrast(image, sample([], lower, upper))


@public("image.random_contrast", "compat.v1.image.random_contrast")
def random_contrast(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """Images with the contrast multiplied by a random number.

    >>> tf.image.random_contrast(tf.ones([1, 2, 3]), 0.2, 0.5).shape
    TensorShape([1, 2, 3])
    """
    return _contrast(image, lower, upper, _streaming(seed))


@public("image.stateless_random_contrast")
def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Any:
    """Images with the contrast multiplied by a number that `seed` decides.

    >>> tf.image.stateless_random_contrast(tf.ones([1, 2, 3]), 0.2, 0.5, [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _contrast(image, lower, upper, _stateless(seed))


def _saturation(image: Any, lower: Any, upper: Any, sample: Sample) -> Any:
    _check_range(lower, upper)
    return adjust_saturation(image, sample([], lower, upper))


@public("image.random_saturation", "compat.v1.image.random_saturation")
def random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """RGB images with the saturation multiplied by a random number.

    >>> tf.image.random_saturation(tf.ones([1, 2, 3]), 0.2, 0.5).shape
    TensorShape([1, 2, 3])
    """
    return _saturation(image, lower, upper, _streaming(seed))


@public("image.stateless_random_saturation")
def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """RGB images with the saturation multiplied by a number that `seed` decides.

    >>> tf.image.stateless_random_saturation(tf.ones([1, 2, 3]), 0.2, 0.5, [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _saturation(image, lower, upper, _stateless(seed))


def _hue(image: Any, max_delta: Any, sample: Sample) -> Any:
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, sample([], -max_delta, max_delta))


@public("image.random_hue", "compat.v1.image.random_hue")
def random_hue(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """RGB images with the hue turned by a random part from `-max_delta` to `max_delta`.

    >>> tf.image.random_hue(tf.ones([1, 2, 3]), 0.2).shape
    TensorShape([1, 2, 3])
    """
    return _hue(image, max_delta, _streaming(seed))


@public("image.stateless_random_hue")
def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Any:
    """RGB images with the hue turned by a part that `seed` decides.

    >>> tf.image.stateless_random_hue(tf.ones([1, 2, 3]), 0.2, [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _hue(image, max_delta, _stateless(seed))


def _flip(image: Any, axis: int, sample: Sample) -> Tensor:
    """One image flipped or not; of several images each by its own number."""
    image = as_image(image)
    flipped = primitives.ReverseV2(image, [axis])
    if image.shape.rank == 3:
        return primitives.SelectV2(sample([]) < 0.5, flipped, image)
    turned = primitives.Round(primitives.Reshape(sample(dynamic_dims(image)[:1]), [-1, 1, 1, 1])) > 0
    return primitives.SelectV2(turned, flipped, image)


@public("image.random_flip_left_right", "compat.v1.image.random_flip_left_right")
def random_flip_left_right(image: Any, seed: Any = None) -> Tensor:
    """Images of which about every second is flipped sideways.

    >>> tf.image.random_flip_left_right(tf.ones([1, 2, 3])).shape
    TensorShape([1, 2, 3])
    """
    return _flip(image, -2, _streaming(seed))


@public("image.stateless_random_flip_left_right")
def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Images of which about every second, as `seed` decides, is flipped sideways.

    >>> tf.image.stateless_random_flip_left_right(tf.ones([1, 2, 3]), [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _flip(image, -2, _stateless(seed))


@public("image.random_flip_up_down", "compat.v1.image.random_flip_up_down")
def random_flip_up_down(image: Any, seed: Any = None) -> Tensor:
    """Images of which about every second is turned upside down.

    >>> tf.image.random_flip_up_down(tf.ones([1, 2, 3])).shape
    TensorShape([1, 2, 3])
    """
    return _flip(image, -3, _streaming(seed))


@public("image.stateless_random_flip_up_down")
def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Images of which about every second, as `seed` decides, is turned upside down.

    >>> tf.image.stateless_random_flip_up_down(tf.ones([1, 2, 3]), [1, 2]).shape
    TensorShape([1, 2, 3])
    """
    return _flip(image, -3, _stateless(seed))


def _crop(value: Any, size: Any, sample: Sample) -> Tensor:
    value = convert_to_tensor(value)
    known = get_static_value(convert_to_tensor(size, dtype_hint=int32))
    if known is None or not value.shape.is_fully_defined():
        return _dynamic_crop(value, size, None if known is None else known.tolist(), sample)
    counts = [int(s) for s in known]
    dims = value.shape.as_list()
    if len(counts) != len(dims) or any(d < s for d, s in zip(dims, counts)):
        raise InvalidArgumentError.of(f"image.random_crop: Need value.shape >= size, got {dims} {counts}")
    room = convert_to_tensor([d - s + 1 for d, s in zip(dims, counts)], dtype=int32)
    corner = primitives.FloorMod(sample([len(dims)], 0, int32.max, int32), room)
    begin = corner if _core.is_symbolic(corner) else [int(c) for c in np.asarray(corner)]
    return primitives.StridedSlice(value, begin, [1] * len(dims), counts)


def _dynamic_crop(value: Any, size: Any, known: list[int] | None, sample: Sample) -> Tensor:
    """The same of a value or to a size that only the graph knows."""
    rank = value.shape.rank
    if rank is None or (known is not None and len(known) != rank):
        raise ValueError(f"image.random_crop: Need value.shape >= size, got  {value.shape} {known or size}")
    counts, sizes = cast(size, int32), primitives.Shape(value, int32)
    fits = primitives.All(primitives.GreaterEqual(sizes, counts))
    sizes = _core.required(sizes, fits, "image.random_crop: Need value.shape >= size")
    corner = primitives.FloorMod(sample([rank], 0, int32.max, int32), sizes - counts + 1)
    result = primitives.StridedSlice(value, corner, [1] * rank, counts if known is None else known)
    if known is not None:
        result.set_shape(known)
    return result


@public("image.random_crop", "compat.v1.image.random_crop", "compat.v1.random_crop")
def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """A part of the given size from a random place.

    >>> tf.image.random_crop(tf.ones([4, 4, 1]), [2, 2, 1]).shape
    TensorShape([2, 2, 1])
    """
    return _crop(value, size, _streaming(seed))


@public("image.stateless_random_crop")
def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """A part of the given size from a place that `seed` decides.

    >>> tf.image.stateless_random_crop(tf.ones([4, 4, 1]), [2, 2, 1], [1, 2]).shape
    TensorShape([2, 2, 1])
    """
    return _crop(value, size, _stateless(seed))
