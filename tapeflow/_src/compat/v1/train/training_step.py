"""The global step: the variable that counts the updates of a training."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import Graph, get_default_graph
from tapeflow._src.compat.v1.variables.variable_scope import get_variable
from tapeflow._src.namespace import public
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.types.dtypes import int64
from tapeflow._src.variables import Variable


def _graph(graph: Graph | None) -> Graph:
    return get_default_graph() if graph is None else graph


@public("compat.v1.train.get_global_step")
def get_global_step(graph: Graph | None = None) -> Any:
    """The variable that counts the steps, or None.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.get_global_step()
    """
    found = _graph(graph).get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise TypeError(f"Multiple tensors in global_step collection: {found}")
    return found[0] if found else None


@public("compat.v1.train.create_global_step")
def create_global_step(graph: Graph | None = None) -> Any:
    """Makes the variable that counts the steps.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.create_global_step().name
    'global_step:0'
    """
    graph = _graph(graph)
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    collections = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    if _core.current_graph() is None:
        step = Variable(0, dtype=int64, trainable=False, name="global_step")
        graph.add_to_collection(GraphKeys.GLOBAL_STEP, step)
        return step
    with graph.as_default(), graph.name_scope(None):
        return get_variable("global_step", [], int64, ZerosInitializer(), trainable=False, collections=collections)


@public("compat.v1.train.get_or_create_global_step")
def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The variable that counts the steps, made if there is none.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.get_or_create_global_step().dtype
    tf.int64
    """
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


@public("compat.v1.train.global_step")
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps in a session.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     step = tf.compat.v1.train.create_global_step()
    ...     session.run(step.initializer)
    ...     tf.compat.v1.train.global_step(session, step)
    0
    """
    return int(sess.run(global_step_tensor))


@public("compat.v1.train.assert_global_step")
def assert_global_step(global_step_tensor: Any) -> None:
    """An error unless the argument can count steps: an integer scalar.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.assert_global_step(tf.compat.v1.train.create_global_step())
    """
    if not _core.is_tensor(global_step_tensor):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    if global_step_tensor.shape.rank != 0 and global_step_tensor.shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {global_step_tensor.shape}')
