"""`tf.version` and `tf.compat.forward_compatible`: the version of TensorFlow whose interface this is, and our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tapeflow._src.namespace import public

TAPEFLOW_VERSION = "0.2.0.dev0"
VERSION = "2.21.0"
GIT_VERSION = f"v{VERSION}-tapeflow"
COMPILER_VERSION = sys.version.partition("[")[2].rstrip("]")
_CONSTANTS = {
    "VERSION": VERSION,
    "GIT_VERSION": GIT_VERSION,
    "COMPILER_VERSION": COMPILER_VERSION,
    "GRAPH_DEF_VERSION": 2474,
    "GRAPH_DEF_VERSION_MIN_CONSUMER": 0,
    "GRAPH_DEF_VERSION_MIN_PRODUCER": 0,
}
for _name, _value in _CONSTANTS.items():
    public(f"version.{_name}")(_value)
public("compat.v1.__version__")(VERSION)

_RELEASED = (2026, 1, 16)
_horizon = [_RELEASED]


@public("compat.forward_compatible", "compat.v1.compat.forward_compatible")
def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs made now need not be read by programs older than this date.

    >>> tf.compat.forward_compatible(2020, 1, 1)
    True
    """
    return _horizon[-1] > (year, month, day)


@public("compat.forward_compatibility_horizon", "compat.v1.compat.forward_compatibility_horizon")
@contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """A context in which `tf.compat.forward_compatible` answers as at this date.

    >>> with tf.compat.forward_compatibility_horizon(2019, 1, 1):
    ...     tf.compat.forward_compatible(2020, 1, 1)
    False
    """
    _horizon.append((year, month, day))
    try:
        yield
    finally:
        _horizon.pop()


_strict = [False]


@public("experimental.enable_strict_mode")
def enable_strict_mode() -> None:
    """Makes errors of warnings that something is deprecated.

    >>> tf.experimental.enable_strict_mode()
    """
    _strict[0] = True


def is_strict_mode() -> bool:
    """Whether warnings that something is deprecated are errors."""
    return _strict[0]
