"""`tf.compat.v1.wrap_function`: a function of TensorFlow 1, with its variables and names, that is called eagerly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import defaults
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.namespace import public
from tapeflow._src.types import nest


class WrappedFunction:
    """A function that has been traced once; parts of its graph can be taken out of it."""

    def __init__(self, concrete: ConcreteFunction) -> None:
        self._concrete = concrete
        self.graph, self.name = concrete.graph, concrete.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._concrete(*args, **kwargs)

    inputs = property(lambda self: self._concrete.inputs)
    outputs = property(lambda self: self._concrete.outputs)
    variables = property(lambda self: self._concrete.variables)
    trainable_variables = property(lambda self: self._concrete.trainable_variables)
    structured_outputs = property(lambda self: self._concrete.structured_outputs)
    structured_input_signature = property(lambda self: self._concrete.structured_input_signature)

    def prune(self, feeds: Any, fetches: Any, name: str | None = None, input_signature: Any = None) -> Any:
        """A function of the tensors `feeds` that gives the tensors `fetches`; both may be names."""
        given = [self._element(x) for x in nest.flatten(feeds)]
        wanted = [self._element(x) for x in nest.flatten(fetches)]
        part = self.graph.subgraph(wanted, given, [])

        def pruned(*values: Any) -> Any:
            tensors = [_core.convert_to_tensor(v, x.dtype, None, "prune") for v, x in zip(values, given, strict=True)]
            return nest.pack_sequence_as(fetches, part.call(tensors))

        return pruned

    def _element(self, item: Any) -> Any:
        return self.graph.get_tensor_by_name(item) if isinstance(item, str) else item


@contextmanager
def _own_variables() -> Iterator[None]:
    """`get_variable` finds and makes the variables of one function only."""
    before = getattr(defaults, "variable_store", None)
    defaults.variable_store = None
    try:
        yield
    finally:
        defaults.variable_store = before


@public("compat.v1.wrap_function")
def wrap_function(fn: Callable[..., Any], signature: Any, name: str | None = None) -> WrappedFunction:
    """Traces a function that is written for TensorFlow 1, once; its variables are made then and keep their values.

    >>> def scale(x):
    ...     return x * tf.compat.v1.get_variable("w", initializer=2.)
    >>> wrapped = tf.compat.v1.wrap_function(scale, [tf.TensorSpec([], tf.float32)])
    >>> wrapped(tf.constant(3.))
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    >>> [v.name for v in wrapped.variables]
    ['w:0']
    """
    function = Function(fn, name=name, autograph=False)
    positional = signature if isinstance(signature, list | tuple) else [signature]
    with _own_variables():
        return WrappedFunction(function._trace_once(function._signature.bind(tuple(positional), {}), None, True))
