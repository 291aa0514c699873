"""`tf.nest`: lists, tuples, dictionaries and their kin as trees of values; what a tensor is does not matter here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from typing import Any

from tapeflow._src.namespace import public

Path = tuple[Any, ...]

# How the values of one kind of container are found and put back. It depends on the class alone, so it is kept by class.
_LEAF, _SEQUENCE, _NAMEDTUPLE, _MAPPING, _VIEW, _ATTRS, _CUSTOM, _COMPOSITE, _SPEC = range(9)
_EXPANDED = (_COMPOSITE, _SPEC)  # containers only if `expand_composites` is given
_kind_by_class: dict[type, int] = {list: _SEQUENCE, tuple: _SEQUENCE, dict: _MAPPING}
_KEPT_CLASSES = 4096  # programs that make classes without end shall not fill the memory


def _find_kind(cls: type) -> int:
    if issubclass(cls, (str, bytes)):
        kind = _LEAF
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        kind = _NAMEDTUPLE
    elif issubclass(cls, Mapping):
        kind = _MAPPING
    elif issubclass(cls, MappingView):
        kind = _VIEW
    elif issubclass(cls, Sequence):
        kind = _SEQUENCE
    elif hasattr(cls, "__attrs_attrs__"):
        kind = _ATTRS
    elif hasattr(cls, "__tf_flatten__") and hasattr(cls, "__tf_unflatten__"):
        kind = _CUSTOM
    elif hasattr(cls, "_type_spec"):
        kind = _COMPOSITE
    elif hasattr(cls, "_component_specs"):
        kind = _SPEC
    else:
        kind = _LEAF
    if len(_kind_by_class) >= _KEPT_CLASSES:
        for old in list(_kind_by_class)[3:]:
            del _kind_by_class[old]
    _kind_by_class[cls] = kind
    return kind


def _kind_of(value: Any, expand_composites: bool) -> int:
    cls = type(value)
    kind = _kind_by_class.get(cls)
    if kind is None:
        kind = _find_kind(cls)
    if kind < _COMPOSITE:
        return kind
    if not expand_composites or (kind == _SPEC and value._component_specs is value):
        return _LEAF
    return kind


def _items_of(value: Any, kind: int) -> Iterator[tuple[Any, Any]]:
    """The children of a container with the step of the path that leads to each, in flattening order."""
    if kind == _MAPPING:
        for key in sorted(value):
            yield key, value[key]
    elif kind == _NAMEDTUPLE:
        yield from zip(value._fields, value)
    elif kind == _ATTRS:
        for attribute in type(value).__attrs_attrs__:
            yield attribute.name, getattr(value, attribute.name)
    elif kind in _EXPANDED:
        yield type(value).__name__, _components_of(value, kind)
    else:
        yield from enumerate(_children_of(value, kind))


def _children_of(value: Any, kind: int) -> Sequence[Any]:
    if kind in (_SEQUENCE, _NAMEDTUPLE):
        return value
    if kind == _MAPPING:
        return [value[key] for key in sorted(value)]
    if kind == _CUSTOM:
        return value.__tf_flatten__()[1]
    if kind == _VIEW:
        return list(value)
    return [child for _, child in _items_of(value, kind)]


def _components_of(value: Any, kind: int) -> Any:
    return value._type_spec._to_components(value) if kind == _COMPOSITE else value._component_specs


def _rebuild(instance: Any, kind: int, children: Sequence[Any]) -> Any:
    """A container like `instance` around other children, which stand in flattening order."""
    cls = type(instance)
    if kind == _SEQUENCE:
        return list(children) if cls is list or cls is range else cls(children)
    if kind == _NAMEDTUPLE:
        return cls(*children)
    if kind == _MAPPING:
        return _rebuild_mapping(instance, dict(zip(sorted(instance), children)))
    if kind == _VIEW:
        return list(children)
    if kind == _ATTRS:
        names = (attribute.name for attribute in cls.__attrs_attrs__)
        return cls(**{name.lstrip("_"): child for name, child in zip(names, children)})
    if kind == _CUSTOM:
        metadata, _ = instance.__tf_flatten__()
        return cls.__tf_unflatten__(metadata, tuple(children))
    if kind == _COMPOSITE:
        return instance._type_spec._from_components(children[0])
    if kind == _SPEC:
        return instance._from_components(children[0])
    return cls(children)


def _rebuild_mapping(instance: Any, value_by_key: dict[Any, Any]) -> Any:
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


@public("nest.is_nested", "compat.v1.nest.is_nested")
def is_nested(structure: Any) -> bool:
    """Whether `structure` is a container whose values `tf.nest` visits.

    >>> tf.nest.is_nested([1]), tf.nest.is_nested("text")
    (True, False)
    """
    return _kind_of(structure, False) != _LEAF


def is_nested_or_composite(structure: Any) -> bool:
    """Whether `structure` is a container, or a value such as `tf.IndexedSlices` that consists of several tensors."""
    return _kind_of(structure, True) != _LEAF


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
    return _kind_of(structure, False) == _NAMEDTUPLE and (not strict or type(structure).__base__ is tuple)


def same_namedtuples(first: Any, second: Any) -> bool:
    """Whether two named tuples have the same class name and the same fields."""
    return type(first).__name__ == type(second).__name__ and first._fields == second._fields


@public("nest.flatten", "compat.v1.nest.flatten")
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The values of a structure as a flat list, dictionaries in the order of their sorted keys.

    >>> tf.nest.flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    values: list[Any] = []
    _flatten_into(values, structure, expand_composites)
    return values


def _flatten_into(values: list[Any], structure: Any, expand_composites: bool) -> None:
    kind = _kind_of(structure, expand_composites)
    if kind == _LEAF:
        values.append(structure)
    else:
        for child in _children_of(structure, kind):
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
    if _kind_of(structure, expand_composites) == _LEAF:
        if len(flat_sequence) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {_shorten(structure)}\n"
                f"However the input is a sequence ({type(flat_sequence)}) of length {len(flat_sequence)}.\n"
                f"  {_shorten(flat_sequence)}\nnest cannot guarantee that it is safe to map one to the other."
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
            f"Structure: {_shorten(structure)}, flat_sequence: {_shorten(flat_sequence)}."
        )
    return packed


def _pack(structure: Any, values: Iterator[Any], expand_composites: bool) -> Any:
    """Takes from `values` what `structure` needs; StopIteration leaves it when they are too few."""
    kind = _kind_of(structure, expand_composites)
    if kind == _LEAF:
        return next(values)
    packed = []  # a loop, because a generator would turn StopIteration into RuntimeError
    for child in _children_of(structure, kind):
        packed.append(_pack(child, values, expand_composites))
    return _rebuild(structure, kind, packed)


def packer(structure: Any) -> Callable[[Iterator[Any]], Any]:
    """`pack_sequence_as` for one structure, composites expanded: takes the values from an iterator."""
    kind = _kind_of(structure, True)
    if kind == _LEAF:
        return next
    if kind == _COMPOSITE:
        spec = structure._type_spec
        components, make = packer(spec._to_components(structure)), spec._from_components
        return lambda values: make(components(values))
    children = [packer(child) for child in _children_of(structure, kind)]
    return lambda values: _rebuild(structure, kind, [child(values) for child in children])


def _shorten(value: Any, limit: int = 100) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


@public("nest.map_structure", "compat.v1.nest.map_structure")
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Calls `func` with the values that stand at the same place in each structure, and keeps the structure.

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


class _DifferenceError(Exception):
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
    except _DifferenceError as difference:
        text, error = str(difference), difference.error
    else:
        return
    outlines = [map_structure(lambda _: _Dot(), structure) for structure in (nest1, nest2)]
    raise error(
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {_tell(nest1)}\n\nSecond structure: {_tell(nest2)}\n\nMore specifically: {text}\n"
        f"Entire first structure:\n{outlines[0]}\nEntire second structure:\n{outlines[1]}"
    )


def _compare(first: Any, second: Any, check_types: bool, expand_composites: bool) -> None:
    kind1, kind2 = _kind_of(first, expand_composites), _kind_of(second, expand_composites)
    if kind1 == _LEAF or kind2 == _LEAF:
        if kind1 == kind2:
            return
        container, leaf = (first, second) if kind2 == _LEAF else (second, first)
        text = f'Substructure "{_tell(container)}" is a sequence, while substructure "{_tell(leaf)}" is not'
        raise _DifferenceError(ValueError, text)
    if check_types:
        _compare_types(first, kind1, second, kind2)
    if kind1 in _EXPANDED and kind2 in _EXPANDED:
        spec1 = first._type_spec if kind1 == _COMPOSITE else first
        spec2 = second._type_spec if kind2 == _COMPOSITE else second
        if spec1.most_specific_common_supertype([spec2]) is None:
            raise _DifferenceError(
                ValueError, f"Incompatible CompositeTensor TypeSpecs: {_tell(spec1)} vs. {_tell(spec2)}"
            )
        return
    children1, children2 = _children_of(first, kind1), _children_of(second, kind2)
    if len(children1) != len(children2):
        raise _DifferenceError(
            ValueError,
            "The two structures don't have the same number of elements. "
            f"First structure: {_tell(first)}. Second structure: {_tell(second)}",
        )
    for child1, child2 in zip(children1, children2):
        _compare(child1, child2, check_types, expand_composites)


def _compare_types(first: Any, kind1: int, second: Any, kind2: int) -> None:
    if kind1 == kind2 == _MAPPING:
        if set(first) != set(second):
            raise _DifferenceError(
                ValueError,
                "The two dictionaries don't have the same set of keys. First structure has keys "
                f"{_tell(list(first))}, while second structure has keys {_tell(list(second))}",
            )
        return
    if kind1 in _EXPANDED and kind2 in _EXPANDED:
        return
    if kind1 == kind2 == _NAMEDTUPLE:
        alike = same_namedtuples(first, second)
    else:
        alike = type(first) is type(second) or (isinstance(first, list) and isinstance(second, list))
    if not alike:
        raise _DifferenceError(
            TypeError,
            f"The two namedtuples don't have the same sequence type. First structure {_tell(first)} has type "
            f"{type(first).__name__}, while second structure {_tell(second)} has type {type(second).__name__}",
        )


def _tell(value: Any) -> str:
    return f"type={type(value).__name__} str={value}"


def _yield_with_paths(structure: Any, expand_composites: bool, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    kind = _kind_of(structure, expand_composites)
    if kind == _LEAF:
        yield path, structure
    else:
        for step, child in _items_of(structure, kind):
            yield from _yield_with_paths(child, expand_composites, (*path, step))


def yield_items(structure: Any) -> Iterator[tuple[Any, Any]]:
    """The children of one container with the key, name or index of each, in flattening order.

    >>> list(yield_items({"b": 1, "a": [2]}))
    [('a', [2]), ('b', 1)]
    """
    return _items_of(structure, _kind_of(structure, True))


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
    for path, _ in _yield_with_paths(nest, expand_composites):
        yield path


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """The values with the keys and indices that lead to them.

    >>> flatten_with_tuple_paths({"b": [1, 2]})
    [(('b', 0), 1), (('b', 1), 2)]
    """
    return list(_yield_with_paths(structure, expand_composites))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The values with their paths as text.

    >>> flatten_with_joined_string_paths({"b": [1, 2]})
    [('b/0', 1), ('b/1', 2)]
    """
    return [(separator.join(map(str, path)), value) for path, value in _yield_with_paths(structure, expand_composites)]


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
    kind = _kind_of(shallow, expand_composites)
    if kind == _LEAF:
        yield path, tree
        return
    tree_kind = _kind_of(tree, expand_composites)
    if tree_kind == _LEAF:
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(tree)}."
        )
    if check_types and not _begins_alike(shallow, kind, tree, tree_kind):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(tree)}, while shallow structure has type {type(shallow)}."
        )
    shallow_items = list(_items_of(shallow, kind))
    if kind == _MAPPING and tree_kind == _MAPPING:
        count = len(tree)
    else:
        children = _children_of(tree, tree_kind)
        count = len(children)
    if count != len(shallow_items):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {count}, while shallow structure has length {len(shallow_items)}."
        )
    if kind == _MAPPING and tree_kind == _MAPPING:
        absent = [key for key in shallow if key not in tree]
        if absent:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. "
                f"The shallow_tree has the following keys that are not in the input_tree: {sorted(absent)}."
            )
        children = [tree[key] for key, _ in shallow_items]
    for (step, shallow_child), child in zip(shallow_items, children):
        yield from _yield_up_to(shallow_child, child, check_types, expand_composites, (*path, step))


def _begins_alike(shallow: Any, kind: int, tree: Any, tree_kind: int) -> bool:
    if kind == tree_kind == _NAMEDTUPLE:
        return same_namedtuples(shallow, tree)
    if kind == tree_kind == _MAPPING or (kind in _EXPANDED and tree_kind in _EXPANDED):
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
    kind = _kind_of(structure, expand_composites)
    if kind == _LEAF:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned structure: {answer} for non-structure: {structure}")
        return answer
    children = _children_of(structure, kind)
    if isinstance(answer, bool):
        if not answer:
            return False
        answers: Sequence[Any] = [True] * len(children)
    elif not is_nested(answer):
        raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
    else:
        assert_shallow_structure(answer, structure, expand_composites=expand_composites)
        answers = _children_of(answer, _kind_of(answer, False))
    level: list[Any] = []
    for descend, child in zip(answers, children):
        if not isinstance(descend, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools.  saw: {answer}  for structure: {structure}"
            )
        level.append(get_traverse_shallow_structure(traverse_fn, child, expand_composites) if descend else False)
    return _rebuild(structure, kind, level)


@public("__internal__.nest.sequence_like")
def sequence_like(instance: Any, args: Sequence[Any]) -> Any:
    """A container like `instance` with other children, which stand in flattening order.

    >>> tf.__internal__.nest.sequence_like({"b": 0, "a": 0}, [1, 2])
    {'b': 2, 'a': 1}
    """
    return _rebuild(instance, _kind_of(instance, True), list(args))


@public("__internal__.nest.list_to_tuple")
def list_to_tuple(structure: Any) -> Any:
    """The structure with a tuple in place of each list.

    >>> tf.__internal__.nest.list_to_tuple([1, {"a": [2]}])
    (1, {'a': (2,)})
    """
    kind = _kind_of(structure, False)
    if kind == _LEAF:
        return structure
    children = [list_to_tuple(child) for child in _children_of(structure, kind)]
    return tuple(children) if isinstance(structure, list) else _rebuild(structure, kind, children)


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
