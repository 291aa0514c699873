"""The linear operators that methods of `LinearOperator` return: adjoint, inverse, product, triangle; full matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import eye
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.ops.linalg.operators.hints import Hints, agreed_hint, is_aat_form, takes_hints
from tapeflow._src.ops.linalg.operators.operator import (
    LinearOperator,
    broadcast_batch,
    check_operators,
    hints_of,
    keep_parameter,
    require_equal_sizes,
    require_operator,
    returned_by_methods,
)
from tapeflow._src.ops.linalg.products import adjoint as adjoint_matrix


@returned_by_methods
@public("linalg.LinearOperatorAdjoint")
class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of another operator.

    >>> tf.linalg.LinearOperatorAdjoint(tf.linalg.LinearOperatorFullMatrix([[1., 2.], [3., 4.]])).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 3.],
           [2., 4.]], dtype=float32)>
    """

    _composite_tensor_fields = ("operator",)

    @takes_hints()
    def __init__(self, hints: Hints, operator: LinearOperator) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints

        def agreed(given: bool | None, own: bool | None, word: str) -> bool | None:
            return agreed_hint(given, own, f"The operator was {word} but the adjoint was not, or the other way round.")

        self._operator = require_operator(operator)
        super().__init__(
            operator.dtype,
            is_non_singular=agreed(is_non_singular, operator.is_non_singular, "non-singular"),
            is_self_adjoint=agreed(is_self_adjoint, operator.is_self_adjoint, "self-adjoint"),
            is_positive_definite=agreed(is_positive_definite, operator.is_positive_definite, "positive definite"),
            is_square=operator._is_square if is_square is None else is_square,
            name=name or operator.name + "_adjoint",
        )

    @property
    def operator(self) -> LinearOperator:
        """The operator whose adjoint this is."""
        return self._operator

    def _shape(self) -> list[int]:
        *batch, rows, columns = self._operator.shape.as_list()
        return [*batch, columns, rows]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._matmul(x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._solve(rhs, not adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        return adjoint_matrix(self._operator._to_dense())

    def _diag_part(self) -> Any:
        return primitives.Conj(self._operator._diag_part()) if self.dtype.is_complex else self._operator._diag_part()

    def _determinant(self) -> Any:
        value = self._operator._determinant()
        return primitives.Conj(value) if self.dtype.is_complex else value

    def _log_abs_determinant(self) -> Any:
        return self._operator._log_abs_determinant()

    def _adjoint(self) -> LinearOperator:
        return self._operator


@returned_by_methods
@public("linalg.LinearOperatorInversion")
class LinearOperatorInversion(LinearOperator):
    """The inverse of another operator, by solving its equations.

    >>> tf.linalg.LinearOperatorInversion(tf.linalg.LinearOperatorDiag([2., 4.])).matvec([2., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1. , 0.5], dtype=float32)>
    """

    _composite_tensor_fields = ("operator",)

    @takes_hints()
    def __init__(self, hints: Hints, operator: LinearOperator) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        require_operator(operator)
        if operator.is_square is False or is_square is False:
            raise ValueError("Operator and inverse must have square shape.")
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError("Operator and inverse must be non-singular: is_non_singular was False.")
        self._operator = operator

        def agreed(given: bool | None, own: bool | None, word: str) -> bool | None:
            return agreed_hint(given, own, f"The operator was {word} but the inverse was not, or the other way round.")

        super().__init__(
            operator.dtype,
            is_non_singular=True,
            is_self_adjoint=agreed(is_self_adjoint, operator.is_self_adjoint, "self-adjoint"),
            is_positive_definite=agreed(is_positive_definite, operator.is_positive_definite, "positive-definite"),
            is_square=True,
            name=name or operator.name + "_inv",
        )

    @property
    def operator(self) -> LinearOperator:
        """The operator whose inverse this is."""
        return self._operator

    def _shape(self) -> list[int]:
        return self._operator.shape.as_list()

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._solve(x, adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._operator._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator._determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator._log_abs_determinant()

    def _eigvals(self) -> Any:
        return primitives.ReverseV2(1.0 / self._operator._eigvals(), [-1])

    def _inverse(self) -> LinearOperator:
        return self._operator

    def _compose(self, right: LinearOperator) -> LinearOperator:
        return self._cancelled(right) if right is self._operator else super()._compose(right)

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        return self._cancelled(left) if left is self._operator else None

    def _cancelled(self, other: LinearOperator) -> LinearOperator:
        shape = other.shape.as_list()
        return LinearOperatorFullMatrix(
            eye(shape[-1], batch_shape=shape[:-2], dtype=self.dtype), True, True, True, True, name=self.name
        )


@returned_by_methods
@public("linalg.LinearOperatorComposition")
class LinearOperatorComposition(LinearOperator):
    """The product of operators: the last acts first.

    >>> a = tf.linalg.LinearOperatorDiag([2., 3.])
    >>> tf.linalg.LinearOperatorComposition([a, a]).matvec([1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 9.], dtype=float32)>
    """

    _composite_tensor_fields = ("operators",)

    @takes_hints()
    def __init__(self, hints: Hints, operators: list[LinearOperator]) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        operators = check_operators(operators)
        for left, right in pairwise(operators):
            require_equal_sizes(left.shape[-1], right.shape[-2])
        is_non_singular = agreed_hint(
            is_non_singular,
            hints_of(operators)["is_non_singular"],
            "The composition of non-singular operators is always non-singular.",
        )
        if is_aat_form(operators):
            is_square = agreed_hint(is_square, True, "The product A @ A.H is always square.")
            is_self_adjoint = agreed_hint(
                is_self_adjoint, True, "A composition of the form A @ A.H is always self-adjoint."
            )
            is_positive_definite = True if is_non_singular else is_positive_definite
        self._operators = operators
        super().__init__(
            operators[0].dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name or "_o_".join(o.name for o in operators),
        )

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors, from left to right."""
        return self._operators

    def _shape(self) -> list[int]:
        batch = broadcast_batch(*(o.batch_shape for o in self._operators))
        return [*batch, self._operators[0].shape[-2], self._operators[-1].shape[-1]]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        for operator in self._operators if adjoint else reversed(self._operators):
            x, adjoint_arg = operator._matmul(x, adjoint, adjoint_arg), False
        return x

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        if any(o.is_square is False for o in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        for operator in reversed(self._operators) if adjoint else self._operators:
            rhs, adjoint_arg = operator._solve(rhs, adjoint, adjoint_arg), False
        return rhs

    def _to_dense(self) -> Any:
        *others, last = self._operators
        dense = last._to_dense()
        for operator in reversed(others):
            dense = operator._matmul(dense, False, False)
        return dense

    def _determinant(self) -> Any:
        if any(o.is_square is False for o in self._operators):
            return super()._determinant()
        result = self._operators[0]._determinant()
        for operator in self._operators[1:]:
            result = result * operator._determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        if any(o.is_square is False for o in self._operators):
            return super()._log_abs_determinant()
        result = self._operators[0]._log_abs_determinant()
        for operator in self._operators[1:]:
            result = result + operator._log_abs_determinant()
        return result

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorComposition([o.adjoint() for o in reversed(self._operators)], self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        if any(o.is_square is False for o in self._operators):
            return super()._inverse()
        return LinearOperatorComposition([o.inverse() for o in reversed(self._operators)], is_non_singular=True)


@public("linalg.LinearOperatorFullMatrix")
class LinearOperatorFullMatrix(LinearOperator):
    """A matrix without structure.

    >>> tf.linalg.LinearOperatorFullMatrix([[1., 2.], [3., 4.]]).matvec([1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 7.], dtype=float32)>
    """

    _composite_tensor_fields = ("matrix",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"matrix": 2}

    @takes_hints("LinearOperatorFullMatrix")
    def __init__(self, hints: Hints, matrix: Any) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        self._matrix = keep_parameter(matrix)
        if self._matrix.shape.rank is not None and self._matrix.shape.rank < 2:
            raise ValueError(
                f"Argument `matrix` must have at least 2 dimensions.  Found: {self._matrix.shape.as_list()}"
            )
        super().__init__(
            self._matrix.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
        )

    @property
    def matrix(self) -> Any:
        """The matrix."""
        return self._matrix

    def _shape(self) -> list[int]:
        found: list[int] = self._matrix.shape.as_list()
        return found

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return primitives.MatMul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return convert_to_tensor(self._matrix)


@returned_by_methods
@public("linalg.LinearOperatorLowerTriangular")
class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix; what is above is not read.

    >>> tf.linalg.LinearOperatorLowerTriangular([[1., 9.], [3., 4.]]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [3., 4.]], dtype=float32)>
    """

    _composite_tensor_fields = ("tril",)
    _matrix_ndims: ClassVar[dict[str, int]] = {"tril": 2}

    @takes_hints("LinearOperatorLowerTriangular")
    def __init__(self, hints: Hints, tril: Any) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = keep_parameter(tril)
        if self._tril.shape.rank is not None and self._tril.shape.rank < 2:
            raise ValueError(f"Argument `tril` must have at least 2 dimensions. Found: {self._tril.shape}")
        super().__init__(self._tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def tril(self) -> Any:
        """The matrix whose lower triangle counts."""
        return self._tril

    def _shape(self) -> list[int]:
        found: list[int] = self._tril.shape.as_list()
        return found

    def _to_dense(self) -> Tensor:
        return primitives.MatrixBandPart(self._tril, -1, 0)

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return primitives.MatMul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return primitives.MatrixTriangularSolve(self._tril, adjoint_matrix(rhs) if adjoint_arg else rhs, True, adjoint)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Fails if an element of the diagonal is zero; in a graph, an operation that does."""
        nonzero = primitives.All(primitives.NotEqual(self._diag_part(), 0))
        return Assert(nonzero, ["Singular operator:  Diagonal contained zero values."])

    def _diag_part(self) -> Any:
        return primitives.MatrixDiagPartV3(self._tril, 0, 0)

    def _determinant(self) -> Any:
        return primitives.Prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        diagonal = self._diag_part()
        size = primitives.ComplexAbs(diagonal) if self.dtype.is_complex else primitives.Abs(diagonal)
        return primitives.Sum(primitives.Log(size), -1)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        if not isinstance(left, LinearOperatorLowerTriangular):
            return None
        return LinearOperatorLowerTriangular(
            primitives.MatMul(left._to_dense(), self._to_dense()), hints_of([left, self])["is_non_singular"]
        )
