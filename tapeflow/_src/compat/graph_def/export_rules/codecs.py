"""How functions on encoded images, sets of features and sparse tensors as text are written."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.features import refused, writes_function
from tapeflow._src.compat.graph_def.export_rules.python import Parts, as_ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode
from tapeflow._src.io import serialization
from tapeflow._src.io.codecs import image_files
from tapeflow._src.ops.nn import convolution_gradients, ctc, morphology
from tapeflow._src.ops.ragged import construction
from tapeflow._src.ops.sparse import binary
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape

_HASH_KEY = 0xDECAFCAFFE  # what TensorFlow begins a hash with

# ---- images


@writes_function(image_files.is_jpeg)
def _is_jpeg(n: ExportedNode, given: dict[str, Any]) -> Ref:
    start = n.e.one("Substr", as_ref(n.e, given["contents"], "string"), n.e.ints(0), n.e.ints(3))
    return n.e.one("Equal", start, n.e.constant(b"\xff\xd8\xff", "string"))


_OF_JPEG = ("format", "progressive", "optimize_size", "chroma_downsampling", "density_unit", "x_density", "y_density")


@writes_function(image_files.encode_jpeg)
def _encode_jpeg(n: ExportedNode, given: dict[str, Any]) -> Ref:
    """With a quality that is computed TensorFlow has an operation without the other settings."""
    image, quality = as_ref(n.e, given["image"], "uint8"), given["quality"]
    settings = {key: given[key] for key in (*_OF_JPEG, "xmp_metadata")}
    known = n.writer.constant_value(n._numbers[1]) if isinstance(quality, Ref) else quality
    if known is not None:
        return n.e.one("EncodeJpeg", image, quality=int(known), **settings)
    usual = {"format": "", "progressive": False, "optimize_size": False, "chroma_downsampling": True}
    if any(settings[key] != value for key, value in usual.items()) or settings["xmp_metadata"]:
        raise refused(n, "io.encode_jpeg with other settings than a quality that is computed")
    return n.e.one("EncodeJpegVariableQuality", image, quality)


@writes_function(morphology.dilation2d)
def _dilation(n: ExportedNode, given: dict[str, Any]) -> Ref:
    x, filters = as_ref(n.e, given["input"], None), as_ref(n.e, given["filters"], None)
    return _dilated(n, x, filters, given)


def _dilated(n: ExportedNode, x: Ref, filters: Ref, given: dict[str, Any]) -> Ref:
    steps, rates = ([int(k) for k in given[key]] for key in ("strides", "dilations"))
    return n.e.one("Dilation2D", x, filters, strides=steps, rates=rates, padding=given["padding"])


@writes_function(morphology.erosion2d)
def _erosion(n: ExportedNode, given: dict[str, Any]) -> Ref:
    x, filters = as_ref(n.e, given["value"], None), as_ref(n.e, given["filters"], None)
    flipped = n.e.one("ReverseV2", filters, n.e.ints([0, 1]))
    return n.e.one("Neg", _dilated(n, n.e.one("Neg", x), flipped, given))


def _convolution_gradient(op: str, key: str, order: tuple[str, str]) -> Any:
    """TensorFlow's operations that take the tensor itself have no kernels on processors: its shape serves."""

    def write(n: ExportedNode, given: dict[str, Any]) -> Ref:
        e = n.e
        refs = {name: as_ref(e, given[name], None) for name in ("input", "filter", "out_backprop")}
        refs[key] = e.one("Shape", refs[key])
        attributes = {name: given[name] for name in ("strides", "padding", "data_format", "dilations")}
        explicit = given.get("explicit_paddings") or []
        given_refs = [refs[name] for name in (*order, "out_backprop")]
        return e.one(op, *given_refs, explicit_paddings=explicit, **attributes)

    return write


for _function, _rule in (
    (
        convolution_gradients.conv2d_backprop_filter_v2,
        _convolution_gradient("Conv2DBackpropFilter", "filter", ("input", "filter")),
    ),
    (
        convolution_gradients.conv2d_backprop_input_v2,
        _convolution_gradient("Conv2DBackpropInput", "input", ("input", "filter")),
    ),
):
    writes_function(_function)(_rule)


# ---- sequences


@writes_function(ctc.ctc_greedy_decoder)
def _greedy(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    blank = -1 if given["blank_index"] is None else int(given["blank_index"])
    inputs, lengths = as_ref(n.e, given["inputs"], None), as_ref(n.e, given["sequence_length"], "int32")
    return n.e.node(
        "CTCGreedyDecoder", inputs, lengths, merge_repeated=bool(given["merge_repeated"]), blank_index=blank
    )


@writes_function(binary.edit_distance)
def _edit_distance(n: ExportedNode, given: dict[str, Any]) -> Ref:
    return n.e.one("EditDistance", *given["hypothesis"], *given["truth"], normalize=bool(given["normalize"]))


# ---- crosses of ragged features


def _ragged_cross(n: ExportedNode, given: dict[str, Any], hashed: bool) -> list[Ref]:
    e, order = n.e, ""
    ragged: list[Parts] = []
    sparse: list[Parts] = []
    dense: list[Ref] = []
    for x in given["inputs"]:
        if not isinstance(x, Parts):
            order += "D"
            dense.append(_as_feature(n, as_ref(e, x, None)))
        elif len(x) == 2:
            order += "R"
            ragged.append(x)
        elif len(x) == 3 and x[0].shape.rank == 2:
            order += "S"
            sparse.append(x)
        else:
            raise refused(n, "ragged.cross of tensors with several ragged dimensions")
    key = given.get("hash_key")
    kind = as_dtype("int64" if hashed else "string")
    values, splits = e.node(
        "RaggedCross",
        [_as_feature(n, x[0]) for x in ragged],
        [x[1] for x in ragged],
        [x[0] for x in sparse],
        [_as_feature(n, x[1]) for x in sparse],
        [x[2] for x in sparse],
        dense,
        Nsparse=len(sparse),
        input_order=order,
        hashed_output=hashed,
        num_buckets=int(given.get("num_buckets", 0)),
        hash_key=_HASH_KEY if key is None else key,
        out_values_type=kind,
        out_row_splits_type=as_dtype("int64"),
    )
    return [values, splits]


def _as_feature(n: ExportedNode, ref: Ref) -> Ref:
    return ref if ref.dtype.name in ("string", "int64") else n.e.one("Cast", ref, DstT="int64")


writes_function(construction.cross)(lambda n, given: _ragged_cross(n, given, False))
writes_function(construction.cross_hashed)(lambda n, given: _ragged_cross(n, given, True))


# ---- sparse tensors as text


@writes_function(serialization.serialize_sparse)
def _serialize(n: ExportedNode, given: dict[str, Any]) -> Ref:
    return n.e.one("SerializeSparse", *given["sp_input"], out_type="string")


@writes_function(serialization.serialize_many_sparse)
def _serialize_many(n: ExportedNode, given: dict[str, Any]) -> Ref:
    return n.e.one("SerializeManySparse", *given["sp_input"], out_type="string")


@writes_function(serialization.deserialize_many_sparse)
def _deserialize_many(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    rows = as_ref(n.e, given["serialized_sparse"], "string")
    indices, values, shape = n.e.node("DeserializeManySparse", rows, dtype=as_dtype(given["dtype"]))
    return [indices._replace(shape=TensorShape([None, given["rank"]])), values, shape]
