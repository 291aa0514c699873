"""Names of `tensorflow.python.client` and what belongs to sessions."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.graph.devices import merge_device
from tapeflow._src.compat.v1.queues.barriers import Barrier
from tapeflow._src.compat.v1.queues.staging_areas import MapStagingArea, StagingArea
from tapeflow._src.compat.v1.sessions import evaluation, session_layers, timeline
from tapeflow._src.compat.v1.sessions.session import DeviceAttributes
from tapeflow._src.compat.v1.train.device_setter import STANDARD_PS_OPS
from tapeflow._src.compat.v1.train.optimizer import Optimizer
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


class SyncReplicasOptimizer(Optimizer):
    """A class to ask about: workers that sum gradients on a parameter server. No object of it can be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SyncReplicasOptimizer: it needs parameter servers, which Tapeflow does not have. To train on several "
            "processes, use tf.distribute.MultiWorkerMirroredStrategy."
        )


names_by_path: dict[str, dict[str, Any]] = {
    "python.framework.device": {
        "canonical_name": canonical_name,
        "check_valid": check_valid,
        "is_device_spec": is_device_spec,
        "merge_device": merge_device,
    },
    "python.ops.data_flow_ops": {
        "Barrier": Barrier,
        "MapStagingArea": MapStagingArea,
        "StagingArea": StagingArea,
    },
    "python.training.monitored_session": {
        "_CoordinatedSession": session_layers.CoordinatedSession,
        "_CoordinatedSessionCreator": session_layers.CoordinatedSessionCreator,
        "_HookedSession": session_layers.HookedSession,
        "_RecoverableSession": session_layers.RecoverableSession,
        "_WrappedSession": session_layers.WrappedSession,
    },
    "python.training.device_setter": {"STANDARD_PS_OPS": STANDARD_PS_OPS},
    "python.training.sync_replicas_optimizer": {"SyncReplicasOptimizer": SyncReplicasOptimizer},
    "python.training.evaluation": {
        "_StopAfterNEvalsHook": evaluation.StopAfterNEvalsHook,
        "_evaluate_once": evaluation.evaluate_once,
        "_get_latest_eval_step_value": evaluation.get_latest_eval_step_value,
        "_get_or_create_eval_step": evaluation.get_or_create_eval_step,
    },
    "python.client.session": {"_DeviceAttributes": DeviceAttributes},
    "python.client.timeline": {
        name: getattr(timeline, name) for name in ("AllocationMaximum", "StepStatsAnalysis", "Timeline")
    },
}
