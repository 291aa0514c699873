"""`tf.config` and `tf.device`: one processor, its threads and its memory, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types.device_names import device_name, device_names
from tapeflow._src.types.device_spec import DeviceSpec
from tapeflow._src.types.errors import InvalidArgumentError


@public("config.PhysicalDevice")
class PhysicalDevice(NamedTuple):
    """A device of the machine.

    >>> tf.config.list_physical_devices("CPU")[0]
    PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


@public("config.LogicalDevice")
class LogicalDevice(NamedTuple):
    """A device as programs name it.

    >>> tf.config.list_logical_devices("CPU")[0].name
    '/device:CPU:0'
    """

    name: str
    device_type: str


@public("config.LogicalDeviceConfiguration", "config.experimental.VirtualDeviceConfiguration")
class LogicalDeviceConfiguration(NamedTuple):
    """How a part of a device is set up; the settings are for graphics cards, parts of processors have none.

    >>> tf.config.LogicalDeviceConfiguration(memory_limit=100).memory_limit
    100
    """

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_physical_device = PhysicalDevice("/physical_device:CPU:0", "CPU")


class _Settings:
    """What programs set and may read again; the core knows of the threads alone."""

    def __init__(self) -> None:
        self.intra_op_threads = 0
        self.inter_op_threads = 0
        self.processor_visible = True
        self.soft_device_placement = True
        self.logical_devices: list[LogicalDeviceConfiguration] | None = None
        self.devices_used = False  # the program has asked for its logical devices, or has named one
        self.jit = ""
        self.optimizer_options: dict[str, Any] = {"disable_model_pruning": False, "disable_meta_optimizer": False}
        self.op_determinism = False
        self.tensor_float_32 = True
        self.synchronous_execution = True
        self.device_policy = "silent"


_settings = _Settings()


def reset_settings() -> None:
    """Forgets what the program has set and that it used devices, as a fresh process does."""
    _settings.__init__()  # type: ignore[misc]
    forget_devices_used()


def forget_devices_used() -> None:
    """Lets the program set its devices anew."""
    _settings.devices_used = False
    _core.forget_first_tensor()


def _require_unused_devices(what: str) -> None:
    """Raises once the program has made an eager tensor or used its logical devices: they do not change afterwards."""
    if _settings.devices_used or (_core.has_made_tensors() and _core.current_graph() is None):
        raise RuntimeError(f"{what} devices cannot be modified after being initialized")


def _check_device(device: Any) -> None:
    if device != _physical_device:
        raise ValueError(f"Unrecognized device: {device!r}")


@public("config.list_physical_devices", "config.experimental.list_physical_devices")
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of the machine: always one processor.

    >>> tf.config.list_physical_devices("GPU")
    []
    """
    return [_physical_device] if device_type in (None, "CPU") else []


@public("config.list_logical_devices", "config.experimental.list_logical_devices")
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that programs can name.

    >>> tf.config.list_logical_devices()
    [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    names = device_names(use_devices())
    return [LogicalDevice(name, "CPU") for name in names] if device_type in (None, "CPU") else []


def logical_device_count() -> int:
    """The number of logical processors of this process."""
    return len(_settings.logical_devices or [None])


def use_devices() -> int:
    """The number of logical processors, which does not change from here on."""
    _settings.devices_used = True
    return logical_device_count()


@public("config.get_visible_devices", "config.experimental.get_visible_devices")
def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that `set_visible_devices` left visible.

    >>> [device.device_type for device in tf.config.get_visible_devices()]
    ['CPU']
    """
    return list_physical_devices(device_type) if _settings.processor_visible else []


@public("config.set_visible_devices", "config.experimental.set_visible_devices")
def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Sets which devices are visible; the processor computes in any case.

    >>> tf.config.set_visible_devices([], "GPU")
    >>> tf.config.get_visible_devices("GPU")
    []
    """
    if not isinstance(devices, Sequence) or isinstance(devices, (PhysicalDevice, str)):
        devices = [devices] if devices else []
    for device in devices:
        _check_device(device)
        if device_type not in (None, "CPU"):
            raise ValueError(f"Unrecognized device: {device!r}")
    if device_type in (None, "CPU") and _settings.processor_visible != bool(devices):
        _require_unused_devices("Visible")
        _settings.processor_visible = bool(devices)


@public("config.get_logical_device_configuration", "config.experimental.get_virtual_device_configuration")
def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """What `set_logical_device_configuration` was given for the device.

    >>> [processor] = tf.config.list_physical_devices("CPU")
    >>> tf.config.get_logical_device_configuration(processor) is None
    True
    """
    _check_device(device)
    return _settings.logical_devices


@public("config.set_logical_device_configuration", "config.experimental.set_virtual_device_configuration")
def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Iterable[LogicalDeviceConfiguration]
) -> None:
    """Divides a processor into logical devices, on which `tf.distribute.MirroredStrategy` has one replica each. It must
    be called before the program makes tensors.

    >>> [processor] = tf.config.list_physical_devices("CPU")
    >>> tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()])
    >>> len(tf.config.get_logical_device_configuration(processor))
    1
    """
    _check_device(device)
    configurations = list(logical_devices)
    if not configurations:
        raise ValueError("set_logical_device_configuration: logical_devices must not be empty")
    for setting in ("memory_limit", "experimental_priority", "experimental_device_ordinal"):
        if any(getattr(configuration, setting) is not None for configuration in configurations):
            raise ValueError(f"Setting {setting} on CPU virtual devices is currently not supported")
    if configurations != _settings.logical_devices:
        _require_unused_devices("Virtual")
        _settings.logical_devices = configurations


@public("config.get_soft_device_placement")
def get_soft_device_placement() -> bool:
    """Whether operations placed on a device that does not exist run on the processor.

    >>> tf.config.get_soft_device_placement()
    True
    """
    return _settings.soft_device_placement


@public("config.set_soft_device_placement")
def set_soft_device_placement(enabled: bool) -> None:
    """Sets whether `tf.device` accepts a device that does not exist.

    >>> tf.config.set_soft_device_placement(True)
    >>> tf.config.get_soft_device_placement()
    True
    """
    _settings.soft_device_placement = bool(enabled)


@public("config.threading.get_intra_op_parallelism_threads")
def get_intra_op_parallelism_threads() -> int:
    """The number of threads that one operation may use, as it was set; 0 stands for one per core.

    >>> tf.config.threading.get_intra_op_parallelism_threads()
    0
    """
    return _settings.intra_op_threads


@public("config.threading.set_intra_op_parallelism_threads")
def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets how many threads one operation may use; 0 stands for one per core. It works at any time.

    >>> tf.config.threading.set_intra_op_parallelism_threads(0)
    >>> tf.config.threading.get_intra_op_parallelism_threads()
    0
    """
    num_threads = index(num_threads)
    _core.set_thread_count(max(num_threads, 1) if num_threads else 0)
    _settings.intra_op_threads = num_threads


@public("config.threading.get_inter_op_parallelism_threads")
def get_inter_op_parallelism_threads() -> int:
    """The number that `set_inter_op_parallelism_threads` was given.

    >>> tf.config.threading.get_inter_op_parallelism_threads()
    0
    """
    return _settings.inter_op_threads


@public("config.threading.set_inter_op_parallelism_threads")
def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """How many branches of a `tf.function` may run at the same time: with 1, operations follow one another.

    0, as at first, is the number of threads. More than before takes effect where a function runs with new shapes.

    >>> tf.config.threading.set_inter_op_parallelism_threads(0)
    >>> tf.config.threading.get_inter_op_parallelism_threads()
    0
    """
    num_threads = index(num_threads)
    _core.set_lane_limit(max(num_threads, 1) if num_threads else 0)
    _settings.inter_op_threads = num_threads


@public("config.experimental.get_memory_info")
def get_memory_info(device: str) -> dict[str, int]:
    """The bytes that tensors hold now, and the most they held since the last `reset_memory_stats`.

    >>> sorted(tf.config.experimental.get_memory_info("CPU:0"))
    ['current', 'peak']
    """
    _check_memory_device(device)
    info = _core.memory_info()
    return {"current": info["current"], "peak": info["peak"]}


@public("config.experimental.get_memory_usage")
def get_memory_usage(device: str) -> int:
    """The bytes that tensors hold now.

    >>> x = tf.ones([1000])
    >>> tf.config.experimental.get_memory_usage("CPU:0") >= 4000
    True
    """
    return get_memory_info(device)["current"]


@public("config.experimental.reset_memory_stats")
def reset_memory_stats(device: str) -> None:
    """Lets the peak of `get_memory_info` begin again from the present use.

    >>> tf.config.experimental.reset_memory_stats("CPU:0")
    >>> info = tf.config.experimental.get_memory_info("CPU:0")
    >>> info["peak"] == info["current"]
    True
    """
    _check_memory_device(device)
    _core.reset_memory_peak()


def _check_memory_device(device: str) -> None:
    if not isinstance(device, str):
        raise TypeError(f'Expected a device name such as "CPU:0"; got {type(device).__name__}')
    device_type, _, number = device.removeprefix("/").removeprefix("device:").rpartition(":")
    if not (device_type and number.isdecimal()):
        raise ValueError(
            f"Failed parsing device name: {device!r}. Note a valid device string should at least contain "
            'a device type and a device index, like "GPU:0".'
        )
    if device_type.rpartition(":")[2].upper() != "CPU" or int(number) != 0:
        raise ValueError(f"No matching devices found for {device!r}")


@public("config.experimental.get_memory_growth")
def get_memory_growth(device: PhysicalDevice) -> bool:
    """True: memory is taken as it is needed.

    >>> [processor] = tf.config.list_physical_devices("CPU")
    >>> tf.config.experimental.get_memory_growth(processor)
    True
    """
    _check_device(device)
    return True


@public("config.experimental.set_memory_growth")
def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepted without effect: memory is always taken as it is needed.

    >>> for device in tf.config.list_physical_devices("GPU"):
    ...     tf.config.experimental.set_memory_growth(device, True)
    """
    _check_device(device)


@public("config.experimental.get_device_details")
def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """What is known of a device: nothing, for a processor.

    >>> [processor] = tf.config.list_physical_devices("CPU")
    >>> tf.config.experimental.get_device_details(processor)
    {}
    """
    if not isinstance(device, PhysicalDevice):
        raise ValueError(f"device must be a tf.config.PhysicalDevice, but got: {device}")
    return {}


@public("config.experimental.enable_op_determinism")
def enable_op_determinism() -> None:
    """Accepted without effect: operations give the same result in each run.

    >>> tf.config.experimental.enable_op_determinism()
    """
    _settings.op_determinism = True


def disable_op_determinism() -> None:
    """Forgets that `enable_op_determinism` was called: operations give the same results anyway."""
    _settings.op_determinism = False


def is_op_determinism_enabled() -> bool:
    """Whether `enable_op_determinism` was called."""
    return _settings.op_determinism


@public("config.experimental.tensor_float_32_execution_enabled")
def tensor_float_32_execution_enabled() -> bool:
    """What `enable_tensor_float_32_execution` was given.

    >>> tf.config.experimental.tensor_float_32_execution_enabled()
    True
    """
    return _settings.tensor_float_32


@public("config.experimental.enable_tensor_float_32_execution")
def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Accepted without effect: a processor computes with all bits.

    >>> tf.config.experimental.enable_tensor_float_32_execution(True)
    >>> tf.config.experimental.tensor_float_32_execution_enabled()
    True
    """
    _settings.tensor_float_32 = bool(enabled)


@public("config.experimental.get_synchronous_execution")
def get_synchronous_execution() -> bool:
    """What `set_synchronous_execution` was given.

    >>> tf.config.experimental.get_synchronous_execution()
    True
    """
    return _settings.synchronous_execution


@public("config.experimental.set_synchronous_execution")
def set_synchronous_execution(enable: bool | None) -> None:
    """Accepted without effect: an operation is done when its call returns.

    >>> tf.config.experimental.set_synchronous_execution(True)
    >>> tf.config.experimental.get_synchronous_execution()
    True
    """
    _settings.synchronous_execution = enable is not False


@public("config.experimental.get_device_policy")
def get_device_policy() -> str:
    """What `set_device_policy` was given.

    >>> tf.config.experimental.get_device_policy()
    'silent'
    """
    return _settings.device_policy


@public("config.experimental.set_device_policy")
def set_device_policy(device_policy: str | None) -> None:
    """Accepted without effect: with one device, nothing is copied between devices.

    >>> tf.config.experimental.set_device_policy("silent")
    >>> tf.config.experimental.get_device_policy()
    'silent'
    """
    policy = device_policy or "silent"
    if policy not in ("silent", "silent_for_int32", "warn", "explicit"):
        raise ValueError(
            f"Invalid argument `device_policy`: {device_policy!r}. Please refer to "
            "https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_device_policy for valid "
            "`device_policy` arguments."
        )
    _settings.device_policy = policy


@public("device")
class device:  # noqa: N801  TensorFlow's name for it
    """A context that names the device of its operations; all of them run on the processor.

    >>> with tf.device("/CPU:0"):
    ...     tf.constant(1.).device
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """

    __slots__ = ("_before", "_block", "_spec")

    def __init__(self, device_name: Any) -> None:
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        if isinstance(device_name, LogicalDevice):
            device_name = device_name.name
        elif isinstance(device_name, DeviceSpec):
            device_name = device_name.to_string()
        if device_name is not None and not isinstance(device_name, str):
            raise ValueError(f"Expecting a string device name. Got {type(device_name)}({device_name})")
        self._spec = DeviceSpec.from_string(device_name or "")
        self._block: Any = None

    def __enter__(self) -> None:
        graph = _core.current_graph()
        if getattr(graph, "_names_devices", False):  # of a graph that a session runs the names are kept
            self._block = graph.device(None if self._spec.to_string() == "" else self._spec)
            self._block.__enter__()
            return
        device, replica, among_several = _core.current_place()
        around = DeviceSpec.from_string(device_name(max(device - 1, 0)))
        spec = around.make_merged_spec(self._spec)
        if (spec.job, spec.replica, spec.task) != (around.job, 0, around.task):
            raise InvalidArgumentError.of(
                f"{spec.to_string()} unknown device. This process is "
                f"{around.replace(device_type=None, device_index=None).to_string()}."
            )
        present = {device_name(number) for number in range(use_devices())}
        if spec.to_string() not in present and not _settings.soft_device_placement:
            raise InvalidArgumentError.of(
                f"Could not satisfy device specification '{spec.to_string()}'. enable_soft_placement=0. "
                f"Supported device types [CPU]. All available devices [{', '.join(sorted(present))}].",
            )
        if self._spec.to_string() == "":  # tf.device(None): no device is named
            device = 0
        elif self._spec.device_type is not None:
            device = (spec.device_index or 0) + 1 if spec.to_string() in present else 1
        self._before = _core.place(device, replica, among_several)

    def __exit__(self, *exception: object) -> None:
        if self._block is None:
            _core.place(*self._before)
        else:
            self._block.__exit__(*exception)
            self._block = None


@public("sysconfig.get_build_info")
def get_build_info() -> dict[str, bool]:
    """How the library was built: for processors alone.

    >>> tf.sysconfig.get_build_info()["is_cuda_build"]
    False
    """
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}
