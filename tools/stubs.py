"""Prints the type stubs of the public namespaces: `python -m tools.stubs FOLDER` writes FOLDER/tapeflow/**/*.pyi.

Signatures of primitives come from the registry, those of compositions from their annotations. Where these say `Any`,
the name of a parameter decides, because TensorFlow uses one name for one kind of thing, and the words of the doc about
the result. Classes, and functions whose types need type variables, are imported from where they are defined.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.util
import inspect
import math
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tools.stub_types import ARGUMENT_KINDS, type_of_parameter, type_of_result

PACKAGE = "tapeflow"
LIKE = "tapeflow._src.types.like"
FORWARDED = ("keras", "losses", "metrics", "optimizers", "initializers")  # to the package keras
HEADER = '"""Types of `tf{}`; printed by tools/stubs.py."""\n'


class Stub:
    """The stub of one namespace: imports under private names, because public ones such as `tf.bool` hide builtins."""

    def __init__(self, path: str) -> None:
        self.path, self.lines = path, list[str]()
        self._alias_by_module: dict[str, str] = {}

    def qualified(self, module: str, name: str) -> str:
        """`name` of `module`, as it is written in this stub."""
        if module not in self._alias_by_module:
            self._alias_by_module[module] = f"_{module.replace('.', '_').lstrip('_')}"
        return f"{self._alias_by_module[module]}.{name}"

    def text(self) -> str:
        imports = [f"import {module} as {alias}" for module, alias in sorted(self._alias_by_module.items())]
        path = f".{self.path}" if self.path else ""
        return "\n".join([HEADER.format(path), *imports, "", *self.lines, ""])


# ---------------------------------------------------------------------------------------------------- annotations


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


@cache
def _origin_by_name(module: str) -> dict[str, tuple[str, str]]:
    """Where the names of a module come from, those that only type checkers import included."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
        elif isinstance(node, ast.Import):
            found.update({a.asname or a.name.partition(".")[0]: (a.name, "") for a in node.names})
    for node in _tree(module).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        found.update({name: (module, name) for name in names})
    return found


class _UnknownNameError(Exception):
    """A name of an annotation whose origin is not known."""


class _Qualify(ast.NodeTransformer):
    """Writes the names of an annotation with the modules that they come from."""

    def __init__(self, module: str, stub: Stub) -> None:
        self.origins, self.stub, self.module = _origin_by_name(module), stub, module

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            node.value = self.visit(node.value)
            return node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self._written(node.id), mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name):
            module, name = self.origins.get(node.value.id, ("", "?"))
            full = f"{module}.{name}" if name else module
            if full in sys.modules:
                return ast.parse(self.stub.qualified(full, node.attr), mode="eval").body
        self.generic_visit(node)
        return node

    def _written(self, name: str) -> str:
        if name in self.origins:
            module, original = self.origins[name]
            if not original:
                raise _UnknownNameError(name)
            return self.stub.qualified(module, original)
        if hasattr(builtins, name):
            return name if name == "None" else self.stub.qualified("builtins", name)
        raise _UnknownNameError(name)


def _annotation(text: str, module: str, stub: Stub) -> str:
    return ast.unparse(_Qualify(module, stub).visit(ast.parse(text, mode="eval").body))


# ------------------------------------------------------------------------------------------------------ functions


def _type_text(kind: str, stub: Stub) -> str:
    """A type as `tools.stub_types` writes it: names of `tapeflow._src.types.like`, of builtins, or of this module."""
    written = ast.parse(kind, mode="eval").body
    for node in ast.walk(written):
        if isinstance(node, ast.Name) and node.id != "None":
            node.id = stub.qualified(*_home_of_type(node.id))
    return ast.unparse(written)


def _home_of_type(name: str) -> tuple[str, str]:
    if hasattr(builtins, name):
        return "builtins", name
    if name in ("Sequence", "Mapping", "Callable", "Iterable", "Iterator"):
        return "collections.abc", name
    if name == "Any":
        return "typing", name
    if name in ("Tensor", "Variable"):
        return "tapeflow._src._core", name
    return LIKE, name


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    plain = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if plain and len(repr(value)) < 40 else "..."


def _parameters(signature: inspect.Signature, typed: dict[str, str]) -> str:
    """The parameter list, with the types in `typed`."""
    parts, seen_star, positional_only = [], False, False
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if positional_only and kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        positional_only = kind is parameter.POSITIONAL_ONLY
        if kind is parameter.KEYWORD_ONLY and not seen_star:
            parts.append("*")
            seen_star = True
        seen_star |= kind is parameter.VAR_POSITIONAL
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter)}"
        parts.append(f"{star}{parameter.name}: {typed[parameter.name]}{default}")
    if positional_only:
        parts.append("/")
    return ", ".join(parts)


def _document(doc: str | None, short: bool) -> list[str]:
    text = inspect.cleandoc(doc or "")
    if short:
        text = text.partition("\n\n")[0]
    if not text:
        return ["    ..."]
    quotes = "'''" if '"""' in text or text.endswith('"') else '"""'
    text = text.replace("\\", "\\\\")
    text = f"{text}\n{quotes}" if "\n" in text else f"{text}{quotes}"
    return textwrap.indent(quotes + text, "    ").split("\n")


def _print_function(name: str, function: Any, stub: Stub) -> Iterator[str]:
    plain = inspect.unwrap(function, stop=lambda f: isinstance(f, FunctionType))
    facts = _facts_by_function().get(id(function))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        any_type = stub.qualified("typing", "Any")
        yield f"def {name}(*args: {any_type}, **kwargs: {any_type}) -> {any_type}:"
        yield from _document(function.__doc__, short=True)
        return
    module = _module_of(plain) if isinstance(plain, FunctionType) else ""
    typed = {}
    kinds = iter(facts["kinds"] if facts else [])
    for parameter in signature.parameters.values():
        kind = next(kinds, None)
        if kind is not None:
            text = ARGUMENT_KINDS[kind]
            if parameter.default is None and "None" not in text:
                text += " | None"
            typed[parameter.name] = _type_text(text, stub)
        else:
            typed[parameter.name] = _parameter_type(parameter, module, stub)
    returned = _return_type(signature, facts, function.__doc__ or "", module, stub)
    yield f"def {name}({_parameters(signature, typed)}) -> {returned}:"
    yield from _document(function.__doc__, short=stub.path.startswith(("raw_ops", "compat.v1")))


class _PlainNames(Stub):
    """Writes types without the modules that they come from, for readers."""

    def qualified(self, module: str, name: str) -> str:
        return name


def declaration(path: str, function: Any) -> str:
    """A function with the types of its parameters and of its result, as the reference shows it."""
    line = next(_print_function(path, function, _PlainNames("")))
    return line.removeprefix("def ").removesuffix(":")


def _parameter_type(parameter: inspect.Parameter, module: str, stub: Stub) -> str:
    annotation = parameter.annotation
    if isinstance(annotation, str) and annotation != "Any" and module:
        try:
            return _annotation(annotation, module, stub)
        except _UnknownNameError:
            return stub.qualified("typing", "Any")
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return stub.qualified("typing", "Any")
    return _type_text(type_of_parameter(parameter.name, parameter.default), stub)


def _return_type(signature: inspect.Signature, facts: Any, doc: str, module: str, stub: Stub) -> str:
    if facts:
        return _type_text("list[Tensor]" if facts["returns_list"] else "Tensor", stub)
    annotation = signature.return_annotation
    if isinstance(annotation, str) and annotation != "Any" and module:
        try:
            return _annotation(annotation, module, stub)
        except _UnknownNameError:
            pass
    return _type_text(type_of_result(doc), stub)


@cache
def _facts_by_function() -> dict[int, Any]:
    from tapeflow._src import primitives

    return {id(f): facts for _, function, raw, _, facts in primitives._rows for f in (function, raw)}


def _module_of(function: FunctionType) -> str:
    """The module whose source defines the function, whatever its `__module__` says."""
    file = function.__code__.co_filename
    return next((n for n, m in sys.modules.items() if getattr(m, "__file__", None) == file), "")


# ----------------------------------------------------------------------------------------------------- namespaces


def _order(path: str) -> tuple[bool, int, str]:
    return path.startswith(("compat", "__internal__", "raw_ops", "experimental")), path.count("."), path


def stubs() -> dict[str, str]:
    """The text of each stub, by the path of its namespace."""
    from tapeflow._src import namespace
    from tools.surface import public_definitions

    definitions = {path: value for path, value in public_definitions() if not isinstance(value, ModuleType)}
    home_by_id: dict[int, str] = {}
    for path in sorted(definitions, key=_order):
        home_by_id.setdefault(id(definitions[path]), path)
    stub_by_path = {path: Stub(path) for path in namespace.installed_namespaces()}
    for path in stub_by_path:
        if path:
            above, _, name = path.rpartition(".")
            stub_by_path[above].lines.append(f"from {_module(above)} import {name} as {name}")
    for path, value in sorted(definitions.items()):
        above, _, name = path.rpartition(".")
        stub = stub_by_path[above]
        stub.lines += _print_definition(path, name, value, home_by_id[id(value)], stub)
    root = stub_by_path[""]
    root.lines += ["import keras as keras", *(f"from keras import {name} as {name}" for name in FORWARDED[1:])]
    for name in ("__version__", "__tapeflow_version__", "__git_version__", "__compiler_version__"):
        root.lines.append(f"{name}: {root.qualified('builtins', 'str')}")
    stub_by_path["compat"].lines.append(f"import {PACKAGE} as v2")
    return {path: stub.text() for path, stub in stub_by_path.items()}


def _module(path: str) -> str:
    return f"{PACKAGE}.{path}" if path else PACKAGE


_FUNCTIONS = ("function", "builtin_function_or_method", "OpFunction", "Composition", "RawOperation")


def _print_definition(path: str, name: str, value: Any, home: str, stub: Stub) -> Iterator[str]:
    if isinstance(value, type) or type(value).__name__ in _FUNCTIONS:
        if home != path:
            above, _, first = home.rpartition(".")
            yield _alias(name, _module(above), first, stub)
            return
        origin = _importable(value)
        if origin:
            yield _alias(name, *origin, stub)
            return
        if isinstance(value, type):  # made at run time
            yield f"{name}: {_type_text('type[Any]', stub)}"
            return
        yield from _print_function(name, value, stub)
        return
    is_type = getattr(value, "__module__", "") == "typing"  # tf.types.experimental.TensorLike
    yield f"{name} = {stub.qualified(LIKE, name)}" if is_type else f"{name}: {_value_type(value, stub)}"


def _alias(name: str, module: str, original: str, stub: Stub) -> str:
    """Exports `original` of a module as `name`; only an import without a new name is an export."""
    if name == original:
        return f"from {module} import {original} as {name}"
    return f"{name} = {stub.qualified(module, original)}"


def _value_type(value: Any, stub: Stub) -> str:
    cls = type(value)
    if value is None:
        return "None"
    if cls in (tuple, frozenset):
        return _type_text("tuple[Any, ...]" if cls is tuple else "frozenset[Any]", stub)
    if cls.__module__.startswith((PACKAGE, "builtins")) and hasattr(sys.modules[cls.__module__], cls.__name__):
        return stub.qualified(cls.__module__, cls.__name__)
    return stub.qualified("typing", "Any")


def _importable(value: Any) -> tuple[str, str] | None:
    """(module, name) of a class, or of a function with overloaded or generic types or one that makes a context."""
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        for place in (module, *_source_modules()):
            name = next((n for n in (value.__name__, value.__qualname__) if vars(place or sys).get(n) is value), None)
            if place is not None and name and place.__name__.partition(".")[2].startswith("_src"):
                return place.__name__, name
        foreign = module is not None and not value.__module__.startswith(PACKAGE)
        return (value.__module__, value.__name__) if foreign else None
    plain = inspect.unwrap(value, stop=lambda f: isinstance(f, FunctionType))
    if isinstance(plain, FunctionType):
        home, original = _module_of(plain), plain.__code__.co_name
        makes_context = getattr(value, "__code__", None) is contextmanager(stubs).__code__
        if makes_context:
            home, original = _module_of(value.__wrapped__), value.__wrapped__.__code__.co_name
        if home and original in vars(sys.modules[home]) and (makes_context or _needs_type_variables(home, original)):
            return home, original
    return None


def _needs_type_variables(module: str, function: str) -> bool:
    """Whether the types of a function are overloaded or generic."""
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            if any(ast.unparse(d) == "overload" for d in node.decorator_list):
                return True
            names = {n.id for n in ast.walk(node.args) if isinstance(n, ast.Name)}
            known = vars(sys.modules[module])
            if any(type(known.get(name)).__name__ in ("TypeVar", "ParamSpec") for name in names):
                return True
    return False


@cache
def _source_modules() -> list[ModuleType]:
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("tapeflow._src")]


def write(folder: Path) -> int:
    """Writes all stubs below `folder`/tapeflow; those that no longer exist are removed. Gives their number."""
    texts = stubs()
    above = {path.rpartition(".")[0] for path in texts} - {""}
    written = set()
    for path, text in texts.items():
        parts = path.split(".") if path else []
        file = folder.joinpath(PACKAGE, *parts)
        file = file / "__init__.pyi" if not path or path in above else file.with_name(f"{file.name}.pyi")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        written.add(file)
    for file in (folder / PACKAGE).rglob("*.pyi"):
        if file not in written and "_src" not in file.parts:
            file.unlink()
    (folder / PACKAGE / "__init__.pyi").touch()  # newer than all that it was made of, for `make`
    return len(written)


def _load_core(file: str) -> None:
    """Takes the core from a build folder, where the package does not find it."""
    spec = importlib.util.spec_from_file_location("tapeflow._src._core", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the type stubs of the public namespaces.")
    parser.add_argument("folder", type=Path, help="where the package lies, or is put together")
    parser.add_argument("--core", help="the file of the extension module, if it is not in the package yet")
    options = parser.parse_args()
    if options.core:
        _load_core(os.path.abspath(options.core))
    print(f"{write(options.folder)} stubs")


if __name__ == "__main__":
    main()
