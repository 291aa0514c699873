"""Raw operations on arrays, matrices and strings beside those of `raw.py`, and on the files of `tf.io`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.io import csv
from tapeflow._src.ops.arrays.constants import dims_of, numbers_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects import printing
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.linalg import diagonals, factorizations
from tapeflow._src.ops.strings import encodings, strings
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError

Svd = namedtuple("Svd", ["s", "u", "v"])
SelfAdjointEigV2 = namedtuple("SelfAdjointEigV2", ["e", "v"])
ListDiff = namedtuple("ListDiff", ["out", "idx"])
UniqueV2 = namedtuple("UniqueV2", ["y", "idx"])
UniqueWithCountsV2 = namedtuple("UniqueWithCountsV2", ["y", "idx", "count"])
BroadcastGradientArgs = namedtuple("BroadcastGradientArgs", ["r0", "r1"])
StringSplit = namedtuple("StringSplit", ["indices", "values", "shape"])


def _svd(x: Any, compute_uv: bool, full_matrices: bool) -> Svd:
    x = convert_to_tensor(x)
    if compute_uv:
        s, u, v = factorizations.svd(x, full_matrices)
    else:
        s = factorizations.svd(x, False, False)
        u = v = convert_to_tensor(np.zeros([], x.dtype.as_numpy_dtype))
    return Svd(cast(s, x.dtype), u, v)  # the singular values have the dtype of the matrix, as in TensorFlow


def _eigh(x: Any, compute_v: bool) -> SelfAdjointEigV2:
    if compute_v:
        return SelfAdjointEigV2(*factorizations.eigh(x))
    values = factorizations.eigvalsh(x)
    return SelfAdjointEigV2(values, convert_to_tensor(np.zeros([], values.dtype.as_numpy_dtype)))


def _eig(x: Any, Tout: Any, compute_v: bool) -> SelfAdjointEigV2:
    if compute_v:
        return SelfAdjointEigV2(*(cast(t, Tout) for t in factorizations.eig(x)))
    return SelfAdjointEigV2(
        cast(factorizations.eigvals(x), Tout), convert_to_tensor(np.zeros([], as_dtype(Tout).as_numpy_dtype))
    )


def _eigen_rows(x: Any) -> Any:
    """The values, and below them the vectors."""
    values, vectors = factorizations.eigh(x)
    return primitives.ConcatV2([primitives.ExpandDims(values, -2), vectors], values.shape.rank - 1)


def _diagonals(k: Any) -> Any:
    numbers = numbers_of(k) if convert_to_tensor(k).shape.rank else [int(k)]
    return tuple(numbers) if len(numbers) == 2 else numbers[0]


def _diag(diagonal: Any, k: Any, rows: Any, columns: Any, padding: Any, align: str = "LEFT_LEFT") -> Any:
    return diagonals.diag(
        diagonal, k=_diagonals(k), num_rows=int(rows), num_cols=int(columns), padding_value=padding, align=align
    )


def _diag_part(x: Any, k: Any, padding: Any, align: str = "LEFT_LEFT") -> Any:
    return diagonals.diag_part(x, k=_diagonals(k), padding_value=padding, align=align)


def _set_diag(x: Any, diagonal: Any, k: Any, align: str = "LEFT_LEFT") -> Any:
    return diagonals.set_diag(x, diagonal, k=_diagonals(k), align=align)


def _list_difference(x: Any, y: Any, out_idx: Any) -> ListDiff:
    def run(x: Any, y: Any) -> list[Any]:
        places = np.flatnonzero(~np.isin(x.numpy(), y.numpy()))
        kept = convert_to_tensor(x.numpy()[places], x.dtype)
        return [kept, convert_to_tensor(places.astype(as_dtype(out_idx).as_numpy_dtype))]

    x = convert_to_tensor(x)
    specs = [(x.dtype, [None]), (out_idx, [None])]
    return ListDiff(*host_call(run, [x, convert_to_tensor(y, x.dtype)], specs))


def _unique_slices(x: Any, axis: Any, out_idx: Any, counted: bool = True) -> tuple[Any, ...]:
    """The different slices along an axis in the order they first appear, the number of each, and how often it does."""
    x, kind = convert_to_tensor(x), as_dtype(out_idx).as_numpy_dtype
    axis = convert_to_tensor(axis)
    if axis.shape.rank is not None and axis.shape.rank > 1:
        raise InvalidArgumentError.of(f"UniqueV2: axis expects a 1D vector; got shape {axis.shape}")
    axes = dims_of(axis) if axis.shape.num_elements() else [0]
    along = int(axes[0])

    def run(x: Any) -> list[Any]:
        array = x.numpy()
        count = array.shape[along]
        rows = np.moveaxis(array, along, 0).reshape(count, array.size // max(count, 1)).tolist()
        number_by_row: dict[Any, int] = {}
        numbers = [number_by_row.setdefault(tuple(row), len(number_by_row)) for row in rows]
        first = [numbers.index(i) for i in range(len(number_by_row))]
        counts = np.bincount(np.asarray(numbers, int), minlength=len(first)).astype(kind)
        kept = convert_to_tensor(np.take(array, np.asarray(first, int), along), x.dtype)
        found = [kept, convert_to_tensor(np.asarray(numbers, kind)), convert_to_tensor(counts)]
        return found if counted else found[:2]

    shape = [None if i == along % max(x.shape.rank, 1) else d for i, d in enumerate(x.shape.as_list())]
    specs = [(x.dtype, shape), (out_idx, [None]), (out_idx, [None])]
    return tuple(host_call(run, [x], specs if counted else specs[:2]))


def _gradient_axes(s0: Any, s1: Any) -> BroadcastGradientArgs:
    """The axes over which a gradient is summed, where shapes were broadcast together."""
    a, b = ([int(n) for n in dims_of(s)] for s in (s0, s1))
    rank = max(len(a), len(b))
    a, b = ([1] * (rank - len(s)) + s for s in (a, b))
    first = [i for i in range(rank) if a[i] == 1]
    second = [i for i in range(rank) if b[i] == 1]
    return BroadcastGradientArgs(*(convert_to_tensor(np.asarray(axes, np.int32)) for axes in (first, second)))


def _concat_offsets(axis: Any, shapes: Any) -> list[Any]:
    """Where each of some tensors begins in their concatenation."""
    dims = [[int(n) for n in dims_of(shape)] for shape in shapes]
    along, start, found = int(axis), 0, []
    for shape in dims:
        found.append(convert_to_tensor([start if i == along % len(shape) else 0 for i in range(len(shape))]))
        start += shape[along]
    return found


def _csv(records: Any, defaults: Any, delimiter: str, quotes: bool, missing: str, columns: Any) -> list[Any]:
    return csv.decode_csv(records, defaults, delimiter, quotes, missing, list(columns) or None)


def _empty(shape: Any, dtype: Any, init: bool) -> Any:
    return primitives.BroadcastTo(convert_to_tensor(0, dtype), [int(n) for n in dims_of(shape)])


def _bucketized(x: Any, boundaries: Any) -> Any:
    """The number of boundaries that are not above each element."""
    x = convert_to_tensor(x)
    edges = convert_to_tensor(boundaries, "float64")
    if not _core.is_symbolic(edges) and (np.diff(np.asarray(edges)) < 0).any():
        raise InvalidArgumentError.of(f"Bucketize: Expected sorted boundaries; got {list(boundaries)}")
    flat = primitives.Reshape(cast(x, "float64"), [-1])
    found = primitives.SearchSorted(primitives.ExpandDims(edges, 0), primitives.ExpandDims(flat, 0), True, "int32")
    return primitives.Reshape(found, primitives.Shape(x, "int64"))


def _in_place(primitive: Any) -> Any:
    def run(x: Any, i: Any, v: Any) -> Any:
        x = convert_to_tensor(x)
        v = _core.convert_to_tensor(v, None, x.dtype, "inplace")
        rows = primitives.Reshape(cast(i, "int32"), [-1, 1])
        rows = primitives.FloorMod(rows, primitives.Maximum(primitives.Shape(x)[0], 1))  # -1 is the last row
        return primitive(x, rows, v if convert_to_tensor(i).shape.rank else primitives.ExpandDims(v, 0))

    return run


def _split(x: Any, delimiter: Any, skip_empty: bool) -> StringSplit:
    text = delimiter if isinstance(delimiter, str) else convert_to_tensor(delimiter).numpy().decode()
    rows = []
    for value in convert_to_tensor(x).numpy().reshape(-1):
        pieces = [value]
        if text:
            for mark in text.encode():
                pieces = [part for piece in pieces for part in piece.split(bytes([mark]))]
        else:
            pieces = [value[i : i + 1] for i in range(len(value))]
        rows.append([piece for piece in pieces if piece or not skip_empty])
    return _split_parts(rows)


def _split_parts(rows: list[list[bytes]]) -> StringSplit:
    places = np.asarray([[r, i] for r, row in enumerate(rows) for i in range(len(row))], np.int64).reshape(-1, 2)
    values = np.empty(len(places), dtype=object)
    values[:] = [piece for row in rows for piece in row]
    shape = np.asarray([len(rows), max(map(len, rows), default=0)], np.int64)
    return StringSplit(convert_to_tensor(places), convert_to_tensor(values, "string"), convert_to_tensor(shape))


def _split_2(x: Any, sep: Any, maxsplit: int) -> StringSplit:
    text = sep if isinstance(sep, str) else convert_to_tensor(sep).numpy().decode()
    return _split_parts(strings.split(x, text or None, maxsplit).to_list())


def _to_bool(x: Any) -> Any:
    """Whether a scalar is not zero or empty; for others, whether they have elements."""
    x = convert_to_tensor(x)
    if x.shape.rank:
        return convert_to_tensor(x.shape.num_elements() != 0)
    return convert_to_tensor(bool(x.numpy()))


def _decode_padded(input_bytes: Any, fixed_length: Any, out_type: Any, little_endian: bool) -> Any:
    return encodings.decode_raw(input_bytes, out_type, little_endian, int(fixed_length))


ROWS: list[tuple[str, str, Any]] = [
    ("AccumulateNV2", "inputs, shape", lambda inputs, shape: primitives.AddN(inputs)),
    ("BandedTriangularSolve", "matrix, rhs, lower=True, adjoint=False", "linalg.banded_triangular_solve"),
    ("BatchCholesky", "input", "linalg.cholesky"),
    ("BatchMatrixBandPart", "input, num_lower, num_upper", "linalg.band_part"),
    ("BatchMatrixInverse", "input, adjoint=False", "linalg.inv"),
    ("BatchMatrixSolve", "matrix, rhs, adjoint=False", "linalg.solve"),
    ("BatchMatrixSolveLs", "matrix, rhs, l2_regularizer, fast=True", "linalg.lstsq"),
    ("BatchMatrixTriangularSolve", "matrix, rhs, lower=True, adjoint=False", "linalg.triangular_solve"),
    ("BatchSelfAdjointEig", "input", _eigen_rows),
    ("BatchSelfAdjointEigV2", "input, compute_v=True", _eigh),
    ("BatchSvd", "input, compute_uv=True, full_matrices=False", _svd),
    ("BroadcastGradientArgs", "s0, s1", _gradient_axes),
    ("Bucketize", "input, boundaries", _bucketized),
    ("ConcatOffset", "concat_dim, shape", _concat_offsets),
    ("Const", "value, dtype", lambda value, dtype: convert_to_tensor(value, dtype)),
    ("Copy", "input, tensor_name='', debug_ops_spec=[]", "identity/1"),
    ("DecodeCSV", "records, record_defaults, field_delim=',', use_quote_delim=True, na_value='', select_cols=[]", _csv),
    ("DecodeCompressed", "bytes, compression_type=''", "io.decode_compressed"),
    ("DecodeJSONExample", "json_examples", "io.decode_json_example"),
    ("DecodePaddedRaw", "input_bytes, fixed_length, out_type, little_endian=True", _decode_padded),
    ("DecodeRaw", "bytes, out_type, little_endian=True", "io.decode_raw"),
    ("DecodeWebP", "contents, channels=0, dtype='uint8'", "io.decode_webp"),
    ("DecodeWav", "contents, desired_channels=-1, desired_samples=-1", "audio.decode_wav"),
    ("EncodeWav", "audio, sample_rate", "audio.encode_wav"),
    ("Eig", "input, Tout, compute_v=True", _eig),
    ("Empty", "shape, dtype, init=False", _empty),
    ("FFTND", "input, fft_length, axes", "signal.fftnd"),
    ("Fingerprint", "data, method", "fingerprint"),
    ("IFFTND", "input, fft_length, axes", "signal.ifftnd"),
    ("IRFFTND", "input, fft_length, axes, Treal='float32'", "signal.irfftnd/3"),
    ("IgammaGradA", "a, x", primitives.IgammaGradA),
    ("InplaceAdd", "x, i, v", _in_place(primitives.TensorScatterAdd)),
    ("InplaceSub", "x, i, v", _in_place(primitives.TensorScatterSub)),
    ("InplaceUpdate", "x, i, v", _in_place(primitives.TensorScatterUpdate)),
    ("ListDiff", "x, y, out_idx='int32'", _list_difference),
    ("MatchingFiles", "pattern", "io.matching_files"),
    ("MatrixDiagPartV2", "input, k, padding_value", _diag_part),
    ("MatrixDiagPartV3", "input, k, padding_value, align='RIGHT_LEFT'", _diag_part),
    ("MatrixDiagV2", "diagonal, k, num_rows, num_cols, padding_value", _diag),
    ("MatrixDiagV3", "diagonal, k, num_rows, num_cols, padding_value, align='RIGHT_LEFT'", _diag),
    ("MatrixSetDiagV2", "input, diagonal, k", _set_diag),
    ("MatrixSetDiagV3", "input, diagonal, k, align='RIGHT_LEFT'", _set_diag),
    ("ParseTensor", "serialized, out_type", "io.parse_tensor"),
    ("PopulationCount", "x", primitives.PopulationCount),
    ("RFFTND", "input, fft_length, axes, Tcomplex='complex64'", "signal.rfftnd/3"),
    ("ReadFile", "filename", "io.read_file"),
    ("ReduceJoin", "inputs, reduction_indices, keep_dims=False, separator=''", "strings.reduce_join"),
    ("SegmentMaxV2", "data, segment_ids, num_segments", primitives.UnsortedSegmentMax),
    ("SegmentMinV2", "data, segment_ids, num_segments", primitives.UnsortedSegmentMin),
    ("SegmentProdV2", "data, segment_ids, num_segments", primitives.UnsortedSegmentProd),
    ("SegmentSumV2", "data, segment_ids, num_segments", primitives.UnsortedSegmentSum),
    ("SelfAdjointEig", "input", _eigen_rows),
    ("SelfAdjointEigV2", "input, compute_v=True", _eigh),
    ("SerializeTensor", "tensor", "io.serialize_tensor"),
    ("SobolSample", "dim, num_results, skip, dtype='float32'", "math.sobol_sample"),
    (
        "StringFormat",
        "inputs, template='%s', placeholder='%s', summarize=3",
        lambda inputs, template, placeholder, summarize: printing.format_(template, inputs, placeholder, summarize),
    ),
    ("StringSplit", "input, delimiter, skip_empty=True", _split),
    ("StringSplitV2", "input, sep, maxsplit=-1", _split_2),
    ("Svd", "input, compute_uv=True, full_matrices=False", _svd),
    ("ToBool", "input", _to_bool),
    (
        "UniqueV2",
        "x, axis, out_idx='int32'",
        lambda x, axis, out_idx: UniqueV2(*_unique_slices(x, axis, out_idx, False)),
    ),
    (
        "UniqueWithCountsV2",
        "x, axis, out_idx='int32'",
        lambda x, axis, out_idx: UniqueWithCountsV2(*_unique_slices(x, axis, out_idx)),
    ),
    ("UnsortedSegmentJoin", "inputs, segment_ids, num_segments, separator=''", "strings.unsorted_segment_join"),
    ("WriteFile", "filename, contents", "io.write_file"),
]
