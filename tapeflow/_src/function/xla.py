"""`tf.xla.experimental`: requests to compile a part of a graph; all graphs are compiled the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest


@public("xla.experimental.compile")
def xla_compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """What a function gives for tensors, as a part of the graph that is being built.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     (y,) = tf.xla.experimental.compile(lambda x: x * 2., [tf.constant(3.)])
    ...     session.run(y)
    np.float32(6.0)
    """
    if not _core.is_tracing():
        raise RuntimeError(
            "xla.experimental.compile is not supported when eager execution is enabled. Try use "
            "tf.function(jit_compile=True)."
        )
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise TypeError(f"xla.experimental.compile: inputs must be a list or None; got {type(inputs).__name__}")
    tensors = nest.map_structure(convert_to_tensor, list(inputs or []), expand_composites=True)
    result = computation(*tensors)
    return [result] if _core.is_tensor(result) else result


@public("xla.experimental.jit_scope")
@contextmanager
def jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """A block whose operations shall be compiled together; the planner decides that for all graphs.

    >>> with tf.Graph().as_default(), tf.xla.experimental.jit_scope():
    ...     y = tf.constant(1.) + 2.
    """
    if not _core.is_tracing():
        raise RuntimeError(
            "xla.experimental.jit_scope is not supported when eager execution is enabled. Try use it inside "
            "tf.function."
        )
    yield
