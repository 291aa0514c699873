"""`tf.nest`: lists, tuples, dictionaries and other containers as trees of values; it knows no tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.containers import (
    COMPOSITE,
    EXPANDED,
    LEAF,
    MAPPING,
    NAMEDTUPLE,
    children_of,
    kind_of,
    rebuild,
    same_namedtuples,
)


@public("nest.is_nested", "compat.v1.nest.is_nested")
def is_nested(structure: Any) -> bool:
    """Whether `structure` is a container whose values `tf.nest` visits.

    >>> tf.nest.is_nested([1]), tf.nest.is_nested("text")
    (True, False)
    """
    return kind_of(structure, False) != LEAF


def is_nested_or_composite(structure: Any) -> bool:
    """Whether `structure` is a container, or a value such as `tf.IndexedSlices` that consists of several tensors."""
    return kind_of(structure, True) != LEAF


@public("nest.flatten", "compat.v1.nest.flatten")
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The values of a structure as a flat list, dictionaries in the order of their sorted keys.

    Args:
        structure: A list, tuple, dict or nested structure of them, or a single leaf.
        expand_composites: Whether ragged and sparse tensors give their parts.

    Returns:
        A list of the leaves.

    >>> tf.nest.flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    values: list[Any] = []
    _flatten_into(values, structure, expand_composites)
    return values


def _flatten_into(values: list[Any], structure: Any, expand_composites: bool) -> None:
    kind = kind_of(structure, expand_composites)
    if kind == LEAF:
        values.append(structure)
    else:
        for child in children_of(structure, kind):
            _flatten_into(values, child, expand_composites)


@public("nest.pack_sequence_as", "compat.v1.nest.pack_sequence_as")
def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """The values of `flat_sequence` in containers like those of `structure`: the inverse of `flatten`.

    >>> tf.nest.pack_sequence_as({"b": [0, 0], "a": (0,)}, [1, 2, 3])
    {'b': [2, 3], 'a': (1,)}
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence}\n"
            f"into a structure, but found incompatible type `{type(flat_sequence)}` instead."
        )
    if kind_of(structure, expand_composites) == LEAF:
        if len(flat_sequence) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {shorten(structure)}\n"
                f"However the input is a sequence ({type(flat_sequence)}) of length {len(flat_sequence)}.\n"
                f"  {shorten(flat_sequence)}\nnest cannot guarantee that it is safe to map one to the other."
            )
        return next(iter(flat_sequence))
    values = iter(flat_sequence)
    try:
        packed = _pack(structure, values, expand_composites)
        complete = next(values, values) is values
    except StopIteration:
        complete = False
    if not complete:
        count = len(flatten(structure, expand_composites))
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had {len(flat_sequence)} items.  "
            f"Structure: {shorten(structure)}, flat_sequence: {shorten(flat_sequence)}."
        )
    return packed


def _pack(structure: Any, values: Iterator[Any], expand_composites: bool) -> Any:
    """Takes from `values` what `structure` needs; StopIteration leaves it when they are too few."""
    kind = kind_of(structure, expand_composites)
    if kind == LEAF:
        return next(values)
    packed = []  # a loop, because a generator would turn StopIteration into RuntimeError
    for child in children_of(structure, kind):
        packed.append(_pack(child, values, expand_composites))
    return rebuild(structure, kind, packed)


def packer(structure: Any) -> Callable[[Iterator[Any]], Any]:
    """`pack_sequence_as` for one structure, composites expanded: takes the values from an iterator."""
    kind = kind_of(structure, True)
    if kind == LEAF:
        return next
    if kind == COMPOSITE:
        spec = structure._type_spec
        components, make = packer(spec._to_components(structure)), spec._from_components
        return lambda values: make(components(values))
    children = [packer(child) for child in children_of(structure, kind)]
    if type(structure) is dict:
        places = sorted(structure)
        numbers = [(key, places.index(key)) for key in structure]

        def pack(values: Iterator[Any]) -> dict[Any, Any]:
            found = [child(values) for child in children]
            return {key: found[number] for key, number in numbers}

        return pack
    if type(structure) is tuple:
        return lambda values: tuple([child(values) for child in children])
    return lambda values: rebuild(structure, kind, [child(values) for child in children])


def shorten(value: Any, limit: int = 100) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


@public("nest.map_structure", "compat.v1.nest.map_structure")
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Calls `func` with the values that stand at the same place in each structure, and keeps the structure.

    Args:
        func: A function of as many leaves as there are structures.
        structure: Structures of the same form.
        kwargs: `check_types` and `expand_composites`.

    Returns:
        A structure like the first.

    >>> tf.nest.map_structure(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: `{'`, `'.join(kwargs)}`"
        )
    first, *others = structure
    for other in others:
        assert_same_structure(first, other, check_types, expand_composites)
    flat = [flatten(each, expand_composites) for each in structure]
    return pack_sequence_as(first, [func(*values) for values in zip(*flat)], expand_composites)


class DifferenceError(Exception):
    """Where two structures first differ; `error` is the class of the public error."""

    def __init__(self, error: type[Exception], text: str) -> None:
        super().__init__(text)
        self.error = error


class _Dot:
    """Stands for a value in the outline of a structure."""

    def __repr__(self) -> str:
        return "."


@public("nest.assert_same_structure", "compat.v1.nest.assert_same_structure")
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError or TypeError, with the first difference, if two structures are not alike.

    >>> tf.nest.assert_same_structure({"a": [1, 2]}, {"a": [3, 4]})
    """
    try:
        _compare(nest1, nest2, check_types, expand_composites)
    except DifferenceError as difference:
        text, error = str(difference), difference.error
    else:
        return
    outlines = [map_structure(lambda _: _Dot(), structure) for structure in (nest1, nest2)]
    raise error(
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {type_text(nest1)}\n\nSecond structure: {type_text(nest2)}\n\nMore specifically: {text}\n"
        f"Entire first structure:\n{outlines[0]}\nEntire second structure:\n{outlines[1]}"
    )


def _compare(first: Any, second: Any, check_types: bool, expand_composites: bool) -> None:
    kind1, kind2 = kind_of(first, expand_composites), kind_of(second, expand_composites)
    if kind1 == LEAF or kind2 == LEAF:
        if kind1 == kind2:
            return
        container, leaf = (first, second) if kind2 == LEAF else (second, first)
        text = f'Substructure "{type_text(container)}" is a sequence, while substructure "{type_text(leaf)}" is not'
        raise DifferenceError(ValueError, text)
    if check_types:
        _compare_types(first, kind1, second, kind2)
    if kind1 in EXPANDED and kind2 in EXPANDED:
        spec1 = first._type_spec if kind1 == COMPOSITE else first
        spec2 = second._type_spec if kind2 == COMPOSITE else second
        if spec1.most_specific_common_supertype([spec2]) is None:
            raise DifferenceError(
                ValueError, f"Incompatible CompositeTensor TypeSpecs: {type_text(spec1)} vs. {type_text(spec2)}"
            )
        return
    children1, children2 = children_of(first, kind1), children_of(second, kind2)
    if len(children1) != len(children2):
        raise DifferenceError(
            ValueError,
            "The two structures don't have the same number of elements. "
            f"First structure: {type_text(first)}. Second structure: {type_text(second)}",
        )
    for child1, child2 in zip(children1, children2):
        _compare(child1, child2, check_types, expand_composites)


def _compare_types(first: Any, kind1: int, second: Any, kind2: int) -> None:
    if kind1 == kind2 == MAPPING:
        if set(first) != set(second):
            raise DifferenceError(
                ValueError,
                "The two dictionaries don't have the same set of keys. First structure has keys "
                f"{type_text(list(first))}, while second structure has keys {type_text(list(second))}",
            )
        return
    if kind1 in EXPANDED and kind2 in EXPANDED:
        return
    if kind1 == kind2 == NAMEDTUPLE:
        alike = same_namedtuples(first, second)
    else:
        alike = type(first) is type(second) or (isinstance(first, list) and isinstance(second, list))
    if not alike:
        raise DifferenceError(
            TypeError,
            f"The two namedtuples don't have the same sequence type. First structure {type_text(first)} has type "
            f"{type(first).__name__}, while second structure {type_text(second)} has type {type(second).__name__}",
        )


def type_text(value: Any) -> str:
    return f"type={type(value).__name__} str={value}"


@public("__internal__.nest.list_to_tuple")
def list_to_tuple(structure: Any) -> Any:
    """The structure with a tuple in place of each list.

    >>> tf.__internal__.nest.list_to_tuple([1, {"a": [2]}])
    (1, {'a': (2,)})
    """
    kind = kind_of(structure, False)
    if kind == LEAF:
        return structure
    children = [list_to_tuple(child) for child in children_of(structure, kind)]
    return tuple(children) if isinstance(structure, list) else rebuild(structure, kind, children)
