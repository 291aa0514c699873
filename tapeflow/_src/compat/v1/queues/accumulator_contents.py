"""The gradients that a conditional accumulator has collected in one session. It knows no graph."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.queues.queue_contents import Shared
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape, shape_text

_logger = logging.getLogger("tensorflow")


class AccumulatedGradients(Shared):
    """A sum of gradients, of which those of an earlier step than its own are dropped."""

    def __init__(self, label: str, shape: TensorShape, mean: bool) -> None:
        super().__init__(label)
        self._shape, self._mean = shape, mean
        self._step = self._count = 0

    def add(self, step: int, *gradient: Any) -> None:
        """Adds a gradient that was computed at `step`, unless that is too old."""
        with self._changed:
            if step < self._step:
                return
            self._check(*gradient)
            self._add(*gradient)
            self._count += 1
            self._changed.notify_all()

    def take(self, wanted: int) -> Any:
        """The sum or mean as soon as `wanted` gradients are there; the next step begins with none."""
        if wanted <= 0:
            raise InvalidArgumentError.of(f"Argument num_required must be positive, but was {wanted}")
        with self._changed:
            self._wait_for(lambda: self._count >= wanted, "TakeGrad", f"has fewer than {wanted} gradients")
            found = self._reduced()
            self._step += 1
            self._count = 0
            return found

    def set_step(self, step: int) -> None:
        """Makes `step` the present one."""
        with self._changed:
            if step < self._step:
                _logger.warning(
                    "%s: attempt to set current_global_step_ to smaller value: current_global_step_ = %d >= "
                    "new_global_step = %d.", self._label, self._step, step,
                )  # fmt: skip
            self._step = step

    def __len__(self) -> int:
        return self._count

    def _check(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _add(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _reduced(self) -> Any:
        raise NotImplementedError


class DenseGradients(AccumulatedGradients):
    """The sum of dense gradients."""

    _sum: Any = None

    def _check(self, *gradient: Any) -> None:
        (value,) = gradient
        expected = TensorShape(self._sum.shape) if self._count else self._shape
        if not expected.is_compatible_with(value.shape):
            raise InvalidArgumentError.of(
                f"Shape mismatch: expected {shape_text(expected)}, got {shape_text(TensorShape(value.shape))}"
            )

    def _add(self, *gradient: Any) -> None:
        self._sum = self._sum + gradient[0] if self._count else gradient[0]

    def _reduced(self) -> Any:
        found, self._sum = self._sum, None
        return found / np.asarray(self._count, found.dtype) if self._mean else found


class SparseGradients(AccumulatedGradients):
    """The sums of the slices of sparse gradients; the mean of a slice is that of the gradients that have it."""

    def __init__(self, label: str, shape: TensorShape, mean: bool) -> None:
        super().__init__(label, shape, mean)
        self._slices: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        self._slice_shape: tuple[int, ...] = ()
        self._no_slices: Any = None  # so that a sum of empty gradients has their dtype

    def _check(self, *gradient: Any) -> None:
        indices, values, shape = gradient
        _check_parts(indices, values)
        sizes = [] if self._shape.rank is None else self._shape.as_list()
        if shape is not None and shape.size:
            _check_sizes("shape", sizes, shape.tolist(), 0)
        limit = sizes[0] if sizes else None
        for place, index in enumerate(indices.tolist()):
            if limit is not None and index >= limit:
                raise InvalidArgumentError.of(
                    f"Shape mismatch: index of slice {place} exceeded limits of shape; index is {index} exceeded "
                    f"{limit}"
                )
        if not self._count:
            _check_sizes("values", sizes, list(values.shape), 1)
            return
        if values.ndim != len(self._slice_shape) + 1:
            raise InvalidArgumentError.of(
                f"Shape mismatch: expected values rank {len(self._slice_shape) + 1}, got {values.ndim}"
            )
        _check_sizes("values", [None, *self._slice_shape], list(values.shape), 1)

    def _add(self, *gradient: Any) -> None:
        indices, values, _ = gradient
        self._slice_shape, self._no_slices = values.shape[1:], values[:0]
        for index, value in zip(indices.tolist(), values):
            self._slices[index] = self._slices[index] + value if index in self._slices else value
        for index in set(indices.tolist()):
            self._counts[index] = self._counts.get(index, 0) + 1

    def _reduced(self) -> Any:
        indices = sorted(self._slices)
        values = np.concatenate([self._no_slices, *(self._slices[index][None] for index in indices)])
        if self._mean:
            counts = np.asarray([self._counts[index] for index in indices], values.dtype)
            values = values / counts.reshape([-1, *(1 for _ in self._slice_shape)])
        rows = self._shape.as_list()[0] if self._shape.rank else None
        self._slices, self._counts = {}, {}
        return np.asarray(indices, np.int64), values, np.asarray([-1 if rows is None else rows, *self._slice_shape])


def _check_parts(indices: Any, values: Any) -> None:
    if indices.ndim != 1:
        sizes = ",".join(map(str, indices.shape))
        raise InvalidArgumentError.of(f"Input indices should be vector but received shape: [{sizes}]")
    if values.ndim == 0:
        raise InvalidArgumentError.of("Values cannot be 0-dimensional.")
    if values.shape[0] != indices.size:
        raise InvalidArgumentError.of(f"Expected {indices.size} non-empty input values, got {values.shape[0]}")


def _check_sizes(what: str, expected: list[int | None], sizes: list[int], first: int) -> None:
    if len(sizes) < len(expected):
        raise InvalidArgumentError.of(
            f"Shape mismatch: expected {what} rank at least {len(expected)}, got {len(sizes)}"
        )
    for axis, (wanted, size) in list(enumerate(zip(expected, sizes)))[first:]:
        if wanted not in (None, size):
            raise InvalidArgumentError.of(f"Shape mismatch: expected {what} dim {axis} to be {wanted}, got {size}")
