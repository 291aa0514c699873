"""Methods of operators whose sizes are known only when the graph runs: there each call is one node."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec

_UNKNOWN = TensorShape(None)


def _like_operator(operator: Any, *_: Any, **__: Any) -> Any:
    return TensorSpec(_UNKNOWN, operator.dtype)


def _like_operand(operator: Any, x: Any, *_: Any, **__: Any) -> Any:
    spec = TensorSpec(_UNKNOWN, operator.dtype)
    return [spec] * len(x) if isinstance(x, list | tuple) and _core.is_tensor(x[0]) else spec


def _real(operator: Any, *_: Any, **__: Any) -> Any:
    return TensorSpec(_UNKNOWN, operator.dtype.real_dtype)


def _eigenvalue(operator: Any, *_: Any, **__: Any) -> Any:
    one = convert_to_tensor(np.ones([1, 1]), dtype=operator.dtype)
    return TensorSpec(_UNKNOWN, primitives.SelfAdjointEigV2(one, False)[0].dtype)


def _sizes(operator: Any, *_: Any, **__: Any) -> Any:
    return TensorSpec([None], int32)


def _size(operator: Any, *_: Any, **__: Any) -> Any:
    return TensorSpec([], int32)


_RESULT_BY_METHOD: dict[str, Callable[..., Any]] = {
    "add_to_tensor": _like_operator,
    "batch_shape_tensor": _sizes,
    "cond": _real,
    "determinant": _like_operator,
    "diag_part": _like_operator,
    "domain_dimension_tensor": _size,
    "eigvals": _eigenvalue,
    "log_abs_determinant": _like_operator,
    "matmul": _like_operand,
    "matvec": _like_operand,
    "range_dimension_tensor": _size,
    "shape_tensor": _sizes,
    "solve": _like_operand,
    "solvevec": _like_operand,
    "tensor_rank_tensor": _size,
    "to_dense": _like_operator,
    "trace": _like_operator,
}


def stage_methods(cls: Any) -> None:
    """Lets those methods that a class defines run whole where they need sizes that are not known while tracing."""
    for name in _RESULT_BY_METHOD.keys() & vars(cls).keys():
        setattr(cls, name, _staged(vars(cls)[name], _RESULT_BY_METHOD[name]))


def _staged(method: Callable[..., Any], result_specs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *args, **kwargs)

    run.result_specs = result_specs  # type: ignore[attr-defined]
    composition: Any = _core.Composition(run)

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _core.is_tracing() or any(isinstance(x, CompositeTensor) for x in args):
            return method(self, *args, **kwargs)
        return composition(self, *args, **kwargs)

    return call
