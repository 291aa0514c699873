"""The kinds of containers that structures are made of: how their values are found and put back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, MappingView, Sequence
from typing import Any, cast

from tapeflow._src.namespace import public

# How the values of one kind of container are found and put back. It depends on the class alone, so it is kept by class.
LEAF, SEQUENCE, NAMEDTUPLE, MAPPING, VIEW, ATTRS, CUSTOM, COMPOSITE, SPEC = range(9)
EXPANDED = (COMPOSITE, SPEC)  # containers only if `expand_composites` is given
kind_by_class: dict[type, int] = {list: SEQUENCE, tuple: SEQUENCE, dict: MAPPING}
KEPT_CLASSES = 4096  # programs that make classes without end shall not fill the memory


def _find_kind(cls: type) -> int:
    if issubclass(cls, (str, bytes)):
        kind = LEAF
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        kind = NAMEDTUPLE
    elif issubclass(cls, Mapping):
        kind = MAPPING
    elif issubclass(cls, MappingView):
        kind = VIEW
    elif issubclass(cls, Sequence):
        kind = SEQUENCE
    elif hasattr(cls, "__attrs_attrs__"):
        kind = ATTRS
    elif hasattr(cls, "__tf_flatten__") and hasattr(cls, "__tf_unflatten__"):
        kind = CUSTOM
    elif hasattr(cls, "_type_spec"):
        kind = COMPOSITE
    elif hasattr(cls, "_component_specs"):
        kind = SPEC
    else:
        kind = LEAF
    if len(kind_by_class) >= KEPT_CLASSES:
        for old in list(kind_by_class)[3:]:
            del kind_by_class[old]
    kind_by_class[cls] = kind
    return kind


def kind_of(value: Any, expand_composites: bool) -> int:
    cls = type(value)
    kind = kind_by_class.get(cls)
    if kind is None:
        kind = _find_kind(cls)
    if kind < COMPOSITE:
        return kind
    if not expand_composites or (kind == SPEC and value._component_specs is value):
        return LEAF
    return kind


def items_of(value: Any, kind: int) -> Iterator[tuple[Any, Any]]:
    """The children of a container with the step of the path that leads to each, in flattening order."""
    if kind == MAPPING:
        for key in sorted(value):
            yield key, value[key]
    elif kind == NAMEDTUPLE:
        yield from zip(value._fields, value)
    elif kind == ATTRS:
        for attribute in type(value).__attrs_attrs__:
            yield attribute.name, getattr(value, attribute.name)
    elif kind in EXPANDED:
        yield type(value).__name__, components_of(value, kind)
    else:
        yield from enumerate(children_of(value, kind))


def children_of(value: Any, kind: int) -> Sequence[Any]:
    if kind in (SEQUENCE, NAMEDTUPLE):
        result: Sequence[Any] = value
        return result
    if kind == MAPPING:
        return [value[key] for key in sorted(value)]
    if kind == CUSTOM:
        return cast(Sequence[Any], value.__tf_flatten__()[1])
    if kind == VIEW:
        return list(value)
    return [child for _, child in items_of(value, kind)]


def components_of(value: Any, kind: int) -> Any:
    return value._type_spec._to_components(value) if kind == COMPOSITE else value._component_specs


def rebuild(instance: Any, kind: int, children: Sequence[Any]) -> Any:
    """A container like `instance` around other children, which stand in flattening order."""
    cls = type(instance)
    if kind == SEQUENCE:
        return list(children) if cls is list or cls is range else cls(children)
    if kind == NAMEDTUPLE:
        return cls(*children)
    if kind == MAPPING:
        return rebuild_mapping(instance, dict(zip(sorted(instance), children)))
    if kind == VIEW:
        return list(children)
    if kind == ATTRS:
        names = (attribute.name for attribute in cls.__attrs_attrs__)
        return cls(**{name.lstrip("_"): child for name, child in zip(names, children)})
    if kind == CUSTOM:
        metadata, _ = instance.__tf_flatten__()
        return instance.__tf_unflatten__(metadata, tuple(children))  # a class method, or a method
    if kind == COMPOSITE:
        return instance._type_spec._from_components(children[0])
    if kind == SPEC:
        return instance._from_components(children[0])
    return cls(children)


def rebuild_mapping(instance: Any, value_by_key: dict[Any, Any]) -> Any:
    cls = type(instance)
    if cls is dict:  # below as here: the order of insertion, not of flattening
        return {key: value_by_key[key] for key in instance}
    ordered = ((key, value_by_key[key]) for key in instance)
    if isinstance(instance, defaultdict):
        return cls(instance.default_factory, ordered)
    try:
        return cls(ordered)
    except TypeError as error:
        raise TypeError(
            f"Error creating an object of type {cls} like {instance}. Note that it must accept a single positional "
            f"argument representing an iterable of key-value pairs, in addition to self. Cause: {error}"
        ) from error


@public("__internal__.nest.is_mapping")
def is_mapping(structure: Any) -> bool:
    """Whether `structure` is a dictionary or another mapping.

    >>> tf.__internal__.nest.is_mapping({"a": 1})
    True
    """
    return isinstance(structure, Mapping)


@public("__internal__.nest.is_attrs")
def is_attrs(structure: Any) -> bool:
    """Whether `structure` is an instance of a class made by `attrs`.

    >>> tf.__internal__.nest.is_attrs([1])
    False
    """
    return hasattr(type(structure), "__attrs_attrs__")


def is_namedtuple(structure: Any, strict: bool = False) -> bool:
    """Whether `structure` is a named tuple; if `strict`, of a class without further bases."""
    return kind_of(structure, False) == NAMEDTUPLE and (not strict or type(structure).__base__ is tuple)


def same_namedtuples(first: Any, second: Any) -> bool:
    """Whether two named tuples have the same class name and the same fields."""
    return type(first).__name__ == type(second).__name__ and first._fields == second._fields


@public("__internal__.nest.sequence_like")
def sequence_like(instance: Any, args: Sequence[Any]) -> Any:
    """A container like `instance` with other children, which stand in flattening order.

    >>> tf.__internal__.nest.sequence_like({"b": 0, "a": 0}, [1, 2])
    {'b': 2, 'a': 1}
    """
    return rebuild(instance, kind_of(instance, True), list(args))
