"""How convolutions, pools, normalisation and images are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.attributes import attribute_message
from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes


class Window:
    """The parameters of a convolution or pool, from `first` on, as attributes for tensors of four dimensions or five.

    Images of one dimension get a second one of size 1.
    """

    def __init__(self, n: ExportedNode, first: int, has_size: bool) -> None:
        values = [n.param(first + i) for i in range(5 if has_size else 4)]
        size = list(values.pop(0)) if has_size else []
        strides, padding, explicit, dilations = values
        self.flat = len(strides) == 1
        self.rank = max(len(strides), 2) + 2
        extra = [1] if self.flat else []
        self.size = [1, *extra, *size, 1]
        self.strides = [1, *extra, *strides, 1]
        self.dilations = [1, *extra, *(dilations or [1] * len(strides)), 1]
        self.padding = padding
        self.explicit = [0, 0, *([0, 0] if self.flat else []), *explicit, 0, 0] if padding == "EXPLICIT" else []

    def widened(self, e: Emitter, x: Ref, place: int = 1) -> Ref:
        """A tensor of one spatial dimension with a second one."""
        return e.one("ExpandDims", x, e.ints(place)) if self.flat else x

    def narrowed(self, e: Emitter, y: Ref, place: int = 1) -> Ref:
        """The same tensor without it."""
        return e.one("Squeeze", y, squeeze_dims=[place]) if self.flat else y

    def sizes(self, e: Emitter, sizes: Ref, place: int) -> Ref:
        """A shape with the second dimension."""
        if not self.flat:
            return sizes
        head = e.one("StridedSlice", sizes, e.ints([0]), e.ints([place]), e.ints([1]))
        tail = e.one("StridedSlice", sizes, e.ints([place]), e.ints([0]), e.ints([1]), end_mask=1)
        return e.one("ConcatV2", [head, e.ints([1]), tail], e.ints(0))

    def dims(self) -> str:
        """How TensorFlow's operations call the number of dimensions."""
        return "2D" if self.rank == 4 else "3D"


def conv_attributes(w: Window) -> dict[str, Any]:
    attributes: dict[str, Any] = {"strides": w.strides, "padding": w.padding, "dilations": w.dilations}
    if w.rank == 4:
        attributes["explicit_paddings"] = w.explicit
    return attributes


def _refuse_explicit(n: ExportedNode, w: Window) -> None:
    if w.explicit and w.rank != 4:
        raise n.unsupported("explicit paddings of three dimensions")


@writes("Conv")
def _conv(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    _refuse_explicit(n, w)
    inputs = w.widened(e, n[0]), w.widened(e, n[1], 0)
    return w.narrowed(e, e.one(f"Conv{w.dims()}", *inputs, **conv_attributes(w), **_groups(n)))


def _groups(n: ExportedNode) -> dict[str, Any]:
    """How many groups of channels a convolution has, for formats that do not take it from the shapes."""
    x, filters = n.shape(0), n.shape(1)
    channels, taken = (None, None) if x.rank is None or filters.rank is None else (x[-1], filters[-2])
    if channels is None or not taken or channels == taken:
        return {}
    return {"_groups": attribute_message("int", channels // taken)}


@writes("ConvBackpropInput")
def _conv_input(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    _refuse_explicit(n, w)
    sizes = w.sizes(e, n.tensor(4), 1)
    name = "Conv2DBackpropInput" if w.rank == 4 else "Conv3DBackpropInputV2"
    y = e.one(name, sizes, w.widened(e, n[0], 0), w.widened(e, n[1]), **conv_attributes(w))
    return w.narrowed(e, y)


@writes("ConvBackpropFilter")
def _conv_filter(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    _refuse_explicit(n, w)
    sizes = w.sizes(e, n.tensor(4), 0)
    name = "Conv2DBackpropFilter" if w.rank == 4 else "Conv3DBackpropFilterV2"
    y = e.one(name, w.widened(e, n[0]), sizes, w.widened(e, n[1]), **conv_attributes(w))
    return w.narrowed(e, y, 0)


@writes("DepthwiseConv")
def _depthwise(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    if w.rank != 4:
        raise n.unsupported("three dimensions")
    filters = dilated(e, w.widened(e, n[1], 0), w)
    y = e.one("DepthwiseConv2dNative", w.widened(e, n[0]), filters, **conv_attributes(w) | {"dilations": [1] * 4})
    return w.narrowed(e, y)


def dilated(e: Emitter, filters: Ref, w: Window) -> Ref:
    """Filters with zeros between their weights: the derivatives of TensorFlow's operation know no dilations."""
    down, across = w.dilations[1:3]
    if (down, across) == (1, 1):
        return filters
    shape = e.one("Shape", filters, out_type="int32")
    padded = e.one("ExpandDims", e.one("ExpandDims", filters, e.ints(1)), e.ints(3))
    wide = [[0, 0], [0, down - 1], [0, 0], [0, across - 1], [0, 0], [0, 0]]
    padded = e.one("PadV2", padded, e.ints(wide), e.constant(0, filters.dtype))
    rates = e.ints([down, across, 1, 1])
    joined = e.one("Reshape", padded, e.one("Mul", shape, rates))
    return e.one("Slice", joined, e.ints([0, 0, 0, 0]), dilated_sizes(e, shape, w))


def dilated_sizes(e: Emitter, sizes: Ref, w: Window) -> Ref:
    """The shape of filters with zeros between their weights."""
    rates = e.ints([*w.dilations[1:3], 1, 1])
    return e.one("AddV2", e.one("Mul", e.one("Sub", sizes, e.ints(1)), rates), e.ints(1))


def depthwise_gradient(e: Emitter, w: Window, x: Ref, filters: Ref, dy: Ref, sizes: Ref | None, by_filter: bool) -> Ref:
    """The derivative by the images, or by the filters. `sizes` is the shape of what it is taken by."""
    attributes = conv_attributes(w) | {"dilations": [1, 1, 1, 1]}
    plain = all(d == 1 for d in w.dilations)
    if not by_filter:
        sizes = e.one("Shape", x, out_type="int32") if sizes is None else sizes
        return e.one("DepthwiseConv2dNativeBackpropInput", sizes, dilated(e, filters, w), dy, **attributes)
    sizes = e.one("Shape", filters, out_type="int32") if sizes is None else sizes
    wide = sizes if plain else dilated_sizes(e, sizes, w)
    found = e.one("DepthwiseConv2dNativeBackpropFilter", x, wide, dy, **attributes)
    if plain:
        return found
    steps = e.ints([*w.dilations[1:3], 1, 1])
    return e.one("StridedSlice", found, e.ints([0] * 4), e.ints([0] * 4), steps, begin_mask=15, end_mask=15)


@writes("DepthwiseConvBackpropInput")
def _depthwise_input(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    filters, dy = w.widened(e, n[0], 0), w.widened(e, n[1])
    return w.narrowed(e, depthwise_gradient(e, w, dy, filters, dy, w.sizes(e, n.tensor(4), 1), False))


@writes("DepthwiseConvBackpropFilter")
def _depthwise_filter(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, False)
    x, dy = w.widened(e, n[0]), w.widened(e, n[1])
    return w.narrowed(e, depthwise_gradient(e, w, x, x, dy, w.sizes(e, n.tensor(4), 0), True), 0)


def pool_attributes(n: ExportedNode, w: Window, explicit: bool) -> dict[str, Any]:
    if any(d != 1 for d in w.dilations):
        raise n.unsupported("dilations")
    if w.explicit and not (explicit and w.rank == 4):
        raise n.unsupported("explicit paddings")
    attributes: dict[str, Any] = {"ksize": w.size, "strides": w.strides, "padding": w.padding}
    return attributes | ({"explicit_paddings": w.explicit} if explicit and w.rank == 4 else {})


def _dilated_pool(n: ExportedNode, w: Window) -> Ref:
    """The largest element of each patch: TensorFlow's pools know no dilations."""
    e = n.e
    x = w.widened(e, n[0])
    patches = e.one("ExtractImagePatches", x, ksizes=w.size, strides=w.strides, rates=w.dilations, padding="VALID")
    places = e.one("StridedSlice", e.one("Shape", patches), e.ints([0]), e.ints([3]), e.ints([1]))
    channels = e.one("StridedSlice", e.one("Shape", x), e.ints([3]), e.ints([4]), e.ints([1]))
    rows = e.one("ConcatV2", [places, e.ints([-1]), channels], e.ints(0))
    return e.one("Max", e.one("Reshape", patches, rows), e.ints([3]))


@writes("MaxPool")
def _max_pool(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, True)
    if w.rank == 4 and any(d != 1 for d in w.dilations) and w.padding == "VALID":
        return w.narrowed(e, _dilated_pool(n, w))
    y = e.one("MaxPool" if w.rank == 4 else "MaxPool3D", w.widened(e, n[0]), **pool_attributes(n, w, True))
    return w.narrowed(e, y)


@writes("MaxPoolGrad")
def _max_pool_gradient(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, True)
    attributes = pool_attributes(n, w, True)
    x, dy = w.widened(e, n[0]), w.widened(e, n[1])
    suffix = "" if w.rank == 4 else "3D"
    y = e.one(f"MaxPool{suffix}", x, **attributes)
    return w.narrowed(e, e.one(f"MaxPool{suffix}Grad", x, y, dy, **attributes))


def max_pool_second(n: ExportedNode, w: Window, x: Ref, v: Ref) -> Ref:
    """What `v` holds where each window of `x` is largest. TensorFlow's MaxPoolGradGrad gives zeros with SAME."""
    e, attributes = n.e, pool_attributes(n, w, False)
    x, v = w.widened(e, x), w.widened(e, v)
    if w.rank == 5:
        return e.one("MaxPool3DGradGrad", x, e.one("MaxPool3D", x, **attributes), v, **attributes)
    _, places = e.node("MaxPoolWithArgmax", x, **attributes, include_batch_in_index=True, Targmax="int64")
    return w.narrowed(e, e.one("GatherV2", e.one("Reshape", v, e.ints([-1])), places, e.ints(0)))


@writes("MaxPoolGradGrad")
def _max_pool_second(n: ExportedNode) -> Any:
    return max_pool_second(n, Window(n, 0, True), n[0], n[1])


@writes("AvgPool")
def _avg_pool(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, True)
    y = e.one("AvgPool" if w.rank == 4 else "AvgPool3D", w.widened(e, n[0]), **pool_attributes(n, w, False))
    return w.narrowed(e, y)


@writes("AvgPoolGrad")
def _avg_pool_gradient(n: ExportedNode) -> Any:
    e, w = n.e, Window(n, 0, True)
    name = "AvgPoolGrad" if w.rank == 4 else "AvgPool3DGrad"
    sizes = w.sizes(e, n.tensor(5), 1)
    return w.narrowed(e, e.one(name, sizes, w.widened(e, n[0]), **pool_attributes(n, w, False)))


@writes("MaxPoolWithArgmax")
def _max_pool_with_argmax(n: ExportedNode) -> Any:
    w = Window(n, 0, True)
    if w.flat or w.rank != 4:
        raise n.unsupported("other than two dimensions")
    return n.e.node(n.op, n[0], **pool_attributes(n, w, False), include_batch_in_index=n.param(5), Targmax="int64")


@writes("Moments")
def _moments(n: ExportedNode) -> Any:
    e, axes = n.e, n.tensor(0)
    mean = e.one("Mean", n[0], axes, keep_dims=True)
    deviation = e.one("SquaredDifference", n[0], e.one("StopGradient", mean) if not n.param(1) else mean)
    return [mean, e.one("Mean", deviation, axes, keep_dims=True)]


@writes("Normalize")
def _normalize(n: ExportedNode) -> Any:
    e, (x, mean, variance, scale, offset) = n.e, n.inputs
    factor = e.one("Rsqrt", e.one("AddV2", variance, e.constant(n.param(0), variance.dtype)))
    factor = e.one("Mul", factor, scale)
    shift = e.one("Sub", offset, e.one("Mul", mean, factor))
    return e.one("AddV2", e.one("Mul", x, _like(e, factor, x)), _like(e, shift, x))


def _like(e: Emitter, x: Ref, other: Ref) -> Ref:
    return x if x.dtype == other.dtype else e.one("Cast", x, DstT=other.dtype)


def _resampling(n: ExportedNode, transposed: bool) -> Any:
    """A product with the matrix of the weights, along one axis."""
    weights, starts = (n.writer.constant_value(number) for number in n._numbers[1:3])
    rank = n.shape(0).rank
    axis = n.param(0)
    if weights is None or starts is None or rank is None:
        raise n.unsupported("sizes that are computed")
    axis %= rank
    size = n.param(1) if transposed else n.shape(0)[axis]
    if size is None:
        raise n.unsupported("an unknown size")
    table, begin = np.asarray(weights.numpy()), np.asarray(starts.numpy())
    matrix = np.zeros([len(begin), int(size)], table.dtype)
    for row, start in enumerate(begin):
        for k in range(table.shape[1]):
            if start + k < size:
                matrix[row, start + k] += table[row, k]
    letters = "abcdefgh"[:rank]
    result = letters.replace(letters[axis], "z")
    equation = f"{letters[axis]}z,{letters}->{result}" if transposed else f"z{letters[axis]},{letters}->{result}"
    return n.e.one("Einsum", [_like(n.e, n.e.constant(matrix), n[0]), n[0]], equation=equation)


@writes("Resample")
def _resample(n: ExportedNode) -> Any:
    return _resampling(n, False)


@writes("ResampleTransposed")
def _resample_transposed(n: ExportedNode) -> Any:
    return _resampling(n, True)


def _scalars(n: ExportedNode, *kinds: str) -> list[Ref]:
    return [n.tensor(place, kind) for place, kind in enumerate(kinds)]


@writes("NonMaxSuppressionV5")
def _non_max(n: ExportedNode) -> Any:
    kind = n[0].dtype.name
    given = _scalars(n, "int32", kind, kind, kind)
    return n.e.node(n.op, n[0], n[1], *given, pad_to_max_output_size=n.param(4))


@writes("NonMaxSuppressionWithOverlaps")
def _non_max_overlaps(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], *_scalars(n, "int32", "float32", "float32"))


@writes("CombinedNonMaxSuppression")
def _combined_non_max(n: ExportedNode) -> Any:
    given = _scalars(n, "int32", "int32", "float32", "float32")
    return n.e.node(n.op, n[0], n[1], *given, pad_per_class=n.param(4), clip_boxes=n.param(5))
