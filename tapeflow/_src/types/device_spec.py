"""`tf.DeviceSpec`: the parts of the name of a device."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from tapeflow._src.namespace import public


@public("DeviceSpec")
class DeviceSpec:
    """The parts of a device name, each of which may be left out.

    >>> tf.DeviceSpec.from_string("/job:worker/gpu:3").to_string()
    '/job:worker/device:GPU:3'
    """

    __slots__ = ("_device_index", "_device_type", "_job", "_replica", "_task")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self._job = None if job is None else str(job)
        self._replica = None if replica is None else int(replica)
        self._task = None if task is None else int(task)
        self._device_type = None if device_type is None else _kind(device_type)
        self._device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str | None) -> DeviceSpec:
        """The parts of a name such as "/job:worker/task:1/device:GPU:0", "/GPU:0" or "cpu:0"."""
        parts: dict[str, Any] = {}
        spec = spec or ""
        for piece in filter(None, spec.split("/")):
            key, *values = piece.split(":")
            if key == "device" and len(values) == 2:
                device_type, number = values
            elif key in ("job", "replica", "task") and len(values) == 1:
                parts[key] = values[0] if key == "job" else int(values[0])
                continue
            elif key.isupper() or key.lower() in ("cpu", "gpu"):
                if len(values) > 1:
                    raise ValueError(_unknown_attribute(key, spec))
                device_type, number = key.upper(), values[0] if values else "*"
            else:
                raise ValueError(_unknown_attribute(key, spec))
            if "device_type" in parts:
                raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
            parts["device_type"] = device_type
            parts["device_index"] = None if number == "*" else int(number)
        return cls(**parts)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """A new `DeviceSpec` from a name."""
        return self.from_string(spec)

    @property
    def job(self) -> str | None:
        """The kind of process."""
        return self._job

    @property
    def replica(self) -> int | None:
        """The number of the replica."""
        return self._replica

    @property
    def task(self) -> int | None:
        """The number of the process within its job."""
        return self._task

    @property
    def device_type(self) -> str | None:
        """CPU, GPU or another kind."""
        return self._device_type

    @property
    def device_index(self) -> int | None:
        """The number of the device among its kind."""
        return self._device_index

    def to_string(self) -> str:
        """The name that these parts make."""
        parts = []
        if self._job is not None:
            parts.append(f"/job:{self._job}")
        if self._replica is not None:
            parts.append(f"/replica:{self._replica}")
        if self._task is not None:
            parts.append(f"/task:{self._task}")
        if self._device_type is not None:
            number = "*" if self._device_index is None else self._device_index
            parts.append(f"/device:{self._device_type}:{number}")
        return "".join(parts)

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """This spec with some parts changed."""
        return type(self)(**{**self._parts(), **kwargs})

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """This spec with the parts that `dev` knows in place of its own."""
        known = {name: value for name, value in dev._parts().items() if value is not None}
        return self.replace(**known)

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("job", "replica", "task", "device_type", "device_index")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"<DeviceSpec({', '.join(f'{name}={value}' for name, value in self._parts().items())})>"


def _kind(device_type: str) -> str:
    return device_type.upper() if device_type.lower() in ("cpu", "gpu") else str(device_type)


def _changeable(part: str, convert: Callable[[Any], Any]) -> property:
    """A part of a name that can be set; None leaves it out."""

    def set_part(self: Any, value: Any) -> None:
        setattr(self, f"_{part}", None if value is None else convert(value))

    return property(attrgetter(f"_{part}"), set_part, doc=getattr(DeviceSpec, part).__doc__)


@public("compat.v1.DeviceSpec")
class DeviceSpecV1(DeviceSpec):
    """The parts of a device name, which can be changed.

    >>> spec = tf.compat.v1.DeviceSpec(job="ps")
    >>> spec.task = 1
    >>> spec.to_string()
    '/job:ps/task:1'
    """

    __slots__ = ()

    job = _changeable("job", str)
    replica = _changeable("replica", int)
    task = _changeable("task", int)
    device_type = _changeable("device_type", _kind)
    device_index = _changeable("device_index", int)

    def parse_from_string(self, spec: str) -> DeviceSpecV1:
        """Takes the parts of a name in place of its own, and returns itself."""
        self.__init__(**DeviceSpec.from_string(spec)._parts())  # type: ignore[misc]
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes the parts that `dev` knows in place of its own."""
        self.__init__(**self.make_merged_spec(dev)._parts())  # type: ignore[misc]


def _unknown_attribute(key: str, spec: str) -> str:
    return f"Unknown attribute {key!r} is encountered while parsing the device spec: {spec!r}."
