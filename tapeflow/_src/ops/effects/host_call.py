"""Operations that are Python functions of their arguments' values: run at once, or as one node while tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape


def host_call(
    run: Callable[..., Any],
    inputs: list[Any],
    outputs: list[tuple[Any, Any]],
    *,
    reads: bool = False,
    effect: bool = False,
) -> list[Any]:
    """`run(*inputs)`, which gives a list of tensors of the dtypes and shapes `outputs`.

    While tracing it becomes a node if an input is symbolic, or if it `reads` or changes (`effect`) the world outside.
    """
    traced = any(_core.is_symbolic(x) for x in inputs)
    if not traced and not ((reads or effect) and _core.current_graph() is not None):
        found: list[Any] = run(*inputs)
        return found
    dtypes, shapes = [as_dtype(dtype) for dtype, _ in outputs], [TensorShape(shape) for _, shape in outputs]
    return _core.call_python(_OneByOne(run), inputs, dtypes, shapes, None, effect)


class _OneByOne:
    """A function of a list that gives its items to another one; it pickles if that one does."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __call__(self, tensors: list[Any]) -> Any:
        return self._run(*tensors)


def host_effect(run: Callable[..., Any], inputs: list[Any]) -> Any:
    """`run(*inputs)`, which changes the world outside and gives nothing; in a graph of TensorFlow 1, the operation."""
    graph = _core.current_graph()
    if graph is None or not graph.takes_everything:
        host_call(lambda *values: run(*values) or [], inputs, [], effect=True)
        return None

    def run_and_tell(*values: Any) -> list[Any]:
        run(*values)
        return [_core.convert_to_tensor(True, None, None, "host_effect")]

    return host_call(run_and_tell, inputs, [("bool", [])], effect=True)[0].op
