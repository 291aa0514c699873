"""Calls of raw operations; TensorFlow's results were recorded by `python tests/compat/raw_ops/raw_calls.py`."""

import json
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_name("raw_values.json")
_random = np.random.default_rng(7)


def f(*shape, low=-1.0, high=1.0):
    return np.round(_random.uniform(low, high, shape), 3).astype(np.float32)


def i(*values, dtype="int32"):
    return np.array(values, dtype)


IMAGE, FILTER, DY = f(1, 5, 6, 2), f(3, 2, 2, 3), f(1, 5, 6, 3)
VOLUME = f(1, 3, 4, 3, 1)
MATRIX = f(3, 3) + 3 * np.eye(3, dtype=np.float32)
SPD = (MATRIX @ MATRIX.T).astype(np.float32)
BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7], np.float32)
SP = {"indices": i([0, 1], [2, 0], dtype="int64"), "values": f(2), "shape": i(3, 3, dtype="int64")}
SP2 = {"indices": i([0, 1], [1, 2], dtype="int64"), "values": f(2), "shape": i(3, 3, dtype="int64")}


def parts(sparse, prefix="", shape="shape"):
    return {
        f"{prefix}indices": sparse["indices"],
        f"{prefix}values": sparse["values"],
        f"{prefix}{shape}": sparse["shape"],
    }


CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
DILATION = {"strides": [1] * 4, "rates": [1] * 4, "padding": "SAME"}
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
POOL3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}
NORM = {"scale": f(2), "offset": f(2), "epsilon": 0.01}
LARGEST = np.lib.stride_tricks.sliding_window_view(VOLUME[0, ..., 0], (2, 2, 2)).max((3, 4, 5))[None, ..., None].copy()
EMPTY = np.zeros([0], np.float32)
TRANSFORM = {
    "transforms": np.array([[0.8, 0.3, -1.0, -0.2, 0.9, 0.5, 0.01, -0.02]], np.float32),
    "output_shape": [6, 5],
    "fill_value": 0.5,
}
SAMPLES = np.sin(np.arange(160) * 0.37).reshape(80, 2).astype(np.float32)

CALLS: list[tuple[str, dict]] = [
    ("AvgPool3D", {"input": VOLUME, **POOL3}),
    ("AvgPool3DGrad", {"orig_input_shape": [1, 3, 4, 3, 1], "grad": f(1, 2, 3, 2, 1), **POOL3}),
    ("AvgPoolGrad", {"orig_input_shape": [1, 5, 6, 2], "grad": f(1, 3, 3, 2), **POOL}),
    ("BroadcastGradientArgs", {"s0": [2, 1, 3], "s1": [4, 1]}),
    ("Bucketize", {"input": i(-5, 0, 3, 10), "boundaries": [0.0, 5.0]}),
    ("CholeskyGrad", {"l": np.linalg.cholesky(SPD).astype(np.float32), "grad": np.tril(f(3, 3))}),
    ("ConcatOffset", {"concat_dim": 1, "shape": [[2, 3], [2, 5]]}),
    ("Conv2D", {"input": IMAGE, "filter": FILTER, **CONV}),
    ("Conv2DBackpropFilter", {"input": IMAGE, "filter_sizes": [3, 2, 2, 3], "out_backprop": DY, **CONV}),
    ("Conv2DBackpropInput", {"input_sizes": [1, 5, 6, 2], "filter": FILTER, "out_backprop": DY, **CONV}),
    ("Conv3D", {"input": VOLUME, "filter": f(2, 2, 2, 1, 1), "strides": [1, 1, 1, 1, 1], "padding": "SAME"}),
    (
        "Conv3DBackpropInputV2",
        {
            "input_sizes": [1, 3, 4, 3, 1],
            "filter": f(2, 2, 2, 1, 1),
            "out_backprop": VOLUME,
            "strides": [1] * 5,
            "padding": "SAME",
        },
    ),
    ("CropAndResize", {"image": IMAGE, "boxes": f(2, 4, low=0.1, high=0.9), "box_ind": i(0, 0), "crop_size": [2, 3]}),
    (
        "CropAndResizeGradImage",
        {
            "grads": f(2, 2, 3, 2),
            "boxes": f(2, 4, low=0.1, high=0.9),
            "box_ind": i(0, 0),
            "image_size": [1, 5, 6, 2],
            "T": "float32",
        },
    ),
    (
        "CropAndResizeGradBoxes",
        {"grads": f(1, 2, 3, 2), "image": IMAGE, "boxes": f(1, 4, low=0.1, high=0.9), "box_ind": i(0)},
    ),
    ("DenseBincount", {"input": i([0, 1, 1], [2, 2, 0]), "size": 3, "weights": EMPTY}),
    ("DenseToDenseSetOperation", {"set1": i([1, 2], [3, 4]), "set2": i([2, 5], [4, 3]), "set_operation": "a-b"}),
    ("DepthwiseConv2dNative", {"input": IMAGE, "filter": f(3, 3, 2, 2), **CONV}),
    (
        "DepthwiseConv2dNativeBackpropInput",
        {"input_sizes": [1, 5, 6, 2], "filter": f(3, 3, 2, 2), "out_backprop": f(1, 5, 6, 4), **CONV},
    ),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        {"input": IMAGE, "filter_sizes": [3, 3, 2, 2], "out_backprop": f(1, 5, 6, 4), **CONV},
    ),
    ("Dilation2D", {"input": IMAGE, "filter": f(2, 2, 2), **DILATION}),
    *(
        (f"Dilation2DBackprop{by}", {"input": IMAGE, "filter": f(2, 2, 2), "out_backprop": f(1, 5, 6, 2), **DILATION})
        for by in ("Filter", "Input")
    ),
    ("FusedBatchNorm", {"x": IMAGE, **NORM, "mean": EMPTY, "variance": EMPTY}),
    ("FusedBatchNormV3", {"x": IMAGE, **NORM, "mean": f(2), "variance": f(2, low=1, high=2), "is_training": False}),
    ("IgammaGradA", {"a": f(3, low=1, high=2), "x": f(3, low=1, high=2)}),
    *(
        (
            "ImageProjectiveTransformV3",
            {**TRANSFORM, "images": IMAGE, "interpolation": interpolation, "fill_mode": mode},
        )
        for interpolation in ("BILINEAR", "NEAREST")
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
    ),
    ("ApproximateEqual", {"x": MATRIX, "y": MATRIX + 1e-4, "tolerance": 1e-3}),
    ("InplaceAdd", {"x": MATRIX, "i": i(0, 2), "v": f(2, 3)}),
    ("InplaceUpdate", {"x": MATRIX, "i": i(0, 2), "v": f(2, 3)}),
    ("LRN", {"input": IMAGE}),
    (
        "LRNGrad",
        {
            "input_grads": f(1, 5, 6, 2),
            "input_image": IMAGE,
            "output_image": IMAGE / np.sqrt(1 + (IMAGE**2).sum(-1, keepdims=True)),
        },
    ),
    (
        "LSTMBlockCell",
        {
            "x": f(2, 3),
            "cs_prev": f(2, 2),
            "h_prev": f(2, 2),
            "w": f(5, 8),
            "wci": f(2),
            "wcf": f(2),
            "wco": f(2),
            "b": f(8),
        },
    ),
    ("ListDiff", {"x": i(1, 2, 3, 4, 2), "y": i(2, 9)}),
    ("MatrixDiagPartV3", {"input": MATRIX, "k": i(-1, 1), "padding_value": 9.0}),
    ("MatrixDiagV3", {"diagonal": f(3, 3), "k": i(-1, 1), "num_rows": 3, "num_cols": 3, "padding_value": 0.0}),
    ("MatrixDiagV2", {"diagonal": f(2, 3), "k": i(-1, 0), "num_rows": 3, "num_cols": 3, "padding_value": 0.0}),
    ("MatrixSetDiagV3", {"input": MATRIX, "diagonal": f(3), "k": 0}),
    ("MaxPool3D", {"input": VOLUME, **POOL3}),
    ("MaxPool3DGrad", {"orig_input": VOLUME, "orig_output": LARGEST, "grad": f(1, 2, 3, 2, 1), **POOL3}),
    ("MaxPoolGrad", {"orig_input": IMAGE, "orig_output": f(1, 3, 3, 2), "grad": f(1, 3, 3, 2), **POOL}),
    ("MaxPoolGradV2", {"orig_input": IMAGE, "orig_output": f(1, 3, 3, 2), "grad": f(1, 3, 3, 2), **POOL}),
    ("MaxPoolWithArgmax", {"input": IMAGE, **POOL}),
    ("MirrorPadGrad", {"input": f(4, 5), "paddings": i([1, 1], [0, 2]), "mode": "REFLECT"}),
    ("NonMaxSuppressionV2", {"boxes": BOXES, "scores": SCORES, "max_output_size": 3, "iou_threshold": 0.5}),
    (
        "NonMaxSuppressionV4",
        {
            "boxes": BOXES,
            "scores": SCORES,
            "max_output_size": 3,
            "iou_threshold": 0.5,
            "score_threshold": 0.0,
            "pad_to_max_output_size": True,
        },
    ),
    (
        "NonMaxSuppressionV5",
        {
            "boxes": BOXES,
            "scores": SCORES,
            "max_output_size": 3,
            "iou_threshold": 0.5,
            "score_threshold": 0.0,
            "soft_nms_sigma": 0.0,
            "pad_to_max_output_size": True,
        },
    ),
    (
        "ParameterizedTruncatedNormal",
        {
            "shape": [4],
            "means": f(4),
            "stdevs": f(4, low=1, high=2),
            "minvals": f(4) - 3,
            "maxvals": f(4) + 3,
            "seed": 1,
            "seed2": 2,
        },
    ),
    ("PopulationCount", {"x": i(0, 7, 255)}),
    (
        "RaggedFillEmptyRows",
        {"value_rowids": i(0, 2, dtype="int64"), "values": f(2), "nrows": 4, "default_value": -1.0},
    ),
    ("RaggedRange", {"starts": i(0, 5), "limits": i(3, 7), "deltas": i(1, 1)}),
    ("RaggedTensorToSparse", {"rt_nested_splits": [i(0, 2, 3, dtype="int64")], "rt_dense_values": f(3)}),
    ("RandomGamma", {"shape": [3], "alpha": f(2, low=1, high=2), "seed": 3, "seed2": 4}),
    ("RandomPoissonV2", {"shape": [5], "rate": f(2, low=1, high=5), "seed": 3, "seed2": 4}),
    ("RandomShuffle", {"value": np.arange(6, dtype=np.int32), "seed": 3, "seed2": 4}),
    ("RandomStandardNormal", {"shape": [5], "dtype": "float32", "seed": 3, "seed2": 4}),
    ("RandomUniform", {"shape": [5], "dtype": "float64", "seed": 3, "seed2": 4}),
    ("RandomUniformInt", {"shape": [5], "minval": 3, "maxval": 90, "seed": 3, "seed2": 4}),
    ("ReduceJoin", {"inputs": [["a", "b"], ["c", "d"]], "reduction_indices": [1], "separator": "-"}),
    ("ResizeArea", {"images": IMAGE, "size": [3, 4]}),
    ("ResizeBicubic", {"images": IMAGE, "size": [3, 4]}),
    ("ResizeBicubicGrad", {"grads": f(1, 3, 4, 2), "original_image": IMAGE}),
    ("ResizeBilinear", {"images": IMAGE, "size": [3, 4], "half_pixel_centers": True}),
    ("ResizeBilinearGrad", {"grads": f(1, 3, 4, 2), "original_image": IMAGE}),
    ("ResizeNearestNeighbor", {"images": IMAGE, "size": [3, 4]}),
    ("ResizeNearestNeighborGrad", {"grads": f(1, 3, 4, 2), "size": [5, 6]}),
    ("SparseAdd", {**parts(SP, "a_"), **parts(SP2, "b_"), "thresh": 0.0}),
    (
        "SparseConcat",
        {
            "indices": [SP["indices"], SP2["indices"]],
            "values": [SP["values"], SP2["values"]],
            "shapes": [SP["shape"], SP2["shape"]],
            "concat_dim": 1,
        },
    ),
    ("SparseFillEmptyRows", {**parts(SP, shape="dense_shape"), "default_value": 9.0}),
    ("SparseReduceMax", {**parts(SP, "input_"), "reduction_axes": [0]}),
    ("SparseReduceSum", {**parts(SP, "input_"), "reduction_axes": [1], "keep_dims": True}),
    ("SparseReduceSumSparse", {**parts(SP, "input_"), "reduction_axes": [1]}),
    (
        "SparseReorder",
        {"input_indices": SP["indices"][::-1].copy(), "input_values": SP["values"], "input_shape": SP["shape"]},
    ),
    (
        "SparseReshape",
        {"input_indices": SP["indices"], "input_shape": SP["shape"], "new_shape": i(9, 1, dtype="int64")},
    ),
    ("SparseSegmentMeanGrad", {"grad": f(2, 3), "indices": i(0, 2, 3), "segment_ids": i(0, 0, 1), "output_dim0": 5}),
    ("SparseSegmentSumGrad", {"grad": f(2, 3), "indices": i(0, 2, 3), "segment_ids": i(0, 0, 1), "output_dim0": 5}),
    ("SparseSlice", {**parts(SP), "start": i(0, 0, dtype="int64"), "size": i(2, 3, dtype="int64")}),
    ("SparseSoftmax", parts(SP, "sp_")),
    ("SparseSparseMaximum", {**parts(SP, "a_"), **parts(SP2, "b_")}),
    ("SparseSplit", {"split_dim": 1, **parts(SP), "num_split": 3}),
    ("SparseTensorDenseAdd", {**parts(SP, "a_"), "b": MATRIX}),
    ("SparseSoftmaxCrossEntropyWithLogits", {"features": MATRIX, "labels": i(0, 2, 1)}),
    ("SetSize", parts({**SP, "values": i(4, 5)}, "set_")),
    ("StatelessRandomGammaV2", {"shape": [3], "seed": [1, 2], "alpha": 1.5}),
    ("StatelessRandomGetKeyCounter", {"seed": [1, 2]}),
    ("StatelessRandomNormal", {"shape": [5], "seed": [1, 2]}),
    (
        "StatelessRandomNormalV2",
        {"shape": [5], "key": np.array([5], np.uint64), "counter": np.array([1, 2], np.uint64), "alg": 1},
    ),
    ("StatelessRandomPoisson", {"shape": [5], "seed": [1, 2], "lam": 3.0, "dtype": "int32"}),
    ("StatelessRandomUniform", {"shape": [5], "seed": [1, 2]}),
    ("StatelessRandomUniformFullInt", {"shape": [3], "seed": [1, 2], "dtype": "int32"}),
    ("StatelessRandomUniformInt", {"shape": [5], "seed": [1, 2], "minval": 0, "maxval": 50}),
    (
        "StatelessRandomUniformIntV2",
        {
            "shape": [5],
            "key": np.array([5], np.uint64),
            "counter": np.array([1, 2], np.uint64),
            "alg": 1,
            "minval": 0,
            "maxval": 50,
        },
    ),
    ("StatelessTruncatedNormal", {"shape": [5], "seed": [1, 2]}),
    ("StridedSliceGrad", {"shape": [4, 3], "begin": [1, 0], "end": [3, 3], "strides": [1, 2], "dy": f(2, 2)}),
    ("StringFormat", {"inputs": [i(1, 2)], "template": "x=%s"}),
    ("StringSplit", {"input": ["a b", "c"], "delimiter": " "}),
    ("StringSplitV2", {"input": ["a  b", "c"], "sep": ""}),
    ("ToBool", {"input": 3}),
    ("TruncatedNormal", {"shape": [5], "dtype": "float32", "seed": 3, "seed2": 4}),
    ("UniqueV2", {"x": i([1, 2], [3, 4], [1, 2]), "axis": [0]}),
    ("UniqueWithCountsV2", {"x": i(5, 5, 6), "axis": np.zeros([0], np.int64)}),
    ("UnsortedSegmentJoin", {"inputs": ["a", "b", "c"], "segment_ids": [0, 1, 0], "num_segments": 2}),
    ("DataFormatDimMap", {"x": i(0, 1, -1, 2)}),
    ("DataFormatVecPermute", {"x": i(1, 2, 3, 4)}),
    ("DataFormatVecPermute", {"x": i([1, 2], [3, 4], [5, 6], [7, 8]), "src_format": "NCHW", "dst_format": "NHWC"}),
    ("IsotonicRegression", {"input": np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 0.5]], np.float32)}),
    ("TridiagonalMatMul", {"superdiag": f(1, 3), "maindiag": f(1, 3), "subdiag": f(1, 3), "rhs": f(3, 2)}),
    ("TridiagonalSolve", {"diagonals": np.eye(3, dtype=np.float32)[[1, 1, 1]] + f(3, 3), "rhs": f(3, 2)}),
    *(
        (
            "ScaleAndTranslate",
            {
                "images": IMAGE,
                "size": [3, 4],
                "scale": np.array(scale, np.float32),
                "kernel_type": kind,
                "translation": np.array([0.3, -0.4], np.float32),
                "antialias": antialias,
            },
        )
        for kind in ("lanczos1", "lanczos3", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
        for scale, antialias in (([0.6, 0.7], True), ([0.6, 0.7], False), ([1.7, 1.3], True))
    ),
    (
        "ScaleAndTranslateGrad",
        {
            "grads": f(1, 3, 4, 2),
            "original_image": IMAGE,
            "scale": np.array([0.6, 0.7], np.float32),
            "translation": np.array([0.3, -0.4], np.float32),
        },
    ),
    ("AudioSpectrogram", {"input": SAMPLES, "window_size": 24, "stride": 10}),
    ("AudioSpectrogram", {"input": SAMPLES, "window_size": 32, "stride": 16, "magnitude_squared": True}),
    ("Mfcc", {"spectrogram": np.abs(f(2, 3, 129)), "sample_rate": 16000}),
    (
        "Mfcc",
        {
            "spectrogram": np.abs(f(1, 2, 65)),
            "sample_rate": 8000,
            "upper_frequency_limit": 3000.0,
            "lower_frequency_limit": 100.0,
            "filterbank_channel_count": 12,
            "dct_coefficient_count": 5,
        },
    ),
    ("DecodePaddedRaw", {"input_bytes": ["ab", "c"], "fixed_length": 4, "out_type": "uint8"}),
    *(
        (
            f"SparseSegment{name}GradV2",
            {"grad": f(2, 3), "indices": [3, 1, 3], "segment_ids": [0, 0, 1], "dense_output_dim0": 5},
        )
        for name in ("Mean", "SqrtN", "Sum")
    ),
    (
        "MaxPoolGradWithArgmax",
        {
            "input": f(2, 3, 2, 1),
            "grad": f(2, 2, 1, 1),
            **POOL,
            "argmax": i([[[1]], [[4]]], [[[3]], [[5]]], dtype="int64"),
        },
    ),
    (
        "MaxPoolGradWithArgmax",
        {
            "input": f(2, 3, 2, 1),
            "grad": f(2, 2, 1, 1),
            **POOL,
            "include_batch_in_index": True,
            "argmax": i([[[1]], [[4]]], [[[9]], [[9]]], dtype="int64"),
        },
    ),
]


def plain(value):
    """A result as nested lists: tensors with their dtype, tuples with the names of their fields."""
    if isinstance(value, list | tuple):
        names = list(getattr(value, "_fields", []))
        return {"fields": names, "items": [plain(x) for x in value]}
    array = np.asarray(value.numpy())
    if array.dtype == object or array.dtype.kind == "S":
        array = np.vectorize(lambda x: x.decode(), otypes=[object])(array) if array.size else array
    return {"dtype": value.dtype.name, "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def record():
    import tensorflow as tf

    found = [plain(getattr(tf.raw_ops, name)(**arguments)) for name, arguments in CALLS]
    VALUES.write_text("[\n" + ",\n".join(json.dumps(value) for value in found) + "\n]\n")


if __name__ == "__main__":
    record()
