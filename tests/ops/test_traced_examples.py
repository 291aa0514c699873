"""The documented example of every public function in a graph: float arguments are symbolic, the rest is known."""

from __future__ import annotations

import ast
import doctest
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.function.trace import FuncGraph, building
from tools.surface import public_definitions

KNOWN, OPEN = "known", "open"
PARSER = doctest.DocTestParser()

# What gives other numbers at each call.
random_paths = ("random", "sampled_softmax_loss", "nce_loss", "dropout", "candidate_sampler", "fractional")

# What does not work in a graph as its example shows it, and why.
skipped = {
    "numpy_function": "its function takes the values of the tensors when the graph runs",
    "py_function": "its function takes the values of the tensors when the graph runs",
    "debugging.assert_same_float_dtype": "it gives a dtype, not a tensor",
    "compat.v1.scatter_add": "every run changes the variable once more",
    "compat.v1.scatter_nd_add": "every run changes the variable once more",
    "compat.v1.scatter_nd_sub": "every run changes the variable once more",
    "compat.v1.scatter_sub": "every run changes the variable once more",
}
# What has to know the dimensions while tracing, and why.
needs_dimensions = {
    "compat.v1.layers.flatten": "the result's second dimension is a static one",
    "hessians": "one gradient per element is a node of the graph",
}


def is_float(value: Any) -> bool:
    if tf.is_tensor(value):
        return isinstance(value, tf.Tensor) and (value.dtype.is_floating or value.dtype.is_complex)
    if not isinstance(value, list | np.ndarray):
        return False
    try:
        return np.asarray(value).dtype.kind in "fc"
    except ValueError:
        return False


class Example:
    """A call of a public function with the values of its arguments."""

    def __init__(self, function: Any, call: ast.Call) -> None:
        self.function = function
        self.positional = [self.evaluate(a) for a in call.args]
        self.named = {str(k.arg): self.evaluate(k.value) for k in call.keywords}
        self.leaves = [*self.positional, *self.named.values()]
        self.places = [i for i, leaf in enumerate(self.leaves) if is_float(leaf)]
        self.values = [tf.convert_to_tensor(self.leaves[i]) for i in self.places]

    @staticmethod
    def evaluate(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "example", "eval"), {"tf": tf, "np": np})

    def run(self, tensors: list[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        count = len(self.positional)
        result = self.function(*leaves[:count], **dict(zip(self.named, leaves[count:])))
        flat = tf.nest.flatten(result, expand_composites=True)
        return [tf.convert_to_tensor(y) for y in flat if y is not None]


def first_call(path: str, function: Any) -> Example | None:
    """The first example that calls the function itself with a float tensor and without names defined before."""
    for example in PARSER.get_examples(function.__doc__ or ""):
        try:
            node: Any = ast.parse(example.source.strip(), mode="eval").body
        except SyntaxError:
            return None
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != f"tf.{path}":
            continue
        try:
            found = Example(function, node)
            if not found.places:
                continue
            found.run(found.values)
        except Exception:  # a name of an example above, or a list of tensors that is not to be one tensor
            continue
        return found
    return None


functions: dict[int, tuple[str, Any]] = {}
for _path, _value in public_definitions():
    if callable(_value) and not isinstance(_value, type) and not _path.startswith(("raw_ops.", "config.")):
        functions.setdefault(id(_value), (_path, _value))
PATHS = dict(sorted(functions.values()))


@pytest.mark.parametrize("path", PATHS)
def test_an_example_gives_the_same_in_a_graph(path):
    example = None if path in skipped else first_call(path, PATHS[path])
    if example is None:
        return
    expected = example.run(example.values)
    for how in (KNOWN, OPEN):
        if how == OPEN and path in needs_dimensions:
            continue
        graph = FuncGraph()
        with building(graph):
            shapes = [t.shape if how == KNOWN else tf.TensorShape([None] * t.shape.rank) for t in example.values]
            outputs = example.run([graph.add_input(t.dtype, s) for t, s in zip(example.values, shapes)])
            graph.set_outputs(outputs)
        for symbolic, found, wanted in zip(outputs, graph.call(example.values), expected, strict=True):
            assert symbolic.shape.is_compatible_with(found.shape), f"static shape {symbolic.shape} of {found.shape}"
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            if wanted.dtype != tf.string and not any(word in path for word in random_paths):
                np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-5)
