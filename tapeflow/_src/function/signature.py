"""Signatures of calls: which arguments are tensors, and the key under which a graph for such arguments is kept."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from types import MethodType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.function.casting import cast_to_spec
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec, VariableSpec

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LEAVES = (_core.Tensor, *_PLAIN)


class CallSignature:
    """The arguments of one call: their structure, the tensors among them, and the key of its kind.

    `kind` is the key without the shapes: two calls of one kind differ in shapes alone.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        arguments = [list(args), kwargs]
        self.leaves, shape_by_place, self._sparse_shapes = _expanded(arguments)
        self._places, self.tensors, self.tensor_specs = [], [], []
        key: list[Any] = []
        kinds: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, np.ndarray | np.generic):
                leaf = self.leaves[i] = convert_to_tensor(leaf)
            if isinstance(leaf, _core.Tensor | TensorSpec):
                self._places.append(i)
                self.tensors.append(leaf)
                name = leaf.name if isinstance(leaf, TensorSpec) else None
                shape = shape_by_place.get(i, leaf.shape)
                self.tensor_specs.append(TensorSpec(shape, leaf.dtype, name))
                key.append((leaf.dtype, None if shape.rank is None else tuple(shape)))
                kinds.append(leaf.dtype)
            else:
                key.append(_key_of(leaf))
                kinds.append(key[-1])
        structure = structure_key(arguments)
        key += [None if shape.rank is None else tuple(shape) for shape in self._sparse_shapes]
        if any(spec.name is not None for spec in self.tensor_specs):
            key.append(tuple([spec.name for spec in self.tensor_specs]))
        self.key, self.kind = (structure, tuple(key)), (structure, tuple(kinds))

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the tensors, then those that sparse tensors stand for."""
        return [*(spec.shape for spec in self.tensor_specs), *self._sparse_shapes]

    def with_tensors(self, tensors: list[Any]) -> tuple[Any, Any]:
        """The arguments with other tensors in place of these."""
        leaves = [_stand_in(leaf) for leaf in self.leaves]
        for place, tensor in zip(self._places, tensors):
            leaves[place] = tensor
        args, kwargs = nest.pack_sequence_as([list(self.args), self.kwargs], leaves, expand_composites=True)
        return tuple(args), kwargs

    def with_shapes(self, shapes: list[TensorShape]) -> CallSignature:
        """A call of the same kind for other shapes."""
        count = len(self.tensor_specs)
        specs = iter([TensorSpec(shape, spec.dtype, spec.name) for shape, spec in zip(shapes, self.tensor_specs)])
        sparse_shapes = iter(shapes[count:])

        def relaxed(leaf: Any) -> Any:
            if isinstance(leaf, _core.Tensor | TensorSpec | np.ndarray | np.generic):
                return next(specs)
            kind = getattr(leaf, "_type_spec", leaf)
            if not isinstance(kind, TypeSpec):
                return leaf
            parts = [next(specs) for part in nest.flatten(kind, expand_composites=True) if isinstance(part, TensorSpec)]
            if isinstance(kind, SparseTensorSpec):
                return SparseTensorSpec(next(sparse_shapes), kind.dtype)
            if isinstance(kind, RaggedTensorSpec) and kind.ragged_rank and kind.shape.rank:
                flat, splits = parts[:2]
                rows = None if splits.shape[0] is None else splits.shape[0] - 1
                shape = [rows, *kind.shape[1 : kind.ragged_rank + 1], *flat.shape[1:]]
                return RaggedTensorSpec(shape, kind.dtype, kind.ragged_rank, kind.row_splits_dtype)
            return _with_parts(kind, parts)

        args, kwargs = nest.map_structure(relaxed, [list(self.args), self.kwargs])
        return CallSignature(tuple(args), kwargs)

    def covers(self, other: CallSignature) -> bool:
        """Whether a graph for this call can run the other one."""
        return (
            self.kind == other.kind
            and all(map(_covers, self.shapes, other.shapes))
            and all(b.name in (None, a.name) for a, b in zip(self.tensor_specs, other.tensor_specs))
        )

    def described(self, names: list[str] | None = None) -> tuple[Any, Any]:
        """The arguments with a specification for each tensor, named after the arguments if names are given."""

        def describe(value: Any, name: str | None) -> Any:
            if isinstance(value, Mapping) or (isinstance(value, list | tuple) and value):
                keys = list(value) if isinstance(value, Mapping) else range(len(value))
                parts = [describe(value[k], None if name is None else f"{name}_{k}") for k in keys]
                if isinstance(value, Mapping):
                    return dict(zip(keys, parts))
                return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
            if isinstance(value, weakref.ref):
                value = value()
            if isinstance(value, np.ndarray | np.generic):
                value = convert_to_tensor(value)
            if isinstance(value, _core.Tensor | TensorSpec):
                own = value.name if isinstance(value, TensorSpec) else None
                return TensorSpec(value.shape, value.dtype, own or name)
            return getattr(value, "_type_spec", value)

        places: Iterator[str | None] = iter(names) if names else itertools.repeat(None)
        args = tuple([describe(value, next(places)) for value in self.args])
        return args, {key: describe(value, next(places)) for key, value in self.kwargs.items()}

    @property
    def outdated(self) -> bool:
        """Whether an object among the arguments does not exist any more, so that no call can be like this one."""
        leaves = nest.flatten([list(self.args), self.kwargs])
        return any(isinstance(leaf, weakref.ref) and leaf() is None for leaf in leaves)

    def without_values(self) -> CallSignature:
        """The kind of the call, without its tensors."""
        kind = copy(self)
        args, kwargs = self.described()
        kind.args = tuple(nest.map_structure(_weakly, list(args)))
        kind.kwargs = nest.map_structure(_weakly, kwargs)
        kind.tensors, kind.leaves = [], []
        return kind


def _expanded(arguments: Any) -> tuple[list[Any], dict[int, TensorShape], list[TensorShape]]:
    """The leaves, the shapes of those that are parts of a composite tensor (its kind says what may vary in them), and
    the shapes that sparse tensors stand for."""
    leaves: list[Any] = []
    shape_by_place: dict[int, TensorShape] = {}
    sparse_shapes: list[TensorShape] = []
    for leaf in nest.flatten(arguments):
        if isinstance(leaf, _LEAVES):
            leaves.append(leaf)
            continue
        parts = nest.flatten(leaf, expand_composites=True)
        if len(parts) == 1 and parts[0] is leaf:
            leaves.append(leaf)
            continue
        kinds = nest.flatten(getattr(leaf, "_type_spec", leaf), expand_composites=True)
        if len(parts) == len(kinds):
            shape_by_place |= {len(leaves) + k: kind.shape for k, kind in enumerate(kinds) if hasattr(kind, "shape")}
        leaves += parts
        if isinstance(leaf, SparseTensor | SparseTensorSpec):
            sparse_shapes.append(leaf.shape)
    return leaves, shape_by_place, sparse_shapes


def _with_parts(kind: TypeSpec, parts: list[TensorSpec]) -> TypeSpec:
    """The kind with other specs for its tensors, where they are what it is made of, as for values of replicas."""
    fields = kind._serialize()
    leaves = nest.flatten(fields)
    own = [leaf for leaf in leaves if isinstance(leaf, TypeSpec)]
    if own != [part for part in nest.flatten(kind, expand_composites=True) if isinstance(part, TensorSpec)]:
        return kind
    rest = iter(parts)
    leaves = [next(rest) if isinstance(leaf, TypeSpec) else leaf for leaf in leaves]
    return kind._deserialize(nest.pack_sequence_as(fields, leaves))  # type: ignore[no-any-return]


def _covers(shape: TensorShape, narrow: TensorShape) -> bool:
    if shape.rank is None:
        return True
    if shape.rank != narrow.rank:
        return False
    return all(a is None or a == b for a, b in zip(shape.as_list(), narrow.as_list()))


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The narrowest shape that covers both."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


class _VariableKey:
    """Equal to the keys of the same variable, as long as it lives; another one may come to lie at its address."""

    __slots__ = ("_hash", "_variable")

    def __init__(self, variable: Any) -> None:
        self._variable, self._hash = weakref.ref(variable), id(variable)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _VariableKey):
            return NotImplemented
        variable = self._variable()
        return variable is not None and other._variable() is variable


def _key_of(leaf: Any) -> Any:
    """What must be equal for two calls to share a graph: a plain value itself, an object weakly."""
    if isinstance(leaf, _PLAIN):
        return (type(leaf), "nan" if leaf != leaf else repr(leaf) if leaf == 0 else leaf)  # -0.0 is not 0.0
    if isinstance(leaf, _core.Variable):
        return _VariableKey(leaf)
    if hasattr(type(leaf), "__tf_tracing_type__"):
        return leaf.__tf_tracing_type__(None)
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"Could not generate a generic TraceType for {leaf!r}. Please verify that it is immutable/hashable. "
            "Otherwise, consider implementing the Tracing Protocol for it."
        ) from None
    if isinstance(leaf, MethodType):
        return leaf
    if isinstance(leaf, weakref.ref):
        raise TypeError(f"weakref input {leaf} not supported for tf.function.")
    try:
        return weakref.ref(leaf)
    except TypeError:
        return (type(leaf), leaf)


def _stand_in(leaf: Any) -> Any:
    """What a function is traced with: an object may say it, all others stand for themselves."""
    if not hasattr(type(leaf), "__tf_tracing_type__"):
        return leaf
    return leaf.__tf_tracing_type__(None).placeholder_value(None)


def _weakly(leaf: Any) -> Any:
    """An object as it is kept beside a graph, which does not keep it alive."""
    if isinstance(leaf, (*_PLAIN, TypeSpec, MethodType)):
        return leaf
    try:
        return weakref.ref(leaf)
    except TypeError:
        return leaf


def structure_key(structure: Any) -> Any:
    """What two structures have in common whose leaves can stand for each other."""
    if isinstance(structure, _LEAVES):
        return None
    if isinstance(structure, Mapping):
        return (type(structure), tuple((k, structure_key(structure[k])) for k in sorted(structure)))
    if isinstance(structure, list | tuple):
        return (type(structure), tuple([structure_key(x) for x in structure]))
    if hasattr(type(structure), "__tf_flatten__"):
        metadata, components = structure.__tf_flatten__()
        return type(structure), _value_key(metadata), tuple([structure_key(x) for x in components])
    if hasattr(type(structure), "__attrs_attrs__"):
        parts = [getattr(structure, attribute.name) for attribute in type(structure).__attrs_attrs__]
        return type(structure), tuple([structure_key(x) for x in parts])
    if isinstance(structure, CompositeTensor) or hasattr(structure, "_type_spec"):
        return type(structure), getattr(structure, "_trace_key", None)
    if isinstance(structure, TypeSpec) and not isinstance(structure, TensorSpec):
        return structure.value_type, getattr(structure, "_trace_key", None)
    return None


def _value_key(value: Any) -> Any:
    """The key of Python values in lists, tuples and dictionaries."""
    return structure_key(value), tuple([_key_of(leaf) for leaf in nest.flatten(value)])


class Signature:
    """How a function is called: its parameters, and the specifications its arguments must fit, if there are any."""

    def __init__(self, function: Callable[..., Any], input_signature: Any) -> None:
        if input_signature is not None and not isinstance(input_signature, list | tuple):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(input_signature)}.")
        self.input_signature = None if input_signature is None else tuple(input_signature)
        if any(isinstance(s, VariableSpec) for s in nest.flatten(list(input_signature or []))):
            raise TypeError(f"input_signature doesn't support VariableSpec, got {input_signature}")
        invalid = [s for s in nest.flatten(list(input_signature or [])) if not isinstance(s, TypeSpec | _core.Variable)]
        if invalid:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec objects, got invalid args "
                f"{invalid} with types {[type(s) for s in invalid]}."
            )
        try:
            self.parameters: Any = inspect.signature(function)
        except (TypeError, ValueError):
            self.parameters = None
        self._specified: CallSignature | None = None
        self._flat = self.input_signature is not None and all(type(s) is TensorSpec for s in self.input_signature)
        self._count = None
        if self.parameters is not None:
            kinds = [p.kind for p in self.parameters.parameters.values()]
            if all(
                kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds
            ):
                self._count = len(kinds)
            if self.input_signature is not None:
                self._check_specifications()

    @property
    def arg_names(self) -> list[str]:
        """The names of the positional parameters."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = () if self.parameters is None else self.parameters.parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind in kinds]

    def _check_specifications(self) -> None:
        parameters = self.parameters.parameters.values()
        positional = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        if positional and positional[0].name == "self":  # it has none: it is bound before the call
            positional = positional[1:]
        many = any(p.kind is p.VAR_POSITIONAL for p in positional)
        specified = self.input_signature or ()
        extra = len(specified) - len(positional)
        for parameter in parameters:
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
                raise TypeError(
                    f"Since input_signature is defined, keyword-only parameter `{parameter.name}` must have a default "
                    "value"
                )
        if extra > 0 and not many:
            raise TypeError(f"input_signature contains {extra} extra type constraints.")
        for parameter in positional[len(specified) :]:
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
                raise TypeError(f"input_signature missing type constraint for {parameter.name}")

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallSignature:
        """The signature of a call with these arguments; defaults filled in, values cast to the specifications."""
        if kwargs or len(args) != self._count:
            args, kwargs = self._bound(args, kwargs)
        if self.input_signature is None:
            return CallSignature(args, kwargs)
        try:
            cast = tuple(map(cast_to_spec, args, self.input_signature))
            if kwargs or len(args) != len(self.input_signature):
                self._check_unspecified(args, kwargs)
        except (TypeError, ValueError) as error:
            raise TypeError(self._failure(str(error), args, kwargs)) from None
        # The specifications stand for the shapes: whatever is given, the graph is the same.
        rest = args[len(self.input_signature) :]
        if rest or kwargs:
            call = CallSignature((*self.input_signature, *rest), kwargs)
        else:
            if self._specified is None:
                self._specified = CallSignature(self.input_signature, {})
            call = copy(self._specified)
        if self._flat and not rest and not kwargs:
            call.tensors = list(cast)
        else:
            call.tensors = CallSignature((*cast, *rest), kwargs).tensors
        return call

    def _check_unspecified(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Arguments without a specification can only be what they are by default."""
        specified = self.input_signature or ()
        count = len(specified)
        if len(args) < count:
            name = self.argument_names(specified, {})[len(args)]
            raise TypeError(f"missing a required argument: '{name}'")
        parameters = self.parameters.parameters
        positional = [p for p in parameters.values() if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if len(args) > max(count, len(positional)):
            raise TypeError("too many positional arguments")
        given = [(p.name, value) for p, value in zip(positional[count:], args[count:])]
        for name, value in (*given, *kwargs.items()):
            if name not in parameters:
                raise TypeError(f"got an unexpected keyword argument '{name}'")
            default = parameters[name].default
            if not _core.is_tensor(default) and not isinstance(default, np.ndarray):
                cast_to_spec(value, default)

    def specified(self) -> CallSignature:
        """The call that the specifications describe."""
        return self.bind(self.input_signature or (), {})

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self.parameters is None:
            return args, kwargs
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(self._failure(str(error), args, kwargs)) from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _failure(self, problem: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return (
            f"Binding inputs to tf.function failed due to `{problem}`. Received args: {args} and kwargs: {kwargs} for "
            f"signature: {self}."
        )

    def __str__(self) -> str:
        if self.parameters is None:
            return "(...)"
        if self.input_signature is None:
            return str(self.parameters)
        parameters = self.parameters.parameters.values()
        parts = [f"{p.name}: {spec_text(spec)}" for p, spec in zip(parameters, self.input_signature)]
        return f"({', '.join(parts)})"

    def argument_names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """One name per argument, as TensorFlow names the inputs of a graph."""
        names: list[str] = []
        if self.parameters is not None:
            for parameter in self.parameters.parameters.values():
                if parameter.kind is parameter.VAR_POSITIONAL:
                    names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
                elif len(names) < len(args):
                    names.append(parameter.name)
        names += [f"arg{i}" for i in range(len(names), len(args))]
        return [*names[: len(args)], *kwargs]


def spec_text(value: Any) -> str:
    """An argument or a result as signatures print it: `TensorSpec(...)`, `Literal[2]`, `Tuple[...]`, `Dict[[...]]`."""
    if isinstance(value, Mapping):
        return "Dict[" + ", ".join(f"[{k!r}, {spec_text(v)}]" for k, v in value.items()) + "]"
    if isinstance(value, list | tuple):
        kind = "List" if isinstance(value, list) else "Tuple"
        return f"{kind}[" + ", ".join(spec_text(v) for v in value) + "]"
    if isinstance(value, TypeSpec):
        return repr(value)
    if isinstance(value, _core.Tensor):
        return repr(TensorSpec(value.shape, value.dtype))
    if isinstance(value, _core.Variable):
        return f"VariableSpec(shape={value.shape}, dtype={value.dtype!r}, trainable={value.trainable}, alias_id=0)"
    if hasattr(value, "_type_spec"):
        return repr(value._type_spec)
    return f"Literal[{value!r}]"
