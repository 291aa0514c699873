"""`tf.__internal__.autograph`, `decorator` and `function`: functions that are converted, wrapped or traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules import decorators
from tapeflow._src.function.autograph.conversion import convert
from tapeflow._src.function.function import Function
from tapeflow._src.namespace import public

public("__internal__.decorator.make_decorator")(decorators.make_decorator)
public("__internal__.decorator.unwrap")(decorators.unwrap)
public("__internal__.function.Function")(Function)


class ControlStatus:
    """Whether functions that are called now are converted to graphs."""

    def __init__(self, status: str) -> None:
        self.status = status


@public("__internal__.autograph.control_status_ctx")
def control_status_ctx() -> ControlStatus:
    """Whether functions that are called now are converted to graphs: while a function is traced.

    >>> tf.__internal__.autograph.control_status_ctx().status
    'unspecified'
    """
    return ControlStatus("enabled" if _core.is_tracing() else "unspecified")


@public("__internal__.autograph.tf_convert")
def tf_convert(
    f: Callable[..., Any], ctx: ControlStatus, convert_by_default: bool = True, user_requested: bool = False
) -> Callable[..., Any]:
    """The function with its control flow converted, if functions are converted in the context.

    >>> tf.__internal__.autograph.tf_convert(abs, tf.__internal__.autograph.control_status_ctx())(-3)
    3
    """
    wrappers, inner = decorators.unwrap(f)
    if ctx.status == "unspecified" and not convert_by_default:
        return f
    converted = convert(inner)
    if converted is inner or not wrappers:
        return f if converted is inner else converted
    return decorators.make_decorator(f, converted)
