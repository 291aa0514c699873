"""How functions of bytes run over the elements of string tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import refused_dtype
from tapeflow._src.types.tensor_spec import TensorSpec


def string_tensor(x: Any) -> Any:
    """`x` as a tensor of strings; an error if it has another dtype."""
    tensor = convert_to_tensor(x, dtype=None if _core.is_tensor(x) else "string")
    if tensor.dtype.name != "string":
        raise refused_dtype("strings", "input", "T", tensor.dtype, "string")
    return tensor


def as_ragged(x: Any) -> Any:
    """A ragged tensor for what a session gave for one; anything else as it is."""
    if hasattr(x, "nested_row_splits") and not isinstance(x, RaggedTensor):
        return RaggedTensor.from_nested_row_splits(x.flat_values, x.nested_row_splits)
    return x


def bytes_of(value: Any, argument: str) -> bytes:
    """An argument that is one string."""
    if _core.is_tensor(value):
        value = value.numpy()
    if not isinstance(value, str | bytes):
        raise TypeError(f"Expected string for argument {argument!r} not {value!r}.")
    return value.encode() if isinstance(value, str) else value


def elements_of(x: Any) -> list[Any]:
    """The elements of a tensor in one list."""
    return np.asarray(x.numpy(), dtype=object).reshape(-1).tolist()


def tensor_from(values: list[Any], dtype: Any, shape: Any) -> Tensor:
    """A tensor of this shape from its elements in one list."""
    flat = _core.convert_to_tensor(values, as_dtype(dtype), None, "strings")
    return primitives.Reshape(flat, list(shape))


def map_bytes(x: Any, function: Callable[[bytes], Any], dtype: Any = "string") -> Any:
    """`function` of every element; a ragged tensor keeps its rows."""
    x = as_ragged(x)
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(map_bytes(x.flat_values, function, dtype))
    tensor = string_tensor(x)
    return host_call(_Each(function, dtype), [tensor], [(dtype, tensor.shape)])[0]


class _Each:
    """A function of every element; it can be written into a saved model if the function pickles."""

    def __init__(self, function: Callable[[bytes], Any], dtype: Any) -> None:
        self._function, self._dtype = function, dtype

    def __call__(self, tensor: Any) -> list[Any]:
        return [tensor_from([self._function(v) for v in elements_of(tensor)], self._dtype, tensor.shape.as_list())]


def errors_when_run(function: Any, dtype: Any) -> None:
    """Says that a function of each element refuses values alone: in a graph, when it runs."""

    def specs(input: Any, *_: Any, **__: Any) -> TensorSpec | None:
        x = as_ragged(input)
        return None if isinstance(x, RaggedTensor) else TensorSpec(string_tensor(x).shape, dtype)

    function.result_specs, function.refuses_values = specs, True
