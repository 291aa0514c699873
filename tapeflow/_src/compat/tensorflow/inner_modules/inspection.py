"""Python's `inspect` under the name that TensorFlow gives it, which looks through the decorators of `tf_decorator`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tapeflow._src.compat.tensorflow.inner_modules.decorators import unwrap

NAMES = [
    "FullArgSpec",
    "Parameter",
    "Signature",
    "currentframe",
    "getdoc",
    "getframeinfo",
    "getmembers",
    "getmodule",
    "getmro",
    "isframe",
    "signature",
    "stack",
]
_OF_TARGETS = [
    "getfile",
    "getsource",
    "getsourcefile",
    "getsourcelines",
    "isbuiltin",
    "isclass",
    "isfunction",
    "isgenerator",
    "isgeneratorfunction",
    "ismethod",
    "ismodule",
    "isroutine",
]


_OWN = __name__.partition(".")[0]


def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a function, class or callable object; those of TensorFlow's functions have no annotations."""
    decorators, target = unwrap(obj)
    for decorator in decorators:
        if decorator.decorator_argspec is not None:
            return decorator.decorator_argspec  # type: ignore[no-any-return]
    spec = inspect.getfullargspec(target)
    own = (getattr(obj, "__module__", None) or "").partition(".")[0] == _OWN
    return spec._replace(annotations={}) if own else spec


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` gave before Python 3.11."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Any) -> Any:
    """The arguments of a function, class or callable object, with those given by keyword alone behind the others."""
    decorators, target = unwrap(obj)
    if any(decorator.decorator_argspec is not None for decorator in decorators):
        return getfullargspec(obj)
    spec = getfullargspec(target)
    if isinstance(target, functools.partial):
        required = [name for name in spec.kwonlyargs if name not in (spec.kwonlydefaults or {})]
        if required:
            raise ValueError(
                f"Some arguments {required} do not have default value, but they are positioned after those with "
                "default values. This can not be expressed with ArgSpec; they are keyword-only arguments."
            )
    defaults = (*(spec.defaults or ()), *(spec.kwonlydefaults or {}).values())
    return ArgSpec([*spec.args, *spec.kwonlyargs], spec.varargs, spec.varkw, defaults or None)


def getcallargs(*func_and_positional: Any, **named: Any) -> dict[str, Any]:
    """The value of each argument of a call of the first argument with the others."""
    function, *positional = func_and_positional
    call = inspect.signature(function).bind(*positional, **named)
    call.apply_defaults()
    found = dict(call.arguments)
    if inspect.ismethod(function):
        found[next(iter(inspect.signature(function.__func__).parameters))] = function.__self__
    return found


def isanytargetmethod(obj: Any) -> bool:
    """Whether a method is inside of decorators, partial functions or callable objects."""
    decorators, target = unwrap(obj)
    if any(inspect.ismethod(decorator.decorated_target) for decorator in decorators):
        return True
    while isinstance(target, functools.partial):
        target = target.func
    return callable(target) and not inspect.isfunction(target)


def _of_target(question: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(question)
    def ask(object: Any) -> Any:
        return question(unwrap(object)[1])

    return ask


inspection = {
    **{name: getattr(inspect, name) for name in NAMES},
    **{name: _of_target(getattr(inspect, name)) for name in _OF_TARGETS},
    "isanytargetmethod": isanytargetmethod,
}
