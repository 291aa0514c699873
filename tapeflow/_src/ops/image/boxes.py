"""Boxes in images: suppression of overlapping boxes, drawing, glimpses."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.ops.random.streams import normal, uniform
from tapeflow._src.types.dtypes import float32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec

CombinedNonMaxSuppression = namedtuple(
    "CombinedNonMaxSuppression", ["nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"]
)


def _suppress(
    boxes: Any, scores: Any, size: Any, iou: Any, score: Any, sigma: float = 0.0, padded: bool = False
) -> list[Any]:
    boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
    boxes, scores = cast(boxes, float32), cast(scores, float32)
    if not 0 <= int(size) < 2**31:
        raise InvalidArgumentError.of(
            f"non_max_suppression: output size must be non-negative and fit into an int32; got {int(size)}"
        )
    return [*primitives.NonMaxSuppressionV5(boxes, scores, int(size), float(iou), float(score), float(sigma), padded)]


@public("image.non_max_suppression", "compat.v1.image.non_max_suppression")
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Any:
    """The numbers of the best boxes (y1, x1, y2, x2) of which no two overlap by more than `iou_threshold`.

    >>> tf.image.non_max_suppression([[0., 0., 1., 1.], [0., 0., 1., 1.]], [0.5, 0.9], 2)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>
    """
    return _suppress(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]


@public("image.non_max_suppression_with_scores", "compat.v1.image.non_max_suppression_with_scores")
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The numbers of the best boxes and their scores; with `soft_nms_sigma`, scores fade with overlap instead.

    >>> tf.image.non_max_suppression_with_scores([[0., 0., 1., 1.], [0., 0., 1., 1.]], [0.5, 0.9], 2)[1]
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.9], dtype=float32)>
    """
    indices, kept, _ = _suppress(boxes, scores, max_output_size, iou_threshold, score_threshold, float(soft_nms_sigma))
    return indices, kept


@public("image.non_max_suppression_overlaps", "compat.v1.image.non_max_suppression_overlaps")
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The numbers of the best boxes, by a table of how much each two overlap.

    >>> tf.image.non_max_suppression_overlaps([[1., 0.9], [0.9, 1.]], [0.5, 0.9], 2)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>
    """
    return primitives.NonMaxSuppressionWithOverlaps(
        overlaps, scores, int(max_output_size), float(overlap_threshold), float(score_threshold)
    )


@public("image.non_max_suppression_padded", "compat.v1.image.non_max_suppression_padded")
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """The numbers of the best boxes, filled up with 0 if wanted, and how many there are; also for batches.

    >>> tf.image.non_max_suppression_padded([[0., 0., 1., 1.]], [0.9], 2, pad_to_max_output_size=True)
    (<tf.Tensor: shape=(2,), dtype=int32, numpy=array([0, 0], dtype=int32)>, <tf.Tensor: shape=(), dtype=int32,
     numpy=1>)
    """
    boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
    if boxes.shape.rank == 2:
        indices, _, valid = _suppress(
            boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0, pad_to_max_output_size
        )
        return indices, valid
    if boxes.shape.rank < 2 or scores.shape.rank < 1:
        raise ValueError(
            f"non_max_suppression_padded: boxes must have rank 2 or more and scores 1 or more; got {boxes.shape} and "
            f"{scores.shape}"
        )
    batch = boxes.shape.as_list()[:-2]
    size = int(max_output_size)
    flat_boxes = primitives.Unpack(primitives.Reshape(boxes, [int(np.prod(batch)), *boxes.shape.as_list()[-2:]]), -1, 0)
    flat_scores = primitives.Unpack(primitives.Reshape(scores, [int(np.prod(batch)), scores.shape[-1]]), -1, 0)
    rows = [_suppress(b, s, size, iou_threshold, score_threshold, 0.0, True) for b, s in zip(flat_boxes, flat_scores)]
    indices = primitives.Reshape(primitives.Pack([row[0] for row in rows], 0), [*batch, size])
    return indices, primitives.Reshape(primitives.Pack([row[2] for row in rows], 0), batch)


@public("image.combined_non_max_suppression", "compat.v1.image.combined_non_max_suppression")
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Suppression within each class of each image, and the best boxes of all classes.

    >>> tf.image.combined_non_max_suppression([[[[0., 0., 1., 1.]]]], [[[0.9]]], 1, 1).nmsed_scores
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[0.9]], dtype=float32)>
    """
    return CombinedNonMaxSuppression(
        *primitives.CombinedNonMaxSuppression(
            boxes,
            scores,
            int(max_output_size_per_class),
            int(max_total_size),
            float(iou_threshold),
            float(score_threshold),
            bool(pad_per_class),
            bool(clip_boxes),
        )
    )


# ---- drawing

_COLORS = [
    [1, 1, 0, 1],
    [0, 0, 1, 1],
    [1, 0, 0, 1],
    [0, 1, 0, 1],
    [0.5, 0, 0.5, 1],
    [0.5, 0.5, 0, 1],
    [0.5, 0, 0, 1],
    [0, 0, 0.5, 1],
    [0, 1, 1, 1],
    [1, 0, 1, 1],
]


@public("image.draw_bounding_boxes")
def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """Images (N, H, W, C) with the borders of boxes (N, boxes, 4) drawn on them, in turn with the given colors.

    >>> tf.image.draw_bounding_boxes(tf.zeros([1, 1, 2, 1]), [[[0., 0., 0., 0.]]], [[5.]])[0, 0, :, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([5., 0.], dtype=float32)>
    """
    images = of_rank(convert_to_tensor(images), 4)
    boxes = of_rank(convert_to_tensor(boxes, dtype_hint=float32), 3)
    if images.shape.rank != 4 or images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError.of(
            f"image.draw_bounding_boxes: images must be 4-D with 1, 3 or 4 channels; got {images.shape.as_list()}",
        )
    if boxes.shape.rank != 3 or boxes.shape[2] != 4 or boxes.shape[0] != images.shape[0]:
        raise InvalidArgumentError.of(
            f"image.draw_bounding_boxes: boxes must be [batch, boxes, 4]; got {boxes.shape.as_list()}"
        )
    _, height, width, depth = images.shape.as_list()
    if colors is not None and convert_to_tensor(colors).shape.rank != 2:
        raise InvalidArgumentError.of(
            f"image.draw_bounding_boxes: colors must be a 2-D matrix; got {convert_to_tensor(colors).shape}"
        )
    if colors is None or convert_to_tensor(colors).shape[0] == 0:
        table = np.ones((len(_COLORS), 1)) if depth == 1 else np.array(_COLORS)[:, :depth]
        palette = convert_to_tensor(table, dtype=float32)
    else:
        palette = convert_to_tensor(colors, dtype_hint=float32)
        if palette.shape.rank != 2 or palette.shape[1] < depth:
            raise InvalidArgumentError.of(
                f"image.draw_bounding_boxes: colors must have {depth} columns; got {palette.shape.as_list()}",
            )
        palette = palette[:, :depth]
    # Like a cast to int, a position between two pixels goes towards 0.
    scale = convert_to_tensor([height - 1, width - 1, height - 1, width - 1], dtype=float32)
    corners = cast(boxes * scale, int64)
    rows, columns = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
    for number in range(boxes.shape[1]):
        top, left, bottom, right = (primitives.Reshape(corners[:, number, k], [-1, 1, 1]) for k in range(4))
        inside_rows = primitives.LogicalAnd(rows >= top, rows <= bottom)
        inside_columns = primitives.LogicalAnd(columns >= left, columns <= right)
        on_edge = primitives.LogicalOr(
            primitives.LogicalAnd(_either(rows, top, bottom), inside_columns),
            primitives.LogicalAnd(_either(columns, left, right), inside_rows),
        )
        valid = primitives.LogicalAnd(bottom >= top, right >= left)
        edge = primitives.ExpandDims(primitives.LogicalAnd(on_edge, valid), 3)
        color = cast(palette[number % palette.shape[0]], images.dtype)
        images = primitives.SelectV2(edge, color, images)
    return images


def _either(positions: Any, first: Any, second: Any) -> Tensor:
    return primitives.LogicalOr(primitives.Equal(positions, first), primitives.Equal(positions, second))


# ---- glimpses


@public("image.extract_glimpse")
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """A window of the given size of each image, around the given place; what lies outside is noise or 0.

    >>> tf.image.extract_glimpse(tf.ones([1, 4, 4, 1]), [2, 2], [[0., 0.]]).shape
    TensorShape([1, 2, 2, 1])
    """

    def corner(place: Any, length: int, window: int) -> Any:
        if normalized:
            place = place * length
            return place / 2 + (length / 2 - window / 2) if centered else place
        return place + length / 2 if centered else place

    return glimpse(input, size, offsets, noise, corner)


def _glimpse_spec(input: Any, size: Any, offsets: Any, *_: Any, **__: Any) -> TensorSpec:
    """What is known of the windows while the sizes of the images are not."""
    x, places = convert_to_tensor(input), convert_to_tensor(offsets, dtype_hint=float32)
    if x.shape.rank not in (None, 4) or places.shape.rank not in (None, 2):
        raise ValueError(
            f"image.extract_glimpse: input must be 4-dimensional and offsets [batch, 2]; got {x.shape}, {places.shape}"
        )
    dims = x.shape.with_rank(4)
    batch = dims[:1].merge_with(places.shape.with_rank(2)[:1])[0]
    window = _core.known_value(convert_to_tensor(size))
    return TensorSpec([batch, *([None, None] if window is None else dims_of(window)), dims[3]], x.dtype)


extract_glimpse.result_specs = _glimpse_spec  # type: ignore[attr-defined]


def glimpse(input: Any, size: Any, offsets: Any, noise: str, corner: Callable[..., Any]) -> Tensor:
    """Windows whose first row and column are `corner(offset, length, window)`."""
    x = convert_to_tensor(input)
    offsets = convert_to_tensor(offsets, dtype_hint=float32)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"image.extract_glimpse: input must be 4-dimensional; got {x.shape.as_list()}")
    if offsets.shape.as_list() != [x.shape[0], 2]:
        raise InvalidArgumentError.of(
            f"image.extract_glimpse: offsets must be [batch, 2]; got {offsets.shape.as_list()}"
        )
    if noise not in ("uniform", "gaussian", "zero"):
        raise ValueError(f"image.extract_glimpse: noise must be 'uniform', 'gaussian' or 'zero'; got {noise!r}")
    lengths, window = x.shape.as_list()[1:3], [int(s) for s in np.atleast_1d(size)]
    if len(window) != 2:
        raise InvalidArgumentError.of(
            f"image.extract_glimpse: input must be a vector of size 2 (height, width); got {window}"
        )
    y, seen = x, None
    for axis in (0, 1):
        place = corner(offsets[:, axis], lengths[axis], window[axis])
        cells = primitives.ExpandDims(cast(place, int64), 1) + np.arange(window[axis])[None, :]
        inside = primitives.LogicalAnd(cells >= 0, cells < lengths[axis])
        cells = primitives.SelectV2(inside, cells, cast(0, int64))
        if axis == 0:
            y, seen = gather(y, cells, axis=1, batch_dims=1), primitives.ExpandDims(inside, 2)
        else:
            turned = gather(primitives.Transpose(y, [0, 2, 1, 3]), cells, axis=1, batch_dims=1)
            y, seen = (
                primitives.Transpose(turned, [0, 2, 1, 3]),
                primitives.LogicalAnd(seen, primitives.ExpandDims(inside, 1)),
            )
    return primitives.SelectV2(primitives.ExpandDims(seen, 3), y, _noise(noise, primitives.StopGradient(x), y))


def _noise(kind: str, x: Any, like: Any) -> Any:
    """Numbers from the range, or with the mean and the deviation, of the elements of `x`."""
    if kind == "zero":
        return cast(0, like.dtype)
    if kind == "uniform":
        least = primitives.Min(x, None, False)
        return least + (primitives.Max(x, None, False) - least) * uniform(like.shape, dtype=like.dtype)
    mean = primitives.Mean(x, None, False)
    deviation = primitives.Sqrt(primitives.Mean(primitives.SquaredDifference(x, mean), None, False))
    return mean + deviation * normal(like.shape, dtype=like.dtype)
