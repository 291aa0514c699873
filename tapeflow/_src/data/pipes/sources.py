"""Where elements come from: tensors, Python generators, numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Order, Pipe, as_count, counting
from tapeflow._src.data.pipes.seeds import SeededPipe, SeedSource, random_words
from tapeflow._src.data.pipes.structure import (
    Leaves,
    as_element,
    map_leaves,
    row_count,
    spec_of_leaf,
    static_row_count,
    unbatched_spec,
)
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.dtypes import as_dtype, int64
from tapeflow._src.types.errors import InvalidArgumentError, OpError, UnknownError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import as_shape
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec

_LARGEST_TABLE = 1 << 20  # a longer range counts instead of keeping its numbers


def _leaf_symbols(leaves: list[Any]) -> list[Any]:
    return nest.flatten(leaves, expand_composites=True)


def _settled(leaves: list[Any]) -> list[Any]:
    """The leaves, each with the tensors in it that it has from now on: some compute them when they are asked."""
    if not _core.is_tracing():
        return leaves
    return [nest.pack_sequence_as(x, nest.flatten(x, expand_composites=True), expand_composites=True) for x in leaves]


class Tensors(Pipe):
    """One element."""

    name = "_TensorDataset"

    def __init__(self, element: Any) -> None:
        element = as_element(element)
        self._leaves = _settled(nest.flatten(element))
        super().__init__(map_leaves(spec_of_leaf, element), symbols=_leaf_symbols(self._leaves))

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        yield tuple([iteration.leaf(leaf) for leaf in self._leaves])

    def count(self) -> int:
        return 1


class Slices(Pipe):
    """The rows of tensors."""

    name = "_TensorSliceDataset"

    def __init__(self, element: Any) -> None:
        element = as_element(element)
        self._leaves = _settled(nest.flatten(element))
        if not self._leaves:
            raise ValueError("Invalid `element`. `element` should not be empty.")
        super().__init__(
            map_leaves(lambda leaf: unbatched_spec(spec_of_leaf(leaf)), element), symbols=_leaf_symbols(self._leaves)
        )
        self.indexed = self.sequential = not any(isinstance(leaf, SparseTensor) for leaf in self._leaves)
        self._rows: int | None = None
        for leaf in self._leaves:
            rows = static_row_count(leaf)
            if rows is not None and self._rows is not None and rows != self._rows:
                raise ValueError(f"Dimensions {self._rows} and {rows} are not compatible")
            self._rows = self._rows if rows is None else rows

    def order(self, iteration: Iteration) -> Order:
        table = tuple([iteration.leaf(leaf) for leaf in self._leaves])
        rows = self._rows
        if rows is None:
            rows = row_count(next(leaf for leaf in table if leaf is not None))
        return Order(table, range(rows))

    def count(self) -> int:
        if self._rows is None and (iteration := counting()) is not None:
            return len(self.order(iteration).places)  # type: ignore[arg-type]
        return UNKNOWN if self._rows is None else self._rows


class Numbers(Pipe):
    """The numbers from `start` to `stop`, or without end."""

    name = "_RangeDataset"

    def __init__(self, start: Any, stop: Any, step: Any, dtype: Any = int64) -> None:
        self._bounds = [None if x is None else as_count(x, "range") for x in (start, stop, step)]
        self._dtype = as_dtype(dtype)
        super().__init__(TensorSpec([], self._dtype), symbols=[x for x in self._bounds if x is not None])
        if self._bounds[2] == 0:
            raise InvalidArgumentError.of("step must be a non-zero integer.")
        self.indexed = self.sequential = 0 <= self.count() <= _LARGEST_TABLE
        self._table: Any = None

    def _numbers(self, iteration: Iteration | None) -> Any:
        bounds: list[Any] = [x if x is None or iteration is None else iteration.number(x) for x in self._bounds]
        start, stop, step = bounds
        return itertools.count(start, step) if stop is None else range(start, stop, step)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if self.indexed:
            return self.order(iteration).elements()
        return ((convert_to_tensor(number, self._dtype),) for number in self._numbers(iteration))

    def order(self, iteration: Iteration) -> Order:
        if self._table is None:
            self._table = convert_to_tensor(
                np.array(self._numbers(iteration), np.int64).astype(self._dtype.as_numpy_dtype)
            )
        return Order((self._table,), range(self.count()))

    def count(self) -> int:
        if self._bounds[1] is None:
            return INFINITE
        iteration = counting()
        return UNKNOWN if self.symbols and iteration is None else len(self._numbers(iteration))


class RandomNumbers(SeededPipe):
    """Random integers without end."""

    name = "_RandomDataset"

    def __init__(self, seed: Any, rerandomize: bool | None) -> None:
        self._source = SeedSource(seed, bool(rerandomize))
        super().__init__(TensorSpec([], int64), symbols=self._source.symbols)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return ((convert_to_tensor(word, int64),) for word in random_words(iteration.seeds(self)))

    def count(self) -> int:
        return INFINITE


class _Yielded:
    """The elements of a generator. After one that does not fit it goes on with the next."""

    def __init__(self, pipe: Generated, iterator: Iterator[Any]) -> None:
        self._pipe, self._iterator = pipe, iterator

    def __iter__(self) -> _Yielded:
        return self

    def __next__(self) -> Leaves:
        return self._pipe.next_of(self._iterator)


class Generated(Pipe):
    """What a Python generator yields, checked against a signature."""

    name = "_FlatMapDataset"
    calls_python = True

    def __init__(self, generator: Callable[..., Any], signature: Any, args: Any) -> None:
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        self._generator = generator
        self._args = () if args is None else tuple([convert_to_tensor(arg) for arg in args])
        super().__init__(signature, symbols=self._args)
        for spec in self.specs:
            if not isinstance(spec, TypeSpec):
                raise TypeError(
                    "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                    f"{type(spec)} which is not."
                )

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        args = [iteration.value(arg).numpy() for arg in self._args]
        return _Yielded(self, iter(self._generator(*args)))

    def next_of(self, iterator: Iterator[Any]) -> Leaves:
        """The next element of the generator, checked; errors of Python are errors of operations."""
        stage = _core.swap_stage(None)
        try:
            return self._checked(next(iterator))
        except (StopIteration, OpError):
            raise
        except Exception as error:
            kind = InvalidArgumentError if isinstance(error, TypeError | ValueError) else UnknownError
            raise kind(None, None, f"{type(error).__name__}: {error}") from error
        finally:
            _core.swap_stage(stage)

    def _checked(self, value: Any) -> Leaves:
        if not nest.is_nested(self.spec):
            return (self._converted(self.specs[0], value),)
        try:
            values = nest_paths.flatten_up_to(self.spec, value, check_types=False)
        except (TypeError, ValueError):
            raise TypeError(
                "`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{map_leaves(lambda spec: getattr(spec, 'dtype', spec), self.spec)}, but the yielded element was "
                f"{value}."
            ) from None
        return tuple([self._converted(spec, part) for spec, part in zip(self.specs, values)])

    def _converted(self, spec: Any, value: Any) -> Any:
        if not isinstance(spec, TensorSpec):
            if not spec.is_compatible_with(value):
                raise TypeError(f"`generator` yielded an element of {value} where an element of {spec} was expected.")
            return value
        try:
            fits = isinstance(value, _core.Tensor) and value.dtype == spec.dtype
            tensor = value if fits else convert_to_tensor(_as_array(value, spec.dtype))
        except (TypeError, ValueError):
            tensor = None
        if tensor is None or tensor.dtype != spec.dtype:
            raise TypeError(
                "`generator` yielded an element that could not be converted to the expected type. The expected type "
                f"was {spec.dtype.name}, but the yielded element was {value}."
            )
        if not spec.shape.is_compatible_with(tensor.shape):
            raise TypeError(
                f"`generator` yielded an element of shape {tensor.shape} where an element of shape {spec.shape} was "
                "expected."
            )
        return tensor


def _as_array(value: Any, dtype: Any) -> Any:
    """The value as an array of the dtype, as a conversion of NumPy gives it."""
    if dtype.name == "string":
        return value
    return np.asarray(value, dtype.as_numpy_dtype)


def generator_signature(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """The specification of what a generator yields, from the arguments of `from_generator`."""
    if output_signature is not None:
        if output_types is not None or output_shapes is not None:
            raise TypeError(
                "The `output_types` and `output_shapes` arguments can not be used together with the `output_signature` "
                "argument."
            )
        return map_leaves(lambda spec: spec, output_signature)
    if output_types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the "
            "`output_types` argument."
        )
    return spec_of_types(output_types, output_shapes)


def spec_of_types(output_types: Any, output_shapes: Any) -> Any:
    """The specification of elements with these dtypes and shapes; no shapes are any shapes."""
    types = map_leaves(as_dtype, output_types)
    if output_shapes is None:
        return map_leaves(lambda dtype: TensorSpec(None, dtype), types)
    shapes = nest_paths.flatten_up_to(types, output_shapes, check_types=False)
    specs = [TensorSpec(as_shape(shape), dtype) for dtype, shape in zip(nest.flatten(types), shapes)]
    return nest.pack_sequence_as(types, specs)
