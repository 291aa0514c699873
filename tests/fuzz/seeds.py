"""Calls to begin with: those in the examples of every public function, and those that other tests make of raw
operations. A seed is a path, its positional and its keyword arguments.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import tempfile
from collections.abc import Iterator
from typing import Any

import tapeflow as tf
from tests.compat.raw_ops.raw_calls import CALLS
from tools.surface import public_definitions

Seed = tuple[str, list[Any], dict[str, Any]]

# Not called with arguments made by chance: what changes files, waits, ends or reconfigures the process, loops until an
# argument says that it is over, or is no function of its arguments.
LEFT_OUT = (
    "io.gfile.", "io.write_file", "io.write_graph", "io.TFRecordWriter", "summary.", "saved_model.", "train.",
    "keras", "distribute.", "config.", "test.", "profiler.", "sysconfig.", "debugging.experimental.",
    "experimental.numpy.experimental_enable", "experimental.register", "experimental.dispatch",
    "experimental.unregister", "compat.v1.", "errors.", "data.", "random.set_", "random.Generator", "autograph.set_",
    "print", "numpy_function", "py_function", "RegisterGradient", "no_gradient", "load_", "nondifferentiable",
    "experimental.async", "experimental.dlpack", "__internal__", "register_", "run_", "queue.", "lookup.",
    "variable_creator", "install_as_tensorflow", "device", "init_scope", "timestamp", "while_loop",
)  # fmt: skip


def is_left_out(path: str) -> bool:
    """Whether the function of this path is not fuzzed."""
    return path.startswith(LEFT_OUT) or any(f".{prefix}" in path for prefix in ("print", "set_", "enable_", "disable_"))


class _Calls(ast.NodeVisitor):
    """Finds the calls of `tf.path` in a statement."""

    def __init__(self, path: str) -> None:
        self.text, self.found = f"tf.{path}", []

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func) == self.text:
            self.found.append(node)
        self.generic_visit(node)


def _from_examples(path: str, text: str) -> Iterator[Seed]:
    space: dict[str, Any] = {"tf": tf, "tapeflow": tf}
    for example in doctest.DocTestParser().get_examples(text):
        calls = _Calls(path)
        calls.visit(ast.parse(example.source))
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            for node in calls.found:
                if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
                    continue
                evaluate = lambda part: eval(ast.unparse(part), space)  # noqa: E731  our own examples
                yield path, [evaluate(a) for a in node.args], {str(k.arg): evaluate(k.value) for k in node.keywords}
            exec(example.source, space)


def all_seeds() -> list[Seed]:
    """One seed or more for every public function that is fuzzed, in the order of the paths."""
    seeds: list[Seed] = [(f"raw_ops.{name}", [], arguments) for name, arguments in CALLS]
    seen: set[int] = set()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # examples write files
        for path, value in public_definitions():
            if not callable(value) or id(value) in seen or is_left_out(path) or path.startswith("raw_ops."):
                continue
            if isinstance(value, type):
                continue
            seen.add(id(value))
            found = list(_from_examples(path, value.__doc__ or ""))
            seeds += found or [(path, [tf.constant([[1.0, -2.0], [0.5, 3.0]])], {})]
    return sorted((seed for seed in seeds if not is_left_out(seed[0])), key=lambda seed: seed[0])


def function_at(path: str) -> Any:
    """The public function of a path."""
    found: Any = tf
    for name in path.split("."):
        found = getattr(found, name)
    return found
