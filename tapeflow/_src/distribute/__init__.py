"""`tf.distribute`: strategies with one replica, which run everything where it stands; imported when asked for."""

from tapeflow._src.distribute import one_replica
from tapeflow._src.namespace import public_later

public_later(
    "tapeflow._src.distribute.strategy",
    "distribute.InputContext",
    "distribute.MirroredStrategy",
    "distribute.MultiWorkerMirroredStrategy",
    "distribute.OneDeviceStrategy",
    "distribute.ReduceOp",
    "distribute.ReplicaContext",
    "distribute.Strategy",
    "distribute.StrategyExtended",
    "distribute.TPUStrategy",
    "distribute.get_replica_context",
    "distribute.get_strategy",
    "distribute.has_strategy",
    "distribute.in_cross_replica_context",
)
