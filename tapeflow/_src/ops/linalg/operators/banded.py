"""Linear operators given by few diagonals or by one row: tridiagonal, Toeplitz, circulant."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.linalg.factorizations import tridiagonal_matmul, tridiagonal_solve
from tapeflow._src.ops.linalg.operators.hints import Hints, takes_hints
from tapeflow._src.ops.linalg.operators.operator import (
    LinearOperator,
    broadcast_batch,
    hints_of,
    keep_parameter,
    with_batch,
)
from tapeflow._src.ops.linalg.operators.sizes import joined_size
from tapeflow._src.ops.linalg.products import adjoint as adjoint_matrix
from tapeflow._src.ops.linalg.products import swapped_ends
from tapeflow._src.ops.signal.spectral import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from tapeflow._src.types.dtypes import as_dtype, complex64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape


@public("linalg.LinearOperatorTridiag")
class LinearOperatorTridiag(LinearOperator):
    """A tridiagonal matrix, given as (..., 3, n), as three diagonals or as a matrix.

    >>> tf.linalg.LinearOperatorTridiag([[1., 0.], [2., 4.], [0., 3.]]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[2., 1.],
           [3., 4.]], dtype=float32)>
    """

    _composite_tensor_fields = ("diagonals",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"diagonals": 2}

    @takes_hints("LinearOperatorTridiag")
    def __init__(self, hints: Hints, diagonals: Any, diagonals_format: str = "compact") -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        if diagonals_format not in ("compact", "matrix", "sequence"):
            raise ValueError(
                f"Argument `diagonals_format` must be one of compact, matrix, or sequence. Found : {diagonals_format}"
            )
        if is_square is False:
            raise ValueError("Only square tridiagonal operators are supported.")
        if diagonals_format == "sequence":
            self._matrix_ndims = {"diagonals": 1}  # type: ignore[misc]  # of each of the three
            self._diagonals: Any = [keep_parameter(d) for d in diagonals]
            dtype = self._diagonals[0].dtype
        else:
            self._diagonals = keep_parameter(diagonals)
            dtype = self._diagonals.dtype
        self._format = diagonals_format
        super().__init__(dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def diagonals(self) -> Any:
        """The diagonals as they were given."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """'compact', 'sequence' or 'matrix'."""
        return self._format

    def _shape(self) -> list[int]:
        if self._format == "matrix":
            found: list[int] = self._diagonals.shape.as_list()
            return found
        if self._format == "compact":
            *batch, _, n = self._diagonals.shape.as_list()
        else:
            batch = broadcast_batch(*(d.shape[:-1] for d in self._diagonals))
            n = self._diagonals[1].shape[-1]
        return [*batch, n, n]

    def _to_dense(self) -> Tensor:
        if self._format == "matrix":
            return primitives.MatrixBandPart(self._diagonals, min(1, self.shape[-1]), min(1, self.shape[-1]))
        if self._format == "compact":
            return primitives.MatrixDiagV3(self._diagonals, (-1, 1), padding_value=0, align="LEFT_RIGHT")
        return primitives.MatrixDiagV3(self._compact(), (-1, 1), padding_value=0, align="LEFT_RIGHT")

    def _compact(self) -> Any:
        """The diagonals as (..., 3, n)."""
        if self._format == "compact":
            return convert_to_tensor(self._diagonals)
        if self._format == "matrix":
            return primitives.MatrixDiagPartV3(self._diagonals, (-1, 1), 0, "LEFT_RIGHT")
        *batch, n, _ = self.shape.as_list()

        def padded(d: Any, before: int) -> Any:
            if d.shape[-1] != n:
                paddings = [0] * (2 * d.shape.rank)
                paddings[-2:] = [before, 1 - before]
                d = primitives.PadV2(d, paddings, cast(0, self.dtype))
            return with_batch(convert_to_tensor(d), batch, 1)

        above, main, below = self._diagonals
        return primitives.Pack([padded(above, 0), padded(main, 0), padded(below, 1)], len(batch))

    def _turned(self, adjoint: bool) -> Any:
        """The diagonals of the operator or of its adjoint, as (..., 3, n)."""
        diagonals = self._compact()
        if not adjoint:
            return diagonals
        above, main, below = primitives.Unpack(diagonals, -1, diagonals.shape.rank - 2)
        axis = above.shape.rank - 1
        turned = [_rolled(below, -1), main, _rolled(above, 1)]
        result = primitives.Pack(turned, axis)
        return primitives.Conj(result) if self.dtype.is_complex else result

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        x = adjoint_matrix(x) if adjoint_arg else x
        diagonals = self._turned(adjoint)
        batch = broadcast_batch(diagonals.shape[:-2], x.shape[:-2])
        return tridiagonal_matmul(with_batch(diagonals, batch), with_batch(x, batch))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = adjoint_matrix(rhs) if adjoint_arg else rhs
        diagonals = self._turned(adjoint)
        batch = broadcast_batch(diagonals.shape[:-2], rhs.shape[:-2])
        return tridiagonal_solve(with_batch(diagonals, batch), with_batch(rhs, batch))

    def _diag_part(self) -> Any:
        if self._format == "matrix":
            return primitives.MatrixDiagPartV3(self._diagonals, 0, 0)
        return primitives.Unpack(self._compact(), -1, self.shape.rank - 2)[1]

    def _adjoint(self) -> LinearOperator:
        if self.shape.rank is None:
            return super()._adjoint()
        return LinearOperatorTridiag(self._turned(True), "compact", self.is_non_singular)


def _rolled(x: Any, by: int) -> Any:
    """Elements along the last dimension moved one place round."""
    n = x.shape[-1]
    cut = 1 if by < 0 else n - 1
    first, second = primitives.SplitV(x, [cut, n - cut], -1)
    return primitives.ConcatV2([second, first], -1)


@public("linalg.LinearOperatorToeplitz")
class LinearOperatorToeplitz(LinearOperator):
    """A matrix with equal elements along each diagonal, given by its first column and first row.

    >>> tf.linalg.LinearOperatorToeplitz([1., 2.], [1., 3.]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 3.],
           [2., 1.]], dtype=float32)>
    """

    _composite_tensor_fields = ("col", "row")
    _matrix_ndims: ClassVar[dict[str, int]] = {"col": 1, "row": 1}

    @takes_hints("LinearOperatorToeplitz")
    def __init__(self, hints: Hints, col: Any, row: Any) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        self._col, self._row = keep_parameter(col), keep_parameter(row)
        for vector in (self._col, self._row):
            if vector.shape.rank is not None and vector.shape.rank < 1:
                raise ValueError("Arguments `row` and `col` must have at least 1 dimension. Found: a scalar")
        sizes = {self._col.shape[-1], self._row.shape[-1]} - {None}
        if len(sizes) > 1:
            raise ValueError(
                f"Expected square matrix, got `row` and `col` of shapes {self._row.shape}, {self._col.shape}"
            )
        dtype = self._col.dtype
        super().__init__(dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row; its first element is not read."""
        return self._row

    def _shape(self) -> list[int]:
        n = self._col.shape[-1]
        return [*broadcast_batch(self._col.shape[:-1], self._row.shape[:-1]), n, n]

    def _to_dense(self) -> Tensor:
        *batch, n, _ = self.shape.as_list()
        col, row = (
            with_batch(convert_to_tensor(self._col), batch, 1),
            with_batch(convert_to_tensor(self._row), batch, 1),
        )
        above = primitives.SplitV(row, [1, n - 1], -1)[1]
        values = primitives.ConcatV2([primitives.ReverseV2(above, [len(batch)]), col], -1)
        places = np.arange(n)[:, None] - np.arange(n)[None, :] + (n - 1)
        values = primitives.ExpandDims(values, 0)
        return primitives.Squeeze(primitives.GatherV2(values, places, len(batch) + 1, 0), 0)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return primitives.MatMul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _diag_part(self) -> Any:
        *batch, n, _ = self.shape.as_list()
        first = primitives.SplitV(self._col, [1, n - 1], -1)[0]
        return primitives.BroadcastTo(first, [*batch, n])


def _transform(x: Any, dims: list[int], inverse: bool) -> Tensor:
    """The discrete Fourier transform of complex `x` over its last dimensions, of the sizes `dims`."""
    forward, backward = ((fft, ifft), (fft2d, ifft2d), (fft3d, ifft3d))[len(dims) - 1]
    return (backward if inverse else forward)(x)


class _Circulant(LinearOperator):
    """What circulant operators of each depth share: they are diagonal after a Fourier transform."""

    _depth: int

    def _begin(self, hints: Hints, spectrum: Any, input_output_dtype: Any = complex64) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        self._spectrum = keep_parameter(spectrum)
        if self._spectrum.shape.rank is not None and self._spectrum.shape.rank < self._depth:
            raise ValueError(
                f"Argument `spectrum` must have at least {self._depth} dimensions. Found: {self._spectrum.shape}"
            )
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("A [[nested] block] circulant operator is always square.")
        super().__init__(
            as_dtype(input_output_dtype),
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    @property
    def spectrum(self) -> Any:
        """The eigenvalues, in the order of the Fourier transform."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """1 for circulant, 2 for block circulant, 3 for nested blocks."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of the transformed dimensions."""
        return TensorShape(self._blocks())

    def block_shape_tensor(self) -> Any:
        """The sizes of the transformed dimensions, as a tensor."""
        return convert_to_tensor(self._blocks(), dtype="int32")

    def _blocks(self) -> list[int]:
        dims = self._spectrum.shape.as_list()
        found: list[int] = dims[len(dims) - self._depth :]
        return found

    def _shape(self) -> list[int]:
        n = joined_size(prod, self._blocks())
        return [*self._spectrum.shape.as_list()[: -self._depth], n, n]

    def _complex_spectrum(self) -> Any:
        spectrum = convert_to_tensor(self._spectrum)
        if spectrum.dtype.is_complex:
            return spectrum
        return cast(spectrum, "complex128" if spectrum.dtype.name == "float64" else "complex64")

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """The kernel whose circular convolution this operator is."""
        return cast(_transform(self._complex_spectrum(), self._blocks(), True), self.dtype)

    def _filter(self, x: Any, adjoint_arg: bool, factor: Any) -> Any:
        """Multiplies by `factor` (one number for each frequency) between a transform and its inverse."""
        blocks = self._blocks()
        x = adjoint_matrix(x) if adjoint_arg else x
        rows = primitives.Transpose(cast(x, factor.dtype), swapped_ends(x.shape.rank))
        *lead, n = rows.shape.as_list()
        shaped = primitives.Reshape(rows, [*lead, *blocks])
        batch = factor.shape.as_list()[: -self._depth]
        factor = primitives.Reshape(factor, [*batch, 1, *blocks])
        result = _transform(_transform(shaped, blocks, False) * factor, blocks, True)
        result = primitives.Reshape(result, [*result.shape.as_list()[: -self._depth], n])
        return cast(primitives.Transpose(result, swapped_ends(result.shape.rank)), self.dtype)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        spectrum = self._complex_spectrum()
        return self._filter(x, adjoint_arg, primitives.Conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        spectrum = self._complex_spectrum()
        return self._filter(rhs, adjoint_arg, primitives.Reciprocal(primitives.Conj(spectrum) if adjoint else spectrum))

    def _axes(self) -> list[int]:
        rank = self._spectrum.shape.rank
        return list(range(rank - self._depth, rank))

    def _trace(self) -> Any:
        return cast(primitives.Sum(self._spectrum, self._axes()), self.dtype)

    def _diag_part(self) -> Any:
        *batch, n, _ = self.shape.as_list()
        mean = primitives.ExpandDims(self._trace() / cast(n, self.dtype), -1)
        return primitives.BroadcastTo(mean, [*batch, n])

    def _determinant(self) -> Any:
        return cast(primitives.Prod(self._spectrum, self._axes()), self.dtype)

    def _log_abs_determinant(self) -> Any:
        complex_spectrum = self._spectrum.dtype.is_complex
        size = primitives.ComplexAbs(self._spectrum) if complex_spectrum else primitives.Abs(self._spectrum)
        return cast(primitives.Sum(primitives.Log(size), self._axes()), self.dtype)

    def eigvals(self, name: str = "eigvals") -> Any:
        """The spectrum, as one list."""
        *batch, n, _ = self.shape.as_list()
        return primitives.Reshape(self._spectrum, [*batch, n])

    def _eigvals(self) -> Any:
        return self.eigvals()

    def cond(self, name: str = "cond") -> Any:
        """The greatest over the least absolute value of the spectrum."""
        complex_spectrum = self._spectrum.dtype.is_complex
        size = primitives.ComplexAbs(self._spectrum) if complex_spectrum else primitives.Abs(self._spectrum)
        return primitives.Max(size, self._axes()) / primitives.Min(size, self._axes())

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Fails if the kernel is not real."""
        kernel = np.asarray(_transform(self._complex_spectrum(), self._blocks(), True))
        size = float(np.max(np.abs(np.asarray(self._spectrum)), initial=0))
        if np.max(np.abs(kernel.imag), initial=0) > 10 * np.finfo(kernel.real.dtype).eps * max(size, 1e-30):
            raise InvalidArgumentError.of("assert_hermitian_spectrum: Spectrum was not Hermitian")

    def _with(self, spectrum: Any, **hints: Any) -> LinearOperator:
        return type(self)(spectrum, self.dtype, **hints)

    def _adjoint(self) -> LinearOperator:
        return self._with(primitives.Conj(self._spectrum), is_non_singular=self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return self._with(
            primitives.Reciprocal(self._spectrum),
            is_non_singular=self.is_non_singular,
            is_positive_definite=self.is_positive_definite,
        )

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        if type(left) is not type(self):
            return None
        spectra, are_known = (left._spectrum, self._spectrum), False
        if all(spectrum.shape.rank is not None for spectrum in spectra):
            are_known = None not in (left._blocks() + self._blocks())
            if are_known and left._blocks() != self._blocks():
                return None
        spectrum = spectra[0] * cast(spectra[1], spectra[0].dtype)
        if not are_known:
            blocks = [primitives.Shape(x)[-self._depth :] for x in spectra]
            same = primitives.All(primitives.Equal(*blocks))
            spectrum = _core.required(spectrum, same, "matmul: blocks of circulant operators must have one shape")
        return self._with(spectrum, is_non_singular=hints_of([left, self])["is_non_singular"])


@public("linalg.LinearOperatorCirculant")
class LinearOperatorCirculant(_Circulant):
    """A circulant matrix, given by its eigenvalues in the order of the Fourier transform.

    >>> tf.math.real(tf.linalg.LinearOperatorCirculant(tf.constant([2., 2.])).to_dense())
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[2., 0.],
           [0., 2.]], dtype=float32)>
    """

    _composite_tensor_fields = ("spectrum",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"spectrum": 1}
    __init__ = takes_hints("LinearOperatorCirculant", is_square=True)(_Circulant._begin)

    _depth = 1


@public("linalg.LinearOperatorCirculant2D")
class LinearOperatorCirculant2D(_Circulant):
    """A block circulant matrix, given by a spectrum with two dimensions.

    >>> tf.linalg.LinearOperatorCirculant2D(tf.ones([2, 3])).shape
    TensorShape([6, 6])
    """

    _composite_tensor_fields = ("spectrum",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"spectrum": 2}
    __init__ = takes_hints("LinearOperatorCirculant2D", is_square=True)(_Circulant._begin)

    _depth = 2


@public("linalg.LinearOperatorCirculant3D")
class LinearOperatorCirculant3D(_Circulant):
    """A nested block circulant matrix, given by a spectrum with three dimensions.

    >>> tf.linalg.LinearOperatorCirculant3D(tf.ones([2, 2, 2])).shape
    TensorShape([8, 8])
    """

    _composite_tensor_fields = ("spectrum",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"spectrum": 3}
    __init__ = takes_hints("LinearOperatorCirculant3D", is_square=True)(_Circulant._begin)

    _depth = 3
