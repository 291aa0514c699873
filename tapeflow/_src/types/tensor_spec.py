"""Type specs: what is known of a value, its class, shapes and dtypes, without the value; tracing belongs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype, float32
from tapeflow._src.types.tensor_shape import TensorShape, as_shape, unknown_shape


@public("__internal__.CompositeTensor")
class CompositeTensor:
    """A value that consists of several tensors; its `_type_spec` takes it apart and puts it together.

    >>> issubclass(tf.SparseTensor, tf.__internal__.CompositeTensor)
    True
    """

    @property
    def _type_spec(self) -> TypeSpec:
        raise NotImplementedError(f"{type(self).__name__}._type_spec")

    def _convert_variables_to_tensors(self) -> Any:
        """The same value with tensors in place of its variables; a class that holds variables says how."""
        return self

    def _shape_invariant_to_type_spec(self, shape: Any) -> TypeSpec:
        """The spec of a loop variable of this class whose shape is known as `shape` only."""
        raise NotImplementedError(f"{type(self).__name__}._shape_invariant_to_type_spec")

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Hands on the tensors that the value consists of; other operations are for its class to define."""
        given = {"input": args[0], **kwargs} if args else kwargs
        if function not in (primitives.Identity, primitives.StopGradient) or given["input"] is not self:
            return NotImplemented
        return nest.map_structure(function, self, expand_composites=True)


class ValuesTensor(CompositeTensor):
    """A composite whose elements are one tensor, `_values`, beside tensors that say where they stand."""

    _values: Any

    @property
    def dtype(self) -> DType:
        """The `tf.DType` of the elements."""
        dtype: DType = self._values.dtype
        return dtype

    @property
    def op(self) -> Any:
        """The operation that made the values."""
        return self._values.op

    @property
    def graph(self) -> Any:
        """The graph to which the tensors belong."""
        return self._values.graph

    def consumers(self) -> list[Any]:
        """The operations of a graph that use the values."""
        consumers: list[Any] = self._values.consumers()
        return consumers


@public("TypeSpec")
class TypeSpec:
    """What is known of a value before it exists; two specs are equal if their class and `_serialize()` are.

    A subclass gives `value_type`, `_serialize`, `_component_specs`, `_to_components` and `_from_components`.
    """

    value_type: Any = None
    _component_specs: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> TypeSpec:
        if cls is TypeSpec:
            raise TypeError("Can't instantiate abstract class TypeSpec; use tf.TensorSpec or another subclass.")
        return super().__new__(cls)

    def _serialize(self) -> tuple[Any, ...]:
        """The arguments that make this spec again."""
        raise NotImplementedError(f"{type(self).__name__}._serialize")

    def _to_components(self, value: Any) -> Any:
        """The tensors, in a structure like `_component_specs`, of which `value` consists."""
        raise NotImplementedError(f"{type(self).__name__}._to_components")

    def _from_components(self, components: Any) -> Any:
        """The value that consists of these components."""
        raise NotImplementedError(f"{type(self).__name__}._from_components")

    @classmethod
    def _deserialize(cls, serialization: Sequence[Any]) -> Any:
        return cls(*serialization)

    @property
    def _flat_tensor_specs(self) -> list[TypeSpec]:
        return nest.flatten(self._component_specs, expand_composites=True)

    def _to_tensor_list(self, value: Any) -> list[Any]:
        return nest.flatten(self._to_components(value), expand_composites=True)

    def _from_tensor_list(self, tensors: Sequence[Any]) -> Any:
        components = nest.pack_sequence_as(self._component_specs, list(tensors), expand_composites=True)
        return self._from_components(components)

    _from_compatible_tensor_list = _from_tensor_list

    def flatten(self) -> list[TypeSpec]:
        """The specs of the tensors that a value consists of.

        >>> tf.SparseTensorSpec([2]).flatten()[1]
        TensorSpec(shape=(None,), dtype=tf.float32, name=None)
        """
        return nest.flatten(self, expand_composites=True)

    def to_tensors(self, value: Any) -> list[Any]:
        """The tensors that a value consists of, in the order of `flatten`."""
        if not self.is_compatible_with(value):
            raise TypeError(f"Can not cast {value!r} to {self!r}")
        return nest.flatten(value, expand_composites=True)

    def from_tensors(self, tensors: Iterator[Any]) -> Any:
        """The value that consists of the next tensors, in the order of `flatten`."""
        found = [next(tensors) for _ in self.flatten()]
        return nest.pack_sequence_as(self, found, expand_composites=True)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or each value of another spec, may stand where this spec is asked for.

        >>> tf.TensorSpec([None, 3]).is_compatible_with(tf.TensorSpec([2, 3]))
        True
        """
        other = _as_spec(spec_or_value)
        if type(other) is not type(self):
            return False
        return _all_compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        """Whether each value of this spec is a value of `other`."""
        return type(other) is type(self) and _all_subtypes(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest spec for the values of this and all other specs, or None.

        >>> tf.TensorSpec([2, 3]).most_specific_common_supertype([tf.TensorSpec([2, 4])])
        TensorSpec(shape=(2, None), dtype=tf.float32, name=None)
        """
        if any(type(other) is not type(self) for other in others):
            return None
        try:
            common = _common_supertype(self._serialize(), [other._serialize() for other in others])
        except _NothingCommonError:
            return None
        return self._deserialize(common)

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The narrowest spec for the values of both; ValueError if there is none."""
        common = self.most_specific_common_supertype([other]) if isinstance(other, TypeSpec) else None
        if common is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return common

    def _without_tensor_names(self) -> Any:
        """This spec with the name of each tensor removed."""

        def forget_name(part: Any) -> Any:
            return part._without_tensor_names() if isinstance(part, TypeSpec) else part

        return self._deserialize(nest.map_structure(forget_name, self._serialize()))

    def _with_tensor_ranks_only(self) -> Any:
        """This spec with each size unknown."""

        def forget_sizes(part: Any) -> Any:
            if isinstance(part, TypeSpec):
                return part._with_tensor_ranks_only()
            return unknown_shape(part.rank) if isinstance(part, TensorShape) else part

        return self._deserialize(nest.map_structure(forget_sizes, self._serialize()))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _freeze(self._serialize()) == _freeze(other._serialize())

    def __hash__(self) -> int:
        return hash((type(self), _freeze(self._serialize())))

    # Specs of TensorFlow Probability compare what they serialize under these names.

    def _TypeSpec__make_cmp_key(self, value: Any) -> Any:  # noqa: N802
        return _freeze(value)

    @staticmethod
    def _TypeSpec__is_compatible(a: Any, b: Any) -> bool:  # noqa: N802
        return _all_compatible(a, b)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._serialize()


class BatchableTypeSpec(TypeSpec):
    """A spec whose values can be stacked: a subclass gives `_batch(batch_size)` and `_unbatch()`."""


class ShapedSpec(TypeSpec):
    """A spec of values with one shape and one dtype."""

    _shape: TensorShape
    _dtype: DType

    @property
    def shape(self) -> TensorShape:
        """The `tf.TensorShape`, with None for unknown and ragged dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The `tf.DType` of the elements."""
        return self._dtype


class DenseSpec(ShapedSpec):
    """A spec with one shape and one dtype, and perhaps a name."""

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @property
    def name(self) -> str | None:
        """The name of the tensor, or None."""
        return self._name

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


@public("TensorSpec")
class TensorSpec(DenseSpec, BatchableTypeSpec):
    """The shape, the dtype and perhaps the name of a tensor.

    >>> tf.TensorSpec([None, 2], "int32", name="x")
    TensorSpec(shape=(None, 2), dtype=tf.int32, name='x')
    """

    value_type = _core.Tensor

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> Any:
        """The spec of a tensor that exists."""
        if not isinstance(tensor, _core.Tensor):
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> Any:
        """A spec like another one, perhaps under a new name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def _component_specs(self) -> Any:
        return self

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or each tensor of another spec, fits shape and dtype; names do not matter."""
        if not isinstance(spec_or_tensor, (TensorSpec, _core.Tensor, _core.Variable)):
            return False
        return self._dtype.is_compatible_with(spec_or_tensor.dtype) and self._shape.is_compatible_with(
            spec_or_tensor.shape
        )

    def is_subtype_of(self, other: Any) -> bool:
        """Whether each tensor of this spec is one of `other`; a name is a subtype of itself and of no name's need."""
        return (
            type(other) is type(self)
            and (self._name is None or self._name == other._name)
            and self._shape.is_subtype_of(other._shape)
            and self._dtype is other._dtype
        )

    def _without_tensor_names(self) -> Any:
        return type(self)(self._shape, self._dtype)

    def _batch(self, batch_size: int | None) -> TensorSpec:
        return TensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> TensorSpec:
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(self._shape[1:], self._dtype)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and self._shape == other._shape
            and self._dtype is other._dtype
            and self._name == other._name
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))


class BoundedTensorSpec(TensorSpec):
    """A `TensorSpec` that also holds the smallest and the largest value of the elements."""

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None) -> None:
        super().__init__(shape, dtype, name)
        for bound, value in (("minimum", minimum), ("maximum", maximum)):
            if value is None:
                raise ValueError(f"`{bound}` can not be None.")
            if not _broadcasts(np.shape(value), self._shape):
                raise ValueError(f"`{bound}` {value} is not compatible with shape {self._shape}.")
        self._minimum = np.array(minimum, self._dtype.as_numpy_dtype)
        self._maximum = np.array(maximum, self._dtype.as_numpy_dtype)
        self._minimum.setflags(write=False)
        self._maximum.setflags(write=False)

    @property
    def minimum(self) -> np.ndarray:
        """The smallest value, or one for each element."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray:
        """The largest value, or one for each element."""
        return self._maximum

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> Any:
        """A spec like another one, whose bounds, if it has none, are those of the dtype."""
        dtype = as_dtype(spec.dtype)  # NumPy's in the specs of environments
        minimum, maximum = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, minimum, maximum, name or spec.name)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._minimum, self._maximum, self._name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and TensorSpec.__eq__(self, other)
            and _near(self._minimum, other._minimum)
            and _near(self._maximum, other._maximum)
        )

    __hash__ = TensorSpec.__hash__

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, minimum={self._minimum!r}, maximum={self._maximum!r})"


def _broadcasts(bound: tuple[int, ...], shape: TensorShape) -> bool:
    """Whether a bound of one shape and elements of another broadcast."""
    if shape.rank is None:
        return True
    pairs = zip(reversed(bound), reversed(shape.as_list()))
    return all(n is None or n == 1 or size in (1, n) for size, n in pairs)


def _near(one: np.ndarray, two: np.ndarray) -> bool:
    return _broadcasts(one.shape, TensorShape(two.shape)) and bool(np.allclose(one, two))


@public("NoneTensorSpec")
class NoneTensorSpec(TypeSpec):
    """The spec of None in a structure of tensors.

    >>> tf.NoneTensorSpec().is_compatible_with(None)
    True
    """

    value_type = type(None)

    @property
    def _component_specs(self) -> Any:
        return []

    def _serialize(self) -> tuple[Any, ...]:
        return ()

    def _to_components(self, value: Any) -> Any:
        return []

    def _from_components(self, components: Any) -> None:
        return None


class VariableSpec(DenseSpec):
    """The shape and the dtype of a `tf.Variable`, and whether it is trained."""

    value_type = _core.Variable

    def __init__(self, shape: Any, dtype: Any = float32, trainable: bool = True, alias_id: int | None = None) -> None:
        super().__init__(shape, dtype)
        self.trainable = trainable
        self.alias_id = alias_id

    @classmethod
    def from_value(cls, value: Any) -> VariableSpec:
        """The spec of a variable that exists."""
        return cls(value.shape, value.dtype, value.trainable)

    @property
    def _component_specs(self) -> Any:
        return self

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.trainable, self.alias_id

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, "
            f"trainable={self.trainable!r}, alias_id={self.alias_id!r})"
        )


@public("type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, of a value that consists of tensors, or of what can become a tensor.

    >>> tf.type_spec_from_value([1, 2])
    TensorSpec(shape=(2,), dtype=tf.int32, name=None)
    """
    spec = _find_spec(value)
    if spec is not None:
        return spec
    try:
        tensor = _core.convert_to_tensor(value, None, None, "type_spec_from_value")
    except (TypeError, ValueError) as error:
        raise TypeError(f"Could not build a TypeSpec for {value} of unsupported type {type(value)}.") from error
    return TensorSpec(tensor.shape, tensor.dtype)


_spec_makers: list[tuple[type, Any, bool]] = []  # for types of libraries: the type, what gives the spec, exactly it


def register_type_spec_from_value_converter(type_object: type, converter_fn: Any, allow_subclass: bool = False) -> None:
    """Says how the spec of a value of a type is found; the last registration that fits is used."""
    _spec_makers.append((type_object, converter_fn, allow_subclass))


def _find_spec(value: Any) -> TypeSpec | None:
    """The spec of a value that needs no conversion, else None."""
    for kind, make, allow_subclass in reversed(_spec_makers):
        if type(value) is kind or (allow_subclass and isinstance(value, kind)):
            found: TypeSpec = make(value)
            return found
    if isinstance(value, _core.Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, _core.Variable):
        return VariableSpec.from_value(value)
    if value is None:
        return NoneTensorSpec()
    spec = getattr(value, "_type_spec", None)
    return spec if isinstance(spec, TypeSpec) else None


def _as_spec(spec_or_value: Any) -> TypeSpec | None:
    return spec_or_value if isinstance(spec_or_value, TypeSpec) else _find_spec(spec_or_value)


# Serializations are tuples, lists and mappings of shapes, dtypes, specs and plain values. The functions below walk
# two of them side by side: shapes, dtypes and specs answer for themselves, plain values must be equal.


class _NothingCommonError(Exception):
    """The parts of two specs have no common supertype."""


def _pairs(first: Any, second: Any) -> list[tuple[Any, Any]] | None:
    """The children of two containers of one kind side by side; None if they are not alike."""
    if isinstance(first, Mapping):
        if not isinstance(second, Mapping) or first.keys() != second.keys():
            return None
        return [(value, second[key]) for key, value in first.items()]
    if type(first) is not type(second) or len(first) != len(second):
        return None
    return list(zip(first, second))


def _all_compatible(first: Any, second: Any) -> bool:
    if isinstance(first, (TypeSpec, TensorShape, DType)):
        return type(first) is type(second) and first.is_compatible_with(second)
    if isinstance(first, (tuple, list, Mapping)):
        pairs = _pairs(first, second)
        return pairs is not None and all(_all_compatible(a, b) for a, b in pairs)
    return bool(_freeze(first) == _freeze(second))


def _all_subtypes(first: Any, second: Any) -> bool:
    if isinstance(first, (TypeSpec, TensorShape, DType)):
        return first.is_subtype_of(second)
    if isinstance(first, (tuple, list, Mapping)):
        pairs = _pairs(first, second)
        return pairs is not None and all(_all_subtypes(a, b) for a, b in pairs)
    return bool(_freeze(first) == _freeze(second))


def _common_supertype(first: Any, others: Sequence[Any]) -> Any:
    """The narrowest part that fits all; raises `_NothingCommonError`, because None is a value that a part may have."""
    if isinstance(first, (TypeSpec, TensorShape, DType)):
        common = first.most_specific_common_supertype(others)
        if common is None:
            raise _NothingCommonError
        return common
    if isinstance(first, (tuple, list, Mapping)):
        if any(_pairs(first, other) is None for other in others):
            raise _NothingCommonError
        keys = list(first) if isinstance(first, Mapping) else range(len(first))
        children = [_common_supertype(first[key], [other[key] for other in others]) for key in keys]
        return dict(zip(keys, children)) if isinstance(first, Mapping) else type(first)(children)
    if any(_freeze(first) != _freeze(other) for other in others):
        raise _NothingCommonError
    return first


def _freeze(value: Any) -> Any:
    """A hashable equal of a serialization."""
    if isinstance(value, (tuple, list)):
        return tuple([_freeze(part) for part in value])
    if isinstance(value, Mapping):
        return tuple([(key, _freeze(value[key])) for key in sorted(value)])
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return value
