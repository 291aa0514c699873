"""Batches of elements that are padded to one shape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.pipes.batching import Batching, Groups
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.structure import Leaves, stacked
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import TensorSpec


class PaddedBatched(Batching):
    """Batches of elements that are padded to one shape."""

    name = "_PaddedBatchDataset"

    def __init__(self, before: Pipe, size: Any, shapes: Any, values: Any, drops: Any) -> None:
        for spec in before.specs:
            if getattr(spec, "element_spec", None) is not None:
                raise TypeError("`padded_batch` is not supported for datasets of datasets.")
            if not isinstance(spec, TensorSpec):
                raise TypeError(
                    "`padded_batch` is only supported for datasets that produce tensor elements but type spec of "
                    f"elements in the input dataset is not a subclass of TensorSpec: `{spec}`."
                )
        self._shapes = _padded_shapes(before, shapes)
        self._values = _padding_values(before, values)
        shape = iter([_static_shape(shape) for shape in self._shapes])

        def batch(spec: Any, length: int | None) -> Any:
            return TensorSpec(TensorShape([length]).concatenate(next(shape)), spec.dtype)

        super().__init__(before, size, drops, batch)
        self.symbols += [x for x in (*self._shapes, *self._values) if _core.is_symbolic(x)]

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        groups = Groups(self.inputs[0].begin(iteration), iteration.number(self._size), self._drops)
        return map(self._maker(iteration), groups)

    def together(self, group: list[Leaves]) -> Leaves:
        return self._maker(Iteration())(group)

    def _maker(self, iteration: Iteration) -> Callable[[list[Leaves]], Leaves]:
        """The function that makes one element of several, with the values of symbolic shapes."""
        shapes = [s if isinstance(s, TensorShape) else _checked_shape(iteration.value(s)) for s in self._shapes]
        return functools.partial(_padded_columns, shapes, [iteration.value(value) for value in self._values])


def _padded_columns(shapes: list[TensorShape], values: list[Any], group: list[Leaves]) -> Leaves:
    columns = zip(zip(*group), shapes, values)
    return tuple([_padded(parts, shape, value, i) for i, (parts, shape, value) in enumerate(columns)])


def _static_shape(shape: Any) -> TensorShape:
    """What is known of a padded shape, which may be a symbolic tensor."""
    if isinstance(shape, TensorShape):
        return shape
    length = shape.shape[0] if shape.shape.rank == 1 else None
    return TensorShape(None if length is None else [None] * length)


def _checked_shape(shape: Any) -> TensorShape:
    """The padded shape that a tensor holds; -1 stands for the largest size."""
    sizes = shape.numpy().reshape(-1).tolist()
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError.of(f"Padded shapes must have sizes of at least -1; got {sizes}.")
    return TensorShape([None if size == -1 else size for size in sizes])


def _padded_shapes(before: Pipe, shapes: Any) -> list[Any]:
    """A shape for each leaf; a symbolic tensor stays what it is."""
    if shapes is None:
        for spec in before.specs:
            if spec.shape.rank is None:
                raise ValueError("You must provide `padded_shapes` argument because component has unknown rank.")
        return [spec.shape for spec in before.specs]
    flat = nest_paths.flatten_up_to(before.spec, shapes, check_types=False) if nest.is_nested(before.spec) else [shapes]
    return [_padded_shape(spec.shape, shape) for spec, shape in zip(before.specs, flat)]


def _padded_shape(own: TensorShape, given: Any) -> Any:
    """The shape to which elements of shape `own` are padded: a TensorShape, or a symbolic tensor."""
    if _core.is_tensor(given) or isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise ValueError(
                f"Padded shape {given} must be a `tf.int64` vector tensor, but its shape was {tuple(given.shape)}."
            )
        dtype = as_dtype(given.dtype)
        if not dtype.is_integer:
            raise TypeError(
                f"Padded shape {given} must be a `tf.int64` vector tensor, but its element type was {dtype.name}."
            )
    if _core.is_symbolic(given):
        if (known := _core.known_value(given)) is None:
            _check_padded_shape(own, _static_shape(given))
            return given
        given = known
    if _core.is_tensor(given) or isinstance(given, np.ndarray):
        given = np.asarray(given).tolist()
    sizes = as_shape_list([given] if isinstance(given, int) else given)
    if any(isinstance(size, list | tuple) for size in sizes):
        raise ValueError(
            f"Padded shape {given} must be a `tf.int64` vector tensor, but its shape was {np.shape(sizes)}."
        )
    shape = as_shape([None if size in (-1, None) else size for size in sizes])
    _check_padded_shape(own, shape)
    return shape


def _check_padded_shape(own: TensorShape, padded: TensorShape) -> None:
    if own.rank is None or padded.rank is None:
        return
    smaller = any(
        size is not None and length is not None and size < length
        for size, length in zip(padded.as_list(), own.as_list())
    )
    if own.rank != padded.rank or smaller:
        raise ValueError(
            f"The padded shape {tuple(padded.as_list())} is not compatible with the shape {tuple(own.as_list())} of "
            "the corresponding input component."
        )


def as_shape_list(shape: Any) -> list[Any]:
    """The sizes of a shape in any of the forms in which programs give it; -1 stays."""
    return shape.as_list() if isinstance(shape, TensorShape) else list(shape)


def _without_gaps(structure: Any, values: Any) -> Any:
    """The values, with None for each leaf of a part for which None stands."""
    if values is None or not nest.is_nested(structure):
        return nest.map_structure(lambda leaf: None, structure) if values is None else values
    if isinstance(structure, Mapping):
        return {key: _without_gaps(structure[key], values[key]) for key in structure}
    if isinstance(structure, tuple) and isinstance(values, tuple) and len(structure) == len(values):
        return tuple([_without_gaps(part, value) for part, value in zip(structure, values)])
    return values


def _padding_values(before: Pipe, values: Any) -> list[Any]:
    flat: list[Any]
    if values is None or not nest.is_nested(values):
        flat = [values] * len(before.specs)
    else:
        flat = nest_paths.flatten_up_to(before.spec, _without_gaps(before.spec, values), check_types=False)
    found = []
    for spec, value in zip(before.specs, flat):
        if value is None:
            value = b"" if spec.dtype.name == "string" else np.zeros([], spec.dtype.as_numpy_dtype)
        elif _core.is_tensor(value) and value.dtype != spec.dtype:
            raise TypeError(f"Padding value should be of type {spec.dtype.name}; got {value.dtype.name}.")
        own = convert_to_tensor(value)
        if (own.dtype.is_floating and not spec.dtype.is_floating) or (own.dtype.name == "string") != (
            spec.dtype.name == "string"
        ):
            raise TypeError(
                f"Invalid `padding_values`. `padding_values` values type {own.dtype!r} does not match type "
                f"{spec.dtype!r} of the corresponding input component."
            )
        tensor = convert_to_tensor(value, spec.dtype)
        if tensor.shape.rank != 0:
            raise ValueError(f"Padding value should be a scalar; got shape {tensor.shape}.")
        found.append(tensor)
    return found


def _padded(parts: tuple[Any, ...], shape: TensorShape, value: Any, number: int) -> Any:
    largest = [max(sizes) for sizes in zip(*[part.shape.as_list() for part in parts])]
    if len(largest) != shape.rank:
        raise InvalidArgumentError.of(
            f"All elements in a batch must have the same rank as the padded shape for component{number}: expected rank "
            f"{shape.rank} but got element with rank {len(largest)}",
        )
    sizes = [own if given is None else given for own, given in zip(largest, shape.as_list())]
    if any(own > size for own, size in zip(largest, sizes)):
        raise DataLossError.of(
            f"Attempted to pad to a smaller size than the input element. Component {number} has shape {largest}, the "
            f"padded shape is {sizes}.",
        )
    rows = []
    for part in parts:
        own = part.shape.as_list()
        if own != sizes:
            part = pad(part, [[0, size - length] for size, length in zip(sizes, own)], constant_values=value)
        rows.append(part)
    return stacked(rows, TensorSpec(sizes, parts[0].dtype), number)
