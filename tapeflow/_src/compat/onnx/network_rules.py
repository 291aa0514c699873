"""How convolutions, pools, softmax, images, calls, branches and loops are written as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.onnx.graph_builder import Builder, Node, converts

_TO_FIRST, _TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]  # NHWC to NCHW, and back


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _windows(n: Node, size: list[int] | None = None) -> dict[str, Any]:
    """Strides, dilations and padding as ONNX has them; only NHWC is written by Tapeflow."""
    if _text(n.attribute("data_format", "NHWC")) != "NHWC":
        raise n.refused("channels first")
    found: dict[str, Any] = {"strides": n.attribute("strides")[1:3]}
    if size is None:
        found["dilations"] = (n.attribute("dilations") or [1] * 4)[1:3]
    padding = _text(n.attribute("padding"))
    if padding == "EXPLICIT":
        pairs = n.attribute("explicit_paddings")[2:6]
        found["pads"] = [pairs[0], pairs[2], pairs[1], pairs[3]]
    else:
        found["auto_pad"] = "SAME_UPPER" if padding == "SAME" else "VALID"
    return found


def _first(b: Builder, x: str) -> str:
    return str(b.add("Transpose", x, perm=_TO_FIRST))


def _last(b: Builder, x: str) -> str:
    return str(b.add("Transpose", x, perm=_TO_LAST))


@converts("Conv2D")
def _conv(n: Node) -> Any:
    b = n.b
    filters = b.add("Transpose", n[1], perm=[3, 2, 0, 1])
    return _last(b, b.add("Conv", _first(b, n[0]), filters, **_windows(n)))


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


@converts("Conv2DBackpropInput")
def _transposed_conv(n: Node) -> Any:
    b, sizes = n.b, n.known(0)
    filters = b.add("Transpose", n[1], perm=[3, 2, 0, 1])
    options = _windows(n)
    found = b.add("ConvTranspose", _first(b, n[2]), filters, **options)
    if sizes is not None:
        return _last(b, found)
    # The result may be larger than what was asked for by less than a stride: it is cut to the size.
    wanted = n.ints64(0)
    hw = b.add("Slice", wanted, b.ints([1]), b.ints([3]), b.ints([0]))
    return b.add("Slice", _last(b, found), b.ints([0, 0]), hw, b.ints([1, 2]))


@converts("MaxPool", "AvgPool")
def _pool(n: Node) -> Any:
    b, size = n.b, n.attribute("ksize")[1:3]
    op = "MaxPool" if n.op == "MaxPool" else "AveragePool"
    return _last(b, b.add(op, _first(b, n[0]), kernel_shape=size, **_windows(n, size)))


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
