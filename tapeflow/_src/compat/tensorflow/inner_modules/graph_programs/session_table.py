"""Names of `tensorflow.python.client` and what belongs to sessions."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.graph.devices import merge_device
from tapeflow._src.compat.v1.sessions import session_layers, timeline
from tapeflow._src.compat.v1.sessions.session import DeviceAttributes
from tapeflow._src.compat.v1.train.device_setter import STANDARD_PS_OPS
from tapeflow._src.types.device_spec import DeviceSpec


def canonical_name(device: Any) -> str:
    """The name of a device with its parts in the usual order."""
    if device is None:
        return ""
    return (device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)).to_string()


def check_valid(spec: str) -> None:
    """An error for a text that names no device."""
    DeviceSpec.from_string(spec)


def is_device_spec(obj: Any) -> bool:
    """Whether an object has the parts of a device's name."""
    return isinstance(obj, DeviceSpec)


names_by_path: dict[str, dict[str, Any]] = {
    "python.framework.device": {
        "canonical_name": canonical_name,
        "check_valid": check_valid,
        "is_device_spec": is_device_spec,
        "merge_device": merge_device,
    },
    "python.training.monitored_session": {
        "_CoordinatedSession": session_layers.CoordinatedSession,
        "_CoordinatedSessionCreator": session_layers.CoordinatedSessionCreator,
        "_HookedSession": session_layers.HookedSession,
        "_RecoverableSession": session_layers.RecoverableSession,
        "_WrappedSession": session_layers.WrappedSession,
    },
    "python.training.device_setter": {"STANDARD_PS_OPS": STANDARD_PS_OPS},
    "python.client.session": {"_DeviceAttributes": DeviceAttributes},
    "python.client.timeline": {
        name: getattr(timeline, name) for name in ("AllocationMaximum", "StepStatsAnalysis", "Timeline")
    },
}
