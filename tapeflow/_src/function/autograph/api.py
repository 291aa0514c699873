"""The public names of `tf.autograph`."""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from tapeflow._src.function.autograph import conversion
from tapeflow._src.function.autograph.jumps import UnsupportedError
from tapeflow._src.function.autograph.rewrite import rewritten
from tapeflow._src.function.autograph.source import syntax_of
from tapeflow._src.namespace import public

_verbosity = 0


@public("autograph.experimental.Feature")
class Feature(enum.Enum):
    """Optional parts of the conversion.

    >>> tf.autograph.experimental.Feature.LISTS.value
    'LISTS'
    """

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """A tuple that turns on everything."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """A tuple that turns on everything except `exclude`."""
        excluded = exclude if isinstance(exclude, list | tuple | set) else (exclude,)
        return tuple(f for f in cls if f not in {*excluded, cls.ALL})


def feature_names(features: Any) -> frozenset[str]:
    """`experimental_autograph_options` of `tf.function`, as `autograph.convert` takes them."""
    given = (
        () if features is None else features if isinstance(features, list | tuple | set | frozenset) else (features,)
    )
    return frozenset(feature.value for feature in given)


@public("autograph.experimental.do_not_convert")
def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function, to be run as it is written.

    >>> @tf.autograph.experimental.do_not_convert
    ... def twice(x):
    ...     return 2 * x
    >>> twice(3)
    6
    """
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return unconverted


@public("autograph.experimental.set_loop_options")
def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Options for the graph loop in whose body it stands; it does nothing elsewhere.

    `shape_invariants` is a list of pairs: a loop variable and the `tf.TensorShape` that covers all its shapes.

    >>> tf.autograph.experimental.set_loop_options(maximum_iterations=3)
    """


def _convertible(entity: Any) -> FunctionType:
    function = entity.__func__ if isinstance(entity, MethodType) else entity
    if type(function) is not FunctionType:
        raise ValueError(
            f"converting {entity}: Cannot apply autograph to a function that doesn't expose a __code__ object. If this "
            "is a @tf.function, try passing f.python_function instead."
        )
    return function


@public("autograph.to_graph")
def to_graph(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> Callable[..., Any]:
    """The function converted for use in a graph.

    >>> def absolute(x):
    ...     if x < 0:
    ...         x = -x
    ...     return x
    >>> tf.autograph.to_graph(absolute)(-2)
    2
    """
    _convertible(entity)
    return conversion.convert(entity, feature_names(experimental_optional_features))


@public("autograph.to_code")
def to_code(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source of the converted function; `ag__` holds the run-time operators.

    >>> import textwrap
    >>> "ag__.if_(" in tf.autograph.to_code(textwrap.indent)
    True
    """
    function = _convertible(entity)
    node = syntax_of(function)
    if node is None:
        raise ValueError(f"converting {entity}: its source code is not available")
    try:
        converted = rewritten(node, "__class__" in function.__code__.co_freevars)
        return ast.unparse(ast.fix_missing_locations(converted)) + "\n"
    except UnsupportedError as error:
        raise ValueError(f"converting {entity}: {error}") from None


@public("autograph.trace")
def trace(*args: Any) -> None:
    """Prints its arguments while a function is traced.

    >>> tf.autograph.trace("reached")
    reached
    """
    print(*args)


@public("autograph.set_verbosity")
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """How much the conversion logs. It logs nothing, so the level is only kept.

    >>> tf.autograph.set_verbosity(0)
    """
    global _verbosity
    _verbosity = level
