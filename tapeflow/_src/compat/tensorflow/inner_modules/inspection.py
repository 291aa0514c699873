"""Python's `inspect` under the name that TensorFlow gives it; there are no decorators of TensorFlow to look through."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

NAMES = [
    "FullArgSpec",
    "Parameter",
    "Signature",
    "currentframe",
    "getdoc",
    "getfile",
    "getframeinfo",
    "getmembers",
    "getmodule",
    "getmro",
    "getsource",
    "getsourcefile",
    "getsourcelines",
    "isbuiltin",
    "isclass",
    "isframe",
    "isfunction",
    "isgenerator",
    "isgeneratorfunction",
    "ismethod",
    "ismodule",
    "isroutine",
    "signature",
    "stack",
]


_OWN = __name__.partition(".")[0]


def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a function, class or callable object; those of TensorFlow's functions have no annotations."""
    spec = inspect.getfullargspec(obj)
    own = (getattr(obj, "__module__", None) or "").partition(".")[0] == _OWN
    return spec._replace(annotations={}) if own else spec


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` gave before Python 3.11."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Any) -> ArgSpec:
    """The arguments of a function, class or callable object, with those given by keyword alone behind the others."""
    spec = getfullargspec(obj)
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


inspection = {name: getattr(inspect, name) for name in NAMES}
