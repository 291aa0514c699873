"""How convolutions, pools, softmax, images, calls, branches and loops are written as ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src.compat.onnx.graph_builder import Builder, Node, converts


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _windows(n: Node, has_dilations: bool = True) -> dict[str, Any]:
    """Strides, dilations and padding as ONNX has them; only channels last are written by Tapeflow."""
    if _text(n.attribute("data_format", "NHWC")) not in ("NHWC", "NDHWC"):
        raise n.refused("channels first")
    found: dict[str, Any] = {"strides": n.attribute("strides")[1:-1]}
    if has_dilations:
        found["dilations"] = n.attribute("dilations", [1] * 5)[1 : len(found["strides"]) + 1]
    padding = _text(n.attribute("padding"))
    if padding == "EXPLICIT":
        pairs = n.attribute("explicit_paddings")[2:-2]
        found["pads"] = [*pairs[::2], *pairs[1::2]]
    else:
        found["auto_pad"] = "SAME_UPPER" if padding == "SAME" else "VALID"
    return found


def _first(b: Builder, x: str, rank: int = 4) -> str:
    """Channels last become channels first."""
    return str(b.add("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]))


def _last(b: Builder, x: str, rank: int = 4) -> str:
    return str(b.add("Transpose", x, perm=[0, *range(2, rank), 1]))


def _filters(b: Builder, filters: str, rank: int) -> str:
    """Filters (..., inputs, outputs) become (outputs, inputs, ...)."""
    return str(b.add("Transpose", filters, perm=[rank - 1, rank - 2, *range(rank - 2)]))


@converts("Conv2D", "Conv3D")
def _conv(n: Node) -> Any:
    b, rank = n.b, len(n.attribute("strides"))
    options = {**_windows(n), "group": n.attribute("_groups", 1)}
    return _last(b, b.add("Conv", _first(b, n[0], rank), _filters(b, n[1], rank), **options), rank)


@converts("DepthwiseConv2dNative")
def _depthwise(n: Node) -> Any:
    """Filters (H, W, channels, multiplier) become groups of one channel each."""
    b = n.b
    known = n.known(1)
    if known is None:
        raise n.refused("filters that are computed")
    height, width, channels, multiplier = known.shape
    filters = b.constant(known.transpose(2, 3, 0, 1).reshape(channels * multiplier, 1, height, width))
    return _last(b, b.add("Conv", _first(b, n[0]), filters, group=channels, **_windows(n)))


@converts("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _transposed_conv(n: Node) -> Any:
    b, rank, sizes, filters = n.b, len(n.attribute("strides")), n.known(0), n.known(1)
    options = _windows(n)
    if options.pop("auto_pad", "") == "SAME_UPPER":
        if filters is None:
            raise n.refused("filters that are computed")
        options |= _transposed_padding(filters.shape, sizes, options)
    found = _last(b, b.add("ConvTranspose", _first(b, n[2], rank), _filters(b, n[1], rank), **options), rank)
    if "pads" not in options and sizes is not None:
        return _filled_to(b, found, b.ints(sizes), rank)
    # The result may differ from what was asked for by less than a stride.
    return _filled_to(b, found, n.ints64(0), rank)


def _transposed_padding(shape: Any, sizes: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What TensorFlow's padding SAME takes away in front and behind."""
    before, after, more = [], [], []
    for i, (stride, dilation) in enumerate(zip(options["strides"], options["dilations"])):
        extent = (shape[i] - 1) * dilation + 1
        # A size that is computed is taken for a multiple of the stride.
        size = stride if sizes is None else int(sizes[i + 1])
        steps = -(-size // stride)
        total = max((steps - 1) * stride + extent - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
        more.append(max(size - (steps - 1) * stride - extent, 0))
    return {"pads": before + after, "output_padding": more}


def _filled_to(b: Builder, y: str, sizes: str, rank: int) -> str:
    """The result with the size that was asked for: zeros are added or elements are cut behind."""
    spatial = [b.ints([1]), b.ints([rank - 1]), b.ints([0])]
    wanted = b.add("Slice", sizes, *spatial)
    missing = b.add("Sub", wanted, b.add("Slice", b.add("Shape", y), *spatial))
    zeros = b.ints([0] * (rank + 1))
    pads = b.add("Concat", zeros, b.add("Max", missing, b.ints([0])), b.ints([0]), axis=0)
    axes = b.ints(list(range(1, rank - 1)))
    return str(b.add("Slice", b.add("Pad", y, pads), b.ints([0] * (rank - 2)), wanted, axes))


@converts("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
def _pool(n: Node) -> Any:
    b, size = n.b, n.attribute("ksize")[1:-1]
    op, rank = "MaxPool" if n.op.startswith("Max") else "AveragePool", len(size) + 2
    return _last(b, b.add(op, _first(b, n[0], rank), kernel_shape=size, **_windows(n, False)), rank)


@converts("SpaceToBatchND")
def _space_to_batch(n: Node) -> Any:
    """Blocks of the spatial dimensions move into the batch."""
    b, blocks = n.b, [int(size) for size in n.required(1, "blocks")]
    count = len(blocks)
    pairs = b.add("Transpose", n.ints64(2), perm=[1, 0])
    halves = [b.add("Reshape", b.add("Gather", pairs, b.ints(i), axis=0), b.ints([-1])) for i in (0, 1)]
    axes = b.ints(list(range(1, count + 1)))
    x = b.add("Pad", n[0], b.add("Concat", *halves, axis=0), "", axes)
    batch, sizes, rest = _parts(b, x, count)
    each = b.add("Div", sizes, b.ints(blocks))
    dims = [batch]
    for i in range(count):
        dims += [b.add("Gather", each, b.ints([i]), axis=0), b.ints([blocks[i]])]
    x = b.add("Reshape", x, b.add("Concat", *dims, b.ints([-1]), axis=0))
    perm = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), 2 * count + 1]
    x = b.add("Transpose", x, perm=perm)
    many = b.add("Mul", batch, b.ints([math.prod(blocks)]))
    return b.add("Reshape", x, b.add("Concat", many, each, rest, axis=0))


@converts("BatchToSpaceND")
def _batch_to_space(n: Node) -> Any:
    """Blocks move from the batch back, and what was added is cut."""
    b, blocks = n.b, [int(size) for size in n.required(1, "blocks")]
    count = len(blocks)
    batch, sizes, rest = _parts(b, n[0], count)
    few = b.add("Div", batch, b.ints([math.prod(blocks)]))
    x = b.add("Reshape", n[0], b.add("Concat", b.ints(blocks), few, sizes, b.ints([-1]), axis=0))
    perm = [count]
    for i in range(count):
        perm += [count + 1 + i, i]
    x = b.add("Transpose", x, perm=[*perm, 2 * count + 1])
    whole = b.add("Mul", sizes, b.ints(blocks))
    x = b.add("Reshape", x, b.add("Concat", few, whole, rest, axis=0))
    cuts = n.ints64(2)
    starts, behind = (b.add("Gather", cuts, b.ints(i), axis=1) for i in (0, 1))
    return b.add("Slice", x, starts, b.add("Sub", whole, behind), b.ints(list(range(1, count + 1))))


def _parts(b: Builder, x: str, count: int) -> tuple[str, str, str]:
    """The batch, `count` sizes, and the other dimensions of a tensor."""
    shape = b.add("Shape", x)
    bounds = [(0, 1), (1, count + 1), (count + 1, 2**40)]
    batch, sizes, rest = (b.add("Slice", shape, b.ints([i]), b.ints([j]), b.ints([0])) for i, j in bounds)
    return batch, sizes, rest


@converts("BiasAdd")
def _bias(n: Node) -> Any:
    return n.b.add("Add", n[0], n[1])


@converts("Softmax", "LogSoftmax")
def _softmax(n: Node) -> Any:
    return n.b.add(n.op, n[0], axis=-1)


@converts("ResizeBilinear", "ResizeNearestNeighbor")
def _resize(n: Node) -> Any:
    b = n.b
    if not n.attribute("half_pixel_centers", False):
        raise n.refused("corners as centers")
    x = _first(b, n[0])
    batch = b.add("Slice", b.add("Shape", x), b.ints([0]), b.ints([2]), b.ints([0]))
    sizes = b.add("Concat", batch, n.ints64(1), axis=0)
    mode = "linear" if n.op == "ResizeBilinear" else "nearest"
    options: dict[str, Any] = {"nearest_mode": "floor"} if mode == "nearest" else {}
    found = b.add("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode="half_pixel", **options)
    return _last(b, b.add("Cast", found, to=b.onnx.TensorProto.FLOAT))


# ---- functions


@converts("PartitionedCall", "StatefulPartitionedCall")
def _call(n: Node) -> Any:
    return n.b.run(n.b.library[n.attribute("f")], n.inputs)


def _graph(outer: Builder, name: str, inner: Builder, outputs: list[str], dtypes: list[Any], inputs: Any = ()) -> Any:
    """The graph of a branch or body. Its outputs are values of its own."""
    names = [inner.add("Identity", output) for output in outputs]
    info = outer.onnx.helper.make_empty_tensor_value_info
    return outer.onnx.helper.make_graph(
        inner.nodes,
        name,
        [outer.onnx.helper.make_tensor_value_info(n, outer.onnx_dtype(t), shape) for n, t, shape in inputs],
        [info(n) for n in names],
        inner.initializers,
    )


@converts("If", "StatelessIf")
def _if(n: Node) -> Any:
    graphs = []
    for key in ("then_branch", "else_branch"):
        inner = n.b.inner()
        outputs = inner.run(n.b.library[n.attribute(key)], n.inputs[1:])
        graphs.append(_graph(n.b, n.b.names.fresh(key), inner, outputs, []))
    count = len(n.message.attr["Tout"].list.type)
    found = n.b.add("If", n[0], outputs=count, then_branch=graphs[0], else_branch=graphs[1])
    return found if count > 1 else [found]


@converts("While", "StatelessWhile")
def _while(n: Node) -> Any:
    """A loop carries everything that the function of its body takes and gives; variables stay what they are."""
    b = n.b
    cond, body = (b.library[n.attribute(key)] for key in ("cond", "body"))
    kinds = [arg.type for arg in body.signature.input_arg]
    travels = [i for i, kind in enumerate(kinds) if kind != 20]  # not the handle of a variable
    (first,) = b.run(cond, n.inputs)
    inner = b.inner()
    for name in [n.inputs[i] for i in travels]:
        inner.constant_by_name.pop(name, None)
    state = [b.names.fresh("state") for _ in travels]
    given = list(n.inputs)
    for i, name in zip(travels, state):
        given[i] = name
    results = inner.run(body, given)
    after = list(n.inputs)
    for i in travels:
        after[i] = results[i]
    (again,) = inner.run(cond, after)
    iteration, goes_on = b.names.fresh("iteration"), b.names.fresh("condition")
    inputs: list[Any] = [
        (iteration, "int64", []),
        (goes_on, "bool", []),
        *((s, kinds[i], None) for s, i in zip(state, travels)),
    ]
    graph = _graph(b, b.names.fresh("body"), inner, [again, *(results[i] for i in travels)], [], inputs)
    found = b.add("Loop", "", first, *(n.inputs[i] for i in travels), outputs=len(travels), body=graph)
    outputs = list(n.inputs)
    for i, name in zip(travels, found if len(travels) > 1 else [found]):
        outputs[i] = name
    return outputs


@converts("FusedBatchNormV3")
def _batch_norm(n: Node) -> Any:
    if n.attribute("is_training", True):
        raise n.refused("the statistics of a batch")
    b = n.b
    found = b.add("BatchNormalization", _first(b, n[0]), *n.inputs[1:5], epsilon=float(n.attribute("epsilon", 1e-4)))
    return [_last(b, found), n[3], n[4], n[3], n[4], n[3]]


def shape_of(dims: list[int | None]) -> list[Any]:
    """The dimensions of an input or output; unknown ones have names."""
    return [f"dim_{i}" if d is None else int(np.int64(d)) for i, d in enumerate(dims)]
