"""Signatures of calls: which arguments are tensors, and the key under which a graph for such arguments is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow import _core
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest
from tapeflow.types.tensor_spec import TensorSpec


class CallSignature:
    """The arguments of one call: their structure, the tensors among them, and the key of its kind."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self._leaves = nest.flatten([list(args), kwargs], expand_composites=True)
        self._places, self.tensors, self.tensor_specs = [], [], []
        key: list[Any] = []
        for i, leaf in enumerate(self._leaves):
            if isinstance(leaf, np.ndarray | np.generic):
                leaf = self._leaves[i] = convert_to_tensor(leaf)
            if isinstance(leaf, _core.Tensor) or isinstance(leaf, TensorSpec):
                self._places.append(i)
                self.tensors.append(leaf)
                self.tensor_specs.append(TensorSpec(leaf.shape, leaf.dtype))
                shape = leaf.shape
                key.append((leaf.dtype, None if shape.rank is None else tuple(shape)))
            elif isinstance(leaf, _core.Variable):
                key.append((_core.Variable, id(leaf)))
            else:
                key.append(_key_of(leaf))
        self.key = (_structure_key([list(args), kwargs]), tuple(key))

    def with_tensors(self, tensors: list[Any]) -> tuple[Any, Any]:
        """The arguments with other tensors in place of these."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors):
            leaves[place] = tensor
        args, kwargs = nest.pack_sequence_as([list(self.args), self.kwargs], leaves, expand_composites=True)
        return tuple(args), kwargs

    def tensors_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The flat tensors of another call of the same kind."""
        leaves = nest.flatten([list(args), kwargs], expand_composites=True)
        if len(leaves) == len(self._leaves):
            leaves = [leaves[i] for i in self._places]
        return [convert_to_tensor(leaf, dtype=spec.dtype) for leaf, spec in zip(leaves, self.tensor_specs, strict=True)]

    @property
    def structured_input_signature(self) -> tuple[Any, Any]:
        """The arguments with a `tf.TensorSpec` for each tensor."""
        return self.with_tensors(self.tensor_specs)


def _key_of(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, bool | int | float | complex | str | bytes):
        return (type(leaf), leaf)
    try:
        hash(leaf)
    except TypeError:
        return (type(leaf), id(leaf))
    return leaf


def _structure_key(structure: Any) -> Any:
    if isinstance(structure, dict):
        return (dict, tuple((k, _structure_key(structure[k])) for k in sorted(structure)))
    if isinstance(structure, list | tuple):
        return (type(structure), tuple(_structure_key(x) for x in structure))
    return None if _core.is_tensor(structure) else type(structure)


class Signature:
    """How a function is called: its parameters, and the specifications its arguments must fit, if there are any."""

    def __init__(self, function: Callable[..., Any], input_signature: Any) -> None:
        self.input_signature = None if input_signature is None else tuple(input_signature)
        try:
            self._parameters = inspect.signature(function)
        except (TypeError, ValueError):
            self._parameters = None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallSignature:
        """The signature of a call with these arguments; defaults filled in."""
        if self._parameters is not None and (kwargs or len(args) != len(self._parameters.parameters)):
            bound = self._parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        return CallSignature(args, kwargs)
