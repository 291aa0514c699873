"""`tensorflow.python.client.device_lib`: the devices of this process, as messages."""

from __future__ import annotations

from typing import Any

from tapeflow._src.config import logical_device_count
from tapeflow._src.io.protos import messages

_MEMORY_LIMIT = 256 << 20  # TensorFlow's default for a processor


def list_local_devices(session_config: Any = None) -> list[Any]:
    """The devices on which operations run: the logical processors."""
    return [
        messages.DeviceAttributes(
            name=f"/device:CPU:{number}",
            device_type="CPU",
            memory_limit=_MEMORY_LIMIT,
            locality=messages.DeviceLocality(),
            incarnation=number + 1,
            xla_global_id=-1,
        )
        for number in range(logical_device_count())
    ]


names_by_path: dict[str, dict[str, Any]] = {
    "core.framework.device_attributes_pb2": {
        "DeviceAttributes": messages.DeviceAttributes,
        "DeviceLocality": messages.DeviceLocality,
    },
    "python.client.device_lib": {"list_local_devices": list_local_devices},
}
