"""How operations run: at once, so that there is nothing to wait for and no cache of kernels to clear, or in a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.config import list_logical_devices, list_physical_devices, logical_device_count, reset_settings
from tapeflow._src.config_optimizer import get_experimental_options, set_experimental_options, set_jit
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.device_spec import DeviceSpec

_names_used: list[int] = [0]


class Context:
    """The state of eager execution."""

    device_name = ""
    execution_mode = 0

    @property
    def device_spec(self) -> DeviceSpec:
        """The device on which operations run now."""
        return DeviceSpec.from_string(self.device_name)

    def executing_eagerly(self) -> bool:
        """Whether operations run as they are called."""
        return not _core.is_tracing()

    def clear_kernel_cache(self) -> None:
        """Forgets kernels that were chosen for operations: none are kept."""

    def ensure_initialized(self) -> None:
        """Makes the context ready: it is."""

    def num_gpus(self) -> int:
        """How many graphics processors there are."""
        return 0

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_optimizer_experimental_options = staticmethod(get_experimental_options)
    set_optimizer_experimental_options = staticmethod(set_experimental_options)

    def devices(self) -> list[str]:
        """The names of the devices."""
        return [device_name(number) for number in range(logical_device_count())]


context_of_process = Context()


def reset_context() -> None:
    """Lets the program set its devices anew."""
    reset_settings()


def reset_jit_compiler_flags() -> None:
    """Takes back what `tf.config.optimizer.set_jit` was given."""
    set_jit(False)


def enable_eager_execution_internal() -> None:
    """Lets operations run as they are called: they do, outside of graphs."""


def context() -> Context:
    """The state of eager execution."""
    return context_of_process


def async_wait() -> None:
    """Waits for operations that are still running: none are."""


def ensure_initialized() -> None:
    """Makes the context ready: it is."""


def num_gpus() -> int:
    """How many graphics processors there are."""
    return 0


def in_eager_mode() -> bool:
    """Whether operations run as they are called."""
    return not _core.is_tracing()


@contextmanager
def graph_mode() -> Iterator[None]:
    """Operations inside become part of the default graph, also of one that takes its place meanwhile."""
    graph = get_default_graph()
    entered = _core.current_graph() is not graph
    before = _core.swap_stage(graph)
    try:
        with _core.StopRecording(True) if entered else nullcontext():
            yield
    finally:
        _core.swap_stage(before)


@contextmanager
def eager_mode() -> Iterator[None]:
    """Operations inside run as they are called.

    >>> with tf.Graph().as_default(), tf.__internal__.eager_context.eager_mode():
    ...     tf.executing_eagerly()
    True
    """
    with running_at_once():
        yield


@contextmanager
def placed_anywhere(*_: Any, **__: Any) -> Iterator[None]:
    """The device of operations and whether they run eagerly: one device."""
    yield


def uid() -> int:
    """A number that was not given before."""
    _names_used[0] += 1
    return _names_used[0]


def graph_or_parents_in_xla_context(graph: Any) -> bool:
    """Whether a graph is built for another compiler: none is."""
    return False


def is_resource_variable(var: Any) -> bool:
    """Whether an object is a variable: all are kept by a handle.

    >>> tf.__internal__.ops.is_resource_variable(tf.Variable(1.))
    True
    """
    return isinstance(var, _core.Variable)


def enabled() -> bool:
    """Whether the names without a version are those of TensorFlow 2.

    >>> tf.__internal__.tf2.enabled()
    True
    """
    return True
