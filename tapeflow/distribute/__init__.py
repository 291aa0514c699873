"""`tf.distribute`: strategies with one replica, which run everything where it stands."""

from tapeflow.distribute import context, distributed_values, strategy
