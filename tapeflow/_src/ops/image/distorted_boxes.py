"""Random crops of an image that show enough of the objects in it."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.random.seeds import draw, draw_unseeded
from tapeflow._src.ops.random.stateless import PHILOX, key_counter_of
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec

SampleDistortedBoundingBox = namedtuple("SampleDistortedBoundingBox", ["begin", "size", "bboxes"])

# An attempt needs four words, and more only where one is refused, which is rare.
_WORDS_PER_ATTEMPT = 16


class _Words:
    """The words of a generator, one by one, and the numbers made of them."""

    def __init__(self, words: Any) -> None:
        self._words = iter(words.numpy().tolist())

    def fraction(self) -> np.float32:
        """A number in [0, 1)."""
        return np.uint32(next(self._words) & 0x7FFFFF | 0x3F800000).view(np.float32) - np.float32(1)

    def below(self, limit: int) -> int:
        """An integer in [0, limit), each with the same probability."""
        if limit & (limit - 1) == 0:
            return int(next(self._words) & (limit - 1))
        refused = 0xFFFFFFFF % limit + 1
        while (word := next(self._words)) < refused:
            pass
        return int(word % limit)


def _crop(height: int, width: int, aspect: float, areas: tuple[float, float], words: _Words) -> tuple[int, ...] | None:
    """Top, left, height and width of a crop with the aspect ratio and an area between two; None if it does not fit."""
    smallest, largest = (np.float32(area) * np.float32(width) * np.float32(height) for area in areas)
    low, high = (int(np.rint(np.sqrt(area / aspect))) for area in (smallest, largest))
    if int(np.rint(np.float32(high) * aspect)) > width:
        high = int((width + 0.5 - 1e-7) / aspect)
    high = min(high, height)
    low = min(low, high)
    rows = low + (words.below(high - low + 1) if low < high else 0)
    columns = int(np.rint(np.float32(rows) * aspect))
    if rows * columns < smallest:
        rows += 1
    elif rows * columns > largest:
        rows -= 1
    columns = int(np.rint(np.float32(rows) * aspect))
    if not (smallest <= rows * columns <= largest and 0 < columns <= width and 0 < rows <= height):
        return None
    top = words.below(height - rows) if rows < height else 0
    left = words.below(width - columns) if columns < width else 0
    return top, left, rows, columns


def _shows_an_object(crop: tuple[int, ...], objects: np.ndarray, covered: float) -> bool:
    """Whether a crop holds at least the part `covered` of one of the boxes, which are given in pixels."""
    top, left, rows, columns = crop
    for low_y, low_x, high_y, high_x in objects.tolist():
        area = (high_y - low_y) * (high_x - low_x)
        both_y = min(high_y, top + rows) - max(low_y, top)
        both_x = min(high_x, left + columns) - max(low_x, left)
        if area >= 1 and max(both_y, 0) * max(both_x, 0) / area >= covered:
            return True
    return False


def _fail(message: str) -> None:
    raise InvalidArgumentError.of(f"sample_distorted_bounding_box: {message}")


def _checked(image_size: Any, boxes: Any, aspects: Any, areas: Any, covered: Any, attempts: int, whole: bool) -> Any:
    """The sizes, the boxes in pixels and the ranges, if they make sense."""
    sizes = convert_to_tensor(image_size)
    if sizes.shape.rank != 1:
        _fail(f"image_size must be 1-dimensional: {sizes.shape.as_list()}")
    if sizes.shape[0] != 3:
        _fail(f"image_size must contain 3 elements{sizes.shape.as_list()}")
    height, width, _ = (int(n) for n in sizes.numpy())
    if height <= 0 or width <= 0:
        _fail(f"Image height and width must be positive: {height}, {width}")
    boxes = convert_to_tensor(boxes, dtype=float32)
    if boxes.shape.rank != 3:
        _fail(f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {boxes.shape.as_list()}")
    if boxes.shape[-1] != 4:
        _fail(f"bounding boxes must have shape [4] or [*, 4], got {boxes.shape.as_list()}")
    corners = boxes.numpy().reshape(-1, 4)
    if not len(corners):
        if not whole:
            _fail(
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to "
                "not provide any bounding boxes."
            )
        corners = np.array([[0, 0, 1, 1]], np.float32)
    aspects, areas = (tuple(float(v) for v in given) for given in (aspects, areas))
    if len(aspects) != 2 or any(v <= 0 for v in aspects):
        _fail(f"Aspect ratio range must be two positive numbers: {list(aspects)}")
    if len(areas) != 2 or any(not 0 < v <= 1 for v in areas):
        _fail(f"Area range must be non-negative: {list(areas)}")
    if float(covered) < 0:
        _fail(f"Min object covered must be non-negative: {covered}")
    if attempts <= 0:
        _fail(f"Max attempts must be non-negative: {attempts}")
    objects = (corners * np.array([height, width, height, width], np.float32)).astype(np.int32)
    return sizes, height, width, objects, aspects, areas


def _sample(words: _Words, checked: Any, covered: Any, attempts: int) -> SampleDistortedBoundingBox:
    sizes, height, width, objects, (low, high), areas = checked
    found: tuple[int, ...] = (0, 0, height, width)
    for _ in range(attempts):
        aspect = words.fraction() * np.float32(np.float32(high) - np.float32(low)) + np.float32(low)
        crop = _crop(height, width, aspect.item(), areas, words)
        if crop and _shows_an_object(crop, objects, float(covered)):
            found = crop
            break
    top, left, rows, columns = found
    box = [top / height, left / width, (top + rows) / height, (left + columns) / width]
    return SampleDistortedBoundingBox(
        convert_to_tensor([top, left, 0], dtype=sizes.dtype),
        convert_to_tensor([rows, columns, -1], dtype=sizes.dtype),
        convert_to_tensor([[box]], dtype=float32),
    )


def _sample_from(words: Any, image_size: Any, boxes: Any, covered: Any, ranges: Any, attempts: int, whole: bool) -> Any:
    ratios, areas = ranges
    checked = _checked(image_size, boxes, ratios, areas, covered, attempts, whole)
    return _sample(_Words(words), checked, covered, attempts)


def _sample_specs(words: Any, image_size: Any, *_: Any) -> SampleDistortedBoundingBox:
    places = TensorSpec([3], convert_to_tensor(image_size).dtype)
    return SampleDistortedBoundingBox(places, places, TensorSpec([1, 1, 4], float32))


_sample_from.result_specs = _sample_specs  # type: ignore[attr-defined]
# Words that are drawn when a graph runs are unknown while tracing: the rest is then one node.
_sample_whole: Any = _core.Composition(_sample_from)


def _draw_sample(
    key: Any, counter: Any, image_size: Any, boxes: Any, covered: Any, ranges: Any, attempts: int, whole: bool | None
) -> Any:
    words = primitives.StatelessRandomUniformFullIntV2(
        [max(_WORDS_PER_ATTEMPT * attempts, 0)], key, counter, PHILOX, "uint32"
    )
    ratios, areas = ranges
    ranges = ratios or (0.75, 1.33), areas or (0.05, 1.0)
    return _sample_whole(words, image_size, boxes, covered, ranges, attempts, bool(whole))


@public("image.stateless_sample_distorted_bounding_box", "compat.v1.image.stateless_sample_distorted_bounding_box")
def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A random crop that shows enough of a box, the same for the same seed: `begin` and `size` for `tf.slice`, its box.

    >>> boxes = tf.constant([[[0.1, 0.2, 0.6, 0.7], [0.3, 0.3, 0.9, 0.8]]])
    >>> tf.image.stateless_sample_distorted_bounding_box([20, 30, 3], boxes, seed=[1, 2], min_object_covered=0.3).begin
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([ 3, 12,  0], dtype=int32)>
    """
    attempts = 100 if max_attempts is None else max_attempts
    key, counter, _ = key_counter_of(seed)
    ranges = aspect_ratio_range, area_range
    covered, whole = min_object_covered, use_image_if_no_bounding_boxes
    return _draw_sample(key, counter, image_size, bounding_boxes, covered, ranges, attempts, whole)


@public("image.sample_distorted_bounding_box")
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A random crop that shows enough of a box: `begin` and `size` for `tf.slice`, and its own box.

    >>> begin, size, box = tf.image.sample_distorted_bounding_box([20, 30, 3], [[[0., 0., 1., 1.]]], seed=1)
    >>> box.shape
    TensorShape([1, 1, 4])
    """
    attempts = 100 if max_attempts is None else max_attempts
    blocks = max(attempts, 0)
    # Without a seed of its own it does not follow the global one.
    key, counter = draw("SampleDistortedBoundingBoxV2", seed, blocks) if seed else draw_unseeded(blocks)
    ranges = aspect_ratio_range, area_range
    covered, whole = min_object_covered, use_image_if_no_bounding_boxes
    return _draw_sample(key, counter, image_size, bounding_boxes, covered, ranges, attempts, whole)
