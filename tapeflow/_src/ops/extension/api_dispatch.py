"""`tf.experimental.dispatch_for_api` and `dispatch_for_*_apis`: public functions for types of the user."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Union

import numpy as np

from tapeflow._src import _core, namespace
from tapeflow._src.namespace import public
from tapeflow._src.types.elementwise_names import BINARY, BINARY_ASSERTIONS, UNARY

_OPERATORS = {
    "add": "math.add", "sub": "math.subtract", "mul": "math.multiply", "truediv": "math.truediv", "pow": "math.pow",
    "floordiv": "math.floordiv", "mod": "math.floormod", "and": "math.logical_and", "or": "math.logical_or",
    "xor": "math.logical_xor", "matmul": "linalg.matmul",
}  # fmt: skip


class Replacement:
    """What takes the place of a public function under all its names, and looks like it."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = function.__doc__

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class Dispatched(Replacement):
    """A public function, and what a program wants it to do for arguments of its own types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._parameters = inspect.signature(function)
        self.handlers: list[tuple[dict[str, Any], Callable[..., Any], Any]] = []  # what must match, what runs, for whom

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
        """What runs instead, if something does."""
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        given = bound.arguments
        found = {  # plain tensors are never handed over: the handler calls the function with them
            id(target): (handler, target)
            for wanted, handler, target in self.handlers
            if all(name in given and _matches(given[name], kind) for name, kind in wanted.items())
            and any(_is_own(given[name]) for name in wanted)
        }
        if len(found) > 1:
            targets = " and ".join(str(target) for _, target in found.values())
            raise ValueError(
                f"Multiple dispatch targets that were registered with tf.dispatch_for ({targets}) match the arguments "
                f"to {self.__name__}"
            )
        return next((handler for handler, _ in found.values()), None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Iterator) for x in (*args, *kwargs.values())):  # it is read here, and by who is called
            args = tuple([list(x) if isinstance(x, Iterator) else x for x in args])
            kwargs = {name: list(x) if isinstance(x, Iterator) else x for name, x in kwargs.items()}
        handler = self.find(args, kwargs)
        return self.__wrapped__(*args, **kwargs) if handler is None else handler(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _dispatched, (self.__wrapped__,)


_dispatched_by_function: dict[int, Dispatched] = {}


def _dispatched(function: Any) -> Dispatched:
    """The dispatching wrapper of a public function, which takes its place under all its names."""
    if isinstance(function, Dispatched):
        return function
    found = _dispatched_by_function.get(id(function))
    if found is None:
        found = Dispatched(function)
        if not _replace(function, found):
            raise ValueError(f"{function} does not support dispatch: it is no public function of Tapeflow.")
        _dispatched_by_function[id(function)] = found
    return found


def _replace(present: Any, wanted: Any) -> int:
    """Puts one object in the place of another under all its names; gives the number of names."""
    count = 0
    for module in namespace.modules_with_public_objects():
        for name, value in list(vars(module).items()):
            if value is present:
                setattr(module, name, wanted)
                count += 1
    return count


def _matches(value: Any, kind: Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_matches(value, argument) for argument in arguments)
    if origin in (list, tuple, Sequence):
        kinds = [argument for argument in arguments if argument is not ...]
        return (
            isinstance(value, list | tuple) and bool(value) and all(any(_matches(x, k) for k in kinds) for x in value)
        )
    if kind is None or kind is type(None):
        return value is None
    return isinstance(value, origin or kind)


_PLAIN = (_core.Tensor, _core.Variable, np.ndarray, np.generic, int, float, complex, str, bytes, type(None))


def _is_own(value: Any) -> bool:
    """Whether a value, or one in a list of them, has a type for which functions may be replaced."""
    if isinstance(value, list | tuple):
        return any(_is_own(x) for x in value)
    return not isinstance(value, _PLAIN)


def _check_kind(kind: Any) -> None:
    """ValueError for an annotation that says nothing of the type of one argument."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType, list, Sequence):
        for argument in arguments:
            _check_kind(argument)
    elif origin is not None or not (kind is None or isinstance(kind, type)):
        raise ValueError(
            f"Type annotation {kind} is not currently supported by dispatch.  Supported annotations: type names, "
            "List[...], Union[...] and Optional[...]"
        )


def _by_name(function: Dispatched, signature: dict[Any, Any]) -> dict[str, Any]:
    """A signature whose parameters may be named by position."""
    names = list(function._parameters.parameters)
    for kind in signature.values():
        _check_kind(kind)
    found = {names[key] if isinstance(key, int) else key: kind for key, kind in signature.items()}
    strange = [name for name in found if name not in names]
    if strange:
        raise ValueError(
            f"dispatch_for_api: signature includes annotation for unknown parameter {strange[0]!r}. "
            f"{function.__name__} has {names}"
        )
    return found


def _from_annotations(target: Callable[..., Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(target)
    hints.pop("return", None)
    if not hints:
        raise ValueError(
            f"dispatch_for_api must be called with at least one signature, or the parameters of {target} be annotated"
        )
    return hints


@public("experimental.dispatch_for_api")
def dispatch_for_api(api: Any, *signatures: dict[Any, Any]) -> Callable[..., Any]:
    """A decorator: the function runs in place of a public one where the arguments have the types of a signature.

    >>> class Meters(tf.experimental.ExtensionType):
    ...     number: tf.Tensor
    >>> @tf.experimental.dispatch_for_api(tf.negative, {"x": Meters})
    ... def negative(x, name=None):
    ...     return Meters(-x.number)
    >>> tf.negative(Meters(3.)).number
    <tf.Tensor: shape=(), dtype=float32, numpy=-3.0>
    >>> tf.experimental.unregister_dispatch_for(negative)
    """
    function = _dispatched(api)
    for signature in signatures:
        if not isinstance(signature, dict) or not all(isinstance(name, str | int) for name in signature):
            raise TypeError(
                "dispatch_for_api: signatures must be dictionaries mapping parameter names to type annotations; got "
                f"{type(signature).__name__}"
            )

    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        _check_target(function, target)
        handler = target if _takes_name(target) else _without_name(function, target)
        for signature in signatures or [_from_annotations(target)]:
            function.handlers.append((_by_name(function, signature), handler, target))
        return target

    return register


def _takes_name(target: Callable[..., Any]) -> bool:
    parameters = inspect.signature(target).parameters.values()
    return any(parameter.name == "name" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _without_name(function: Dispatched, target: Callable[..., Any]) -> Callable[..., Any]:
    """A function that names what a function does which takes no name itself."""
    if "name" not in function._parameters.parameters:
        return target

    def run(*args: Any, **kwargs: Any) -> Any:
        bound = function._parameters.bind(*args, **kwargs)
        name = bound.arguments.pop("name", None)
        args, kwargs = bound.args, bound.kwargs
        with nullcontext() if name is None else namespace.find_public("name_scope")(name):
            return target(*args, **kwargs)

    return run


def _check_target(function: Dispatched, target: Any) -> None:
    """An error for a function whose parameters are not those of the function that it stands for."""
    if not callable(target):
        raise TypeError(f"Expected dispatch_target to be callable; got {target!r}")
    api, own = (list(inspect.signature(f).parameters.values()) for f in (function.__wrapped__, target))
    if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in own):
        return
    extra = ["name"] if api and api[-1].name == "name" and not (own and own[-1].name == "name") else []
    if [parameter.name for parameter in own] + extra != [parameter.name for parameter in api]:
        raise ValueError(
            f"Dispatch function's signature {_plainly(own)} does not match API's signature {_plainly(api)}."
        )


def _plainly(parameters: list[inspect.Parameter]) -> inspect.Signature:
    """The parameters without their annotations."""
    return inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])


def _register_elementwise(paths: Sequence[str], kinds: tuple[Any, ...]) -> Callable[..., Any]:
    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        for path in paths:
            function = _dispatched(namespace.find_public(path))
            names = list(function._parameters.parameters)[: len(kinds)]
            wanted = dict(zip(names, kinds))
            others = [
                other
                for existing, handler, other in function.handlers
                if existing == wanted and other is not target and getattr(handler, "is_elementwise", False)
            ]
            if others:
                count = "unary" if len(kinds) == 1 else "binary"
                types_taken = ", ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
                raise ValueError(
                    f"A {count} elementwise dispatch handler ({others[0]}) has already been registered for "
                    f"{types_taken}, which {function.__name__} takes."
                )
            function.handlers.append((wanted, _elementwise_handler(target, function, names), target))
        return target

    return register


def _elementwise_handler(target: Callable[..., Any], function: Dispatched, names: list[str]) -> Callable[..., Any]:
    """Calls the target with the public function, its other arguments bound, and the values of the types it is for."""

    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(function._parameters.bind(*args, **kwargs).arguments)
        values = [given.pop(name) for name in names]

        def bound(*parts: Any) -> Any:
            return function(**dict(zip(names, parts)), **given)

        return target(bound if given else function, *values)

    run.is_elementwise = True  # type: ignore[attr-defined]
    return run


@public("experimental.dispatch_for_unary_elementwise_apis")
def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable[..., Any]:
    """A decorator: `f(api, x)` runs in place of every unary elementwise function where the argument has a type.

    >>> class Meters(tf.experimental.ExtensionType):
    ...     number: tf.Tensor
    >>> @tf.experimental.dispatch_for_unary_elementwise_apis(Meters)
    ... def unary(api, x):
    ...     return Meters(api(x.number))
    >>> tf.abs(Meters(-3.)).number
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    >>> tf.experimental.unregister_dispatch_for(unary)
    """
    return _register_elementwise(UNARY, (x_type,))


@public("experimental.dispatch_for_binary_elementwise_apis")
def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable[..., Any]:
    """A decorator: `f(api, x, y)` runs in place of every binary elementwise function where the arguments have types.

    >>> class Meters(tf.experimental.ExtensionType):
    ...     number: tf.Tensor
    >>> @tf.experimental.dispatch_for_binary_elementwise_apis(Meters, Meters)
    ... def binary(api, x, y):
    ...     return Meters(api(x.number, y.number))
    >>> tf.add(Meters(1.), Meters(2.)).number
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    >>> tf.experimental.unregister_dispatch_for(binary)
    """
    return _register_elementwise(BINARY, (x_type, y_type))


@public("experimental.dispatch_for_binary_elementwise_assert_apis")
def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable[..., Any]:
    """A decorator: `f(api, x, y)` runs in place of every assertion about two tensors where the arguments have types.

    >>> class Meters(tf.experimental.ExtensionType):
    ...     number: tf.Tensor
    >>> @tf.experimental.dispatch_for_binary_elementwise_assert_apis(Meters, Meters)
    ... def compare(api, x, y):
    ...     return api(x.number, y.number)
    >>> tf.debugging.assert_equal(Meters(1.), Meters(1.))
    >>> tf.experimental.unregister_dispatch_for(compare)
    """
    return _register_elementwise(BINARY_ASSERTIONS, (x_type, y_type))


@public("experimental.unregister_dispatch_for")
def unregister_dispatch_for(dispatch_target: Callable[..., Any]) -> None:
    """Ends what the decorators of this family began for a function.

    >>> @tf.experimental.dispatch_for_unary_elementwise_apis(tf.RaggedTensor)
    ... def unary(api, x):
    ...     return x
    >>> tf.experimental.unregister_dispatch_for(unary)
    """
    count = 0
    for key, function in list(_dispatched_by_function.items()):
        kept = [entry for entry in function.handlers if entry[2] is not dispatch_target]
        count += len(function.handlers) - len(kept)
        function.handlers = kept
        if not kept:
            _replace(function, function.__wrapped__)
            del _dispatched_by_function[key]
    if not count:
        raise ValueError(
            f"Function {dispatch_target} was not registered using a `@tf.experimental.dispatch_for_*` decorator."
        )


def _reflected(path: str) -> Callable[[Any, Any], Any]:
    """An operator with a tensor to its left and an object to its right."""

    def operate(self: Any, other: Any) -> Any:
        function = namespace.find_public(path)
        handler = function.find((other, self), {}) if isinstance(function, Dispatched) else None
        return NotImplemented if handler is None else handler(other, self)

    return operate


class ReflectedOperators:
    """The operators of an extension type to the right of a tensor: what a program registered for the function."""

    __radd__ = _reflected(_OPERATORS["add"])
    __rsub__ = _reflected(_OPERATORS["sub"])
    __rmul__ = _reflected(_OPERATORS["mul"])
    __rtruediv__ = _reflected(_OPERATORS["truediv"])
    __rpow__ = _reflected(_OPERATORS["pow"])
    __rfloordiv__ = _reflected(_OPERATORS["floordiv"])
    __rmod__ = _reflected(_OPERATORS["mod"])
    __rand__ = _reflected(_OPERATORS["and"])
    __ror__ = _reflected(_OPERATORS["or"])
    __rxor__ = _reflected(_OPERATORS["xor"])
    __rmatmul__ = _reflected(_OPERATORS["matmul"])
