"""Raw operations: images scaled and moved, layouts, matrices of three diagonals, Fourier transforms of batches."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.image.resize import KERNELS
from tapeflow._src.types.errors import InvalidArgumentError

IsotonicRegression = namedtuple("IsotonicRegression", ["output", "segments"])

_KERNEL_BY_TYPE = {
    "lanczos1": (1.0, lambda x: np.where(np.abs(x) < 1, np.sinc(x) * np.sinc(x), 0)),
    "lanczos3": KERNELS["lanczos3"],
    "lanczos5": KERNELS["lanczos5"],
    "gaussian": KERNELS["gaussian"],
    "box": (0.5, lambda x: np.where(np.abs(x) < 0.5, 1.0, np.where(np.abs(x) == 0.5, 0.5, 0.0))),
    "triangle": KERNELS["bilinear"],
    "keyscubic": KERNELS["bicubic"],
    "mitchellcubic": KERNELS["mitchellcubic"],
}


def _weights(size: int, out: int, scale: float, shift: float, kind: str, antialias: bool) -> np.ndarray:
    """How much each of `size` cells adds to each of `out` cells: rows sum to 1, or to 0 outside of the image."""
    radius, kernel = _KERNEL_BY_TYPE[kind]
    step = np.float32(1) / np.float32(
        scale
    )  # in float32, as in TensorFlow: it decides on which side of a border a cell is
    width = np.float32(max(float(step), 1.0) if antialias else 1.0)
    centers = (np.arange(out, dtype=np.float32) + np.float32(0.5)) * step - step * np.float32(shift)
    cells = np.arange(size)
    inside = cells >= np.ceil(centers - np.float32(radius) * width - np.float32(0.5))[:, None]
    inside &= cells <= np.floor(centers + np.float32(radius) * width - np.float32(0.5))[:, None]
    distance = (cells.astype(np.float32) + np.float32(0.5) - centers[:, None]) / width
    weights = np.where(inside, kernel(distance.astype(float)), 0.0)
    weights[(centers < 0) | (centers > size)] = 0
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(np.abs(total) > 1e-30, total, 1)).astype(np.float32)


def _both_weights(x: Any, size: Any, scale: Any, translation: Any, kind: str, antialias: bool) -> list[Any]:
    if kind not in _KERNEL_BY_TYPE:
        raise InvalidArgumentError.of(f"ScaleAndTranslate: Unrecognized kernel type: {kind}")
    out = [int(n) for n in dims_of(size)]
    scales, shifts = (np.asarray(convert_to_tensor(v)).astype(float) for v in (scale, translation))
    if len(out) != 2 or scales.shape != (2,) or shifts.shape != (2,) or min(out) < 1 or (scales <= 0).any():
        raise InvalidArgumentError.of(
            "ScaleAndTranslate: size, scale and translation must have two elements, size and scale above 0; got "
            f"{out}, {scales.tolist()} and {shifts.tolist()}"
        )
    inner = x.shape.as_list()[1:3]
    return [convert_to_tensor(_weights(inner[i], out[i], scales[i], shifts[i], kind, antialias)) for i in range(2)]


def _resampled(x: Any, rows: Any, columns: Any) -> Any:
    """`rows @ image @ columns^T` for each channel of each image."""
    moved = primitives.Transpose(x, [0, 3, 1, 2])
    return primitives.Transpose(primitives.MatMul(primitives.MatMul(rows, moved), columns, False, True), [0, 2, 3, 1])


def _images(value: Any, who: str) -> Any:
    x = convert_to_tensor(value)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"{who}: images must be 4-dimensional; got {x.shape.as_list()}")
    return cast(x, "float32")


def _scale_and_translate(images: Any, size: Any, scale: Any, translation: Any, kind: str, antialias: bool) -> Any:
    x = _images(images, "ScaleAndTranslate")
    return _resampled(x, *_both_weights(x, size, scale, translation, kind, antialias))


def _scale_and_translate_gradient(
    grads: Any, original_image: Any, scale: Any, translation: Any, kind: str, antialias: bool
) -> Any:
    dy, x = _images(grads, "ScaleAndTranslateGrad"), _images(original_image, "ScaleAndTranslateGrad")
    weights = _both_weights(x, dy.shape.as_list()[1:3], scale, translation, kind, antialias)
    return _resampled(dy, *[primitives.Transpose(w, [1, 0]) for w in weights])


def _layout(src: str, dst: str, who: str) -> list[int]:
    """For each dimension of `dst`, its place in `src`."""
    for name, layout in (("Source", src), ("Destination", dst)):
        if len(layout) not in (4, 5):
            raise InvalidArgumentError.of(f"{who}: {name} format must be of length 4 or 5, received {layout}")
    if sorted(src) != sorted(dst) or len(set(src)) != len(src):
        raise InvalidArgumentError.of(
            f"{who}: Destination and source format must determine a permutation, got {src} and {dst}"
        )
    return [src.index(c) for c in dst]


def _dimensions(x: Any, src_format: str, dst_format: str) -> Any:
    places = _layout(dst_format, src_format, "DataFormatDimMap")
    x = convert_to_tensor(x)
    table = convert_to_tensor(np.asarray(places, x.dtype.as_numpy_dtype))
    return primitives.GatherV2(table, primitives.FloorMod(x, cast(len(places), x.dtype)), 0, 0)


def _permuted(x: Any, src_format: str, dst_format: str) -> Any:
    x = convert_to_tensor(x)
    count = x.shape[0]
    if count == len(src_format) - 2:  # the spatial dimensions alone
        spatial = [c for c in src_format if c not in "NC"]
        places = [spatial.index(c) for c in dst_format if c not in "NC"]
    else:
        places = _layout(src_format, dst_format, "DataFormatVecPermute")
    if len(places) != count or x.shape.rank not in (1, 2):
        raise InvalidArgumentError.of(
            f"DataFormatVecPermute: x must have one row for each dimension of {src_format}, or each spatial one; got "
            f"shape {x.shape}"
        )
    return primitives.GatherV2(x, places, 0, 0)


def _diagonal(value: Any) -> Any:
    return convert_to_tensor(value)[..., 0, :]


def _isotonic(regression: Any) -> Any:
    def run(x: Any, output_dtype: Any) -> IsotonicRegression:
        found = regression(convert_to_tensor(x))
        return IsotonicRegression(cast(found[0], output_dtype), found[1])

    return run


def _tridiagonal_product(product: Any) -> Any:
    def run(above: Any, main: Any, below: Any, rhs: Any) -> Any:
        return product([_diagonal(d) for d in (above, main, below)], rhs, diagonals_format="sequence")

    return run


def _tridiagonal_solution(solve: Any) -> Any:
    def run(diagonals: Any, rhs: Any, partial_pivoting: bool, perturb_singular: bool) -> Any:
        return solve(
            diagonals, rhs, "compact", partial_pivoting=partial_pivoting, perturb_singular=perturb_singular
        )  # fmt: skip

    return run


ROWS: list[tuple[str, str, Any]] = [
    *((f"Batch{name}", "input", f"signal.{name.lower()}") for name in ("FFT", "FFT2D", "FFT3D")),
    *((f"Batch{name}", "input", f"signal.{name.lower()}") for name in ("IFFT", "IFFT2D", "IFFT3D")),
    ("DataFormatDimMap", "x, src_format='NHWC', dst_format='NCHW'", _dimensions),
    ("DataFormatVecPermute", "x, src_format='NHWC', dst_format='NCHW'", _permuted),
    ("IsotonicRegression", "input, output_dtype='float32'", ("nn.isotonic_regression", _isotonic)),
    (
        "ScaleAndTranslate",
        "images, size, scale, translation, kernel_type='lanczos3', antialias=True",
        _scale_and_translate,
    ),
    (
        "ScaleAndTranslateGrad",
        "grads, original_image, scale, translation, kernel_type='lanczos3', antialias=True",
        _scale_and_translate_gradient,
    ),
    ("TridiagonalMatMul", "superdiag, maindiag, subdiag, rhs", ("linalg.tridiagonal_matmul", _tridiagonal_product)),
    (
        "TridiagonalSolve",
        "diagonals, rhs, partial_pivoting=True, perturb_singular=False",
        ("linalg.tridiagonal_solve", _tridiagonal_solution),
    ),
]
