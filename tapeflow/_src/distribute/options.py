"""How replicas communicate: `tf.distribute.experimental.CommunicationOptions` and `RunOptions`."""

from __future__ import annotations

import enum
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype, bfloat16

DEFAULT_BYTES_PER_PACK = 4 << 20


@public("distribute.experimental.CommunicationImplementation", "distribute.experimental.CollectiveCommunication")
class CommunicationImplementation(enum.Enum):
    """What carries a collective. All of them mean MPI here.

    >>> tf.distribute.experimental.CommunicationImplementation.AUTO.value
    'AUTO'
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@public("distribute.experimental.CommunicationOptions", "distribute.experimental.CollectiveHints")
class CommunicationOptions:
    """How gradients travel: `bytes_per_pack` is the size of a message, `timeout_seconds` the deadline of a collective.

    `wire_dtype=tf.bfloat16` (not in TensorFlow) halves what travels of float32 tensors: each process rounds its
    values, and the sums are taken in float32.

    >>> tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1 << 20).bytes_per_pack
    1048576
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
        wire_dtype: Any = None,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"CommunicationOptions: Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        if timeout_seconds is not None and timeout_seconds <= 0:
            raise ValueError(f"CommunicationOptions: timeout_seconds must be positive; got {timeout_seconds}")
        if isinstance(implementation, str):
            implementation = CommunicationImplementation(implementation.upper())
        if not isinstance(implementation, CommunicationImplementation):
            raise ValueError(f"CommunicationOptions: implementation must be a member; got {implementation!r}")
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = implementation
        self.wire_dtype = None if wire_dtype is None else as_dtype(wire_dtype)
        if self.wire_dtype not in (None, bfloat16):
            raise ValueError(f"CommunicationOptions: wire_dtype must be tf.bfloat16 or None; got {wire_dtype!r}")


def merged(options: Any, otherwise: Any) -> Any:
    """Options of one call, with those of the strategy for what they leave open."""
    if options is None or otherwise is None:
        return options or otherwise
    return CommunicationOptions(
        options.bytes_per_pack or otherwise.bytes_per_pack,
        otherwise.timeout_seconds if options.timeout_seconds is None else options.timeout_seconds,
        options.implementation,
        options.wire_dtype or otherwise.wire_dtype,
    )


def pack_size(options: Any) -> int:
    """The size of messages that options ask for."""
    return getattr(options, "bytes_per_pack", 0) or DEFAULT_BYTES_PER_PACK


def travels_narrow(options: Any) -> bool:
    """Whether options ask for bfloat16 on the wire."""
    return getattr(options, "wire_dtype", None) is not None


@public("distribute.RunOptions")
class RunOptions:
    """Settings of `Strategy.run`. They concern TPUs; here every function runs as it is.

    >>> tf.distribute.RunOptions().experimental_enable_dynamic_batch_size
    True
    """

    def __init__(
        self,
        experimental_enable_dynamic_batch_size: bool = True,
        experimental_bucketizing_dynamic_shape: bool = False,
        experimental_xla_options: Any = None,
    ) -> None:
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size
        self.experimental_bucketizing_dynamic_shape = experimental_bucketizing_dynamic_shape
        self.experimental_xla_options = experimental_xla_options
