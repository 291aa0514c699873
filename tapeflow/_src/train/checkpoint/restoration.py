"""Putting the values of a checkpoint into the objects of a program, also those that come later."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

from tapeflow._src import _core
from tapeflow._src.function.trace import init_scope
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.train.checkpoint.graph_sessions import is_in_graph, needed_session
from tapeflow._src.train.checkpoint.object_graph import (
    GRAPH_KEY,
    Node,
    ObjectGraph,
    attribute_of,
    children_of,
    decode_graph,
    is_leaf,
    variable_of,
)
from tapeflow._src.train.checkpoint.serialized import SerializedTensor, give_back, serializes
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import session_graph

_numbers = itertools.count()


def _given_value(value: Any, shape: Any, dtype: Any = None) -> Any:
    return convert_to_tensor(value, dtype)


def _same_node(thing: Any) -> tuple[Any, ...]:
    """The objects that one node stands for: a Checkpoint and its root, an object and the one that tracks for it."""
    kind = type(thing)
    other = getattr(thing, "_root", None) if kind.__name__ == "Checkpoint" else None
    if getattr(kind, "_delegates_tracking", False):
        other = thing._trackable
    return (thing,) if other is None else (thing, other)


class SlotPosition:
    """The place in a checkpoint of what an optimizer keeps for a variable."""

    def __init__(self, restoration: Restoration, number: int) -> None:
        self._restoration, self._number = restoration, number
        self.restore_uid = restoration.number  # later restorations have larger ones
        self._key = restoration.nodes[number].keys.get("VARIABLE_VALUE", "")

    def is_simple_variable(self) -> bool:
        """Whether the place holds one value, with nothing below it."""
        node = self._restoration.nodes[self._number]
        return list(node.keys) == ["VARIABLE_VALUE"] and not node.children

    def value_shape(self) -> TensorShape:
        """The shape of the value."""
        return TensorShape(self._restoration.bundle.shape(self._key))

    def value(self) -> Any:
        """The value."""
        return convert_to_tensor(self._restoration.bundle.value(self._key), self._restoration.bundle.dtype(self._key))

    def restore(self, trackable: Any) -> None:
        """Gives a variable the value."""
        self._restoration.restore_slot(self._number, trackable)


class Restoration:
    """One checkpoint that is being restored: which object belongs to which node of its graph."""

    def __init__(self, bundle: Bundle, root: Any, skip_slots: bool = False) -> None:
        self.bundle, self.root, self.number = bundle, root, next(_numbers)
        self.nodes = decode_graph(bundle.value(GRAPH_KEY))
        for node in self.nodes if skip_slots else []:
            node.slots.clear()
        self.object_by_node: dict[int, Any] = {}
        self.session_of_later_objects: Any = None
        self._value_by_variable: list[tuple[Any, Any]] = []  # of graphs: a session holds the values
        self._operations: list[Any] = []  # of graphs: they give objects the tensors that these serialized
        self._offered_slots: set[int] = set()
        self.sync()

    def sync(self) -> None:
        """Restores what has come since; either everything fits, or nothing is changed."""
        self._bind_and_assign([(self.root, 0)])

    def load_into(self, session: Any) -> None:
        """Gives the variables of a graph their values in a session."""
        if self._value_by_variable:
            session = needed_session(session)
        for variable, value in self._value_by_variable:
            session.set_variable(variable, value)
        if self._operations:
            needed_session(session).run(self._operations)

    def restore_slot(self, slot: int, variable: Any) -> None:
        """Restores what an optimizer made for a variable."""
        self._bind_and_assign([(variable, slot)])

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        """Restores what a module was just given."""
        number = next(
            (n for n, thing in self.object_by_node.items() if any(one is owner for one in _same_node(thing))), None
        )
        if number is not None and name in self.nodes[number].children:
            self._bind_and_assign([(value, self.nodes[number].children[name])])

    def _bind_and_assign(self, begin: list[tuple[Any, int]]) -> None:
        before = dict(self.object_by_node)
        waiting: list[tuple[Any, Any]] = []
        try:
            todo, seen = list(begin), set[tuple[int, int]]()
            while todo:
                thing, number = todo.pop(0)
                if (id(thing), number) in seen:  # objects may refer to each other
                    continue
                seen.add((id(thing), number))
                todo += self._bind(thing, number, waiting) or self._bind_slots(waiting)
            values = [(leaf, self._checked(leaf, key)) for leaf, key in waiting]
        except BaseException:
            self.object_by_node = before
            raise
        with init_scope():  # a variable that comes while a function is traced has its value at once
            for leaf, value in values:
                variable = variable_of(leaf)
                if not self._is_latest_for(leaf if variable is None else variable):
                    continue
                if serializes(leaf):
                    operation = give_back(leaf, value)
                    if session_graph() is not None:
                        self._operations.append(operation)
                elif variable is None:
                    leaf._restore_checkpoint_value(value)
                elif is_in_graph(variable):
                    self._value_by_variable.append((variable, value))
                    if self.session_of_later_objects is not None:
                        self.session_of_later_objects.set_variable(variable, value)
                elif isinstance(variable, _core.Variable):
                    variable.assign(value)
                else:  # of Keras, while it works out shapes: it will begin with this value
                    leaf._initializer = partial(_given_value, value)
        if all(number in self.object_by_node for number, node in enumerate(self.nodes) if node.keys):
            self.bundle.close()

    def _is_latest_for(self, leaf: Any) -> bool:
        """Whether no later restoration gave a variable its value; the last one decides, whatever comes of it when."""
        known = getattr(leaf, "__dict__", None)
        if known is None or known.get("_restoration_number", -1) > self.number:
            return known is None
        known["_restoration_number"] = self.number
        return True

    def _bind(self, thing: Any, number: int, waiting: list[tuple[Any, Any]]) -> list[tuple[Any, int]]:
        """Records that an object is a node; gives the pairs below it that are still to be matched."""
        node = self.nodes[number]
        is_new = self.object_by_node.get(number) is not thing
        if is_new:
            self.object_by_node[number] = thing
            for one in _same_node(thing):
                if isinstance(one, Trackable) and not is_leaf(one):
                    one.__dict__["_restoration"] = self
            for one in _same_node(thing):
                if serializes(one):
                    waiting.append((one, node.keys))
                elif is_leaf(one) and attribute_of(one) in node.keys:
                    waiting.append((one, node.keys[attribute_of(one)]))
        below = children_of(thing)
        return [(below[name], child) for name, child in node.children.items() if name in below]

    def _bind_slots(self, waiting: list[tuple[Any, Any]]) -> list[tuple[Any, int]]:
        """Binds what optimizers keep for variables; they make it now, if they have not yet. Gives those that did."""
        restored: dict[int, Any] = {}
        for number, optimizer in list(self.object_by_node.items()):
            for original, name, slot in self.nodes[number].slots:
                variable = self.object_by_node.get(original)
                if variable is None or slot in self.object_by_node:
                    continue
                if hasattr(optimizer, "_create_or_restore_slot_variable"):
                    kept = self._slot_of_keras(optimizer, variable, name, slot)
                elif hasattr(optimizer, "_create_slots"):
                    optimizer._create_slots([variable])
                    kept = optimizer.get_slot(variable, name)
                else:
                    continue
                if kept is not None:
                    self._bind(kept, slot, waiting)
                    restored[number] = optimizer
        return [(optimizer, number) for number, optimizer in restored.items()]

    def _slot_of_keras(self, optimizer: Any, variable: Any, name: str, slot: int) -> Any:
        """What an optimizer of Keras 2 keeps for a variable; None if it will restore it when it makes it."""
        if slot in self._offered_slots:
            return None
        self._offered_slots.add(slot)
        position = SlotPosition(self, slot)
        return optimizer._create_or_restore_slot_variable(
            slot_variable_position=position, slot_name=name, variable=variable
        )

    def _checked(self, leaf: Any, key: Any) -> Any:
        if serializes(leaf):
            return {name: convert_to_tensor(self.bundle.value(k), self.bundle.dtype(k)) for name, k in key.items()}
        if parts := getattr(leaf, "_checkpoint_parts", ()):
            return {end: self.bundle.value(key + end) for end in parts}
        leaf = variable_of(leaf)
        if leaf is not None:
            shape, dtype = self.bundle.shape(key), self.bundle.dtype(key)
            if dtype != leaf.dtype:
                raise InvalidArgumentError.of(
                    f"tensor_name = {key}; expected dtype {leaf.dtype.name} does not equal original dtype {dtype.name}",
                )
            if not leaf.shape.is_compatible_with(shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {tuple(shape)} when attempting to restore variable with "
                    f"shape {leaf.shape} and name {leaf.name}."
                )
        return self.bundle.value(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_restoration, ()  # a copy of an object has nothing to wait for

    # ---- what did not match

    def unmatched_nodes(self) -> Iterator[tuple[str, Node]]:
        """The nodes with values to which no object belongs, with their paths."""
        for number, node in enumerate(self.nodes):
            if number not in self.object_by_node and node.keys:
                yield self._path_of(number), node

    def _path_of(self, number: int) -> str:
        return self._path_by_node.get(number, "a slot of an optimizer")

    @cached_property
    def _path_by_node(self) -> dict[int, str]:
        """The shortest path of each node that has one."""
        paths = {0: "(root)"}
        todo = [0]
        while todo:
            number = todo.pop(0)
            for name, child in self.nodes[number].children.items():
                if child not in paths:
                    paths[child] = f"{paths[number]}.{name}"
                    todo.append(child)
        return paths

    def unused_attributes(self) -> list[str]:
        """The paths of matched objects that have no place for a value which the checkpoint has for them."""
        return [
            f"{self._path_of(number)}: {list(self.nodes[number].keys)}"
            for number, thing in self.object_by_node.items()
            if any(name != "OBJECT_CONFIG_JSON" for name in self.nodes[number].keys)
            and not any(map(is_leaf, _same_node(thing)))
        ]

    def unmatched_objects(self) -> list[Any]:
        """The objects with values that the checkpoint does not know."""
        matched = {id(one) for thing in self.object_by_node.values() for one in _same_node(thing)}
        leaves = ObjectGraph(self.root).leaf_by_key.values()
        owners = {
            id(one): one for leaf in leaves for one in [leaf.owner if isinstance(leaf, SerializedTensor) else leaf]
        }
        return [thing for number, thing in owners.items() if number not in matched]


def _no_restoration() -> None:
    return None
