"""Which logical processors the names of a strategy's devices mean."""

from __future__ import annotations

from itertools import count
from typing import Any

from tapeflow._src.config import get_soft_device_placement, list_logical_devices
from tapeflow._src.types.logging import get_logger


def processor_numbers(who: str, devices: Any) -> list[int]:
    """The numbers of logical processors that names such as "CPU:1" or "/cpu:0" mean. Where devices are placed softly,
    names of processors that do not exist are taken as well, and graphics cards stand for the first processors that are
    not named, as for `tf.device`."""
    present = len(list_logical_devices("CPU"))
    named = [_kind_and_number(who, device) for device in devices]
    if len(set(named)) != len(named):
        raise AssertionError(f"{who}: No duplicates allowed in `devices` argument: {list(devices)}")
    taken = {number for kind, number in named if kind == "CPU"}
    free = (number for number in count() if number not in taken)
    numbers = [number if kind == "CPU" else next(free) for kind, number in named]
    absent = [f"/device:{kind}:{number}" for kind, number in named if kind != "CPU" or number >= present]
    if absent and not get_soft_device_placement():
        raise ValueError(
            f"{who}: {', '.join(absent)} do not exist; there are {present} logical processors. "
            "tf.config.set_logical_device_configuration makes more of them."
        )
    if absent:
        get_logger().warning(
            f"Some requested devices in `tf.distribute.Strategy` are not visible to TensorFlow: {','.join(absent)}"
        )
    return numbers


def _kind_and_number(who: str, device: Any) -> tuple[str, int]:
    device = getattr(device, "name", device)
    kind, _, number = str(device).rpartition("/")[2].removeprefix("device:").upper().partition(":")
    if kind not in ("CPU", "GPU") or not (number or "0").isdecimal():
        raise ValueError(f"{who}: this program has processors alone ('/cpu:0'); got {device!r}")
    return kind, int(number or 0)
