"""Elementwise operations on ragged tensors, and Python's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.math.arithmetic import logical_xor, truediv
from tapeflow._src.ops.ragged.row_splits import numbers_below
from tapeflow._src.ops.ragged.rows import RaggedRows
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.elementwise_names import BINARY, BINARY_ASSERTIONS, UNARY
from tapeflow._src.types.errors import InvalidArgumentError

# `log_softmax` stands among TensorFlow's elementwise names, but its elements depend on their row.
_COMPOSITIONS = {path.rpartition(".")[2] for path in (*UNARY, *BINARY, *BINARY_ASSERTIONS)} - {"log_softmax"}
_COMPOSITIONS |= {"dropout", "swish"}


def _spread(x: Any, like: RaggedRows) -> Any:
    """The elements of a dense tensor, broadcast to the rows of a ragged one, for each of its flat values."""
    tensor = convert_to_tensor(x, dtype_hint=like.dtype)
    rank, inner_rank = like.shape.rank, like.flat_values.shape.rank - 1
    if tensor.shape.rank <= inner_rank:
        return tensor
    coordinates = like._coordinates()
    outer = like.ragged_rank + 1
    skip = rank - tensor.shape.rank
    dims = tensor.shape.as_list()
    if skip < 0:
        raise ValueError(f"Unable to broadcast a tensor of shape {dims} to a ragged tensor of rank {rank}")
    columns = []
    for place in range(skip, outer):
        size, column = dims[place - skip], coordinates[:, place]
        if size == 1:
            columns.append(column * 0)
            continue
        lengths = like.nested_row_lengths()[place - 1] if place else like.nrows()
        expected = cast(primitives.Shape(tensor, int64)[place - skip] if size is None else size, lengths.dtype)
        if size is None:  # a dimension that may turn out to be 1
            broadcasts = primitives.Equal(expected, cast(1, expected.dtype))
            column = primitives.SelectV2(broadcasts, column * 0, column)
            expected = primitives.SelectV2(broadcasts, lengths, expected)
        columns.append(column)
        assert_equal(lengths, expected, f"Unable to broadcast: dimension size mismatch in dimension {place}")
    return primitives.GatherNd(tensor, primitives.Pack(columns, 1), 0)


def same_splits(a: Any, b: Any) -> bool:
    """Whether two tensors are equal; while tracing, they have to be when the graph runs."""
    if a is b:
        return True
    if _core.is_symbolic(a) or _core.is_symbolic(b):
        assert_equal(a, b, "ragged tensors must have the same rows for an elementwise operation")
        return True
    return np.array_equal(a.numpy(), b.numpy())


def _has_dimensions(value: Any) -> bool:
    return isinstance(value, list | tuple) or bool(getattr(value, "shape", None))


def _flat_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[RaggedRows, list[Any], dict[str, Any]]:
    """The ragged argument with the rows of the result, and all arguments as they meet its flat values."""
    found = [a for a in (*args, *kwargs.values()) if isinstance(a, RaggedRows)]
    first = max(found, key=lambda r: r.ragged_rank)
    broadcasts = False

    def inner(value: Any) -> Any:
        nonlocal broadcasts
        if isinstance(value, RaggedRows):
            if value.ragged_rank != first.ragged_rank or not all(
                map(same_splits, value.nested_row_splits, first.nested_row_splits)
            ):
                raise InvalidArgumentError.of("ragged tensors must have the same rows for an elementwise operation")
            return value.flat_values
        if not _has_dimensions(value):
            return value
        tensor = value if _core.is_tensor(value) else convert_to_tensor(value, dtype_hint=first.dtype)
        if tensor.shape.rank <= first.flat_values.shape.rank - 1:
            return value
        broadcasts = True
        return _spread(tensor, first)

    values = [inner(a) for a in args]
    named = {key: inner(v) for key, v in kwargs.items()}
    if broadcasts:  # the gradient of the flat values is then an IndexedSlices, as TensorFlow's
        places = numbers_below(primitives.Shape(first.flat_values, int64)[0])
        values = [
            primitives.GatherV2(v, places, 0, 0) if isinstance(a, RaggedRows) else v for a, v in zip(args, values)
        ]
    return first, values, named


def elementwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an elementwise operation on the flat values."""
    if not any(isinstance(a, RaggedRows) for a in (*args, *kwargs.values())):
        return NotImplemented
    first, values, named = _flat_arguments(args, kwargs)
    result = function(*values, **named)
    return None if result is None else first.with_flat_values(result)  # None: of an assertion


def is_elementwise(function: Any) -> bool:
    """Whether an operation computes each element from those in its place alone: by its entry, or by its public name."""
    if isinstance(function, _core.OpFunction):
        return function in primitives.elementwise_functions
    return isinstance(function, _core.Composition) and function.__name__ in _COMPOSITIONS


def holds_ragged(argument: Any) -> bool:
    """Whether an argument is ragged, or a list with a ragged part."""
    if isinstance(argument, list | tuple):
        return any(isinstance(part, RaggedRows) for part in argument)
    return isinstance(argument, RaggedRows)


def _operate(function: Any, self: Any, args: tuple[Any, Any]) -> Any:
    """An operator of ragged tensors; a class of others that has it as its own leaves it to dispatchers."""
    if isinstance(self, RaggedRows):
        return elementwise(function, args, {})
    return (function if isinstance(function, _core.OpFunction) else find_public(f"math.{function.__name__}"))(*args)


def _operator(function: Any) -> Any:
    return lambda self, other: _operate(function, self, (self, other))


def _reflected(function: Any) -> Any:
    return lambda self, other: _operate(function, self, (other, self))


class RaggedOperators:
    """Python's operators, on the flat values."""

    __add__, __radd__ = _operator(primitives.AddV2), _reflected(primitives.AddV2)
    __sub__, __rsub__ = _operator(primitives.Sub), _reflected(primitives.Sub)
    __mul__, __rmul__ = _operator(primitives.Mul), _reflected(primitives.Mul)
    __truediv__, __rtruediv__ = _operator(truediv), _reflected(truediv)
    __floordiv__, __rfloordiv__ = _operator(primitives.FloorDiv), _reflected(primitives.FloorDiv)
    __mod__, __rmod__ = _operator(primitives.FloorMod), _reflected(primitives.FloorMod)
    __pow__, __rpow__ = _operator(primitives.Pow), _reflected(primitives.Pow)
    __and__, __rand__ = _operator(primitives.LogicalAnd), _reflected(primitives.LogicalAnd)
    __or__, __ror__ = _operator(primitives.LogicalOr), _reflected(primitives.LogicalOr)
    __xor__, __rxor__ = _operator(logical_xor), _reflected(logical_xor)
    __eq__ = _operator(primitives.Equal)
    __ne__ = _operator(primitives.NotEqual)
    __lt__ = _operator(primitives.Less)
    __le__ = _operator(primitives.LessEqual)
    __gt__ = _operator(primitives.Greater)
    __ge__ = _operator(primitives.GreaterEqual)

    def __hash__(self) -> int:
        graph = _core.current_graph()
        if graph is None or not graph.graph_mode:
            raise TypeError("RaggedTensor is unhashable.")
        return id(self)  # a key of `feed_dict`

    def __neg__(self) -> Any:
        return elementwise(primitives.Neg, (self,), {})

    def __abs__(self) -> Any:
        return elementwise(abs, (self,), {})

    def __invert__(self) -> Any:
        return elementwise(primitives.LogicalNot, (self,), {})
