"""`tf.__internal__.FuncGraph`: a graph that a library opens by hand, to learn the shapes of what a function gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow import tracing
from tapeflow._src.namespace import public


class _AnyFunctionGraph(type):
    """Graphs of functions that are traced are instances, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, tracing.FuncGraph)


@public("__internal__.FuncGraph")
class FuncGraph(tracing.FuncGraph, metaclass=_AnyFunctionGraph):
    """A graph of its own, as that of a function that is traced; placeholders are its inputs.

    >>> with tf.__internal__.FuncGraph("sketch").as_default():
    ...     y = tf.transpose(tf.compat.v1.placeholder(tf.float32, [None, 3]))
    >>> y.shape
    TensorShape([3, None])
    """

    def __new__(cls, name: str, *args: Any, **kwargs: Any) -> FuncGraph:
        return super().__new__(cls, _core.current_graph())

    def __init__(
        self,
        name: str,
        collections: Any = None,
        capture_by_value: bool | None = None,
        structured_input_signature: Any = None,
        structured_outputs: Any = None,
    ) -> None:
        super().__init__(_core.current_graph())
        self.name = name
        self.describe_inputs = lambda: structured_input_signature
        self.describe_outputs = lambda outputs: structured_outputs

    @contextmanager
    def as_default(self) -> Iterator[FuncGraph]:
        """Operations inside become part of this graph."""
        with tracing.building(self):
            yield self

    def add_placeholder(self, dtype: Any, shape: Any, name: str) -> Any:
        """An input of this dtype and shape."""
        self.input_names.append(name)
        return self.add_input(dtype, shape)

    def add_placeholder_with_default(self, value: Any, shape: Any, name: str) -> Any:
        """A tensor of this graph with a value that is not known while it is built."""
        value = _core.convert_to_tensor(value, None, None, "placeholder_with_default")
        if not _core.is_symbolic(value):
            value = self.add_constant(value, f"{name}/input")
        return super().add_placeholder_with_default(value, shape, name)
