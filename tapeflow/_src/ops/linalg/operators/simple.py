"""Linear operators with a simple rule: diagonal, identity, zero, permutation, reflection."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import eye
from tapeflow._src.ops.arrays.constants import zeros as zeros_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.ops.linalg.factorizations import inverse_permutation, take_rows
from tapeflow._src.ops.linalg.operators.derived import LinearOperatorLowerTriangular
from tapeflow._src.ops.linalg.operators.hints import Hints, keeps_parameters, takes_hints
from tapeflow._src.ops.linalg.operators.operator import (
    LinearOperator,
    broadcast_batch,
    hints_of,
    keep_parameter,
    with_batch,
)
from tapeflow._src.ops.linalg.operators.sizes import checked_batch_shape, checked_size, static_shape
from tapeflow._src.ops.linalg.products import adjoint as adjoint_matrix
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.errors import InvalidArgumentError


def _absolute(x: Any) -> Any:
    return cast(primitives.ComplexAbs(x), x.dtype) if x.dtype.is_complex else primitives.Abs(x)


@public("linalg.LinearOperatorDiag")
class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix.

    >>> tf.linalg.LinearOperatorDiag([1., 2.]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [0., 2.]], dtype=float32)>
    """

    _composite_tensor_fields = ("diag",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"diag": 1}

    @takes_hints("LinearOperatorDiag")
    def __init__(self, hints: Hints, diag: Any) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        self._diag = keep_parameter(diag)
        if self._diag.shape.rank == 0:
            raise ValueError("Argument `diag` must have at least 1 dimension. Found: a scalar")
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(self._diag.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> list[int]:
        dims = self._diag.shape.as_list()
        return [*dims, dims[-1]]

    def _column(self, adjoint: bool) -> Tensor:
        column = primitives.ExpandDims(self._diag, -1)
        return primitives.Conj(column) if adjoint and self.dtype.is_complex else column

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._column(adjoint) * (adjoint_matrix(x) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return (adjoint_matrix(rhs) if adjoint_arg else rhs) / self._column(adjoint)

    def _to_dense(self) -> Tensor:
        return primitives.MatrixDiagV3(self._diag, 0, padding_value=0)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Fails if an element of the diagonal is zero; in a graph, an operation that does."""
        nonzero = primitives.All(primitives.NotEqual(self._diag_part(), 0))
        return Assert(nonzero, ["Singular operator:  Diagonal contained zero values."])

    def _diag_part(self) -> Any:
        return convert_to_tensor(self._diag)

    def _determinant(self) -> Any:
        return primitives.Prod(self._diag, -1)

    def _log_abs_determinant(self) -> Any:
        return primitives.Sum(primitives.Log(_absolute(convert_to_tensor(self._diag))), -1)

    def _eigvals(self) -> Any:
        return convert_to_tensor(self._diag)

    def cond(self, name: str = "cond") -> Any:
        """The greatest over the least absolute value of the diagonal."""
        size = primitives.ComplexAbs(self._diag) if self.dtype.is_complex else primitives.Abs(self._diag)
        return primitives.Max(size, -1) / primitives.Min(size, -1)

    def _add_to_tensor(self, x: Any) -> Any:
        diagonal = primitives.MatrixDiagPartV3(x, 0, 0) + self._diag
        return primitives.MatrixSetDiagV3(with_batch(x, diagonal.shape.as_list()[:-1]), diagonal, 0)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(primitives.Conj(self._diag), self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(
            primitives.Reciprocal(self._diag), self.is_non_singular, self.is_self_adjoint, self.is_positive_definite
        )

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(primitives.Sqrt(self._diag), True, self.is_self_adjoint)

    def _compose(self, right: LinearOperator) -> LinearOperator:
        if isinstance(right, LinearOperatorLowerTriangular):
            return LinearOperatorLowerTriangular(
                self._matmul(right._to_dense(), False, False), hints_of([self, right])["is_non_singular"]
            )
        return super()._compose(right)

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        non_singular = hints_of([left, self])["is_non_singular"]
        if isinstance(left, LinearOperatorDiag):
            return LinearOperatorDiag(left._diag * self._diag, non_singular)
        if isinstance(left, LinearOperatorLowerTriangular):
            return LinearOperatorLowerTriangular(left._to_dense() * primitives.ExpandDims(self._diag, -2), non_singular)
        return None


class _Uniform(LinearOperator):
    """What the identity and its multiples share: a size, a batch shape, and nothing on other diagonals."""

    _num_rows: Any
    _batch: Any

    def _shape(self) -> Any:
        return static_shape(self._batch, self._num_rows, self._num_rows)


@public("linalg.LinearOperatorIdentity")
class LinearOperatorIdentity(_Uniform):
    """The matrix that leaves everything as it is.

    >>> tf.linalg.LinearOperatorIdentity(2).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [0., 1.]], dtype=float32)>
    """

    _composite_tensor_prefer_static_fields = ("num_rows", "batch_shape")

    @keeps_parameters
    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint, word in (
            (is_self_adjoint, "self adjoint"),
            (is_square, "square"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {word}.")
        self._num_rows = checked_size("num_rows", num_rows)
        self._batch = checked_batch_shape(batch_shape)
        super().__init__(dtype or float32, None, True, True, True, True, name)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        x = adjoint_matrix(x) if adjoint_arg else x
        return with_batch(x, broadcast_batch(self._batch, x.shape[:-2]))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _to_dense(self) -> Any:
        return eye(self._num_rows, batch_shape=self._batch, dtype=self.dtype)

    def _ones(self, shape: list[int]) -> Any:
        return primitives.BroadcastTo(cast(1, self.dtype), shape)

    def _diag_part(self) -> Any:
        return self._ones([*self._batch, self._num_rows])

    def _trace(self) -> Any:
        return self._ones(self._batch) * cast(self._num_rows, self.dtype)

    def _determinant(self) -> Any:
        return self._ones(self._batch)

    def _log_abs_determinant(self) -> Any:
        return zeros_of(self._batch, self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def cond(self, name: str = "cond") -> Any:
        """1."""
        return self._ones(self._batch)

    def _add_to_tensor(self, x: Any) -> Any:
        return self._to_dense() + x

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self

    def _compose(self, right: LinearOperator) -> LinearOperator:
        return right if self._leaves(right) else super()._compose(right)

    def _leaves(self, other: LinearOperator) -> bool:
        return broadcast_batch(self._batch, other.batch_shape) == other.batch_shape.as_list()


@public("linalg.LinearOperatorScaledIdentity")
class LinearOperatorScaledIdentity(_Uniform):
    """A multiple of the identity; the multiplier's shape is the batch shape.

    >>> tf.linalg.LinearOperatorScaledIdentity(2, 3.).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[3., 0.],
           [0., 3.]], dtype=float32)>
    """

    _composite_tensor_fields = ("multiplier",)
    _composite_tensor_prefer_static_fields = ("num_rows",)

    @keeps_parameters
    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._multiplier = keep_parameter(multiplier)
        if not self._multiplier.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real scaled identity operator is always self adjoint.")
            is_self_adjoint = True
        self._num_rows = checked_size("num_rows", num_rows)
        dtype = self._multiplier.dtype
        super().__init__(dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def _batch(self) -> Any:
        return self._multiplier.shape.as_list()

    @property
    def multiplier(self) -> Any:
        """The number, or batch of numbers, on the diagonal."""
        return self._multiplier

    def _factor(self, adjoint: bool) -> Any:
        factor = primitives.Reshape(self._multiplier, [*self._batch, 1, 1])
        return primitives.Conj(factor) if adjoint and self.dtype.is_complex else factor

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return (adjoint_matrix(x) if adjoint_arg else x) * self._factor(adjoint)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return (adjoint_matrix(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _to_dense(self) -> Tensor:
        return primitives.MatrixDiagV3(self._diag_part(), 0, padding_value=0)

    def _diag_part(self) -> Tensor:
        column = primitives.ExpandDims(self._multiplier, -1)
        return primitives.BroadcastTo(column, [*self._batch, self._num_rows])

    def _trace(self) -> Any:
        return self._multiplier * cast(self._num_rows, self.dtype)

    def _determinant(self) -> Any:
        return primitives.Pow(self._multiplier, cast(self._num_rows, self.dtype))

    def _log_abs_determinant(self) -> Any:
        multiplier = self._multiplier
        size = primitives.ComplexAbs(multiplier) if self.dtype.is_complex else primitives.Abs(multiplier)
        return primitives.Log(size) * cast(self._num_rows, size.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def cond(self, name: str = "cond") -> Any:
        """1."""
        return primitives.BroadcastTo(cast(1, self.dtype), self._batch)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Fails if the multiplier is zero; in a graph, an operation that does."""
        nonzero = primitives.All(primitives.NotEqual(convert_to_tensor(self._multiplier), 0))
        return Assert(nonzero, ["LinearOperator was singular: the multiplier contained zero values."])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, primitives.Conj(self._multiplier), self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._num_rows,
            primitives.Reciprocal(self._multiplier),
            self.is_non_singular,
            self.is_self_adjoint,
            self.is_positive_definite,
        )

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, primitives.Sqrt(self._multiplier), True)

    def _scaled_diagonal(self, other: LinearOperator) -> LinearOperator | None:
        non_singular = hints_of([self, other])["is_non_singular"]
        if isinstance(other, LinearOperatorScaledIdentity):
            return LinearOperatorScaledIdentity(self._num_rows, self._multiplier * other._multiplier, non_singular)
        if isinstance(other, LinearOperatorDiag):
            return LinearOperatorDiag(other.diag * primitives.ExpandDims(self._multiplier, -1), non_singular)
        return None

    def _compose(self, right: LinearOperator) -> LinearOperator:
        return self._scaled_diagonal(right) or super()._compose(right)

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        return self._scaled_diagonal(left)


@public("linalg.LinearOperatorZeros")
class LinearOperatorZeros(LinearOperator):
    """The matrix of zeros.

    >>> tf.linalg.LinearOperatorZeros(2).matvec([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """

    _composite_tensor_prefer_static_fields = ("num_rows", "num_columns", "batch_shape")

    @keeps_parameters
    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        self._num_rows = checked_size("num_rows", num_rows)
        self._num_columns = self._num_rows if num_columns is None else checked_size("num_columns", num_columns)
        self._batch = checked_batch_shape(batch_shape)
        known = not _core.is_symbolic(self._num_rows) and not _core.is_symbolic(self._num_columns)
        square = self._num_rows == self._num_columns if known else num_columns is None or bool(is_square)
        if is_self_adjoint is False and square:
            raise ValueError("A zero operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zero operator is never non-singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is never positive-definite.")
        super().__init__(dtype or float32, None, False, square, False, square, name)

    def _shape(self) -> Any:
        return static_shape(self._batch, self._num_rows, self._num_columns)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Tensor:
        batch = broadcast_batch(self._batch, x.shape[:-2])
        rows = self._num_columns if adjoint else self._num_rows
        return zeros_of([*batch, rows, x.shape[-2 if adjoint_arg else -1]], self.dtype)

    def _to_dense(self) -> Any:
        return zeros_of(self._shape(), self.dtype)

    def _diag_part(self) -> Any:
        return zeros_of([*self._batch, min(self._num_rows, self._num_columns)], self.dtype)

    def _trace(self) -> Any:
        return zeros_of(self._batch, self.dtype)

    def _determinant(self) -> Any:
        return zeros_of(self._batch, self.dtype)

    def _log_abs_determinant(self) -> Any:
        return primitives.Log(zeros_of(self._batch, self.dtype))

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _add_to_tensor(self, x: Any) -> Any:
        return x

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Fails: zeros are singular."""
        raise InvalidArgumentError.of("assert_non_singular: Zero operators are always singular.")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Fails: zeros are not positive definite."""
        raise InvalidArgumentError.of("assert_positive_definite: Zero operators are always non-positive definite.")

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorZeros(self._num_columns, self._num_rows, self._batch, self.dtype)

    def _compose(self, right: LinearOperator) -> LinearOperator:
        batch = broadcast_batch(self._batch, right.batch_shape)
        return LinearOperatorZeros(self._num_rows, right.shape[-1], batch, self.dtype)

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        batch = broadcast_batch(self._batch, left.batch_shape)
        return LinearOperatorZeros(left.shape[-2], self._num_columns, batch, self.dtype)


@public("linalg.LinearOperatorPermutation")
class LinearOperatorPermutation(LinearOperator):
    """The matrix that puts rows in the order `perm`.

    >>> tf.linalg.LinearOperatorPermutation([2, 0, 1]).matvec([1., 2., 3.])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([3., 1., 2.], dtype=float32)>
    """

    _composite_tensor_fields = ("perm",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"perm": 1}

    @takes_hints("LinearOperatorPermutation")
    def __init__(self, hints: Hints, perm: Any, dtype: Any = float32) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        if is_non_singular is False:
            raise ValueError(f"A Permutation operator is always non-singular; got {is_non_singular}")
        if is_square is False:
            raise ValueError(f"A Permutation operator is always square; got {is_square}")
        self._perm = keep_parameter(perm)
        if not self._perm.dtype.is_integer:
            raise TypeError(f"Argument `perm` must be integer dtype. Found: {self._perm.dtype}")
        if self._perm.shape.rank is not None and self._perm.shape.rank < 1:
            raise ValueError("Argument `perm` must have at least 1 dimension. Found: a scalar")
        if not _core.is_symbolic(self._perm) and not isinstance(self._perm, _core.Variable):
            order = np.sort(np.asarray(self._perm), axis=-1)
            if not np.array_equal(order, np.broadcast_to(np.arange(order.shape[-1]), order.shape)):
                raise ValueError(
                    f"Argument `perm` must be a vector of unique integers from 0 to {order.shape[-1] - 1}."
                )
        super().__init__(as_dtype(dtype), None, True, is_self_adjoint, is_positive_definite, True, name)

    @property
    def perm(self) -> Any:
        """The order of the rows."""
        return self._perm

    def _shape(self) -> list[int]:
        dims = self._perm.shape.as_list()
        return [*dims, dims[-1]]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_matrix(x) if adjoint_arg else x
        order = inverse_permutation(convert_to_tensor(self._perm)) if adjoint else convert_to_tensor(self._perm)
        if order.shape.rank == 1:
            return take_rows(x, order)
        batch = broadcast_batch(order.shape[:-1], x.shape[:-2])
        return primitives.GatherV2(with_batch(x, batch), with_batch(order, batch, 1), len(batch), len(batch))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _to_dense(self) -> Any:
        places = convert_to_tensor(np.arange(self._perm.shape[-1]), dtype=self._perm.dtype)
        return cast(primitives.Equal(primitives.ExpandDims(self._perm, -1), places), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros_of(self.batch_shape, self.dtype)

    def cond(self, name: str = "cond") -> Any:
        """1."""
        return primitives.BroadcastTo(cast(1, self.dtype), self.batch_shape.as_list())

    def _adjoint(self) -> LinearOperator:
        if self.shape.rank is None:
            return super()._adjoint()
        return LinearOperatorPermutation(inverse_permutation(convert_to_tensor(self._perm)), self.dtype)

    def _inverse(self) -> LinearOperator:
        return self._adjoint()


@public("linalg.LinearOperatorHouseholder")
class LinearOperatorHouseholder(LinearOperator):
    """The reflection `1 - 2 v v^H` with `v` the unit vector along `reflection_axis`.

    >>> tf.linalg.LinearOperatorHouseholder([1., 0.]).matvec([3., 4.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-3.,  4.], dtype=float32)>
    """

    _composite_tensor_fields = ("reflection_axis",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"reflection_axis": 1}

    @takes_hints("LinearOperatorHouseholder")
    def __init__(self, hints: Hints, reflection_axis: Any) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        if is_positive_definite is True:
            raise ValueError("A Householder operator is necessarily not positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is necessarily self-adjoint.")
        if is_non_singular is False:
            raise ValueError("A Householder operator is necessarily non-singular.")
        self._reflection_axis = keep_parameter(reflection_axis)
        if self._reflection_axis.shape.rank is not None and self._reflection_axis.shape.rank < 1:
            raise ValueError("Argument reflection_axis must have at least 1 dimension. Found: a scalar")
        super().__init__(self._reflection_axis.dtype, None, True, True, False, True, name)

    @property
    def reflection_axis(self) -> Any:
        """The vector that is turned round."""
        return self._reflection_axis

    def _shape(self) -> list[int]:
        dims = self._reflection_axis.shape.as_list()
        return [*dims, dims[-1]]

    def _unit(self) -> Any:
        axis = convert_to_tensor(self._reflection_axis)
        size = primitives.ComplexAbs(axis) if self.dtype.is_complex else axis
        return axis / cast(primitives.Sqrt(primitives.Sum(size * size, -1, True)), self.dtype)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        x = adjoint_matrix(x) if adjoint_arg else x
        unit = primitives.ExpandDims(self._unit(), -1)
        return x - cast(2, self.dtype) * unit * primitives.MatMul(unit, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _to_dense(self) -> Any:
        unit = primitives.ExpandDims(self._unit(), -1)
        outer = primitives.MatMul(unit, unit, adjoint_b=True)
        return eye(self.shape[-1], dtype=self.dtype) - cast(2, self.dtype) * outer

    def _filled(self, value: int, shape: list[int]) -> Any:
        return primitives.BroadcastTo(cast(value, self.dtype), shape)

    def _diag_part(self) -> Any:
        unit = self._unit()
        squares = unit * primitives.Conj(unit) if self.dtype.is_complex else unit * unit
        return cast(1, self.dtype) - cast(2, self.dtype) * squares

    def _trace(self) -> Any:
        return self._filled(self.shape[-1] - 2, self.batch_shape.as_list())

    def _determinant(self) -> Any:
        return self._filled(-1, self.batch_shape.as_list())

    def _log_abs_determinant(self) -> Any:
        return self._filled(0, self.batch_shape.as_list())

    def _eigvals(self) -> Any:
        batch = self.batch_shape.as_list()
        return primitives.ConcatV2([self._filled(-1, [*batch, 1]), self._filled(1, [*batch, self.shape[-1] - 1])], -1)

    def cond(self, name: str = "cond") -> Any:
        """1."""
        return self._filled(1, self.batch_shape.as_list())

    def _inverse(self) -> LinearOperator:
        return self
