"""The TensorFlow 1 signatures of image functions, and resizing with TensorFlow 1's places of the pixels."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.signatures.declaration import v1_signature
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.image.boxes import glimpse
from tapeflow._src.ops.image.geometry import resize_into_padding
from tapeflow._src.ops.image.resize import image_batch, resample, resize_rows, target_size
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor

v1_signature(
    "image.draw_bounding_boxes(images, boxes, name=None, colors=None)",
    "image.draw_bounding_boxes",
    example="images, boxes = tf.zeros([1, 1, 2, 1]), [[[0., 0., 0., 0.]]]\n"
    "tf.compat.v1.image.draw_bounding_boxes(images, boxes)[0, 0, :, 0] => [1., 0.]",
)
v1_signature(
    "image.crop_and_resize(image, boxes, box_ind=None, crop_size=None, method='bilinear', extrapolation_value=0, "
    "name=None, box_indices=None)",
    "image.crop_and_resize",
    renamed={"box_ind": "box_indices"},
    example="images, boxes = [[[[1.], [3.]]]], [[0., 0., 0., 1.]]\n"
    "tf.compat.v1.image.crop_and_resize(images, boxes, [0], [1, 3])[0, 0, :, 0] => [1., 2., 3.]",
)
v1_signature(
    "image.extract_image_patches(images, ksizes=None, strides=None, rates=None, padding=None, name=None, sizes=None)",
    "image.extract_patches",
    also=["extract_image_patches"],
    renamed={"ksizes": "sizes"},
    example="images, ones = [[[[1.], [2.]]]], [1, 1, 1, 1]\n"
    "tf.compat.v1.image.extract_image_patches(images, [1, 1, 2, 1], ones, ones, 'VALID') => [[[[1., 2.]]]]",
)


def _glimpse(
    input: Any, size: Any, offsets: Any, centered: bool, normalized: bool, uniform_noise: bool, name: str | None
) -> Tensor:
    def corner(place: Any, length: int, window: int) -> Any:
        place = place * length if normalized else place
        return (place / 2 + length / 2 if centered else place) - window / 2

    return glimpse(input, size, offsets, "uniform" if uniform_noise else "gaussian", corner)


v1_signature(
    "image.extract_glimpse(input, size, offsets, centered=True, normalized=True, uniform_noise=True, name=None)",
    "image.extract_glimpse",
    function=_glimpse,
    example="images = tf.ones([1, 4, 4, 1])\n"
    "tf.compat.v1.image.extract_glimpse(images, [2, 2], [[0., 0.]]).shape => TensorShape([1, 2, 2, 1])",
)
_METHOD_BY_NUMBER = {0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area"}


@public("compat.v1.image.resize", "compat.v1.image.resize_images")
def resize(
    images: Any,
    size: Any,
    method: Any = 0,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Any:
    """Images at another size, with TensorFlow 1's places of the pixels.

    >>> tf.compat.v1.image.resize([[[1.], [3.]]], [1, 4])[0, :, 0]
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 2., 3., 3.], dtype=float32)>
    """
    method = _METHOD_BY_NUMBER.get(method, method)
    if isinstance(images, RaggedTensor):
        resize_one = find_public("compat.v1.image.resize")
        return resize_rows(
            lambda x: resize_one(x, size, method, align_corners), images, size, method, preserve_aspect_ratio
        )
    batch, single = image_batch(images)
    if method not in ("bilinear", "nearest", "bicubic", "area"):
        raise ValueError(f"Resize method is not implemented: {method}")
    height, width = target_size(batch, size, preserve_aspect_ratio)
    y = batch
    if (height, width) != (batch.shape[1], batch.shape[2]):
        y = resample(batch, height, width, method, False, align_corners, False)
    return primitives.Squeeze(y, [0]) if single else y


@public("compat.v1.image.resize_image_with_pad")
def resize_image_with_pad(
    image: Any, target_height: Any, target_width: Any, method: Any = 0, align_corners: bool = False
) -> Any:
    """Images resized as far as they fit, with TensorFlow 1's places of the pixels, in the middle of zeros.

    >>> tf.compat.v1.image.resize_image_with_pad([[[1.]]], 1, 3)
    <tf.Tensor: shape=(1, 3, 1), dtype=float32, numpy=
    array([[[0.],
            [1.],
            [0.]]], dtype=float32)>
    """
    return resize_into_padding(
        image, target_height, target_width, lambda x, size: resize(x, size, method, align_corners)
    )
