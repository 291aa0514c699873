"""`tf.experimental.ExtensionType`: classes of a program's own whose objects consist of tensors and plain values."""

from __future__ import annotations

import inspect
import sys
import typing
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, cast

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import lazy_members, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.extension.extension_fields import (
    ImmutableDict,
    check_annotation,
    convert_field,
    convert_spec_field,
    resolved,
)
from tapeflow._src.types import spec_names
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec

_EMPTY = inspect.Parameter.empty
_MUTABLE = {"_keras_mask"}  # Keras hands the mask of a value on in this attribute


def _map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """A field with `change` applied to what is neither a tuple nor a dictionary."""
    if isinstance(value, tuple):
        return tuple(_map_leaves(change, x) for x in value)
    if isinstance(value, Mapping):
        return ImmutableDict({key: _map_leaves(change, x) for key, x in value.items()})
    return change(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for x in value:
            yield from _leaves(x)
    elif isinstance(value, Mapping):
        for x in value.values():
            yield from _leaves(x)
    else:
        yield value


def _spec_of(value: Any) -> Any:
    """What is known of a leaf: the spec of a tensor, and of others they themselves."""
    if isinstance(value, CompositeTensor):
        return value._type_spec
    return TensorSpec(value.shape, value.dtype) if _core.is_tensor(value) else value


def _trace_key(kind: type, fields: dict[str, Any]) -> Any:
    """What two objects must have in common to share a trace, besides the dtypes and shapes of their tensors."""

    def key(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(key(x) for x in value)
        if isinstance(value, Mapping):
            return tuple((name, key(x)) for name, x in value.items())
        if hasattr(value, "_trace_key"):
            return value._trace_key
        if _is_component(value) or isinstance(value, TypeSpec):
            return getattr(value, "value_type", type(value))
        return type(value), value

    return kind, tuple((name, key(value)) for name, value in fields.items())


def _is_component(value: Any) -> bool:
    return _core.is_tensor(value) or isinstance(value, CompositeTensor)


@public("experimental.ExtensionTypeSpec")
class ExtensionTypeSpec(TypeSpec):
    """The spec of an extension type: specs for its tensors, and its plain values.

    >>> class Point(tf.experimental.ExtensionType):
    ...     x: tf.Tensor
    >>> Point.Spec(tf.TensorSpec([2]))
    Point.Spec(x=TensorSpec(shape=(2,), dtype=tf.float32, name=None))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(self.value_type._fields)
        given = {**dict(zip(names, args)), **kwargs}
        defaults = {name: d for name in names if (d := getattr(self.value_type, name, _EMPTY)) is not _EMPTY}
        missing = [name for name in names if name not in given and name not in defaults]
        unknown = [name for name in given if name not in names]
        if missing or unknown or len(args) > len(names):
            what = f"missing a required argument: {missing[0]!r}" if missing else f"got unexpected arguments: {unknown}"
            raise TypeError(f"{type(self).__qualname__}: {what}")
        for name in names:
            value = convert_spec_field(self.value_type._fields[name], given.get(name, defaults.get(name)))
            object.__setattr__(self, name, _map_leaves(lambda x: x, value))

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of an object."""
        return cls._of_fields({name: _map_leaves(_spec_of, getattr(value, name)) for name in cls.value_type._fields})

    @classmethod
    def _of_fields(cls, value_by_name: dict[str, Any]) -> Any:
        """A spec with these fields, whatever a constructor of the program's own would take."""
        made = object.__new__(cls)
        for name, value in value_by_name.items():
            object.__setattr__(made, name, value)
        return made

    def _fields_of_spec(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.value_type._fields}

    def _serialize(self) -> tuple[Any, ...]:
        return tuple(self._fields_of_spec().items())

    @property
    def _trace_key(self) -> Any:
        return _trace_key(self.value_type, self._fields_of_spec())

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return cls._of_fields({name: _map_leaves(lambda x: x, value) for name, value in serialization})

    @property
    def _component_specs(self) -> list[Any]:
        leaves = (leaf for value in self._fields_of_spec().values() for leaf in _leaves(value))
        return [leaf for leaf in leaves if isinstance(leaf, TypeSpec)]

    def _to_components(self, value: Any) -> list[Any]:
        leaves = (leaf for name in self.value_type._fields for leaf in _leaves(getattr(value, name)))
        return [leaf for leaf in leaves if _is_component(leaf)]

    def _from_components(self, components: Any) -> Any:
        rest = iter(components)
        fill = lambda leaf: next(rest) if isinstance(leaf, TypeSpec) else leaf  # noqa: E731
        return self.value_type._of_fields({n: _map_leaves(fill, v) for n, v in self._fields_of_spec().items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of_fields, (self._fields_of_spec(),)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._fields_of_spec().items())
        return f"{type(self).__qualname__}({shown})"


class _Kind(type):
    """Makes the fields, the constructor and the spec of each class, and finishes each object."""

    _pending: Any = None  # what a class is made of that names others which are not there yet

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        cls = super().__new__(mcs, name, bases, space)
        if name not in cls._abstract_names:
            place = sys._getframe(1)
            names = ChainMap({name: cls}, place.f_locals, place.f_globals)
            try:
                cls._prepare(space, dict(names))
            except NameError:  # a class that comes later: it must be there when the first object is made
                cls._pending = space, names
        return cls

    def _prepare_now(cls) -> None:
        """Makes the fields of a class that names others which were not there yet."""
        space, names = cls._pending
        try:
            cls._prepare(space, dict(names))
        except NameError as error:
            raise TypeError(f"{cls.__name__}: an annotation names something that is not there: {error}") from None
        cls._pending = None

    def __getattr__(cls, name: str) -> Any:
        if name == "Spec" and cls.__dict__.get("_pending") is not None:
            cls._prepare_now()
            return cls.Spec
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_pending") is not None:
            cls._prepare_now()
        made = super().__call__(*args, **kwargs)
        made._finish()
        return made


@public("experimental.ExtensionType")
@lazy_members(
    "tapeflow._src.ops.extension.api_dispatch.ReflectedOperators",
    *("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rpow__", "__rfloordiv__", "__rmod__", "__rand__"),
    *("__ror__", "__rxor__", "__rmatmul__"),
)
class ExtensionType(CompositeTensor, metaclass=_Kind):
    """A class whose annotated fields are tensors, other values of tensors, or plain values; objects cannot be changed.

    Objects go in and out of `tf.function`, loops and branches, and gradients flow through their tensors.

    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    ...     def total(self):
    ...         return tf.reduce_sum(tf.where(self.mask, self.values, 0.))
    >>> Masked([1., 2.], [True, False]).total()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    _abstract_names: ClassVar[set[str]] = {"ExtensionType", "BatchableExtensionType"}
    _spec_base: ClassVar[type] = ExtensionTypeSpec
    _fields: ClassVar[dict[str, Any]] = {}

    @classmethod
    def _prepare(cls, space: dict[str, Any], names: dict[str, Any]) -> None:
        # Annotations may be texts, which mean what they mean where the class stands.
        own = inspect.get_annotations(cls, globals=names, locals=names, eval_str=True)
        own = {name: resolved(annotation, names) for name, annotation in own.items()}
        cls._fields = {
            name: a for base in reversed(cls.__mro__[1:]) for name, a in getattr(base, "_fields", {}).items()
        }
        cls._fields.update({name: a for name, a in own.items() if cast(Any, typing.get_origin(a)) is not ClassVar})
        for name, annotation in cls._fields.items():
            check_annotation(name, annotation)
            if name in cls.__dict__ or getattr(cls, name, _EMPTY) is not _EMPTY:
                default = getattr(cls, name)
                setattr(cls, name, convert_field(f"default value for {name}", annotation, default))
        if "__init__" not in space and cls.__init__ in (object.__init__, *cls._made_constructors):
            cls.__init__ = cls._constructor()  # type: ignore[method-assign]
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        given = space.get("Spec")
        bases = (given, cls._spec_base) if given is not None else (cls._spec_base,)
        spec = type("Spec", bases, {"value_type": cls, "__module__": cls.__module__})
        spec.__qualname__ = f"{cls.__qualname__.rpartition('.')[2]}.Spec"
        cls.Spec = spec  # type: ignore[attr-defined]
        if "__name__" in space:  # the name under which signatures of SavedModels know the spec
            spec_names.register(f"{space['__name__']}.Spec")(spec)

    _made_constructors: ClassVar[list[Any]] = []

    @classmethod
    def _constructor(cls) -> Callable[..., None]:
        """`__init__` with the fields as parameters, those without a default first come first."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(n, kind, default=getattr(cls, n, _EMPTY), annotation=a) for n, a in cls._fields.items()
        ]
        seen_default = False
        for place, parameter in enumerate(parameters):
            seen_default = seen_default or parameter.default is not _EMPTY
            if seen_default and parameter.default is _EMPTY:
                parameters[place] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters.sort(key=lambda p: p.kind)
        signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *parameters])

        def construct(*args: Any, **kwargs: Any) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            made = bound.arguments.pop("self")
            for name, value in bound.arguments.items():
                object.__setattr__(made, name, value)

        construct.__name__ = "__init__"
        construct.__signature__ = signature  # type: ignore[attr-defined]
        cls._made_constructors.append(construct)
        return construct

    @classmethod
    def _of_fields(cls, value_by_name: dict[str, Any]) -> Any:
        """An object with these fields, as they are."""
        made = object.__new__(cls)
        made.__dict__.update(value_by_name)
        made.__dict__["_frozen"] = True
        return made

    def _finish(self) -> None:
        cls = type(self)
        for name, annotation in cls._fields.items():
            value = getattr(self, name, _EMPTY)
            if value is _EMPTY:
                raise AttributeError(f"`{cls.__name__}.__init__` did not set the field {name!r}")
            object.__setattr__(self, name, convert_field(name, annotation, value))
        strange = [name for name in self.__dict__ if name not in cls._fields]
        if strange:
            raise AttributeError(f"`{cls.__name__}.__init__` set {strange}, which are no fields")
        self.__dict__["_frozen"] = True
        self.__validate__()

    def __validate__(self) -> None:
        """Raises for fields that do not go together; a subclass may say so."""

    def __setattr__(self, name: str, value: Any) -> None:
        self._check_unfrozen(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._check_unfrozen(name)
        object.__delattr__(self, name)

    def _check_unfrozen(self, name: str) -> None:
        if self.__dict__.get("_frozen") and name not in _MUTABLE:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")

    @property
    def _type_spec(self) -> Any:
        return type(self).Spec.from_value(self)

    @property
    def _trace_key(self) -> Any:
        return _trace_key(type(self), {name: getattr(self, name) for name in type(self)._fields})

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self)._fields)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> Any:
        """A boolean tensor: whether all fields and all their elements are equal."""
        if type(self) is not type(other):
            return False
        spec = self._type_spec
        if spec != other._type_spec:
            return False
        result: Any = convert_to_tensor(True)
        for a, b in zip(spec._to_tensor_list(self), spec._to_tensor_list(other)):
            result = primitives.LogicalAnd(result, primitives.All(primitives.Equal(a, b)))
        return result

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return not equal if isinstance(equal, bool) else primitives.LogicalNot(equal)

    __hash__ = None  # type: ignore[assignment]


@public("experimental.extension_type.as_dict")
def as_dict(value: Any) -> dict[str, Any]:
    """The fields of an object by name.

    >>> class Point(tf.experimental.ExtensionType):
    ...     x: tf.Tensor
    >>> tf.experimental.extension_type.as_dict(Point(3.))
    {'x': <tf.Tensor: shape=(), dtype=float32, numpy=3.0>}
    """
    return {name: getattr(value, name) for name in type(value)._fields}


# --------------------------------------------------------------------------------------------------------- in batches


@public("experimental.ExtensionTypeBatchEncoder")
class ExtensionTypeBatchEncoder:
    """How objects are put into batches: each field gets a new first dimension.

    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    >>> tf.experimental.ExtensionTypeBatchEncoder().batch(Point.Spec(tf.TensorSpec([3])), 2).x.shape
    TensorShape([2, 3])
    """

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The spec of `batch_size` objects together."""
        return self._changed(spec, lambda part: part._batch(batch_size))

    def unbatch(self, spec: Any) -> Any:
        """The spec of one object of a batch."""
        return self._changed(spec, lambda part: part._unbatch())

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> list[Any]:
        """The tensors of an object, which can be stacked."""
        found: list[Any] = spec._to_components(value)
        return found

    def decode(self, spec: Any, encoded_value: Any) -> Any:
        """The object of which these are the tensors."""
        return spec._from_components(encoded_value)

    def encoding_specs(self, spec: Any) -> list[Any]:
        """The specs of the tensors of an object."""
        found: list[Any] = spec._component_specs
        return found

    @staticmethod
    def _changed(spec: Any, change: Callable[[Any], Any]) -> Any:
        leaf = lambda part: change(part) if isinstance(part, TypeSpec) else part  # noqa: E731
        return spec._of_fields({name: _map_leaves(leaf, value) for name, value in spec._fields_of_spec().items()})


class BatchableExtensionTypeSpec(ExtensionTypeSpec):
    """The spec of an extension type whose objects form batches."""

    @property
    def _encoder(self) -> Any:
        return getattr(self.value_type, "__batch_encoder__", None) or ExtensionTypeBatchEncoder()

    def _encoded(self, value: Any) -> list[Any]:
        """The tensors of an object, which can be stacked."""
        found: list[Any] = self._encoder.encode(self, value)
        return found

    def _decoded(self, tensors: list[Any]) -> Any:
        """The object of which these are the tensors."""
        return self._encoder.decode(self, tensors)

    def _batch(self, batch_size: int | None) -> Any:
        return self._encoder.batch(self, batch_size)

    def _unbatch(self) -> Any:
        return self._encoder.unbatch(self)


@public("experimental.BatchableExtensionType")
class BatchableExtensionType(ExtensionType):
    """An extension type whose objects can be put into batches, as `tf.map_fn` and data sets do.

    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    >>> Point([1., 2.])
    Point(x=<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)
    """

    _spec_base: ClassVar[type] = BatchableExtensionTypeSpec
