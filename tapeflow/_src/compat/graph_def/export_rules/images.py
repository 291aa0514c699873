"""How images whose size is known only when the graph runs are resized: by TensorFlow's own operations."""

from __future__ import annotations

import inspect
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.python import as_ref, rule_by_function
from tapeflow._src.compat.graph_def.exporter import ExportedNode
from tapeflow._src.compat.graph_def.inlining import inlined
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.image import resize
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape

_OPERATION = {
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
}
_KERNEL = {"bilinear": "triangle", "bicubic": "keyscubic"}


def _resize(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ref:
    bound = inspect.signature(resize.resize).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    images, method = given["images"], given["method"]
    if not isinstance(images, Ref) or images.shape.rank not in (3, 4):
        raise UnimplementedError.of(f"{n.writer.where}: image.resize of images of unknown rank cannot be written")
    e, single = n.e, images.shape.rank == 3
    if single:
        shape = TensorShape([1]).concatenate(images.shape)
        images = e.one("ExpandDims", images, e.ints(0))._replace(shape=shape)
    size = _size(n, given["size"])
    if given["preserve_aspect_ratio"]:
        (size,) = inlined(n, _fitting, [images, size])
    if method in _OPERATION and not (given["antialias"] and method in _KERNEL):
        attributes = {} if method == "area" else {"half_pixel_centers": True}
        y = e.one(_OPERATION[method], images, size, **attributes)
    else:
        (scale,) = inlined(n, _scale, [images, size])
        source = images if images.dtype.is_floating else e.one("Cast", images, DstT="float32")
        kernel = _KERNEL.get(method, method)
        zeros = e.constant([0.0, 0.0], "float32")
        y = e.one("ScaleAndTranslate", source, size, scale, zeros, kernel_type=kernel, antialias=given["antialias"])
    return e.one("Squeeze", y, squeeze_dims=[0]) if single else y


def _size(n: ExportedNode, size: Any) -> Ref:
    parts = list(size) if isinstance(size, list | tuple) and not isinstance(size, Ref) else [size]
    if any(isinstance(part, Ref) for part in parts) and not isinstance(size, Ref):
        ref = n.e.one("Pack", [as_ref(n.e, part, "int32") for part in parts], axis=0)
    else:
        ref = as_ref(n.e, size, None)
    ref = ref if ref.dtype.name == "int32" else n.e.one("Cast", ref, DstT="int32")
    return ref._replace(shape=TensorShape([2]))


def _fitting(images: Any, size: Any) -> Any:
    """The largest size of the same ratio that fits."""
    now = cast(primitives.Shape(images)[1:3], "float32")
    return cast(primitives.Round(primitives.Min(cast(size, "float32") / now) * now), "int32")


def _scale(images: Any, size: Any) -> Any:
    return cast(size, "float32") / cast(primitives.Shape(images)[1:3], "float32")


rule_by_function[resize.resize] = _resize


def _legacy(function: Any, op: str) -> None:
    def write(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ref:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        attributes = {key: given[key] for key in ("align_corners", "half_pixel_centers") if key in given}
        return n.e.one(op, as_ref(n.e, given["images"], None), _size(n, given["size"]), **attributes)

    rule_by_function[function] = write


_legacy(resize.resize_bilinear, "ResizeBilinear")
_legacy(resize.resize_bicubic, "ResizeBicubic")
_legacy(resize.resize_nearest_neighbor, "ResizeNearestNeighbor")
_legacy(resize.resize_area, "ResizeArea")


def _crop_and_resize(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ref:
    bound = inspect.signature(resize.crop_and_resize).bind(*args, **kwargs)
    bound.apply_defaults()
    given, e = bound.arguments, n.e
    image, boxes, numbers = (as_ref(e, given[key], None) for key in ("image", "boxes", "box_indices"))
    return e.one(
        "CropAndResize",
        image,
        boxes,
        numbers if numbers.dtype.name == "int32" else e.one("Cast", numbers, DstT="int32"),
        _size(n, given["crop_size"]),
        method=given["method"],
        extrapolation_value=given["extrapolation_value"],
    )


rule_by_function[resize.crop_and_resize] = _crop_and_resize
