"""`tf.linalg.experimental.conjugate_gradient`: equations solved by products alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.linalg.operators.operator import require_operator
from tapeflow._src.types.errors import InvalidArgumentError


class CGState(NamedTuple):
    """Where the iteration stopped: steps, solution, residual, direction, and `r^H M r`."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


@public("linalg.experimental.conjugate_gradient")
def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: float = 1e-5,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """`x` in `operator x = rhs` for a self-adjoint positive definite operator and a (batch of) vector(s).

    Steps until every residual is below `tol` times its right-hand side, at most `max_iter` times.

    >>> a = tf.linalg.LinearOperatorDiag([2., 4.], is_positive_definite=True)
    >>> tf.linalg.experimental.conjugate_gradient(a, [2., 4.]).x
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.        , 0.99999994], dtype=float32)>
    """
    if not (require_operator(operator).is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    rhs = convert_to_tensor(rhs, dtype_hint=operator.dtype)
    if preconditioner is not None and not (
        require_operator(preconditioner).is_self_adjoint and preconditioner.is_positive_definite
    ):
        raise ValueError("Expected a self-adjoint, positive definite preconditioner.")
    if max_iter < 0:
        raise InvalidArgumentError.of(f"conjugate_gradient: max_iter must not be negative; got {max_iter}")

    def dot(a: Any, b: Any) -> Tensor:
        return primitives.Sum((primitives.Conj(a) if a.dtype.is_complex else a) * b, -1, True)

    def size(a: Any) -> Tensor:
        square = dot(a, a)
        return primitives.Sqrt(primitives.Real(square) if square.dtype.is_complex else square)

    def conditioned(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.matvec(r)

    threshold = tol * size(rhs)
    if x is None:
        x, r = zeros_like(rhs), rhs
    else:
        x = convert_to_tensor(x)
        r = rhs - operator.matvec(x)
    p = conditioned(r)
    gamma = dot(r, p)
    steps = 0
    while steps < max_iter and bool(primitives.Any(size(r) > threshold)):
        z = operator.matvec(p)
        alpha = gamma / dot(p, z)
        x = x + alpha * p
        r = r - alpha * z
        q = conditioned(r)
        old, gamma = gamma, dot(r, q)
        p = q + (gamma / old) * p
        steps += 1
    return CGState(convert_to_tensor(steps), x, r, p, primitives.Squeeze(gamma, -1))
