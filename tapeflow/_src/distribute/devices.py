"""Which logical processors the names of a strategy's devices mean."""

from __future__ import annotations

from itertools import count
from typing import Any

from tapeflow._src.config import get_soft_device_placement, list_logical_devices
from tapeflow._src.types.logging import get_logger


def processor_numbers(who: str, devices: Any) -> list[int]:
    """The numbers of logical processors that names such as "CPU:1" or "/cpu:0" mean. Graphics cards stand for the first
    processors that are not named, as `tf.device` does where devices are placed softly."""
    present = len(list_logical_devices("CPU"))
    named = [_kind_and_number(who, device) for device in devices]
    if len(set(named)) != len(named):
        raise AssertionError(f"{who}: No duplicates allowed in `devices` argument: {list(devices)}")
    taken = {number for kind, number in named if kind == "CPU"}
    free = (number for number in count() if number not in taken)
    numbers = [number if kind == "CPU" else next(free) for kind, number in named]
    if len(taken) < len(named):
        absent = ",".join(f"/device:{kind}:{number}" for kind, number in named if kind != "CPU")
        get_logger().warning(
            f"Some requested devices in `tf.distribute.Strategy` are not visible to TensorFlow: {absent}"
        )
    if numbers and max(numbers) >= max(present, len(numbers)):
        raise ValueError(
            f"{who}: device CPU:{max(numbers)} does not exist; there are {present} logical processors. "
            "tf.config.set_logical_device_configuration makes more of them."
        )
    return numbers


def _kind_and_number(who: str, device: Any) -> tuple[str, int]:
    device = getattr(device, "name", device)
    kind, _, number = str(device).rpartition("/")[2].removeprefix("device:").upper().partition(":")
    kinds = ("CPU", "GPU") if get_soft_device_placement() else ("CPU",)
    if kind not in kinds or not (number or "0").isdecimal():
        raise ValueError(f"{who}: this program has processors alone ('/cpu:0'); got {device!r}")
    return kind, int(number or 0)
