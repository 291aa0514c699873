"""Python objects in graphs: a dataset or an iterator is a number there, a scalar tensor, by which nodes find it."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tapeflow.function.trace import running_at_once
from tapeflow.ops.constants import zeros
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest
from tapeflow.types.dtypes import int64
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.tensor_spec import TypeSpec

_numbers = itertools.count(1)
_object_by_number: WeakValueDictionary[int, Any] = WeakValueDictionary()
_kept: OrderedDict[int, Any] = OrderedDict()  # objects that a graph made: nobody else holds them
_MOST_KEPT = 512


def number_of(thing: Any, keep: bool = False) -> Any:
    """A tensor by which graphs find the object; `keep` holds the object until many others have come."""
    number = next(_numbers)
    _object_by_number[number] = thing
    if keep:
        _kept[number] = thing
        if len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    with running_at_once():
        return convert_to_tensor(number, int64)


def by_number(tensor: Any) -> Any:
    """The object that a tensor names."""
    found = _object_by_number.get(int(tensor))
    if found is None:
        raise InvalidArgumentError(None, None, "the dataset or iterator that a tensor names does not exist any more")
    return found


def tensor_specs(specs: list[TypeSpec]) -> tuple[list[Any], list[Any]]:
    """The dtypes and shapes of the tensors of which elements consist, as nodes of a graph declare them."""
    flat = nest.flatten(specs, expand_composites=True)
    return [spec.dtype for spec in flat], [spec.shape for spec in flat]


def tensors_of(leaves: Any) -> list[Any]:
    """The tensors of which an element consists."""
    return nest.flatten(list(leaves), expand_composites=True)


def blank(dtype: Any, shape: Any) -> Any:
    """A tensor that stands where there is no value."""
    sizes = [] if shape.rank is None else [0 if size is None else size for size in shape.as_list()]
    with running_at_once():
        if dtype.name == "string":
            return convert_to_tensor(np.full(sizes, b"", dtype=object))
        return zeros(sizes, dtype)
