"""Eager or not: whether a program outside of any `with` runs its operations or builds the default graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core, module
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.control_flow import disable_control_flow_v2, enable_control_flow_v2
from tapeflow._src.compat.v1.graph.graph import defaults, get_default_graph
from tapeflow._src.compat.v1.graph.shapes import disable_v2_tensorshape, enable_v2_tensorshape
from tapeflow._src.compat.v1.sessions.fetches import read_variables_last, variables_are_read_last
from tapeflow._src.namespace import public


@public("compat.v1.disable_eager_execution")
def disable_eager_execution() -> None:
    """From now on operations build the default graph, which sessions run.

    >>> tf.compat.v1.disable_eager_execution()
    >>> tf.executing_eagerly()
    False
    >>> tf.compat.v1.enable_eager_execution()
    """
    if not defaults.graphs and _core.current_graph() is None:
        _core.swap_stage(get_default_graph())


@public("compat.v1.enable_eager_execution")
def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """From now on operations run as they are called.

    >>> tf.compat.v1.enable_eager_execution()
    """
    if not defaults.graphs and _core.current_graph() is defaults.outermost:
        _core.swap_stage(None)


@public("compat.v1.executing_eagerly")
def executing_eagerly() -> bool:
    """Whether operations run as they are called.

    >>> tf.compat.v1.executing_eagerly()
    True
    """
    return not _core.is_tracing()


@public("compat.v1.executing_eagerly_outside_functions")
def executing_eagerly_outside_functions() -> bool:
    """Whether operations run as they are called, when no function is being traced.

    >>> tf.compat.v1.executing_eagerly_outside_functions()
    True
    """
    graph = _core.current_graph()
    while graph is not None and graph.outer is not None:
        graph = graph.outer
    return graph is None or not graph.graph_mode


@public("compat.v1.disable_v2_behavior")
def disable_v2_behavior() -> None:
    """TensorFlow 1's behaviour: no eager execution, shapes of `Dimension`s, single results of branches bare.

    >>> tf.compat.v1.disable_v2_behavior()
    >>> tf.executing_eagerly()
    False
    >>> tf.compat.v1.enable_v2_behavior()
    """
    disable_eager_execution()
    disable_resource_variables()
    disable_v2_tensorshape()
    disable_control_flow_v2()


@public("compat.v1.enable_v2_behavior", "enable_v2_behavior")
def enable_v2_behavior() -> None:
    """TensorFlow 2's behaviour: eager execution, shapes of numbers, results of branches in their structure.

    TensorFlow 2 has it as `tf.compat.v2.enable_v2_behavior`; here `tf.compat.v2` is another name of `tf`.

    >>> tf.compat.v1.enable_v2_behavior()
    """
    enable_eager_execution()
    enable_resource_variables()
    enable_v2_tensorshape()
    enable_control_flow_v2()


def _accept(name: str, what: str) -> None:
    def setting() -> None:
        return None

    setting.__name__ = setting.__qualname__ = name
    setting.__doc__ = f"""{what}: accepted, and without effect.

    >>> tf.compat.v1.{name}()
    """
    public(f"compat.v1.{name}")(setting)


for _verb in ("enable", "disable"):
    _accept(f"{_verb}_tensor_equality", "What == of tensors means")


@public("compat.v1.enable_resource_variables")
def enable_resource_variables() -> None:
    """A variable that is fetched is read where the order of the program says.

    >>> tf.compat.v1.enable_resource_variables()
    """
    read_variables_last(False)


@public("compat.v1.disable_resource_variables")
def disable_resource_variables() -> None:
    """A variable that is fetched is read after everything else in the run, as variables of TensorFlow 1 are.

    >>> tf.compat.v1.disable_resource_variables()
    >>> tf.compat.v1.resource_variables_enabled()
    False
    >>> tf.compat.v1.enable_resource_variables()
    """
    read_variables_last(True)


@public("compat.v1.resource_variables_enabled")
def resource_variables_enabled() -> bool:
    """Whether variables are resources, which are read where the order of the program says.

    >>> tf.compat.v1.resource_variables_enabled()
    True
    """
    return not variables_are_read_last()


# ---- contexts of the default graph


@public("compat.v1.add_to_collection")
def add_to_collection(name: Any, value: Any) -> None:
    """Adds a value to a collection of the default graph.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.add_to_collection("numbers", 7)
    ...     tf.compat.v1.get_collection("numbers")
    [7]
    """
    get_default_graph().add_to_collection(name, value)


@public("compat.v1.add_to_collections")
def add_to_collections(names: Any, value: Any) -> None:
    """Adds a value to several collections of the default graph.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.add_to_collections(["a", "b"], 7)
    ...     tf.compat.v1.get_collection("b")
    [7]
    """
    get_default_graph().add_to_collections(names, value)


@public("compat.v1.get_collection")
def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """The values of a collection of the default graph.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_collection("nothing")
    []
    """
    return get_default_graph().get_collection(key, scope)


@public("compat.v1.get_collection_ref")
def get_collection_ref(key: Any) -> list[Any]:
    """A collection of the default graph itself: changing the list changes it.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_collection_ref("nothing")
    []
    """
    return get_default_graph().get_collection_ref(key)


@public("compat.v1.name_scope")
@lasting_context
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """Names of operations inside begin with `name`, or with `default_name` if there is none.

    >>> with tf.Graph().as_default(), tf.compat.v1.name_scope("layer") as scope:
    ...     scope
    'layer/'
    """
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        with module.name_scope((default_name if name is None else name) or "") as scope:
            yield scope
        return
    if name is None and default_name is None and values is not None:
        raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
    with graph.name_scope(default_name if name is None else name) as scope:
        yield scope


@public("compat.v1.op_scope")
@contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """The same as `name_scope`, with its arguments in another order.

    >>> with tf.Graph().as_default(), tf.compat.v1.op_scope([], "layer") as scope:
    ...     scope
    'layer/'
    """
    with name_scope(name, default_name, values) as scope:
        yield scope


@public("compat.v1.colocate_with")
@contextmanager
def colocate_with(op: Any, ignore_existing: bool = False) -> Iterator[None]:
    """Operations of a graph inside are to run where `op` does.

    >>> with tf.Graph().as_default(), tf.device("/cpu:1"):
    ...     x = tf.constant(1.)
    >>> with x.graph.as_default(), tf.compat.v1.colocate_with(x):
    ...     tf.constant(2.).device
    '/device:CPU:1'
    """
    graph = _core.current_graph()
    if not getattr(graph, "_names_devices", False):
        yield
        return
    with graph.colocate_with(op, ignore_existing):
        yield


@public("compat.v1.container")
@contextmanager
def container(container_name: str) -> Iterator[str]:
    """Where variables live: there is one container.

    >>> with tf.compat.v1.container("mine"):
    ...     pass
    """
    yield container_name
