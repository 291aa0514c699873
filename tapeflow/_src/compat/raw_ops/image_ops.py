"""Raw operations on images: resizing, cropping, boxes, patches, files."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.io.codecs import image_files
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.image import boxes, color, resize
from tapeflow._src.ops.image.distorted_boxes import (
    sample_distorted_bounding_box,
    stateless_sample_distorted_bounding_box,
)
from tapeflow._src.ops.image.projective import project
from tapeflow._src.types.dtypes import float32

NonMaxSuppressionV4 = namedtuple("NonMaxSuppressionV4", ["selected_indices", "valid_outputs"])
NonMaxSuppressionV5 = namedtuple("NonMaxSuppressionV5", ["selected_indices", "selected_scores", "valid_outputs"])
CombinedNonMaxSuppression = namedtuple(
    "CombinedNonMaxSuppression", ["nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"]
)


def _resize(function: Any) -> Any:
    return lambda images, size, align, centers: function(images, size, align, half_pixel_centers=centers)


def _suppress_4(x: Any, scores: Any, most: Any, overlap: Any, score: Any, padded: bool) -> NonMaxSuppressionV4:
    return NonMaxSuppressionV4(*boxes.non_max_suppression_padded(x, scores, most, overlap, score, padded))


def _suppress_5(
    x: Any, scores: Any, most: Any, overlap: Any, score: Any, sigma: Any, padded: bool
) -> NonMaxSuppressionV5:
    chosen, kept = boxes.non_max_suppression_with_scores(x, scores, most, overlap, score, sigma)
    count = primitives.Shape(chosen, "int32")[0]
    if padded:
        missing = primitives.Pack([0, cast(most, "int32") - count], 0)
        chosen, kept = (primitives.PadV2(t, missing, convert_to_tensor(0, t.dtype)) for t in (chosen, kept))
    return NonMaxSuppressionV5(chosen, kept, count)


def _distorted_box(
    size: Any, given: Any, covered: Any, seed: Any, ratios: Any, areas: Any, attempts: int, whole: bool
) -> Any:
    ranges = list(ratios), list(areas)
    return stateless_sample_distorted_bounding_box(size, given, seed, covered, *ranges, attempts, whole)


def _distorted_box_2(
    size: Any, given: Any, covered: Any, seed: int, seed2: int, ratios: Any, areas: Any, attempts: int, whole: bool
) -> Any:
    ranges = list(ratios), list(areas)
    return sample_distorted_bounding_box(size, given, seed or seed2, covered, *ranges, attempts, whole)


def _combined(*arguments: Any) -> CombinedNonMaxSuppression:
    return CombinedNonMaxSuppression(*boxes.combined_non_max_suppression(*arguments))


def _glimpse(x: Any, size: Any, offsets: Any, centered: bool, normalized: bool, uniform: bool, noise: str) -> Any:
    return boxes.extract_glimpse(x, size, offsets, centered, normalized, noise)


def _contrast(images: Any, factor: Any, low: Any, high: Any) -> Any:
    changed = color.adjust_contrast(cast(images, float32), factor)
    return primitives.Minimum(primitives.Maximum(changed, cast(low, float32)), cast(high, float32))


ROWS: list[tuple[str, str, Any]] = [
    ("AdjustContrast", "images, contrast_factor, min_value, max_value", _contrast),
    (
        "CombinedNonMaxSuppression",
        "boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold, "
        "pad_per_class=False, clip_boxes=True",
        _combined,
    ),
    (
        "CropAndResize",
        "image, boxes, box_ind, crop_size, method='bilinear', extrapolation_value=0",
        "image.crop_and_resize",
    ),
    (
        "DecodeAndCropJpeg",
        "contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, "
        "acceptable_fraction=1, dct_method=''",
        "io.decode_and_crop_jpeg",
    ),
    ("DecodeBmp", "contents, channels=0", "io.decode_bmp"),
    ("DecodeGif", "contents", "io.decode_gif"),
    (
        "DecodeImage",
        "contents, channels=0, dtype='uint8', expand_animations=True",
        lambda contents, channels, dtype, expand: image_files.decode_image(contents, channels, dtype, None, expand),
    ),
    (
        "DecodeJpeg",
        "contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1, "
        "dct_method=''",
        "io.decode_jpeg",
    ),
    ("DecodePng", "contents, channels=0, dtype='uint8'", "io.decode_png"),
    ("DrawBoundingBoxes", "images, boxes", lambda x, places: boxes.draw_bounding_boxes(x, places, None)),
    ("DrawBoundingBoxesV2", "images, boxes, colors", "image.draw_bounding_boxes"),
    (
        "EncodeJpeg",
        "image, format='', quality=95, progressive=False, optimize_size=False, chroma_downsampling=True, "
        "density_unit='in', x_density=300, y_density=300, xmp_metadata=''",
        "io.encode_jpeg",
    ),
    (
        "EncodeJpegVariableQuality",
        "images, quality",
        lambda images, quality: image_files.encode_jpeg(images, quality=quality),
    ),
    ("EncodePng", "image, compression=-1", "io.encode_png"),
    (
        "ExtractGlimpse",
        "input, size, offsets, centered=True, normalized=True, uniform_noise=True, noise='uniform'",
        _glimpse,
    ),
    (
        "ExtractGlimpseV2",
        "input, size, offsets, centered=True, normalized=True, uniform_noise=True, noise='uniform'",
        _glimpse,
    ),
    ("ExtractImagePatches", "images, ksizes, strides, rates, padding", "image.extract_patches"),
    ("ExtractJpegShape", "contents, output_type='int32'", "io.extract_jpeg_shape"),
    (
        "ImageProjectiveTransformV2",
        "images, transforms, output_shape, interpolation, fill_mode='CONSTANT'",
        lambda images, transforms, shape, *modes: project(images, transforms, shape, 0.0, *modes),
    ),
    (
        "ImageProjectiveTransformV3",
        "images, transforms, output_shape, fill_value, interpolation, fill_mode='CONSTANT'",
        project,
    ),
    ("NonMaxSuppression", "boxes, scores, max_output_size, iou_threshold=0.5", "image.non_max_suppression"),
    ("NonMaxSuppressionV2", "boxes, scores, max_output_size, iou_threshold", "image.non_max_suppression"),
    (
        "NonMaxSuppressionV3",
        "boxes, scores, max_output_size, iou_threshold, score_threshold",
        "image.non_max_suppression",
    ),
    (
        "NonMaxSuppressionV4",
        "boxes, scores, max_output_size, iou_threshold, score_threshold, pad_to_max_output_size=False",
        _suppress_4,
    ),
    (
        "NonMaxSuppressionV5",
        "boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma, pad_to_max_output_size=False",
        _suppress_5,
    ),
    (
        "NonMaxSuppressionWithOverlaps",
        "overlaps, scores, max_output_size, overlap_threshold, score_threshold",
        "image.non_max_suppression_overlaps",
    ),
    (
        "SampleDistortedBoundingBoxV2",
        "image_size, bounding_boxes, min_object_covered, seed=0, seed2=0, aspect_ratio_range=[0.75, 1.33], "
        "area_range=[0.05, 1], max_attempts=100, use_image_if_no_bounding_boxes=False",
        _distorted_box_2,
    ),
    (
        "StatelessSampleDistortedBoundingBox",
        "image_size, bounding_boxes, min_object_covered, seed, aspect_ratio_range=[0.75, 1.33], "
        "area_range=[0.05, 1], max_attempts=100, use_image_if_no_bounding_boxes=False",
        _distorted_box,
    ),
    ("ResizeArea", "images, size, align_corners=False", "compat.v1.image.resize_area"),
    ("ResizeBicubic", "images, size, align_corners=False, half_pixel_centers=False", _resize(resize.resize_bicubic)),
    ("ResizeBilinear", "images, size, align_corners=False, half_pixel_centers=False", _resize(resize.resize_bilinear)),
    (
        "ResizeNearestNeighbor",
        "images, size, align_corners=False, half_pixel_centers=False",
        _resize(resize.resize_nearest_neighbor),
    ),
]
