"""`tf.nest` flattens, packs, maps and complains as in TensorFlow 2.21."""

import collections
import dataclasses
import re
import types

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.types import containers, nest_paths

Point = collections.namedtuple("Point", "x y")
Other = collections.namedtuple("Other", "x y")
SamePoint = collections.namedtuple("Point", "x y")


class SubPoint(Point):
    pass


class Names(list):
    pass


class Pair(tuple):
    __slots__ = ()


class Table(collections.abc.Mapping):
    def __init__(self, items):
        self.items_by_key = dict(items)

    def __getitem__(self, key):
        return self.items_by_key[key]

    def __iter__(self):
        return iter(self.items_by_key)

    def __len__(self):
        return len(self.items_by_key)


@dataclasses.dataclass
class Plain:
    a: int


@dataclasses.dataclass
class Masked:
    value: object
    mask: str

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(components[0], metadata[0])


class Attribute:
    """What the package attrs leaves on a class, without the package."""

    def __init__(self, name):
        self.name = name


class WithAttributes:
    __attrs_attrs__ = (Attribute("x"), Attribute("_y"))

    def __init__(self, x, y):
        self.x, self._y = x, y


ordered = collections.OrderedDict([("b", 1), ("a", 2)])
counted = collections.defaultdict(list, {"b": 1, "a": [2]})


@pytest.mark.parametrize(
    ("structure", "values"),
    [
        (None, [None]),
        (5, [5]),
        ("abc", ["abc"]),
        (b"ab", [b"ab"]),
        ([], []),
        ({"z": 1, "a": {"y": 2, "b": 3}}, [3, 2, 1]),
        ([1, (2, [3, {"b": 4, "a": 5}])], [1, 2, 3, 5, 4]),
        (Point(1, [2, 3]), [1, 2, 3]),
        (ordered, [2, 1]),
        (counted, [2, 1]),
        ({1: 2, 0: 3}, [3, 2]),
        (Table({"b": 1, "a": 2}), [2, 1]),
        (types.MappingProxyType({"a": 1}), [1]),
        ({"b": 1}.items(), ["b", 1]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        (Plain(1), [Plain(1)]),
        (Masked([1, 2], "m"), [1, 2]),
        (WithAttributes(1, [2, 3]), [1, 2, 3]),
        ({1, 2}, [{1, 2}]),
        (range(3), [0, 1, 2]),
        (collections.deque([1, 2]), [1, 2]),
        (bytearray(b"ab"), [97, 98]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_flatten(structure, values):
    assert tf.nest.flatten(structure) == values
    assert tf.nest.is_nested(structure) == (values != [structure])


def test_tensors_and_shapes_are_values():
    for value in (tf.constant([1, 2]), tf.Variable([1.0]), tf.TensorShape([1, 2]), np.array([1, 2])):
        assert not tf.nest.is_nested(value)
        assert tf.nest.flatten(value)[0] is value
        assert tf.nest.flatten(value, expand_composites=True)[0] is value


def test_keys_that_do_not_sort():
    with pytest.raises(TypeError, match="'<' not supported between instances of 'str' and 'int'"):
        tf.nest.flatten({1: 2, "a": 3})


def test_pack():
    pack = tf.nest.pack_sequence_as
    assert pack({"b": [0, 0], "a": (0,)}, [1, 2, 3]) == {"b": [2, 3], "a": (1,)}
    assert list(pack({"b": 0, "a": 0}, [1, 2])) == ["b", "a"]
    assert pack(0, [1]) == 1
    assert pack([], []) == []
    assert pack([0], (1,)) == [1]
    assert pack([0, 0], range(2)) == [0, 1]
    assert pack(Point(1, [2]), [5, 6]) == Point(5, [6])
    assert type(pack(SubPoint(1, 2), [5, 6])) is SubPoint
    assert pack(ordered, [10, 20]) == collections.OrderedDict([("b", 20), ("a", 10)])
    packed = pack(counted, [10, 20])
    assert (type(packed), packed.default_factory, dict(packed)) == (collections.defaultdict, list, {"b": 20, "a": [10]})
    assert pack(Table({"b": 1, "a": 2}), [10, 20]).items_by_key == {"b": 20, "a": 10}
    assert pack({"b": 1, "a": 2}.values(), [10, 20]) == [10, 20]
    assert pack({"b": 1, "a": 2}.items(), ["a", 1, "b", 2]) == [("a", 1), ("b", 2)]
    assert type(pack(Names([1]), [2])) is Names
    assert type(pack(Pair((1,)), [2])) is Pair
    assert pack([Masked([1, 2], "m"), 1], [10, 20, 30]) == [Masked([10, 20], "m"), 30]
    assert vars(pack(WithAttributes(1, [2]), [5, 6])) == {"x": 5, "_y": [6]}
    assert pack(collections.deque([1]), [5]) == collections.deque([5])
    assert pack(range(2), [5, 6]) == [5, 6]


@pytest.mark.parametrize(
    ("structure", "values", "error", "message"),
    [
        ([0, 0], [1, 2, 3], ValueError, "Could not pack sequence. Structure had 2 atoms, but flat_sequence had 3 items"
                                        ".  Structure: [0, 0], flat_sequence: [1, 2, 3]."),
        ([0, [0]], [1], ValueError, "Structure had 2 atoms, but flat_sequence had 1 items."),
        ([], [1], ValueError, "Structure had 0 atoms, but flat_sequence had 1 items."),
        (0, [1, 2], ValueError, "The target structure is of type `<class 'int'>`\n  0\nHowever the input is a sequence "
                                "(<class 'list'>) of length 2.\n  [1, 2]\nnest cannot guarantee that it is safe to map "
                                "one to the other."),
        ([0], 1, TypeError, "Attempted to pack value:\n  1\ninto a structure, but found incompatible type "
                            "`<class 'int'>` instead."),
        ([0], "a", TypeError, "incompatible type `<class 'str'>` instead."),
        (types.MappingProxyType({"b": 1}), [1], TypeError, "Error creating an object of type <class 'mappingproxy'> "
                                                          "like {'b': 1}. Note that it must accept a single"),
    ],
)  # fmt: skip
def test_pack_refuses(structure, values, error, message):
    with pytest.raises(error, match=re.escape(message)):
        tf.nest.pack_sequence_as(structure, values)


def test_map():
    assert tf.nest.map_structure(lambda x: x + 1, {"a": 1, "b": (2, [3])}) == {"a": 2, "b": (3, [4])}
    assert tf.nest.map_structure(lambda x, y: x + y, {"a": 1, "b": 2}, {"b": 10, "a": 20}) == {"a": 21, "b": 12}
    assert tf.nest.map_structure(lambda *x: x, [1], [2], [3]) == [(1, 2, 3)]
    assert tf.nest.map_structure(lambda x, y: x + y, [1, 2], (1, 2), check_types=False) == [2, 4]
    assert tf.nest.map_structure(lambda x: (x, x), 5) == (5, 5)
    assert tf.nest.map_structure(lambda x, y: x * y, Masked([1, 2], "m"), Masked([3, 4], "n")) == Masked([3, 8], "m")


def test_map_refuses():
    with pytest.raises(ValueError, match="Must provide at least one structure"):
        tf.nest.map_structure(lambda x: x)
    with pytest.raises(TypeError, match="func must be callable, got: 5"):
        tf.nest.map_structure(5, [1])
    with pytest.raises(ValueError, match=r"Only valid keyword arguments are .* not: `check_type`"):
        tf.nest.map_structure(lambda x: x, [1], check_type=True)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.nest.map_structure(lambda x, y: x + y, [1, 2], [1])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        ("abc", "de"),
        ({"a": [1, 2]}, {"a": [3, 4]}),
        ({"a": 1}, collections.OrderedDict(a=1)),
        ({"a": 1}, Table({"a": 1})),
        (ordered, {"a": 1, "b": 2}),
        (Point(1, 2), SamePoint(1, 2)),
        ([1], Names([1])),
        ({"a": 1}.values(), {"b": 2}.values()),
        (Masked([1], "m"), Masked([2], "n")),
    ],
)
def test_same_structure(first, second):
    tf.nest.assert_same_structure(first, second)
    tf.nest.assert_same_structure(second, first)


@pytest.mark.parametrize(
    ("first", "second", "error", "reason"),
    [
        ([1, 2], [1, [2]], ValueError, 'Substructure "type=list str=[2]" is a sequence, while substructure '
                                       '"type=int str=2" is not'),
        ([1], 1, ValueError, 'Substructure "type=list str=[1]" is a sequence, while substructure "type=int str=1"'),
        ([[1], [3]], [[1], [3, 4]], ValueError, "The two structures don't have the same number of elements. First "
                                                "structure: type=list str=[3]. Second structure: type=list str=[3, 4]"),
        ([1, 2], (1, 2), TypeError, "The two namedtuples don't have the same sequence type. First structure type=list "
                                    "str=[1, 2] has type list, while second structure type=tuple str=(1, 2) has type "
                                    "tuple"),
        ({"a": 1, "b": 2}, {"a": 1}, ValueError, "The two dictionaries don't have the same set of keys. First "
                                                 "structure has keys type=list str=['a', 'b'], while second structure "
                                                 "has keys type=list str=['a']"),
        (Point(1, 2), Other(1, 2), TypeError, "has type Point, while second structure type=Other"),
        (Point(1, 2), SubPoint(1, 2), TypeError, "has type SubPoint"),
        (Point(1, 2), (1, 2), TypeError, "has type tuple"),
        ((1,), Pair((1,)), TypeError, "has type Pair"),
        ([], (), TypeError, "has type tuple"),
        ({"a": 1}.values(), [1], TypeError, "has type dict_values"),
        (Masked([1], "m"), [1], TypeError, "has type Masked"),
    ],
)  # fmt: skip
def test_different_structure(first, second, error, reason):
    with pytest.raises(error, match="don't have the same nested structure") as caught:
        tf.nest.assert_same_structure(first, second)
    assert f"More specifically: {reason}" in str(caught.value) or reason in str(caught.value)


def test_whole_message():
    with pytest.raises(ValueError, match="same nested structure") as caught:
        tf.nest.assert_same_structure({"a": Point(1, [2])}, {"a": Point(1, 2)})
    assert str(caught.value) == (
        "The two structures don't have the same nested structure.\n\n"
        "First structure: type=dict str={'a': Point(x=1, y=[2])}\n\n"
        "Second structure: type=dict str={'a': Point(x=1, y=2)}\n\n"
        'More specifically: Substructure "type=list str=[2]" is a sequence, while substructure "type=int str=2" is not'
        "\n"
        "Entire first structure:\n{'a': Point(x=., y=[.])}\n"
        "Entire second structure:\n{'a': Point(x=., y=.)}"
    )


def test_types_may_differ():
    same = tf.nest.assert_same_structure
    same([1, 2], (3, 4), check_types=False)
    same(Point(1, 2), Other(1, 2), check_types=False)
    same({"a": 1}, {"b": 1}, check_types=False)
    same({"a": 1}, [1], check_types=False)
    with pytest.raises(ValueError, match="same number of elements"):
        same({"a": 1, "b": 2}, {"a": 1}, check_types=False)


def test_paths():
    structure = {"b": [1, 2], "a": (3, Point(4, 5))}
    paths = [("a", 0), ("a", 1, "x"), ("a", 1, "y"), ("b", 0), ("b", 1)]
    assert list(tf.__internal__.nest.yield_flat_paths(structure)) == paths
    assert nest_paths.flatten_with_tuple_paths(structure) == list(zip(paths, [3, 4, 5, 1, 2]))
    assert nest_paths.flatten_with_joined_string_paths({"b": [1, 2]}, separator=".") == [("b.0", 1), ("b.1", 2)]
    assert list(nest_paths.yield_flat_paths(5)) == [()]
    assert list(nest_paths.yield_flat_paths(Masked([1, 2], "m"))) == [(0, 0), (0, 1)]
    assert nest_paths.map_structure_with_tuple_paths(lambda p, x, y: (p, x, y), {"b": [1]}, {"b": [3]}) == {
        "b": [(("b", 0), 1, 3)]
    }
    assert nest_paths.map_structure_with_paths(lambda p, x: (p, x), {"b": [1]}) == {"b": [("b/0", 1)]}


def test_up_to():
    up_to = tf.__internal__.nest.flatten_up_to
    assert up_to([0, 0], [[1, 2], 3]) == [[1, 2], 3]
    assert up_to({"a": 0, "b": [0]}, {"a": [1], "b": [{"c": 2}]}) == [[1], {"c": 2}]
    assert up_to(0, [1, 2]) == [[1, 2]]
    assert up_to([0, 0], (1, 2), check_types=False) == [1, 2]
    assert up_to(Point(0, 0), SamePoint(1, [2])) == [1, [2]]
    assert up_to([0], Names([1])) == [1]
    assert nest_paths.flatten_with_tuple_paths_up_to([0, [0]], [[1], [2]]) == [((0,), [1]), ((1, 0), 2)]
    map_up_to = tf.__internal__.nest.map_structure_up_to
    assert map_up_to([0, 0], lambda x, y: (x, y), [[1, 2], 3], [4, [5]]) == [([1, 2], 4), (3, [5])]
    assert map_up_to(0, lambda x: x, [1]) == [1]


@pytest.mark.parametrize(
    ("shallow", "tree", "error", "message"),
    [
        ([0, 0], [1, 2, 3], ValueError, "The two structures don't have the same sequence length. Input structure has "
                                        "length 3, while shallow structure has length 2."),
        ([0, 0], (1, 2), TypeError, "The two structures don't have the same sequence type. Input structure has type "
                                    "<class 'tuple'>, while shallow structure has type <class 'list'>."),
        ([0, [0]], [1, 2], TypeError, "If shallow structure is a sequence, input must also be a sequence. Input has "
                                      "type: <class 'int'>."),
        ({"a": 0}, {"b": 0}, ValueError, "The shallow_tree's keys are not a subset of the input_tree's keys. The "
                                         "shallow_tree has the following keys that are not in the input_tree: ['a']."),
        ({"a": 0, "b": 1}, {"a": 0}, ValueError, "Input structure has length 1, while shallow structure has length 2."),
        (Point(0, 0), (1, 2), TypeError, "Input structure has type <class 'tuple'>"),
    ],
)  # fmt: skip
def test_up_to_refuses(shallow, tree, error, message):
    with pytest.raises(error, match=re.escape(message)):
        nest_paths.assert_shallow_structure(shallow, tree)
    with pytest.raises(error, match=re.escape(message)):
        nest_paths.map_structure_up_to(shallow, lambda x: x, tree)


def test_map_up_to_nothing():
    with pytest.raises(ValueError, match="Cannot map over no sequences"):
        nest_paths.map_structure_up_to([0], lambda x: x)


def test_traverse():
    traverse = tf.__internal__.nest.get_traverse_shallow_structure
    assert traverse(lambda part: not isinstance(part, tuple), [1, [2, (3, 4)]]) == [True, [True, False]]
    assert traverse(lambda part: isinstance(part, tuple), [1]) is False
    assert traverse(lambda part: [True, False] if part == [1, [2]] else True, [1, [2]]) == [True, False]
    for answer, error, message in (
        (5, TypeError, "traverse_fn returned a non-bool scalar: 5 for input: [1]"),
        ([1], TypeError, "traverse_fn didn't return a depth=1 structure of bools.  saw: [1]  for structure: [1]"),
        ([True, True], ValueError, "The two structures don't have the same sequence length."),
    ):
        with pytest.raises(error, match=re.escape(message)):
            traverse(lambda _, answer=answer: answer, [1])
    with pytest.raises(TypeError, match="traverse_fn returned structure: 3 for non-structure: 5"):
        traverse(lambda _: 3, 5)


def test_small_functions():
    inner = tf.__internal__.nest
    assert inner.list_to_tuple([1, [2, {"a": [3]}], Point(4, [5])]) == (1, (2, {"a": (3,)}), Point(4, (5,)))
    assert inner.sequence_like({"b": 1, "a": 2}, [1, 2]) == {"b": 2, "a": 1}
    assert inner.sequence_like(Point(1, 2), [3, 4]) == Point(3, 4)
    assert (inner.is_mapping(Table({})), inner.is_mapping([]), inner.is_mapping({}.items())) == (True, False, False)
    assert (inner.is_attrs(WithAttributes(1, 2)), inner.is_attrs(1)) == (True, False)
    assert (containers.is_namedtuple(Point(1, 2)), containers.is_namedtuple((1,))) == (True, False)
    assert nest_paths.flatten_dict_items({(1, 2): (3, 4), 5: 6}) == {1: 3, 2: 4, 5: 6}
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 1 elements"):
        nest_paths.flatten_dict_items({(1, 2): (3,)})
    with pytest.raises(ValueError, match="this key is not unique: 2"):
        nest_paths.flatten_dict_items({(1, 2): (3, 4), 2: 6})


def test_classes_made_in_a_loop_are_not_kept_forever():
    for _ in range(5000):
        tf.nest.flatten(collections.namedtuple("New", "x")(1)) if _ < 50 else tf.nest.flatten(type("New", (), {})())
    assert len(containers.kind_by_class) <= containers.KEPT_CLASSES
    assert tf.nest.flatten([{"a": (1,)}]) == [1]


def test_a_container_may_build_itself_by_a_method():
    class Pair:
        def __init__(self, name, x):
            self.name, self.x = name, x

        def __tf_flatten__(self):
            return (self.name,), (self.x,)

        def __tf_unflatten__(self, metadata, components):
            return Pair(*metadata, *components)

    found = tf.nest.map_structure(lambda x: x + 1, Pair("a", 1))
    assert (found.name, found.x) == ("a", 2)
