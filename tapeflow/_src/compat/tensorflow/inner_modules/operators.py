"""Linear operators: classes of others that consist of tensors, and sums in which operators of one kind are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src.ops.linalg.operators.derived import LinearOperatorFullMatrix, LinearOperatorLowerTriangular
from tapeflow._src.ops.linalg.operators.operator import LinearOperator
from tapeflow._src.ops.linalg.operators.simple import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)


def make_composite_tensor(cls: type, module_name: str = "tf.linalg") -> type:
    """The class itself: all linear operators consist of tensors."""
    if not issubclass(cls, LinearOperator):
        raise TypeError(f"make_composite_tensor: a class of linear operators is needed; got {cls}")
    return cls


_KINDS: list[Any] = [
    LinearOperatorIdentity | LinearOperatorScaledIdentity,
    LinearOperatorDiag,
    LinearOperatorLowerTriangular,
    LinearOperatorFullMatrix,
]


def _rank(operator: LinearOperator) -> int:
    """How general the matrices of an operator are: the sum of two is as general as the more general one."""
    for rank, kinds in enumerate(_KINDS):
        if isinstance(operator, kinds):
            return rank
    raise TypeError(
        "Expected operator to be one of [LinearOperatorDiag, LinearOperatorLowerTriangular, LinearOperatorFullMatrix, "
        f"LinearOperatorIdentity, LinearOperatorScaledIdentity]. Received: {operator}"
    )


def add_operators(
    operators: Sequence[LinearOperator],
    operator_name: str | None = None,
    addition_tiers: Any = None,
    name: str | None = None,
) -> list[LinearOperator]:
    """The sum of operators as a list of one: a multiple of the identity, diagonal, triangular or full."""
    if addition_tiers is not None:
        raise NotImplementedError("add_operators: addition_tiers are not supported; leave the argument out.")
    operators = list(operators)
    if not operators:
        raise ValueError("add_operators: Argument `operators` must not be empty.")
    rank = max(map(_rank, operators))
    hints: dict[str, Any] = {
        "is_self_adjoint": True if all(operator.is_self_adjoint for operator in operators) else None,
        "is_positive_definite": True if all(operator.is_positive_definite for operator in operators) else None,
        "name": operator_name or "add_operators",
    }
    if rank <= 1:
        diagonal = sum_of([operator.diag_part() for operator in operators])
        if rank == 1:
            return [LinearOperatorDiag(diagonal, **hints)]
        return [LinearOperatorScaledIdentity(operators[0].range_dimension_tensor(), diagonal[..., 0], **hints)]
    total = sum_of([operator.to_dense() for operator in operators])
    kind = LinearOperatorLowerTriangular if rank == 2 else LinearOperatorFullMatrix
    return [kind(total, **hints)]


def sum_of(tensors: list[Any]) -> Any:
    """The sum of tensors whose shapes broadcast."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total
