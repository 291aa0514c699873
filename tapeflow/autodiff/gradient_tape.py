"""`tf.GradientTape`: the parts that are not on the path of an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tapeflow import _core
from tapeflow.namespace import public
from tapeflow.types.logging import warn


@public("GradientTape", "autodiff.GradientTape")
class GradientTape(_core.GradientTape):
    """Records operations, so that derivatives can be asked for.

    `persistent` lets `gradient` be called more than once. Trainable variables are watched when they are read, unless
    `watch_accessed_variables` is False; other tensors are watched by `watch`.

    >>> x = tf.constant(3.)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    6.0
    """

    __slots__ = ("__weakref__",)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A context in which this tape records nothing."""
        self._pause()
        try:
            yield
        finally:
            self._resume()


def _warn_watched(dtype: Any) -> None:
    warn("The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", dtype)


def _warn_target(dtype: Any) -> None:
    warn(
        "The dtype of the target tensor must be floating (e.g. tf.float32) when calling GradientTape.gradient, got %r",
        dtype,
    )


def _warn_source(dtype: Any) -> None:
    warn(
        "The dtype of the source tensor must be floating (e.g. tf.float32) when calling GradientTape.gradient, got %r",
        dtype,
    )


_core.register_objects(
    {
        "Mapping": Mapping,
        "warn_watched_dtype": _warn_watched,
        "warn_target_dtype": _warn_target,
        "warn_source_dtype": _warn_source,
    }
)
