"""Python's builtin functions where an argument is staged; for all other arguments they are what they always are."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.vectorized_map import vectorized_map
from tapeflow._src.function.autograph import operators as operators
from tapeflow._src.function.autograph.operators import Rows, length_of, rows_of
from tapeflow._src.ops.arrays import constants, sorting
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.ops.math import arithmetic
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings import strings
from tapeflow._src.types.dtypes import float32, int32


def _number(x: Any, dtype: Any) -> Any:
    tensor = convert_to_tensor(x)
    if tensor.dtype.name != "string":
        return cast(tensor, dtype)
    return host_call(lambda text: [strings.to_number(text, dtype)], [tensor], [(dtype, tensor.shape)])[0]


def _int(x: Any, base: Any = 10) -> Any:
    if base not in (10, None):
        raise NotImplementedError(f"int: base {base!r} is not supported for tensors in graph mode; only base 10 is")
    return _number(x, int32)


def _len(x: Any) -> Any:
    if isinstance(x, Rows):
        return x.count
    if isinstance(x, RaggedTensor):
        return cast(x.nrows(), int32)
    tensor = convert_to_tensor(x)
    if tensor.shape.rank == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {tensor.shape}")
    return length_of(tensor)


def _range(*bounds: Any) -> Any:
    dtype = next(convert_to_tensor(b).dtype for b in bounds if operators.staged(b))
    if len(bounds) == 3:
        return constants.range(*bounds, dtype=dtype)
    start, limit = bounds if len(bounds) == 2 else (0, bounds[0])
    start = convert_to_tensor(start, dtype)
    return constants.range(start, primitives.Maximum(start, convert_to_tensor(limit, dtype)), dtype=dtype)


def _rows(iterable: Any) -> Rows:
    """The rows of a partner of a staged iterable, too."""
    rows = rows_of(iterable)
    if rows is None:
        tensor = convert_to_tensor(iterable)
        rows = Rows(length_of(tensor), lambda i: tensor[i])
    return rows


def _enumerate(iterable: Any, start: Any = 0) -> Rows:
    rows = _rows(iterable)
    return Rows(rows.count, lambda i: (i + start, rows.row(i)))


def _zip(*iterables: Any, strict: bool = False) -> Rows:
    parts = [_rows(iterable) for iterable in iterables]
    counts = [part.count for part in parts]
    if builtins.all(isinstance(count, int) for count in counts):
        if strict and len(set(counts)) > 1:
            raise ValueError(f"zip: the arguments must have the same length; got {counts}")
        count: Any = builtins.min(counts)
    else:
        count = primitives.Min(convert_to_tensor(counts))
    return Rows(count, lambda i: tuple(part.row(i) for part in parts))


def _sorted(x: Any, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> Any:
    direction = "DESCENDING" if reverse else "ASCENDING"
    tensor = convert_to_tensor(x)
    keys = tensor if key is None else vectorized_map(key, tensor)
    if keys.shape.rank not in (None, 1):
        of_what = "a tensor" if key is None else "keys"
        raise ValueError(f"sorted requires {of_what} of rank 1, got {of_what} of shape {keys.shape}")
    if key is None:
        return sorting.sort(tensor, direction=direction)
    return primitives.GatherV2(tensor, sorting.argsort(keys, direction=direction, stable=True), 0)


def _sum(x: Any, /, start: Any = 0) -> Any:
    total = primitives.Sum(x, 0)
    return total if isinstance(start, int) and start == 0 else total + start


def _extreme(name: str, pair: Any, reduce: Any) -> Callable[..., Any]:
    def extreme(*values: Any) -> Any:
        if len(values) == 1:
            tensor = convert_to_tensor(values[0])
            if tensor.shape.rank is not None and tensor.shape.rank > 1:
                raise ValueError(f"{name}(arg) requires a tensor of rank 1, got one of rank {tensor.shape.rank}")
            return tensor if tensor.shape.rank == 0 else reduce(tensor, 0)
        shapes = [convert_to_tensor(value).shape for value in values]
        if not builtins.all(shape.rank in (None, 0) for shape in shapes):
            raise ValueError(f"{name}(arg1, arg2, *args) requires scalar tensors, got tensors of shapes {shapes}")
        best = values[0]
        for value in values[1:]:
            best = pair(best, value)
        return best

    return extreme


def print_when_run(*values: Any, **kwargs: Any) -> Any:
    """Python's `print` with the values that staged arguments have when the graph runs."""
    places = [i for i, value in enumerate(values) if operators.staged(value)]

    def run(*found: Any) -> None:
        shown = list(values)
        for i, tensor in zip(places, found):
            array = tensor.numpy()
            shown[i] = array.decode() if isinstance(array, bytes) else array
        builtins.print(*shown, **kwargs)

    return host_effect(run, [convert_to_tensor(values[i]) for i in places])


_STAGED: dict[Any, Callable[..., Any]] = {
    builtins.abs: arithmetic.abs,
    builtins.int: _int,
    builtins.float: lambda x: _number(x, float32),
    builtins.len: _len,
    builtins.range: _range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.sorted: _sorted,
    builtins.sum: _sum,
    builtins.any: primitives.Any,
    builtins.all: primitives.All,
    builtins.min: _extreme("min", primitives.Minimum, primitives.Min),
    builtins.max: _extreme("max", primitives.Maximum, primitives.Max),
}


# Of tensors outside of graphs, too, these are functions of the whole tensor.
_ALWAYS_OF_TENSORS = (builtins.int, builtins.len, builtins.max, builtins.min, builtins.sorted)


def call_builtin(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)`, in the graph if it is known there and an argument is staged."""
    for argument in args:
        own = getattr(type(argument), "__autograph_call__", None)
        if own is not None and (found := own(argument, function, args, kwargs)) is not NotImplemented:
            return found
    in_graph = _STAGED.get(function)
    if in_graph is None:
        return function(*args, **kwargs)
    if any(operators.staged(x) or isinstance(x, Rows) for x in args):
        return in_graph(*args, **kwargs)
    if function in _ALWAYS_OF_TENSORS and any(_core.is_tensor(x) for x in args):
        return in_graph(*args, **kwargs)
    if function is builtins.len and len(args) == 1 and isinstance(args[0], RaggedTensor) and _core.is_tracing():
        return in_graph(*args, **kwargs)
    return function(*args, **kwargs)
