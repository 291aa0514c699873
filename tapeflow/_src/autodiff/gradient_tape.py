"""`tf.GradientTape`: the parts that are not on the path of an operation."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics import tape_drawing, tape_report
from tapeflow._src.diagnostics.html.tables import Html, block
from tapeflow._src.diagnostics.last_none import register_missing
from tapeflow._src.diagnostics.why_none import explain, refuse_none
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.types import nest
from tapeflow._src.types.enums import UnconnectedGradients
from tapeflow._src.types.logging import warn


@public("GradientTape", "autodiff.GradientTape")
class GradientTape(_core.GradientTape):
    """Records operations, so that derivatives can be asked for.

    `persistent` lets `gradient` be called more than once. Trainable variables are watched when they are read, unless
    `watch_accessed_variables` is False; other tensors are watched by `watch`. With `strict`, a gradient that would be
    None raises `tf.autodiff.NoGradientError`, which says why.

    >>> x = tf.constant(3.)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
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

    def summary(self) -> str:
        """What the tape holds, by line of the program: records, and the bytes of the tensors they keep.

        >>> x = tf.Variable([1., 2.])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.summary().splitlines()[0])
        1 record, 16 bytes kept
        """
        return tape_report.summary(self)

    def svg(self, target: Any = None, source: Any = None) -> str:
        """A drawing of the tape as SVG text. With a target and a source, the place where the gradient stops is marked.

        >>> x = tf.Variable(7.)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.floor(x) * 2.
        >>> 'class="broken"' in tape.svg(y, x)
        True
        """
        return tape_drawing.svg(self, target, source)

    def _repr_html_(self) -> str:
        return block(repr(self), {}, Html(self.svg()))

    def explain(self, target: Any, source: Any) -> Any:
        """Why `gradient(target, source)` is None, or that it is not: the cause, the operation, its line, what to do.

        For a structure of sources, a structure of answers.

        >>> x = tf.Variable(7.)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.floor(x) * 2.
        >>> tape.explain(y, x).cause
        'operation without gradient'
        """
        return explain(self, target, source)

    def __repr__(self) -> str:
        return tape_report.text(self)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        chunk_size: int | None = None,
    ) -> Any:
        """The derivative of every element of `target` by every element of each source.

        Each result has the shape of the target followed by that of the source. The elements of the target are worked
        on together, `chunk_size` at a time; by default as many as keep the largest temporary tensor within 4 MB.
        (`parallel_iterations` and `experimental_use_pfor` change nothing but what TensorFlow checks.)

        >>> x = tf.constant([1., 2.])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.jacobian(y, x)
        <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
        array([[2., 0.],
               [0., 4.]], dtype=float32)>
        """
        self._refuse_loop(experimental_use_pfor, "jacobian")
        _refuse_structure(target, "jacobian")
        wants_zeros = _wants_zeros(unconnected_gradients)
        flat_sources = nest.flatten(sources)
        jacobians = self._jacobian(target, flat_sources, False, _checked_chunk(chunk_size))
        if not wants_zeros and any(found is None for found in jacobians):
            register_missing(self, target, flat_sources, jacobians)
        if wants_zeros and None in jacobians:
            jacobians = [
                zeros([*target.shape, *source.shape], source.dtype) if found is None else found
                for found, source in zip(jacobians, flat_sources)
            ]
        return nest.pack_sequence_as(sources, jacobians)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        chunk_size: int | None = None,
    ) -> Any:
        """The Jacobian of each example: `target[i]` by `source[i]`, for tensors whose first dimension is a batch.

        `chunk_size` elements of an example are worked on at a time, as in `jacobian`.

        >>> x = tf.constant([[1., 2.]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x)
        <tf.Tensor: shape=(1, 2, 2), dtype=float32, numpy=
        array([[[2., 0.],
                [0., 4.]]], dtype=float32)>
        """
        self._refuse_loop(experimental_use_pfor, "batch_jacobian")
        _refuse_structure(target, "batch_jacobian")
        _refuse_structure(source, "batch_jacobian")
        for given in (target, source):
            if given.shape.rank is not None and given.shape.rank < 2:
                raise ValueError(f"batch_jacobian: Shape {given.shape} must have rank at least 2")
        if not _share_batch(target.shape, source.shape):
            raise ValueError(
                f"batch_jacobian: Need first dimension of target shape ({target.shape}) and source shape "
                f"({source.shape}) to match."
            )
        # Checked, but without a path the result is zeros either way, as in TensorFlow.
        _wants_zeros(unconnected_gradients)
        (found,) = self._jacobian(target, [source], True, _checked_chunk(chunk_size))
        if found is None:
            register_missing(self, target, [source], [found])
        return zeros([*target.shape, *source.shape[1:]], source.dtype) if found is None else found

    def _refuse_loop(self, experimental_use_pfor: bool, who: str) -> None:
        if not experimental_use_pfor and not self._persistent and not _core.is_tracing():
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {who} with eager execution enabled "
                "and with experimental_use_pfor set to False."
            )


def _refuse_structure(value: Any, who: str) -> None:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError(f"GradientTape.{who}: one tensor or variable must be given; got a {type(value).__name__}")


def _share_batch(target: Any, source: Any) -> bool:
    """Whether two shapes have the same first dimension, as far as is known."""
    if None in (target.rank, source.rank) or None in (target[0], source[0]):
        return True
    return bool(target[0] == source[0])


def _wants_zeros(unconnected_gradients: Any) -> bool:
    try:
        return UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}") from None


def _checked_chunk(chunk_size: int | None) -> int:
    """The number of rows at a time; 0 stands for the core's choice."""
    if chunk_size is None:
        return 0
    if isinstance(chunk_size, bool) or not hasattr(chunk_size, "__index__") or operator.index(chunk_size) < 1:
        raise ValueError(f"GradientTape.jacobian: chunk_size must be a positive integer or None; got {chunk_size!r}")
    return operator.index(chunk_size)


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
        "refuse_none": refuse_none,
        "warn_watched_dtype": _warn_watched,
        "warn_target_dtype": _warn_target,
        "warn_source_dtype": _warn_source,
    }
)
