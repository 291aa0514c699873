"""What `Session.run` is asked for, in any structure: which tensors and operations that means, and their results."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.operation import Operation
from tapeflow._src.function.escape import InaccessibleTensorError
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.namespace import public
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue
from tapeflow._src.types.tensor import Tensor

IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
IndexedSlicesValue.__doc__ = """The arrays of an IndexedSlices that a session computed.

>>> tf.compat.v1.IndexedSlicesValue(values=[1.], indices=[0], dense_shape=None).indices
[0]
"""
public("compat.v1.IndexedSlicesValue")(IndexedSlicesValue)


@public("compat.v1.ragged.RaggedTensorValue")
class RaggedTensorValue:
    """The arrays of a RaggedTensor that a session computed.

    >>> tf.compat.v1.ragged.RaggedTensorValue(np.array([1, 2, 3]), np.array([0, 2, 3])).to_list()
    [[1, 2], [3]]
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        self.values, self.row_splits = values, row_splits

    flat_values = property(lambda self: getattr(self.values, "flat_values", self.values))
    nested_row_splits = property(lambda self: (self.row_splits, *getattr(self.values, "nested_row_splits", ())))
    ragged_rank = property(lambda self: len(self.nested_row_splits))
    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: (len(self.row_splits) - 1, None, *self.values.shape[1:]))

    def to_list(self) -> list[Any]:
        """The rows as lists."""
        inner = self.values.to_list() if isinstance(self.values, RaggedTensorValue) else self.values.tolist()
        return [inner[start:end] for start, end in pairwise(self.row_splits)]

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation on the ragged tensors of these arrays."""
        return function(*map(_as_tensors, args), **{name: _as_tensors(value) for name, value in kwargs.items()})

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self.values!r}, row_splits={self.row_splits!r})"

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"


def _as_tensors(value: Any) -> Any:
    """Ragged tensors for the arrays of ones, also in lists."""
    if isinstance(value, RaggedTensorValue):
        return RaggedTensor.from_nested_row_splits(value.flat_values, value.nested_row_splits, validate=False)
    return type(value)(map(_as_tensors, value)) if type(value) in (list, tuple) else value


def _ragged_value(values: Any, *splits: Any) -> Any:
    for part in reversed(splits):
        values = RaggedTensorValue(values, part)
    return values


_reads_variables_last = False


def read_variables_last(enabled: bool) -> None:
    """Whether a variable that is fetched is read after everything else, as in TensorFlow 1, or in program order."""
    global _reads_variables_last
    _reads_variables_last = enabled


def variables_are_read_last() -> bool:
    """The setting of `read_variables_last`."""
    return _reads_variables_last


Rebuild = Callable[[list[Any]], Any]


class Fetches:
    """The tensors (each once) and operations of a structure, and how to put values in their places."""

    def __init__(self, graph: Any, structure: Any) -> None:
        self._graph = graph
        self._index_by_id: dict[int, int] = {}
        self.tensors: list[Any] = []
        self.operations: list[int] = []
        self.variable_by_index: dict[int, Any] = {}  # those to be read after the run
        self._rebuild = self._visit(structure)

    def rebuilt(self, values: list[Any]) -> Any:
        """The structure with values in place of the tensors, and None in place of the operations."""
        return self._rebuild(values)

    def _visit(self, item: Any) -> Rebuild:
        if item is None:
            raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
        if isinstance(item, Mapping):
            parts = {key: self._visit(value) for key, value in item.items()}
            kind: Any = type(item)
            if isinstance(item, defaultdict):
                kind = partial(defaultdict, item.default_factory)
            return lambda values: kind((key, part(values)) for key, part in parts.items())
        if isinstance(item, list | tuple):
            inner = [self._visit(value) for value in item]
            if hasattr(item, "_fields"):
                return lambda values: type(item)(*(part(values) for part in inner))
            return lambda values: type(item)(part(values) for part in inner)
        if hasattr(item, "__attrs_attrs__"):
            names = [attribute.name for attribute in item.__attrs_attrs__]
            inner = [self._visit(getattr(item, name)) for name in names]
            return lambda values: type(item)(*(part(values) for part in inner))
        if hasattr(type(item), "__tf_flatten__"):
            metadata, components = item.__tf_flatten__()
            inner = [self._visit(part) for part in components]
            return lambda values: item.__tf_unflatten__(metadata, tuple([part(values) for part in inner]))
        if isinstance(item, IndexedSlices):
            return self._visit_parts(IndexedSlicesValue, (item.values, item.indices, item.dense_shape))
        if isinstance(item, SparseTensor):
            return self._visit_parts(SparseTensorValue, (item.indices, item.values, item.dense_shape))
        if getattr(item, "is_weak", False):
            return self._visit(item.to_tensor())
        if isinstance(item, RaggedTensor):
            inner = [self._visit(part) for part in (item.flat_values, *item.nested_row_splits)]
            return lambda values: _ragged_value(*(part(values) for part in inner))
        return self._visit_element(item)

    def _visit_parts(self, kind: Any, parts: tuple[Any, ...]) -> Rebuild:
        inner = [None if part is None else self._visit(part) for part in parts]
        return lambda values: kind(*(None if part is None else part(values) for part in inner))

    def _visit_element(self, item: Any) -> Rebuild:
        try:
            element = self._graph.as_graph_element(item)
        except TypeError as error:
            raise TypeError(
                f'Argument `fetch` = {item} has invalid type "{type(item).__name__}" must be a string or Tensor. '
                f"({error})"
            ) from None
        except (ValueError, KeyError) as error:
            raise ValueError(f"Argument `fetch` = {item} cannot be interpreted as a Tensor. ({error})") from None
        if not self._graph.is_fetchable(element):
            operation = element if isinstance(element, Operation) else element.op
            raise InaccessibleTensorError(
                f"Operation {operation.name} has been marked as not fetchable. Typically this happens when it is "
                "defined in another function or code block. Use return values, explicit Python locals or TensorFlow "
                "collections to access it."
            )
        if isinstance(element, Operation):
            self.operations.extend(self._graph.nodes_behind(element))
            return lambda values: None
        index = self._index_by_id.setdefault(id(element), len(self.tensors))
        if index == len(self.tensors):
            self.tensors.append(element)
        variable = self._graph.variable_meant(item) if _reads_variables_last else None
        if variable is not None:
            self.variable_by_index[index] = variable
        return lambda values: values[index]


class PreparedRun:
    """What is the same in every run of one combination of fetches and fed tensors, checked once.

    It holds the objects of its key, so that their identities stay theirs.
    """

    def __init__(self, wanted: Fetches, plan: Any, fetches: Any, fed: list[Any], node_count: int) -> None:
        self.wanted, self.plan, self.node_count = wanted, plan, node_count
        self._held = (fetches, fed)
        self._feeds: list[tuple[Any, Any, Any, set[Any]]] = [
            (tensor, tensor.dtype, np.dtype(tensor.dtype.as_numpy_dtype), set()) for tensor in fed
        ]

    @staticmethod
    def key(fetches: Any, feed_dict: Any) -> Any:
        """Identifies fetches and fed tensors by identity, and what a fetched variable means."""
        kind = type(fetches)
        wanted = (kind, *map(id, fetches)) if kind is list or kind is tuple else id(fetches)
        return wanted, tuple(map(id, feed_dict)) if feed_dict else (), _reads_variables_last

    @staticmethod
    def is_possible(fetches: Any, feed_dict: Any) -> bool:
        """Whether all fetches and feeds are plain tensors, operations, variables and names, in a list at most."""
        plain = (Tensor, Operation, _core.Variable, str)
        items = fetches if type(fetches) in (list, tuple) else [fetches]
        return all(isinstance(item, plain) for item in items) and all(
            isinstance(key, Tensor) for key in feed_dict or ()
        )

    def tensors_for(self, values: Any) -> list[Any]:
        """The values as tensors, in the order of the fed tensors; a shape is checked once."""
        result = []
        for (tensor, dtype, numpy_dtype, shapes), value in zip(self._feeds, values):
            if type(value) is np.ndarray and value.dtype is numpy_dtype:
                if value.shape in shapes:
                    result.append(_core.convert_to_tensor(value, dtype, None, "feed_dict"))
                    continue
                if len(shapes) < 64:
                    result.append(_tensor_for(tensor, value))
                    shapes.add(value.shape)
                    continue
            result.append(_tensor_for(tensor, value))
        return result


def feeds_of(graph: Any, feed_dict: Any) -> list[tuple[Any, Any]]:
    """The tensors that are fed, with the values for them; sparse ones have several parts."""
    result: list[tuple[Any, Any]] = []
    for key, value in [pair for item in (feed_dict or {}).items() for pair in _single_feeds(*item)]:
        if isinstance(key, SparseTensor):
            parts = (value.indices, value.values, value.dense_shape) if hasattr(value, "indices") else value
            result += zip((key.indices, key.values, key.dense_shape), parts)
        elif isinstance(key, RaggedTensor):
            rows = value if hasattr(value, "nested_row_splits") else RaggedTensor.from_tensor(value)
            result += zip((key.flat_values, *key.nested_row_splits), (rows.flat_values, *rows.nested_row_splits))
        elif isinstance(key, IndexedSlices):
            parts = (value.values, value.indices, value.dense_shape) if hasattr(value, "indices") else value
            result += [(k, v) for k, v in zip((key.values, key.indices, key.dense_shape), parts) if k is not None]
        else:
            try:
                tensor = graph.as_graph_element(key, allow_operation=False)
            except Exception as error:
                raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
            if not graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
            result.append((tensor, value))
    with running_at_once():
        return [(tensor, _tensor_for(tensor, value)) for tensor, value in result]


def _single_feeds(key: Any, value: Any) -> list[tuple[Any, Any]]:
    """The pairs that a feed means: a tuple of tensors, such as the state of a cell, takes a structure of values."""
    if not isinstance(key, tuple):
        return [(key, value)]
    if not isinstance(value, tuple | list | np.ndarray) or len(key) != len(value):
        raise ValueError(f"Could not flatten dictionary. Key had {len(key)} elements, but value does not: {value}")
    return [pair for part in zip(key, value) for pair in _single_feeds(*part)]


def _tensor_for(tensor: Any, value: Any) -> Tensor:
    if isinstance(value, Tensor) and _core.is_symbolic(value):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, strings, "
            f"lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was {value} which was passed "
            f"to the argument `feed_dict` with key {tensor}."
        )
    given = _fed_tensor(value, tensor.dtype)
    if not tensor.shape.is_compatible_with(given.shape):
        raise ValueError(
            f"Cannot feed value of shape {tuple(given.shape)} for Tensor {tensor.name}, "
            f"which has shape {_text(tensor.shape)}"
        )
    return given


def _fed_tensor(value: Any, dtype: Any) -> Tensor:
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, int) and not dtype.is_bool and dtype.is_integer and not dtype.min <= value <= dtype.max:
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {dtype.name}. "
            "Try explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
        )
    try:
        return _core.convert_to_tensor(value, dtype, None, "feed_dict")
    except (TypeError, ValueError):
        return _core.convert_to_tensor(_as_array(value, dtype), dtype, None, "feed_dict")


def _as_array(value: Any, dtype: Any) -> Any:
    return np.asarray(value, dtype=dtype.as_numpy_dtype)


def _text(shape: Any) -> str:
    return str(shape) if shape.rank is not None else "<unknown>"
