"""How Fourier transforms and tables are written as ONNX. Complex tensors get a last axis: real and imaginary part."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.onnx.graph_builder import Builder, Node, converts


def _transform(b: Builder, x: str, length: str, parts: int, onesided: bool) -> str:
    """The transform of the last axis of a real tensor (`parts` 1) or of a complex one (2)."""
    shape = b.add("Shape", x)
    ends = (0, -1) if parts == 1 else (0, -2)
    front = b.add("Slice", shape, b.ints(ends[:1]), b.ints(ends[1:]), b.ints([0]))
    size = b.add("Slice", shape, b.ints(ends[1:]), b.ints([2**40 if parts == 1 else -1]), b.ints([0]))
    rows = b.add("Reshape", x, b.add("Concat", b.ints([-1]), size, b.ints([parts]), axis=0))
    found = b.add("DFT", rows, length, axis=1, onesided=int(onesided))
    last = b.add("Slice", b.add("Shape", found), b.ints([1]), b.ints([3]), b.ints([0]))
    return str(b.add("Reshape", found, b.add("Concat", front, last, axis=0)))


@converts("RFFT")
def _rfft(n: Node) -> Any:
    length = n.b.add("Squeeze", n.ints64(1))
    return _transform(n.b, n[0], length, 1, True)


@converts("FFT")
def _fft(n: Node) -> Any:
    return _transform(n.b, n[0], "", 2, False)


@converts("Real", "Imag")
def _part(n: Node) -> Any:
    return n.b.add("Gather", n[0], n.b.ints(0 if n.op == "Real" else 1), axis=-1)


@converts("ComplexAbs")
def _magnitude(n: Node) -> Any:
    return n.b.add("ReduceL2", n[0], n.b.ints([-1]), keepdims=0)


@converts("Complex")
def _complex(n: Node) -> Any:
    b = n.b
    shape = b.add("Shape", b.add("Add", n[0], n[1]))
    parts = [b.add("Unsqueeze", b.add("Expand", x, shape), b.ints([-1])) for x in n.inputs]
    return b.add("Concat", *parts, axis=-1)


@converts("LookupTableFindV2")
def _lookup(n: Node) -> Any:
    """A table that does not change, as the encoder of labels of ONNX's domain of machine learning."""
    b, table = n.b, n.b.table_by_name.get(n[0])
    if table is None:
        raise n.refused("a table that is computed")
    keys, values = (np.asarray(tensor.numpy()) for tensor in table.export())
    default = np.asarray(n.required(2, "a default value"))
    kinds = {"O": "strings", "i": "int64s", "f": "floats"}
    if keys.dtype.kind not in kinds or values.dtype.kind not in kinds:
        raise n.refused(f"keys of {keys.dtype} and values of {values.dtype}")
    options = {f"keys_{kinds[keys.dtype.kind]}": keys.tolist(), f"values_{kinds[values.dtype.kind]}": values.tolist()}
    options[f"default_{kinds[values.dtype.kind][:-1]}"] = default.item()
    x = b.add("Cast", n[1], to=b.onnx.TensorProto.INT64) if keys.dtype.kind == "i" else n[1]
    y = b.add("LabelEncoder", x, domain="ai.onnx.ml", **options)
    return y if values.dtype.kind == "O" else b.add("Cast", y, to=b.onnx_dtype(n.dtype("Tout")))
