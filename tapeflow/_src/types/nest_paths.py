"""Structures with the paths of their values, and structures that end earlier than others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.containers import (
    EXPANDED,
    LEAF,
    MAPPING,
    NAMEDTUPLE,
    children_of,
    items_of,
    kind_of,
    rebuild,
    same_namedtuples,
)
from tapeflow._src.types.nest import flatten, is_nested, pack_sequence_as

Path = tuple[Any, ...]


def yield_with_paths(structure: Any, expand_composites: bool, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    kind = kind_of(structure, expand_composites)
    if kind == LEAF:
        yield path, structure
    else:
        for step, child in items_of(structure, kind):
            yield from yield_with_paths(child, expand_composites, (*path, step))


def yield_items(structure: Any) -> Iterator[tuple[Any, Any]]:
    """The children of one container with the key, name or index of each, in flattening order.

    >>> list(yield_items({"b": 1, "a": [2]}))
    [('a', [2]), ('b', 1)]
    """
    return items_of(structure, kind_of(structure, True))


def yield_values(structure: Any) -> Iterator[Any]:
    """The children of one container, in flattening order.

    >>> list(yield_values({"b": 1, "a": [2]}))
    [[2], 1]
    """
    return (child for _, child in yield_items(structure))


@public("__internal__.nest.yield_flat_paths")
def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The keys and indices that lead to each value, in flattening order.

    >>> list(tf.__internal__.nest.yield_flat_paths({"b": [1, 2], "a": 3}))
    [('a',), ('b', 0), ('b', 1)]
    """
    for path, _ in yield_with_paths(nest, expand_composites):
        yield path


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """The values with the keys and indices that lead to them.

    >>> flatten_with_tuple_paths({"b": [1, 2]})
    [(('b', 0), 1), (('b', 1), 2)]
    """
    return list(yield_with_paths(structure, expand_composites))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The values with their paths as text.

    >>> flatten_with_joined_string_paths({"b": [1, 2]})
    [('b/0', 1), ('b/1', 2)]
    """
    return [(separator.join(map(str, path)), value) for path, value in yield_with_paths(structure, expand_composites)]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, with the path of the values as the first argument of `func`."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, with the path of the values, joined by `/`, as the first argument of `func`."""

    def call_with_text(path: Path, *values: Any) -> Any:
        return func("/".join(map(str, path)), *values)

    return map_structure_with_tuple_paths(call_with_text, *structure, **kwargs)


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError or TypeError if `input_tree` does not begin like `shallow_tree`; it may go deeper.

    >>> assert_shallow_structure([0, 0], [[1, 2], 3])
    """
    for _ in _yield_up_to(shallow_tree, input_tree, check_types, expand_composites):
        pass


def _yield_up_to(
    shallow: Any, tree: Any, check_types: bool, expand_composites: bool, path: Path = ()
) -> Iterator[tuple[Path, Any]]:
    """The parts of `tree` that stand where `shallow` has values, with their paths."""
    kind = kind_of(shallow, expand_composites)
    if kind == LEAF:
        yield path, tree
        return
    tree_kind = kind_of(tree, expand_composites)
    if tree_kind == LEAF:
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(tree)}."
        )
    if check_types and not begins_alike(shallow, kind, tree, tree_kind):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(tree)}, while shallow structure has type {type(shallow)}."
        )
    shallow_items = list(items_of(shallow, kind))
    if kind == MAPPING and tree_kind == MAPPING:
        count = len(tree)
    else:
        children = children_of(tree, tree_kind)
        count = len(children)
    if count != len(shallow_items):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {count}, while shallow structure has length {len(shallow_items)}."
        )
    if kind == MAPPING and tree_kind == MAPPING:
        absent = [key for key in shallow if key not in tree]
        if absent:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. "
                f"The shallow_tree has the following keys that are not in the input_tree: {sorted(absent)}."
            )
        children = [tree[key] for key, _ in shallow_items]
    for (step, shallow_child), child in zip(shallow_items, children):
        yield from _yield_up_to(shallow_child, child, check_types, expand_composites, (*path, step))


def begins_alike(shallow: Any, kind: int, tree: Any, tree_kind: int) -> bool:
    if kind == tree_kind == NAMEDTUPLE:
        return same_namedtuples(shallow, tree)
    if kind == tree_kind == MAPPING or (kind in EXPANDED and tree_kind in EXPANDED):
        return True
    return isinstance(tree, type(shallow)) or (isinstance(tree, list) and isinstance(shallow, list))


@public("__internal__.nest.flatten_up_to")
def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of `input_tree` that stand where `shallow_tree` has values.

    >>> tf.__internal__.nest.flatten_up_to([0, 0], [[1, 2], 3])
    [[1, 2], 3]
    """
    return [part for _, part in _yield_up_to(shallow_tree, input_tree, check_types, expand_composites)]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[Path, Any]]:
    """Like `flatten_up_to`, with the paths.

    >>> flatten_with_tuple_paths_up_to([0, [0]], [[1], [2]])
    [((0,), [1]), ((1, 0), 2)]
    """
    return list(_yield_up_to(shallow_tree, input_tree, check_types, expand_composites))


@public("__internal__.nest.map_structure_up_to")
def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """Calls `func` with the parts of the inputs that stand where `shallow_tree` has values.

    >>> tf.__internal__.nest.map_structure_up_to([0, 0], lambda part: part, [[1, 2], 3])
    [[1, 2], 3]
    """
    return map_structure_with_tuple_paths_up_to(shallow_tree, lambda _, *values: func(*values), *inputs, **kwargs)


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Like `map_structure_up_to`, with the path as the first argument of `func`.

    >>> map_structure_with_tuple_paths_up_to([0, [0]], lambda path, part: path, [[1], [2]])
    [(0,), [(1, 0)]]
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if kwargs:
        raise TypeError(f"unexpected keyword arguments: {', '.join(kwargs)}; check_types and expand_composites exist.")
    rows = [list(_yield_up_to(shallow_tree, each, check_types, expand_composites)) for each in inputs]
    results = [func(parts[0][0], *(part for _, part in parts)) for parts in zip(*rows)]
    return pack_sequence_as(shallow_tree, results, expand_composites)


@public("__internal__.nest.get_traverse_shallow_structure")
def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """The upper part of a structure, down to where `traverse_fn` says False, with booleans as its values.

    >>> tf.__internal__.nest.get_traverse_shallow_structure(lambda part: not isinstance(part, tuple), [1, [2, (3, 4)]])
    [True, [True, False]]
    """
    answer = traverse_fn(structure)
    kind = kind_of(structure, expand_composites)
    if kind == LEAF:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned structure: {answer} for non-structure: {structure}")
        return answer
    children = children_of(structure, kind)
    if isinstance(answer, bool):
        if not answer:
            return False
        answers: Sequence[Any] = [True] * len(children)
    elif not is_nested(answer):
        raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
    else:
        assert_shallow_structure(answer, structure, expand_composites=expand_composites)
        answers = children_of(answer, kind_of(answer, False))
    level: list[Any] = []
    for descend, child in zip(answers, children):
        if not isinstance(descend, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools.  saw: {answer}  for structure: {structure}"
            )
        level.append(get_traverse_shallow_structure(traverse_fn, child, expand_composites) if descend else False)
    return rebuild(structure, kind, level)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary with nested keys and values as a flat one.

    >>> flatten_dict_items({(1, 2): (3, 4), 5: 6})
    {1: 3, 2: 4, 5: 6}
    """
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value]) if not is_nested(key) else (flatten(key), flatten(value))
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had {len(values)} elements. "
                f"Key: {keys}, value: {values}."
            )
        for each_key, each_value in zip(keys, values):
            if each_key in flat:
                raise ValueError(f"Cannot flatten dict because this key is not unique: {each_key}")
            flat[each_key] = each_value
    return flat
