"""How gradients of matrix operations and of running products are written where sizes are unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.deferred import Rule, formula
from tapeflow._src.compat.graph_def.inlining import inlined
from tapeflow._src.ops.arrays.constants import dynamic_dims, zeros_like
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.linalg.diagonals import diag, diag_part, set_diag
from tapeflow._src.ops.linalg.factorizations import svd

# ---- diagonals


@formula("MatrixDiagPartV3")
def _diagonal_part(rule: Rule) -> list[Any]:
    e, n, x = rule.e, rule.node, rule.x[0]
    return [e.one("MatrixSetDiagV3", e.one("ZerosLike", x), rule.dy, n.tensor(0), align=n.param(1)), None]


@formula("MatrixDiagV3")
def _diagonal(rule: Rule) -> list[Any]:
    e, n, x = rule.e, rule.node, rule.x[0]
    part = e.one("MatrixDiagPartV3", rule.dy, n.tensor(0), e.constant(0, x.dtype), align=n.param(3))
    return [e.one("Reshape", part, rule.shape(x)), None]


@formula("MatrixSetDiagV3")
def _set_diagonal(rule: Rule) -> list[Any]:
    e, n, (_, diagonal) = rule.e, rule.node, rule.x
    others = e.one("MatrixSetDiagV3", rule.dy, e.one("ZerosLike", diagonal), n.tensor(0), align=n.param(1))
    return [others, e.one("MatrixDiagPartV3", rule.dy, n.tensor(0), e.constant(0, diagonal.dtype), align=n.param(1))]


# ---- factorisations


def _flowing(rule: Rule) -> list[Ref]:
    """A cotangent for each output: zeros where none flows."""
    return [rule.e.one("ZerosLike", y)._replace(shape=y.shape) if dy is None else dy for y, dy in zip(rule.y, rule.dys)]


def _times(a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False) -> Any:
    return primitives.MatMul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def _adjoint(a: Any) -> Any:
    rank = a.shape.rank
    return primitives.Transpose(a, [*range(rank - 2), rank - 1, rank - 2], True)


def _row(x: Any) -> Any:
    return primitives.ExpandDims(x, -2)


def _column(x: Any) -> Any:
    return primitives.ExpandDims(x, -1)


def _safe_reciprocal(x: Any) -> Any:
    return x / (x * x + cast(1e-20, x.dtype))


def _reciprocal_gaps(e: Any) -> Any:
    """1 / (e_j - e_i) off the diagonal, 0 on it."""
    return set_diag(_safe_reciprocal(_row(e) - _column(e)), zeros_like(e))


def _eigenvalue_gradient(rule: Rule, gradient: Callable[..., Any]) -> list[Any]:
    """`gradient(x, e, v, de, dv)` for the eigenvalues and vectors of x; no cotangent is None."""
    if rule.x[0].shape.rank is None:
        raise rule.outer.unsupported("the gradient of eigenvalues of unknown rank")
    flows = [dy is not None for dy in rule.dys]
    has_vectors = len(rule.y) == 2

    def run(x: Any, *more: Any) -> Any:
        rest = iter(more)
        e, v = [next(rest), next(rest)] if has_vectors else getattr(primitives, rule.op)(x, True)
        de, dv = (next(rest) if yes else None for yes in [*flows, False][:2])
        return gradient(x, e, v, de, dv)

    shown = [*rule.y, *(dy for dy in rule.dys if dy is not None)] if has_vectors else [rule.dy]
    return inlined(rule.outer, run, [rule.x[0], *shown])


@formula("SelfAdjointEigV2")
def _symmetric(rule: Rule) -> list[Any]:
    """Only the lower triangle is read, so it takes the whole gradient."""

    def gradient(x: Any, e: Any, v: Any, de: Any, dv: Any) -> Any:
        if dv is None:
            dx = _times(v * _row(de), v, adjoint_b=True)
        else:
            inner = _reciprocal_gaps(e) * _times(v, dv, adjoint_a=True)
            dx = _times(v, _times(inner if de is None else diag(de) + inner, v, adjoint_b=True))
        both = dx + _adjoint(dx)
        return set_diag(primitives.MatrixBandPart(both, -1, 0), diag_part(both) / 2)

    return _eigenvalue_gradient(rule, gradient)


@formula("Eig")
def _any_matrix(rule: Rule) -> list[Any]:
    """The vectors have norm 1, which takes their own direction's real part out of the cotangent."""

    def gradient(x: Any, e: Any, v: Any, de: Any, dv: Any) -> Any:
        inner = diag(zeros_like(e) if de is None else de)
        if dv is not None:
            v_dv = _times(v, dv, adjoint_a=True)
            along = cast(primitives.Real(diag_part(v_dv)), v.dtype)
            across = v_dv - _times(v, v, adjoint_a=True) * _row(along)
            inner = inner + primitives.Conj(_reciprocal_gaps(e)) * across
        dx = primitives.MatrixSolve(_adjoint(v), _times(inner, _adjoint(v)))
        return dx if x.dtype.is_complex else primitives.Real(dx)

    return _eigenvalue_gradient(rule, gradient)


def _svd_gradient(s: Any, u: Any, v: Any, ds: Any, du: Any, dv: Any) -> Any:
    """What flows to a matrix u s v^H. A side that is as long as s has nothing outside of the space of its vectors."""
    gaps = cast(_reciprocal_gaps(s * s), u.dtype)
    wide = cast(s, u.dtype)
    inverse = _safe_reciprocal(wide)
    fu, fv = gaps * _times(u, du, adjoint_a=True), gaps * _times(v, dv, adjoint_a=True)
    inner = diag(cast(ds, u.dtype)) + (fu + _adjoint(fu)) * _row(wide) + _column(wide) * (fv + _adjoint(fv))
    dx = _times(_times(u, inner), v, adjoint_b=True)
    outside_u = du - _times(u, _times(u, du, adjoint_a=True))
    outside_v = dv - _times(v, _times(v, dv, adjoint_a=True))
    dx = dx + _times(outside_u * _row(inverse), v, adjoint_b=True)
    return dx + _times(u * _row(inverse), outside_v, adjoint_b=True)


@formula("Svd")
def _singular_values(rule: Rule) -> list[Any]:
    x = rule.x[0]
    if x.shape.rank is None:
        raise rule.outer.unsupported("the gradient of svd of unknown rank")
    if len(rule.y) == 1:

        def values(x: Any, ds: Any) -> Any:
            _, u, v = svd(x)
            return _times(u * _row(cast(ds, x.dtype)), v, adjoint_b=True)

        return inlined(rule.outer, values, [x, rule.dy])
    if rule.node.param(1) or x.dtype.is_complex:
        raise rule.outer.unsupported("the gradient of svd with full or complex matrices of unknown sizes")
    s, u, v = rule.y
    flows = _flowing(rule)
    return inlined(rule.outer, _svd_gradient, [s, u, v, *flows])


@formula("Qr")
def _orthogonal(rule: Rule) -> list[Any]:
    """The first columns, as many as r has rows, determine q; the others are q times their part of r."""
    x = rule.x[0]
    if x.shape.rank is None:
        raise rule.outer.unsupported("the gradient of qr of unknown rank")
    rows, columns = x.shape[-2:].as_list()
    if rule.node.param(0) and (rows is None or columns is None or rows > columns):
        raise rule.outer.unsupported("the gradient of qr with full matrices that may have more rows than columns")

    def run(x: Any, q: Any, r: Any, dq: Any, dr: Any) -> Any:
        first = dynamic_dims(r)[-2]
        dr_rest = dr[..., first:]
        dq = dq + _times(x[..., first:], dr_rest, adjoint_b=True)
        h = _times(dr[..., :first], r[..., :first], adjoint_b=True) - _times(q, dq, adjoint_a=True)
        h = set_diag(primitives.MatrixBandPart(h, 0, -1), diag_part(h) / 2)
        left = _adjoint(dq + _times(q, h + _adjoint(h)))
        d_first = _adjoint(primitives.MatrixTriangularSolve(r[..., :first], left, False, False))
        return primitives.ConcatV2([d_first, _times(q, dr_rest)], -1)

    flows = _flowing(rule)
    return inlined(rule.outer, run, [x, *rule.y, *flows])


# ---- functions of matrices


@formula("MatrixSquareRoot", "MatrixLogarithm", "MatrixExponential")
def _of_blocks(rule: Rule) -> list[Any]:
    """The upper right block of f([[a, dy], [0, a]]), where a is the adjoint of the matrix."""
    function = getattr(primitives, rule.op)
    if rule.x[0].shape.rank is None:
        raise rule.outer.unsupported("the gradient of a function of matrices of unknown rank")

    def run(x: Any, dy: Any) -> Any:
        a, size = _adjoint(x), dynamic_dims(x)[-1]
        top, bottom = primitives.ConcatV2([a, dy], -1), primitives.ConcatV2([zeros_like(a), a], -1)
        return function(primitives.ConcatV2([top, bottom], -2))[..., :size, size:]

    return inlined(rule.outer, run, [rule.x[0], rule.dy._replace(shape=rule.x[0].shape)])


# ---- running products


def _moved(x: Any, axis: int, up: bool) -> Any:
    """Every element moved by one place along an axis; the free place takes zero."""
    margins = np.zeros([x.shape.rank, 2], np.int32)
    margins[axis, 0 if up else 1] = 1
    places: list[Any] = [slice(None)] * x.shape.rank
    places[axis] = slice(None, dynamic_dims(x)[axis]) if up else slice(1, None)
    return pad(x, margins)[tuple(places)]


def _scan_arguments(rule: Rule, what: str) -> tuple[int, int, bool, bool]:
    """The rank, the axis, and whether a scan is exclusive and goes backwards."""
    rank = rule.x[0].shape.rank
    if rank is None:
        raise rule.outer.unsupported(f"the gradient of {what} of unknown rank")
    return rank, (rule.node.param(0) or 0) % rank, bool(rule.node.param(1)), bool(rule.node.param(2))


@formula("Cumprod")
def _running_product(rule: Rule) -> list[Any]:
    """What stands before an element, times a recurrence from the far end: no division, so that zeros do no harm."""
    _, axis, exclusive, reverse = _scan_arguments(rule, "a running product")

    def run(x: Any, dy: Any) -> Any:
        x = primitives.Conj(x) if x.dtype.is_complex else x
        if exclusive:
            sums = _moved(primitives.LinearRecurrence(x, dy, axis, not reverse), axis, reverse)
        else:
            sums = primitives.LinearRecurrence(_moved(x, axis, reverse), dy, axis, not reverse)
        return primitives.Cumprod(x, axis, True, reverse) * sums

    return inlined(rule.outer, run, [rule.x[0], rule.dy._replace(shape=rule.x[0].shape)])


@formula("CumulativeLogsumexp")
def _running_logarithm(rule: Rule) -> list[Any]:
    """dx[i] = exp(x[i] - y[i]) r[i], where r[i] = dy[i] + exp(y[i] - y[i+1]) r[i+1]: all exponents are at most 0."""
    rank, axis, exclusive, reverse = _scan_arguments(rule, "a running sum of exponents")

    def neighbour(x: Any) -> Any:
        """What comes after each element; the last one itself."""
        here: list[Any] = [slice(None)] * rank
        here[axis] = slice(None, 1) if reverse else slice(-1, None)
        rest: list[Any] = [slice(None)] * rank
        rest[axis] = slice(None, -1) if reverse else slice(1, None)
        parts = [x[tuple(rest)], x[tuple(here)]]
        return primitives.ConcatV2(parts[::-1] if reverse else parts, axis)

    def run(x: Any, dy: Any) -> Any:
        y = primitives.CumulativeLogsumexp(x, axis, False, reverse)
        dy = _moved(dy, axis, reverse) if exclusive else dy
        safe = primitives.SelectV2(primitives.Equal(y, cast(-np.inf, y.dtype)), cast(0, y.dtype), y)
        fade = primitives.Exp(y - neighbour(safe))
        return primitives.Exp(x - safe) * primitives.LinearRecurrence(fade, dy, axis, not reverse)

    return inlined(rule.outer, run, [rule.x[0], rule.dy._replace(shape=rule.x[0].shape)])


@formula("UnsortedSegmentProd")
def _segment_product(rule: Rule) -> list[Any]:
    """The product of the others: the whole by the element, or, for the only zero of a segment, that of the rest."""
    if rule.x[0].shape.rank is None or rule.x[1].shape.rank is None:
        raise rule.outer.unsupported("the gradient of a segment product of unknown rank")

    def run(x: Any, ids: Any, y: Any, dy: Any) -> Any:
        safe = primitives.Maximum(ids, cast(0, ids.dtype))
        extra = [1] * (x.shape.rank - ids.shape.rank)
        inside = primitives.Reshape(primitives.GreaterEqual(ids, cast(0, ids.dtype)), [*dynamic_dims(ids), *extra])
        count, zero = dynamic_dims(y)[0], primitives.Equal(x, cast(0, x.dtype))
        filled = primitives.SelectV2(zero, cast(1, x.dtype), x)
        rest = primitives.GatherV2(primitives.UnsortedSegmentProd(filled, ids, count), safe, 0, 0)
        zeros = primitives.GatherV2(primitives.UnsortedSegmentSum(cast(zero, "int32"), ids, count), safe, 0, 0)
        own = cast(zero, "int32")
        alone = cast(primitives.LogicalAnd(primitives.Equal(zeros, own), inside), x.dtype)  # no zero but this one
        return rest / filled * alone * primitives.GatherV2(dy, safe, 0, 0)

    return [*inlined(rule.outer, run, [rule.x[0], rule.x[1], rule.y[0], rule.dy]), None]
