"""`tf.__internal__.autograph`, `decorator` and `function`: functions that are converted, wrapped or traced."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType, MethodType
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
    if ctx.status == "unspecified" and not convert_by_default:
        return f
    converted: Callable[..., Any] = _converted(f)
    return converted


def _converted(f: Any) -> Any:
    """The function converted; decorators around it stay, with the converted function in place of theirs."""
    if isinstance(f, MethodType) and hasattr(f, "_tf_decorator"):
        return MethodType(_converted(f.__func__), f.__self__)
    if not decorators.unwrap(f)[0]:
        return convert(f)
    target = f._tf_decorator.decorated_target if hasattr(f, "_tf_decorator") else f.decorated_target
    inner = _converted(target)
    if inner is target:
        return f
    cells = f.__closure__ or () if type(f) is FunctionType else ()
    if not any(_holds(cell, target) for cell in cells):
        return decorators.make_decorator(f, inner)
    closure = tuple(CellType(inner) if _holds(cell, target) else cell for cell in cells)
    wrapper = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, closure)
    wrapper.__kwdefaults__ = f.__kwdefaults__
    wrapper.__dict__.update(f.__dict__)
    return wrapper


def _holds(cell: CellType, value: Any) -> bool:
    try:
        return bool(cell.cell_contents is value)
    except ValueError:  # the cell is empty
        return False
