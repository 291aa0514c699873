"""Linear operators made of several: Kronecker products, blocks, low-rank updates."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.linalg.operators.hints import Hints, agreed_hint, takes_hints
from tapeflow._src.ops.linalg.operators.operator import (
    LinearOperator,
    broadcast_batch,
    check_operators,
    hints_of,
    keep_parameter,
    require_equal_sizes,
    require_operator,
    solve_broadcast,
    with_batch,
)
from tapeflow._src.ops.linalg.operators.simple import LinearOperatorDiag, LinearOperatorIdentity
from tapeflow._src.ops.linalg.operators.sizes import joined_size
from tapeflow._src.ops.linalg.products import adjoint as adjoint_matrix


def _all(operators: list[LinearOperator], hint: str) -> bool | None:
    return True if all(getattr(o, hint) for o in operators) else None


def _shared(hints: Hints, operators: list[LinearOperator]) -> Hints:
    """The hints; of the first three, those that were not given hold if they hold for all operators."""
    unknown = [hint for hint in Hints._fields[:3] if getattr(hints, hint) is None]
    known: dict[str, Any] = {hint: _all(operators, hint) for hint in unknown}
    return hints._replace(**known)


@public("linalg.LinearOperatorKronecker")
class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators.

    >>> a = tf.linalg.LinearOperatorDiag([1., 2.])
    >>> tf.linalg.LinearOperatorKronecker([a, a]).diag_part()
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 2., 2., 4.], dtype=float32)>
    """

    _composite_tensor_fields = ("operators",)

    @takes_hints()
    def __init__(self, hints: Hints, operators: list[LinearOperator]) -> None:
        self._operators = check_operators(operators)
        hints = _shared(hints, self._operators)
        square = _all(self._operators, "is_square") if hints.is_square is None else hints.is_square
        name = hints.name or "_x_".join(o.name for o in self._operators)
        super().__init__(self._operators[0].dtype, None, *hints[:3], square, name)

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> list[int]:
        batch = broadcast_batch(*(o.batch_shape for o in self._operators))
        rows, columns = ([o.shape[axis] for o in self._operators] for axis in (-2, -1))
        return [*batch, joined_size(prod, rows), joined_size(prod, columns)]

    def _apply(self, x: Any, adjoint_arg: bool, methods: list[Any], sizes: list[int]) -> Any:
        """Each factor works on its own part of the row index, which then goes to the back of the index."""
        x = adjoint_matrix(x) if adjoint_arg else x
        for method, size in zip(methods, sizes):
            *batch, rows, columns = x.shape.as_list()
            rest = rows // size if size else 0
            x = method(primitives.Reshape(x, [*batch, size, rest * columns]))
            *batch, made, _ = x.shape.as_list()
            x = primitives.Reshape(x, [*batch, made, rest, columns])
            first = len(batch)
            x = primitives.Transpose(x, [*range(first), first + 1, first, first + 2])
            x = primitives.Reshape(x, [*batch, rest * made, columns])
        return x

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        sizes = [o.shape[-2 if adjoint else -1] for o in self._operators]
        return self._apply(
            x, adjoint_arg, [lambda part, o=o: o._matmul(part, adjoint, False) for o in self._operators], sizes
        )

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        sizes = [o.shape[-1] for o in self._operators]
        return self._apply(
            rhs, adjoint_arg, [lambda part, o=o: o._solve(part, adjoint, False) for o in self._operators], sizes
        )

    def _outer(self, parts: list[Any]) -> Any:
        """All products of one element of each part, over the last dimension."""
        result = parts[0]
        for part in parts[1:]:
            product = primitives.ExpandDims(result, -1) * primitives.ExpandDims(part, -2)
            *batch, a, b = product.shape.as_list()
            result = primitives.Reshape(product, [*batch, a * b])
        return result

    def _diag_part(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._diag_part()
        return self._outer([o._diag_part() for o in self._operators])

    def _trace(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._trace()
        result = self._operators[0]._trace()
        for operator in self._operators[1:]:
            result = result * operator._trace()
        return result

    def _determinant(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._determinant()
        n = self.shape[-1]
        result = cast(1, self.dtype)
        for operator in self._operators:
            result = result * primitives.Pow(operator._determinant(), cast(n // operator.shape[-1], self.dtype))
        return result

    def _log_abs_determinant(self) -> Any:
        if not all(o.is_square for o in self._operators):
            return super()._log_abs_determinant()
        n = self.shape[-1]
        result = cast(0, self.dtype)
        for operator in self._operators:
            result = result + operator._log_abs_determinant() * cast(n // operator.shape[-1], self.dtype)
        return result

    def _eigvals(self) -> Any:
        return self._outer([o._eigvals() for o in self._operators])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([o.adjoint() for o in self._operators], self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        if not all(o.is_square for o in self._operators):
            return super()._inverse()
        return LinearOperatorKronecker([o.inverse() for o in self._operators], True)

    def _cholesky(self) -> LinearOperator:
        if not all(o._can_use_cholesky() for o in self._operators):
            return super()._cholesky()
        return LinearOperatorKronecker([o.cholesky() for o in self._operators], True, False)


def _is_blocks(x: Any) -> bool:
    if not isinstance(x, list | tuple) or not x:
        return False
    return all(_core.is_tensor(part) or isinstance(part, np.ndarray) for part in x)


class _Blocks(LinearOperator):
    """What block operators share: arguments may come as one tensor or as a list with one for each block."""

    def _diagonal_blocks(self) -> list[LinearOperator]:
        raise NotImplementedError

    def _rows(self) -> list[int]:
        return [o.shape[-2] for o in self._diagonal_blocks()]

    def _columns(self) -> list[int]:
        return [o.shape[-1] for o in self._diagonal_blocks()]

    def _split(self, x: Any, sizes: list[int], axis: int) -> list[Any]:
        parts = list(x if isinstance(x, list | tuple) else primitives.SplitV(x, sizes, axis))
        for part, size in zip(parts, sizes):
            require_equal_sizes(size, part.shape[axis])
        return parts

    def _join(self, parts: list[Any]) -> Any:
        batch = broadcast_batch(*(part.shape[:-2] for part in parts))
        return primitives.ConcatV2([with_batch(part, batch) for part in parts], -2)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The operator times a matrix, an operator, or a list with one matrix for each block (which gives a list)."""
        if not _is_blocks(x):
            return super().matmul(x, adjoint, adjoint_arg)
        return self._multiply_blocks([convert_to_tensor(part) for part in x], adjoint, adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The operator times a vector, or a list with one vector for each block (which gives a list)."""
        if not _is_blocks(x):
            return super().matvec(x, adjoint)
        parts = self._multiply_blocks([primitives.ExpandDims(part, -1) for part in x], adjoint, False)
        return [primitives.Squeeze(part, -1) for part in parts]

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The solution for a matrix, an operator, or a list with one matrix for each block (which gives a list)."""
        if not _is_blocks(rhs):
            return super().solve(rhs, adjoint, adjoint_arg)
        self._check_solvable()
        return self._solve_blocks([convert_to_tensor(part) for part in rhs], adjoint, adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The solution for a vector, or a list with one vector for each block (which gives a list)."""
        if not _is_blocks(rhs):
            return super().solvevec(rhs, adjoint)
        self._check_solvable()
        parts = self._solve_blocks([primitives.ExpandDims(part, -1) for part in rhs], adjoint, False)
        return [primitives.Squeeze(part, -1) for part in parts]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        return self._join(self._multiply_blocks(x, adjoint, adjoint_arg))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        if not all(o.is_square for o in self._diagonal_blocks()):
            return super()._solve(rhs, adjoint, adjoint_arg)
        return self._join(self._solve_blocks(rhs, adjoint, adjoint_arg))

    def _multiply_blocks(self, x: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        raise NotImplementedError

    def _solve_blocks(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        raise NotImplementedError

    def _diag_part(self) -> Any:
        blocks = self._diagonal_blocks()
        if not all(o.is_square for o in blocks):
            return super()._diag_part()
        parts = [o._diag_part() for o in blocks]
        batch = self.batch_shape.as_list()
        return primitives.ConcatV2([with_batch(part, batch, 1) for part in parts], -1)

    def _combined(self, method: str, start: int, multiply: bool) -> Any:
        result = cast(start, self.dtype)
        for operator in self._diagonal_blocks():
            value = getattr(operator, method)()
            result = result * value if multiply else result + value
        return primitives.BroadcastTo(result, self.batch_shape.as_list())

    def _determinant(self) -> Any:
        if not all(o.is_square for o in self._diagonal_blocks()):
            return super()._determinant()
        return self._combined("_determinant", 1, True)

    def _log_abs_determinant(self) -> Any:
        if not all(o.is_square for o in self._diagonal_blocks()):
            return super()._log_abs_determinant()
        return self._combined("_log_abs_determinant", 0, False)


@public("linalg.LinearOperatorBlockDiag")
class LinearOperatorBlockDiag(_Blocks):
    """Operators along the diagonal, zeros elsewhere.

    >>> a = tf.linalg.LinearOperatorFullMatrix([[1.]])
    >>> tf.linalg.LinearOperatorBlockDiag([a, a]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [0., 1.]], dtype=float32)>
    """

    _composite_tensor_fields = ("operators",)

    @takes_hints(is_square=True)
    def __init__(self, hints: Hints, operators: list[LinearOperator]) -> None:
        self._operators = check_operators(operators)
        hints = _shared(hints, self._operators)
        square = True if all(o.is_square for o in self._operators) else hints.is_square or None
        name = hints.name or "_ds_".join(o.name for o in self._operators)
        super().__init__(self._operators[0].dtype, None, *hints[:3], square, name)

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks."""
        return self._operators

    def _diagonal_blocks(self) -> list[LinearOperator]:
        return self._operators

    def _shape(self) -> list[int]:
        batch = broadcast_batch(*(o.batch_shape for o in self._operators))
        return [*batch, joined_size(sum, self._rows()), joined_size(sum, self._columns())]

    def _multiply_blocks(self, x: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        parts = self._split(x, self._rows() if adjoint else self._columns(), -1 if adjoint_arg else -2)
        return [o._matmul(part, adjoint, adjoint_arg) for o, part in zip(self._operators, parts)]

    def _solve_blocks(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        parts = self._split(rhs, self._rows(), -1 if adjoint_arg else -2)
        return [o._solve(part, adjoint, adjoint_arg) for o, part in zip(self._operators, parts)]

    def _to_dense(self) -> Tensor:
        *batch, _, columns = self.shape.as_list()
        rows, before = [], 0
        for operator in self._operators:
            block = with_batch(operator._to_dense(), batch)
            width = block.shape[-1]
            paddings = [0] * (2 * block.shape.rank)
            paddings[-2:] = [before, columns - before - width]
            rows.append(primitives.PadV2(block, paddings, cast(0, self.dtype)))
            before += width
        return primitives.ConcatV2(rows, -2)

    def _eigvals(self) -> Any:
        batch = self.batch_shape.as_list()
        return primitives.ConcatV2([with_batch(o._eigvals(), batch, 1) for o in self._operators], -1)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.adjoint() for o in self._operators], self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.inverse() for o in self._operators], True)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.cholesky() for o in self._operators], True)

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        if not isinstance(left, LinearOperatorBlockDiag) or left._columns() != self._rows():
            return None
        parts = [a.matmul(b) for a, b in zip(left._operators, self._operators)]
        return LinearOperatorBlockDiag(parts, hints_of([left, self])["is_non_singular"])


@public("linalg.LinearOperatorBlockLowerTriangular")
class LinearOperatorBlockLowerTriangular(_Blocks):
    """Rows of operators: the first has one block, the second two, and so on.

    >>> a = tf.linalg.LinearOperatorFullMatrix([[1.]])
    >>> tf.linalg.LinearOperatorBlockLowerTriangular([[a], [a, a]]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 0.],
           [1., 1.]], dtype=float32)>
    """

    _composite_tensor_fields = ("operators",)

    @takes_hints("LinearOperatorBlockLowerTriangular")
    def __init__(self, hints: Hints, operators: list[list[LinearOperator]]) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        rows = [list(row) for row in operators]
        flat = check_operators([o for row in rows for o in row])
        for i, row in enumerate(rows):
            if len(row) != i + 1:
                raise ValueError(
                    f"The `i`-th row-partition (`i`-th element of `operators`) must contain `i + 1` blocks; "
                    f"row {i} has {len(row)}"
                )
            for j, operator in enumerate(row):
                require_equal_sizes(row[i].shape[-2], operator.shape[-2])
                require_equal_sizes(rows[j][j].shape[-1], operator.shape[-1])
        diagonal = [row[-1] for row in rows]
        if any(o.is_square is False for o in diagonal):
            raise ValueError("Argument `operators`: the blocks on the diagonal must be square.")
        is_non_singular = agreed_hint(
            is_non_singular,
            _all(diagonal, "is_non_singular"),
            "A block lower triangular operator with non-singular blocks on the diagonal is always non-singular.",
        )
        self._operators = rows
        super().__init__(
            flat[0].dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True if all(o.is_square for o in diagonal) else is_square,
            name,
        )

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._operators

    def _diagonal_blocks(self) -> list[LinearOperator]:
        return [row[-1] for row in self._operators]

    def _shape(self) -> list[int]:
        batch = broadcast_batch(*(o.batch_shape for row in self._operators for o in row))
        return [*batch, joined_size(sum, self._rows()), joined_size(sum, self._columns())]

    def _multiply_blocks(self, x: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        parts = self._split(x, self._rows() if adjoint else self._columns(), -1 if adjoint_arg else -2)
        results = []
        for i in range(len(parts)):
            used = range(i, len(parts)) if adjoint else range(i + 1)
            terms = [self._block(i, j, adjoint)._matmul(parts[j], adjoint, adjoint_arg) for j in used]
            results.append(sum(terms[1:], terms[0]))
        return results

    def _block(self, i: int, j: int, adjoint: bool) -> LinearOperator:
        """The operator that takes part j of the argument to part i of the result."""
        return self._operators[j][i] if adjoint else self._operators[i][j]

    def _solve_blocks(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> list[Any]:
        parts = self._split(rhs, self._rows(), -1 if adjoint_arg else -2)
        if adjoint_arg:
            parts = [adjoint_matrix(part) for part in parts]
        solved: dict[int, Any] = {}
        for i in reversed(range(len(parts))) if adjoint else range(len(parts)):
            rest = parts[i]
            for j, known in solved.items():
                rest = rest - self._block(i, j, adjoint)._matmul(known, adjoint, False)
            solved[i] = self._operators[i][i]._solve(rest, adjoint, False)
        return [solved[i] for i in range(len(parts))]

    def _to_dense(self) -> Tensor:
        *batch, _, columns = self.shape.as_list()
        rows = []
        for row in self._operators:
            parts = [with_batch(o._to_dense(), batch) for o in row]
            width = sum(o.shape[-1] for o in row)
            if width < columns:
                parts.append(zeros([*batch, row[0].shape[-2], columns - width], self.dtype))
            rows.append(primitives.ConcatV2(parts, -1))
        return primitives.ConcatV2(rows, -2)

    def _eigvals(self) -> Any:
        batch = self.batch_shape.as_list()
        return primitives.ConcatV2([with_batch(o._eigvals(), batch, 1) for o in self._diagonal_blocks()], -1)


@public("linalg.LinearOperatorLowRankUpdate")
class LinearOperatorLowRankUpdate(LinearOperator):
    """`base + u diag(diag_update) v^H`, solved by the Woodbury identity.

    >>> base = tf.linalg.LinearOperatorDiag([1., 1.])
    >>> tf.linalg.LinearOperatorLowRankUpdate(base, [[1.], [1.]]).to_dense()
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[2., 1.],
           [1., 2.]], dtype=float32)>
    """

    _composite_tensor_fields = ("base_operator", "u", "diag_update", "v")
    _matrix_ndims: ClassVar[dict[str, int]] = {"u": 2, "diag_update": 1, "v": 2}

    @takes_hints("LinearOperatorLowRankUpdate")
    def __init__(
        self,
        hints: Hints,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
    ) -> None:
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name = hints
        dtype = require_operator(base_operator).dtype
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(
                    "Default diagonal is the identity, which is positive.  However, user set "
                    "'is_diag_update_positive' to False."
                )
            is_diag_update_positive = True
        use_cholesky = bool(
            base_operator.is_positive_definite
            and base_operator.is_self_adjoint
            and is_diag_update_positive
            and v is None
        )
        if v is None and (diag_update is None or not dtype.is_complex) and base_operator.is_self_adjoint:
            is_self_adjoint = True if is_self_adjoint is None else is_self_adjoint
        if use_cholesky:
            if is_positive_definite is False or is_non_singular is False or is_self_adjoint is False:
                raise ValueError("Arguments imply this is self-adjoint positive-definite operator.")
            is_positive_definite = is_self_adjoint = True
        self._base_operator = base_operator
        self._u = keep_parameter(u)
        self._v = self._u if v is None else keep_parameter(v)
        self._diag_update = None if diag_update is None else keep_parameter(diag_update)
        self._use_cholesky = use_cholesky
        self._positive = is_diag_update_positive
        require_equal_sizes(base_operator.shape[-2], self._u.shape[-2])
        require_equal_sizes(base_operator.shape[-1], self._v.shape[-2])
        require_equal_sizes(self._u.shape[-1], self._v.shape[-1])
        if self._diag_update is not None:
            require_equal_sizes(self._u.shape[-1], self._diag_update.shape[-1])
        tensors = [(self._u, 2), (self._v, 2), (self._diag_update, 1)]
        batches = [base_operator.batch_shape, *(x.shape[:-n] for x, n in tensors if x is not None)]
        if all(batch.is_fully_defined() for batch in batches):
            broadcast_batch(*batches)
        super().__init__(
            dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v},
        )

    @property
    def base_operator(self) -> LinearOperator:
        """What is updated."""
        return self._base_operator

    @property
    def u(self) -> Any:
        """The left factor of the update."""
        return self._u

    @property
    def v(self) -> Any:
        """The right factor of the update."""
        return self._v

    @property
    def diag_update(self) -> Any:
        """The diagonal between the factors, or None for ones."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """The diagonal between the factors, as an operator."""
        if self._diag_update is None:
            return LinearOperatorIdentity(self._u.shape[-1], dtype=self.dtype)
        return LinearOperatorDiag(self._diag_update)

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether the diagonal was said to be positive."""
        return self._positive

    def _shape(self) -> list[int]:
        *batch, rows, columns = self._base_operator.shape.as_list()
        shapes = [batch, self._u.shape[:-2], self._v.shape[:-2]]
        if self._diag_update is not None:
            shapes.append(self._diag_update.shape[:-1])
        return [*broadcast_batch(*shapes), rows, columns]

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = primitives.MatMul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        update = primitives.MatMul(left, self.diag_operator._matmul(inner, adjoint, False))
        return self._base_operator._matmul(x, adjoint, adjoint_arg) + update

    def _to_dense(self) -> Any:
        scaled = convert_to_tensor(self._u)
        if self._diag_update is not None:
            scaled = scaled * primitives.ExpandDims(self._diag_update, -2)
        return self._base_operator._to_dense() + primitives.MatMul(scaled, self._v, adjoint_b=True)

    def _capacitance(self) -> Any:
        """`D^-1 + v^H base^-1 u`."""
        solved = self._base_operator._solve(convert_to_tensor(self._u), False, False)
        return self.diag_operator.inverse()._add_to_tensor(primitives.MatMul(self._v, solved, adjoint_a=True))

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        if self._base_operator.is_non_singular is False:
            raise ValueError("Solve not implemented unless this is a perturbation of a non-singular LinearOperator.")
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        base = self._base_operator._solve(rhs, adjoint, adjoint_arg)
        inner = primitives.MatMul(right, base, adjoint_a=True)
        if self._use_cholesky:
            factor = primitives.Cholesky(self._capacitance())
            half = primitives.MatrixTriangularSolve(factor, inner, True, False)
            weights = primitives.MatrixTriangularSolve(factor, half, True, True)
        else:
            weights = solve_broadcast(self._capacitance(), inner, adjoint)
        return base - self._base_operator._solve(primitives.MatMul(left, weights), adjoint, False)

    def _diag_part(self) -> Any:
        scaled = convert_to_tensor(self._u)
        if self._diag_update is not None:
            scaled = scaled * primitives.ExpandDims(self._diag_update, -2)
        right = primitives.Conj(self._v) if self.dtype.is_complex else self._v
        return primitives.Sum(scaled * right, -1) + self._base_operator._diag_part()

    def _determinant(self) -> Any:
        own = self._base_operator._determinant() * self.diag_operator._determinant()
        return own * primitives.MatrixDeterminant(self._capacitance())

    def _log_abs_determinant(self) -> Any:
        own = self._base_operator._log_abs_determinant() + self.diag_operator._log_abs_determinant()
        return own + primitives.LogMatrixDeterminant(self._capacitance())[1]

    def _adjoint(self) -> LinearOperator:
        update = self._diag_update
        if update is not None and self.dtype.is_complex:
            update = primitives.Conj(update)
        return LinearOperatorLowRankUpdate(
            self._base_operator.adjoint(), self._v, update, self._u, self._positive, self.is_non_singular
        )
