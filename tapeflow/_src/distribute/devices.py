"""Which logical processors the names of a strategy's devices mean."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src.config import get_soft_device_placement, use_devices
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.device_spec import DeviceSpec
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.logging import get_logger


class Processor(NamedTuple):
    """A device of a strategy: its whole name, and the number of the logical processor that stands for it."""

    name: str
    number: int


def processors(who: str, devices: Any) -> list[Processor]:
    """The logical processors that names such as "CPU:1", "/cpu:0" or "/job:localhost/device:CPU:1" mean. Where devices
    are placed softly, the first processor stands for devices that do not exist, as for `tf.device`."""
    present = use_devices()
    specs = [_whole_spec(who, device) for device in devices]
    names = [spec.to_string() for spec in specs]
    if len(set(names)) != len(names):
        raise AssertionError(f"{who}: No duplicates allowed in `devices` argument: {tuple(names)}")
    found = [spec.device_type == "CPU" and (spec.device_index or 0) < present for spec in specs]
    absent = [f"/device:{spec.device_type}:{spec.device_index}" for spec, there in zip(specs, found) if not there]
    if absent and not get_soft_device_placement():
        raise ValueError(
            f"{who}: {', '.join(absent)} do not exist; there are {present} logical processors. "
            "tf.config.set_logical_device_configuration makes more of them."
        )
    if absent:
        get_logger().warning(
            f"Some requested devices in `tf.distribute.Strategy` are not visible to TensorFlow: {','.join(absent)}"
        )
    numbers = [(spec.device_index or 0) if there else 0 for spec, there in zip(specs, found)]
    return [Processor(name, number) for name, number in zip(names, numbers)]


def whole_name(who: str, device: Any) -> str:
    """A device of this process with all parts of its name, whether it exists or not."""
    return _whole_spec(who, device).to_string()


def _whole_spec(who: str, device: Any) -> DeviceSpec:
    """A device of this process with all parts of its name."""
    here = DeviceSpec.from_string(device_name(0))
    given = DeviceSpec.from_string(str(getattr(device, "name", device)))
    spec = here.make_merged_spec(given)
    if (spec.job, spec.replica, spec.task) != (here.job, here.replica, here.task):
        raise InvalidArgumentError.of(f"{who}: {spec.to_string()} unknown device.")
    if given.device_type is None:
        raise ValueError(f"{who}: a device must have a type and a number, as '/cpu:0'; got {device!r}")
    return spec
