"""Functions of TensorFlow's inner modules without a public name, which do what they do there."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.freezing import convert_variables_to_constants_v2
from tapeflow._src.namespace import find_public
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_shape import TensorShape


def unknown_shape(rank: int | None = None, **kwargs: Any) -> TensorShape:
    """A shape of which at most the rank is known."""
    rank = kwargs.pop("ndims", rank)
    return TensorShape(None) if rank is None else TensorShape([None] * rank)


def vector(length: int | None) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


def matrix(rows: int | None, cols: int | None) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, cols])


def to_numpy(value: Any) -> Any:
    """A tensor as an array: in a graph, as the default session computes it."""
    if isinstance(value, IndexedSlices):
        value = find_public("convert_to_tensor")(value)
    if _core.is_symbolic(value):
        graph = _core.current_graph()
        return graph.default_session().run(value)
    return value.numpy() if hasattr(value, "numpy") else value


def reduced_shape(input_shape: Any, axes: Any) -> Any:
    """The shape that a sum over `axes` has if it keeps its dimensions."""
    shape = [int(n) for n in np.asarray(to_numpy(find_public("convert_to_tensor")(input_shape))).reshape(-1)]
    for axis in np.asarray(to_numpy(find_public("convert_to_tensor")(axes))).reshape(-1):
        shape[int(axis) % len(shape)] = 1
    return find_public("constant")(shape, dtype=find_public("int32"))


def indexed_case(
    branch_index: Any, branch_fns: list[Callable[[], Any]], name: str | None = "indexed_case", **_: Any
) -> Any:
    """The result of the function with this number, of the last one if there is none."""
    return find_public("switch_case")(branch_index, branch_fns, name=name)


def cond_v2(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = "cond") -> Any:
    """`tf.cond`."""
    return find_public("cond")(pred, true_fn, false_fn, name=name)


def while_v2(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    maximum_iterations: Any = None,
    name: str | None = None,
    return_same_structure: bool = True,
    back_prop: bool = True,
) -> Any:
    """`tf.while_loop`, with a single loop variable bare unless `return_same_structure`."""
    found = find_public("while_loop")(
        cond,
        body,
        loop_vars,
        shape_invariants=shape_invariants,
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        maximum_iterations=maximum_iterations,
        name=name,
    )
    return found if return_same_structure or len(found) != 1 else found[0]


def smart_case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    name: str = "smart_case",
) -> Any:
    """`tf.case`, which calls one function alone if all conditions are known while tracing."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    known = [_known(pred) for pred, _ in pairs]
    if any(value is None for value in known):
        return find_public("case")(pairs, default, exclusive, name=name)
    chosen = [function for value, (_, function) in zip(known, pairs) if value]
    if not chosen and default is None:
        raise ValueError("smart_case: no condition holds, and there is no default")
    result: Any = (chosen[0] if chosen else default)()  # type: ignore[misc]
    return result


def _known(pred: Any) -> bool | None:
    if isinstance(pred, bool | int):
        return bool(pred)
    value = find_public("get_static_value")(pred)
    return None if value is None else bool(value)


def is_sanitized() -> bool:
    """Whether a sanitizer is built in: no."""
    return False


names_by_path: dict[str, dict[str, Any]] = {
    "python.distribute.mirrored_strategy": {"MirroredStrategy": find_public("distribute.MirroredStrategy")},
    "python.framework.convert_to_constants": {"convert_variables_to_constants_v2": convert_variables_to_constants_v2},
    "python.framework.indexed_slices": {"IndexedSlicesValue": find_public("compat.v1.IndexedSlicesValue")},
    "python.framework.smart_cond": {"smart_case": smart_case},
    "python.framework.tensor_shape": {
        "matrix": matrix,
        "scalar": lambda: unknown_shape(0),
        "unknown_shape": unknown_shape,
        "vector": vector,
    },
    "python.ops.cond_v2": {"cond_v2": cond_v2, "indexed_case": indexed_case},
    "python.ops.gradient_checker_v2": {"_to_numpy": to_numpy},
    "python.ops.math_ops": {"reduced_shape": reduced_shape},
    "python.ops.while_v2": {"while_loop": while_v2},
    "python.pywrap_sanitizers": {f"is_{kind}_enabled": is_sanitized for kind in ("asan", "msan", "tsan", "ubsan")},
    "python.util.compat": {"collections_abc": collections.abc},
}
