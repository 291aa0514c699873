"""AutoGraph: converts functions so that Python control flow on staged tensors becomes graph control flow.

The converted code keeps the file and lines of the original, shares its closure and globals, and reaches the run-time
operators through one more closure variable, `ag__`. Conversion happens once per code object.
"""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, SimpleNamespace, TracebackType
from typing import Any

from tapeflow._src.control_flow import branches, loops, maps, vectorized_map
from tapeflow._src.function.autograph import operators
from tapeflow._src.function.autograph.builtins import call_builtin, print_when_run
from tapeflow._src.function.autograph.jumps import UnsupportedError
from tapeflow._src.function.autograph.rewrite import rewritten
from tapeflow._src.function.autograph.source import syntax_of
from tapeflow._src.function.autograph.state import is_undefined, no_value, not_yet
from tapeflow._src.namespace import PACKAGE_FOLDER, SOURCE_FOLDER

_MACHINERY = tuple(os.path.join(SOURCE_FOLDER, *room, "") for room in (["function", "autograph"], ["control_flow"]))
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LIBRARIES = frozenset(
    ["tapeflow", "tensorflow", "keras", "tf_keras", "tensorflow_probability"]
    + ["numpy", "scipy", "ml_dtypes", "pandas", "matplotlib", "PIL"]
    + ["absl", "pytest", "_pytest", "hypothesis", "jax", "torch", "sklearn", "IPython"]
)
_TAKES_FUNCTIONS = (
    maps.map_fn,
    vectorized_map.vectorized_map,
    maps.scan,
    maps.foldl,
    maps.foldr,
    loops.while_loop,
    branches.cond,
)
_MOST_KEPT = 4096  # programs that make code without end shall not fill the memory

_converted_by_code: dict[tuple[int, bool], tuple[CodeType, CodeType | None]] = {}
_made: dict[int, CodeType] = {}


# ---- which functions are the user's


def is_library_code(function: FunctionType, requested: bool = False) -> bool:
    """Whether a function is used as it is: Tapeflow's, Python's, or a library's whose conversion nobody requested."""
    file = function.__code__.co_filename
    if file.startswith((PACKAGE_FOLDER, "<frozen")) or (file.startswith(_STANDARD) and "site-packages" not in file):
        return True
    return not requested and (function.__module__ or "").partition(".")[0] in _LIBRARIES


# ---- conversion


def convert(function: Callable[..., Any], features: Iterable[str] = ()) -> Callable[..., Any]:
    """The function with its control flow converted; the function itself if it is not the user's or has no source.

    >>> def absolute(x):
    ...     return x if x > 0 else -x
    >>> convert(absolute)(-3)
    3
    """
    runtime = _runtime_with(frozenset(features))
    if isinstance(function, MethodType):
        inner = _convert_function(function.__func__, runtime)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if type(function) is functools.partial:
        return functools.partial(convert(function.func, features), *function.args, **function.keywords)
    method = None if isinstance(function, type) else type(function).__call__
    if type(method) is FunctionType:
        inner = _convert_function(method, runtime)
        return function if inner is method else MethodType(inner, function)
    result: Callable[..., Any] = _convert_function(function, runtime, requested=True)
    return result


def _convert_function(function: Any, runtime: Runtime, requested: bool = False) -> Any:
    if type(function) is not FunctionType:
        return function
    code = function.__code__
    known = _converted_by_code.get((id(code), requested))
    if known is None:
        new = None if id(code) in _made or is_library_code(function, requested) else _convert_code(function)
        if len(_converted_by_code) >= _MOST_KEPT:
            _converted_by_code.clear()
            _made.clear()
        _converted_by_code[id(code), requested] = (code, new)
    else:
        new = known[1]
    return function if new is None else _function_like(function, new, runtime)


def _convert_code(function: FunctionType) -> CodeType | None:
    node = syntax_of(function)
    if node is None:
        return None
    try:
        return _compiled(function, rewritten(node, "__class__" in function.__code__.co_freevars))
    except (UnsupportedError, SyntaxError, RecursionError):
        return None


def _function_like(function: FunctionType, code: CodeType, runtime: Runtime) -> FunctionType:
    """A function of the new code with everything else of the old one."""
    closure = function.__closure__ or ()
    cell_by_name = dict(zip(function.__code__.co_freevars, closure))
    cell_by_name["ag__"] = runtime.cell
    cells = tuple(cell_by_name[name] for name in code.co_freevars)
    new = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    new.__dict__.update(function.__dict__)
    new.__kwdefaults__ = function.__kwdefaults__
    new.__annotations__ = function.__annotations__
    new.__qualname__ = function.__qualname__
    new.__module__ = function.__module__
    new.__doc__ = function.__doc__
    new.__dict__["__wrapped__"] = function
    return new


def _compiled(function: FunctionType, node: ast.FunctionDef | ast.Lambda) -> CodeType:
    """The code of the definition, compiled inside a factory that has its free variables as parameters."""
    original = function.__code__
    names = ["ag__", *(n for n in original.co_freevars if n != "ag__")]
    if isinstance(node, ast.Lambda):
        name = "<lambda>"
        statement: ast.stmt = ast.Expr(node)
    else:  # under its own name it would hide a global function, as a function that calls itself
        name = node.name = "ag__function"
        statement = node
    parameters = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    extra: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    block: ast.stmt = ast.FunctionDef(name="ag__factory", args=parameters, body=[statement], decorator_list=[], **extra)
    owner = _class_around(function.__qualname__)
    if owner is not None:  # for the names that a class makes private
        block = ast.ClassDef(name=owner, bases=[], keywords=[], body=[block], decorator_list=[], **extra)
    module = ast.fix_missing_locations(ast.copy_location(ast.Module([block], []), node))
    future = original.co_flags & 0x1FF0000
    compiled = compile(module, original.co_filename, "exec", flags=future, dont_inherit=True)
    found = _code_named(_code_named(compiled, "ag__factory"), name)
    return _with_shown_names(found, original.co_name, original.co_qualname)


def _class_around(qualified_name: str) -> str | None:
    parts = qualified_name.split(".")
    classes = [a for a, b in itertools.pairwise(parts) if a != "<locals>" and b != "<locals>"]
    return classes[-1] if classes and classes[-1].isidentifier() else None


def _code_named(code: CodeType, name: str) -> CodeType:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    for constant in inner:
        if constant.co_name == name:
            return constant
    return _code_named(inner[0], name)


def _with_shown_names(code: CodeType, name: str, qualified_name: str) -> CodeType:
    """The code with generated inner functions under the name of the user's function, as tracebacks show it."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name.startswith("ag__"):
                constant = _with_shown_names(constant, name, qualified_name)
            else:
                inner = constant.co_qualname.rpartition("ag__factory.<locals>.")[2]
                constant = _with_shown_names(constant, constant.co_name, re.sub(r"ag__\w+\.<locals>\.", "", inner))
        constants.append(constant)
    new = code.replace(co_consts=tuple(constants), co_name=name, co_qualname=qualified_name)
    _made[id(new)] = new
    return new


# ---- calls in converted code


class Runtime(SimpleNamespace):
    """What `ag__` is in converted code: the operators, and calls with the chosen optional features."""

    def __init__(self, features: frozenset[str]) -> None:
        super().__init__(
            **{name: getattr(operators, name) for name in _OPERATORS},
            no_value=no_value,
            not_yet=not_yet,
            is_undefined=is_undefined,
            dict=dict,
        )
        self.prints_in_graph = bool(features & {"ALL", "BUILTIN_FUNCTIONS"})
        self.cell = CellType(self)

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`, converted first if it is the user's."""
        kind = type(function)
        if kind is FunctionType:
            if function in _TAKES_FUNCTIONS:
                args = tuple(_convert_function(a, self) for a in args)
                kwargs = {name: _convert_function(a, self) for name, a in kwargs.items()}
            return _convert_function(function, self)(*args, **kwargs)
        if kind is MethodType and type(function.__func__) is FunctionType:
            return _convert_function(function.__func__, self)(function.__self__, *args, **kwargs)
        if kind is BuiltinFunctionType or kind is type:
            if function is print and self.prints_in_graph and any(operators.staged(a) for a in args):
                return print_when_run(*args, **kwargs)
            return call_builtin(function, args, kwargs)
        if kind is functools.partial:
            return self.call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
        method = None if isinstance(function, type) else kind.__call__
        if type(method) is FunctionType:
            return _convert_function(method, self)(function, *args, **kwargs)
        return function(*args, **kwargs)


_OPERATORS = (
    *("if_", "while_", "for_", "and_", "or_", "not_", "chain", "if_expression", "assert_"),
    *("read", "result", "local_values", "no_state"),
)


@functools.cache
def _runtime_with(features: frozenset[str]) -> Runtime:
    return Runtime(features)


# ---- tracebacks


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the operators between one user frame and the next.

    >>> user_traceback(None) is None
    True
    """
    return without_frames_of(_MACHINERY, traceback)


def without_frames_of(folder: str | tuple[str, ...], traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of files below a folder, or below one of several.

    >>> without_frames_of("/", None) is None
    True
    """
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(folder):
            kept.append(traceback)
        traceback = traceback.tb_next
    result = None
    for part in reversed(kept):
        result = TracebackType(result, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return result
